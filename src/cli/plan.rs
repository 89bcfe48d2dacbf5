//! `provision plan`: what would change.

use std::sync::Arc;

use super::contact::{self, block_on, client, listen, on_interrupt};
use super::session::{self, Contact, Refused};
use super::{Common, Format, survey};
use crate::diag::{ExitCode, Finding};
use crate::manifest::codes;
use crate::plan::Plan;
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
    let session = match session::open(arguments.manifest.as_deref(), &arguments.contact, true, common) {
        Ok(session) => session,
        Err(Refused(code)) => return code,
    };
    block_on(async {
        let cancel = on_interrupt();
        let (context, listener) = listen(&arguments.contact, common, &cancel, &session.wish.secrets, None);
        let client = client(&session.places.beside);
        context.say(session.asking());
        let planned = survey::plan(&session, Arc::clone(&client), false, &context).await;
        drop(context);
        listener.end().await;
        survey::keep_accepted(&session, &client);
        contact::end(&client);
        if cancel.is_cancelled() {
            ui::output::say("interrupted: no plan was made\n");
            return ExitCode::Interrupted;
        }
        if let Some(path) = &arguments.out {
            let text = ui::json::pretty(&planned.plan).unwrap_or_default();
            if let Err(error) = crate::state::write_whole(path, text.as_bytes()) {
                let finding = Finding::input(codes::UNWRITABLE, format!("the plan was not saved: {error}"), None)
                    .fix("name another file with --out");
                return session::end(ExitCode::Usage, finding, common);
            }
        }
        let text = match common.format {
            Format::Json => ui::plan::json(&planned.plan).unwrap_or_default(),
            Format::Human => {
                let mut text = String::new();
                if arguments.scripts {
                    text.push_str(&super::scripts::all(&planned.jobs));
                }
                text.push_str(&ui::plan::human(&planned.plan, &ui::View::stdout().full(arguments.full)));
                text
            }
        };
        if ui::output::print(&text).is_err() {
            return ExitCode::Failed;
        }
        code(&planned.plan, arguments.exit_code)
    })
}

/// The exit code of a plan that was only shown.
pub fn code(plan: &Plan, pending: bool) -> ExitCode {
    let mut code = ExitCode::Done;
    if pending && plan.nodes.values().any(|node| !node.phases.is_empty()) {
        code = code.worst(ExitCode::Pending);
    }
    if !plan.left_out.is_empty() {
        code = code.worst(ExitCode::LeftOut);
    }
    code
}
