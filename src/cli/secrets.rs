//! Resolving secret references: the environment, files, programs. Values go into [`Secrets`] and nowhere else.

use std::io::Read as _;
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

/// Refuses passwords of several lines: what reads a password reads one line, and would take the rest for something else.
///
/// # Errors
/// A finding for each reference that gave such a password.
pub fn one_line(manifest: &Manifest, secrets: &Secrets) -> Result<(), Vec<Finding>> {
    let mut findings = Vec::new();
    let mut judged = std::collections::BTreeSet::new();
    for node in &manifest.nodes {
        let ssh = &node.settings.ssh;
        for text in [&ssh.password, &ssh.become_password].into_iter().flatten() {
            let reference = text.pieces.iter().find_map(|piece| match piece {
                Piece::Secret(reference) => Some(reference),
                Piece::Literal(_) => None,
            });
            let Some(reference) = reference.filter(|reference| judged.insert(*reference)) else { continue };
            let bad = fill(Some(text), secrets).is_some_and(|value| value.reveal().contains(['\n', '\r', '\0']));
            if bad {
                let title = format!("the password {reference} has more than one line");
                let place = manifest.secrets.get(reference).cloned();
                findings.push(Finding::input(codes::BAD_SECRET, title, place).fix("keep the password alone in there"));
            }
        }
    }
    if findings.is_empty() { Ok(()) } else { Err(findings) }
}

/// A secret is a password, a token, a key or a small file.
const MAX_BYTES: u64 = 1024 * 1024;

/// Reads a secret's text, but never without end.
fn text(
    input: impl std::io::Read,
    unreadable: impl Fn(String) -> (String, String),
) -> Result<Secret, (String, String)> {
    let mut bytes = Vec::new();
    input.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| unreadable(error.to_string()))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(unreadable("it is larger than 1 MiB".to_owned()));
    }
    let text = String::from_utf8(bytes).map_err(|_| unreadable("it is no UTF-8 text".to_owned()))?;
    if text.contains('\0') {
        return Err(unreadable("it holds a NUL byte".to_owned()));
    }
    Ok(Secret::new(without_newline(text)))
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
    let opened = std::fs::File::open(&real).map_err(unreadable)?;
    text(opened, |why| (why, "name a file that holds the secret alone".to_owned()))
}

fn run(command: &str, beside: &Path) -> Result<Secret, (String, String)> {
    let folder = if beside.as_os_str().is_empty() { Path::new(".") } else { beside };
    let fix = "run the command by hand in the manifest's folder".to_owned();
    let mut child = std::process::Command::new("sh")
        .arg("-c")
        .arg(command)
        .current_dir(folder)
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::inherit())
        .spawn()
        .map_err(|error| (error.to_string(), fix.clone()))?;
    // Given up early, the pipe is closed before the wait, so that a command that writes for ever ends too.
    let printed = child.stdout.take().map(|stdout| text(stdout, |why| (format!("what it prints: {why}"), fix.clone())));
    let ended = child.wait().map_err(|error| (error.to_string(), fix.clone()))?;
    match printed {
        Some(Err(why)) => Err(why),
        _ if !ended.success() => Err((format!("the command ended with {ended}"), fix)),
        Some(Ok(secret)) => Ok(secret),
        None => Err(("it has no output".to_owned(), fix)),
    }
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
