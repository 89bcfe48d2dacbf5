//! `provision schema`: the JSON Schema of the manifest, for editors.

use super::print;
use crate::diag::ExitCode;

/// Prints the JSON Schema of the manifest, for editors.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  provision schema > .provision/schema.json")]
pub struct Arguments {}

/// Runs the command.
pub fn run(_: &Arguments) -> ExitCode {
    print(&crate::manifest::schema::schema())
}
