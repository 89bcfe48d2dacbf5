//! SSH trust: every node of the mesh reaches every node and itself as the trust user.
//!
//! Keys are made on the nodes and never leave them; only public keys travel, each through the typed parser. A node
//! that is `out` or down keeps its place through `NAME.nodes`.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use super::{NodeContext, StepOp, When, push};
use crate::diag::Finding;
use crate::manifest::codes;
use crate::manifest::model::{Manifest, Node, NodeState, Trust};
use crate::ops::file::{Ownership, content_of};
use crate::ops::keys::{AuthorizedKey, authorized_keys, known_hosts};
use crate::ops::public_key::PublicKey;
use crate::ops::waits::Waits;
use crate::ops::{directory, ssh_key, user};

/// Name of the key file in `~/.ssh`, of the marked blocks, and of the step.
const STEP: &str = "trust";
const KEY: &str = "id_ed25519";
/// Groups whose members are as good as root.
const ADMINISTRATORS: [&str; 3] = ["sudo", "wheel", "docker"];

/// The user and its key: needs nobody else.
pub fn key(context: &NodeContext<'_>, operations: &mut Vec<StepOp>, findings: &mut Vec<Finding>) {
    let Some(trust) = &context.node.settings.trust else { return };
    if let Some(account) = user::account(context.seen, &trust.user) {
        let group = account.groups.iter().find(|group| ADMINISTRATORS.contains(&group.as_str()));
        let why = match group {
            _ if account.uid == 0 => Some("it has user id 0 there".to_owned()),
            Some(group) => Some(format!("it is in the group {group} there")),
            None => None,
        };
        if let Some(why) = why {
            let title = format!("{} may not be the user of the trust: {why}", trust.user);
            let fix = "name a user of its own; one that does not exist yet is made";
            let finding = Finding::input(codes::TRUST_ADMIN, title, Some(trust.place.clone()));
            findings.push(finding.because("every node of the mesh could become root on every other").fix(fix));
            return;
        }
        if account.home.is_none() {
            let title =
                format!("{} cannot be the user of the trust: its home directory there is no usual path", trust.user);
            let finding = Finding::input(codes::BAD_VALUE, title, Some(trust.place.clone()));
            findings.push(finding.fix("give it a home directory of its own, or name another user"));
            return;
        }
    }
    let home = home(context, trust);
    let place = &trust.place;
    let owner = Ownership::new(&trust.user, "", "0700");
    let when = When::Node;
    push(STEP, when, place, operations, findings, user::User::new(&trust.user, "/bin/bash", &home, false));
    push(STEP, when, place, operations, findings, directory::Directory::new(&format!("{home}/.ssh"), owner));
    let key = ssh_key::SshKey::new(&trust.user, KEY, &comment(trust, context.node));
    push(STEP, when, place, operations, findings, key);
}

/// Authorized keys and known hosts of all peers.
pub fn mesh(context: &NodeContext<'_>, operations: &mut Vec<StepOp>, findings: &mut Vec<Finding>) {
    let Some(trust) = &context.node.settings.trust else { return };
    let members = members(context.manifest, trust);
    let identities = &context.cluster.identities;

    let folder = format!("{}/.ssh", home(context, trust));
    let (known, allowed) = (format!("{folder}/known_hosts"), format!("{folder}/authorized_keys"));
    let (old_known, old_allowed) = (block_now(context, &known), block_now(context, &allowed));
    let from: Arc<[String]> = sources(context).into();
    let keys: Vec<AuthorizedKey> = members
        .iter()
        .filter_map(|peer| {
            let text = identities.get(&peer.name).and_then(|identity| identity.trust_key.as_deref());
            let key = match text {
                Some(text) => PublicKey::parse(text).ok()?,
                None => key_there(context, peer, &old_allowed, |line| {
                    line.rsplit(' ').next() == Some(&comment(trust, peer))
                })?,
            };
            Some(AuthorizedKey { key, from: Arc::clone(&from), restricted: true, comment: comment(trust, peer) })
        })
        .collect();
    let coming: Vec<&str> = members
        .iter()
        .filter(|peer| context.cluster.coming.contains(&peer.name))
        .map(|peer| peer.name.as_str())
        .collect();
    let waits = match coming.as_slice() {
        [] => None,
        [one] => Some(format!("the key of {one} is made in this run")),
        many => Some(format!("the keys of {} nodes are made in this run", many.len())),
    };
    let hosts: Vec<(Vec<String>, PublicKey)> = members
        .iter()
        .flat_map(|peer| {
            let names = names(context, peer);
            let mut keys = host_keys(context, peer);
            if keys.is_empty() {
                let named = |line: &str| line.split([' ', ',']).next() == names.first().map(String::as_str);
                keys.extend(key_there(context, peer, &old_known, named));
            }
            keys.into_iter().map(move |key| (names.clone(), key))
        })
        .collect();

    let (place, when) = (&trust.place, When::Mesh);
    let block = known_hosts(&known, STEP, &hosts, &trust.user);
    push(STEP, when, place, operations, findings, block);
    let block = authorized_keys(&allowed, STEP, &keys, &trust.user);
    push(STEP, when, place, operations, findings, block.map(|block| Waits::new(block, waits)));
}

