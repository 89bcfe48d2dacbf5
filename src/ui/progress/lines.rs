//! One line for each event worth one.

use crate::event::{Event, Outcome};
use crate::ui::report::how;
use crate::ui::safe;
use crate::ui::text::{count, duration};

/// The line for an event where lines are all there is.
pub(super) fn plain(event: &Event) -> Option<String> {
    let line = match event {
        Event::RunStarted { run, nodes, .. } if run.is_empty() => {
            format!("asking {}", count(nodes.len(), "node", "nodes"))
        }
        Event::RunStarted { run, nodes, .. } => format!("run {}: {}", safe(run), count(nodes.len(), "node", "nodes")),
        // Nodes with nothing to do are told of once, in the summary.
        Event::NodeProbed { changes: 0, .. } | Event::NodeDone { changed: 0, .. } => return None,
        Event::NodeProbed { node, changes } => format!("{}: {}", safe(node), count(*changes, "change", "changes")),
        Event::PhaseStarted { node, phase, operations, resumed } => {
            let found = if *resumed { "found running, followed; " } else { "" };
            let operations = count(*operations, "operation", "operations");
            format!("{} phase {}: {found}{operations}", safe(node), safe(phase))
        }
        Event::OpDone { node, op, outcome, millis } => {
            let outcome = match outcome {
                Outcome::Fine => "already as wanted",
                Outcome::Changed => "changed",
            };
            format!("{} {}: {outcome} ({})", safe(node), safe(op), duration(*millis))
        }
        Event::NodeDone { node, changed, .. } => format!("{}: done, {changed} changed", safe(node)),
        // What began shows when it ends; what ended shows by its operations and its node; how a connection came about
        // shows with `-v` only.
        Event::Connected { .. } => return None,
        Event::OpStarted { .. } | Event::PhaseDone { .. } | Event::RunDone { .. } => return None,
        _ => return important(event),
    };
    Some(line)
}

/// The line for an event that must stay on the screen when the bars are gone.
pub(super) fn important(event: &Event) -> Option<String> {
    Some(match event {
        Event::NodeLeftOut { node, why } => format!("{}: left out: {}", safe(node), safe(&why.what)),
        Event::OpFailed { node, op, during, status, .. } => {
            format!("{} {}: {}", safe(node), safe(op), how(during, *status))
        }
        Event::LinkLost { node, why } => {
            format!("{}: link lost ({}); what was started goes on there", safe(node), safe(why))
        }
        Event::Reconnected { node } => format!("{}: link is back", safe(node)),
        Event::NodeFailed { node, at, what, .. } => format!("{}: failed: {}: {}", safe(node), safe(at), safe(what)),
        Event::Interrupted => "interrupted: no new work is started; what runs on nodes goes on there".to_owned(),
        _ => return None,
    })
}
