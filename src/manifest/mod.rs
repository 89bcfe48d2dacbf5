//! What the user wrote: the manifest as typed values, each with its place.

pub mod model;
