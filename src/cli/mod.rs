//! The command line: one file for each command. The only room that knows all others.

#[cfg(feature = "lab")]
pub mod lab;

use clap::{Parser, Subcommand};

/// Brings GPU clusters to life
#[derive(Debug, Parser)]
#[command(name = "provision", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[cfg(feature = "lab")]
    Lab(lab::LabArguments),
}

/// Parses the arguments, runs the command and gives the exit code.
pub fn main() -> std::process::ExitCode {
    let code = match Arguments::parse().command {
        #[cfg(feature = "lab")]
        Command::Lab(arguments) => lab::run(&arguments),
    };
    code.number().into()
}
