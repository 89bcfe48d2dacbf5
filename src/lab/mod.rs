//! The practice cluster: real hosts on this machine, made and taken down without a trace.
//!
//! It answers how to get nodes with real systemd, sshd and apt within seconds. Each is a systemd-nspawn container in
//! namespaces of its own, on one bridge, over one shared root tree. It must not know what the program does with
//! them: plans, SSH sessions and manifests are text or absent here.
//!
//! Everything derives from the lab's name, so that [`down`] can clean up after an [`up`] that died anywhere.

mod error;
mod files;
mod machine;
mod network;
mod node;
mod run;
mod state;

use std::path::PathBuf;
use std::time::Duration;

pub use error::LabError;
use run::command;
use state::{Folders, LabState};

/// The manifest that is used when none is given.
pub const MANIFEST: &str = include_str!("../../manifests/lab.yaml");

/// What to make or take down.
#[derive(Debug, Clone)]
pub struct Options {
    /// The lab's name; two labs of different names never touch each other.
    pub name: String,
    /// How many nodes there shall be at least.
    pub nodes: usize,
    /// The manifest that is filled in; the built-in one, or what was filled in before, when not given.
    pub manifest: Option<PathBuf>,
    /// The folder in which `.provision/NAME` is written.
    pub directory: PathBuf,
    /// Told each line that is meant for people.
    pub say: fn(&str),
}

impl Default for Options {
    fn default() -> Self {
        Options { name: "lab".to_owned(), nodes: 3, manifest: None, directory: PathBuf::from("."), say: |_| () }
    }
}

/// A practice cluster that is up.
#[derive(Debug, Clone)]
pub struct Lab {
    /// Its nodes in order.
    pub nodes: Vec<LabNode>,
    /// The folder with `cluster.yaml`, `ssh_config` and the key.
    pub dir: PathBuf,
    /// What this call changed on the machine, one line each; empty when all was there.
    pub changed: Vec<String>,
}

/// A node of a practice cluster.
#[derive(Debug, Clone)]
pub struct LabNode {
    /// `n1` and so on.
    pub name: String,
    /// Its IPv4 address.
    pub address: String,
    /// `ssh-ed25519 AAAA...`.
    pub host_key: String,
    /// What was written on the node since it was made, and nothing else but what its boot writes.
    pub upper: PathBuf,
    /// The process whose end ends the node; `None` when it does not run.
    pub pid: Option<u32>,
}

impl LabNode {
    /// The files and folders that a run has written, without what booting and logging in write, relative to `/`.
    #[must_use]
    pub fn written(&self) -> Vec<PathBuf> {
        node::written(&self.upper)
    }
}

/// How a node does.
#[derive(Debug, Clone, serde::Serialize)]
pub struct NodeStatus {
    /// `n1` and so on.
    pub name: String,
    /// Its IPv4 address.
    pub address: String,
    /// Whether its processes run.
    pub running: bool,
    /// Whether sshd greets.
    pub ssh: bool,
    /// Since its last boot.
    pub uptime_seconds: Option<u64>,
}

/// Makes the lab, or what is missing of it.
///
/// # Errors
/// Why it could not; what had been made until then stays for the next `up` or for [`down`].
pub fn up(options: &Options) -> Result<Lab, LabError> {
    state::check_name(&options.name)?;
    machine::check()?;
    if options.nodes == 0 || options.nodes > network::MOST_NODES {
        return Err(LabError::Count { wanted: options.nodes, most: network::MOST_NODES });
    }
    let folders = Folders::of(&options.name);
    let directory = files::folder(options)?;
    let text = files::base_text(options, &directory)?;
    let mut changed = Vec::new();

    let guard = state::lock(&folders)?;
    let missing = machine::missing(options.nodes)?;
    let before = LabState::read(&folders)?;
    let announced = machine::announce(&missing, before.is_none(), options);
    for line in &announced {
        (options.say)(line);
    }
    machine::prepare(&missing, options, &mut changed)?;
    let mut lab = match before {
        Some(lab) => lab,
        None => LabState { format: 1, name: options.name.clone(), network: network::choose()?, folders: Vec::new() },
    };
    if !lab.folders.contains(&directory) {
        lab.folders.push(directory.clone());
    }
    lab.write(&folders)?;
    drop(guard);

    network::make(&lab, &mut changed)?;
    let key = files::login_key(&folders)?;
    let present = node::names(&folders);
    let count = options.nodes.max(present.len());
    let mut started = Vec::new();
    for number in 1..=count {
        let name = format!("n{number}");
        node::make(&folders, &lab, number, &key, &mut changed)?;
        if node::alive(&folders.node(&name)).is_none() {
            node::start(&folders, &lab, number)?;
            changed.push(format!("started {name}"));
            started.push(number);
        }
    }
    for number in started {
        node::wait(&folders, &lab, number, Duration::from_secs(120))?;
    }
    let nodes = (1..=count).map(|number| node::describe(&folders, &lab, number)).collect::<Result<Vec<_>, _>>()?;
    files::write(&directory, &folders, &text, &nodes, &mut changed)?;
    Ok(Lab { nodes, dir: directory, changed })
}

/// How the nodes of a lab do; `None` when there is no such lab.
///
/// # Errors
/// When the recorded state cannot be read.
pub fn status(name: &str) -> Result<Option<Vec<NodeStatus>>, LabError> {
    state::check_name(name)?;
    let folders = Folders::of(name);
    let Some(lab) = LabState::read(&folders)? else { return Ok(None) };
    let count = node::names(&folders).len();
    let asked: Vec<_> = (1..=count)
        .map(|number| {
            let (folders, lab) = (folders.clone(), lab.clone());
            std::thread::spawn(move || node::status(&folders, &lab, number))
        })
        .collect();
    Ok(Some(asked.into_iter().filter_map(|thread| thread.join().ok()).collect()))
}

/// Takes a lab down: nodes, network, files. Gives what stays on the machine, one line each.
///
/// With `purge`, the root tree and the packages that we installed go too, unless another lab is up.
///
/// # Errors
/// What could not be removed. Calling it again goes on where it stopped.
pub fn down(options: &Options, purge: bool) -> Result<Vec<String>, LabError> {
    state::check_name(&options.name)?;
    machine::check_root()?;
    let folders = Folders::of(&options.name);
    if !folders.base.exists() {
        return Ok(Vec::new());
    }
    let _guard = state::lock(&folders)?;
    let lab = LabState::read(&folders)?;
    node::stop_all(&folders)?;
    network::remove(&options.name, lab.as_ref())?;
    for folder in lab.iter().flat_map(|lab| &lab.folders) {
        files::remove(folder)?;
    }
    folders.remove()?;
    machine::remove_unfinished()?;
    let others = state::labs();
    if others.is_empty() {
        machine::restore()?;
    }
    if purge && others.is_empty() {
        machine::purge(options)?;
        return Ok(Vec::new());
    }
    let mut kept = machine::kept()?;
    if purge {
        kept.push(format!("these labs, which are still up and need the rest: {}", others.join(", ")));
    }
    Ok(kept)
}
