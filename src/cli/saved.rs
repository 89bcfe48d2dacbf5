//! Saved plans: reading one, and saying what no longer agrees with it.

use std::collections::BTreeMap;

use crate::plan::{NodePlan, PhasePlan, Plan};

/// The format this build writes and the newest it reads.
const FORMAT: u64 = 1;

/// Reads a plan file; `None` when the file is not one (then it is a manifest).
///
/// # Errors
/// What is wrong with the plan file.
pub fn read(path: &str) -> Result<Option<Plan>, String> {
    if path == "-" {
        return Ok(None);
    }
    let Ok(text) = std::fs::read_to_string(path) else { return Ok(None) };
    if !is_plan(&text) {
        return Ok(None);
    }
    let value: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| format!("{path} is no whole plan: {error}"))?;
    let format = value.get("provision_plan").and_then(serde_json::Value::as_u64).unwrap_or(0);
    if format > FORMAT {
        return Err(format!(
            "{path} is a plan of format {format}; this build reads up to {FORMAT}; use a newer provision"
        ));
    }
    serde_json::from_value(value).map(Some).map_err(|error| format!("{path} is no plan: {error}"))
}

/// Whether a text is a plan: JSON whose first key says so.
pub fn is_plan(text: &str) -> bool {
    let begins = text.trim_start().strip_prefix('{').map(str::trim_start);
    begins.is_some_and(|rest| rest.starts_with("\"provision_plan\""))
}

/// Which file that the plan was made from has changed since.
pub fn inputs_changed(plan: &Plan, now: &BTreeMap<String, String>) -> Option<String> {
    let changed = now.iter().find(|(path, hash)| plan.inputs.get(*path) != Some(*hash)).map(|(path, _)| path);
    let gone = plan.inputs.keys().find(|path| !now.contains_key(*path));
    changed.or(gone).map(|path| format!("{path} has changed since"))
}

/// What differs between the saved plan and the plan made now, if anything; nodes that cannot be planned now are no
/// difference, they are left out.
pub fn differs(saved: &Plan, now: &Plan) -> Option<String> {
    saved.nodes.iter().find_map(|(name, was)| {
        let is = now.nodes.get(name)?;
        node_differs(was, is).map(|what| format!("{name}: {what}"))
    })
}

/// The phases without the words on what is not known yet: with `--limit`, fewer keys are made in the run.
fn sure(phases: &[PhasePlan]) -> Vec<PhasePlan> {
    let mut phases = phases.to_vec();
    for operation in phases.iter_mut().flat_map(|phase| &mut phase.operations) {
        operation.later = operation.later.as_ref().map(|_| String::new());
    }
    phases
}

fn node_differs(was: &NodePlan, is: &NodePlan) -> Option<String> {
    if was.host_key != is.host_key {
        return Some("it shows another host key".to_owned());
    }
    if was.machine_id != is.machine_id {
        return Some(format!("it is another machine (machine-id {}, was {})", is.machine_id, was.machine_id));
    }
    if was.boot_id != is.boot_id {
        return Some("it was rebooted since".to_owned());
    }
    for (kind, answers) in &was.observed.0 {
        for (key, answer) in answers {
            if is.observed.answer(kind, key) != Some(answer) {
                return Some(format!("{kind} {key} is no longer what the plan saw"));
            }
        }
    }
    (sure(&was.phases) != sure(&is.phases)).then(|| "other operations differ now than when it was made".to_owned())
}
