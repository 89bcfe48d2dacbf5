//! The typed manifest: groups layered, ranges expanded, one [`Node`] for each machine.
//!
//! Equal settings are shared between nodes, so that 10,000 nodes of one group cost little. Nothing here knows how a
//! manifest is written; `decode` and `layer` make these values.

use std::collections::BTreeMap;
use std::sync::Arc;

use indexmap::IndexMap;

use crate::diag::{Place, Placed};

/// A whole manifest.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// Name as the user gave it, `-` for standard input.
    pub file: Arc<str>,
    /// The text, for snippets.
    pub text: Arc<str>,
    /// `cluster:`.
    pub cluster: String,
    /// Every node in written order, ranges expanded.
    pub nodes: Vec<Node>,
    /// Group name to the names of its nodes, for `@group`.
    pub groups: IndexMap<String, Vec<String>>,
    /// Every part that is wanted somewhere and has no step in this build: key path and place (P0020).
    pub unbuilt: Vec<Placed<String>>,
    /// Every secret that is referred to anywhere, with the place of its first mention.
    pub secrets: BTreeMap<crate::secret::Reference, Place>,
}

/// One machine, all layers merged.
#[derive(Debug, Clone)]
pub struct Node {
    /// Its name, also the key of its facts.
    pub name: String,
    /// Where the `nodes:` entry stands.
    pub place: Place,
    /// As written, or the name.
    pub address: String,
    /// Whether `address:` was written; if not, `ssh -G` may give a HostName.
    pub address_given: bool,
    /// Groups in written order.
    pub groups: Arc<[String]>,
    /// `in` or `out`.
    pub state: NodeState,
    /// Everything else, shared between equal nodes.
    pub settings: Arc<Settings>,
    /// Declared hardware: key (`os`, `kernel`, `gpus`, ...) to its written text.
    pub declared: Arc<BTreeMap<String, Vec<Placed<String>>>>,
}

/// Whether a node takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeState {
    /// It does.
    In,
    /// Not contacted, not counted, loses nothing on its peers.
    Out,
}

/// What a node shall have, after layering.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// `ssh:`.
    pub ssh: Ssh,
    /// `base:`; `None` when not written (the hosts block may still come with `trust`).
    pub base: Option<Base>,
    /// `trust:`; `None` is not in the mesh.
    pub trust: Option<Trust>,
    /// `packages:`, later layers first merged by name.
    pub packages: Vec<Package>,
    /// `files:`.
    pub files: Vec<FileWish>,
    /// `services:`.
    pub services: Vec<Service>,
    /// `commands:`.
    pub commands: Vec<Command>,
    /// `stack:`: dotted key (`driver.version`, `nccl_env.NCCL_DEBUG`) to the texts written for it.
    pub stack: BTreeMap<String, Vec<Placed<String>>>,
}

/// A text that may hold secret references; kept as written, `${kind:...}` in it are [`crate::secret::Reference`]s.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text {
    /// Literal pieces and references in order.
    pub pieces: Vec<Piece>,
}

/// A piece of a [`Text`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// As written.
    Literal(String),
    /// To be replaced by the secret's value.
    Secret(crate::secret::Reference),
}

/// How host keys of unknown nodes are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostKeys {
    /// Unknown key: refuse.
    Strict,
    /// Unknown key: show and ask (terminal only).
    Ask,
    /// Unknown key: record in `NAME.nodes`.
    AcceptNew,
}

/// How to become root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Become {
    /// Run as the login user.
    #[default]
    None,
    /// sudo.
    Sudo,
}

