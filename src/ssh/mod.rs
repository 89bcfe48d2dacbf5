//! Commands on a node over SSH.
//!
//! [`Transport`] is what the engine sees: connect once, run scripts, read their output. `client` is the
//! only file that names the SSH library; `config`, `known_hosts`, `auth` and `jump` decide what it is told.

pub mod alike;
pub mod auth;
pub mod client;
pub mod config;
pub mod connect;
pub mod host_key;
pub mod jump;
pub mod known_hosts;
pub mod pacing;
pub mod resolve;
pub mod run;
pub mod sudo;
pub mod wire;

use std::future::Future;
use std::sync::Arc;

pub use connect::{AskHostKey, Question, SshConnector, SshOptions};
pub use run::SshLink;

use crate::event::LeftOut;
use crate::secret::Secret;

/// How a command on a node ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Exit status.
    Status(u32),
    /// Killed by a signal.
    Signal,
}

/// The channel or connection ended without an exit status: neither success nor failure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("link lost: {why}")]
pub struct LinkLost {
    /// What is known of the reason.
    pub why: String,
}

/// Why a script has no exit status to show.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExecError {
    /// The link was lost; what became of the script is unknown.
    #[error(transparent)]
    LinkLost(#[from] LinkLost),
    /// The script was not run at all: no root (kind `root`) or no shell (kind `probe`) was to be had.
    #[error("{}", .0.what)]
    NotRun(LeftOut),
}

/// Text from elsewhere as it is fit for a screen: control characters are shown, never obeyed.
pub fn shown(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() && letter != '\t' {
            safe.extend(letter.escape_default());
        } else {
            safe.push(letter);
        }
    }
    safe
}

/// Why output is no longer taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Go on.
    Continue,
    /// Close the channel: everything wanted has been seen (or too much was).
    Stop,
}

/// Receives what a command writes, piece by piece as it arrives.
pub trait Output: Send {
    /// Standard output.
    fn stdout(&mut self, bytes: &[u8]) -> Flow;
    /// Standard error.
    fn stderr(&mut self, bytes: &[u8]) -> Flow;
}

/// What to run: POSIX shell, sent on standard input, never as an argument.
#[derive(Debug, Clone)]
pub struct Script {
    /// The shell text. It must not read standard input.
    pub text: Arc<str>,
    /// Whether it needs root; then it goes through sudo unless the login user is root.
    pub root: bool,
}

/// An open, authenticated connection to one node.
pub trait Transport: Send + Sync {
    /// Runs a script to its end (or until `output` says stop, which gives `Ok(None)`).
    ///
    /// # Errors
    /// [`ExecError::LinkLost`] when the channel ended without exit status or signal; [`ExecError::NotRun`] when root or
    /// a shell could not be had, so that nothing of the script ran.
    fn exec(
        &self,
        script: &Script,
        output: &mut dyn Output,
    ) -> impl Future<Output = Result<Option<Exit>, ExecError>> + Send;

    /// What was agreed on, for people: login user, key exchange, type of the host key.
    fn how(&self) -> String;

    /// The host key the node proved to hold, as `ssh-ed25519 AAAA...`.
    fn host_key(&self) -> String;

    /// Closes the connection.
    fn close(self) -> impl Future<Output = ()> + Send;
}

/// Opens connections; one for each run.
pub trait Connector: Send + Sync + 'static {
    /// What it opens.
    type Link: Transport + 'static;

    /// Connects, checks the host key, authenticates.
    ///
    /// # Errors
    /// Why the node is left out, with every method tried.
    fn connect(&self, target: &Target) -> impl Future<Output = Result<Self::Link, LeftOut>> + Send;
}

/// A node as `ssh` sees it; secrets are resolved.
#[derive(Debug, Clone)]
pub struct Target {
    /// The node's name.
    pub node: String,
    /// Address as given in the manifest, or the name.
    pub address: String,
    /// Whether the address was written in the manifest (else HostName of `ssh -G` counts).
    pub address_given: bool,
    /// The manifest's `ssh:` for this node.
    pub ssh: Arc<crate::manifest::model::Settings>,
    /// Host keys `NAME.nodes` has for it, as `ssh-ed25519 AAAA...`.
    pub known: Vec<String>,
    /// Values of the secret texts in `ssh`.
    pub passphrase: Option<Secret>,
    /// Login password.
    pub password: Option<Secret>,
    /// sudo password.
    pub become_password: Option<Secret>,
}

impl Target {
    /// Whether we may become root there: with sudo, unless the manifest says `become: none`.
    pub fn becomes_root(&self) -> bool {
        self.ssh.ssh.r#become != Some(crate::manifest::model::Become::None)
    }
}

/// A reason to leave a node out, to be filled in.
fn say(kind: &str, what: String) -> LeftOut {
    LeftOut { kind: kind.to_owned(), what, because: Vec::new(), fix: Vec::new() }
}

/// Fills in a [`LeftOut`].
trait Reasons: Sized {
    fn because(self, reason: impl Into<String>) -> Self;
    fn fix(self, remedy: impl Into<String>) -> Self;
}

impl Reasons for LeftOut {
    fn because(mut self, reason: impl Into<String>) -> Self {
        self.because.push(reason.into());
        self
    }

    fn fix(mut self, remedy: impl Into<String>) -> Self {
        self.fix.push(remedy.into());
        self
    }
}
