//! Logging in: which methods are tried in which order, and why each failed.
//!
//! Agent, key files, password, keyboard-interactive. A refusal is final: nothing is tried twice. Never sees how the
//! methods work on the wire.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest as _, Sha256};
use tokio::sync::OnceCell;

use super::client::{Agent, Session, SigningKey, public_half};
use super::host_key::HostKey;
use super::wire::{Attempt, Unusable};
use crate::secret::Secret;

/// A key file to try.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    /// As shown to the user.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// Whether someone named it, so that its absence is worth a line.
    pub named: bool,
}

/// Where the agent is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentPlace {
    /// Its socket.
    Socket(PathBuf),
    /// There is none, and why.
    Nowhere(String),
}

/// All that a login may use.
#[derive(Debug, Clone)]
pub struct Credentials {
    /// Login user.
    pub user: String,
    /// Key files in order.
    pub identities: Vec<Identity>,
    /// Use the agent for keys in `identities` only.
    pub only: bool,
    /// The agent.
    pub agent: AgentPlace,
    /// Passphrase of the key files.
    pub passphrase: Option<Secret>,
    /// Login password.
    pub password: Option<Secret>,
}

/// Key files read and decrypted once a run: a passphrase costs a tenth of a second of computing.
#[derive(Default)]
pub struct KeyRing {
    #[expect(clippy::type_complexity, reason = "a cache, used in one place")]
    keys: Mutex<HashMap<(PathBuf, Vec<u8>), Arc<OnceCell<Result<SigningKey, String>>>>>,
}

impl KeyRing {
    async fn key(&self, path: &Path, passphrase: Option<&Secret>) -> Result<SigningKey, String> {
        let digest = passphrase.map(|secret| Sha256::digest(secret.reveal()).to_vec()).unwrap_or_default();
        let cell = {
            let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(keys.entry((path.to_owned(), digest)).or_default())
        };
        let load = || async {
            let (path, passphrase) = (path.to_owned(), passphrase.cloned());
            tokio::task::spawn_blocking(move || load(&path, passphrase.as_ref()))
                .await
                .unwrap_or_else(|error| Err(error.to_string()))
        };
        cell.get_or_init(load).await.clone()
    }
}

fn load(path: &Path, passphrase: Option<&Secret>) -> Result<SigningKey, String> {
    let text = std::fs::read_to_string(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "no such file".to_owned(),
        std::io::ErrorKind::PermissionDenied => "may not be read by you".to_owned(),
        std::io::ErrorKind::InvalidData => "is no key file (not text)".to_owned(),
        _ => error.to_string(),
    })?;
    let text = zeroize::Zeroizing::new(text);
    if HostKey::parse(&text).is_some() {
        return Err("is a public key; name the private one".to_owned());
    }
    SigningKey::decode(&text, passphrase.map(Secret::reveal)).map_err(|why| match why {
        Unusable::Encrypted => "is encrypted and no passphrase is given".to_owned(),
        Unusable::WrongPassphrase => "the passphrase is wrong".to_owned(),
        Unusable::Unreadable(why) => format!("is no key file that can be read ({why})"),
    })
}

/// The public key of a key file, from `FILE.pub` or from the file itself.
fn public(path: &Path) -> Option<HostKey> {
    let beside = PathBuf::from(format!("{}.pub", path.display()));
    let from_pub = std::fs::read_to_string(beside).ok().and_then(|text| HostKey::parse(&text));
    from_pub.or_else(|| public_half(&std::fs::read_to_string(path).ok()?))
}

/// Why a login failed, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denied {
    /// One line for each method.
    pub because: Vec<String>,
    /// Remedies.
    pub fix: Vec<String>,
}

/// The course of one login.
struct Course {
    because: Vec<String>,
    /// What the server still takes; empty when it has not said so yet.
    methods: Vec<String>,
    closed: bool,
    offered: Vec<HostKey>,
}

impl Course {
    /// Notes how an attempt ended; true when logged in.
    fn note(&mut self, what: &str, attempt: Attempt) -> bool {
        let why = match attempt {
            Attempt::In => return true,
            Attempt::Refused { methods, partial } => {
                self.methods = methods;
                match partial {
                    true => format!("accepted, but the server wants more: {}", self.methods.join(", ")),
                    false => "refused by the server".to_owned(),
                }
            }
            Attempt::Closed(why) => {
                self.closed = true;
                format!("the server ended the login ({why})")
            }
            Attempt::Failed(why) => why,
        };
        self.because.push(format!("{what}: {why}"));
        false
    }

    fn takes(&self, method: &str) -> bool {
        !self.closed && (self.methods.is_empty() || self.methods.iter().any(|taken| taken == method))
    }
}

