//! What a node is: the questions, one pure parser for each answer, and the facts as JSON and for people.
//!
//! It knows nothing of SSH, of manifests or of what anybody wants from a node. Whatever a node says is untrusted text: it
//! becomes a typed value (address, version, name, key) or is dropped.

mod human;
mod known;
mod model;
mod parse;
mod probe;

pub use human::human;
pub use known::Known;
pub use model::{
    Container, Driver, Environment, Facts, Gpu, Interface, Library, Limits, Memlock, Os, PackageManager, Prefixed,
    Rdma, RdmaDevice, Run,
};
pub use parse::parse;
pub use probe::{Depth, script};

/// The facts as JSON text with a final newline, as in `facts --out DIR/NODE.json`.
///
/// # Errors
/// Never for values of this type; the writer's signature says it could.
pub fn to_json(facts: &Facts) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(facts).map(|text| text + "\n")
}

/// Reads what [`to_json`] wrote, or a facts file written by hand; keys not known here are passed over.
///
/// # Errors
/// What is wrong, with line and column.
pub fn from_json(text: &str) -> Result<Facts, serde_json::Error> {
    serde_json::from_str(text)
}
