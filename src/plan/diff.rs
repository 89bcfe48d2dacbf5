//! From wish and answers to the plan: which operations differ, in which phase.

use crate::diag::Finding;
use crate::event::LeftOut;
use crate::facts::Facts;
use crate::manifest::model::{Manifest, Node};
use crate::ops::{Change, Difference, Op, Question, Reaction, Seen};
use crate::render;
use crate::secret::Secrets;
use crate::steps::{self, Cluster, NodeContext, SideFiles, StepOp, When};

use super::{NodePlan, OpPlan, PhasePlan};

/// Everything that stays the same for a run: wish, side files, secrets.
#[derive(Debug)]
pub struct Wish {
    /// The manifest.
    pub manifest: Manifest,
    /// Files beside it.
    pub files: SideFiles,
    /// Resolved secrets.
    pub secrets: Secrets,
}

/// A node's operations that differ, ready to be made a plan or a script.
pub struct Work {
    /// The operations in order.
    pub operations: Vec<Differing>,
    /// Reactions a run that died has left to do.
    pub pending: Vec<Reaction>,
}

/// One operation that differs.
pub struct Differing {
    /// Its step.
    pub step: &'static str,
    /// The phase it can run in.
    pub when: When,
    /// The operation.
    pub op: Box<dyn Op>,
    /// What would change.
    pub change: Change,
    /// Why it cannot be known yet.
    pub later: Option<String>,
}

/// Name of the phase that waits for nothing.
pub const NODE_PHASE: &str = "node";
/// Name of the phase that needs the others' keys.
pub const MESH_PHASE: &str = "mesh";

/// Whether a node that was asked with an older wish answered with just the block that is wanted now: its answer is the
/// digest, and for people the content below it.
fn same_block(op: &dyn Op, seen: &Seen) -> bool {
    op.checks().iter().all(|check| {
        let answer = seen.answer(&check.question.kind, &check.question.key);
        let digest = answer.and_then(|answer| answer.split('\n').next());
        check.question.kind == "block" && digest.is_some_and(|it| check.wanted.iter().any(|one| one.matches(it)))
    })
}

impl Wish {
    /// The operations of a node.
    ///
    /// # Errors
    /// Findings when the wish cannot be turned into operations.
    pub fn operations(
        &self,
        node: &Node,
        facts: Option<&Facts>,
        seen: &Seen,
        cluster: &Cluster,
    ) -> Result<Vec<StepOp>, Vec<Finding>> {
        steps::all(&NodeContext {
            manifest: &self.manifest,
            node,
            facts,
            seen,
            cluster,
            files: &self.files,
            secrets: &self.secrets,
        })
    }

    /// All questions of a node's operations, each once.
    pub fn questions(&self, node: &Node, facts: Option<&Facts>, seen: &Seen, cluster: &Cluster) -> Vec<Question> {
        let operations = self.operations(node, facts, seen, cluster).unwrap_or_default();
        let mut questions: Vec<Question> = operations
            .iter()
            .flat_map(|placed| placed.op.checks().into_iter().map(|check| check.question).chain(placed.op.yields()))
            .collect();
        questions.sort();
        questions.dedup_by(|a, b| a.kind == b.kind && a.key == b.key);
        questions
    }

    /// Compares wish and answers of one node.
    ///
    /// # Errors
    /// Why it cannot be planned: an answer that could not be read, a wish that makes no operations.
    pub fn work(&self, node: &Node, facts: &Facts, seen: &Seen, cluster: &Cluster) -> Result<Work, LeftOut> {
        let operations = self.operations(node, Some(facts), seen, cluster).map_err(|findings| LeftOut {
            kind: "wish".to_owned(),
            what: findings
                .iter()
                .map(|finding| format!("{}: {}", finding.code, finding.title))
                .collect::<Vec<_>>()
                .join("; "),
            because: findings.iter().flat_map(|finding| finding.because.clone()).collect(),
            fix: findings.iter().flat_map(|finding| finding.fix.clone()).collect(),
        })?;
        let mut differing = Vec::new();
        let mut unreadable = Vec::new();
        for StepOp { step, when, op } in operations {
            let (change, later) = match op.differ(seen) {
                Difference::None => continue,
                Difference::Change(_) if same_block(&*op, seen) => continue,
                Difference::Change(change) => (change, None),
                Difference::Later(reason) => (Change { title: op.id(), diff: Vec::new() }, Some(reason)),
                Difference::Unreadable(reason) => {
                    unreadable.push(format!("{}: {reason}", op.id()));
                    continue;
                }
            };
            differing.push(Differing { step, when, op, change, later });
        }
        if !unreadable.is_empty() {
            return Err(LeftOut {
                kind: "probe".to_owned(),
                what: format!("{} of its answers could not be read", unreadable.len()),
                because: unreadable,
                fix: vec!["see whether the login user may become root there (ssh.become: sudo)".to_owned()],
            });
        }
        Ok(Work {
            operations: differing,
            pending: render::parse_pending(&facts.pending.yes().map(|names| names.join("\n")).unwrap_or_default()),
        })
    }
}

impl Work {
    /// Whether the mesh has a phase of its own: only where something waits.
    pub fn split(&self) -> bool {
        self.operations.iter().any(|differing| differing.later.is_some())
    }

    /// The operations of one phase; all are in `node` when nothing waits.
    pub fn phase(&self, name: &str) -> Vec<&Differing> {
        let split = self.split();
        let mesh = |differing: &Differing| split && differing.when == When::Mesh;
        self.operations.iter().filter(|differing| mesh(differing) == (name == MESH_PHASE)).collect()
    }

    /// The plan of this work.
    pub fn plan(&self, facts: &Facts, host_key: String, seen: &Seen) -> NodePlan {
        let mut phases = Vec::new();
        for name in [NODE_PHASE, MESH_PHASE] {
            let differing = self.phase(name);
            let mut reactions: Vec<Reaction> = differing.iter().flat_map(|differing| differing.op.triggers()).collect();
            if name == NODE_PHASE {
                reactions.extend(self.pending.iter().cloned());
            }
            reactions.sort();
            reactions.dedup();
            if differing.is_empty() && reactions.is_empty() {
                continue;
            }
            let operations = differing
                .iter()
                .map(|differing| OpPlan {
                    step: differing.step.to_owned(),
                    id: differing.op.id(),
                    change: differing.change.clone(),
                    later: differing.later.clone(),
                })
                .collect();
            phases.push(PhasePlan { name: name.to_owned(), operations, reactions });
        }
        let mut observed = Seen::default();
        for differing in &self.operations {
            for check in differing.op.checks() {
                let Question { kind, key, .. } = check.question;
                if let Some(answer) = seen.answer(&kind, &key) {
                    observed.insert(&kind, &key, answer.to_owned());
                }
            }
        }
        NodePlan {
            machine_id: facts.machine_id.yes().cloned().unwrap_or_default(),
            boot_id: facts.boot_id.yes().cloned().unwrap_or_default(),
            host_key,
            phases,
            observed,
            running: facts.running_runs.yes().and_then(|runs| runs.first()).map(|run| run.id.clone()),
        }
    }
}
