//! From a node to an open connection: settings, dialling, host key, login.
//!
//! Puts the other files together. Writes no file: what was newly accepted is told by [`SshConnector::accepted`].

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::auth::{AgentPlace, KeyRing, login};
use super::client::{Session, handshake};
use super::config::Asker;
use super::host_key::{HostKey, Knowledge, Verdict};
use super::jump::Jumps;
use super::known_hosts::KnownHosts;
use super::pacing::{ATTEMPTS, Pacing, pause};
use super::resolve::{Resolved, Wish};
use super::run::SshLink;
use super::wire::{Broken, Prompt, Stream, Terms};
use super::{Connector, Reasons as _, Target, say};
use crate::event::LeftOut;
use crate::manifest::model::HostKeys;

/// A question about the key of a host never seen before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The node, or `jump host NAME`.
    pub name: String,
    /// Where it is: `10.0.0.7 port 22`.
    pub place: String,
    /// The key, `ssh-ed25519 AAAA...`.
    pub key: String,
    /// Its fingerprint.
    pub fingerprint: String,
}

/// Asks a person whether a key is right; made by whoever owns the terminal.
pub trait AskHostKey: Send + Sync {
    /// Shows the question and waits for the answer; never called twice at once.
    fn ask(&self, question: &Question) -> bool;
}

/// What a connector needs to know of the controller.
#[derive(Clone)]
pub struct SshOptions {
    /// Replaces `~/.ssh/config` and the system's file (`ssh -F`).
    pub config_file: Option<PathBuf>,
    /// Relative key files are relative to this: the manifest's folder.
    pub base: PathBuf,
    /// Home directory of the controller's user.
    pub home: PathBuf,
    /// Name of the controller's user.
    pub local_user: String,
    /// The agent's socket.
    pub agent: Option<PathBuf>,
    /// What counts when the manifest says nothing of `host_keys`.
    pub host_keys: HostKeys,
    /// Asks a person; without it `ask` means `strict`.
    pub ask: Option<Arc<dyn AskHostKey>>,
    /// For a TCP connection, and again for the key exchange.
    pub connect_timeout: Duration,
}

impl SshOptions {
    /// From the environment: `HOME`, `USER`, `SSH_AUTH_SOCK`; strict.
    pub fn from_environment(base: &Path) -> SshOptions {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        SshOptions {
            config_file: None,
            base: base.to_owned(),
            home: variable("HOME").map_or_else(|| PathBuf::from("/"), PathBuf::from),
            local_user: variable("USER")
                .or_else(|| variable("LOGNAME"))
                .map_or_else(|| "root".to_owned(), |user| user.to_string_lossy().into_owned()),
            agent: variable("SSH_AUTH_SOCK").map(PathBuf::from),
            host_keys: HostKeys::Strict,
            ask: None,
            connect_timeout: Duration::from_secs(10),
        }
    }

    pub(super) fn agent_place(&self, from_config: Option<&str>) -> AgentPlace {
        match from_config {
            Some("none") => AgentPlace::Nowhere("switched off by IdentityAgent none".to_owned()),
            Some(path) if path != "SSH_AUTH_SOCK" && !path.starts_with('$') => AgentPlace::Socket(PathBuf::from(path)),
            _ => match &self.agent {
                Some(socket) => AgentPlace::Socket(socket.clone()),
                None => AgentPlace::Nowhere("not running (SSH_AUTH_SOCK is not set)".to_owned()),
            },
        }
    }
}

/// Opens connections for one run; cheap to clone, all clones share what they learn.
#[derive(Clone)]
pub struct SshConnector(Arc<Inner>);

struct Inner {
    options: SshOptions,
    asker: Asker,
    ring: KeyRing,
    pacing: Pacing,
    jumps: Jumps,
    files: Mutex<std::collections::HashMap<PathBuf, Arc<KnownHosts>>>,
    /// Door and key of every key newly accepted, and the node's name (none for a jump host).
    accepted: Mutex<Vec<Accepted>>,
    notes: Mutex<BTreeSet<String>>,
    asking: tokio::sync::Mutex<()>,
}

