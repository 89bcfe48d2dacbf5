//! How plans, events and reports look: on a terminal, in a pipe, as JSON.
//!
//! Data goes to stdout, talk to stderr. The texts are made by pure functions that give a `String`; only
//! [`output`] and [`progress`] write. Nothing here knows of SSH, files or how a plan came about, and whatever a
//! node or a manifest says is shown through [`safe`] before it meets a terminal.

pub mod findings;
mod fold;
pub mod json;
pub mod log;
pub mod output;
pub mod plan;
pub mod progress;
pub mod report;
pub mod snippet;
pub mod status;
mod style;
mod text;

pub use output::confirm;
pub use style::{Palette, View};
pub use text::safe;

#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;
