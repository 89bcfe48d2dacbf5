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

/// A piece of a text that may hold references.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Literal text; `$${` in it has become `${`.
    Literal(String),
    /// A reference.
    Secret(Reference),
}

/// Something that looks like a reference and is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// As written, without anything that follows it.
    pub written: String,
    /// What is wrong with it.
    pub why: &'static str,
}

/// Cuts a text into literal pieces and references.
///
/// A reference is `${env:...}`, `${file:...}`, `${command:...}` or `${age:...}` and ends at the first `}`. Any other
/// `${` is literal text, so that shell variables need no escape; `$${` is a literal `${` in every case.
pub fn scan(text: &str) -> (Vec<Part>, Vec<Malformed>) {
    let (mut parts, mut malformed) = (Vec::new(), Vec::new());
    let mut literal = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, after) = rest.split_at(at);
        if let Some(escaped) = before.strip_suffix('$') {
            literal.push_str(escaped);
            literal.push_str("${");
            rest = after.get(2..).unwrap_or_default();
            continue;
        }
        literal.push_str(before);
        let inner = after.get(2..).unwrap_or_default();
        let Some((kind, _)) = inner.split_once(':').filter(|(kind, _)| KINDS.contains(kind)) else {
            literal.push_str("${");
            rest = inner;
            continue;
        };
        let Some((inside, after_it)) = inner.split_once('}') else {
            let written = after.lines().next().unwrap_or_default().to_owned();
            malformed.push(Malformed { written, why: "the closing } is missing" });
            return (parts, malformed);
        };
        let value = inside.get(kind.len() + 1..).unwrap_or_default();
        match reference(kind, value) {
            Ok(reference) => {
                if !literal.is_empty() {
                    parts.push(Part::Literal(std::mem::take(&mut literal)));
                }
                parts.push(Part::Secret(reference));
            }
            Err(why) => malformed.push(Malformed { written: format!("${{{inside}}}"), why }),
        }
        rest = after_it;
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        parts.push(Part::Literal(literal));
    }
    (parts, malformed)
}

const KINDS: [&str; 4] = ["env", "file", "command", "age"];

fn reference(kind: &str, value: &str) -> Result<Reference, &'static str> {
    if value.trim().is_empty() {
        return Err("nothing stands after the colon");
    }
    if value.starts_with(['-', '=', '+', '?']) {
        return Err("the shell would read this as a variable with a default; write $${ if that is meant");
    }
    match kind {
        "env" => {
            let word = value.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if word && !value.starts_with(|c: char| c.is_ascii_digit()) {
                Ok(Reference::Env(value.to_owned()))
            } else {
                Err("a variable of the environment has letters, digits and _ only")
            }
        }
        "file" => Ok(Reference::File(value.to_owned())),
        "command" => Ok(Reference::Command(value.to_owned())),
        _ => match value.split_once('#') {
            Some((file, key)) if !file.is_empty() && !key.is_empty() => Ok(Reference::Age(value.to_owned())),
            _ => Err("it is written ${age:FILE#KEY}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(text: &str) -> Part {
        Part::Literal(text.to_owned())
    }

    #[test]
    fn references_and_literals_are_told_apart() {
        let (parts, bad) = scan("a ${env:TOKEN} b ${HOME} $${env:X} ${file:a/b}");
        assert!(bad.is_empty());
        assert_eq!(
            parts,
            [
                literal("a "),
                Part::Secret(Reference::Env("TOKEN".into())),
                literal(" b ${HOME} ${env:X} "),
                Part::Secret(Reference::File("a/b".into())),
            ]
        );
    }

    #[test]
    fn malformed_references_say_why() {
        for text in
            ["${env:}", "${env:1A}", "${env:A B}", "${env:-x}", "${age:file}", "${age:#k}", "${file:x", "${command: }"]
        {
            let (_, bad) = scan(text);
            assert_eq!(bad.len(), 1, "{text}");
            assert!(bad[0].written.starts_with("${"), "{text}");
        }
    }

    #[test]
    fn a_reference_prints_as_it_was_written() {
        for text in ["${env:A}", "${file:/x y}", "${command:pass show a}", "${age:s.age#key}"] {
            let (parts, _) = scan(text);
            let [Part::Secret(reference)] = &parts[..] else { panic!("{parts:?}") };
            assert_eq!(reference.to_string(), text);
        }
    }

    #[test]
    fn secrets_never_print() {
        let secret = Secret::new("hunter2".to_owned());
        assert_eq!(format!("{secret} {secret:?}"), "*** ***");
    }
}
