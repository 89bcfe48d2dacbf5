//! A file: content, owner, group, mode; or gone.
//!
//! Written beside its place, synced and renamed, so a reader sees the old or the new content and nothing else. A
//! symbolic link at the path is replaced by the file (its target stays as it is); a directory is never replaced.

use base64::Engine;

use super::names::{self, BadValue};
use super::{Change, Check, Op, Pattern, Question, Reaction, Seen, WILD, diff};
use crate::secret::Secret;
use crate::shell::{Argument, Shell, call, call_with, sha256_hex};

/// Owner, group and mode; an empty text is not managed (root, root, 0644 for a new file).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ownership {
    /// User name.
    pub owner: String,
    /// Group name.
    pub group: String,
    /// Octal digits.
    pub mode: String,
}

impl Ownership {
    /// Owner, group and mode.
    pub fn new(owner: &str, group: &str, mode: &str) -> Self {
        Ownership { owner: owner.to_owned(), group: group.to_owned(), mode: mode.to_owned() }
    }

    /// # Errors
    /// When one of them cannot be such.
    pub fn validate(&self) -> Result<(), BadValue> {
        names::user(&self.owner, true)?;
        names::user(&self.group, true)?;
        names::mode(&self.mode)
    }

    /// As `stat` prints it, with wild spots for what is not managed.
    pub(super) fn pattern(&self) -> String {
        let or_wild = |text: &str| if text.is_empty() { WILD.to_string() } else { text.to_owned() };
        let mode = self.mode.trim_start_matches('0');
        let mode = if self.mode.is_empty() || !mode.is_empty() { mode } else { "0" };
        format!("{} {} {}", or_wild(mode), or_wild(&self.owner), or_wild(&self.group))
    }

    /// What differs from an answer of `see_path`, for people.
    pub(super) fn differences(&self, answer: &str) -> Vec<String> {
        let mut found = Vec::new();
        let words: Vec<&str> = answer.lines().next().unwrap_or("").split(' ').collect();
        let mode = self.mode.trim_start_matches('0');
        for (name, wanted, at) in
            [("mode", mode, 1), ("owner", self.owner.as_str(), 2), ("group", self.group.as_str(), 3)]
        {
            if let Some(is) = words.get(at)
                && !wanted.is_empty()
                && wanted != *is
            {
                found.push(format!("{name} {is} -> {wanted}"));
            }
        }
        found
    }
}

/// What shall be in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// These bytes.
    Bytes(Vec<u8>),
    /// This text, never shown and kept in no script; `salt` is the node's machine-id.
    Secret {
        /// The text.
        text: Secret,
        /// Something of the node, so that equal secrets have different digests on different nodes.
        salt: String,
    },
    /// Whatever is there; an empty file when there is none.
    Any,
}

/// A file that shall be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    path: String,
    content: Content,
    ownership: Ownership,
    restart: Vec<Reaction>,
}

impl File {
    /// # Errors
    /// When path or ownership cannot be such, or a secret holds a NUL byte.
    pub fn new(path: &str, content: Content, ownership: Ownership) -> Result<Self, BadValue> {
        names::path(path)?;
        ownership.validate()?;
        if let Content::Secret { text, .. } = &content
            && text.reveal().contains('\0')
        {
            return Err(names::bad("secret content of", path, "text without NUL"));
        }
        Ok(File { path: path.to_owned(), content, ownership, restart: Vec::new() })
    }

    /// What to do once when it changed.
    #[must_use]
    pub fn triggering(mut self, reactions: Vec<Reaction>) -> Self {
        self.restart = reactions;
        self
    }
}

/// The question about a path; `digest` is `-` when the content does not matter.
pub(super) fn path_question(path: &str, digest: &str) -> Question {
    Question { kind: "path".to_owned(), key: path.to_owned(), args: vec![digest.to_owned()] }
}

/// The content that came with a differing answer, when it is text.
pub(crate) fn content_of(answer: &str) -> Option<String> {
    let (_, body) = answer.split_once('\n')?;
    let body: String = body.split('\n').collect();
    String::from_utf8(base64::engine::general_purpose::STANDARD.decode(body).ok()?).ok()
}

impl Op for File {
    fn id(&self) -> String {
        format!("file {}", self.path)
    }

