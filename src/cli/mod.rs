//! The command line: one file for each command. The only room that knows all others.

pub mod check;
pub mod init;
pub mod schema;

use std::io::Write as _;

use clap::{Parser, Subcommand, ValueEnum};

use crate::diag::ExitCode;

/// Brings GPU clusters to life: one manifest, one plan, over SSH.
#[derive(Debug, Parser)]
#[command(name = "provision", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Check(check::Arguments),
    Schema(schema::Arguments),
    Init(init::Arguments),
}

/// How results are printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Human,
    /// For programs.
    Json,
}

/// Prints to standard output; colours only where they are wanted. A closed pipe ends quietly.
pub fn print(text: &str) {
    // Whoever closed the pipe has seen enough; the exit code still tells how it went.
    let mut out = anstream::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Parses the arguments, runs the command and gives the exit code.
pub fn main() -> std::process::ExitCode {
    let arguments = Arguments::parse();
    let code: ExitCode = match arguments.command {
        Command::Check(arguments) => check::run(&arguments),
        Command::Schema(arguments) => schema::run(&arguments),
        Command::Init(arguments) => init::run(&arguments),
    };
    std::process::ExitCode::from(code.number())
}
