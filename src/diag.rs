//! What is wrong and where: findings, places and exit codes.
//!
//! Every room of the program answers with these types; how they look on a screen or as JSON
//! is decided in `ui`. This module knows nothing of manifests, nodes or terminals.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A spot in a text file the user wrote.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// The file as the user named it, `-` for standard input.
    pub file: Arc<str>,
    /// Line, counted from 1.
    pub line: u32,
    /// Column in characters, counted from 1.
    pub column: u32,
    /// First byte of the spot in the file.
    #[serde(skip)]
    pub start: usize,
    /// One past the last byte of the spot.
    #[serde(skip)]
    pub end: usize,
}

/// A value together with where it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed<T> {
    /// The value.
    pub value: T,
    /// Where it stands.
    pub place: Place,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It cannot work, or cannot be read.
    Error,
    /// It may not work.
    Warning,
    /// Worth knowing.
    Note,
}

/// What kind of statement a finding makes; see the class table in ARCHITECTURE.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// The manifest, a facts file, a lock or an overlay is itself wrong.
    Input,
    /// Whether the wanted things work together.
    Fit,
    /// End of life, security floors.
    Life,
    /// Not declared, so not judged.
    Unjudged,
}

/// Where a fact comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Source {
    /// Title of the page.
    pub title: String,
    /// Its address.
    pub url: String,
}

/// A broken or doubtful requirement: what, where, why and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Stable code, `P` and four digits.
    pub code: String,
    /// How bad.
    pub severity: Severity,
    /// Which kind of statement.
    pub class: Class,
    /// What is wrong, one sentence without a period.
    pub title: String,
    /// The nodes it concerns, as folded nodesets; empty for the whole cluster.
    pub nodes: Vec<String>,
    /// Place in the manifest, if it has one.
    pub at: Option<Place>,
    /// The chain of reasons.
    pub because: Vec<String>,
    /// One to three fixes, least disruptive first.
    pub fix: Vec<String>,
    /// Sources of the facts used.
    pub sources: Vec<Source>,
}

impl Finding {
    /// An error of class `input` at a place.
    pub fn input(code: &str, title: impl Into<String>, at: Option<Place>) -> Self {
        Finding {
            code: code.to_owned(),
            severity: Severity::Error,
            class: Class::Input,
            title: title.into(),
            nodes: Vec::new(),
            at,
            because: Vec::new(),
            fix: Vec::new(),
            sources: Vec::new(),
        }
    }

    /// Adds a reason.
    #[must_use]
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.because.push(reason.into());
        self
    }

    /// Adds a remedy.
    #[must_use]
    pub fn fix(mut self, remedy: impl Into<String>) -> Self {
        self.fix.push(remedy.into());
        self
    }
}

/// The exit codes of the program; [`ExitCode::worst`] picks the one that wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExitCode {
    /// 0: done, nothing wrong.
    Done,
    /// 4: changes are pending.
    Pending,
    /// 5: a node could not be reached, trusted or become root, and was left out.
    LeftOut,
    /// 1: a node failed while changing.
    Failed,
    /// 3: the wish cannot work.
    Incompatible,
    /// 2: usage or manifest error.
    Usage,
    /// 130: interrupted.
    Interrupted,
}

impl ExitCode {
    /// The number the process exits with.
    pub fn number(self) -> u8 {
        match self {
            ExitCode::Done => 0,
            ExitCode::Failed => 1,
            ExitCode::Usage => 2,
            ExitCode::Incompatible => 3,
            ExitCode::Pending => 4,
            ExitCode::LeftOut => 5,
            ExitCode::Interrupted => 130,
        }
    }

    /// Of two codes the one that wins: 130, 2, 3, 1, 5, 4, 0 in this order.
    #[must_use]
    pub fn worst(self, other: Self) -> Self {
        let rank = |code: Self| match code {
            ExitCode::Interrupted => 6,
            ExitCode::Usage => 5,
            ExitCode::Incompatible => 4,
            ExitCode::Failed => 3,
            ExitCode::LeftOut => 2,
            ExitCode::Pending => 1,
            ExitCode::Done => 0,
        };
        if rank(other) > rank(self) { other } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::ExitCode::*;

    #[test]
    fn interrupted_wins_and_done_loses() {
        let order = [Interrupted, Usage, Incompatible, Failed, LeftOut, Pending, Done];
        for (i, a) in order.iter().enumerate() {
            for b in &order[i..] {
                assert_eq!(a.worst(*b), *a);
                assert_eq!(b.worst(*a), *a);
            }
        }
    }
}