/// Logs in.
///
/// # Errors
/// Every method with the reason it failed; final.
pub async fn login(session: &mut Session, with: &Credentials, ring: &KeyRing) -> Result<(), Denied> {
    let mut course = Course { because: Vec::new(), methods: Vec::new(), closed: false, offered: Vec::new() };
    if by_agent(session, with, &mut course).await || by_files(session, with, ring, &mut course).await {
        return Ok(());
    }
    match &with.password {
        Some(password) => {
            if course.takes("password") {
                let attempt = session.try_password(&with.user, password.reveal()).await;
                if course.note("password", attempt) {
                    return Ok(());
                }
            }
            if course.takes("keyboard-interactive") {
                let attempt = session.try_keyboard(&with.user, password.reveal()).await;
                if course.note("keyboard-interactive", attempt) {
                    return Ok(());
                }
            }
        }
        None => course.because.push("password: none given".to_owned()),
    }
    if !course.methods.is_empty() {
        course.because.push(format!("the server takes: {}", course.methods.join(", ")));
    }
    let banner = session.banner();
    if !banner.trim().is_empty() {
        course.because.push(format!("the server says: {}", banner.trim()));
    }
    let mut fix = vec![format!("check that {} is the right user and its authorized_keys holds your key", with.user)];
    if course.because.iter().any(|line| line.contains("is encrypted")) {
        fix.insert(0, "add the key to the agent: ssh-add, or set `ssh: passphrase`".to_owned());
    }
    if course.closed {
        fix.insert(0, "name the one key to use with `ssh: identity`; the server allows few attempts".to_owned());
    }
    fix.push("or name another key with `ssh: identity`, or set `ssh: password`".to_owned());
    Err(Denied { because: course.because, fix })
}

async fn by_agent(session: &mut Session, with: &Credentials, course: &mut Course) -> bool {
    let socket = match &with.agent {
        AgentPlace::Socket(socket) => socket,
        AgentPlace::Nowhere(why) => {
            course.because.push(format!("agent: {why}"));
            return false;
        }
    };
    let opened = tokio::time::timeout(std::time::Duration::from_secs(5), Agent::open(socket)).await;
    let (mut agent, mut keys) = match opened {
        Ok(Ok(opened)) => opened,
        Ok(Err(why)) => {
            course.because.push(format!("agent: does not answer on {} ({why})", socket.display()));
            return false;
        }
        Err(_) => {
            course.because.push(format!("agent: does not answer on {} within 5 s", socket.display()));
            return false;
        }
    };
    // Keys that are named come first, in their order; with `only`, no others.
    let named: Vec<HostKey> = with.identities.iter().filter_map(|identity| public(&identity.path)).collect();
    if keys.is_empty() {
        course.because.push("agent: holds no key".to_owned());
        return false;
    }
    if with.only {
        keys.retain(|(key, _)| named.contains(key));
        if keys.is_empty() {
            course.because.push("agent: holds none of the keys that are named".to_owned());
        }
    }
    keys.sort_by_key(|(key, _)| named.iter().position(|name| name == key).unwrap_or(usize::MAX));
    for (key, comment) in keys {
        if !course.takes("publickey") {
            break;
        }
        course.offered.push(key.clone());
        let attempt = session.try_agent(&with.user, &key, &mut agent).await;
        if course.note(&format!("agent key {} ({})", super::shown(&comment), key.fingerprint()), attempt) {
            return true;
        }
    }
    false
}

async fn by_files(session: &mut Session, with: &Credentials, ring: &KeyRing, course: &mut Course) -> bool {
    let mut missing = Vec::new();
    for identity in &with.identities {
        if !course.takes("publickey") {
            return false;
        }
        let what = format!("key {}", identity.name);
        if public(&identity.path).is_some_and(|key| course.offered.contains(&key)) {
            continue;
        }
        if !identity.named && !identity.path.exists() {
            missing.push(identity.name.as_str());
            continue;
        }
        match ring.key(&identity.path, with.passphrase.as_ref()).await {
            Ok(key) => {
                if key.public().is_some_and(|public| course.offered.contains(&public)) {
                    continue;
                }
                course.offered.extend(key.public());
                let attempt = session.try_key(&with.user, &key).await;
                if course.note(&what, attempt) {
                    return true;
                }
            }
            Err(why) => course.because.push(format!("{what}: {why}")),
        }
    }
    if !missing.is_empty() && missing.len() == with.identities.len() {
        course.because.push(format!("key files: none of {} exists", missing.join(", ")));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_files_that_cannot_be_used_say_why() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        let why = |file: &Path| load(file, None).err().unwrap();
        assert_eq!(why(&file), "no such file");
        std::fs::write(&file, "hello").unwrap();
        assert!(why(&file).contains("is no key file"));
        std::fs::write(&file, [0xff, 0xfe, 0x00]).unwrap();
        assert!(why(&file).contains("not text"));
        std::fs::write(&file, super::super::host_key::tests::key("ssh-ed25519", 1).to_string()).unwrap();
        assert!(why(&file).contains("public key"));
    }
}
