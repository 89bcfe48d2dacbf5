//! `provision status`: the plan, folded to one line a node.

use std::sync::Arc;

use super::contact::{self, block_on, client, listen, on_interrupt};
use super::session::{self, Contact, Refused};
use super::{Common, Format, plan, survey};
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
    let session = match session::open(arguments.manifest.as_deref(), &arguments.contact, true, common) {
        Ok(session) => session,
        Err(Refused(code)) => return code,
    };
    block_on(async {
        let cancel = on_interrupt();
        let quiet = Common { progress: super::Progress::None, ..common.clone() };
        let (context, listener) = listen(&arguments.contact, &quiet, &cancel, &session.wish.secrets, None);
        let client = client(&session.places.beside);
        let planned = survey::plan(&session, Arc::clone(&client), false, &context).await;
        drop(context);
        listener.end().await;
        survey::keep_accepted(&session, &client);
        contact::end(&client);
        if cancel.is_cancelled() {
            ui::output::say("interrupted: not all nodes were asked\n");
            return ExitCode::Interrupted;
        }
        let text = match common.format {
            Format::Json => ui::plan::json(&planned.plan).unwrap_or_default(),
            Format::Human => ui::status::human(&planned.plan, &ui::View::stdout()),
        };
        if ui::output::print(&text).is_err() {
            return ExitCode::Failed;
        }
        plan::code(&planned.plan, true)
    })
}
