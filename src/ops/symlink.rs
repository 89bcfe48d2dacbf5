//! A symbolic link with its target; a file or directory in its place is never replaced.

use super::file::path_question;
use super::names::{self, BadValue};
use super::{Change, Check, Op, Pattern, Seen};
use crate::shell::{Shell, call};

/// A link that shall be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symlink {
    path: String,
    target: String,
}

impl Symlink {
    /// # Errors
    /// When path or target cannot be such.
    pub fn new(path: &str, target: &str) -> Result<Self, BadValue> {
        names::path(path)?;
        if target.is_empty() || target.contains(char::is_control) {
            return Err(names::bad("link target", target, "a path without control characters"));
        }
        Ok(Symlink { path: path.to_owned(), target: target.to_owned() })
    }
}

impl Op for Symlink {
    fn id(&self) -> String {
        format!("symlink {}", self.path)
    }

    fn checks(&self) -> Vec<Check> {
        let wanted = vec![Pattern(format!("link {}", self.target))];
        vec![Check { question: path_question(&self.path, "-"), wanted }]
    }

    fn change(&self, seen: &Seen) -> Change {
        let is = seen.answer("path", &self.path).unwrap_or("absent").lines().next().unwrap_or("");
        Change { title: format!("symlink {}: {is} -> {}", self.path, self.target), diff: Vec::new() }
    }

    fn mend(&self) -> Shell {
        call("mend_symlink", &[&self.path, &self.target])
    }
}
