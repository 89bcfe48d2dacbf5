//! The phase script: observe again, mend, observe, report; then the reactions.

use crate::ops::{Check, Op, Pattern, Question, Reaction, WILD};

use super::events::{reaction_name, reaction_named};
use super::library;
use crate::shell::{Argument, Shell, call, call_with, quote};

/// One operation in a phase.
#[derive(Debug, Clone)]
pub struct OpScript {
    /// [`Op::id`].
    pub id: String,
    /// [`Op::checks`].
    pub checks: Vec<Check>,
    /// [`Op::mend`].
    pub mend: Shell,
    /// [`Op::triggers`].
    pub reactions: Vec<Reaction>,
    /// [`Op::yields`].
    pub yields: Option<Question>,
    /// Seconds it may take.
    pub deadline: u32,
    /// The arguments of its checks hold secrets and must not stand in the kept script.
    pub hidden: bool,
}

impl OpScript {
    /// Asks an operation for all of it.
    pub fn of(op: &dyn Op) -> Self {
        OpScript {
            id: op.id(),
            checks: op.checks(),
            mend: op.mend(),
            reactions: op.triggers(),
            yields: op.yields(),
            deadline: op.deadline(),
            hidden: op.hides(),
        }
    }
}

/// All that makes a phase script.
#[derive(Debug, Clone)]
pub struct PhaseScript<'a> {
    /// The base directory, [`super::BASE`] but in tests.
    pub base: &'a str,
    /// The folder's name under `runs/`: `20261201T101500Z-abcd.1`.
    pub id: &'a str,
    /// The run's ID.
    pub run: &'a str,
    /// The phase's name.
    pub phase: &'a str,
    /// Who: `user@host`.
    pub by: &'a str,
    /// Hash of the manifest.
    pub manifest: &'a str,
    /// What to do, in order.
    pub operations: Vec<OpScript>,
    /// Reactions to carry out even when nothing here triggers them. Markers on the node are honoured anyway.
    pub pending: Vec<Reaction>,
}

/// Renders a phase.
pub fn phase(script: &PhaseScript) -> Shell {
    let mut shell = Shell { text: "#!/bin/sh\nprovision_phase() {\n".to_owned(), ..Shell::default() };
    shell.text.push_str(library::PRELUDE);
    shell.text.push_str("say() { :; }\n");
    let loads_at = shell.text.len();
    let kinds = script.operations.iter().flat_map(|op| {
        op.checks.iter().map(|check| &check.question).chain(&op.yields).map(|question| question.kind.as_str())
    });
    shell.text.push_str(&library::all(kinds));
    let journal = serde_json::json!({
        "format": 1, "run": script.run, "phase": script.phase, "by": script.by, "manifest": script.manifest,
    });
    let journal = journal.to_string();
    let journal = journal.strip_suffix('}').unwrap_or(&journal);
    shell.push(call("phase_begin", &[script.base, script.id, journal, &script.operations.len().to_string()]));
    for (index, op) in script.operations.iter().enumerate() {
        operation(&mut shell, index, op);
    }
    for name in script.pending.iter().map(reaction_name).filter(|name| reaction_named(name).is_some()) {
        shell.push(call("phase_pending", &[&name]));
    }
    shell.text.push_str("phase_end\n}\nprovision_phase </dev/null\n");
    let mut loads = String::from("phase_loads() {\n:\n");
    for name in shell.payloads.keys() {
        loads.push_str(&format!("payload {name}; payload_{name}=$payload\n"));
    }
    loads.push_str("}\n");
    shell.text.insert_str(loads_at, &loads);
    shell
}

/// One operation: its checks and mend as functions, then the engine's loop body.
fn operation(shell: &mut Shell, index: usize, op: &OpScript) {
    // The id stands in a comment for people who read the script on the node.
    let id: String = op.id.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    shell.text.push_str(&format!("# {index}: {id}\nagrees_{index}() {{\n"));
    for check in &op.checks {
        ask(shell, op, &check.question);
        let patterns: Vec<String> = check.wanted.iter().filter_map(case_pattern).collect();
        if patterns.is_empty() {
            shell.text.push_str("wanted=nothing\nreturn 1\n");
        } else {
            let wanted = call("wanted", &[&wanted_words(check)]).text.replacen("wanted ", "wanted=", 1);
            let wanted = wanted.trim_end();
            shell
                .text
                .push_str(&format!("case $answer in {}) ;; *)\n{wanted}\nreturn 1 ;; esac\n", patterns.join(" | ")));
        }
    }
    shell.text.push_str(&format!("return 0\n}}\nmend_{index}() {{\n"));
    // A reaction becomes the name of a file on the node: what is no unit's name never gets that far.
    if op.reactions.iter().any(|reaction| reaction_named(&reaction_name(reaction)).is_none()) {
        shell.push(call("refuse", &["a unit to restart has a name that systemd does not allow"]));
    }
    shell.push(op.mend.clone());
    shell.text.push_str("}\n");
    let mut arguments = vec![index.to_string(), op.deadline.to_string()];
    arguments.extend(op.reactions.iter().map(reaction_name).filter(|name| reaction_named(name).is_some()));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    shell.push(call("phase_operation", &arguments));
    if let Some(question) = &op.yields {
        ask(shell, op, question);
        shell.push(call("phase_yield", &[&index.to_string(), &question.kind, &question.key]));
    }
}

/// `answer=$(see_KIND ...)`, with the arguments beside the script when they are secret.
fn ask(shell: &mut Shell, op: &OpScript, question: &Question) {
    let function = library::see_function(&question.kind);
    let mut arguments = vec![Argument::Plain(&question.key)];
    let secrets: Vec<crate::secret::Secret> =
        question.args.iter().map(|text| crate::secret::Secret::new(text.clone())).collect();
    if op.hidden {
        arguments.extend(secrets.iter().map(Argument::Secret));
    } else {
        arguments.extend(question.args.iter().map(|text| Argument::Plain(text)));
    }
    let mut asked = call_with(function, &format!("{} asks {}", op.id, question.key), &arguments);
    asked.text = format!("answer=$({})\n", asked.text.trim_end_matches('\n'));
    shell.push(asked);
}

/// What is wanted, for people: short, wild spots as `*`.
fn wanted_words(check: &Check) -> String {
    let words: Vec<String> = check.wanted.iter().take(3).map(|pattern| pattern.0.replace(WILD, "*")).collect();
    words.join("\" or \"").chars().filter(|c| !c.is_control()).take(300).collect()
}

/// A pattern as a `case` pattern; `None` when it holds a NUL and so can never match.
fn case_pattern(pattern: &Pattern) -> Option<String> {
    let mut parts = Vec::new();
    for part in pattern.0.split(WILD) {
        parts.push(if part.is_empty() { String::new() } else { quote(part).ok()? });
    }
    let text = parts.join("*");
    Some(if text.is_empty() { "''".to_owned() } else { text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_name_with_a_path_never_becomes_a_file() {
        let op = OpScript {
            id: "x".to_owned(),
            checks: Vec::new(),
            mend: Shell::default(),
            reactions: vec![Reaction::Restart("../../x".to_owned())],
            yields: None,
            deadline: 1,
            hidden: false,
        };
        let mut shell = Shell::default();
        operation(&mut shell, 0, &op);
        assert!(shell.text.contains("refuse 'a unit") && !shell.text.contains("../.."), "{}", shell.text);
    }
}
