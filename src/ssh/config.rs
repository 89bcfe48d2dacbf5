//! What `~/.ssh/config` says of a host, asked from `ssh -G`, and the settings that result.
//!
//! OpenSSH reads its own files best, `Match` and `Include` and all; we only read what it prints. Precedence is manifest,
//! then `ssh -G`, then defaults. Nothing here connects to anything.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OnceCell, Semaphore};

use super::alike;

/// What `ssh -G` printed, as far as it is used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    /// `user`.
    pub user: Option<String>,
    /// `hostname`.
    pub hostname: Option<String>,
    /// `port`.
    pub port: Option<u16>,
    /// `identityfile`, `~` and `%` tokens expanded.
    pub identities: Vec<PathBuf>,
    /// `identitiesonly yes`.
    pub identities_only: bool,
    /// `identityagent`: a socket, `none`, or not set.
    pub agent: Option<String>,
    /// `userknownhostsfile` and `globalknownhostsfile`, expanded.
    pub known_hosts: Vec<PathBuf>,
    /// `hostkeyalias`.
    pub alias: Option<String>,
    /// `proxyjump`, unless `none`.
    pub jump: Option<String>,
    /// `proxycommand`, unless `none`.
    pub command: Option<String>,
    /// `stricthostkeychecking` is off there; we take no notice of it but to say so.
    pub lax: bool,
}

/// For whom tokens are expanded.
#[derive(Debug, Clone, Copy)]
pub struct Local<'a> {
    /// Home directory of the controller's user.
    pub home: &'a Path,
    /// Name of the controller's user.
    pub user: &'a str,
}

/// Reads what `ssh -G` printed for `alias`.
pub fn parse(text: &str, alias: &str, local: Local<'_>) -> Asked {
    let mut asked = Asked::default();
    let (mut identities, mut hosts) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        let value = value.trim();
        let set = || (!value.is_empty() && !value.eq_ignore_ascii_case("none")).then(|| value.to_owned());
        match key.to_ascii_lowercase().as_str() {
            "user" => asked.user = set(),
            "hostname" => asked.hostname = set(),
            "port" => asked.port = value.parse().ok(),
            "identityfile" => identities.extend(set()),
            "identitiesonly" => asked.identities_only = value == "yes",
            "identityagent" => asked.agent = (!value.is_empty()).then(|| value.to_owned()),
            "userknownhostsfile" | "globalknownhostsfile" => hosts.extend(words(value)),
            "hostkeyalias" => asked.alias = set(),
            "proxyjump" => asked.jump = set(),
            "proxycommand" => asked.command = set(),
            "stricthostkeychecking" => asked.lax = matches!(value, "no" | "off" | "false"),
            _ => {}
        }
    }
    let tokens = Tokens {
        local,
        original: alias,
        hostname: asked.hostname.as_deref().unwrap_or(alias),
        port: asked.port.unwrap_or(22),
        remote: asked.user.as_deref().unwrap_or(local.user),
    };
    asked.identities = identities.iter().map(|path| tokens.expand(path)).collect();
    asked.known_hosts = hosts.iter().filter(|path| *path != "none").map(|path| tokens.expand(path)).collect();
    asked.agent = asked.agent.take().map(|agent| match agent.as_str() {
        "none" | "SSH_AUTH_SOCK" => agent,
        path => tokens.expand(path).to_string_lossy().into_owned(),
    });
    asked
}

