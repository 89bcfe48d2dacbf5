//! What `plan`, `apply`, `status` and `facts` have in common before a node is contacted: the manifest read and
//! judged, secrets and side files read, nodes selected.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::{Common, Format, secrets};
use crate::diag::{ExitCode, Finding};
use crate::event::Event;
use crate::exec::Deadlines;
use crate::identity::Identities;
use crate::manifest::{self, codes, model};
use crate::nodeset::Nodeset;
use crate::ops::Seen;
use crate::plan::diff::Wish;
use crate::shell::sha256_hex;
use crate::ssh::Target;
use crate::state::{Places, StateError};
use crate::steps::Cluster;
use crate::ui;

/// Options of every command that contacts nodes.
#[derive(Debug, Clone, clap::Args)]
pub struct Contact {
    /// Only these nodes: names, ranges, @groups, !exclusions: gpu[01-16],!gpu07
    #[arg(long, value_name = "NODESET")]
    pub limit: Option<String>,
    /// How many nodes are worked on at once
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_parallel: u32,
    /// Seconds that something may take: probe=60, commands=7200; also reconnect, base, trust, packages, files, services
    #[arg(long, value_name = "NAME=SECONDS", value_parser = deadline)]
    pub deadline: Vec<(String, Duration)>,
    /// Let `${file:PATH}` read here too, outside the manifest's folder
    #[arg(long, value_name = "PATH")]
    pub allow_file: Vec<PathBuf>,
}

impl Contact {
    /// The deadlines with what the command line replaces.
    pub fn deadlines(&self) -> Deadlines {
        let mut deadlines = Deadlines::default();
        for (name, value) in &self.deadline {
            deadlines.set(name, *value);
        }
        deadlines
    }
}

/// What may have a deadline of its own on the command line.
const DEADLINES: [&str; 8] = ["probe", "reconnect", "base", "trust", "packages", "files", "services", "commands"];

fn deadline(text: &str) -> Result<(String, Duration), String> {
    let (name, seconds) = text.split_once('=').ok_or("write it as NAME=SECONDS")?;
    if !DEADLINES.contains(&name) {
        return Err(format!("{name} has no deadline; these have: {}", DEADLINES.join(", ")));
    }
    let seconds: u32 = seconds.parse().map_err(|_| "SECONDS is a whole number")?;
    if seconds == 0 {
        Err("SECONDS is at least 1".to_owned())
    } else {
        Ok((name.to_owned(), Duration::from_secs(seconds.into())))
    }
}

/// A manifest ready to be worked with.
pub struct Session {
    /// Path as given.
    pub manifest: String,
    /// Where its files live.
    pub places: Places,
    /// Wish, side files, secrets.
    pub wish: Arc<Wish>,
    /// SHA-256 of the manifest and the side files.
    pub inputs: BTreeMap<String, String>,
    /// What `NAME.nodes` says.
    pub identities: Identities,
    /// The nodes to contact, in manifest order.
    pub selected: Vec<model::Node>,
}

/// Why a command ends before it began; what there is to say has been said.
pub struct Refused(pub ExitCode);

/// Reads and judges everything; `steps` refuses parts this build has no step for.
///
/// # Errors
/// The exit code, after the findings were shown.
pub fn open(path: Option<&str>, contact: &Contact, steps: bool, common: &Common) -> Result<Session, Refused> {
    let path = path.unwrap_or("cluster.yaml").to_owned();
    let text = super::check::read(&path).map_err(|finding| refuse(&path, "", vec![finding], common))?;
    let (manifest, mut findings) = manifest::load(&path, &text);
    let broken = findings.iter().any(|finding| finding.severity == crate::diag::Severity::Error);
    let Some(manifest) = manifest.filter(|_| !broken) else {
        return Err(refuse(&path, &text, findings, common));
    };
    if steps {
        let unbuilt = manifest.refuse_unbuilt();
        if !unbuilt.is_empty() {
            findings.extend(unbuilt);
            return Err(refuse(&path, &text, findings, common));
        }
    }
    let places = Places::of(&path);
    let names: Vec<String> = manifest.nodes.iter().map(|node| node.name.clone()).collect();
    let chosen = match &contact.limit {
        None => None,
        Some(limit) => {
            let nodes = Nodeset::parse(limit).and_then(|nodeset| nodeset.select(&names, &manifest.groups));
            Some(nodes.map_err(|finding| refuse(&path, &text, vec![finding], common))?)
        }
    };
    let secrets = secrets::resolve(&manifest, &places.beside, &contact.allow_file)
        .and_then(|secrets| secrets::one_line(&manifest, &secrets).map(|()| secrets))
        .map_err(|findings| refuse(&path, &text, findings, common))?;
    let (files, mut inputs) =
        side_files(&manifest, &places).map_err(|findings| refuse(&path, &text, findings, common))?;
    inputs.insert(path.clone(), sha256_hex(text.as_bytes()));
    let identities = places.read_nodes().map_err(|error| refuse(&path, &text, vec![state_finding(&error)], common))?;
    let chosen: Option<std::collections::BTreeSet<String>> = chosen.map(|names| names.into_iter().collect());
    let selected: Vec<model::Node> = manifest
        .nodes
        .iter()
        .filter(|node| node.state == model::NodeState::In)
        .filter(|node| chosen.as_ref().is_none_or(|chosen| chosen.contains(&node.name)))
        .cloned()
        .collect();
    if let (Some(limit), Some(chosen), true) = (&contact.limit, &chosen, selected.is_empty()) {
        return Err(refuse(&path, &text, vec![nobody(limit, chosen.is_empty())], common));
    }
    let wish = Arc::new(Wish { manifest, files, secrets });
    if steps {
        let impossible = impossible(&wish, &selected);
        if !impossible.is_empty() {
            return Err(refuse(&path, &text, impossible, common));
        }
    }
    Ok(Session { manifest: path, places, wish, inputs, identities, selected })
}

