//! The end of a run: what became of each node, and a last line that says the same as the exit code.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::fold::{Groups, Key, digest, without_identity};
use super::style::{Palette, paint};
use super::text::{count, cut, safe, table};
use super::{View, json};
use crate::diag::ExitCode;
use crate::event::{Event, LeftOut, NodeReport, Report};

/// Columns that node names may take before they push their line.
const NAMES: usize = 40;
/// Lines shown of what a failed operation wrote.
const TAIL: usize = 20;
/// Characters shown of each of them.
const TAIL_WIDTH: usize = 500;

/// How an operation failed on a node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Failure {
    /// The operation's id.
    pub op: String,
    /// `mend`, `observe`, `reaction`, `deadline`.
    pub during: String,
    /// Exit status of the shell, or -1.
    pub status: i32,
    /// The last lines it wrote.
    pub tail: Vec<String>,
}

/// The failures of a run, a fold over its events beside [`Report`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Failures(pub BTreeMap<String, Failure>);

impl Failures {
    /// Takes one more event into account.
    pub fn fold(&mut self, event: &Event) {
        if let Event::OpFailed { node, op, during, status, tail } = event {
            let failure = Failure { op: op.clone(), during: during.clone(), status: *status, tail: tail.clone() };
            self.0.insert(node.clone(), failure);
        }
    }
}

/// The report as JSON.
///
/// # Errors
/// Never for a report as it is made here; see [`json::pretty`].
pub fn json(report: &Report) -> serde_json::Result<String> {
    json::pretty(report)
}

/// The exit code that fits what became of the nodes; an interruption is not seen in them.
pub fn exit_code(report: &Report) -> ExitCode {
    report.nodes.values().fold(ExitCode::Done, |code, node| {
        code.worst(match node.result.as_str() {
            "converged" | "changed" => ExitCode::Done,
            "left-out" => ExitCode::LeftOut,
            _ => ExitCode::Failed,
        })
    })
}

/// One word for the whole run, from its exit code and from its nodes, whichever is worse.
pub(super) fn verdict(report: &Report) -> &'static str {
    let known = match report.exit {
        Some(0) => ExitCode::Done,
        Some(2) => ExitCode::Usage,
        Some(3) => ExitCode::Incompatible,
        Some(4) => ExitCode::Pending,
        Some(5) => ExitCode::LeftOut,
        Some(130) => ExitCode::Interrupted,
        Some(_) => ExitCode::Failed,
        None => return "unfinished",
    };
    match known.worst(exit_code(report)) {
        ExitCode::Done => "done",
        ExitCode::Pending => "changes pending",
        ExitCode::LeftOut => "incomplete",
        ExitCode::Failed => "failed",
        ExitCode::Usage | ExitCode::Incompatible => "refused",
        ExitCode::Interrupted => "interrupted",
    }
}

/// The table of nodes, how the failed ones failed and where their logs are, and the last line.
///
/// `run_folder` is the run's folder as the user can type it, if there is one.
pub fn human(report: &Report, failures: &Failures, run_folder: Option<&str>, view: &View) -> String {
    let palette = view.palette();
    let mut text = nodes(report, &palette);
    text.push_str(&failed(report, failures, run_folder, &palette));
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(&last_line(report));
    text.push('\n');
    text
}

/// A node that was left out, as text: what, why, what to do.
pub fn left_out(node: &str, why: &LeftOut) -> String {
    let mut text = format!("{}: left out: {}\n", safe(node), safe(&why.what));
    for reason in &why.because {
        text.push_str(&format!("  = because: {}\n", safe(reason)));
    }
    for fix in &why.fix {
        text.push_str(&format!("  help: {}\n", safe(fix)));
    }
    text
}

/// `done: 3 nodes; 21 changed, 0 failed, 0 left out`.
pub fn last_line(report: &Report) -> String {
    let of = |result: &str| report.nodes.values().filter(|node| node.result == result).count();
    let changed: usize = report.nodes.values().map(|node| node.changed).sum();
    // With these the numbers add up to those of the plan.
    let already: usize = report.nodes.values().map(|node| node.already).sum();
    let already = if already > 0 { format!("{already} already as wanted, ") } else { String::new() };
    let mut line = format!(
        "{}: {}; {changed} changed, {already}{} failed, {} left out",
        verdict(report),
        count(report.nodes.len(), "node", "nodes"),
        of("failed"),
        of("left-out")
    );
    let unfinished = report.nodes.len() - of("failed") - of("left-out") - of("changed") - of("converged");
    if unfinished > 0 {
        let _ = write!(line, ", {unfinished} unfinished");
    }
    line
}

