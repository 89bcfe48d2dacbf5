//! The cluster in `/etc/hosts`: a block with all nodes, and the node's own name off 127.0.1.1.

use super::block::Block;
use super::file::Ownership;
use super::keys::host_word;
use super::names::{self, BadValue};
use super::{Change, Check, Op, Pattern, Question, Seen};
use crate::shell::{Shell, call};

/// The block `cluster` with `ADDRESS NAME...` for each node.
///
/// # Errors
/// When a name or address cannot stand there.
pub fn hosts_block(path: &str, nodes: &[(String, Vec<String>)]) -> Result<Block, BadValue> {
    let mut lines = Vec::new();
    for (address, names) in nodes {
        host_word(address)?;
        for name in names {
            host_word(name)?;
        }
        lines.push(format!("{address} {}", names.join(" ")));
    }
    Block::new(path, "cluster", lines, Ownership::new("root", "root", "0644"))
}

/// The node's own name is on no line for 127.0.1.1, where peers' software would resolve it to loopback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnName {
    name: String,
    path: String,
}

impl OwnName {
    /// # Errors
    /// When it is no host name.
    pub fn new(name: &str, path: &str) -> Result<Self, BadValue> {
        names::path(path)?;
        host_word(name)?;
        if !name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)) {
            return Err(names::bad("host name", name, "letters, digits, `.`, `_`, `-`"));
        }
        Ok(OwnName { name: name.to_owned(), path: path.to_owned() })
    }
}

impl Op for OwnName {
    fn id(&self) -> String {
        format!("own name in {}", self.path)
    }

    fn checks(&self) -> Vec<Check> {
        let question = Question { kind: "hostname".to_owned(), key: self.name.clone(), args: vec![self.path.clone()] };
        vec![Check { question, wanted: vec![Pattern("free".to_owned())] }]
    }

    fn change(&self, _: &Seen) -> Change {
        Change { title: format!("file {}: {} off 127.0.1.1", self.path, self.name), diff: Vec::new() }
    }

    fn mend(&self) -> Shell {
        call("mend_hostname", &[&self.name, &self.path])
    }
}
