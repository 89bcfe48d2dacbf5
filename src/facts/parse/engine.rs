//! What earlier runs left on the node.

use super::super::known::Known;
use super::super::model::{Facts, Run};
use super::Answers;
use super::text::{self, MOST};

/// Reads living runs and reactions that were not caught up.
pub(super) fn read(answers: &mut Answers<'_>, facts: &mut Facts) {
    if answers.has("runs") {
        let mut runs = Vec::new();
        for line in answers.lines("runs").take(MOST) {
            let run = line
                .split_once(' ')
                .and_then(|(id, pid)| Some(Run { id: text::name(id)?, pid: pid.parse().ok().filter(|pid| *pid > 1)? }));
            match run {
                Some(run) => runs.push(run),
                None => answers.problem("a running script of an earlier run", line),
            }
        }
        facts.running_runs = Known::Yes(runs);
    }
    if answers.has("pending") {
        facts.pending = Known::Yes(answers.lines("pending").take(MOST).filter_map(text::word).collect());
    }
}
