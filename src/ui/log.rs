//! What was done, when and by whom: the list of runs, one run, one node's history.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::View;
use super::report::{Failures, human, verdict};
use super::style::paint;
use super::text::{count, duration, safe, table};
use crate::event::{Event, Outcome, Report};

/// Columns a cell of the list may take before it pushes its line.
const CELL: usize = 32;

/// A run as it was read from its folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEntry {
    /// Its ID.
    pub run: String,
    /// Who: `user@host`.
    pub by: String,
    /// When it began, as it is to be shown.
    pub when: String,
    /// The manifest as it was given.
    pub manifest: String,
    /// The run's folder as the user can type it.
    pub folder: String,
    /// Its outcome.
    pub report: Report,
    /// What happened, in order.
    pub events: Vec<Event>,
}

/// The list of runs, newest first; IDs begin with the time, so they are the order.
pub fn runs(entries: &[RunEntry], view: &View) -> String {
    if entries.is_empty() {
        return "no runs yet\n".to_owned();
    }
    let rows: Vec<Vec<String>> = newest_first(entries)
        .into_iter()
        .map(|entry| {
            let changed: usize = entry.report.nodes.values().map(|node| node.changed).sum();
            row(entry, verdict(&entry.report), &entry.report.nodes.len().to_string(), changed)
        })
        .collect();
    list(["run", "when", "by", "result", "nodes", "changed", "manifest"], rows, view)
}

/// One node's history: the runs that it was part of, newest first, and what was done to it.
pub fn node(entries: &[RunEntry], node: &str, view: &View) -> String {
    let mut text = String::new();
    for entry in newest_first(entries) {
        let Some(report) = entry.report.nodes.get(node) else { continue };
        let result = match report.result.as_str() {
            "left-out" => "left out".to_owned(),
            "converged" => "up to date".to_owned(),
            other => safe(other),
        };
        let head = format!("{}  {}  {}", safe(&entry.run), safe(&entry.when), safe(&entry.by));
        let _ = writeln!(text, "{}: {result}, {} changed", paint(view.palette().head, &head), report.changed);
        for (_, done) in entry.events.iter().filter_map(done).filter(|(name, _)| *name == node) {
            let _ = writeln!(text, "    {done}");
        }
        if let Some(problem) = &report.problem {
            let _ = writeln!(text, "    {}", safe(problem));
        }
    }
    if text.is_empty() { format!("{}: in no run so far\n", safe(node)) } else { text }
}

/// One run in detail: who and when, everything that was changed, then the report as its `apply` showed it.
pub fn run(entry: &RunEntry, view: &View) -> String {
    let mut text = format!(
        "run {} by {}, {}\nmanifest {}, {}\n\n",
        safe(&entry.run),
        safe(&entry.by),
        safe(&entry.when),
        safe(&entry.manifest),
        count(entry.report.nodes.len(), "node", "nodes")
    );
    let mut failures = Failures::default();
    let mut any = false;
    for event in &entry.events {
        failures.fold(event);
        if let Some((node, done)) = done(event) {
            any = true;
            let _ = writeln!(text, "{} {done}", safe(node));
        }
    }
    if any {
        text.push('\n');
    }
    text + &human(&entry.report, &failures, Some(&entry.folder), view)
}

/// The list as JSON, newest first, without the events.
///
/// # Errors
/// See [`super::json::pretty`].
pub fn runs_json(entries: &[RunEntry]) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Line<'a> {
        run: &'a str,
        when: &'a str,
        by: &'a str,
        manifest: &'a str,
        folder: &'a str,
        report: &'a Report,
    }
    let lines: Vec<Line<'_>> = newest_first(entries)
        .into_iter()
        .map(|entry| Line {
            run: &entry.run,
            when: &entry.when,
            by: &entry.by,
            manifest: &entry.manifest,
            folder: &entry.folder,
            report: &entry.report,
        })
        .collect();
    super::json::pretty(&lines)
}

/// One run with its events as JSON.
///
/// # Errors
/// See [`super::json::pretty`].
pub fn run_json(entry: &RunEntry) -> serde_json::Result<String> {
    super::json::pretty(entry)
}

fn newest_first(entries: &[RunEntry]) -> Vec<&RunEntry> {
    let mut entries: Vec<&RunEntry> = entries.iter().collect();
    entries.sort_by(|a, b| b.run.cmp(&a.run));
    entries
}

fn row(entry: &RunEntry, result: &str, nodes: &str, changed: usize) -> Vec<String> {
    vec![
        safe(&entry.run),
        safe(&entry.when),
        safe(&entry.by),
        result.to_owned(),
        nodes.to_owned(),
        changed.to_string(),
        safe(&entry.manifest),
    ]
}

fn list<const N: usize>(head: [&str; N], rows: Vec<Vec<String>>, view: &View) -> String {
    let mut all = vec![head.map(str::to_owned).to_vec()];
    all.extend(rows);
    let mut text = String::new();
    for (number, line) in table(&all, CELL).into_iter().enumerate() {
        let style = if number == 0 { view.palette().dim } else { anstyle::Style::new() };
        let _ = writeln!(text, "{}", paint(style, &line));
    }
    text
}

/// What an event did to a node, for those that did something.
fn done(event: &Event) -> Option<(&str, String)> {
    match event {
        Event::OpDone { node, op, outcome: Outcome::Changed, millis } => {
            Some((node, format!("{}: changed ({})", safe(op), duration(*millis))))
        }
        Event::OpFailed { node, op, during, status, .. } => {
            Some((node, format!("{} {}", safe(op), super::report::how(during, *status))))
        }
        _ => None,
    }
}
