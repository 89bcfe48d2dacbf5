//! Starting a phase script on a node and following its events.

use crate::ops::{Question, Reaction};

use super::events::reaction_named;
use super::library;
use crate::shell::{Shell, call, quote};

/// The first exec of a phase: stores the script under `runs/ID` and starts it detached; does nothing when it
/// was started before.
///
/// Prints `started` or `already`; anything else, or a status other than 0, is a failure with its reason on
/// standard error.
pub fn start(base: &str, id: &str, script: &Shell) -> String {
    let mut text = String::from("provision_start() {\n");
    text.push_str(library::PRELUDE);
    text.push_str(library::START);
    text.push_str(&call("start_prepare", &[base, id]).text);
    for (name, secret) in &script.payloads {
        let Ok(word) = quote(secret.reveal()) else { continue };
        text.push_str(&format!("start_payload {name} {word}\n"));
    }
    text.push_str(&call("start_run", &[&script.text]).text);
    text.push_str("}\nprovision_start </dev/null\n");
    text
}

/// The second exec, and all that a reconnect needs: prints the event file from a byte offset on, as it grows.
///
/// Ends after the `end` line; when the script died without one, the last line reads as
/// [`super::NodeEvent::Gone`].
pub fn follow(base: &str, id: &str, offset: u64) -> String {
    let mut text = String::from("provision_follow() {\n");
    text.push_str(library::PRELUDE);
    text.push_str(library::FOLLOW);
    text.push_str(&call("follow_events", &[base, id, &offset.to_string()]).text);
    text.push_str("}\nprovision_follow </dev/null\n");
    text
}

/// Asks which reactions an earlier run left behind.
pub fn pending_question(base: &str) -> Question {
    Question { kind: "pending".to_owned(), key: "all".to_owned(), args: vec![base.to_owned()] }
}

/// Reads the answer to [`pending_question`]; names that are not ours are skipped.
pub fn parse_pending(answer: &str) -> Vec<Reaction> {
    answer.lines().filter_map(reaction_named).collect()
}
