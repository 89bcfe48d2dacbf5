//! Typed settings from a tree whose layers are merged and whose values have been checked.
//!
//! What is malformed has a finding already and is left out without a word. Nothing here knows layers or nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::form;
use super::model::{
    Base, Become, Command, FileState, FileWish, HostKeys, Jump, Package, Piece, Service, Settings, Ssh, Text, Trust,
};
use super::tables::DECLARED;
use super::tree::{Node, Value};
use crate::diag::Placed;
use crate::secret::{Part, scan};

fn text(node: Option<&Node>) -> Option<String> {
    node.and_then(Node::text).map(str::to_owned)
}

fn texts(node: Option<&Node>) -> Vec<String> {
    node.map(Node::items).unwrap_or_default().iter().filter_map(Node::text).map(str::to_owned).collect()
}

fn switch(node: Option<&Node>) -> Option<bool> {
    node.and_then(Node::text).map(|text| text == "true")
}

fn secret_text(node: Option<&Node>) -> Option<Text> {
    let (parts, _) = scan(node?.text()?);
    let pieces = parts
        .into_iter()
        .map(|part| match part {
            Part::Literal(text) => Piece::Literal(text),
            Part::Secret(reference) => Piece::Secret(reference),
        })
        .collect();
    Some(Text { pieces })
}

fn pairs(node: Option<&Node>) -> impl Iterator<Item = (String, String)> {
    let entries = node.map(Node::entries).unwrap_or_default();
    entries.iter().filter_map(|entry| Some((entry.key.clone(), entry.value.text()?.to_owned())))
}

/// Items of one of the lists, each as a map.
fn items<'a>(layer: &'a Node, list: &str) -> &'a [Node] {
    layer.get(list).map(Node::items).unwrap_or_default()
}

/// Makes typed settings of a merged layer.
pub fn settings(file: &Arc<str>, layer: &Node) -> Settings {
    Settings {
        ssh: ssh(layer),
        base: layer.get("base").map(base),
        trust: layer
            .get("trust")
            .and_then(|node| node.get("user"))
            .and_then(|user| Some(Trust { user: user.text()?.to_owned(), place: user.mark.place(file) })),
        packages: items(layer, "packages").iter().filter_map(|item| package(file, item)).collect(),
        files: items(layer, "files").iter().filter_map(|item| file_wish(file, item)).collect(),
        services: items(layer, "services").iter().filter_map(|item| service(file, item)).collect(),
        commands: items(layer, "commands").iter().filter_map(|item| command(file, item)).collect(),
        stack: stack(file, layer),
    }
}

/// Declared hardware of a merged layer.
pub fn declared(file: &Arc<str>, layer: &Node) -> BTreeMap<String, Vec<Placed<String>>> {
    let mut all = BTreeMap::new();
    for entry in layer.entries().iter().filter(|entry| DECLARED.contains(&entry.key.as_str())) {
        leaves(file, &entry.value, &entry.key, &mut all);
    }
    all
}

fn stack(file: &Arc<str>, layer: &Node) -> BTreeMap<String, Vec<Placed<String>>> {
    let mut all = BTreeMap::new();
    for entry in layer.get("stack").map(Node::entries).unwrap_or_default() {
        leaves(file, &entry.value, &entry.key, &mut all);
    }
    all
}

/// Every single value below a node, under its dotted key.
fn leaves(file: &Arc<str>, node: &Node, key: &str, all: &mut BTreeMap<String, Vec<Placed<String>>>) {
    match &node.value {
        Value::Null => {}
        Value::Text(text, _) => {
            let placed = Placed { value: text.clone(), place: node.mark.place(file) };
            all.entry(key.to_owned()).or_default().push(placed);
        }
        Value::List(items) => items.iter().for_each(|item| leaves(file, item, key, all)),
        Value::Map(entries) => {
            for entry in entries {
                leaves(file, &entry.value, &format!("{key}.{}", entry.key), all);
            }
        }
    }
}

