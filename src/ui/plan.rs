//! A plan for people, equal nodes folded, and as JSON.
//!
//! Nodes fold when the same operations would change in the same way, whatever node-specific values are in the
//! content: a node's own name counts as equal to another's. Where titles, diffs or reasons then differ, those of
//! the first node are shown and marked `as on`.

use std::fmt::Write as _;

use super::fold::{Group, Groups, Key, digest, without_identity, without_name};
use super::style::{Palette, paint};
use super::text::{count, cut, safe};
use super::{View, json};
use crate::event::LeftOut;
use crate::ops::Reaction;
use crate::plan::{NodePlan, OpPlan, PhasePlan, Plan};

/// Diff lines shown for one change.
const DIFF_LINES: usize = 40;
/// Characters shown of one diff line.
const DIFF_WIDTH: usize = 2000;

/// The plan file: indented JSON, so that a plan can be read and compared.
///
/// # Errors
/// Never for a plan as it is made here; see [`json::pretty`].
pub fn json(plan: &Plan) -> serde_json::Result<String> {
    json::pretty(plan)
}

/// The plan for people: nodes not planned first, then each fold of nodes with its changes, then the total.
pub fn human(plan: &Plan, view: &View) -> String {
    let palette = view.palette();
    let mut text = String::new();
    for group in left_out(plan) {
        not_planned(&mut text, &group, &palette);
    }
    let mut groups = Groups::new();
    for (name, node) in &plan.nodes {
        let (key, details) = signature(name, node, view.full);
        groups.add(name, node, key, details);
    }
    for (name, node) in &plan.nodes {
        if let Some(run) = &node.running {
            line(
                &mut text,
                &format!("{}: {} is still at work there; apply follows it to its end first", safe(name), safe(run)),
            );
        }
    }
    let mut after_block = !text.is_empty();
    for group in &groups.groups {
        let changes = group.first.changes();
        // Blocks are set apart; single lines stand together.
        if after_block || (changes > 0 && !text.is_empty()) {
            text.push('\n');
        }
        after_block = changes > 0;
        let head = paint(palette.head, &group.nodes());
        if changes == 0 {
            line(&mut text, &format!("{head}: no changes"));
        } else {
            let each = if group.names.len() > 1 { " each" } else { "" };
            line(&mut text, &format!("{head}: {}{each}", count(changes, "change", "changes")));
            let mut first = 0;
            for phase in &group.first.phases {
                show_phase(&mut text, phase, first, group, view);
                first += phase.operations.len();
            }
        }
    }
    if !text.is_empty() {
        text.push('\n');
    }
    line(&mut text, &total(plan));
    text
}

fn line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// `3 nodes: 21 changes; 0 left out`.
fn total(plan: &Plan) -> String {
    let changes: usize = plan.nodes.values().map(NodePlan::changes).sum();
    format!(
        "{}: {}; {} left out",
        count(plan.nodes.len() + plan.left_out.len(), "node", "nodes"),
        count(changes, "change", "changes"),
        plan.left_out.len()
    )
}

/// Left-out nodes, folded where the reason is the same but for the node's name and address.
pub(super) fn left_out(plan: &Plan) -> Vec<Group<'_, &LeftOut>> {
    let mut groups = Groups::new();
    for (node, why) in &plan.left_out {
        let mut key = Key::default();
        key.push(&why.kind);
        for part in [std::slice::from_ref(&why.what), &why.because, &why.fix] {
            key.push(&part.len().to_string());
            for text in part {
                key.push(&without_identity(text, node));
            }
        }
        groups.add(node, why, key, vec![digest(&(&why.what, &why.because, &why.fix))]);
    }
    groups.groups
}

fn not_planned(text: &mut String, group: &Group<'_, &LeftOut>, palette: &Palette) {
    let why = group.first;
    line(
        text,
        &format!(
            "{}: {}, {}{}",
            paint(palette.bad, "not planned"),
            paint(palette.head, &group.nodes()),
            safe(&why.what),
            group.as_on(0)
        ),
    );
    for reason in &why.because {
        line(text, &format!("    because: {}", safe(reason)));
    }
    for fix in &why.fix {
        line(text, &format!("    fix: {}", safe(fix)));
    }
}

