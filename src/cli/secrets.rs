//! Resolving secret references: the environment, files, programs. Values go into [`Secrets`] and nowhere else.

use std::path::{Path, PathBuf};

use crate::diag::Finding;
use crate::manifest::codes;
use crate::manifest::model::{Manifest, Piece, Text};
use crate::secret::{Reference, Secret, Secrets};

/// Resolves every reference of a manifest.
///
/// # Errors
/// A finding for each that cannot be resolved; none of them holds a value.
pub fn resolve(manifest: &Manifest, beside: &Path, allowed: &[PathBuf]) -> Result<Secrets, Vec<Finding>> {
    let mut secrets = Secrets::new();
    let mut findings = Vec::new();
    for (reference, place) in &manifest.secrets {
        match value(reference, beside, allowed) {
            Ok(value) => {
                secrets.insert(reference.clone(), value);
            }
            Err((why, fix)) => {
                let title = format!("the secret {reference} cannot be read: {why}");
                findings.push(Finding::input(codes::UNREADABLE, title, Some(place.clone())).fix(fix));
            }
        }
    }
    if findings.is_empty() { Ok(secrets) } else { Err(findings) }
}

fn value(reference: &Reference, beside: &Path, allowed: &[PathBuf]) -> Result<Secret, (String, String)> {
    match reference {
        Reference::Env(name) => std::env::var(name)
            .map(Secret::new)
            .map_err(|_| (format!("the variable {name} is not set"), format!("export {name} before running this"))),
        Reference::File(path) => file(path, beside, allowed),
        Reference::Command(command) => run(command, beside),
        Reference::Age(spot) => age(spot, beside),
    }
}

fn file(path: &str, beside: &Path, allowed: &[PathBuf]) -> Result<Secret, (String, String)> {
    let full = beside.join(path);
    let unreadable = |error: std::io::Error| (error.to_string(), format!("make {} readable", full.display()));
    // Compared after links are followed, so that a link inside the folder cannot lead out of it.
    let real = full.canonicalize().map_err(unreadable)?;
    let inside = |folder: &Path| folder.canonicalize().is_ok_and(|folder| real.starts_with(folder));
    let beside = if beside.as_os_str().is_empty() { Path::new(".") } else { beside };
    if !inside(beside) && !allowed.iter().any(|path| inside(path)) {
        return Err((
            "it lies outside the manifest's folder".to_owned(),
            format!("move it beside the manifest, or allow it with --allow-file {}", full.display()),
        ));
    }
    let text = std::fs::read_to_string(&real).map_err(unreadable)?;
    Ok(Secret::new(without_newline(text)))
}

fn run(command: &str, beside: &Path) -> Result<Secret, (String, String)> {
    let folder = if beside.as_os_str().is_empty() { Path::new(".") } else { beside };
    let fix = "run the command by hand in the manifest's folder".to_owned();
    let output = std::process::Command::new("sh")
        .arg("-c")
        .arg(command)
        .current_dir(folder)
        .stdin(std::process::Stdio::null())
        .stderr(std::process::Stdio::inherit())
        .output()
        .map_err(|error| (error.to_string(), fix.clone()))?;
    if !output.status.success() {
        return Err((format!("the command ended with {}", output.status), fix));
    }
    let text = String::from_utf8(output.stdout).map_err(|_| ("it printed no UTF-8 text".to_owned(), fix))?;
    Ok(Secret::new(without_newline(text)))
}

fn age(spot: &str, beside: &Path) -> Result<Secret, (String, String)> {
    let form = || ("write it as ${age:FILE#KEY}".to_owned(), "name the key inside the file after a #".to_owned());
    let (path, key) = spot.split_once('#').ok_or_else(form)?;
    let fix = "install age, and point AGE_IDENTITY at your identity file".to_owned();
    let identity =
        std::env::var_os("AGE_IDENTITY").ok_or_else(|| ("AGE_IDENTITY is not set".to_owned(), fix.clone()))?;
    let output = std::process::Command::new("age")
        .arg("--decrypt")
        .arg("--identity")
        .arg(identity)
        .arg(beside.join(path))
        .stdin(std::process::Stdio::null())
        .output()
        .map_err(|error| (format!("age cannot be run: {error}"), fix.clone()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or("").to_owned();
        return Err((format!("age refused: {said}"), fix));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let value = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim().trim_matches('"').to_owned())
    });
    value.map(Secret::new).ok_or_else(|| (format!("the file has no line {key}: ..."), "add it".to_owned()))
}

fn without_newline(mut text: String) -> String {
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    text
}

/// The value of a text in which all references are resolved; `None` for no text.
pub fn fill(text: Option<&Text>, secrets: &Secrets) -> Option<Secret> {
    let text = text?;
    let mut value = String::new();
    for piece in &text.pieces {
        match piece {
            Piece::Literal(literal) => value.push_str(literal),
            Piece::Secret(reference) => value.push_str(secrets.get(reference)?.reveal()),
        }
    }
    Some(Secret::new(value))
}
