//! Users and groups.

use super::names::{self, BadValue};
use super::{Change, Check, Op, Pattern, Question, Seen, Shell, WILD};
use crate::render::call;

/// A user without a password, with a group of its own name; of one that is there only the shell is changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    name: String,
    shell: String,
    home: String,
    system: bool,
}

impl User {
    /// # Errors
    /// When a value cannot be such.
    pub fn new(name: &str, shell: &str, home: &str, system: bool) -> Result<Self, BadValue> {
        names::user(name, false)?;
        names::path(shell)?;
        names::path(home)?;
        if shell.contains(':') || home.contains(':') {
            return Err(names::bad("path", home, "no colon"));
        }
        Ok(User { name: name.to_owned(), shell: shell.to_owned(), home: home.to_owned(), system })
    }
}

impl Op for User {
    fn id(&self) -> String {
        format!("user {}", self.name)
    }

    fn checks(&self) -> Vec<Check> {
        let question = Question { kind: "user".to_owned(), key: self.name.clone(), args: Vec::new() };
        vec![Check { question, wanted: vec![Pattern(format!("{WILD} {}", self.shell))] }]
    }

    fn change(&self, seen: &Seen) -> Change {
        let is = seen.answer("user", &self.name).unwrap_or("absent");
        let what = if is == "absent" {
            "new".to_owned()
        } else {
            format!("shell {} -> {}", is.rsplit(' ').next().unwrap_or(""), self.shell)
        };
        Change { title: format!("user {}: {what}", self.name), diff: Vec::new() }
    }

    fn mend(&self) -> Shell {
        call("mend_user", &[&self.name, &self.shell, &self.home, if self.system { "system" } else { "login" }])
    }
}

/// A group that shall be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    name: String,
    system: bool,
}

impl Group {
    /// # Errors
    /// When the name is none.
    pub fn new(name: &str, system: bool) -> Result<Self, BadValue> {
        names::user(name, false)?;
        Ok(Group { name: name.to_owned(), system })
    }
}

impl Op for Group {
    fn id(&self) -> String {
        format!("group {}", self.name)
    }

    fn checks(&self) -> Vec<Check> {
        let question = Question { kind: "group".to_owned(), key: self.name.clone(), args: Vec::new() };
        let wanted = ('0'..='9').map(|digit| Pattern(format!("{digit}{WILD}"))).collect();
        vec![Check { question, wanted }]
    }

    fn change(&self, _: &Seen) -> Change {
        Change { title: format!("group {}: new", self.name), diff: Vec::new() }
    }

    fn mend(&self) -> Shell {
        call("mend_group", &[&self.name, if self.system { "system" } else { "login" }])
    }
}
