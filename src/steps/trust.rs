//! SSH trust: every node of the mesh reaches every node and itself as the trust user.
//!
//! Keys are made on the nodes and never leave them; only public keys travel, each through the typed parser. A node
//! that is `out` or down keeps its place through `NAME.nodes`.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::{NodeContext, StepOp, When};
use crate::diag::Finding;
use crate::manifest::model::{Manifest, Node, NodeState, Trust};
use crate::ops::authorized_keys::AuthorizedKeys;
use crate::ops::known_hosts::{KnownHost, KnownHosts};
use crate::ops::public_key::PublicKey;
use crate::ops::{Op, directory, file, ssh_key, user};

/// The user and its key: needs nobody else.
pub fn key(context: &NodeContext<'_>, operations: &mut Vec<StepOp>, _findings: &mut Vec<Finding>) {
    let Some(trust) = &context.node.settings.trust else { return };
    let mut push = |op: Box<dyn Op>| operations.push(StepOp { step: "trust", when: When::Node, op });
    push(Box::new(user::User::new(&trust.user)));
    let attributes = file::Attributes {
        owner: Some(trust.user.clone()),
        group: None,
        mode: Some("0700".to_owned()),
    };
    push(Box::new(directory::Directory::new(&format!("{}/.ssh", home(context, trust)), attributes, Vec::new())));
    push(Box::new(ssh_key::SshKey::new(&trust.user, &home(context, trust), &comment(trust, context.node))));
}

/// Authorized keys and known hosts of all peers.
pub fn mesh(context: &NodeContext<'_>, operations: &mut Vec<StepOp>, _findings: &mut Vec<Finding>) {
    let Some(trust) = &context.node.settings.trust else { return };
    let members = members(context.manifest, trust);
    let identities = &context.cluster.identities;

    let keys: Vec<(PublicKey, String)> = members
        .iter()
        .filter_map(|peer| {
            let text = identities.get(&peer.name)?.trust_key.as_deref()?;
            Some((PublicKey::parse(text).ok()?, comment(trust, peer)))
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
    let hosts: Vec<KnownHost> = members
        .iter()
        .flat_map(|peer| {
            let names = names(context, peer);
            host_keys(context, peer).into_iter().map(move |key| KnownHost { names: names.clone(), key })
        })
        .collect();

    let folder = format!("{}/.ssh", home(context, trust));
    let mut push = |op: Box<dyn Op>| operations.push(StepOp { step: "trust", when: When::Mesh, op });
    push(Box::new(KnownHosts::new(&format!("{folder}/known_hosts"), &trust.user, hosts)));
    let options = format!("from=\"{}\",no-agent-forwarding,no-X11-forwarding", sources(context).join(","));
    push(Box::new(AuthorizedKeys::new(&format!("{folder}/authorized_keys"), &trust.user, &options, keys, waits)));
}

/// The home of the trust user: what the node says, else the usual place.
fn home(context: &NodeContext<'_>, trust: &Trust) -> String {
    let answer = context.seen.answer("user", &trust.user);
    answer.and_then(user::home_of).unwrap_or_else(|| format!("/home/{}", trust.user))
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