/// Words of a line; double quotes keep blanks together.
fn words(value: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for letter in value.chars() {
        match letter {
            '"' => quoted = !quoted,
            ' ' | '\t' if !quoted => words.extend((!word.is_empty()).then(|| std::mem::take(&mut word))),
            _ => word.push(letter),
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

struct Tokens<'a> {
    local: Local<'a>,
    original: &'a str,
    hostname: &'a str,
    port: u16,
    remote: &'a str,
}

impl Tokens<'_> {
    fn expand(&self, path: &str) -> PathBuf {
        let mut text = String::new();
        let mut letters = path.chars();
        while let Some(letter) = letters.next() {
            if letter != '%' {
                text.push(letter);
                continue;
            }
            match letters.next() {
                Some('%') => text.push('%'),
                Some('h') => text.push_str(self.hostname),
                Some('n') => text.push_str(self.original),
                Some('p') => text.push_str(&self.port.to_string()),
                Some('r') => text.push_str(self.remote),
                Some('u') => text.push_str(self.local.user),
                Some('d') => text.push_str(&self.local.home.to_string_lossy()),
                Some(other) => text.extend(['%', other]),
                None => text.push('%'),
            }
        }
        home(&text, self.local.home)
    }
}

/// A path with `~` expanded; a relative one stays as it is.
pub fn home(path: &str, home: &Path) -> PathBuf {
    match path.strip_prefix('~') {
        Some("") => home.to_owned(),
        Some(rest) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => PathBuf::from(path),
    }
}

/// Asks `ssh -G`, each question once a run, and only one for all hosts where the configuration makes no difference.
#[derive(Debug)]
pub struct Asker {
    file: Option<PathBuf>,
    running: Semaphore,
    answers: Mutex<HashMap<Question, Arc<OnceCell<Answer>>>>,
    alike: Mutex<HashMap<Given, Arc<OnceCell<Option<First>>>>>,
}

type Question = (String, Option<String>, Option<u16>);
type Answer = Result<Option<Asked>, String>;
/// User and port, where the manifest has decided them.
type Given = (Option<String>, Option<u16>);

/// The host that was asked about first, and what was said of it.
#[derive(Debug)]
struct First {
    alias: String,
    text: String,
}

impl Asker {
    /// `file` replaces the user's and the system's file (`ssh -F`).
    pub fn new(file: Option<PathBuf>) -> Asker {
        Asker { file, running: Semaphore::new(8), answers: Mutex::default(), alike: Mutex::default() }
    }

    /// What is said of `alias`, given a user and a port that the manifest has decided; `Ok(None)` when there is no
    /// program `ssh`.
    ///
    /// # Errors
    /// What `ssh` complains of, as a broken line of the configuration.
    pub async fn ask(&self, alias: &str, user: Option<&str>, port: Option<u16>, local: Local<'_>) -> Answer {
        let question = (alias.to_owned(), user.map(str::to_owned), port);
        let cell = {
            let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(answers.entry(question).or_default())
        };
        cell.get_or_init(|| self.run(alias, user, port, local)).await.clone()
    }

    async fn run(&self, alias: &str, user: Option<&str>, port: Option<u16>, local: Local<'_>) -> Answer {
        if let Some(text) = self.same_as_first(alias, user, port).await {
            return Ok(Some(parse(&text, alias, local)));
        }
        let _permit = self.running.acquire().await;
        let output = match self.command(&["-G"], alias, user, port).output().await {
            Ok(output) => output,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        if output.status.success() {
            Ok(Some(parse(&String::from_utf8_lossy(&output.stdout), alias, local)))
        } else {
            Err(super::shown(String::from_utf8_lossy(&output.stderr).trim()))
        }
    }

    /// What `ssh -G` would say, from what it said of the first host; nothing where that cannot be known.
    async fn same_as_first(&self, alias: &str, user: Option<&str>, port: Option<u16>) -> Option<String> {
        if !alike::plain(alias) {
            return None;
        }
        let cell = {
            let mut alike = self.alike.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(alike.entry((user.map(str::to_owned), port)).or_default())
        };
        let first = cell.get_or_init(|| self.first(alias, user, port)).await.as_ref()?;
        alike::instead(&first.text, &first.alias, alias)
    }

    async fn first(&self, alias: &str, user: Option<&str>, port: Option<u16>) -> Option<First> {
        // With -v it names the files that it reads: which they are is known to nobody else.
        let mut command = self.command(&["-v", "-G"], alias, user, port);
        let output = command.output().await.ok().filter(|output| output.status.success())?;
        let same = alike::all(&String::from_utf8_lossy(&output.stderr));
        same.then(|| First { alias: alias.to_owned(), text: String::from_utf8_lossy(&output.stdout).into_owned() })
    }

    fn command(&self, flags: &[&str], alias: &str, user: Option<&str>, port: Option<u16>) -> tokio::process::Command {
        let mut command = tokio::process::Command::new("ssh");
        command.args(flags).stdin(Stdio::null()).kill_on_drop(true);
        if let Some(file) = &self.file {
            command.arg("-F").arg(file);
        }
        if let Some(port) = port {
            command.args(["-p", &port.to_string()]);
        }
        if let Some(user) = user {
            command.args(["-l", user]);
        }
        // `--` keeps a name that begins with a dash from being an option.
        command.arg("--").arg(alias);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local() -> Local<'static> {
        Local { home: Path::new("/home/me"), user: "me" }
    }

    #[test]
    fn reads_what_is_used_and_expands_tokens() {
        let text = "user admin\nhostname 10.0.0.7\nport 2222\nidentityfile ~/.ssh/%r@%h-%p-%n-%u%%\nidentityfile %d/key\n\
                    identitiesonly yes\nuserknownhostsfile /a/b \"/with blank/c\"\nglobalknownhostsfile none\n\
                    stricthostkeychecking false\nproxyjump none\nproxycommand nc %h %p\nidentityagent ~/agent\n";
        let asked = parse(text, "n1", local());
        assert_eq!(asked.user.as_deref(), Some("admin"));
        assert_eq!(asked.port, Some(2222));
        assert_eq!(asked.identities, ["/home/me/.ssh/admin@10.0.0.7-2222-n1-me%", "/home/me/key"].map(PathBuf::from));
        assert_eq!(asked.known_hosts, ["/a/b", "/with blank/c"].map(PathBuf::from));
        assert!(asked.lax && asked.identities_only && asked.jump.is_none());
        assert_eq!(asked.command.as_deref(), Some("nc %h %p"));
        assert_eq!(asked.agent.as_deref(), Some("/home/me/agent"));
    }

    #[test]
    fn an_empty_or_odd_answer_is_no_answer() {
        assert_eq!(parse("", "n1", local()), Asked::default());
        assert_eq!(parse("port many\n\nuser\n%", "n1", local()), Asked::default());
        assert_eq!(home("~", Path::new("/h")), PathBuf::from("/h"));
        assert_eq!(home("~root/x", Path::new("/h")), PathBuf::from("~root/x"));
    }
}