struct Accepted {
    node: Option<String>,
    door: String,
    key: HostKey,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SshConnector {
    /// A connector for one run.
    pub fn new(options: SshOptions) -> SshConnector {
        SshConnector(Arc::new(Inner {
            asker: Asker::new(options.config_file.clone()),
            options,
            ring: KeyRing::default(),
            pacing: Pacing::default(),
            jumps: Jumps::default(),
            files: Mutex::default(),
            accepted: Mutex::default(),
            notes: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
        }))
    }

    /// Nodes whose key was unknown and has been accepted in this run, with the key: for `NAME.nodes`.
    pub fn accepted(&self) -> Vec<(String, String)> {
        held(&self.0.accepted).iter().filter_map(|one| Some((one.node.clone()?, one.key.to_string()))).collect()
    }

    /// Remarks on the user's SSH settings, each once, sorted.
    pub fn notes(&self) -> Vec<String> {
        held(&self.0.notes).iter().cloned().collect()
    }

    /// Lets go of the connections to jump hosts.
    pub fn close(&self) {
        self.0.jumps.clear();
    }
}

impl Connector for SshConnector {
    type Link = SshLink;

    async fn connect(&self, target: &Target) -> Result<SshLink, LeftOut> {
        let inner = &self.0;
        let ssh = &target.ssh.ssh;
        if ssh.jump.len() > 1 {
            return Err(say("unreachable", format!("{} is behind {} jump hosts", target.node, ssh.jump.len()))
                .because("this build goes through one jump host")
                .fix("write one host under `ssh: jump`"));
        }
        let resolved = inner.resolve(&Wish::node(target)).await?;
        let via = match &resolved.jump {
            Some(jump) => {
                let hop = inner.resolve(&Wish::jump(target, jump)).await?;
                if hop.jump.is_some() {
                    return Err(say("unreachable", format!("jump host {} is itself behind a jump host", jump.host))
                        .because("this build goes through one jump host")
                        .fix("name the first host in `ssh: jump`, or set `ssh: config: false`"));
                }
                let key = format!("{hop:?}");
                Some(inner.jumps.get(key, inner.open(&hop, None)).await?)
            }
            None => None,
        };
        let session = inner.open(&resolved, via.as_ref()).await?;
        Ok(SshLink {
            node: target.node.clone(),
            user: resolved.credentials.user.clone(),
            r#become: ssh.r#become,
            become_password: target.become_password.clone(),
            session,
            via,
        })
    }
}

impl Inner {
    async fn resolve(&self, wish: &Wish<'_>) -> Result<Resolved, LeftOut> {
        let (resolved, notes) = wish.resolve(&self.options, &self.asker).await?;
        held(&self.notes).extend(notes);
        Ok(resolved)
    }

    /// Connects, checks the host key, logs in.
    async fn open(&self, to: &Resolved, via: Option<&Arc<Session>>) -> Result<Session, LeftOut> {
        let door = to.door();
        let permit = self.pacing.enter(&door).await;
        let mut session = self.shake_hands(to, via).await?;
        let limit = Duration::from_secs(60);
        match tokio::time::timeout(limit, login(&mut session, &to.credentials, &self.ring)).await {
            Ok(Ok(())) => {}
            Ok(Err(denied)) => {
                let what = format!("{} refuses to log in {}", to.name, super::shown(&to.credentials.user));
                return Err(LeftOut { kind: "auth".to_owned(), what, because: denied.because, fix: denied.fix });
            }
            Err(_) => {
                return Err(say("auth", format!("{} does not finish the login", to.name))
                    .because("no answer within 60 s of the key exchange")
                    .fix(format!("look at sshd's log on {}", to.name)));
            }
        }
        drop(permit);
        let (key, new) = session.host_key();
        if new {
            self.accept(to, key.clone());
        }
        Ok(session)
    }

