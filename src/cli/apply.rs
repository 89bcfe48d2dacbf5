//! `provision apply`: does what the plan says.

use tokio_util::sync::CancellationToken;

use super::contact::{self, block_on, client, listen, on_interrupt};
use super::session::{self, Contact, Refused, Session};
use super::{Common, Format, saved, survey};
use crate::diag::{ExitCode, Finding};
use crate::event::Event;
use crate::exec::run::RunInfo;
use crate::manifest::codes;
use crate::plan::Plan;
use crate::state::runs::{self, RunFolder};
use crate::ui;
use crate::ui::progress::Progress;

/// Bring the nodes to the manifest; picks up where an earlier run stopped, and a second time changes nothing
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  provision apply cluster.yaml --limit @a100 --yes
  provision plan cluster.yaml --out monday.plan && provision apply monday.plan")]
pub struct Arguments {
    /// The manifest or a saved plan; ./cluster.yaml when not given, - for standard input
    manifest: Option<String>,
    #[command(flatten)]
    contact: Contact,
    /// Do not ask; needed where there is no terminal
    #[arg(long, short)]
    yes: bool,
    /// Change nothing unless every selected node can be planned
    #[arg(long)]
    require_all: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> ExitCode {
    let saved = match arguments.manifest.as_deref().map(saved::read) {
        Some(Ok(saved)) => saved,
        Some(Err(why)) => {
            let finding = Finding::input(codes::SAVED_PLAN, why, None).fix("make a new plan; nothing was changed");
            return session::end(ExitCode::Usage, finding, common);
        }
        None => None,
    };
    let path = saved.as_ref().map_or(arguments.manifest.as_deref(), |plan| Some(plan.manifest.as_str()));
    let mut session = match session::open(path, &arguments.contact, true, common) {
        Ok(session) => session,
        Err(Refused(code)) => return code,
    };
    if let Some(plan) = &saved {
        if let Some(changed) = saved::inputs_changed(plan, &session.inputs) {
            return stale(&changed, common);
        }
        session.selected.retain(|node| plan.nodes.contains_key(&node.name));
        if session.selected.is_empty() {
            let finding = Finding::input(codes::SAVED_PLAN, "the saved plan has nothing for the selected nodes", None)
                .fix("make a plan for these nodes, or leave --limit away; nothing was changed");
            return session::end(ExitCode::Usage, finding, common);
        }
    }
    block_on(apply(&session, saved.as_ref(), arguments, common))
}

fn stale(what: &str, common: &Common) -> ExitCode {
    let finding = Finding::input(codes::SAVED_PLAN, format!("the saved plan no longer holds: {what}"), None)
        .fix("make a new plan, look at it, and apply that; nothing was changed");
    session::end(ExitCode::Usage, finding, common)
}

async fn apply(session: &Session, saved: Option<&Plan>, arguments: &Arguments, common: &Common) -> ExitCode {
    let cancel = on_interrupt();
    let client = client(&session.places.beside);
    let id = runs::new_id();
    let by = user_at_host();
    let started = Event::RunStarted {
        run: id.clone(),
        by: by.clone(),
        manifest: session.manifest.clone(),
        nodes: session.selected.iter().map(|node| node.name.clone()).collect(),
    };
    let (context, listener) = listen(&arguments.contact, common, &cancel, &session.wish.secrets, None);
    context.say(session.asking());
    let planned = survey::plan(session, std::sync::Arc::clone(&client), true, &context).await;
    drop(context);
    listener.end().await;
    survey::keep_accepted(session, &client);
    contact::end(&client);
    if cancel.is_cancelled() {
        ui::output::say("interrupted: nothing was changed\n");
        return ExitCode::Interrupted;
    }
    if let Some(changed) = saved.and_then(|plan| saved::differs(plan, &planned.plan)) {
        return stale(&changed, common);
    }
    if let Some(code) = consent(&planned.plan, !planned.jobs.is_empty(), arguments, common, &cancel).await {
        return code;
    }

    let plan = planned.plan;
    let changing = !planned.jobs.is_empty();
    let folder = if changing {
        match RunFolder::create(&session.places, id.clone(), &plan) {
            Ok(folder) => Some(folder),
            Err(error) => {
                let finding = Finding::input(codes::UNWRITABLE, error.to_string(), None)
                    .fix("make room or rights for it; nothing was changed");
                return session::end(ExitCode::Usage, finding, common);
            }
        }
    } else {
        None
    };
    // Where nothing changes there is no run to tell of.
    let progress = if changing { common.progress } else { super::Progress::None };
    let told = Common { progress, ..common.clone() };
    let (context, listener) = listen(&arguments.contact, &told, &cancel, &session.wish.secrets, folder);
    tell_survey(&started, &plan, &context);
    let info =
        RunInfo { id: id.clone(), by, manifest: session.inputs.get(&session.manifest).cloned().unwrap_or_default() };
    let made = survey::execute(session, client, planned.jobs, &planned.cluster, info, &context).await;
    if cancel.is_cancelled() {
        context.say(Event::Interrupted);
    }
    drop(context);
    let (progress, folder) = listener.end().await;
    let reached: Vec<String> = plan.nodes.keys().cloned().collect();
    let identities = survey::confirmed(&session.identities, &planned.cluster, &made, &reached, &id);
    let mut code = ui::report::exit_code(&progress.report);
    if cancel.is_cancelled() {
        code = ExitCode::Interrupted;
    }
    let news = identities.into_iter().filter(|(name, identity)| session.identities.get(name) != Some(identity));
    let kept = session.places.change_nodes(|nodes| nodes.extend(news));
    if kept.is_err() {
        code = code.worst(ExitCode::Failed);
    }
    let code = finish(progress, folder, code, common);
    if let Err(error) = kept {
        // Said last: no node failed, and still this is no success.
        ui::output::say(&format!(
            "error: {error}\nhelp: the nodes are as reported; make it writable and run apply again, so that it is kept who they are\n"
        ));
    }
    code
}

/// Records the end, shows the report.
fn finish(mut progress: Progress, mut folder: Option<RunFolder>, code: ExitCode, common: &Common) -> ExitCode {
    let done = Event::RunDone { exit: code.number() };
    progress.report.fold(&done);
    if let Some(folder) = &mut folder {
        folder.record(&done);
        if let Err(error) = folder.finish(&progress.report) {
            ui::output::say(&format!("warning: {error}\n"));
        }
    }
    let path = folder.and_then(|folder| folder.path).map(|path| path.display().to_string());
    let text = match common.format {
        Format::Json => ui::report::json(&progress.report).unwrap_or_default(),
        Format::Human => ui::report::human(&progress.report, &progress.failures, path.as_deref(), &ui::View::stdout()),
    };
    if ui::output::print(&text).is_err() {
        return code.worst(ExitCode::Failed);
    }
    code
}

/// Shows the plan and asks; `Some` is the exit code when nothing is to be done about it.
async fn consent(
    plan: &Plan,
    changing: bool,
    arguments: &Arguments,
    common: &Common,
    cancel: &CancellationToken,
) -> Option<ExitCode> {
    let json = common.format == Format::Json;
    let ask = changing && !arguments.yes && ui::output::can_ask();
    let refused = arguments.require_all && !plan.left_out.is_empty();
    if common.format == Format::Human && (changing || !plan.left_out.is_empty()) {
        let _ = ui::output::print(&ui::plan::human(plan, &ui::View::stdout()));
    }
    if refused {
        if json {
            let _ = ui::output::print(&ui::plan::json(plan).unwrap_or_default());
        }
        ui::output::say("error: --require-all: a selected node cannot be planned, so nothing was changed\n");
        return Some(ExitCode::LeftOut);
    }
    if !changing || arguments.yes {
        return None;
    }
    if !ask {
        if json {
            let _ = ui::output::print(&ui::plan::json(plan).unwrap_or_default());
        }
        ui::output::say("error: no terminal to ask on, so nothing was changed\nhelp: look at the plan and add --yes\n");
        return Some(ExitCode::Usage);
    }
    if json {
        // Whoever answers must see what is asked; standard output is for the program that reads it.
        ui::output::say(&ui::plan::human(plan, &ui::View::stderr()));
    }
    let number = plan.nodes.values().filter(|node| node.changes() > 0).count();
    let question = format!("Apply these changes to {number} node{}?", if number == 1 { "" } else { "s" });
    let answer = tokio::select! {
        answer = tokio::task::spawn_blocking(move || ui::confirm(&question)) => answer.unwrap_or(false),
        () = cancel.cancelled() => {
            ui::output::say("\ninterrupted: nothing was changed\n");
            return Some(ExitCode::Interrupted);
        }
    };
    if answer {
        None
    } else {
        if json {
            let _ = ui::output::print(&ui::plan::json(plan).unwrap_or_default());
        }
        ui::output::say("not applied; nothing was changed\n");
        let left_out = if plan.left_out.is_empty() { ExitCode::Done } else { ExitCode::LeftOut };
        Some(ExitCode::Pending.worst(left_out))
    }
}

/// Tells the run's listener what the survey found, so that report and run folder are whole.
fn tell_survey(started: &Event, plan: &Plan, context: &crate::exec::Context) {
    context.say(started.clone());
    for (node, why) in &plan.left_out {
        context.say(Event::NodeLeftOut { node: node.clone(), why: why.clone() });
    }
    for (node, plan) in &plan.nodes {
        context.say(Event::NodeProbed { node: node.clone(), changes: plan.changes() });
        if plan.phases.is_empty() {
            context.say(Event::NodeDone { node: node.clone(), changed: 0, missing: Vec::new() });
        }
    }
}

fn user_at_host() -> String {
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_else(|_| "root".to_owned());
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{user}@{}", host.trim())
}
