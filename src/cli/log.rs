//! `provision log`: what was done, when, by whom.

use super::{Common, Format, session};
use crate::diag::{ExitCode, Finding};
use crate::event::Event;
use crate::manifest::codes;
use crate::state::{Places, runs};
use crate::ui;
use crate::ui::log::RunEntry;

/// What was done, when and by whom: all runs, one run, or one node's history
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  provision log                          the runs of ./cluster.yaml, newest first
  provision log gpu07                    what was done to one node
  provision log 20261201T101500Z-abcd    one run in detail")]
pub struct Arguments {
    /// A node or a run's ID
    of: Option<String>,
    /// The manifest whose runs are meant
    #[arg(long, value_name = "MANIFEST", default_value = "cluster.yaml")]
    manifest: String,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> ExitCode {
    let entries: Vec<RunEntry> = runs::list(&Places::of(&arguments.manifest)).into_iter().map(entry).collect();
    if entries.is_empty() && !std::path::Path::new(&arguments.manifest).exists() {
        let finding = Finding::input(codes::UNREADABLE, format!("there is no {}", arguments.manifest), None)
            .because("runs are kept beside their manifest, in .provision")
            .fix("name the manifest: provision log --manifest FILE");
        return session::end(ExitCode::Usage, finding, common);
    }
    let view = ui::View::stdout();
    let text = match &arguments.of {
        None if common.format == Format::Json => ui::log::runs_json(&entries).unwrap_or_default(),
        None => ui::log::runs(&entries, &view),
        Some(of) => match entries.iter().find(|entry| entry.run == *of) {
            Some(entry) if common.format == Format::Json => ui::log::run_json(entry).unwrap_or_default(),
            Some(entry) => ui::log::run(entry, &view),
            None => {
                let of_node: Vec<RunEntry> =
                    entries.into_iter().filter(|entry| entry.report.nodes.contains_key(of)).collect();
                if of_node.is_empty() {
                    let title = format!("no run and no node {of} in the runs of {}", arguments.manifest);
                    let finding = Finding::input(codes::NO_SUCH, title, None)
                        .fix("`provision log` lists the runs; --manifest names another manifest");
                    return session::end(ExitCode::Usage, finding, common);
                }
                match common.format {
                    Format::Json => ui::log::runs_json(&of_node).unwrap_or_default(),
                    Format::Human => ui::log::node(&of_node, of, &view),
                }
            }
        },
    };
    if ui::output::print(&text).is_err() { ExitCode::Failed } else { ExitCode::Done }
}

fn entry(run: runs::Recorded) -> RunEntry {
    let started = run.events.iter().find_map(|event| match event {
        Event::RunStarted { by, manifest, .. } => Some((by.clone(), manifest.clone())),
        _ => None,
    });
    let (by, manifest) = started.unwrap_or_default();
    // An ID begins with the UTC second: 20261201T101500Z-abcd.
    let when = match run.id.as_bytes() {
        [digits @ .., b'Z', b'-', _, _, _, _] if digits.len() == 15 && digits.is_ascii() => {
            let text = String::from_utf8_lossy(digits);
            let part = |from: usize, to: usize| text.get(from..to).unwrap_or("").to_owned();
            format!(
                "{}-{}-{} {}:{}:{} UTC",
                part(0, 4),
                part(4, 6),
                part(6, 8),
                part(9, 11),
                part(11, 13),
                part(13, 15)
            )
        }
        _ => run.id.clone(),
    };
    RunEntry {
        run: run.id,
        by,
        when,
        manifest,
        folder: run.path.display().to_string(),
        report: run.report,
        events: run.events,
    }
}
