//! The machines: ranges expanded, groups resolved, layers merged, settings shared between equal nodes.
//!
//! Also judges what only shows across layers: names given twice, groups that do not exist, a trust without user.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use indexmap::IndexMap;

use super::codes;
use super::decode::Decoder;
use super::form;
use super::layer::{is_layered, lay};
use super::model::{Manifest, Node as Machine, NodeState, Settings};
use super::settings::{declared, settings};
use super::tables::Form;
use super::tree::{Entry, Mark, Node, Value};
use crate::diag::{Place, Placed};
use crate::nodeset::{MAX_NAMES, Nodeset, expand, nearest};

type Declared = BTreeMap<String, Vec<Placed<String>>>;

/// What nodes of the same groups, with nothing of their own, share.
struct Shared {
    groups: Arc<[String]>,
    layer: Node,
    settings: Arc<Settings>,
    declared: Arc<Declared>,
}

/// Puts the manifest together; what is wrong goes to the decoder's findings.
pub fn assemble(decoder: &mut Decoder, file: &Arc<str>, text: &Arc<str>, root: &Node) -> Manifest {
    let mut work = Assembly {
        file,
        root,
        group_entries: root.get("groups").map(Node::entries).unwrap_or_default(),
        group_layers: HashMap::new(),
        shared: HashMap::new(),
        unbuilt: BTreeMap::new(),
        judged: BTreeSet::new(),
        decoder,
    };
    work.group_layers = work.group_entries.iter().map(|entry| (entry.key.as_str(), &entry.value)).collect();
    work.top();
    let (nodes, groups) = work.machines();
    let mut unbuilt: Vec<Placed<String>> =
        std::mem::take(&mut work.unbuilt).into_iter().map(|((place, value), ())| Placed { value, place }).collect();
    unbuilt.sort_by_key(|part| (part.place.start, part.value.clone()));
    let manifest = Manifest {
        file: Arc::clone(file),
        text: Arc::clone(text),
        cluster: root.get("cluster").and_then(Node::text).unwrap_or_default().to_owned(),
        nodes,
        groups,
        unbuilt,
        secrets: std::mem::take(&mut decoder.secrets),
    };
    waivers(decoder, root, &manifest);
    manifest
}

struct Assembly<'a> {
    file: &'a Arc<str>,
    root: &'a Node,
    group_entries: &'a [Entry],
    group_layers: HashMap<&'a str, &'a Node>,
    shared: HashMap<Vec<String>, Shared>,
    unbuilt: BTreeMap<(Place, String), ()>,
    judged: BTreeSet<Place>,
    decoder: &'a mut Decoder,
}

