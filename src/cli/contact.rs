//! Contacting nodes: the runtime, the SSH client, Ctrl-C, and the events on their way to the screen.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::session::Contact;
use super::{Common, Progress as Mode};
use crate::diag::ExitCode;
use crate::event::Event;
use crate::exec::Context;
use crate::manifest::model::HostKeys;
use crate::secret::Secrets;
use crate::ssh::{AskHostKey, Question, SshConnector, SshOptions};
use crate::state::runs::RunFolder;
use crate::ui;
use crate::ui::progress::{self, Progress};

/// Runs the async part of a command.
pub fn block_on<F: Future<Output = ExitCode>>(future: F) -> ExitCode {
    match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => {
            let code = runtime.block_on(future);
            // A blocking read that never ends (a terminal question) must not keep the program.
            runtime.shutdown_background();
            code
        }
        Err(error) => {
            ui::output::say(&format!("error: the system gives no threads: {error}\n"));
            ExitCode::Failed
        }
    }
}

/// Where events and logs of a stretch of work go.
pub struct Listener {
    task: JoinHandle<(Progress, Option<RunFolder>)>,
}

/// Opens the channel of a stretch of work: screen, and run folder if there is one.
pub fn listen(
    contact: &Contact,
    common: &Common,
    cancel: &CancellationToken,
    secrets: &Secrets,
    folder: Option<RunFolder>,
) -> (Context, Listener) {
    let (events, event_receiver) = unbounded_channel();
    let (logs, log_receiver) = unbounded_channel();
    let mode = match common.progress {
        Mode::Auto => progress::Mode::Auto,
        Mode::Plain => progress::Mode::Plain,
        Mode::None => progress::Mode::None,
    };
    let task = tokio::spawn(take(Progress::new(mode).verbose(common.verbose), event_receiver, log_receiver, folder));
    let context = Context {
        events,
        logs,
        cancel: cancel.clone(),
        deadlines: contact.deadlines(),
        secrets: secrets.values().cloned().collect(),
        max_parallel: usize::try_from(contact.max_parallel).unwrap_or(64),
    };
    (context, Listener { task })
}

async fn take(
    mut progress: Progress,
    mut events: UnboundedReceiver<Event>,
    mut logs: UnboundedReceiver<(String, String)>,
    mut folder: Option<RunFolder>,
) -> (Progress, Option<RunFolder>) {
    let mut tick = tokio::time::interval(Duration::from_millis(500));
    let (mut open_events, mut open_logs) = (true, true);
    while open_events || open_logs {
        tokio::select! {
            event = events.recv(), if open_events => match event {
                Some(event) => {
                    if let Some(folder) = &mut folder {
                        folder.record(&event);
                    }
                    progress.take(&event);
                }
                None => open_events = false,
            },
            log = logs.recv(), if open_logs => match log {
                Some((node, text)) => {
                    if let Some(folder) = &folder {
                        let shown: String = text.lines().map(|line| ui::safe(line) + "\n").collect();
                        folder.log(&node, &shown);
                    }
                }
                None => open_logs = false,
            },
            _ = tick.tick() => progress.tick(),
        }
    }
    progress.finish();
    (progress, folder)
}

impl Listener {
    /// Waits until everything was taken; all contexts must be dropped before.
    pub async fn end(self) -> (Progress, Option<RunFolder>) {
        self.task.await.unwrap_or_else(|_| (Progress::new(progress::Mode::None), None))
    }
}

/// Makes Ctrl-C (and the polite kill) set the token: no new phase, following ends.
pub fn on_interrupt() -> CancellationToken {
    use tokio::signal::unix::{SignalKind, signal};
    let cancel = CancellationToken::new();
    let token = cancel.clone();
    tokio::spawn(async move {
        let Ok(mut terminate) = signal(SignalKind::terminate()) else { return };
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminate.recv() => {}
        }
        token.cancel();
    });
    cancel
}

/// The SSH client of a run.
pub fn client(beside: &Path) -> Arc<SshConnector> {
    let mut options = SshOptions::from_environment(beside);
    if ui::output::can_ask() {
        options.host_keys = HostKeys::Ask;
        options.ask = Some(Arc::new(Terminal));
    }
    Arc::new(SshConnector::new(options))
}

/// Shows remarks on the user's SSH settings and lets go of the jump hosts.
pub fn end(client: &SshConnector) {
    for note in client.notes() {
        ui::output::say(&format!("note: {}\n", ui::safe(&note)));
    }
    client.close();
}

/// A person at the terminal.
struct Terminal;

impl AskHostKey for Terminal {
    fn ask(&self, question: &Question) -> bool {
        ui::output::say(&format!(
            "The host key of {} ({}) is not known.\n  {}\n  fingerprint {}\n",
            ui::safe(&question.name),
            ui::safe(&question.place),
            ui::safe(&question.key),
            ui::safe(&question.fingerprint)
        ));
        ui::confirm("Is this the right key, from a source you trust?")
    }
}
