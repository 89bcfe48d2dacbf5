//! `provision facts`: what the nodes are.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::contact::{self, block_on, client, listen, on_interrupt};
use super::session::{self, Contact, Refused, Session};
use super::{Common, Format};
use crate::diag::{ExitCode, Finding};
use crate::exec::probe::Asker;
use crate::exec::run::survey;
use crate::facts::{self, Facts};
use crate::manifest::codes;
use crate::ops::{Question, Seen};
use crate::ssh::{Target, Transport as _};
use crate::state::Places;
use crate::ui;

/// What the nodes are: system, GPUs, driver, network, asked in one go and without root
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  provision facts cluster.yaml --out facts/        one JSON file a node
  provision facts --host 'ubuntu@10.0.0.[11-14]'   no manifest needed")]
pub struct Arguments {
    /// The manifest; ./cluster.yaml when neither it nor --host is given
    manifest: Option<String>,
    /// Ask these nodes, without a manifest: [user@]HOST[:port], ranges allowed
    #[arg(long, value_name = "NODESET", conflicts_with = "manifest")]
    host: Vec<String>,
    /// Write one JSON file for each node into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    contact: Contact,
}

struct FactsAsker;

impl Asker for FactsAsker {
    fn questions(&self, _: &str, _: Option<&Facts>, _: &Seen) -> Vec<Question> {
        Vec::new()
    }

    fn facts_script(&self) -> &str {
        facts::script(facts::Depth::Full)
    }

    fn root(&self) -> bool {
        false
    }

    fn last_facts(&self, _: &str) -> Option<Facts> {
        None
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> ExitCode {
    let (session, targets) = match targets(arguments, common) {
        Ok(known) => known,
        Err(Refused(code)) => return code,
    };
    block_on(async {
        let cancel = on_interrupt();
        let quiet = Common { progress: super::Progress::None, ..common.clone() };
        let none = crate::secret::Secrets::new();
        let secrets = session.as_ref().map_or(&none, |session| &session.wish.secrets);
        let (context, listener) = listen(&arguments.contact, &quiet, &cancel, secrets, None);
        let beside = Places::of(arguments.manifest.as_deref().unwrap_or("cluster.yaml")).beside;
        let client = client(&beside);
        let results = survey(Arc::clone(&client), targets, Arc::new(FactsAsker), false, context).await;
        listener.end().await;
        contact::end(&client);
        if let Some(session) = &session {
            super::survey::keep_accepted(session, &client);
        }
        if cancel.is_cancelled() {
            ui::output::say("interrupted: not all nodes were asked\n");
            return ExitCode::Interrupted;
        }
        let mut nodes = BTreeMap::new();
        let mut code = ExitCode::Done;
        for (node, result) in results {
            match result {
                Ok(surveyed) => {
                    nodes.insert(node, surveyed.answers.facts);
                    if let Some(link) = surveyed.link {
                        link.close().await;
                    }
                }
                Err(why) => {
                    code = code.worst(ExitCode::LeftOut);
                    ui::output::say(&ui::report::left_out(&node, &why));
                }
            }
        }
        show(arguments, common, &nodes).map_or_else(|code| code, |()| code)
    })
}

fn show(arguments: &Arguments, common: &Common, nodes: &BTreeMap<String, Facts>) -> Result<(), ExitCode> {
    if let Some(folder) = &arguments.out {
        let written = std::fs::create_dir_all(folder).map_err(|error| error.to_string()).and_then(|()| {
            nodes.iter().try_for_each(|(node, facts)| {
                crate::state::write_whole(
                    &folder.join(format!("{node}.json")),
                    facts::to_json(facts).unwrap_or_default().as_bytes(),
                )
                .map_err(|error| error.to_string())
            })
        });
        if let Err(error) = written {
            let title = format!("facts not written to {}: {error}", folder.display());
            let finding = Finding::input(codes::UNWRITABLE, title, None).fix("name another folder with --out");
            return Err(session::end(ExitCode::Usage, finding, common));
        }
    }
    let text = match common.format {
        Format::Json => ui::json::pretty(&nodes.values().collect::<Vec<_>>()).unwrap_or_default(),
        Format::Human => {
            let mut text = String::new();
            for facts in nodes.values() {
                for line in facts::human(facts) {
                    text.push_str(&ui::safe(&line));
                    text.push('\n');
                }
            }
            text
        }
    };
    ui::output::print(&text).map_err(|_| ExitCode::Failed)
}

/// Whom to ask; with the session when there is a manifest.
fn targets(arguments: &Arguments, common: &Common) -> Result<(Option<Session>, Vec<Target>), Refused> {
    if arguments.host.is_empty() {
        let session = session::open(arguments.manifest.as_deref(), &arguments.contact, false, common)?;
        let targets = session.selected.iter().map(|node| session.target(node)).collect();
        return Ok((Some(session), targets));
    }
    let mut text = String::from("version: 1\ncluster: hosts\nnodes:\n");
    for host in &arguments.host {
        let (user, host) = host.rsplit_once('@').map_or((None, host.as_str()), |(user, host)| (Some(user), host));
        let (host, port) = match host.rsplit_once(':') {
            Some((name, port)) if !name.contains(':') && port.parse::<u16>().is_ok() => (name, Some(port)),
            _ => (host, None),
        };
        let quote = |value: &str| serde_json::Value::String(value.to_owned()).to_string();
        text.push_str(&format!("  - name: {}\n    ssh: {{config: true", quote(host)));
        if let Some(user) = user {
            text.push_str(&format!(", user: {}", quote(user)));
        }
        if let Some(port) = port {
            text.push_str(&format!(", port: {port}"));
        }
        text.push_str("}\n");
    }
    let (manifest, findings) = crate::manifest::load("--host", &text);
    let Some(manifest) = manifest.filter(|_| findings.iter().all(|f| f.severity != crate::diag::Severity::Error))
    else {
        return Err(session::refuse("--host", &text, findings, common));
    };
    let targets = manifest
        .nodes
        .iter()
        .map(|node| Target {
            node: node.name.clone(),
            address: node.address.clone(),
            address_given: node.address_given,
            ssh: Arc::clone(&node.settings),
            known: Vec::new(),
            passphrase: None,
            password: None,
            become_password: None,
        })
        .collect();
    Ok((None, targets))
}
