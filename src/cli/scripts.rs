//! `plan --scripts`: the exact shell of each phase, equal nodes each with their own.

use std::fmt::Write as _;

use crate::exec::Deadlines;
use crate::exec::run::{Job, phase_script};
use crate::plan::diff::{MESH_PHASE, NODE_PHASE};

/// The scripts of all jobs, secrets shown as `***`.
pub fn all<L>(jobs: &[Job<L>], deadlines: &Deadlines) -> String {
    let mut text = String::new();
    for job in jobs {
        for phase in [NODE_PHASE, MESH_PHASE] {
            let operations = job.work.phase(phase);
            let pending = if phase == NODE_PHASE { job.work.pending.clone() } else { Vec::new() };
            if operations.is_empty() && pending.is_empty() {
                continue;
            }
            let shown = phase_script(phase, &operations, pending, deadlines).shown();
            let _ = writeln!(text, "# {} phase {phase}\n{shown}", job.node.name);
        }
    }
    text
}
