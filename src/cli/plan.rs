//! `provision plan`: what would change.

use super::look::look;
use super::session::{self, Contact};
use super::{Common, Format};
use crate::diag::{ExitCode, Finding};
use crate::manifest::codes;
use crate::ui;

/// Show what would change, as diffs, equal nodes folded; nothing is written anywhere on a node
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  provision plan cluster.yaml --limit 'gpu[01-16],!gpu07' --out monday.plan")]
pub struct Arguments {
    /// The manifest; ./cluster.yaml when not given, - for standard input
    manifest: Option<String>,
    #[command(flatten)]
    contact: Contact,
    /// Save the plan; `provision apply FILE` does exactly this or refuses
    #[arg(long, value_name = "FILE")]
    out: Option<std::path::PathBuf>,
    /// Show the exact shell that would run on each node
    #[arg(long)]
    scripts: bool,
    /// Fold only nodes that are equal in every detail, and cut no diff
    #[arg(long)]
    full: bool,
    /// Exit 4 when changes are pending
    #[arg(long)]
    exit_code: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> ExitCode {
    look(arguments.manifest.as_deref(), &arguments.contact, common, false, |planned| {
        if let Some(path) = &arguments.out {
            let text = ui::json::pretty(&planned.plan).unwrap_or_default();
            if let Err(error) = crate::state::write_whole(path, text.as_bytes()) {
                let finding = Finding::input(codes::UNWRITABLE, format!("the plan was not saved: {error}"), None)
                    .fix("name another file with --out");
                return Err(session::end(ExitCode::Usage, finding, common));
            }
        }
        let text = match common.format {
            Format::Json => ui::plan::json(&planned.plan).unwrap_or_default(),
            Format::Human => {
                let scripts = if arguments.scripts {
                    super::scripts::all(&planned.jobs, &arguments.contact.deadlines())
                } else {
                    String::new()
                };
                scripts + &ui::plan::human(&planned.plan, &ui::View::stdout().full(arguments.full))
            }
        };
        Ok((text, arguments.exit_code))
    })
}
