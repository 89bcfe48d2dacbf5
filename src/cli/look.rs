//! Asking without changing: what `plan` and `status` have in common.

use std::sync::Arc;

use super::contact::{self, block_on, client, listen, on_interrupt};
use super::session::{self, Contact, Refused};
use super::survey::{self, Planned};
use super::{Common, Progress};
use crate::diag::ExitCode;
use crate::ssh::SshConnector;
use crate::ui;

/// What to print of a plan, and whether pending changes count in the exit code; or the code of what went wrong and was said.
pub type Shown = Result<(String, bool), ExitCode>;

/// Opens the manifest, asks its nodes, and prints what `show` makes of the plan. `quiet` is without progress.
pub fn look(
    manifest: Option<&str>,
    contact: &Contact,
    common: &Common,
    quiet: bool,
    show: impl FnOnce(&Planned<SshConnector>) -> Shown,
) -> ExitCode {
    let session = match session::open(manifest, contact, true, common) {
        Ok(session) => session,
        Err(Refused(code)) => return code,
    };
    block_on(async {
        let cancel = on_interrupt();
        let progress = if quiet { Progress::None } else { common.progress };
        let shown = Common { progress, ..common.clone() };
        let (context, listener) = listen(contact, &shown, &cancel, &session.wish.secrets, None);
        let client = client(&session.places.beside);
        context.say(session.asking());
        let planned = survey::plan(&session, Arc::clone(&client), false, &context).await;
        drop(context);
        listener.end().await;
        survey::keep_accepted(&session, &client);
        contact::end(&client);
        if cancel.is_cancelled() {
            ui::output::say("interrupted: not all nodes were asked\n");
            return ExitCode::Interrupted;
        }
        let (text, pending) = match show(&planned) {
            Ok(shown) => shown,
            Err(code) => return code,
        };
        if ui::output::print(&text).is_err() {
            return ExitCode::Failed;
        }
        let mut code = ExitCode::Done;
        if pending && planned.plan.nodes.values().any(|node| !node.phases.is_empty()) {
            code = code.worst(ExitCode::Pending);
        }
        if !planned.plan.left_out.is_empty() {
            code = code.worst(ExitCode::LeftOut);
        }
        code
    })
}
