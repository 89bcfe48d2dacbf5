//! What would change, node by node: the plan and its file format.
//!
//! A plan is pure data: it says which operations differ and how, what was observed for them, and in which phases they
//! run. It holds no shell and no secrets; `apply` of a saved plan makes it again and compares.

pub mod diff;

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::event::LeftOut;
use crate::ops::{Change, Reaction, Seen};

/// A plan for all selected nodes; as JSON its first key is `provision_plan`, the format version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Format version of the file, 1.
    pub provision_plan: u32,
    /// The manifest's path, as given.
    pub manifest: String,
    /// The cluster's name.
    pub cluster: String,
    /// SHA-256 of the manifest and of every file beside it that was read.
    pub inputs: BTreeMap<String, String>,
    /// Nodes that were selected but could not be planned, and why.
    pub left_out: BTreeMap<String, LeftOut>,
    /// The nodes, in manifest order.
    pub nodes: IndexMap<String, NodePlan>,
}

/// One node's part of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodePlan {
    /// `/etc/machine-id`.
    pub machine_id: String,
    /// Boot id.
    pub boot_id: String,
    /// The host key it proved to hold.
    pub host_key: String,
    /// Phases with at least one operation that differs; none means nothing to change.
    pub phases: Vec<PhasePlan>,
    /// What was observed for the operations in `phases`.
    pub observed: Seen,
    /// The phase of an earlier run that is still at work there; `apply` follows it to its end first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<String>,
}

/// A phase: operations that run without waiting for anything outside the node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhasePlan {
    /// `node` (all that needs nobody else) or `mesh` (needs the others' keys).
    pub name: String,
    /// What differs, in order.
    pub operations: Vec<OpPlan>,
    /// What happens once at the end.
    pub reactions: Vec<Reaction>,
}

/// An operation that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpPlan {
    /// The step it belongs to: `base`, `trust`, `packages`, ...
    pub step: String,
    /// The operation's id.
    pub id: String,
    /// What would change, as far as it can be known.
    pub change: Change,
    /// Set when it cannot be known yet, and why: `n2's key is made in this run`.
    pub later: Option<String>,
}

impl NodePlan {
    /// Number of operations that differ; a phase that only catches up with reactions counts as one.
    pub fn changes(&self) -> usize {
        self.phases.iter().map(|phase| phase.operations.len().max(1)).sum()
    }
}
