//! What the user wrote: the manifest as typed values, each with its place.

pub mod codes;
pub mod model;
pub mod tables;
pub mod tree;
