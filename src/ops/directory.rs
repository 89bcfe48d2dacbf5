//! A directory with owner, group and mode; missing ones above are made, owned by root.

use super::file::{Ownership, path_question};
use super::names::{self, BadValue};
use super::{Change, Check, Op, Pattern, Seen};
use crate::shell::{Shell, call};

/// A directory that shall be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory {
    path: String,
    ownership: Ownership,
}

impl Directory {
    /// # Errors
    /// When path or ownership cannot be such.
    pub fn new(path: &str, ownership: Ownership) -> Result<Self, BadValue> {
        names::path(path)?;
        ownership.validate()?;
        Ok(Directory { path: path.to_owned(), ownership })
    }
}

impl Op for Directory {
    fn id(&self) -> String {
        format!("directory {}", self.path)
    }

    fn checks(&self) -> Vec<Check> {
        let wanted = vec![Pattern(format!("directory {} -", self.ownership.pattern()))];
        vec![Check { question: path_question(&self.path, "-"), wanted }]
    }

    fn change(&self, seen: &Seen) -> Change {
        let answer = seen.answer("path", &self.path).unwrap_or("absent");
        let what = match answer {
            "absent" => "new".to_owned(),
            _ if answer.starts_with("directory ") => self.ownership.differences(answer).join(", "),
            _ => format!("is now: {answer}"),
        };
        Change { title: format!("directory {}: {what}", self.path), diff: Vec::new() }
    }

    fn mend(&self) -> Shell {
        let Ownership { owner, group, mode } = &self.ownership;
        call("mend_directory", &[&self.path, owner, group, if mode.is_empty() { "" } else { mode }])
    }
}