/// The lines of our block in a file of the node, as far as it showed them.
fn block_now(context: &NodeContext<'_>, path: &str) -> Vec<String> {
    let answer = context.seen.answer("block", &format!("{path} {STEP}")).unwrap_or_default();
    content_of(answer).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// The key that a node already has for a peer of which nothing is known here: `NAME.nodes` may be lost or new, and a
/// peer that is only out of reach keeps its place all the same. What stands there goes through the typed parser.
fn key_there(
    context: &NodeContext<'_>,
    peer: &Node,
    lines: &[String],
    is_peer: impl Fn(&str) -> bool,
) -> Option<PublicKey> {
    let cluster = context.cluster;
    let met = cluster.identities.get(&peer.name).is_some_and(|identity| identity.machine_id.is_some());
    if met || cluster.coming.contains(&peer.name) {
        return None;
    }
    let line = lines.iter().find(|line| is_peer(line))?;
    let words: Vec<&str> = line.split(' ').collect();
    words.windows(2).find_map(|pair| PublicKey::parse(&pair.join(" ")).ok())
}

/// The home of the trust user: what the node says, else the usual place.
fn home(context: &NodeContext<'_>, trust: &Trust) -> String {
    let account = user::account(context.seen, &trust.user);
    account.and_then(|account| account.home).unwrap_or_else(|| format!("/home/{}", trust.user))
}

fn comment(trust: &Trust, node: &Node) -> String {
    format!("{}@{}", trust.user, node.name)
}

/// The nodes of the same mesh, also those that are out.
fn members<'a>(manifest: &'a Manifest, trust: &Trust) -> Vec<&'a Node> {
    let same = |node: &&Node| node.settings.trust.as_ref().is_some_and(|other| other.user == trust.user);
    manifest.nodes.iter().filter(same).collect()
}

/// Name, and short name where it is one and no other node has it too.
pub fn plain_names(manifest: &Manifest, node: &Node) -> Vec<String> {
    let mut names = vec![node.name.clone()];
    if let Some(short) = short_name(&node.name) {
        let others = manifest.nodes.iter().filter(|other| other.name != node.name);
        let taken = others.clone().any(|other| other.name == short || short_name(&other.name) == Some(short));
        if !taken {
            names.push(short.to_owned());
        }
    }
    names
}

fn short_name(name: &str) -> Option<&str> {
    if name.parse::<IpAddr>().is_ok() {
        return None;
    }
    let (short, rest) = name.split_once('.')?;
    (!short.is_empty() && !rest.is_empty()).then_some(short)
}

/// Every name under which a peer is reached, as known_hosts writes them.
fn names(context: &NodeContext<'_>, peer: &Node) -> Vec<String> {
    let mut plain = plain_names(context.manifest, peer);
    plain.push(peer.address.clone());
    plain.extend(address_of(context, peer).map(|address| address.to_string()));
    let port = peer.settings.ssh.port.unwrap_or(22);
    let mut seen = BTreeSet::new();
    plain.retain(|name| seen.insert(name.clone()));
    if port == 22 { plain } else { plain.iter().map(|name| format!("[{name}]:{port}")).collect() }
}

/// A node's address as an address: the manifest's when it is one, else what was confirmed.
pub fn address_of(context: &NodeContext<'_>, node: &Node) -> Option<IpAddr> {
    node.address.parse().ok().or_else(|| {
        let identity = context.cluster.identities.get(&node.name)?;
        identity.addresses.iter().find_map(|address| address.parse().ok())
    })
}

/// Host keys of a peer: as confirmed, else as the manifest gives them in full.
fn host_keys(context: &NodeContext<'_>, peer: &Node) -> Vec<PublicKey> {
    let confirmed = context.cluster.identities.get(&peer.name).map(|identity| identity.host_keys.as_slice());
    let texts = match confirmed {
        Some(keys) if !keys.is_empty() => keys,
        _ => peer.settings.ssh.host_key.as_slice(),
    };
    texts.iter().filter_map(|text| PublicKey::parse(text).ok()).collect()
}

/// Where the mesh may log in from: every literal address of the manifest, every confirmed global address, itself.
fn sources(context: &NodeContext<'_>) -> Vec<String> {
    let mut addresses: BTreeSet<IpAddr> = BTreeSet::new();
    for node in &context.manifest.nodes {
        addresses.extend(node.address.parse::<IpAddr>().ok());
        if let Some(identity) = context.cluster.identities.get(&node.name) {
            addresses.extend(identity.addresses.iter().filter_map(|text| text.parse::<IpAddr>().ok()));
        }
    }
    addresses.extend([IpAddr::from([127, 0, 0, 1]), IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])]);
    addresses.iter().map(ToString::to_string).collect()
}

/// Whether a node takes part in making keys in this run.
pub fn makes_key(node: &Node) -> bool {
    node.settings.trust.is_some() && node.state == NodeState::In
}
