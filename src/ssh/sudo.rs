//! How a script gets to the shell that runs it, as root where it must be, without ever being an argument.
//!
//! The remote command is fixed text but for a nonce: a *reader*. It announces itself, reads lines up to the nonce line (so
//! that anything sent before it, a password above all, is thrown away and never run), then takes in all the rest and
//! runs it only when its last line is the end mark: half a script never runs. This module makes texts and
//! reads answers; it sends nothing.
//!
//! sudo's prompt carries the nonce. The password is sent only when that prompt appears on standard error, and a second
//! prompt means that it was wrong: then standard input is closed, so that sudo has counted one failure, and has
//! never seen the script.

use crate::event::LeftOut;

/// Texts for one exec, told from all others by a nonce.
#[derive(Debug, Clone)]
pub struct Framing {
    nonce: String,
}

/// How the reader is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// As the login user.
    Plain,
    /// Through sudo, which must not ask.
    SudoQuiet,
    /// Through sudo, which may ask for the password.
    SudoAsking,
}

impl Framing {
    /// Wraps a nonce of letters and digits.
    pub fn new(nonce: String) -> Framing {
        Framing { nonce }
    }

    /// The line that the reader writes when it runs, without its newline.
    pub fn ready(&self) -> String {
        format!("@@{} ready", self.nonce)
    }

    /// The prompt that sudo shows.
    pub fn prompt(&self) -> String {
        format!("@@{} password:", self.nonce)
    }

    /// What is sent before the script.
    pub fn opening(&self) -> String {
        format!("{}\n", self.nonce)
    }

    /// What is sent after the script: a comment, so that the shell can run it along.
    pub fn closing(&self) -> String {
        format!("\n#{}\n", self.nonce)
    }

    /// The command given to the login shell, whatever shell that is: no newline, no quote inside, no `!`.
    ///
    /// `LC_ALL=C`, so that sudo's messages and every tool's answers are the same on all nodes.
    pub fn command(&self, way: Way) -> String {
        let n = &self.nonce;
        let reader = format!(
            "LC_ALL=C; export LC_ALL; printf \"%s\\n\" \"@@{n} ready\"; while IFS= read -r l; do case $l in {n}) break;; esac; done; \
             s=$(cat); exec </dev/null; [ \"${{s%#{n}}}\" = \"$s\" ] && exit 97; unset l; eval \"$s\""
        );
        match way {
            Way::Plain => format!("sh -c '{reader}'"),
            Way::SudoQuiet => format!("env LC_ALL=C sudo -n sh -c '{reader}'"),
            Way::SudoAsking => format!("env LC_ALL=C sudo -S -p \"{}\" sh -c '{reader}'", self.prompt()),
        }
    }
}

/// What ended an exec before the reader announced itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// The way it was started.
    pub way: Way,
    /// The exit status, if there was one.
    pub status: Option<u32>,
    /// sudo asked for the password again after it had been sent.
    pub asked_again: bool,
}