/// What can be seen to make no operations before any node was asked; equal nodes are looked at once.
fn impossible(wish: &Wish, selected: &[model::Node]) -> Vec<Finding> {
    let mut settings = std::collections::BTreeSet::new();
    let mut findings: Vec<Finding> = Vec::new();
    for node in selected {
        if !settings.insert(Arc::as_ptr(&node.settings)) {
            continue;
        }
        let made = wish.operations(node, None, &Seen::default(), &Cluster::default());
        for finding in made.err().unwrap_or_default() {
            if !findings.contains(&finding) {
                findings.push(finding);
            }
        }
    }
    findings
}

/// A limit that leaves nothing to do: going on would look like success.
fn nobody(limit: &str, nothing: bool) -> Finding {
    let finding = Finding::input(codes::NO_SUCH, format!("--limit {limit} selects no node"), None);
    if nothing {
        finding.because("what it names is excluded again").fix("begin with all nodes: '@*,!n1'")
    } else {
        finding.because("all of these nodes are `state: out`").fix("write `state: in`, or name other nodes")
    }
}

/// A finding about one of our own files.
pub fn state_finding(error: &StateError) -> Finding {
    let finding = Finding::input(codes::UNREADABLE, error.to_string(), None);
    if error.to_string().contains("newer") {
        finding
    } else {
        finding
            .fix("restore the file from version control")
            .fix("or remove it: the nodes are then asked who they are, and host keys must come from elsewhere")
    }
}

/// Ends a command for a reason that lies outside of the manifest, as JSON too where that was asked for.
pub fn end(code: ExitCode, finding: Finding, common: &Common) -> ExitCode {
    let mut talk = format!("error: {}\n", ui::safe(&finding.title));
    for (word, lines) in [("because", &finding.because), ("help", &finding.fix)] {
        lines.iter().for_each(|line| talk.push_str(&format!("{word}: {}\n", ui::safe(line))));
    }
    ui::output::say(&talk);
    if common.format == Format::Json {
        let _ = super::print(&ui::findings::json(&[finding], &[]));
    }
    code
}

/// Shows findings and gives the exit code 2.
pub fn refuse(path: &str, text: &str, findings: Vec<Finding>, common: &Common) -> Refused {
    match common.format {
        Format::Json => {
            let _ = super::print(&ui::findings::json(&findings, &[]));
        }
        Format::Human => {
            let count = findings.iter().filter(|finding| finding.severity == crate::diag::Severity::Error).count();
            let errors = if count == 1 { "1 error".to_owned() } else { format!("{count} errors") };
            let talk = ui::findings::human(&findings, path, text);
            let talk = format!("{talk}{}: {errors}; nothing was contacted\n", ui::safe(path));
            // Not with eprint!, which panics where standard error is full.
            let _ = ui::output::write(&mut anstream::stderr().lock(), &talk);
        }
    }
    Refused(ExitCode::Usage)
}

type Side = (crate::steps::SideFiles, BTreeMap<String, String>);

/// Reads the files that `source:` and `template:` name, relative to the manifest.
fn side_files(manifest: &model::Manifest, places: &Places) -> Result<Side, Vec<Finding>> {
    let mut files = crate::steps::SideFiles::new();
    let mut hashes = BTreeMap::new();
    let mut findings = Vec::new();
    let mut tried = std::collections::BTreeSet::new();
    for node in &manifest.nodes {
        for wish in &node.settings.files {
            let (model::FileState::Source(path) | model::FileState::Template(path)) = &wish.what else { continue };
            if !tried.insert(path.clone()) {
                continue;
            }
            match std::fs::read(places.beside.join(path)) {
                Ok(bytes) => {
                    hashes.insert(path.clone(), sha256_hex(&bytes));
                    files.insert(path.clone(), bytes);
                }
                Err(error) => findings.push(
                    Finding::input(codes::UNREADABLE, format!("cannot read {path}: {error}"), Some(wish.place.clone()))
                        .because("source and template are relative to the manifest's folder")
                        .fix("create the file, or correct the path"),
                ),
            }
        }
    }
    if findings.is_empty() { Ok((files, hashes)) } else { Err(findings) }
}

impl Session {
    /// The event that begins asking, before there is a run.
    pub fn asking(&self) -> Event {
        Event::RunStarted {
            run: String::new(),
            by: String::new(),
            manifest: self.manifest.clone(),
            nodes: self.selected.iter().map(|node| node.name.clone()).collect(),
        }
    }

    /// The node as SSH sees it.
    pub fn target(&self, node: &model::Node) -> Target {
        let ssh = &node.settings.ssh;
        let mut settings = Arc::clone(&node.settings);
        if !self.places.kept {
            // Nothing is remembered for a manifest from standard input, so nothing new is accepted either.
            Arc::make_mut(&mut settings).ssh.host_keys = Some(model::HostKeys::Strict);
        }
        let fill = |text: &Option<model::Text>| secrets::fill(text.as_ref(), &self.wish.secrets);
        Target {
            node: node.name.clone(),
            address: node.address.clone(),
            address_given: node.address_given,
            ssh: settings,
            known: self.identities.get(&node.name).map(|identity| identity.host_keys.clone()).unwrap_or_default(),
            passphrase: fill(&ssh.passphrase),
            password: fill(&ssh.password),
            become_password: fill(&ssh.become_password),
        }
    }
}
