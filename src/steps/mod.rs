//! Steps: capabilities made of operations, one file each.
//!
//! A step turns a node's wish, its facts and what is known of its peers into operations. It does not know how they
//! are run; [`When`] says what they wait for.

pub mod base;
pub mod trust;
pub mod user;

use std::collections::{BTreeMap, BTreeSet};

use crate::diag::{Finding, Place};
use crate::facts::Facts;
use crate::identity::Identities;
use crate::manifest::codes;
use crate::manifest::model::{Manifest, Node};
use crate::ops::names::BadValue;
use crate::ops::{Op, Seen};
use crate::secret::Secrets;

/// What all nodes of a run share.
#[derive(Debug, Clone, Default)]
pub struct Cluster {
    /// Who the nodes are: `NAME.nodes`, and over it what this run has seen.
    pub identities: Identities,
    /// Nodes whose trust key is made in this run and not known yet.
    pub coming: BTreeSet<String>,
}

/// Files beside the manifest that it refers to, by the path as written.
pub type SideFiles = BTreeMap<String, Vec<u8>>;

/// Everything a step may look at.
#[derive(Clone, Copy)]
pub struct NodeContext<'a> {
    /// The whole manifest.
    pub manifest: &'a Manifest,
    /// The node.
    pub node: &'a Node,
    /// Its facts, `None` before the first contact.
    pub facts: Option<&'a Facts>,
    /// Its answers so far.
    pub seen: &'a Seen,
    /// Its peers.
    pub cluster: &'a Cluster,
    /// Files beside the manifest.
    pub files: &'a SideFiles,
    /// Values of secret references.
    pub secrets: &'a Secrets,
}

/// What an operation waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum When {
    /// Nothing outside the node.
    Node,
    /// The public keys of its peers.
    Mesh,
}

/// An operation in its step.
pub struct StepOp {
    /// The step's name.
    pub step: &'static str,
    /// When it can run.
    pub when: When,
    /// The operation.
    pub op: Box<dyn Op>,
}

/// Adds an operation, or the finding that says why its values cannot make one.
pub(crate) fn push<O: Op + 'static>(
    step: &'static str,
    when: When,
    place: &Place,
    operations: &mut Vec<StepOp>,
    findings: &mut Vec<Finding>,
    made: Result<O, BadValue>,
) {
    match made {
        Ok(op) => operations.push(StepOp { step, when, op: Box::new(op) }),
        Err(bad) => findings.push(
            Finding::input(codes::BAD_VALUE, bad.to_string(), Some(place.clone()))
                .fix("correct the value in the manifest"),
        ),
    }
}

/// All operations of a node, in order.
///
/// # Errors
/// What in the wish cannot be turned into operations: a template that does not render, a bad value.
pub fn all(context: &NodeContext<'_>) -> Result<Vec<StepOp>, Vec<Finding>> {
    let mut operations = Vec::new();
    let mut findings = Vec::new();
    trust::key(context, &mut operations, &mut findings);
    base::operations(context, &mut operations, &mut findings);
    user::operations(context, &mut operations, &mut findings);
    trust::mesh(context, &mut operations, &mut findings);
    if findings.is_empty() { Ok(operations) } else { Err(findings) }
}
