//! The engine: asks nodes, runs phases on them, follows, reconnects.
//!
//! One node is one task; nodes wait for each other only where trust needs the others' keys. What happens is said in events; this
//! room does not know who shows or keeps them.

pub mod follow;
pub mod probe;
pub mod run;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

use crate::event::Event;
use crate::secret::Secret;

/// How long things may take; all overridable by the caller.
#[derive(Debug, Clone)]
pub struct Deadlines {
    /// From sending the probe to its last frame.
    pub probe: Duration,
    /// How long a lost link is tried again before the node counts as failed.
    pub reconnect: Duration,
    /// Silence of a phase before it counts as hung; longer than any operation's own deadline on the node.
    pub silence: Duration,
    /// What replaces the operations' own deadlines, by step.
    pub steps: BTreeMap<String, Duration>,
}

/// Margin between the longest deadline on the node and the silence that counts as hung.
const MARGIN: Duration = Duration::from_secs(5 * 60);

impl Deadlines {
    /// Replaces one: `probe`, `reconnect`, or a step.
    pub fn set(&mut self, name: &str, value: Duration) {
        match name {
            "probe" => self.probe = value,
            "reconnect" => self.reconnect = value,
            _ => {
                self.steps.insert(name.to_owned(), value);
                self.silence = self.silence.max(value + MARGIN);
            }
        }
    }
}

impl Default for Deadlines {
    fn default() -> Self {
        Deadlines {
            probe: Duration::from_secs(30),
            reconnect: Duration::from_secs(120),
            silence: Duration::from_secs(35 * 60),
            steps: BTreeMap::new(),
        }
    }
}

/// What every part of the engine shares during one run.
#[derive(Clone)]
pub struct Context {
    /// Where events go.
    pub events: UnboundedSender<Event>,
    /// Where what nodes wrote goes: node and text.
    pub logs: UnboundedSender<(String, String)>,
    /// Set by Ctrl-C: no new phase, following ends.
    pub cancel: CancellationToken,
    /// How long things may take.
    pub deadlines: Deadlines,
    /// How many nodes are worked on at once.
    pub max_parallel: usize,
    /// Values that are hidden in what nodes say.
    pub secrets: Arc<[Secret]>,
}

/// A secret shorter than this is not looked for in what nodes say: it would hide half of the text and tell what it is.
const SHORTEST_HIDDEN: usize = 4;

impl Context {
    /// A text from a node without the secrets that a failing command may have printed.
    pub fn hide(&self, text: &str) -> String {
        // A line of a longer secret is one too, and the longest goes first, so that no end of it is left standing.
        let lines = self.secrets.iter().flat_map(|secret| secret.reveal().lines());
        let whole = self.secrets.iter().map(Secret::reveal);
        let mut known: Vec<&str> = whole.chain(lines).filter(|value| value.len() >= SHORTEST_HIDDEN).collect();
        known.sort_by_key(|value| std::cmp::Reverse(value.len()));
        known
            .into_iter()
            .fold(text.to_owned(), |text, value| if text.contains(value) { text.replace(value, "***") } else { text })
    }

    /// Sends an event; nobody listening is no error.
    pub fn say(&self, event: Event) {
        let _ = self.events.send(event);
    }
}

/// A nonce for frames: new for each exec, so that no content can pretend to be a frame.
pub fn nonce() -> String {
    use std::hash::{BuildHasher as _, Hasher as _};
    // The standard hasher is seeded from the system's randomness.
    let half = || std::collections::hash_map::RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", half(), half())
}
