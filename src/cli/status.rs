//! `provision status`: the plan, folded to one line a node.

use super::look::look;
use super::session::Contact;
use super::{Common, Format};
use crate::diag::ExitCode;
use crate::ui;

/// One line a node: up to date, changes pending, or left out and why
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  provision status cluster.yaml     exits 4 when changes are pending, 5 when a node was left out")]
pub struct Arguments {
    /// The manifest; ./cluster.yaml when not given, - for standard input
    manifest: Option<String>,
    #[command(flatten)]
    contact: Contact,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> ExitCode {
    look(arguments.manifest.as_deref(), &arguments.contact, common, true, |planned| {
        let text = match common.format {
            Format::Json => ui::plan::json(&planned.plan).unwrap_or_default(),
            Format::Human => ui::status::human(&planned.plan, &ui::View::stdout()),
        };
        Ok((text, true))
    })
}