impl Assembly<'_> {
    fn top(&mut self) {
        if let Some(entry) = self.root.entry("scheduler")
            && !is_none(entry.value.get("kind"))
            && entry.value.get("kind").is_some()
        {
            self.unbuilt.insert((entry.key_mark.place(self.file), "scheduler".to_owned()), ());
        }
    }

    fn machines(&mut self) -> (Vec<Machine>, IndexMap<String, Vec<String>>) {
        let mut groups: IndexMap<String, Vec<String>> =
            self.group_entries.iter().map(|entry| (entry.key.clone(), Vec::new())).collect();
        let mut nodes: Vec<Machine> = Vec::new();
        let mut seen: HashMap<String, u32> = HashMap::new();
        let mut places: HashMap<(String, u16, Vec<String>), (String, u32)> = HashMap::new();
        let mut total = 0;
        let root = self.root;
        let list = root.entry("nodes");
        let entries = match list.map(|entry| &entry.value.value) {
            Some(Value::List(entries)) => entries.as_slice(),
            _ => &[],
        };
        if let (Some(list), true) = (list, entries.is_empty())
            && matches!(list.value.value, Value::List(_))
        {
            let finding = self.decoder.error(codes::MISSING, "`nodes` names no machine", list.key_mark);
            finding.fix.push("add - name: n1".to_owned());
        }
        for entry in entries {
            let made = self.entry(entry);
            total += made.len();
            for machine in made {
                if let Some(line) = seen.get(&machine.name) {
                    let at = entry.get("name").map_or(entry.mark, |name| name.mark);
                    let finding =
                        self.decoder.error(codes::DUPLICATE, format!("node `{}` is given twice", machine.name), at);
                    finding.because.push(format!("first given on line {line}"));
                    finding.fix.push("give each node a name of its own".to_owned());
                    // One finding for an entry says enough.
                    break;
                }
                seen.insert(machine.name.clone(), machine.place.line);
                // One that is out may have left its address to its successor.
                let works = machine.state == NodeState::In;
                if let Some((other, line)) = places.get(&whereabouts(&machine)).filter(|_| works) {
                    let at = entry.get("address").or(entry.get("name")).map_or(entry.mark, |node| node.mark);
                    let title = format!("nodes `{}` and `{other}` have the same address", machine.name);
                    let finding = self.decoder.error(codes::DUPLICATE, title, at);
                    finding
                        .because
                        .push(format!("`{other}` is given on line {line}; one machine would be changed twice"));
                    finding.fix.push("correct the address, or remove one of the two".to_owned());
                    break;
                }
                if works {
                    places.insert(whereabouts(&machine), (machine.name.clone(), machine.place.line));
                }
                for group in &*machine.groups {
                    if let Some(members) = groups.get_mut(group) {
                        members.push(machine.name.clone());
                    }
                }
                nodes.push(machine);
            }
            if total > MAX_NAMES {
                self.decoder.error(codes::TOO_LARGE, format!("more than {MAX_NAMES} nodes"), entry.mark);
                break;
            }
        }
        (nodes, groups)
    }

    /// The machines of one entry of `nodes:`.
    fn entry(&mut self, entry: &Node) -> Vec<Machine> {
        let groups = self.groups_of(entry);
        self.share(&groups);
        let name_node = entry.get("name");
        let fits = |form: Form, node: &Node| node.text().is_some_and(|text| form::check(form, text).is_ok());
        let names = name_node.and_then(Node::text).and_then(|text| expand(text).ok()).unwrap_or_default();
        let address_node = entry.get("address").filter(|node| node.text().is_some());
        let addresses = address_node.and_then(Node::text).map(|text| expand(text).unwrap_or_default());
        if let (Some(addresses), Some(node)) = (&addresses, address_node)
            && addresses.len() != names.len()
            && fits(Form::Address, node)
            && name_node.is_some_and(|name| fits(Form::NodeName, name))
        {
            let title = format!("{} for {}", count(addresses.len(), "address"), count(names.len(), "name"));
            let finding = self.decoder.error(codes::CONFLICT, title, node.mark);
            finding.because.push("the ranges in name and address must be equally long".to_owned());
        }
        let (shared_groups, settings, declared) = self.own(entry, &groups);
        let state = if entry.get("state").and_then(Node::text) == Some("out") { NodeState::Out } else { NodeState::In };
        let place = entry.mark.place(self.file);
        let mut addresses = addresses.map(Vec::into_iter);
        names
            .into_iter()
            .map(|name| Machine {
                place: place.clone(),
                address_given: addresses.is_some(),
                address: addresses.as_mut().and_then(Iterator::next).unwrap_or_else(|| name.clone()),
                name,
                groups: Arc::clone(&shared_groups),
                state,
                settings: Arc::clone(&settings),
                declared: Arc::clone(&declared),
            })
            .collect()
    }

    /// Groups of an entry that exist, with findings for those that do not.
    fn groups_of(&mut self, entry: &Node) -> Vec<String> {
        let mut groups: Vec<String> = Vec::new();
        for node in entry.get("groups").map(Node::items).unwrap_or_default() {
            let Some(name) = node.text() else { continue };
            if !self.group_layers.contains_key(name) {
                // Of thousands of wrong names the first ones say enough.
                let known = self.group_entries.iter().map(|group| group.key.as_str());
                let near = if self.decoder.findings.len() < 1000 { nearest(name, known) } else { None };
                let known: Vec<&str> = self.group_entries.iter().map(|group| group.key.as_str()).take(20).collect();
                let finding = self.decoder.error(codes::NO_SUCH, format!("no group `{name}`"), node.mark);
                match (near, known.is_empty()) {
                    (_, true) => finding.because.push("the manifest has no groups".to_owned()),
                    (_, false) => finding.because.push(format!("the groups are {}", known.join(", "))),
                }
                match near {
                    Some(near) => finding.fix.push(format!("did you mean `{near}`?")),
                    None => finding.fix.push(format!("add it under groups: as {name}: {{}}")),
                }
            } else if groups.iter().any(|group| group == name) {
                self.decoder.error(codes::DUPLICATE, format!("group `{name}` is given twice"), node.mark);
            } else {
                groups.push(name.to_owned());
            }
        }
        groups
    }

    /// Makes what nodes of these groups share, once.
    fn share(&mut self, groups: &[String]) {
        if self.shared.contains_key(groups) {
            return;
        }
        let mut layer = Node { value: Value::Map(Vec::new()), mark: Mark::default() };
        lay(&mut layer, self.root);
        for group in groups {
            if let Some(node) = self.group_layers.get(group.as_str()) {
                lay(&mut layer, node);
            }
        }
        let settings = Arc::new(settings(self.file, &layer));
        let declared = Arc::new(declared(self.file, &layer));
        self.judge(&layer, &settings);
        let shared = Shared { groups: Arc::from(groups), layer, settings, declared };
        self.shared.insert(groups.to_vec(), shared);
    }

    /// Groups, settings and declared hardware of an entry, with what it says itself.
    fn own(&mut self, entry: &Node, groups: &[String]) -> (Arc<[String]>, Arc<Settings>, Arc<Declared>) {
        let Some(shared) = self.shared.get(groups) else { return Default::default() };
        if !entry.entries().iter().any(|own| is_layered(&own.key)) {
            return (Arc::clone(&shared.groups), Arc::clone(&shared.settings), Arc::clone(&shared.declared));
        }
        let names = Arc::clone(&shared.groups);
        let mut layer = shared.layer.clone();
        lay(&mut layer, entry);
        let settings = settings(self.file, &layer);
        let same = *shared.settings == settings;
        let settings = if same { Arc::clone(&shared.settings) } else { Arc::new(settings) };
        let declared = declared(self.file, &layer);
        self.judge(&layer, &settings);
        (names, settings, Arc::new(declared))
    }

    /// What shows only once the layers are merged.
    fn judge(&mut self, layer: &Node, settings: &Settings) {
        for (key, place) in wanted_parts(layer, self.file) {
            self.unbuilt.insert((place, key), ());
        }
        let Some(trust) = layer.entry("trust").filter(|entry| matches!(entry.value.value, Value::Map(_))) else {
            return;
        };
        let Some(user) = trust.value.get("user") else {
            if self.judged.insert(trust.key_mark.place(self.file)) {
                let finding = self.decoder.error(codes::MISSING, "`user` is missing in trust", trust.key_mark);
                finding.because.push("the user that may log in from every node to every node".to_owned());
                finding.fix.push("add user: train".to_owned());
            }
            return;
        };
        let name = user.text().unwrap_or_default();
        let login = settings.ssh.user.as_deref() == Some(name);
        let administrator = settings.ssh.r#become == Some(super::model::Become::Sudo) && login;
        let why = match name {
            "root" | "toor" | "0" => "this user is root",
            "sudo" | "wheel" | "docker" | "adm" => "this is the name of a group of administrators",
            _ if administrator => "this user logs in and becomes root with sudo",
            _ => return,
        };
        if self.judged.insert(user.mark.place(self.file)) {
            let title = format!("the trust user `{name}` is an administrator");
            let finding = self.decoder.error(codes::TRUST_ADMIN, title, user.mark);
            finding.because.push(why.to_owned());
            finding.because.push("whoever gets into one node would be root on all of them".to_owned());
            finding.fix.push("use a user of its own, like train; it is made when absent".to_owned());
        }
    }
}

