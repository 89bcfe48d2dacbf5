//! A command with a guard: `check` exits 0 when there is nothing to do, `apply` does it.

use super::names::{self, BadValue};
use super::{Change, Check, Op, Pattern, Question, Seen};
use crate::secret::Secret;
use crate::shell::{Argument, Shell, call_with};

/// A guarded command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    name: String,
    check: Secret,
    apply: Secret,
    user: String,
    hidden: bool,
}

impl Command {
    /// `hidden` when a secret stands in `check` or `apply`: then neither is shown or kept on the node.
    ///
    /// # Errors
    /// When a value cannot be such.
    pub fn new(name: &str, check: &str, apply: &str, user: &str, hidden: bool) -> Result<Self, BadValue> {
        names::line(name)?;
        names::user(user, false)?;
        for text in [check, apply] {
            if text.contains('\0') {
                return Err(names::bad("command", name, "shell without NUL"));
            }
        }
        Ok(Command {
            name: name.to_owned(),
            check: Secret::new(check.to_owned()),
            apply: Secret::new(apply.to_owned()),
            user: user.to_owned(),
            hidden,
        })
    }
}

impl Op for Command {
    fn id(&self) -> String {
        format!("command {}", self.name)
    }

    fn checks(&self) -> Vec<Check> {
        let args = vec![self.user.clone(), self.check.reveal().to_owned()];
        let question = Question { kind: "command".to_owned(), key: self.name.clone(), args };
        vec![Check { question, wanted: vec![Pattern("done".to_owned())] }]
    }

    fn change(&self, _: &Seen) -> Change {
        let diff = if self.hidden {
            vec![" command: secret".to_owned()]
        } else {
            self.apply.reveal().lines().take(40).map(|line| format!("+{}", line.escape_debug())).collect()
        };
        Change { title: format!("command {}: run as {}", self.name, self.user), diff }
    }

    fn mend(&self) -> Shell {
        let apply = if self.hidden { Argument::Secret(&self.apply) } else { Argument::Plain(self.apply.reveal()) };
        call_with("mend_command", &self.id(), &[Argument::Plain(&self.user), apply])
    }

    fn deadline(&self) -> u32 {
        1800
    }

    fn hides(&self) -> bool {
        self.hidden
    }
}
