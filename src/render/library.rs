//! The shell library, compiled in: which functions a script needs, and their text.

use std::collections::BTreeSet;

/// Environment of every script.
pub(super) const PRELUDE: &str = include_str!("../../templates/engine/prelude.sh");
/// Functions of the start script.
pub(super) const START: &str = include_str!("../../templates/engine/start.sh");
/// Functions of the follow script.
pub(super) const FOLLOW: &str = include_str!("../../templates/engine/follow.sh");
/// Functions of the phase script.
const PHASE: &str = include_str!("../../templates/engine/phase.sh");
/// Small helpers that every observation may use.
const SEE: &str = include_str!("../../templates/engine/see.sh");
/// What every mend may use.
const MEND: &str = include_str!("../../templates/engine/mend.sh");

/// One kind of question: its name, its function, and the file that has both the function and the mends.
struct Kind {
    name: &'static str,
    function: &'static str,
    see: &'static str,
    mend: &'static str,
}

macro_rules! kinds {
    ($($name:literal),* $(,)?) => {
        &[$(Kind {
            name: $name,
            function: concat!("see_", $name),
            see: include_str!(concat!("../../templates/ops/", $name, ".see.sh")),
            mend: include_str!(concat!("../../templates/ops/", $name, ".sh")),
        }),*]
    };
}

/// All kinds of questions there are.
static KINDS: &[Kind] = kinds![
    "path", "secret", "block", "line", "package", "service", "user", "group", "sysctl", "module", "sshkey", "command",
    "hostname", "pending",
];

fn find(kind: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|known| known.name == kind)
}

/// Whether there is a function for this kind of question.
pub(super) fn knows(kind: &str) -> bool {
    find(kind).is_some()
}

/// The function that answers a kind of question; an unknown kind gets one that answers nothing.
pub(super) fn see_function(kind: &str) -> &'static str {
    find(kind).map_or(":", |known| known.function)
}

/// The observation functions for these kinds.
pub(super) fn see<'a>(kinds: impl Iterator<Item = &'a str>) -> String {
    let kinds: BTreeSet<&str> = kinds.collect();
    let mut text = SEE.to_owned();
    for kind in kinds.into_iter().filter_map(find) {
        text.push_str(kind.see);
    }
    text
}

/// Observation and mending functions for these kinds, and the engine.
pub(super) fn all<'a>(kinds: impl Iterator<Item = &'a str>) -> String {
    let kinds: BTreeSet<&str> = kinds.collect();
    let mut text = see(kinds.iter().copied());
    text.push_str(MEND);
    for kind in kinds.into_iter().filter_map(find) {
        text.push_str(kind.mend);
    }
    text.push_str(PHASE);
    text
}