/// Why no script was run, from what was written instead.
pub fn refusal(node: &str, user: &str, ended: Ended, wrote: &str) -> LeftOut {
    let said: Vec<String> = wrote.lines().map(super::shown).filter(|line| !line.trim().is_empty()).take(20).collect();
    let has = |text: &str| wrote.contains(text);
    let because = |first: String| {
        let mut lines = vec![first];
        lines.extend(said.iter().map(|line| format!("the node says: {line}")));
        lines
    };
    let root = |what: String, why: String, fix: &[&str]| LeftOut {
        kind: "root".to_owned(),
        what,
        because: because(why),
        fix: fix.iter().map(|line| (*line).to_owned()).collect(),
    };
    if ended.way == Way::Plain {
        return LeftOut {
            kind: "probe".to_owned(),
            what: format!("{node} runs no shell for {user}"),
            because: because(match ended.status {
                Some(status) => format!("`sh` ended with status {status} before it read the script"),
                None => "`sh` was killed before it read the script".to_owned(),
            }),
            fix: vec![format!("give {user} a login shell on {node}, and no forced command for this key")],
        };
    }
    let user = super::shown(user);
    if ended.asked_again || has("incorrect password attempt") {
        return root(
            format!("the sudo password of {user} is wrong on {node}"),
            "sudo asked again after `become_password` was given; it is not tried a second time".to_owned(),
            &["correct `ssh: become_password`"],
        );
    }
    if has("must have a tty") {
        return root(
            format!("sudo on {node} wants a terminal"),
            "`requiretty` is set in sudoers".to_owned(),
            &[&format!("add to sudoers on the node: Defaults:{user} !requiretty")],
        );
    }
    if has("is not in the sudoers file")
        || has("may not run sudo")
        || has("is not allowed to")
        || has("I'm afraid I can't do that")
    {
        return root(
            format!("{user} may not become root on {node}"),
            format!("sudoers does not let {user} run `sh` as root"),
            &[
                &format!("allow it in sudoers on the node: {user} ALL=(ALL) ALL"),
                "or log in as root: `ssh: user: root`",
            ],
        );
    }
    if has("password is required")
        || has("interactive authentication is required")
        || has("no password was provided")
        || has("no askpass")
    {
        return root(
            format!("sudo on {node} asks {user} for a password and none is given"),
            "`become_password` is not set".to_owned(),
            &[
                "set `ssh: become_password: ${env:NAME}`",
                &format!("or allow it without on the node: {user} ALL=(ALL) NOPASSWD: ALL"),
            ],
        );
    }
    if ended.status == Some(127) {
        return root(
            format!("{node} has no sudo"),
            "the command `sudo` was not found".to_owned(),
            &["install sudo on the node", "or log in as root: `ssh: user: root`"],
        );
    }
    let status = ended.status.map_or_else(|| "killed".to_owned(), |status| format!("status {status}"));
    root(
        format!("{user} could not become root on {node}"),
        format!("sudo ended ({status}) before it started the shell"),
        &["try on the node: sudo sh -c true"],
    )
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Output, Stdio};

    use super::*;

    const SHELLS: [&[&str]; 3] = [&["dash"], &["bash"], &["busybox", "sh"]];

    /// Runs the reader by a shell (in the place of `sh`), with `input` on standard input.
    fn run(shell: &[&str], framing: &Framing, input: &str) -> Output {
        let command = framing.command(Way::Plain).replacen("sh -c", &format!("{} -c", shell.join(" ")), 1);
        let mut child = Command::new(shell[0])
            .args(&shell[1..])
            .args(["-c", &command])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_owned();
        let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
        let output = child.wait_with_output().unwrap();
        let _ = writer.join().unwrap();
        output
    }

    fn framing() -> Framing {
        Framing::new("0123456789abcdef0123456789abcdef".to_owned())
    }

    #[test]
    fn a_whole_script_runs_in_every_shell_and_nothing_before_the_nonce_does() {
        let f = framing();
        for shell in SHELLS {
            let script = "echo one\ncat\nprintf '%s\\n' \"a\\\\b # c\"\nexit 7";
            let sent = format!("echo LEAKED\ntouch /LEAKED; `echo LEAKED`\n{}{script}{}", f.opening(), f.closing());
            let output = run(shell, &f, &sent);
            assert_eq!(
                String::from_utf8_lossy(&output.stdout),
                format!("{}\none\na\\b # c\n", f.ready()),
                "{shell:?} {}",
                String::from_utf8_lossy(&output.stderr)
            );
            assert_eq!(output.status.code(), Some(7), "{shell:?}");
            assert!(output.stderr.is_empty());
        }
    }

    #[test]
    fn half_a_script_never_runs() {
        let f = framing();
        let whole = format!("{}echo RAN\necho more\n{}", f.opening(), f.closing());
        // Cut anywhere before the last byte of the end mark (its newline is not needed).
        for shell in SHELLS {
            for cut in 0..whole.len() - 1 {
                let output = run(shell, &f, &whole[..cut]);
                assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{}\n", f.ready()), "{shell:?} cut {cut}");
                assert_eq!(output.status.code(), Some(97), "{shell:?} cut {cut}");
            }
        }
    }

    #[test]
    fn five_megabytes_run_in_every_shell() {
        let f = framing();
        let mut script = String::new();
        while script.len() < 5_000_000 {
            script.push_str("x='äöü # 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789'\n");
        }
        script.push_str("echo end");
        for shell in SHELLS {
            let started = std::time::Instant::now();
            let output = run(shell, &f, &format!("{}{script}{}", f.opening(), f.closing()));
            assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{}\nend\n", f.ready()), "{shell:?}");
            println!("{shell:?}: {:?}", started.elapsed());
        }
    }

    #[test]
    fn refusals_name_the_cause() {
        let ended = |status| Ended { way: Way::SudoQuiet, status: Some(status), asked_again: false };
        let why = |status, text: &str| refusal("n1", "ubuntu", ended(status), text).what;
        assert!(why(1, "sudo: a password is required\n").contains("asks ubuntu for a password and none is given"));
        assert!(why(1, "ubuntu is not in the sudoers file.\n").contains("may not become root"));
        assert!(why(127, "env: 'sudo': No such file or directory\n").contains("has no sudo"));
        assert!(why(1, "sudo: sorry, you must have a tty to run sudo\n").contains("wants a terminal"));
        let wrong = Ended { asked_again: true, ..ended(1) };
        assert!(refusal("n1", "ubuntu", wrong, "").what.contains("is wrong"));
        let escape = refusal("n1", "ubuntu", ended(9), "\u{1b}[2Jboo\n");
        assert!(!escape.because.concat().contains('\u{1b}'), "{escape:?}");
    }
}