/// What makes nodes fold, and for each operation a hash of what may differ between them.
fn signature(name: &str, node: &NodePlan, full: bool) -> (Key, Vec<u64>) {
    let mut key = Key::default();
    let mut details = Vec::new();
    for phase in &node.phases {
        key.push(&phase.name).push(&phase.operations.len().to_string());
        for operation in &phase.operations {
            let later = operation.later.as_deref();
            key.push(&operation.step).push(if later.is_some() { "later" } else { "" });
            if full {
                key.push(&operation.id).push(&operation.change.title).push(later.unwrap_or_default());
                key.push(&operation.change.diff.len().to_string());
                for line in &operation.change.diff {
                    key.push(line);
                }
            } else {
                key.push(&without_name(&operation.id, name)).push(&without_name(&operation.change.title, name));
                // The sign of a change is part of what it is: new here and changed there are two things.
                key.push(sign(operation));
                details.push(digest(&(&operation.change, later)));
            }
        }
        key.push(&phase.reactions.len().to_string());
        for reaction in &phase.reactions {
            key.push(&said(reaction));
        }
    }
    (key, details)
}

fn said(reaction: &Reaction) -> String {
    match reaction {
        Reaction::Restart(unit) => format!("restart {}", safe(unit)),
        Reaction::ReloadSysctl => "apply /etc/sysctl.d".to_owned(),
    }
}

/// `+` when the diff only adds, `-` when it only removes, else `~`.
fn sign(operation: &OpPlan) -> &'static str {
    let diff = &operation.change.diff;
    if diff.is_empty() {
        // What needs no diff says in its title what it is.
        match operation.change.title.rsplit(": ").next() {
            Some("new" | "make" | "load") => "+",
            Some("remove") => "-",
            _ => "~",
        }
    } else if diff.iter().all(|line| line.starts_with('+')) {
        "+"
    } else if diff.iter().all(|line| line.starts_with('-')) {
        "-"
    } else {
        "~"
    }
}

/// Shows a phase whose first operation is the node's operation number `first`.
fn show_phase(text: &mut String, phase: &PhasePlan, first: usize, group: &Group<'_, &NodePlan>, view: &View) {
    let palette = view.palette();
    let mut indent = "  ";
    if group.first.phases.len() > 1 {
        line(text, &format!("  phase {}:", safe(&phase.name)));
        indent = "    ";
    }
    for (number, operation) in phase.operations.iter().enumerate() {
        let sign = sign(operation);
        let style = match sign {
            "+" => palette.good,
            "-" => palette.bad,
            _ => palette.change,
        };
        let mut shown = format!("{indent}{} {}", paint(style, sign), safe(&operation.change.title));
        if let Some(later) = &operation.later {
            let _ = write!(shown, " (known after {})", safe(later));
        }
        shown.push_str(&group.as_on(first + number));
        line(text, &shown);
        show_diff(text, &operation.change.diff, indent, view);
    }
    for reaction in &phase.reactions {
        line(text, &format!("{indent}then {}", said(reaction)));
    }
}

fn show_diff(text: &mut String, diff: &[String], indent: &str, view: &View) {
    let palette = view.palette();
    let limit = if view.full { usize::MAX } else { DIFF_LINES };
    // One line more than the limit is shown rather than replaced by a line that says so.
    let limit = if diff.len() == limit.saturating_add(1) { diff.len() } else { limit };
    for shown in diff.iter().take(limit) {
        let style = match shown.as_bytes().first() {
            Some(b'+') => palette.good,
            Some(b'-') => palette.bad,
            _ => palette.dim,
        };
        let width = if view.full { usize::MAX } else { DIFF_WIDTH };
        line(text, &format!("{indent}    {}", paint(style, &cut(shown, width))));
    }
    if diff.len() > limit {
        line(text, &format!("{indent}    ... {} more lines", diff.len() - limit));
    }
}
