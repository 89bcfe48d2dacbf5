//! Who the nodes are: the content of `NAME.nodes`.
//!
//! What was confirmed of a node the last time it was reached. Everything that renders peers reads it, so that a
//! node that is down or `out` keeps its place on the others. Pure: reading and writing the file is `state`'s.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::IpAddr;

use serde::Deserialize;

use crate::facts::Facts;

/// Format version of `NAME.nodes`; newer files are refused.
pub const FORMAT: u32 = 1;

/// What is known of one node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Its SSH host keys, `ssh-ed25519 AAAA`, sorted.
    #[serde(default)]
    pub host_keys: Vec<String>,
    /// Public key of the trust user.
    #[serde(default)]
    pub trust_key: Option<String>,
    /// `/etc/machine-id`.
    #[serde(default)]
    pub machine_id: Option<String>,
    /// Its global addresses, sorted.
    #[serde(default)]
    pub addresses: Vec<String>,
    /// UUIDs of its GPUs.
    #[serde(default)]
    pub gpu_uuids: Vec<String>,
    /// Node GUIDs of its RDMA devices.
    #[serde(default)]
    pub rdma_guids: Vec<String>,
    /// The run that last confirmed all this.
    #[serde(default)]
    pub confirmed_by: Option<String>,
}

impl Identity {
    /// Takes over what a node has just said of itself; what it did not say stays as it was.
    pub fn confirm(&mut self, facts: &Facts) {
        if let Some(keys) = facts.host_keys.yes().filter(|keys| !keys.is_empty()) {
            self.host_keys.clone_from(keys);
        }
        if let Some(id) = facts.machine_id.yes() {
            self.machine_id = Some(id.clone());
        }
        if let Some(interfaces) = facts.network.yes() {
            let all = interfaces.iter().filter_map(|interface| interface.addresses.yes()).flatten();
            let global: BTreeSet<IpAddr> = all.map(|one| one.address).filter(is_global).collect();
            self.addresses = global.iter().map(ToString::to_string).collect();
        }
        if let Some(gpus) = facts.gpus.yes() {
            let uuids: Vec<String> = gpus.iter().filter_map(|gpu| gpu.uuid.yes().cloned()).collect();
            if !uuids.is_empty() {
                self.gpu_uuids = uuids;
            }
        }
        if let Some(devices) = facts.rdma.yes().and_then(|rdma| rdma.devices.yes()) {
            self.rdma_guids = devices.iter().filter_map(|device| device.guid.yes().cloned()).collect();
        }
    }
}

/// Whether other machines could come from or reach this address: not loopback, not link-local.
fn is_global(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !address.is_loopback() && !address.is_link_local() && !address.is_unspecified(),
        IpAddr::V6(address) => !address.is_loopback() && !address.is_unicast_link_local() && !address.is_unspecified(),
    }
}

/// All nodes by name.
pub type Identities = BTreeMap<String, Identity>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: u32,
    #[serde(default)]
    nodes: Identities,
}

/// Reads the text of a `NAME.nodes` file.
///
/// # Errors
/// What is wrong with it, in one line: not YAML of this form, or written by a newer version.
pub fn parse(text: &str) -> Result<Identities, String> {
    // A newer file may hold anything else; that it is newer must be said all the same.
    let format = text.lines().find_map(|line| line.strip_prefix("format:")?.trim().parse::<u32>().ok());
    if let Some(format) = format.filter(|format| *format > FORMAT) {
        return Err(format!("it has format {format}, this build reads up to {FORMAT}; use a newer provision"));
    }
    let file: File = serde_saphyr::from_str(text).map_err(|error| {
        let said = error.to_string();
        let first = said.lines().next().unwrap_or_default();
        first.strip_prefix("error: ").unwrap_or(first).to_owned()
    })?;
    if file.format > FORMAT {
        return Err(format!("it has format {}, this build reads up to {FORMAT}; use a newer provision", file.format));
    }
    Ok(file.nodes)
}

/// Prints the file: sorted, so that a change is a small diff.
pub fn print(nodes: &Identities) -> String {
    let mut text = String::from(
        "# Who the nodes are, as last confirmed. Written by provision; keep it in git beside the manifest.\n",
    );
    let _ = writeln!(text, "format: {FORMAT}");
    if nodes.is_empty() {
        text.push_str("nodes: {}\n");
        return text;
    }
    text.push_str("nodes:\n");
    for (name, node) in nodes {
        let _ = writeln!(text, "  {}:", quoted(name));
        list(&mut text, "host_keys", &node.host_keys);
        scalar(&mut text, "trust_key", node.trust_key.as_deref());
        scalar(&mut text, "machine_id", node.machine_id.as_deref());
        list(&mut text, "addresses", &node.addresses);
        list(&mut text, "gpu_uuids", &node.gpu_uuids);
        list(&mut text, "rdma_guids", &node.rdma_guids);
        scalar(&mut text, "confirmed_by", node.confirmed_by.as_deref());
    }
    text
}

fn scalar(text: &mut String, key: &str, value: Option<&str>) {
    if let Some(value) = value {
        let _ = writeln!(text, "    {key}: {}", quoted(value));
    }
}

fn list(text: &mut String, key: &str, values: &[String]) {
    if values.is_empty() {
        let _ = writeln!(text, "    {key}: []");
        return;
    }
    let _ = writeln!(text, "    {key}:");
    for value in values {
        let _ = writeln!(text, "      - {}", quoted(value));
    }
}

/// A YAML double-quoted scalar; JSON's escapes are a subset of YAML's.
fn quoted(value: &str) -> String {
    serde_json::Value::String(value.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read_back() {
        let mut nodes = Identities::new();
        nodes.insert(
            "n1".to_owned(),
            Identity {
                host_keys: vec!["ssh-ed25519 AAAA".to_owned()],
                trust_key: Some("ssh-ed25519 BBBB".to_owned()),
                machine_id: Some("0123".to_owned()),
                addresses: vec!["10.0.0.1".to_owned(), "fd00::1".to_owned()],
                confirmed_by: Some("20261201T101500Z-abcd".to_owned()),
                ..Identity::default()
            },
        );
        nodes.insert("12".to_owned(), Identity::default());
        assert_eq!(parse(&print(&nodes)), Ok(nodes));
        assert_eq!(parse(&print(&Identities::new())), Ok(Identities::new()));
    }

    #[test]
    fn a_newer_file_is_refused() {
        assert!(parse("format: 2\nnodes: {}\n").unwrap_err().contains("newer"));
        assert!(parse("format: 2\nnodes: {n1: {surprise: 1}}\n").unwrap_err().contains("newer"));
        for cut in ["format: 1\nnodes: {n1: {surprise: 1}}\n", "", "format: 1\nnodes: {n1: {host_keys: [\"ssh", "- x"] {
            let why = parse(cut).unwrap_err();
            assert!(!why.is_empty() && !why.contains('\n'), "{why:?}");
        }
    }
}
