//! The probe: facts and all questions of a node in one script that writes nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::ops::Question;

use super::{library, quote};

/// The one script of a converged node.
///
/// `facts_script` is shell that prints frames of kind `fact` through `say` (`say fact os-release; cat
/// /etc/os-release`). All questions of one kind are asked in one call. The whole text is one function called on the
/// last line, so that a script that was cut off runs nothing. Questions of a kind the library does not have,
/// and questions with a NUL byte, stay unanswered. `nonce` must be letters and digits.
pub fn probe(facts_script: &str, questions: &[Question], nonce: &str) -> String {
    let mut kinds: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let distinct: BTreeSet<&Question> = questions.iter().collect();
    for question in distinct {
        if !library::knows(&question.kind) {
            continue;
        }
        if let Some(words) = words(question) {
            kinds.entry(&question.kind).or_default().push(words);
        }
    }
    let mut text = String::from("provision_probe() {\n");
    text.push_str(library::PRELUDE);
    text.push_str(&format!("say() {{ printf '\\n@@%s %s %s\\n' {nonce} \"$1\" \"$2\"; }}\n"));
    text.push_str(&library::see(kinds.keys().copied()));
    text.push_str(facts_script);
    text.push('\n');
    for (kind, groups) in &kinds {
        text.push_str(&format!("see_{kind} {}\n", groups.join(" \\\n  ")));
    }
    text.push_str("say 'done' ok\n}\nprovision_probe </dev/null\n");
    text
}

/// Key and arguments as quoted words.
pub(super) fn words(question: &Question) -> Option<String> {
    let mut text = quote(&question.key).ok()?;
    for argument in &question.args {
        text.push(' ');
        text.push_str(&quote(argument).ok()?);
    }
    Some(text)
}
