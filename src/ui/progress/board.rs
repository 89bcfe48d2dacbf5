//! Where every node stands: what is running, for how long, and how much is done.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::event::{Event, Outcome};
use crate::ui::safe;
use crate::ui::text::{count, duration};

/// Running nodes shown at a time.
pub(super) const SHOWN: usize = 8;
/// What takes less is not worth a line that comes and goes.
const BRIEF: Duration = Duration::from_secs(1);

/// What a node is doing.
struct Running {
    what: String,
    since: Duration,
}

/// The state of a run, for the screen.
#[derive(Default)]
pub(super) struct Board {
    nodes: BTreeSet<String>,
    running: BTreeMap<String, Running>,
    /// Nodes that have not answered the probe.
    unanswered: BTreeSet<String>,
    finished: BTreeSet<String>,
    changes: usize,
    changed: usize,
    failed: usize,
    left_out: usize,
    interrupted: bool,
}

impl Board {
    /// Takes an event that came `now` after the run began.
    pub fn take(&mut self, event: &Event, now: Duration) {
        match event {
            Event::RunStarted { nodes, .. } => {
                for node in nodes {
                    self.nodes.insert(node.clone());
                    self.unanswered.insert(node.clone());
                    self.runs(node, "connecting and asking", now);
                }
            }
            Event::NodeLeftOut { node, .. } => {
                self.left_out += 1;
                self.unanswered.remove(node);
                self.finish(node);
            }
            Event::NodeProbed { node, changes } => {
                self.changes += changes;
                self.unanswered.remove(node);
                self.running.remove(node);
            }
            Event::PhaseStarted { node, phase, .. } => self.runs(node, &format!("phase {phase}"), now),
            Event::OpStarted { node, op } => self.runs(node, op, now),
            Event::OpDone { node, outcome, .. } => {
                self.changed += usize::from(*outcome == Outcome::Changed);
                self.runs(node, "going on", now);
            }
            Event::Connected { node, .. } => self.runs(node, "asking", now),
            Event::LinkLost { node, .. } => self.runs(node, "link lost, connecting again", now),
            Event::Reconnected { node } => self.runs(node, "following again", now),
            Event::OpFailed { node, .. } | Event::PhaseDone { node, .. } => {
                self.running.remove(node);
            }
            Event::NodeDone { node, .. } => self.finish(node),
            Event::NodeFailed { node, .. } => {
                self.failed += 1;
                self.finish(node);
            }
            Event::Interrupted => self.interrupted = true,
            Event::RunDone { .. } => self.running.clear(),
        }
    }

    fn runs(&mut self, node: &str, what: &str, now: Duration) {
        self.running.insert(node.to_owned(), Running { what: what.to_owned(), since: now });
    }

    fn finish(&mut self, node: &str) {
        self.running.remove(node);
        self.finished.insert(node.to_owned());
    }

    /// Nodes that are through with what is going on now (the asking, then the changing), and all.
    pub fn counts(&self) -> (usize, usize) {
        let all = self.nodes.len();
        if self.unanswered.is_empty() { (self.finished.len(), all) } else { (all - self.unanswered.len(), all) }
    }

    /// `asked 2 of 3 nodes`, then `1 of 3 nodes; 4 of 21 changes, 0 failed, 1 left out`.
    pub fn summary(&self) -> String {
        let (finished, all) = self.counts();
        let nodes = count(all, "node", "nodes");
        let state = if self.unanswered.is_empty() {
            format!(
                "{finished} of {nodes}; {} of {}, {} failed, {} left out",
                self.changed,
                count(self.changes, "change", "changes"),
                self.failed,
                self.left_out
            )
        } else {
            format!("asked {finished} of {nodes}, {} left out", self.left_out)
        };
        if self.interrupted { format!("interrupted: ending; {state}") } else { state }
    }

    /// The nodes that have been at one thing for longest, as lines; at most [`SHOWN`] in all.
    pub fn running(&self, now: Duration) -> Vec<String> {
        let mut running: Vec<(&String, &Running)> =
            self.running.iter().filter(|(_, node)| now.saturating_sub(node.since) >= BRIEF).collect();
        running.sort_by_key(|(_, node)| node.since);
        let all = running.len();
        let room = if all > SHOWN { SHOWN - 1 } else { SHOWN };
        let mut lines: Vec<String> = running
            .into_iter()
            .take(room)
            .map(|(name, node)| {
                let millis = u64::try_from(now.saturating_sub(node.since).as_millis()).unwrap_or(u64::MAX);
                // The time comes first: the end of a long line is cut.
                format!("{} ({}): {}", safe(name), duration(millis), safe(&node.what))
            })
            .collect();
        if all > room {
            lines.push(format!("and {}", count(all - room, "more node", "more nodes")));
        }
        lines
    }
}
