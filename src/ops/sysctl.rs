//! Kernel settings: the file that survives a reboot, and the running value.

use super::file::{Content, File, Ownership};
use super::names::{self, BadValue};
use super::{Change, Check, Op, Pattern, Question, Seen};
use crate::shell::{Shell, call};

/// The file `/etc/sysctl.d/60-provision.conf`.
///
/// # Errors
/// When a key or value cannot stand there.
pub fn sysctl_file(items: &[(String, String)]) -> Result<File, BadValue> {
    let mut text = String::from("# Written by provision.\n");
    for (key, value) in items {
        let item = Sysctl::new(key, value)?;
        text.push_str(&format!("{} = {}\n", item.key, item.value));
    }
    File::new(
        "/etc/sysctl.d/60-provision.conf",
        Content::Bytes(text.into_bytes()),
        Ownership::new("root", "root", "0644"),
    )
}

/// A running value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sysctl {
    key: String,
    value: String,
}

impl Sysctl {
    /// Blanks in the value count as one space, as the kernel sees them.
    ///
    /// # Errors
    /// When key or value cannot be such.
    pub fn new(key: &str, value: &str) -> Result<Self, BadValue> {
        let good = key.starts_with(|c: char| c.is_ascii_lowercase())
            && !key.contains("..")
            && key.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c));
        if !good {
            return Err(names::bad("sysctl", key, "a key such as `net.core.somaxconn`"));
        }
        let joined = value.split_whitespace().collect::<Vec<_>>().join(" ");
        if joined.is_empty() || value.chars().any(|c| c.is_control() && c != '\t') || joined.contains(['*', '?', '[']) {
            return Err(names::bad("sysctl value", value, "one line"));
        }
        Ok(Sysctl { key: key.to_owned(), value: joined })
    }
}

impl Op for Sysctl {
    fn id(&self) -> String {
        format!("sysctl {}", self.key)
    }

    fn checks(&self) -> Vec<Check> {
        let question = Question { kind: "sysctl".to_owned(), key: self.key.clone(), args: Vec::new() };
        vec![Check { question, wanted: vec![Pattern(self.value.clone())] }]
    }

    fn change(&self, seen: &Seen) -> Change {
        let is = seen.answer("sysctl", &self.key).unwrap_or("").to_owned();
        Change { title: format!("sysctl {}: {is} -> {}", self.key, self.value), diff: Vec::new() }
    }

    fn mend(&self) -> Shell {
        call("mend_sysctl", &[&self.key, &self.value])
    }
}
