//! An operation whose wish is not complete before another node has acted.

use super::{Change, Check, Op, Question, Reaction, Seen};
use crate::shell::Shell;

/// Another operation, and what it waits for.
pub struct Waits<O> {
    inner: O,
    reason: Option<String>,
}

impl<O: Op> Waits<O> {
    /// Waits when there is a reason to.
    pub fn new(inner: O, reason: Option<String>) -> Self {
        Waits { inner, reason }
    }
}

impl<O: Op> Op for Waits<O> {
    fn id(&self) -> String {
        self.inner.id()
    }

    fn checks(&self) -> Vec<Check> {
        self.inner.checks()
    }

    fn change(&self, seen: &Seen) -> Change {
        self.inner.change(seen)
    }

    fn mend(&self) -> Shell {
        self.inner.mend()
    }

    fn triggers(&self) -> Vec<Reaction> {
        self.inner.triggers()
    }

    fn waits_for(&self) -> Option<String> {
        self.reason.clone()
    }

    fn yields(&self) -> Option<Question> {
        self.inner.yields()
    }

    fn deadline(&self) -> u32 {
        self.inner.deadline()
    }

    fn hides(&self) -> bool {
        self.inner.hides()
    }
}