    fn accept(&self, to: &Resolved, key: HostKey) {
        if to.node.is_none() {
            held(&self.notes).insert(format!(
                "{}: took the new host key {}; to keep it, write under the jump host: host_key: \"{key}\"",
                to.name,
                key.fingerprint()
            ));
        }
        let mut accepted = held(&self.accepted);
        if !accepted.iter().any(|one| one.door == to.door() && one.node == to.node && one.key == key) {
            accepted.push(Accepted { node: to.node.clone(), door: to.door(), key });
        }
    }

    /// All that is known of a host's keys. A file that is there and cannot be read is an error: in it might stand that
    /// the key has changed.
    fn knowledge(&self, to: &Resolved) -> Result<Knowledge, LeftOut> {
        let mut known = to.known.clone();
        let accepted = held(&self.accepted);
        let mine = accepted.iter().filter(|one| one.node == to.node && one.door == to.door());
        known.nodes.extend(mine.map(|one| one.key.clone()));
        drop(accepted);
        let settled = !known.manifest.is_empty() || !known.nodes.is_empty();
        for path in &to.known_hosts {
            let file = self.file(path)?;
            known.files.extend(if settled { file.revoked(&to.file_name) } else { file.keys(&to.file_name) });
        }
        Ok(known)
    }

    /// A known_hosts file, read once a run.
    fn file(&self, path: &Path) -> Result<Arc<KnownHosts>, LeftOut> {
        let mut files = held(&self.files);
        if let Some(parsed) = files.get(path) {
            return Ok(Arc::clone(parsed));
        }
        let text = match std::fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                return Err(say("host-key", format!("{} cannot be read", path.display()))
                    .because(error.to_string())
                    .because("what it says of host keys would be missed")
                    .fix("make the file readable, or set `ssh: config: false` and write host keys in the manifest"));
            }
        };
        let parsed = Arc::new(KnownHosts::parse(&path.display().to_string(), &String::from_utf8_lossy(&text)));
        files.insert(path.to_owned(), Arc::clone(&parsed));
        Ok(parsed)
    }

    /// Dials and exchanges keys, again and again only where the server was too busy to say who it is.
    async fn shake_hands(&self, to: &Resolved, via: Option<&Arc<Session>>) -> Result<Session, LeftOut> {
        let mut terms = Terms {
            known: self.knowledge(to)?,
            accept_new: to.host_keys == HostKeys::AcceptNew,
            without: Vec::new(),
            kex: to.kex.clone(),
        };
        let mut first_mismatch = None;
        let mut busy = 0;
        loop {
            let stream = to.dial(via, self.options.connect_timeout).await?;
            let shaken =
                tokio::time::timeout(self.options.connect_timeout, handshake(stream, Arc::new(terms.clone()))).await;
            match shaken {
                Ok(Ok(session)) => return Ok(session),
                Err(_) => return Err(to.silent(self.options.connect_timeout)),
                Ok(Err(Broken::BeforeBanner { busy: true, .. })) if busy + 1 < ATTEMPTS => {
                    tokio::time::sleep(pause(busy, &to.name)).await;
                    busy += 1;
                }
                Ok(Err(Broken::BeforeBanner { said, busy: true })) => return Err(to.busy(&said, ATTEMPTS)),
                Ok(Err(Broken::BeforeBanner { said, busy: false })) => return Err(to.stranger(&said)),
                Ok(Err(Broken::HostKey(offered, Verdict::Changed(known)))) => {
                    // A fingerprint does not say which type of key it is of: look at the other types too.
                    let again = terms.known.any_fingerprint() && !terms.without.contains(&offered.kind);
                    terms.without.push(offered.kind.clone());
                    first_mismatch.get_or_insert((offered, known));
                    if !again {
                        return Err(to.mismatch(first_mismatch));
                    }
                }
                Ok(Err(Broken::NoKeyType)) if first_mismatch.is_some() => return Err(to.mismatch(first_mismatch)),
                Ok(Err(Broken::NoKeyType)) => {
                    return Err(to.broken("it has no host key of a type that this build knows"));
                }
                Ok(Err(Broken::HostKey(offered, Verdict::Revoked(place)))) => {
                    return Err(to.revoked(&offered, &place));
                }
                Ok(Err(Broken::HostKey(offered, _))) => {
                    if to.host_keys != HostKeys::Ask || !self.ask(to, &offered).await {
                        return Err(to.unknown(&offered));
                    }
                    self.accept(to, offered);
                    terms.known = self.knowledge(to)?;
                }
                Ok(Err(Broken::Other(why))) => return Err(to.broken(&why)),
            }
        }
    }

    /// Asks a person, one question at a time; a key that was accepted meanwhile is not asked about again.
    async fn ask(&self, to: &Resolved, offered: &HostKey) -> bool {
        let Some(ask) = self.options.ask.clone() else {
            return false;
        };
        let _turn = self.asking.lock().await;
        if self.knowledge(to).is_ok_and(|known| known.nodes.contains(offered)) {
            return true;
        }
        let question = Question {
            name: to.name.clone(),
            place: format!("{} port {}", to.host, to.port),
            key: offered.to_string(),
            fingerprint: offered.fingerprint(),
        };
        tokio::task::spawn_blocking(move || ask.ask(&question)).await.unwrap_or(false)
    }
}

