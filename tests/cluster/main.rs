//! The program against real nodes: systemd, sshd and apt in a practice cluster of the test's own.
//!
//! Needs root on Debian 12, as `scripts/test` prepares it. Each test makes its lab under a name of its own and takes
//! it down at the end, also when it fails.

#![cfg(feature = "lab")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails, and clippy knows only `#[test]` functions as tests"
)]

mod apply;
mod edges;
mod faults;
mod recovery;
mod support;
mod wishes;
