//! A plan folded to one line a node.

use super::View;
use super::fold::{Groups, Key};
use super::plan::left_out;
use super::style::paint;
use super::text::{count, safe};
use crate::plan::Plan;

/// Each node, folded by what it needs: `n1: up to date`, `n2: 3 changes pending`, `n3: left out: ...`; then the total.
pub fn human(plan: &Plan, view: &View) -> String {
    let palette = view.palette();
    let mut text = String::new();
    let mut groups = Groups::new();
    for (name, node) in &plan.nodes {
        let changes = node.changes();
        let mut key = Key::default();
        key.push(&changes.to_string());
        groups.add(name, changes, key, Vec::new());
    }
    let mut pending = 0;
    for group in &groups.groups {
        let state = if group.first == 0 {
            paint(palette.good, "up to date")
        } else {
            pending += group.names.len();
            paint(palette.change, &format!("{} pending", count(group.first, "change", "changes")))
        };
        text.push_str(&format!("{}: {state}\n", group.nodes()));
    }
    for group in left_out(plan) {
        let state = paint(palette.bad, "left out");
        text.push_str(&format!("{}: {state}: {}{}\n", group.nodes(), safe(&group.first.what), group.as_on(0)));
    }
    text.push_str(&format!(
        "{}: {} up to date, {pending} with changes pending, {} left out\n",
        count(plan.nodes.len() + plan.left_out.len(), "node", "nodes"),
        plan.nodes.len() - pending,
        plan.left_out.len()
    ));
    text
}