impl Resolved {
    /// Opens the byte stream to the host, straight or through the jump host.
    async fn dial(&self, via: Option<&Arc<Session>>, limit: Duration) -> Result<Box<dyn Stream>, LeftOut> {
        let place = format!("{} port {}", self.host, self.port);
        if let Some(jump) = via {
            let opened = tokio::time::timeout(limit, jump.forward(&self.host, self.port)).await;
            let why = match opened {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(why)) => why,
                Err(_) => format!("it does not answer within {} s", limit.as_secs()),
            };
            return Err(say("unreachable", format!("no way to {place} through the jump host: {why}"))
                .fix("check that the jump host can reach the node's sshd, and that its sshd allows TCP forwarding"));
        }
        let found = tokio::net::lookup_host((self.host.as_str(), self.port)).await;
        let addresses: Vec<_> = match found {
            Ok(addresses) => addresses.collect(),
            Err(error) => {
                return Err(say("unreachable", format!("the name {} has no address", self.host))
                    .because(super::shown(&error.to_string()))
                    .fix(format!(
                        "write `address:` under {} in the manifest, or HostName in ~/.ssh/config",
                        self.name
                    )));
            }
        };
        let mut because = Vec::new();
        let mut last = "it has no address".to_owned();
        for address in &addresses {
            let connected = tokio::time::timeout(limit, tokio::net::TcpStream::connect(address)).await;
            last = match connected {
                Ok(Ok(stream)) => match Prompt::new(stream) {
                    Ok(stream) => return Ok(Box::new(stream)),
                    Err(error) => error.to_string(),
                },
                Ok(Err(error)) => match error.kind() {
                    std::io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
                    std::io::ErrorKind::HostUnreachable => "no route to host".to_owned(),
                    std::io::ErrorKind::NetworkUnreachable => "network is unreachable".to_owned(),
                    _ => error.to_string(),
                },
                Err(_) => format!("nothing within {} s", limit.as_secs()),
            };
            if addresses.len() > 1 {
                because.push(format!("{}: {last}", address.ip()));
            }
        }
        let mut left = say("unreachable", format!("no answer on {place}: {last}"))
            .fix(format!("check that {} is up, its sshd runs, and the address and port are right", self.name));
        left.because = because;
        Err(left)
    }
}
