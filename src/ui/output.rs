//! Writing to the outside: data to stdout, questions to the terminal.

use std::io::{self, BufRead, IsTerminal, Write};

use serde::Serialize;

use super::{json, safe};

/// Writes data to standard output. A reader that has gone away ends it quietly.
///
/// # Errors
/// Any other failure to write, such as a full disk: then the output is not complete.
pub fn print(text: &str) -> io::Result<()> {
    write(&mut io::stdout().lock(), text)
}

/// Prints a value as JSON on standard output.
///
/// # Errors
/// As [`print()`].
pub fn print_json<T: Serialize + ?Sized>(value: &T) -> io::Result<()> {
    print(&json::pretty(value)?)
}

/// Writes talk to standard error; a failure to write is of no interest to anyone there.
pub fn say(text: &str) {
    let _ = write(&mut io::stderr().lock(), text);
}

/// Writes and flushes; a broken pipe is not an error.
///
/// # Errors
/// Any other failure.
pub fn write(out: &mut dyn Write, text: &str) -> io::Result<()> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Whether a question can be asked: someone is there to read it and to answer.
pub fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks on the terminal and waits for a line; only `y` or `yes` is a yes. Without a terminal it is a no, unasked.
pub fn confirm(question: &str) -> bool {
    // Standard error is not held while someone thinks: what else has to be said, an interrupt above all, must not wait.
    can_ask() && ask(question, &mut io::stdin().lock(), &mut io::stderr())
}

fn ask(question: &str, input: &mut dyn BufRead, out: &mut dyn Write) -> bool {
    if out.write_all(format!("{} [y/N] ", safe(question)).as_bytes()).and_then(|()| out.flush()).is_err() {
        return false;
    }
    let mut line = String::new();
    match input.read_line(&mut line) {
        Ok(0) => {
            // End of input leaves the cursor behind the question.
            let _ = out.write_all(b"\n");
            false
        }
        Ok(_) => matches!(line.trim().to_lowercase().as_str(), "y" | "yes"),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fails(io::ErrorKind);

    impl Write for Fails {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_broken_pipe_is_quiet_and_a_full_disk_is_not() {
        assert!(write(&mut Fails(io::ErrorKind::BrokenPipe), "x").is_ok());
        assert!(write(&mut Fails(io::ErrorKind::StorageFull), "x").is_err());
    }

    #[test]
    fn only_yes_is_yes() {
        for (answer, yes) in
            [("y\n", true), ("Yes\n", true), ("yes", true), ("\n", false), ("", false), ("yo\n", false)]
        {
            let mut shown = Vec::new();
            assert_eq!(ask("Apply to \u{1b}n1?", &mut answer.as_bytes(), &mut shown), yes, "{answer:?}");
            assert!(shown.starts_with(b"Apply to \\x1bn1? [y/N] "));
        }
        assert!(!ask("x", &mut "y\n".as_bytes(), &mut Fails(io::ErrorKind::BrokenPipe)));
        assert!(!ask("x", &mut &b"\xff\n"[..], &mut Vec::new()));
    }
}
