//! Operations: the small idempotent things a node can have.
//!
//! One file each. An operation says which questions show its state, which answers mean "done", how the
//! difference reads for people, and the shell that mends it. It is pure: answers in, shell out;
//! it knows nothing of SSH, plans or screens. The shell functions it calls live in
//! `templates/ops/*.sh` and are shared by the probe and the phase script.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::shell::Shell;

pub mod block;
pub mod command;
pub mod diff;
pub mod directory;
pub mod file;
pub mod hosts;
pub mod keys;
pub mod limits;
pub mod line;
pub mod module;
pub mod names;
pub mod package;
pub mod public_key;
pub mod repository;
pub mod service;
pub mod ssh_key;
pub mod symlink;
pub mod sysctl;
pub mod user;
pub mod waits;

/// One question put to a node: the shell function `see_KIND` called with `key` and `args`.
///
/// The function takes its arguments in groups (key first, then a fixed number of arguments for its
/// kind), so that the probe asks all questions of a kind in one call and with few processes. For
/// each group it calls `say KIND KEY` once and then prints the answer, one or more lines.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Question {
    /// Names the shell function: `path` means `see_path`.
    pub kind: String,
    /// What is asked about: a path, a package name, a unit.
    pub key: String,
    /// Further arguments of the function; the same number for every question of a kind.
    pub args: Vec<String>,
}

impl Question {
    /// Whether the answer is another one with other arguments: a digest with a salt. (Elsewhere they only say
    /// whether the present content comes along.)
    pub fn salted(&self) -> bool {
        self.kind == "secret"
    }
}

/// What a node answered: (kind, key) to the lines printed, without the final newline.
///
/// A question that is missing here was not answered (not asked, or not readable).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen(pub BTreeMap<String, BTreeMap<String, String>>);

impl Seen {
    /// The answer to a question, `None` when it was not asked or could not be read.
    pub fn answer(&self, kind: &str, key: &str) -> Option<&str> {
        self.0.get(kind)?.get(key).map(String::as_str)
    }

    /// Records an answer.
    pub fn insert(&mut self, kind: &str, key: &str, answer: String) {
        self.0.entry(kind.to_owned()).or_default().insert(key.to_owned(), answer);
    }
}

/// An answer that means "as wanted": literal text in which [`WILD`] stands for anything.
///
/// The same pattern is used here and, rendered as a `case` pattern, in the phase script, so controller and
/// node cannot disagree on what "done" is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(pub String);

/// The character in a [`Pattern`] that stands for any text, also none; never part of an answer.
pub const WILD: char = '\u{1}';

/// A question and the answers that mean "done" (any one of them).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What is asked.
    pub question: Question,
    /// Any of these answers will do.
    pub wanted: Vec<Pattern>,
}

/// One difference between what is and what is wanted, for people and for the plan file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Change {
    /// One line: `file /etc/motd: content`.
    pub title: String,
    /// Lines of a diff, each starting with `-`, `+` or a space; secrets shown as `content: secret`.
    pub diff: Vec<String>,
}

/// What comparing an operation with the answers gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// As wanted.
    None,
    /// Something to do.
    Change(Change),
    /// Cannot be known before something else in this run has happened; says what.
    Later(String),
    /// The answer is missing or makes no sense: says what could not be read.
    Unreadable(String),
}

/// Something done once at the end of a phase because an operation changed something.
///
/// Recorded on the node before the change is made, so that a run that dies in between is caught up
/// by the next one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Reaction {
    /// Restart a unit if it is running or meant to be.
    Restart(String),
    /// Apply /etc/sysctl.d.
    ReloadSysctl,
}

impl std::fmt::Display for Reaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Reaction::Restart(unit) => write!(f, "restart {unit}"),
            Reaction::ReloadSysctl => f.write_str("apply sysctl settings"),
        }
    }
}

/// One idempotent thing a node can have.
pub trait Op: Send + Sync {
    /// Unique on the node and stable between runs: kind and key, like `file /etc/motd`.
    fn id(&self) -> String;

    /// The questions that show its state, and the answers that mean "done".
    fn checks(&self) -> Vec<Check>;

    /// The difference for people; called only when a check does not hold.
    fn change(&self, seen: &Seen) -> Change;

    /// The shell that mends it; run with `set -e`, standard input closed, output to the run's log.
    ///
    /// It must be right from any state, also one half mended.
    fn mend(&self) -> Shell;

    /// What to do once at the end of the phase when this changed.
    fn triggers(&self) -> Vec<Reaction> {
        Vec::new()
    }

    /// What this waits for, when its wish is not complete before another node has acted.
    fn waits_for(&self) -> Option<String> {
        None
    }

    /// A question whose answer after the phase is sent to the controller (a public key).
    fn yields(&self) -> Option<Question> {
        None
    }

    /// Seconds the mend may take before it is killed with all it started.
    fn deadline(&self) -> u32 {
        120
    }

    /// Whether the arguments of its checks hold secrets, so that they must not stand in a kept script.
    fn hides(&self) -> bool {
        false
    }

    /// Compares with what the node answered.
    fn differ(&self, seen: &Seen) -> Difference {
        if let Some(reason) = self.waits_for() {
            return Difference::Later(reason);
        }
        let mut changed = false;
        for check in self.checks() {
            let Some(answer) = seen.answer(&check.question.kind, &check.question.key) else {
                return Difference::Unreadable(format!(
                    "no answer about {} {}",
                    check.question.kind, check.question.key
                ));
            };
            changed |= !check.wanted.iter().any(|pattern| pattern.matches(answer));
        }
        if changed { Difference::Change(self.change(seen)) } else { Difference::None }
    }
}

impl Pattern {
    /// Whether an answer is as wanted.
    pub fn matches(&self, answer: &str) -> bool {
        let mut parts = self.0.split(WILD);
        let Some(first) = parts.next() else { return false };
        let Some(mut rest) = answer.strip_prefix(first) else { return false };
        let middle: Vec<&str> = parts.collect();
        let Some((last, middle)) = middle.split_last() else { return rest.is_empty() };
        for part in middle {
            let Some((_, after)) = rest.split_once(part) else { return false };
            rest = after;
        }
        rest.ends_with(last)
    }
}
