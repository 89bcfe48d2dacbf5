//! One line of a node's event file, read strictly: what a node writes is untrusted.

use base64::Engine;

use crate::ops::{Question, Reaction};

/// Longest event line that is read.
const LONGEST: usize = 256 * 1024;

/// Something a phase script reported; `op` is the operation's place in [`super::PhaseScript::operations`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeEvent {
    /// The script runs; so many operations are in it.
    Begin {
        /// Number of operations.
        operations: usize,
    },
    /// An operation began.
    Start {
        /// Which.
        op: usize,
    },
    /// It was already as wanted.
    Fine {
        /// Which.
        op: usize,
        /// How long it took.
        millis: u64,
    },
    /// It was changed and is as wanted.
    Changed {
        /// Which.
        op: usize,
        /// How long it took.
        millis: u64,
    },
    /// An operation (or, with `op` of `None`, a reaction or the script itself) failed; only `End` follows.
    Failed {
        /// Which.
        op: Option<usize>,
        /// What failed when it was no operation: the reaction.
        what: Option<Reaction>,
        /// `mend`, `observe`, `reaction`, `deadline`.
        during: String,
        /// Exit status, or -1.
        status: i32,
        /// The last lines it wrote (at most 20), as they came.
        tail: Vec<String>,
    },
    /// A reaction was carried out.
    Reacted {
        /// Which.
        reaction: Reaction,
        /// How long it took.
        millis: u64,
    },
    /// The answer to an operation's `yields` question.
    Yield {
        /// Which operation.
        op: usize,
        /// The question (without arguments).
        question: Question,
        /// The answer, to be read by a typed parser only.
        answer: String,
    },
    /// The script ended; 0 is well.
    End {
        /// Its status.
        status: i32,
    },
    /// Written by [`super::follow`]: the script is gone and has not written `End`.
    Gone,
}

/// Reads one line; `None` for anything that is not an event line of ours.
///
/// The fields are separated by tabs: `@`, milliseconds since the phase began, the kind, the rest.
pub fn parse_event_line(line: &str) -> Option<NodeEvent> {
    if line.len() > LONGEST {
        return None;
    }
    let line = line.strip_suffix('\n').unwrap_or(line);
    let fields: Vec<&str> = line.split('\t').collect();
    let (&["@", millis, kind], rest) = fields.split_first_chunk::<3>()? else { return None };
    millis.parse::<u64>().ok()?;
    Some(match (kind, rest) {
        ("begin", [operations]) => NodeEvent::Begin { operations: operations.parse().ok()? },
        ("start", [op]) => NodeEvent::Start { op: op.parse().ok()? },
        ("fine", [op, millis]) => NodeEvent::Fine { op: op.parse().ok()?, millis: millis.parse().ok()? },
        ("changed", [op, millis]) => NodeEvent::Changed { op: op.parse().ok()?, millis: millis.parse().ok()? },
        ("failed", [what, during, status, tail]) => {
            let op = what.parse().ok();
            NodeEvent::Failed {
                op,
                what: if op.is_none() { reaction_named(what) } else { None },
                during: match *during {
                    known @ ("mend" | "observe" | "reaction" | "deadline") => known.to_owned(),
                    _ => return None,
                },
                status: status.parse().ok()?,
                tail: text(tail)?.lines().map(str::to_owned).take(20).collect(),
            }
        }
        ("reacted", [name, millis]) => {
            NodeEvent::Reacted { reaction: reaction_named(name)?, millis: millis.parse().ok()? }
        }
        ("yield", [op, kind, key, answer]) => NodeEvent::Yield {
            op: op.parse().ok()?,
            question: Question { kind: (*kind).to_owned(), key: text(key)?, args: Vec::new() },
            answer: text(answer)?,
        },
        ("end", [status]) => NodeEvent::End { status: status.parse().ok()? },
        ("gone", []) => NodeEvent::Gone,
        _ => return None,
    })
}

/// A field in base64, as text.
fn text(field: &str) -> Option<String> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(field).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The name of a reaction's marker file on the node.
pub(super) fn reaction_name(reaction: &Reaction) -> String {
    match reaction {
        Reaction::Restart(unit) => format!("restart:{unit}"),
        Reaction::ReloadSysctl => "sysctl".to_owned(),
    }
}

/// The reaction of a marker file's name.
pub(super) fn reaction_named(name: &str) -> Option<Reaction> {
    if name == "sysctl" {
        return Some(Reaction::ReloadSysctl);
    }
    let unit = name.strip_prefix("restart:")?;
    crate::ops::service::is_unit_name(unit).then(|| Reaction::Restart(unit.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_are_read() {
        assert_eq!(parse_event_line("@\t5\tchanged\t3\t12"), Some(NodeEvent::Changed { op: 3, millis: 12 }));
        assert_eq!(
            parse_event_line("@\t5\tfailed\t0\tmend\t100\tYQpi\n"),
            Some(NodeEvent::Failed {
                op: Some(0),
                what: None,
                during: "mend".to_owned(),
                status: 100,
                tail: vec!["a".to_owned(), "b".to_owned()],
            })
        );
        assert_eq!(
            parse_event_line("@\t5\treacted\trestart:docker.service\t7"),
            Some(NodeEvent::Reacted { reaction: Reaction::Restart("docker.service".to_owned()), millis: 7 })
        );
        for bad in ["", "@", "@\tx\tend\t0", "@\t1\tend", "@\t1\tend\t0\t0", "@\t1\treacted\trestart:/x\t1"] {
            assert_eq!(parse_event_line(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_survived(line in "(@\t)?[0-9]{0,3}(\t[a-z0-9=\t]{0,20}){0,5}") {
            let _ = parse_event_line(&line);
        }
    }
}