    fn checks(&self) -> Vec<Check> {
        let kept = self.ownership.pattern();
        match &self.content {
            Content::Bytes(bytes) => {
                let digest = sha256_hex(bytes);
                vec![Check {
                    question: path_question(&self.path, &digest),
                    wanted: vec![Pattern(format!("file {kept} {digest}"))],
                }]
            }
            Content::Any => vec![Check {
                question: path_question(&self.path, "-"),
                wanted: vec![Pattern(format!("file {kept} -"))],
            }],
            Content::Secret { text, salt } => {
                let digest = sha256_hex(format!("{salt}\n{}", text.reveal()).as_bytes());
                let question = Question { kind: "secret".to_owned(), key: self.path.clone(), args: vec![salt.clone()] };
                vec![
                    Check { question: path_question(&self.path, "-"), wanted: vec![Pattern(format!("file {kept} -"))] },
                    Check { question, wanted: vec![Pattern(digest)] },
                ]
            }
        }
    }

    fn change(&self, seen: &Seen) -> Change {
        let answer = seen.answer("path", &self.path).unwrap_or("absent");
        let mut parts = Vec::new();
        let mut lines = Vec::new();
        match &self.content {
            _ if !answer.starts_with("file ") && answer != "absent" => {
                parts.push(format!("is now: {}", answer.lines().next().unwrap_or("")));
            }
            Content::Bytes(bytes) if !answer.lines().next().unwrap_or("").ends_with(&sha256_hex(bytes)) => {
                parts.push(if answer == "absent" { "new".to_owned() } else { "content".to_owned() });
                let old = if answer == "absent" { Some(String::new()) } else { content_of(answer) };
                match (old, std::str::from_utf8(bytes)) {
                    (Some(old), Ok(new)) if !new.contains('\0') && !old.contains('\0') => {
                        lines = diff::lines(&old, new)
                    }
                    _ => lines.push(format!(" (not shown: not text, or over 64 KiB; new: {} bytes)", bytes.len())),
                }
            }
            Content::Secret { .. } => {
                let [_, check] = self.checks().try_into().unwrap_or_else(|_| [empty_check(), empty_check()]);
                let is = seen.answer("secret", &self.path).unwrap_or("");
                if !check.wanted.iter().any(|pattern| pattern.matches(is)) {
                    parts.push(if answer == "absent" { "new".to_owned() } else { "content".to_owned() });
                    lines.push(" content: secret".to_owned());
                }
            }
            _ if answer == "absent" => parts.push("new".to_owned()),
            _ => {}
        }
        parts.extend(self.ownership.differences(answer));
        Change { title: format!("file {}: {}", self.path, parts.join(", ")), diff: lines }
    }

    fn mend(&self) -> Shell {
        let Ownership { owner, group, mode } = &self.ownership;
        match &self.content {
            Content::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) if !text.contains('\0') => call("mend_file", &[&self.path, owner, group, mode, "text", text]),
                _ => {
                    let text = base64::engine::general_purpose::STANDARD.encode(bytes);
                    call("mend_file", &[&self.path, owner, group, mode, "base64", &text])
                }
            },
            Content::Any => call("mend_file", &[&self.path, owner, group, mode, "keep", ""]),
            Content::Secret { text, .. } => {
                let mut arguments: Vec<Argument> =
                    [&self.path, owner, group, mode].into_iter().map(|text| Argument::Plain(text)).collect();
                arguments.push(Argument::Plain("text"));
                arguments.push(Argument::Secret(text));
                call_with("mend_file", &self.id(), &arguments)
            }
        }
    }

    fn triggers(&self) -> Vec<Reaction> {
        self.restart.clone()
    }
}

fn empty_check() -> Check {
    Check { question: path_question("/", "-"), wanted: Vec::new() }
}

/// A file that shall not be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbsentFile {
    path: String,
    restart: Vec<Reaction>,
}

impl AbsentFile {
    /// # Errors
    /// When the path cannot be one.
    pub fn new(path: &str, restart: Vec<Reaction>) -> Result<Self, BadValue> {
        names::path(path)?;
        Ok(AbsentFile { path: path.to_owned(), restart })
    }
}

impl Op for AbsentFile {
    fn id(&self) -> String {
        format!("file {}", self.path)
    }

    fn checks(&self) -> Vec<Check> {
        vec![Check { question: path_question(&self.path, "-"), wanted: vec![Pattern("absent".to_owned())] }]
    }

    fn change(&self, _: &Seen) -> Change {
        Change { title: format!("file {}: remove", self.path), diff: Vec::new() }
    }

    fn mend(&self) -> Shell {
        call("mend_absent", &[&self.path])
    }

    fn triggers(&self) -> Vec<Reaction> {
        self.restart.clone()
    }
}
