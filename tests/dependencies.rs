//! What is compiled into the program: licences, sources, duplicates, crypto libraries.
//!
//! Asked of `cargo metadata --locked` for the platform the program is for, so that nothing is fetched that a build
//! has not fetched already.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also outside its functions marked so")]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// Licences that may be in the program.
const LICENCES: &[&str] = &[
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "Unicode-3.0",
    "Unlicense",
    "CC0-1.0",
    "0BSD",
    "BSL-1.0",
];

/// Packages that are there in more than one version, and why.
const DUPLICATES: &[(&str, &str)] = &[("syn", "derive macros are on their way from 2 to 3; only at build time")];

/// The one crypto library, and those that would be a second one.
const CRYPTO: &str = "aws-lc-rs";
const OTHER_CRYPTO: &[&str] = &[
    "ring",
    "openssl",
    "openssl-sys",
    "boring",
    "boring-sys",
    "mbedtls",
    "native-tls",
    "libsodium-sys",
    "wolfssl-sys",
];

#[test]
fn dependencies_are_as_agreed() {
    let metadata = metadata();
    let used: BTreeSet<&str> =
        metadata["resolve"]["nodes"].as_array().unwrap().iter().map(|node| node["id"].as_str().unwrap()).collect();
    let packages: Vec<&Value> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|package| used.contains(package["id"].as_str().unwrap()))
        .collect();
    assert!(packages.len() > 50, "the answer of cargo metadata was read wrongly");

    let mut wrong = Vec::new();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in &packages {
        let name = package["name"].as_str().unwrap();
        let version = package["version"].as_str().unwrap();
        versions.entry(name).or_default().insert(version);
        match package["license"].as_str() {
            Some(licence) if allowed(licence) => {}
            licence => wrong.push(format!("{name} {version}: licence {licence:?} is not in the list")),
        }
        let own = name == env!("CARGO_PKG_NAME");
        match package["source"].as_str() {
            None if own => {}
            Some(source) if source.starts_with("registry+") => {}
            source => wrong.push(format!("{name} {version}: comes from {source:?}, not from a registry")),
        }
        if OTHER_CRYPTO.contains(&name) {
            wrong.push(format!("{name} {version}: a second crypto library beside {CRYPTO}"));
        }
    }
    for (name, versions) in &versions {
        let known = DUPLICATES.iter().any(|(known, _)| known == name);
        if versions.len() > 1 && !known {
            wrong.push(format!("{name}: more than one version, {versions:?}"));
        }
        if versions.len() == 1 && known {
            wrong.push(format!("{name}: no longer there twice, take it off the list"));
        }
    }
    if versions.get(CRYPTO).is_none_or(|versions| versions.len() != 1) {
        wrong.push(format!("{CRYPTO} must be there once"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--locked", "--format-version", "1", "--filter-platform"])
        .arg(concat!("x86_64", "-unknown-linux-gnu"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Whether a licence expression can be met with the list alone. What cannot be read is not allowed.
fn allowed(expression: &str) -> bool {
    // An old way to write OR.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let met = any(&words, &mut at);
    met == Some(true) && at == words.len()
}

/// `a OR b`; OR binds less than AND.
fn any(words: &[&str], at: &mut usize) -> Option<bool> {
    let mut met = all(words, at)?;
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        met |= all(words, at)?;
    }
    Some(met)
}

/// `a AND b`.
fn all(words: &[&str], at: &mut usize) -> Option<bool> {
    let mut met = one(words, at)?;
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        met &= one(words, at)?;
    }
    Some(met)
}

/// A licence, with its exception, or an expression in parentheses.
fn one(words: &[&str], at: &mut usize) -> Option<bool> {
    let word = *words.get(*at)?;
    *at += 1;
    match word {
        "(" => {
            let met = any(words, at)?;
            let closed = words.get(*at) == Some(&")");
            *at += 1;
            closed.then_some(met)
        }
        ")" | "OR" | "AND" | "WITH" => None,
        licence if words.get(*at) == Some(&"WITH") => {
            let exception = *words.get(*at + 1)?;
            *at += 2;
            Some(LICENCES.contains(&format!("{licence} WITH {exception}").as_str()))
        }
        licence => Some(LICENCES.contains(&licence)),
    }
}

#[test]
fn licence_expressions() {
    for expression in [
        "MIT",
        "MIT/Apache-2.0",
        "GPL-3.0 OR MIT",
        "(MIT OR GPL-3.0) AND Unicode-3.0",
        "Apache-2.0 WITH LLVM-exception OR GPL-2.0",
        "MIT OR GPL-2.0 AND GPL-3.0",
    ] {
        assert!(allowed(expression), "{expression}");
    }
    for expression in [
        "",
        "GPL-3.0",
        "MIT AND GPL-3.0",
        "(MIT OR ISC) AND GPL-3.0",
        "MIT AND GPL-2.0 OR GPL-3.0",
        "Apache-2.0 WITH other-exception",
        "(MIT",
        "MIT)",
        "MIT MIT",
        "MIT OR",
    ] {
        assert!(!allowed(expression), "{expression}");
    }
}
