//! References to secrets, and a type that never prints what it holds.
//!
//! This module only knows how a reference is written. Resolving one needs the environment, files
//! or programs and is done in `cli`; the core gets the values in a [`Secrets`] map.

use std::collections::BTreeMap;
use std::fmt;

use zeroize::Zeroizing;

/// Where a secret is kept, as written between `${` and `}`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reference {
    /// `${env:NAME}`: a variable of the controller's environment.
    Env(String),
    /// `${file:PATH}`: a file, its last newline cut.
    File(String),
    /// `${command:...}`: what a shell command prints, its last newline cut.
    Command(String),
    /// `${age:FILE#KEY}`: a value of a file encrypted with age.
    Age(String),
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reference::Env(name) => write!(f, "${{env:{name}}}"),
            Reference::File(path) => write!(f, "${{file:{path}}}"),
            Reference::Command(command) => write!(f, "${{command:{command}}}"),
            Reference::Age(spot) => write!(f, "${{age:{spot}}}"),
        }
    }
}

/// A secret value: printed as `***`, wiped from memory when dropped.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Wraps a value.
    pub fn new(value: String) -> Self {
        Secret(Zeroizing::new(value))
    }

    /// The value itself, for the one place that must send it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// All secrets of a run, resolved once by `cli`.
pub type Secrets = BTreeMap<Reference, Secret>;
