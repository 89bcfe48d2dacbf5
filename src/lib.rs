//! `provision` brings GPU clusters to life: manifest, facts, plan, apply, report.
//!
//! Read `ARCHITECTURE.md` for the rooms and what may import what.

pub mod cli;
pub mod diag;
pub mod event;
pub mod exec;
pub mod facts;
pub mod identity;
#[cfg(feature = "lab")]
pub mod lab;
pub mod manifest;
pub mod nodeset;
pub mod ops;
pub mod plan;
pub mod render;
pub mod secret;
pub mod shell;
pub mod ssh;
pub mod state;
pub mod steps;
pub mod ui;
