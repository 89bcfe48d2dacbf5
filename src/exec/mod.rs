//! The engine: asks nodes, runs phases on them, follows, reconnects.
//!
//! One node is one task; nodes wait for each other only where trust needs the others' keys. What happens is said in events; this
//! room does not know who shows or keeps them.

pub mod follow;
pub mod probe;
pub mod run;

use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

use crate::event::Event;

/// How long things may take; all overridable by the caller.
#[derive(Debug, Clone, Copy)]
pub struct Deadlines {
    /// From sending the probe to its last frame.
    pub probe: Duration,
    /// How long a lost link is tried again before the node counts as failed.
    pub reconnect: Duration,
    /// Silence of a phase, beyond the operation's own deadline on the node, before it counts as hung.
    pub silence: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Deadlines {
            probe: Duration::from_secs(30),
            reconnect: Duration::from_secs(120),
            silence: Duration::from_secs(35 * 60),
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
}

impl Context {
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