fn ssh(layer: &Node) -> Ssh {
    let host_key = texts(layer.get("host_key"));
    let Some(node) = layer.get("ssh") else { return Ssh { host_key, ..Ssh::default() } };
    Ssh {
        user: text(node.get("user")),
        port: node.get("port").and_then(Node::text).and_then(|port| port.parse().ok()),
        identity: texts(node.get("identity")),
        passphrase: secret_text(node.get("passphrase")),
        password: secret_text(node.get("password")),
        r#become: match node.get("become").and_then(Node::text) {
            Some("sudo") => Some(Become::Sudo),
            Some("none") => Some(Become::None),
            _ => None,
        },
        become_password: secret_text(node.get("become_password")),
        host_keys: match node.get("host_keys").and_then(Node::text) {
            Some("strict") => Some(HostKeys::Strict),
            Some("ask") => Some(HostKeys::Ask),
            Some("accept-new") => Some(HostKeys::AcceptNew),
            _ => None,
        },
        kex: texts(node.get("kex")),
        config: switch(node.get("config")),
        jump: node.get("jump").map(Node::items).unwrap_or_default().iter().filter_map(jump).collect(),
        host_key,
    }
}

fn jump(node: &Node) -> Option<Jump> {
    let (user, host, port) = form::jump(node.get("host")?.text()?)?;
    let written_port = node.get("port").and_then(Node::text).and_then(|port| port.parse().ok());
    Some(Jump {
        host: host.to_owned(),
        port: written_port.or(port),
        user: text(node.get("user")).or_else(|| user.map(str::to_owned)),
        identity: texts(node.get("identity")),
        host_key: texts(node.get("host_key")),
    })
}

fn base(node: &Node) -> Base {
    Base {
        hosts: node.get("hosts").and_then(Node::text).map(|word| word == "cluster"),
        time: text(node.get("time")),
        limits: pairs(node.get("limits")).collect(),
        sysctl: pairs(node.get("sysctl")).collect(),
        modules: texts(node.get("modules")),
    }
}

fn package(file: &Arc<str>, item: &Node) -> Option<Package> {
    Some(Package {
        name: text(item.get("name"))?,
        version: text(item.get("version")),
        hold: switch(item.get("hold")),
        present: item.get("state").and_then(Node::text) != Some("absent"),
        place: item.get("name")?.mark.place(file),
    })
}

fn file_wish(file: &Arc<str>, item: &Node) -> Option<FileWish> {
    let what = match item.get("state").and_then(Node::text) {
        Some("absent") => FileState::Absent,
        Some("directory") => FileState::Directory,
        Some("link") => FileState::Link(text(item.get("target"))?),
        _ => match (secret_text(item.get("content")), text(item.get("source")), text(item.get("template"))) {
            (Some(content), _, _) => FileState::Content(content),
            (_, Some(source), _) => FileState::Source(source),
            (_, _, Some(template)) => FileState::Template(template),
            _ => FileState::Present,
        },
    };
    Some(FileWish {
        path: text(item.get("path"))?,
        what,
        owner: text(item.get("owner")),
        group: text(item.get("group")),
        mode: text(item.get("mode")).map(|mode| format!("{mode:0>4}")),
        restart: texts(item.get("restart")),
        place: item.get("path")?.mark.place(file),
    })
}

fn service(file: &Arc<str>, item: &Node) -> Option<Service> {
    Some(Service {
        name: text(item.get("name"))?,
        enabled: switch(item.get("enabled")),
        running: switch(item.get("running")),
        place: item.get("name")?.mark.place(file),
    })
}

fn command(file: &Arc<str>, item: &Node) -> Option<Command> {
    Some(Command {
        name: text(item.get("name"))?,
        check: secret_text(item.get("check"))?,
        apply: secret_text(item.get("apply"))?,
        undo: secret_text(item.get("undo")),
        user: text(item.get("user")),
        place: item.get("name")?.mark.place(file),
    })
}