/// Where SSH finds a machine: equal addresses behind other jump hosts or ports are other machines.
fn whereabouts(machine: &Machine) -> (String, u16, Vec<String>) {
    let ssh = &machine.settings.ssh;
    let jumps = ssh.jump.iter().map(|jump| format!("{}:{}", jump.host, jump.port.unwrap_or(22))).collect();
    (machine.address.to_ascii_lowercase(), ssh.port.unwrap_or(22), jumps)
}

fn count(number: usize, what: &str) -> String {
    let plural = if what.ends_with('s') { "es" } else { "s" };
    format!("{number} {what}{}", if number == 1 { "" } else { plural })
}

fn is_none(node: Option<&Node>) -> bool {
    node.and_then(Node::text).is_some_and(|text| matches!(text, "none" | "false"))
}

/// Whether anything below a node is wanted: a version of `none` speaks for the whole map.
fn is_wanted(node: &Node) -> bool {
    match &node.value {
        Value::Null => false,
        Value::Text(..) => !is_none(Some(node)),
        Value::List(items) => items.iter().any(is_wanted),
        Value::Map(entries) => {
            let speaker = ["version", "engine", "fabric", "backend"].iter().find_map(|key| node.get(key));
            !is_none(speaker) && entries.iter().any(|entry| is_wanted(&entry.value))
        }
    }
}

/// Parts that a merged layer wants and this build has no step for.
fn wanted_parts(layer: &Node, file: &Arc<str>) -> Vec<(String, Place)> {
    let mut parts = Vec::new();
    let mut add = |entry: &Entry, name: String| {
        if is_wanted(&entry.value) {
            parts.push((name, entry.key_mark.place(file)));
        }
    };
    for section in ["stack", "monitoring"] {
        for entry in layer.get(section).map(Node::entries).unwrap_or_default() {
            if entry.key != "nccl_env" {
                add(entry, format!("{section}.{}", entry.key));
            }
        }
    }
    if let Some(entry) = layer.entry("firewall") {
        add(entry, "firewall".to_owned());
    }
    parts
}

/// Waivers must name nodes that exist.
fn waivers(decoder: &mut Decoder, root: &Node, manifest: &Manifest) {
    let names: Vec<String> = manifest.nodes.iter().map(|node| node.name.clone()).collect();
    for waiver in root.get("accept").map(Node::items).unwrap_or_default() {
        let Some(node) = waiver.get("nodes") else { continue };
        let Some(Ok(set)) = node.text().map(Nodeset::parse) else { continue };
        if let Err(wrong) = set.select(&names, &manifest.groups) {
            let finding = decoder.error(codes::NO_SUCH, wrong.title, node.mark);
            finding.fix = wrong.fix;
        }
    }
}
