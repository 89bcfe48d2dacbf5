//! `provision check`: would the wish work? Offline, without SSH.

use std::fs::File;
use std::io::Read;

use super::{Common, Format, print};
use crate::diag::{Class, ExitCode, Finding, Severity};
use crate::manifest::model::NodeState;
use crate::manifest::{Manifest, codes, load, tree};
use crate::ui::findings::{human, json};

/// Would the wish work? Reads the manifest alone, touches no node.
///
/// Exits 0 when the file is valid, 2 when it is not.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  provision check cluster.yaml --format json")]
pub struct Arguments {
    /// The manifest; `-` is standard input.
    #[arg(default_value = "cluster.yaml")]
    manifest: String,
}

/// Reads a manifest's text from a file, or from standard input for `-`.
///
/// # Errors
/// A finding that says why it cannot be read.
pub fn read(path: &str) -> Result<String, Finding> {
    let unreadable = |error: std::io::Error| {
        let title = format!("cannot read {path}");
        let finding = Finding::input(codes::UNREADABLE, title, None).because(error.to_string());
        match error.kind() {
            std::io::ErrorKind::NotFound => {
                finding.fix("name the manifest, or write one to start from with `provision init`")
            }
            _ => finding,
        }
    };
    let mut bytes = Vec::new();
    // One byte more than is allowed shows that there is more, without reading all of it.
    let limit = tree::MAX_BYTES as u64 + 1;
    if path == "-" {
        std::io::stdin().lock().take(limit).read_to_end(&mut bytes).map_err(unreadable)?;
    } else {
        File::open(path).map_err(unreadable)?.take(limit).read_to_end(&mut bytes).map_err(unreadable)?;
    }
    let text = tree::decode(path, &bytes)?;
    if super::saved::is_plan(text) {
        return Err(Finding::input(codes::SAVED_PLAN, format!("{path} is a saved plan, no manifest"), None)
            .because("only `apply` takes a saved plan")
            .fix(format!("provision apply {path}")));
    }
    String::from_utf8(bytes).map_err(|error| unreadable(std::io::Error::other(error)))
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> ExitCode {
    let path = arguments.manifest.as_str();
    let (text, manifest, mut findings) = match read(path) {
        Ok(text) => {
            let (manifest, findings) = load(path, &text);
            (text, manifest, findings)
        }
        Err(finding) => (String::new(), None, vec![finding]),
    };
    if manifest.is_some() {
        findings.push(not_judged());
    }
    let no_step = manifest.as_ref().map(no_step).unwrap_or_default();
    let printed = match common.format {
        Format::Json => print(&json(&findings, &no_step)),
        Format::Human => {
            let last = last_line(path, manifest.as_ref(), &findings, &no_step);
            print(&format!("{}{last}\n", human(&findings, path, &text)))
        }
    };
    if manifest.is_some() { printed } else { ExitCode::Usage }
}

fn not_judged() -> Finding {
    let mut note = Finding::input(codes::NOT_JUDGED, "versions were not judged", None)
        .because("this build has no compatibility data; the file alone was checked");
    note.class = Class::Unjudged;
    note.severity = Severity::Note;
    note
}

/// Names of the parts without a step, each once.
fn no_step(manifest: &Manifest) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for part in &manifest.unbuilt {
        if !names.contains(&part.value) {
            names.push(part.value.clone());
        }
    }
    names
}

fn last_line(path: &str, manifest: Option<&Manifest>, findings: &[Finding], no_step: &[String]) -> String {
    let count = |number: usize, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
    let Some(manifest) = manifest else {
        let errors = findings.iter().filter(|finding| finding.severity == Severity::Error).count();
        let path = crate::ui::snippet::shown(path);
        return format!("{path}: {}; file is not valid; nothing was judged", count(errors, "error"));
    };
    let nodes = manifest.nodes.iter().filter(|node| node.state == NodeState::In).count();
    let mut line = format!("{}; file is valid; versions not judged", count(nodes, "node"));
    if !no_step.is_empty() {
        line.push_str(&format!("; no step in this build for: {}", no_step.join(", ")));
    }
    line
}
