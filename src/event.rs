//! What happened: events, and the report that is a fold over them.
//!
//! Screen, JSON and run folder all read the same events. `exec` writes them, `ui` reads them, and neither
//! knows the other.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Why a node was left out before anything was changed on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// A word for machines: `unreachable`, `host-key`, `auth`, `root`, `probe`.
    pub kind: String,
    /// What is wrong, one line: `no answer on 10.0.0.7 port 22`.
    pub what: String,
    /// Why, line by line: each authentication method tried and why it failed.
    pub because: Vec<String>,
    /// What to do.
    pub fix: Vec<String>,
}

/// How an operation ended on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It was already as wanted when its turn came.
    Fine,
    /// It was changed, and is as wanted now.
    Changed,
}

/// One thing that happened. `node` is the node's name, `seconds` since the phase began on the node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The run begins.
    RunStarted {
        /// The run's ID.
        run: String,
        /// Who: `user@host`.
        by: String,
        /// Manifest path as given.
        manifest: String,
        /// Selected nodes.
        nodes: Vec<String>,
    },
    /// A node was left out.
    NodeLeftOut {
        /// The node.
        node: String,
        /// Why.
        why: LeftOut,
    },
    /// A connection is open: what was used for it.
    Connected {
        /// The node.
        node: String,
        /// `admin, mlkem768x25519-sha256, ssh-ed25519`.
        how: String,
    },
    /// A node answered the probe; `changes` operations differ.
    NodeProbed {
        /// The node.
        node: String,
        /// Number of operations that differ.
        changes: usize,
    },
    /// A phase script was started (or found running, when `resumed`).
    PhaseStarted {
        /// The node.
        node: String,
        /// The phase's name.
        phase: String,
        /// How many operations it has.
        operations: usize,
        /// It was found running and is followed.
        resumed: bool,
    },
    /// An operation began.
    OpStarted {
        /// The node.
        node: String,
        /// The operation's id.
        op: String,
    },
    /// An operation ended well.
    OpDone {
        /// The node.
        node: String,
        /// The operation's id.
        op: String,
        /// How.
        outcome: Outcome,
        /// Milliseconds it took on the node.
        millis: u64,
    },
    /// An operation failed; the node's phase stops here.
    OpFailed {
        /// The node.
        node: String,
        /// The operation's id.
        op: String,
        /// What was done when it failed: `mend`, `observe`, `reaction`, `deadline`.
        during: String,
        /// Exit status of the shell, or -1.
        status: i32,
        /// The last 20 lines it wrote, control characters shown.
        tail: Vec<String>,
    },
    /// The link to a node was lost; the phase goes on there.
    LinkLost {
        /// The node.
        node: String,
        /// Why, as far as it is known.
        why: String,
    },
    /// The link is back and the phase is followed again.
    Reconnected {
        /// The node.
        node: String,
    },
    /// A phase ended.
    PhaseDone {
        /// The node.
        node: String,
        /// The phase's name.
        phase: String,
        /// Whether every operation ended well.
        ok: bool,
    },
    /// A node is done with everything.
    NodeDone {
        /// The node.
        node: String,
        /// Operations changed.
        changed: usize,
        /// Peers whose key was to be made in this run and was not, so that this node cannot know it yet.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        missing: Vec<String>,
    },
    /// A node failed; nothing more is done there in this run.
    NodeFailed {
        /// The node.
        node: String,
        /// The step or operation.
        at: String,
        /// What went wrong.
        what: String,
        /// What to do.
        fix: Vec<String>,
    },
    /// The user pressed Ctrl-C.
    Interrupted,
    /// The run ended.
    RunDone {
        /// The exit code.
        exit: u8,
    },
}

/// What became of one node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeReport {
    /// `converged`, `changed`, `failed`, `left-out`, `unfinished`.
    pub result: String,
    /// Operations changed.
    pub changed: usize,
    /// Operations that were planned and found as wanted when their turn came.
    #[serde(default)]
    pub already: usize,
    /// What went wrong, if anything did.
    pub problem: Option<String>,
    /// What to do about it.
    pub fix: Vec<String>,
}

/// The outcome of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The run's ID.
    pub run: String,
    /// Per node, in name order.
    pub nodes: BTreeMap<String, NodeReport>,
    /// The exit code, once known.
    pub exit: Option<u8>,
}

impl Report {
    /// Takes one more event into account.
    pub fn fold(&mut self, event: &Event) {
        match event {
            Event::RunStarted { run, nodes, .. } => {
                self.run.clone_from(run);
                for node in nodes {
                    self.nodes.entry(node.clone()).or_default().result = "unfinished".to_owned();
                }
            }
            Event::NodeLeftOut { node, why } => {
                let entry = self.nodes.entry(node.clone()).or_default();
                entry.result = "left-out".to_owned();
                entry.problem = Some(why.what.clone());
                entry.fix.clone_from(&why.fix);
            }
            Event::OpDone { node, outcome: Outcome::Changed, .. } => {
                self.nodes.entry(node.clone()).or_default().changed += 1;
            }
            Event::OpDone { node, outcome: Outcome::Fine, .. } => {
                self.nodes.entry(node.clone()).or_default().already += 1;
            }
            Event::NodeDone { node, missing, .. } => {
                let entry = self.nodes.entry(node.clone()).or_default();
                if !missing.is_empty() {
                    entry.problem = Some(format!("trust: no key was made on {}", crate::nodeset::fold(missing)));
                    entry.fix = vec!["mend what failed there and run apply again: it completes the mesh".to_owned()];
                }
                entry.result = if entry.changed > 0 { "changed" } else { "converged" }.to_owned();
            }
            Event::NodeFailed { node, at, what, fix } => {
                let entry = self.nodes.entry(node.clone()).or_default();
                entry.result = "failed".to_owned();
                entry.problem = Some(format!("{at}: {what}"));
                entry.fix.clone_from(fix);
            }
            Event::RunDone { exit } => self.exit = Some(*exit),
            _ => {}
        }
    }
}