/// `ssh:` after layering; `None` means "not written": `ssh -G`, then the default decide.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ssh {
    /// Login user.
    pub user: Option<String>,
    /// Port.
    pub port: Option<u16>,
    /// Key files in order, `~` not yet expanded; relative ones are relative to the manifest.
    pub identity: Vec<String>,
    /// Passphrase of the key files.
    pub passphrase: Option<Text>,
    /// Login password.
    pub password: Option<Text>,
    /// How to become root.
    pub r#become: Option<Become>,
    /// sudo password.
    pub become_password: Option<Text>,
    /// What to do with unknown host keys.
    pub host_keys: Option<HostKeys>,
    /// Key exchange algorithms, first preferred.
    pub kex: Vec<String>,
    /// Whether `~/.ssh/config` is read; default true.
    pub config: Option<bool>,
    /// Jump hosts, nearest to the controller first.
    pub jump: Vec<Jump>,
    /// `host_key:` of the node: `ssh-ed25519 AAAA...` or `SHA256:...`.
    pub host_key: Vec<String>,
}

/// A jump host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Jump {
    /// Name or address.
    pub host: String,
    /// Port.
    pub port: Option<u16>,
    /// Login user.
    pub user: Option<String>,
    /// Key files.
    pub identity: Vec<String>,
    /// Its host keys.
    pub host_key: Vec<String>,
}

/// `base:`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Base {
    /// `hosts: cluster` (true), `hosts: none` (false), not written (`None`: true where `trust` is set).
    pub hosts: Option<bool>,
    /// `time: auto`.
    pub time: Option<String>,
    /// `limits:` item (`memlock`, `nofile`) to `unlimited` or a number.
    pub limits: IndexMap<String, String>,
    /// `sysctl:` key to value.
    pub sysctl: IndexMap<String, String>,
    /// `modules:`.
    pub modules: Vec<String>,
}

/// `trust:`.
#[derive(Debug, Clone, PartialEq)]
pub struct Trust {
    /// The user that may log in from every node to every node.
    pub user: String,
    /// Where the user is written, for findings.
    pub place: Place,
}

/// An entry of `packages:`.
#[derive(Debug, Clone, PartialEq)]
pub struct Package {
    /// Package name.
    pub name: String,
    /// Exact version, or a prefix ending in `*`.
    pub version: Option<String>,
    /// Whether it shall be kept from moving; `None` is not managed.
    pub hold: Option<bool>,
    /// Present or absent.
    pub present: bool,
    /// Where it is written.
    pub place: Place,
}

/// An entry of `files:`.
#[derive(Debug, Clone, PartialEq)]
pub struct FileWish {
    /// Absolute path on the node.
    pub path: String,
    /// What shall be there.
    pub what: FileState,
    /// Owner; `None` is root for new ones, unmanaged else.
    pub owner: Option<String>,
    /// Group.
    pub group: Option<String>,
    /// Mode, as four octal digits.
    pub mode: Option<String>,
    /// Units to restart after a change.
    pub restart: Vec<String>,
    /// Where it is written.
    pub place: Place,
}

/// What a `files:` entry wants.
#[derive(Debug, Clone, PartialEq)]
pub enum FileState {
    /// Inline content; `{{ node.name }}` and secrets are filled in.
    Content(Text),
    /// A file beside the manifest, copied as it is.
    Source(String),
    /// A file beside the manifest, filled in.
    Template(String),
    /// Present with the wanted mode and owner, content not managed.
    Present,
    /// Gone.
    Absent,
    /// A directory.
    Directory,
    /// A symbolic link to this target.
    Link(String),
}

/// An entry of `services:`.
#[derive(Debug, Clone, PartialEq)]
pub struct Service {
    /// Unit name, `.service` may be left out.
    pub name: String,
    /// Enabled at boot; `None` is not managed.
    pub enabled: Option<bool>,
    /// Running now; `None` is not managed.
    pub running: Option<bool>,
    /// Where it is written.
    pub place: Place,
}

/// An entry of `commands:`.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    /// Its name.
    pub name: String,
    /// Exits 0 when there is nothing to do.
    pub check: Text,
    /// Does it.
    pub apply: Text,
    /// Undoes it (kept, not used by this build).
    pub undo: Option<Text>,
    /// Runs as this user; root when not written.
    pub user: Option<String>,
    /// Where it is written.
    pub place: Place,
}
