//! An ed25519 key of a user, made on the node; only its public half ever leaves.

use super::names::{self, BadValue};
use super::public_key::PublicKey;
use super::{Change, Check, Op, Pattern, Question, Seen, WILD};
use crate::shell::{Shell, call};

/// `~USER/.ssh/NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshKey {
    user: String,
    name: String,
    comment: String,
}

impl SshKey {
    /// # Errors
    /// When a value cannot be such.
    pub fn new(user: &str, name: &str, comment: &str) -> Result<Self, BadValue> {
        names::user(user, false)?;
        names::user(name, false)?;
        names::line(comment)?;
        Ok(SshKey { user: user.to_owned(), name: name.to_owned(), comment: comment.to_owned() })
    }

    /// The question that gives the public key, for [`super::public_key::PublicKey::parse`].
    pub fn question(&self) -> Question {
        Question { kind: "sshkey".to_owned(), key: self.user.clone(), args: vec![self.name.clone()] }
    }
}

/// The public key that a node says its user has.
pub fn public_key_of(seen: &Seen, user: &str) -> Option<PublicKey> {
    PublicKey::parse(seen.answer("sshkey", user)?).ok()
}

impl Op for SshKey {
    fn id(&self) -> String {
        format!("ssh key {} of {}", self.name, self.user)
    }

    fn checks(&self) -> Vec<Check> {
        vec![Check { question: self.question(), wanted: vec![Pattern(format!("ssh-ed25519 AAAA{WILD}"))] }]
    }

    fn change(&self, _: &Seen) -> Change {
        Change { title: format!("ssh key {} of {}: make", self.name, self.user), diff: Vec::new() }
    }

    fn mend(&self) -> Shell {
        call("mend_sshkey", &[&self.user, &self.name, &self.comment])
    }

    fn yields(&self) -> Option<Question> {
        Some(self.question())
    }
}
