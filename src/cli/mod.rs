//! The command line: one file for each command. The only room that knows all others.

mod apply;
mod check;
mod contact;
mod facts;
mod init;
#[cfg(feature = "lab")]
mod lab;
mod log;
mod look;
mod plan;
mod saved;
mod schema;
mod scripts;
mod secrets;
mod session;
mod status;
mod survey;

use std::process::ExitCode as ProcessExit;

use clap::{Parser, Subcommand, ValueEnum};

use crate::diag::{ExitCode, Finding};
use crate::manifest::codes;

/// Brings GPU clusters to life: one manifest, one plan, over SSH with nothing on the nodes but sshd and a POSIX shell.
#[derive(Debug, Parser)]
#[command(name = "provision", version, about, after_help = EXAMPLES, max_term_width = 100)]
struct Arguments {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "Examples:
  provision init                        write a commented starter manifest
  provision check cluster.yaml          judge the file; no node is contacted
  provision plan cluster.yaml           what would change, as diffs
  provision apply cluster.yaml --yes    do it; a second time changes nothing

Exit codes:
  0 done                         4 changes pending
  1 a node failed                5 a node was left out
  2 usage or manifest error    130 interrupted";

/// Options of every command.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct Common {
    /// How answers are written to standard output
    #[arg(long, global = true, value_enum, default_value_t = Format::Human)]
    pub format: Format,
    /// How progress is shown on standard error
    #[arg(long, global = true, value_enum, default_value_t = Progress::Auto)]
    pub progress: Progress,
    /// Say more on standard error: connections, key exchange, notes
    #[arg(short, long, global = true)]
    pub verbose: bool,
}

/// Form of the answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Human,
    /// For programs
    Json,
}

/// Form of the progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Progress {
    /// A bar on a terminal, lines elsewhere
    Auto,
    /// Lines
    Plain,
    /// Nothing
    None,
}

#[derive(Debug, Subcommand)]
enum Command {
    Init(init::Arguments),
    Check(check::Arguments),
    Facts(facts::Arguments),
    Plan(plan::Arguments),
    Apply(apply::Arguments),
    Status(status::Arguments),
    Log(log::Arguments),
    Schema(schema::Arguments),
    #[cfg(feature = "lab")]
    Lab(lab::LabArguments),
}

/// Prints to standard output; colours only where they are wanted. A closed pipe ends quietly, a full disk does not:
/// whoever closed the pipe has seen enough, but a cut answer must not look like a whole one.
pub fn print(text: &str) -> ExitCode {
    match crate::ui::output::write(&mut anstream::stdout().lock(), text) {
        Ok(()) => ExitCode::Done,
        Err(error) => {
            crate::ui::output::say(&format!("error: the answer cannot be written: {error}\n"));
            ExitCode::Failed
        }
    }
}

/// What clap has to say: help and version on standard output, usage errors also as JSON where that was asked for.
fn unparsed(error: &clap::Error) -> ExitCode {
    let text = error.render();
    if !error.use_stderr() {
        return print(&text.ansi().to_string());
    }
    let words: Vec<String> = std::env::args().collect();
    let json = words.iter().any(|word| word == "--format=json")
        || words.windows(2).any(|pair| matches!(pair, [name, value] if name == "--format" && value == "json"));
    if json {
        let plain = text.to_string();
        let title = plain.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        let finding = Finding::input(codes::USAGE, title, None).fix("see `provision help`");
        let _ = print(&crate::ui::findings::json(&[finding], &[]));
    }
    let _ = crate::ui::output::write(&mut anstream::stderr().lock(), &text.ansi().to_string());
    ExitCode::Usage
}

/// Parses the arguments, runs the command and gives the exit code.
pub fn main() -> ProcessExit {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return ProcessExit::from(unparsed(&error).number()),
    };
    let common = &arguments.common;
    let code = match arguments.command {
        Command::Init(arguments) => init::run(&arguments),
        Command::Check(arguments) => check::run(&arguments, common),
        Command::Facts(arguments) => facts::run(&arguments, common),
        Command::Plan(arguments) => plan::run(&arguments, common),
        Command::Apply(arguments) => apply::run(&arguments, common),
        Command::Status(arguments) => status::run(&arguments, common),
        Command::Log(arguments) => log::run(&arguments, common),
        Command::Schema(arguments) => schema::run(&arguments),
        #[cfg(feature = "lab")]
        Command::Lab(arguments) => lab::run(&arguments, common),
    };
    ProcessExit::from(ExitCode::number(code))
}
