//! Packages (apt): all wishes in one operation, so that the package manager runs once.
//!
//! Recommended packages follow the distribution's default. Configuration files of the admin are kept.

use super::names::{self, BadValue};
use super::{Change, Check, Op, Pattern, Question, Seen, WILD};
use crate::shell::{Shell, call};

/// One package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageWish {
    /// Its name, perhaps with `:arch`.
    pub name: String,
    /// Exact version, or a prefix ending in `*`.
    pub version: Option<String>,
    /// Kept from moving; `None` is not managed.
    pub hold: Option<bool>,
    /// Present or absent.
    pub present: bool,
}

/// All packages of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packages {
    step: String,
    wishes: Vec<PackageWish>,
}

impl Packages {
    /// `step` keeps the operations of two steps apart.
    ///
    /// # Errors
    /// When a name or version cannot be one.
    pub fn new(step: &str, wishes: Vec<PackageWish>) -> Result<Self, BadValue> {
        for wish in &wishes {
            let (name, arch) = wish.name.split_once(':').unwrap_or((&wish.name, "all"));
            let good = name.len() >= 2
                && name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
                && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "+.-".contains(c))
                // apt reads what ends so as "remove".
                && !wish.name.ends_with('-')
                && !arch.is_empty()
                && arch.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
            if !good {
                return Err(names::bad(
                    "package",
                    &wish.name,
                    "lower case letters, digits, `+`, `-`, `.`, and no `-` at its end",
                ));
            }
            if let Some(version) = &wish.version {
                let exact = version.strip_suffix('*').unwrap_or(version);
                if exact.is_empty() || !exact.chars().all(|c| c.is_ascii_alphanumeric() || ".+-:~".contains(c)) {
                    return Err(names::bad("version", version, "a version, or its beginning and `*`"));
                }
            }
        }
        Ok(Packages { step: step.to_owned(), wishes })
    }

    fn wanted(wish: &PackageWish) -> Vec<Pattern> {
        if !wish.present {
            return vec![Pattern("absent".to_owned())];
        }
        let any = WILD.to_string();
        let version = match &wish.version {
            Some(version) => version.replace('*', &any),
            None => any.clone(),
        };
        let hold = wish.hold.map_or(any.as_str(), |hold| if hold { "hold" } else { "install" });
        vec![Pattern(format!("installed {version} {hold}"))]
    }
}

impl Op for Packages {
    fn id(&self) -> String {
        if self.step == "packages" { "packages".to_owned() } else { format!("packages for {}", self.step) }
    }

    fn checks(&self) -> Vec<Check> {
        let question = |name: &str| Question { kind: "package".to_owned(), key: name.to_owned(), args: Vec::new() };
        self.wishes.iter().map(|wish| Check { question: question(&wish.name), wanted: Self::wanted(wish) }).collect()
    }

    fn change(&self, seen: &Seen) -> Change {
        let mut diff = Vec::new();
        for wish in &self.wishes {
            let is = seen.answer("package", &wish.name).unwrap_or("absent");
            if Self::wanted(wish).iter().any(|pattern| pattern.matches(is)) {
                continue;
            }
            if is != "absent" {
                diff.push(format!("-{} {is}", wish.name));
            }
            if wish.present {
                let version = wish.version.as_deref().unwrap_or("installed");
                let hold = match wish.hold {
                    Some(true) => ", held",
                    Some(false) => ", not held",
                    None => "",
                };
                diff.push(format!("+{} {version}{hold}", wish.name));
            }
        }
        let count = diff
            .iter()
            .map(|line| line.split(' ').next().unwrap_or("").get(1..))
            .collect::<std::collections::BTreeSet<_>>()
            .len();
        Change { title: format!("{}: {count}", self.id()), diff }
    }

    fn mend(&self) -> Shell {
        let mut arguments: Vec<&str> = Vec::new();
        for wish in &self.wishes {
            arguments.push(&wish.name);
            arguments.push(wish.version.as_deref().unwrap_or(""));
            arguments.push(if wish.present { "present" } else { "absent" });
            arguments.push(wish.hold.map_or("-", |hold| if hold { "hold" } else { "free" }));
        }
        call("mend_package", &arguments)
    }

    fn deadline(&self) -> u32 {
        1800
    }
}
