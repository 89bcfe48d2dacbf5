//! A block between marker lines in a file that others write too; everything else stays byte for byte.

use super::file::{Ownership, content_of};
use super::names::{self, BadValue};
use super::{Change, Check, Op, Pattern, Question, Seen, diff};
use crate::shell::{Shell, call, sha256_hex};

/// The block `# BEGIN provision NAME` ... `# END provision NAME`; without lines it shall be gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    path: String,
    name: String,
    lines: Vec<String>,
    ownership: Ownership,
}

impl Block {
    /// `ownership` is for a file that is not there yet; the file's own is kept.
    ///
    /// # Errors
    /// When a value cannot be used.
    pub fn new(path: &str, name: &str, lines: Vec<String>, ownership: Ownership) -> Result<Self, BadValue> {
        names::path(path)?;
        names::word(name)?;
        ownership.validate()?;
        for line in &lines {
            names::line(line)?;
            if line.starts_with("# BEGIN provision ") || line.starts_with("# END provision ") {
                return Err(names::bad("line", line, "no marker of a block"));
            }
        }
        Ok(Block { path: path.to_owned(), name: name.to_owned(), lines, ownership })
    }

    fn key(&self) -> String {
        format!("{} {}", self.path, self.name)
    }

    /// With its markers, without the last newline; empty when it shall be gone.
    fn text(&self) -> String {
        if self.lines.is_empty() {
            return String::new();
        }
        format!("# BEGIN provision {0}\n{1}\n# END provision {0}", self.name, self.lines.join("\n"))
    }
}

impl Op for Block {
    fn id(&self) -> String {
        format!("block {}", self.key())
    }

    fn checks(&self) -> Vec<Check> {
        let text = self.text();
        let digest = if text.is_empty() { "absent".to_owned() } else { sha256_hex(format!("{text}\n").as_bytes()) };
        let args = vec![self.path.clone(), self.name.clone(), digest.clone()];
        let question = Question { kind: "block".to_owned(), key: self.key(), args };
        vec![Check { question, wanted: vec![Pattern(digest)] }]
    }

    fn change(&self, seen: &Seen) -> Change {
        let answer = seen.answer("block", &self.key()).unwrap_or("absent");
        let old = content_of(answer).unwrap_or_default();
        let new = self.text();
        let new = if new.is_empty() { new } else { new + "\n" };
        Change { title: format!("file {}: block {}", self.path, self.name), diff: diff::lines(&old, &new) }
    }

    fn mend(&self) -> Shell {
        let Ownership { owner, group, mode } = &self.ownership;
        call("mend_block", &[&self.path, &self.name, owner, group, mode, &self.text()])
    }
}
