//! What the user wrote: the manifest as typed values, each with its place.
//!
//! [`load`] reads the text into a tree (`tree`), holds it against the tables of keys (`tables`, `decode`, `form`),
//! merges the layers (`layer`) and makes typed values (`settings`, `nodes`). It gets text and gives values; files,
//! nodes and versions are other rooms' business.

pub mod codes;
mod decode;
mod form;
mod layer;
pub mod model;
mod nodes;
pub mod schema;
mod settings;
pub mod tables;
pub mod tree;

use std::sync::Arc;

use crate::diag::{Finding, Severity};
pub use model::Manifest;

/// Reads a manifest: all findings in the order of their places, and the manifest when none of them is an error.
pub fn load(file: &str, text: &str) -> (Option<Manifest>, Vec<Finding>) {
    let name: Arc<str> = Arc::from(file);
    let mut findings = Vec::new();
    let Some(mut root) = tree::parse(&name, text, &mut findings) else {
        if findings.is_empty() {
            let place = tree::spot(text, 0, 0).place(&name);
            findings.push(
                Finding::input(codes::MISSING, "the manifest is empty", Some(place))
                    .because("expected at least version, cluster and nodes")
                    .fix("`provision init` writes a manifest to start from"),
            );
        }
        return (None, findings);
    };
    let mut decoder = decode::Decoder::new(&name, findings);
    decoder.top(&mut root);
    let manifest = nodes::assemble(&mut decoder, &name, &Arc::from(text), &root);
    let mut findings = decoder.findings;
    findings.sort_by_key(|finding| finding.at.as_ref().map(|place| (place.line, place.column)));
    let broken = findings.iter().any(|finding| finding.severity == Severity::Error);
    ((!broken).then_some(manifest), findings)
}

impl Manifest {
    /// One error for each part that is wanted and has no step in this build, for commands that would act.
    pub fn refuse_unbuilt(&self) -> Vec<Finding> {
        let refuse = |part: &crate::diag::Placed<String>| {
            let title = format!("this build has no step for {}", part.value);
            Finding::input(codes::NO_STEP, title, Some(part.place.clone()))
                .because("plan, apply and status refuse a wish that they cannot fulfil or compare")
                .fix(format!("remove {} from the manifest; what is on the nodes is left alone then", part.value))
        };
        self.unbuilt.iter().map(refuse).collect()
    }
}
