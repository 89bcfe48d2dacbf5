//! Users and groups.

use super::names::{self, BadValue};
use super::{Change, Check, Op, Pattern, Question, Seen, WILD};
use crate::shell::{Shell, call};

/// A user that shall be there: made without a password, with a group of its own name; one that is there stays as it is.
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
        let wanted = ('0'..='9').map(|digit| Pattern(format!("{digit}{WILD}"))).collect();
        vec![Check { question, wanted }]
    }

    fn change(&self, _: &Seen) -> Change {
        Change { title: format!("user {}: new", self.name), diff: Vec::new() }
    }

    fn mend(&self) -> Shell {
        call("mend_user", &[&self.name, &self.shell, &self.home, if self.system { "system" } else { "login" }])
    }
}

/// What a node says of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// User id.
    pub uid: u32,
    /// All groups the user is in.
    pub groups: Vec<String>,
    /// Home directory; `None` when it is no path that we would work in.
    pub home: Option<String>,
}

/// Reads the answer of `see_user`: `UID GID GROUP,GROUP SHELL HOME`; `None` when there is no such user.
pub fn account(seen: &Seen, name: &str) -> Option<Account> {
    let mut words = seen.answer("user", name)?.splitn(5, ' ');
    let uid = words.next()?.parse().ok()?;
    let groups = words.nth(1)?.split(',').map(str::to_owned).collect();
    let home = words.nth(1).filter(|home| names::path(home).is_ok()).map(str::to_owned);
    Some(Account { uid, groups, home })
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
