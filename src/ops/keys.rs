//! Authorized keys and known hosts: typed blocks.

use std::sync::Arc;

use super::block::Block;
use super::file::Ownership;
use super::names::{BadValue, bad};
use super::public_key::PublicKey;

/// A key that may log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorizedKey {
    /// The key.
    pub key: PublicKey,
    /// Addresses it may come from (`from="..."`); empty is anywhere. Shared: all keys of a mesh have the same ones.
    pub from: Arc<[String]>,
    /// Whether forwarding of agent and X11 is off.
    pub restricted: bool,
    /// Whose it is; one word.
    pub comment: String,
}

/// The block `name` of authorized keys at `path` (the user's `.ssh/authorized_keys`).
///
/// # Errors
/// When an address or comment cannot stand in such a line.
pub fn authorized_keys(path: &str, name: &str, keys: &[AuthorizedKey], owner: &str) -> Result<Block, BadValue> {
    let mut lines = Vec::new();
    // A mesh of N nodes has N keys with N addresses each: a list that is shared is looked through once.
    let mut last: Option<(&Arc<[String]>, String)> = None;
    for key in keys {
        let mut options = Vec::new();
        let from = match last.take() {
            Some((list, from)) if Arc::ptr_eq(list, &key.from) => from,
            _ => {
                for address in key.from.iter() {
                    host_word(address)?;
                }
                format!("from=\"{}\"", key.from.join(","))
            }
        };
        if !key.from.is_empty() {
            options.push(from.clone());
        }
        last = Some((&key.from, from));
        if key.restricted {
            options.push("no-agent-forwarding,no-X11-forwarding".to_owned());
        }
        host_word(&key.comment)?;
        let options = if options.is_empty() { String::new() } else { options.join(",") + " " };
        lines.push(format!("{options}{} {}", key.key, key.comment));
    }
    Block::new(path, name, lines, Ownership::new(owner, owner, "0600"))
}

/// The block `name` of known hosts at `path`: names and addresses, then the key.
///
/// # Errors
/// When a name cannot stand in such a line.
pub fn known_hosts(path: &str, name: &str, hosts: &[(Vec<String>, PublicKey)], owner: &str) -> Result<Block, BadValue> {
    let mut lines = Vec::new();
    for (names, key) in hosts {
        for name in names {
            host_word(name)?;
        }
        if !names.is_empty() {
            lines.push(format!("{} {key}", names.join(",")));
        }
    }
    Block::new(path, name, lines, Ownership::new(owner, owner, "0644"))
}

/// Letters, digits and what addresses are made of; `[host]:port` is fine.
pub(super) fn host_word(text: &str) -> Result<(), BadValue> {
    let good = !text.is_empty()
        && !text.starts_with(['@', '#', '-', '!'])
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "._:-[]/@%".contains(c));
    if good { Ok(()) } else { Err(bad("host", text, "a name or an address")) }
}
