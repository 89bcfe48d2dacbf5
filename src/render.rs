//! Scripts: the probe, the phase script, starting and following it.
//!
//! All shell that runs on a node stands in `templates/*.sh` as functions. What is rendered are only calls of these
//! functions, made by [`crate::shell`]. This room knows nothing of connections, plans or screens.

mod document;
mod events;
mod frames;
mod library;
mod phase;
mod probe;
mod run;

pub use document::document;
pub use events::{NodeEvent, parse_event_line};
pub use frames::{FrameError, Frames, parse_frames};
pub use phase::{OpScript, PhaseScript, phase};
pub use probe::probe;
pub use run::{follow, parse_pending, pending_question, start};

/// Where everything of ours lives on a node; tests use another place.
pub const BASE: &str = "/var/lib/provision";
