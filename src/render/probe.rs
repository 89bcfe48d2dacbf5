//! The probe: facts and all questions of a node in one script that writes nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::ops::Question;

use super::library;
use crate::shell::quote;

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
    // Nothing changes while a probe runs, so that answers can be kept, and files of all kinds share one sha256sum.
    text.push_str("in_probe=yes\n");
    text.push_str(&format!("digests{}\n", digested(questions)));
    for (kind, groups) in &kinds {
        text.push_str(&format!("see_{kind} {}\n", groups.join(" \\\n  ")));
    }
    text.push_str("say 'done' ok\n}\nprovision_probe </dev/null\n");
    text
}

/// The files whose digest is asked, as quoted words: whole files, and files with a block that may be all there is.
fn digested(questions: &[Question]) -> String {
    let file = |question: &Question| match (question.kind.as_str(), question.args.as_slice()) {
        ("path", [digest]) if digest != "-" => quote(&question.key).ok(),
        ("block", [path, ..]) => quote(path).ok(),
        _ => None,
    };
    let files: BTreeSet<String> = questions.iter().filter_map(file).collect();
    files.iter().fold(String::new(), |text, file| text + " " + file)
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
