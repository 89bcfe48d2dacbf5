//! Kernel modules: loaded now, and at boot by a file in `/etc/modules-load.d`.

use super::file::{Content, File, Ownership};
use super::names::{self, BadValue};
use super::{Change, Check, Op, Pattern, Question, Seen};
use crate::shell::{Shell, call};

/// The file `/etc/modules-load.d/provision.conf`.
///
/// # Errors
/// When a name is none.
pub fn modules_file(modules: &[String]) -> Result<File, BadValue> {
    let mut text = String::from("# Written by provision.\n");
    for module in modules {
        text.push_str(&Module::new(module)?.name);
        text.push('\n');
    }
    File::new(
        "/etc/modules-load.d/provision.conf",
        Content::Bytes(text.into_bytes()),
        Ownership::new("root", "root", "0644"),
    )
}

/// A module that shall be loaded; one that is built into the kernel counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    name: String,
}

impl Module {
    /// # Errors
    /// When the name is none.
    pub fn new(name: &str) -> Result<Self, BadValue> {
        let good = name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        if good {
            Ok(Module { name: name.to_owned() })
        } else {
            Err(names::bad("module", name, "letters, digits, `_`, `-`"))
        }
    }
}

impl Op for Module {
    fn id(&self) -> String {
        format!("module {}", self.name)
    }

    fn checks(&self) -> Vec<Check> {
        let question = Question { kind: "module".to_owned(), key: self.name.clone(), args: Vec::new() };
        vec![Check { question, wanted: vec![Pattern("loaded".to_owned()), Pattern("builtin".to_owned())] }]
    }

    fn change(&self, _: &Seen) -> Change {
        Change { title: format!("module {}: load", self.name), diff: Vec::new() }
    }

    fn mend(&self) -> Shell {
        call("mend_module", &[&self.name])
    }
}
