//! One line of a file that others write too.

use super::file::Ownership;
use super::names::{self, BadValue};
use super::{Change, Check, Op, Pattern, Question, Seen};
use crate::shell::{Shell, call};

/// `line` is in the file (unless empty), and no other line begins with `prefix` (unless empty).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    path: String,
    line: String,
    prefix: String,
    ownership: Ownership,
}

impl Line {
    /// `ownership` is for a file that is not there yet.
    ///
    /// # Errors
    /// When a value cannot be used.
    pub fn new(path: &str, line: &str, prefix: &str, ownership: Ownership) -> Result<Self, BadValue> {
        names::path(path)?;
        names::line(line)?;
        names::line(prefix)?;
        ownership.validate()?;
        if line.is_empty() && prefix.is_empty() {
            return Err(names::bad("line", line, "a line, or a prefix of lines to remove"));
        }
        Ok(Line { path: path.to_owned(), line: line.to_owned(), prefix: prefix.to_owned(), ownership })
    }

    fn key(&self) -> String {
        let digest = crate::shell::sha256_hex(format!("{}\n{}", self.line, self.prefix).as_bytes());
        format!("{} {}", self.path, digest.get(..12).unwrap_or(""))
    }
}

impl Op for Line {
    fn id(&self) -> String {
        format!("line {}", self.key())
    }

    fn checks(&self) -> Vec<Check> {
        let wanted = if self.line.is_empty() {
            vec![Pattern("absent 0".to_owned()), Pattern("no file".to_owned())]
        } else {
            vec![Pattern("present 0".to_owned())]
        };
        let args = vec![self.path.clone(), self.line.clone(), self.prefix.clone()];
        vec![Check { question: Question { kind: "line".to_owned(), key: self.key(), args }, wanted }]
    }

    fn change(&self, seen: &Seen) -> Change {
        let is = seen.answer("line", &self.key()).unwrap_or("");
        let mut diff = Vec::new();
        if !is.ends_with(" 0") && is.contains(' ') && is != "no file" {
            diff.push(format!("-{}...", self.prefix));
        }
        if !self.line.is_empty() && !is.starts_with("present") {
            diff.push(format!("+{}", self.line.escape_debug()));
        }
        Change { title: format!("file {}: line", self.path), diff }
    }

    fn mend(&self) -> Shell {
        let Ownership { owner, group, mode } = &self.ownership;
        call("mend_line", &[&self.path, &self.line, &self.prefix, owner, group, mode])
    }
}
