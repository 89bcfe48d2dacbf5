//! `provision lab`: a practice cluster on this machine.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Common, Format};
use crate::diag::ExitCode;
use crate::lab::{self, LabError, NodeStatus, Options};

/// A practice cluster on this machine: real systemd, sshd and apt, no GPU and no cloud
#[derive(Debug, Args)]
#[command(after_help = "Example: provision lab up --nodes 3 && provision apply .provision/lab/cluster.yaml")]
pub struct LabArguments {
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(Debug, Subcommand)]
enum LabCommand {
    /// Makes the cluster, or what is missing of it, and writes .provision/lab/cluster.yaml
    Up {
        /// How many nodes there shall be; an existing cluster only grows
        #[arg(long, default_value_t = 3, value_name = "N")]
        nodes: usize,
        /// The manifest to fill in with nodes and ssh; a small built-in one when not given
        manifest: Option<PathBuf>,
        /// Another cluster beside the usual one
        #[arg(long, hide = true, default_value = "lab")]
        name: String,
    },
    /// Stops and removes everything but the packages and the root tree, which it lists
    Down {
        /// Removes those too
        #[arg(long)]
        purge: bool,
        /// Another cluster beside the usual one
        #[arg(long, hide = true, default_value = "lab")]
        name: String,
    },
    /// One line a node: address, whether it runs, whether sshd answers, for how long
    Status {
        /// Another cluster beside the usual one
        #[arg(long, hide = true, default_value = "lab")]
        name: String,
    },
}

/// Runs one of its commands.
#[must_use]
pub fn run(arguments: &LabArguments, common: &Common) -> ExitCode {
    let result = match &arguments.command {
        LabCommand::Up { nodes, manifest, name } => up(*nodes, manifest.clone(), name),
        LabCommand::Down { purge, name } => down(*purge, name),
        LabCommand::Status { name } => status(common.format, name),
    };
    result.unwrap_or_else(|error| {
        talk(&format!("error: {error}"));
        error.because().iter().for_each(|line| talk(&format!("  = because: {line}")));
        error.fix().iter().for_each(|line| talk(&format!("help: {line}")));
        match error {
            LabError::Name(_) | LabError::Count { .. } | LabError::NotRoot | LabError::NotDebian(_) => ExitCode::Usage,
            _ => ExitCode::Failed,
        }
    })
}

fn up(nodes: usize, manifest: Option<PathBuf>, name: &str) -> Result<ExitCode, LabError> {
    let options = Options { name: name.to_owned(), nodes, manifest, directory: PathBuf::from("."), say: talk };
    let lab = lab::up(&options)?;
    let short = format!(".provision/{name}");
    if lab.changed.is_empty() {
        data(&format!("nothing to change: {} nodes are up", lab.nodes.len()));
    } else {
        lab.changed.iter().for_each(|line| talk(&format!("  {line}")));
        data(&format!("{} nodes are up", lab.nodes.len()));
    }
    for node in &lab.nodes {
        data(&format!("  {:<6} {}", node.name, node.address));
    }
    data(&format!("next: provision apply {short}/cluster.yaml    or look around: ssh -F {short}/ssh_config n1"));
    Ok(ExitCode::Done)
}

fn down(purge: bool, name: &str) -> Result<ExitCode, LabError> {
    let options = Options { name: name.to_owned(), say: talk, ..Options::default() };
    let kept = lab::down(&options, purge)?;
    data(&format!(
        "the practice cluster is gone, and with it .provision/{name}: its manifest, edited or not, and its runs"
    ));
    if !kept.is_empty() {
        data("kept for the next one (`provision lab down --purge` removes it):");
        kept.iter().for_each(|line| data(&format!("  {line}")));
    }
    Ok(ExitCode::Done)
}

fn status(format: Format, name: &str) -> Result<ExitCode, LabError> {
    let found = lab::status(name)?;
    let nodes = found.as_deref().unwrap_or_default();
    let well = found.is_some() && nodes.iter().all(|node| node.running && node.ssh);
    if format == Format::Json {
        data(&serde_json::json!({"lab": name, "exists": found.is_some(), "nodes": nodes}).to_string());
    } else if found.is_none() {
        data("there is no practice cluster; `provision lab up` makes one");
    } else {
        nodes.iter().for_each(|node| data(&line(node)));
    }
    Ok(if well { ExitCode::Done } else { ExitCode::LeftOut })
}

fn line(node: &NodeStatus) -> String {
    let running = if node.running { "running" } else { "stopped" };
    let ssh = if node.ssh { "ssh answers" } else { "ssh silent" };
    let uptime = node.uptime_seconds.map_or(String::new(), |seconds| format!("up {seconds} s"));
    format!("{:<6} {:<15} {running}  {ssh:<11} {uptime}", node.name, node.address).trim_end().to_owned()
}

/// Data; a reader that went away is not an error.
fn data(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// Talk.
fn talk(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
