//! How plans, events and findings look; how they came about is not known here.

pub mod findings;
pub mod snippet;
