//! The command line: one file for each command. The only room that knows all others.

/// Parses the arguments, runs the command and gives the exit code.
pub fn main() -> std::process::ExitCode {
    std::process::ExitCode::SUCCESS
}
