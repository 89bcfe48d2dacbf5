//! The `ssh` room against a real sshd on loopback. Needs root: it starts sshd and makes a user for a while.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test they help")]

#[path = "ssh/server.rs"]
mod server;

#[path = "ssh/host_keys.rs"]
mod host_keys;

#[path = "ssh/login.rs"]
mod login;

#[path = "ssh/scripts.rs"]
mod scripts;

#[path = "ssh/roots.rs"]
mod roots;

#[path = "ssh/ways.rs"]
mod ways;
