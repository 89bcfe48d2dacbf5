//! Runs the machine's programs and says what went wrong when they fail.

use std::io::Write;
use std::process::{Command, Stdio};

use super::LabError;

/// A program with arguments and an environment of nothing but a search path.
pub(super) fn command(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .env("LC_ALL", "C.UTF-8")
        .env("HOME", "/root")
        .current_dir("/");
    command
}

/// Runs it to its end and gives what it printed.
pub(super) fn output(doing: &str, command: Command) -> Result<String, LabError> {
    feed(doing, command, "")
}

/// Same, with a text on standard input.
pub(super) fn feed(doing: &str, mut command: Command, text: &str) -> Result<String, LabError> {
    let line = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ");
    let failed = |ended: String, said: Vec<String>| LabError::Command {
        doing: doing.to_owned(),
        command: line.clone(),
        ended,
        said,
    };
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(format!("cannot be started: {error}"), Vec::new()))?;
    if let Some(mut input) = child.stdin.take() {
        // A program that does not read to the end says why by its exit status.
        let _ = input.write_all(text.as_bytes());
    }
    let result = child.wait_with_output().map_err(|error| failed(error.to_string(), Vec::new()))?;
    let printed = String::from_utf8_lossy(&result.stdout).into_owned();
    if result.status.success() {
        return Ok(printed);
    }
    let ended = match result.status.code() {
        Some(code) => format!("exited with {code}"),
        None => "was killed".to_owned(),
    };
    let complaint = String::from_utf8_lossy(&result.stderr).into_owned();
    let said = if complaint.trim().is_empty() { printed } else { complaint };
    Err(failed(ended, last_lines(&said)))
}

/// The last 20 lines of a text.
pub(super) fn last_lines(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines.iter().skip(lines.len().saturating_sub(20)).map(|line| (*line).to_owned()).collect()
}

/// Whether the program can be found.
pub(super) fn exists(program: &str) -> bool {
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]
        .iter()
        .any(|folder| std::path::Path::new(folder).join(program).exists())
}