/// The table, equal results folded, with what to do under each line.
pub(super) fn nodes(report: &Report, palette: &Palette) -> String {
    let mut groups = Groups::new();
    for (name, node) in &report.nodes {
        let problem = node.problem.as_deref().unwrap_or_default();
        let mut key = Key::default();
        key.push(&node.result).push(&node.changed.to_string()).push(&without_identity(problem, name));
        for fix in &node.fix {
            key.push(&without_identity(fix, name));
        }
        groups.add(name, node, key, vec![digest(&(problem, &node.fix))]);
    }
    let rows: Vec<Vec<String>> = groups
        .groups
        .iter()
        .map(|group| {
            let node = group.first;
            let each = if group.names.len() > 1 && node.changed > 0 { " each" } else { "" };
            let changed = if node.result == "left-out" { "-".to_owned() } else { format!("{}{each}", node.changed) };
            let problem = node.problem.as_deref().map(safe).unwrap_or_default() + &group.as_on(0);
            vec![group.nodes(), result(node), changed, problem]
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let problems = report.nodes.values().any(|node| node.problem.is_some());
    let problem = if problems { "problem" } else { "" };
    let mut all = vec![["nodes", "result", "changed", problem].map(str::to_owned).to_vec()];
    all.extend(rows);
    let mut lines = table(&all, NAMES).into_iter();
    let mut text = String::new();
    if let Some(head) = lines.next() {
        let _ = writeln!(text, "{}", paint(palette.dim, &head));
    }
    for (line, group) in lines.zip(&groups.groups) {
        let style = match group.first.result.as_str() {
            "converged" | "changed" => anstyle::Style::new(),
            _ => palette.bad,
        };
        let _ = writeln!(text, "{}", paint(style, &line));
        for fix in &group.first.fix {
            let _ = writeln!(text, "    fix: {}", safe(fix));
        }
    }
    text
}

fn result(node: &NodeReport) -> String {
    match node.result.as_str() {
        "left-out" => "left out".to_owned(),
        "converged" => "up to date".to_owned(),
        other => safe(other),
    }
}

/// Each way an operation failed, its last lines, and where the whole log is.
fn failed(report: &Report, failures: &Failures, run_folder: Option<&str>, palette: &Palette) -> String {
    let mut groups = Groups::new();
    for (name, failure) in &failures.0 {
        // A failure that a later attempt in the same run made good is none.
        if report.nodes.get(name).is_some_and(|node| matches!(node.result.as_str(), "changed" | "converged")) {
            continue;
        }
        let mut key = Key::default();
        key.push(&without_identity(&failure.op, name)).push(&failure.during).push(&failure.status.to_string());
        groups.add(name, failure, key, vec![digest(failure)]);
    }
    let mut text = String::new();
    for group in &groups.groups {
        let failure = group.first;
        let nodes = paint(palette.head, &group.nodes());
        let _ = write!(text, "\n{nodes}: {} {}", safe(&failure.op), how(&failure.during, failure.status));
        text.push_str(&group.as_on(0));
        text.push('\n');
        if failure.tail.is_empty() {
            text.push_str("    it wrote nothing\n");
        }
        for line in failure.tail.iter().skip(failure.tail.len().saturating_sub(TAIL)) {
            let _ = writeln!(text, "    | {}", cut(line, TAIL_WIDTH));
        }
        if let Some(folder) = run_folder {
            let node = if let [only] = group.names.as_slice() { only } else { "NODE" };
            let _ = writeln!(text, "    whole log: {}/nodes/{}.log", safe(folder), safe(node));
        }
    }
    text
}

/// `failed while being changed, exit status 100`.
pub(super) fn how(during: &str, status: i32) -> String {
    let status = if status < 0 { "no exit status".to_owned() } else { format!("exit status {status}") };
    match during {
        "mend" => format!("failed while being changed, {status}"),
        "observe" => format!("failed while its state was looked at, {status}"),
        "reaction" => format!("failed in what follows a change, {status}"),
        "deadline" => "failed: it took longer than its deadline".to_owned(),
        other => format!("failed during {}, {status}", safe(other)),
    }
}
