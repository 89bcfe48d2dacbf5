//! A systemd unit: enabled at boot, running now.

use super::names::{self, BadValue};
use super::{Change, Check, Op, Pattern, Question, Seen};
use crate::shell::{Shell, call};

/// A unit; `None` is not managed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    unit: String,
    enabled: Option<bool>,
    running: Option<bool>,
}

/// Whether a text can be the name of a unit.
pub fn is_unit_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() < 256
        && text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "._:-@".contains(c))
}

/// The unit's full name: `.service` may be left out.
pub fn unit_name(name: &str) -> String {
    const KINDS: &[&str] = &["service", "socket", "timer", "target", "mount", "path", "slice"];
    match name.rsplit_once('.') {
        Some((_, kind)) if KINDS.contains(&kind) => name.to_owned(),
        _ => format!("{name}.service"),
    }
}

impl Service {
    /// # Errors
    /// When it is no unit name.
    pub fn new(name: &str, enabled: Option<bool>, running: Option<bool>) -> Result<Self, BadValue> {
        if !is_unit_name(name) {
            return Err(names::bad("service", name, "a systemd unit name"));
        }
        Ok(Service { unit: unit_name(name), enabled, running })
    }
}

impl Op for Service {
    fn id(&self) -> String {
        format!("service {}", self.unit)
    }

    fn checks(&self) -> Vec<Check> {
        let any = super::WILD.to_string();
        let enabled = match self.enabled {
            Some(true) => vec!["enabled", "static", "alias", "indirect", "generated"],
            Some(false) => vec!["disabled", "masked", "static", "-", "indirect", "generated"],
            None => vec![any.as_str()],
        };
        let active = match self.running {
            Some(true) => vec!["active", "reloading"],
            Some(false) => vec!["inactive", "failed"],
            None => vec![any.as_str()],
        };
        let load = if self.enabled == Some(true) || self.running == Some(true) { "loaded" } else { any.as_str() };
        let wanted = enabled
            .iter()
            .flat_map(|enabled| active.iter().map(move |active| Pattern(format!("{load} {enabled} {active}"))))
            .collect();
        let question = Question { kind: "service".to_owned(), key: self.unit.clone(), args: Vec::new() };
        vec![Check { question, wanted }]
    }

    fn change(&self, seen: &Seen) -> Change {
        let is = seen.answer("service", &self.unit).unwrap_or("");
        let mut words = is.split(' ').skip(1);
        // What `systemctl show` leaves empty is a unit that is not there yet.
        let mut word = || words.next().filter(|word| *word != "-").unwrap_or("not there");
        let (is_enabled, is_active) = (word(), word());
        let mut parts = Vec::new();
        match self.enabled {
            Some(true) if is_enabled != "enabled" => parts.push(format!("{is_enabled} -> enabled")),
            Some(false) if is_enabled == "enabled" => parts.push("enabled -> disabled".to_owned()),
            _ => {}
        }
        match self.running {
            Some(true) if is_active != "active" => parts.push(format!("{is_active} -> running")),
            Some(false) if is_active == "active" => parts.push("running -> stopped".to_owned()),
            _ => {}
        }
        Change { title: format!("service {}: {}", self.unit, parts.join(", ")), diff: Vec::new() }
    }

    fn mend(&self) -> Shell {
        let word = |wish: Option<bool>, yes, no| wish.map_or("-", |wish| if wish { yes } else { no });
        call(
            "mend_service",
            &[&self.unit, word(self.enabled, "enable", "disable"), word(self.running, "start", "stop")],
        )
    }
}
