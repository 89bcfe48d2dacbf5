//! The settings for one host, from manifest, `ssh -G` and defaults; and how its failures are told.
//!
//! The same for a node and for a jump host, so that both are checked alike. Contacts nobody but `ssh -G`.

use std::path::PathBuf;
use std::time::Duration;

use super::auth::{Credentials, Identity};
use super::config::{Asked, Asker, Local, home};
use super::connect::SshOptions;
use super::host_key::{HostKey, Knowledge, Pin};
use super::known_hosts::file_name;
use super::{Reasons as _, Target, jump, say};
use crate::event::LeftOut;
use crate::manifest::model::{HostKeys, Jump, Ssh};
use crate::secret::Secret;

/// What the manifest wishes of one host.
pub struct Wish<'a> {
    node: Option<&'a str>,
    name: String,
    alias: &'a str,
    address: Option<&'a str>,
    user: Option<&'a str>,
    port: Option<u16>,
    identity: &'a [String],
    pins: &'a [String],
    nodes: &'a [String],
    jumps: &'a [Jump],
    ssh: &'a Ssh,
    passphrase: Option<&'a Secret>,
    password: Option<&'a Secret>,
}

impl<'a> Wish<'a> {
    /// Of a node.
    pub fn node(target: &'a Target) -> Wish<'a> {
        let ssh = &target.ssh.ssh;
        Wish {
            node: Some(&target.node),
            name: target.node.clone(),
            alias: if target.address_given { &target.node } else { &target.address },
            address: target.address_given.then_some(target.address.as_str()),
            user: ssh.user.as_deref(),
            port: ssh.port,
            identity: &ssh.identity,
            pins: &ssh.host_key,
            nodes: &target.known,
            jumps: &ssh.jump,
            ssh,
            passphrase: target.passphrase.as_ref(),
            password: target.password.as_ref(),
        }
    }

    /// Of a jump host. It gets the node's key files when it has none of its own, but never the node's password.
    pub fn jump(target: &'a Target, jump: &'a Jump) -> Wish<'a> {
        let ssh = &target.ssh.ssh;
        Wish {
            node: None,
            name: format!("jump host {}", jump.host),
            alias: &jump.host,
            address: None,
            user: jump.user.as_deref(),
            port: jump.port,
            identity: if jump.identity.is_empty() { &ssh.identity } else { &jump.identity },
            pins: &jump.host_key,
            nodes: &[],
            jumps: &[],
            ssh,
            passphrase: target.passphrase.as_ref(),
            password: None,
        }
    }

    /// Decides every setting; the notes are for the user.
    ///
    /// # Errors
    /// What cannot be decided, or is not in this build.
    pub async fn resolve(&self, options: &SshOptions, asker: &Asker) -> Result<(Resolved, Vec<String>), LeftOut> {
        let local = Local { home: &options.home, user: &options.local_user };
        let asked = match self.ssh.config {
            Some(false) => None,
            _ => asker.ask(self.alias, self.user, self.port, local).await.map_err(|why| {
                say("unreachable", format!("the SSH configuration for {} cannot be read", self.name))
                    .because(why)
                    .fix("mend ~/.ssh/config, or set `ssh: config: false`")
            })?,
        };
        let from_config = asked.is_some();
        let asked = asked.unwrap_or_default();
        let mut notes = Vec::new();
        if asked.lax {
            notes.push(format!(
                "{}: `StrictHostKeyChecking no` of the SSH configuration is ignored; host keys are always checked",
                self.name
            ));
        }
        let jump = self.jump_host(&asked)?;
        let mut pins = Vec::new();
        for text in self.pins {
            pins.push(Pin::parse(text).ok_or_else(|| {
                say("host-key", format!("`host_key` of {} cannot be read: {}", self.name, super::shown(text)))
                    .fix("write `ssh-ed25519 AAAA...` or `SHA256:...`")
            })?);
        }
        let mut known = Vec::new();
        for text in self.nodes {
            known.push(HostKey::parse(text).ok_or_else(|| {
                say("host-key", format!("the .nodes file has a host key of {} that cannot be read", self.name))
                    .because(super::shown(text))
                    .fix("restore the file from git, or take that key out of it")
            })?);
        }
        let user = self.user.map(str::to_owned).or(asked.user).unwrap_or_else(|| options.local_user.clone());
        let port = self.port.or(asked.port).unwrap_or(22);
        let host = self.address.map(str::to_owned).or(asked.hostname).unwrap_or_else(|| self.alias.to_owned());
        let mut known_hosts = asked.known_hosts;
        if !from_config {
            known_hosts = vec![options.home.join(".ssh/known_hosts"), PathBuf::from("/etc/ssh/ssh_known_hosts")];
        }
        let only = !self.identity.is_empty() || asked.identities_only;
        let identities = if self.identity.is_empty() {
            let defaults = ["id_rsa", "id_ecdsa", "id_ed25519"].map(|name| options.home.join(".ssh").join(name));
            let paths = if from_config { asked.identities } else { defaults.to_vec() };
            paths.into_iter().map(|path| Identity { name: tilde(&path, options), path, named: false }).collect()
        } else {
            let named = |text: &String| Identity {
                name: text.clone(),
                path: options.base.join(home(text, &options.home)),
                named: true,
            };
            self.identity.iter().map(named).collect()
        };
        let host_keys = match self.ssh.host_keys.unwrap_or(options.host_keys) {
            HostKeys::Ask if options.ask.is_none() => HostKeys::Strict,
            other => other,
        };
        let resolved = Resolved {
            node: self.node.map(str::to_owned),
            name: self.name.clone(),
            file_name: file_name(asked.alias.as_deref().unwrap_or(&host), port),
            host,
            port,
            kex: self.ssh.kex.clone(),
            known: Knowledge { manifest: pins, nodes: known, files: Vec::new() },
            known_hosts,
            host_keys,
            jump,
            credentials: Credentials {
                user,
                identities,
                only,
                agent: options.agent_place(asked.agent.as_deref()),
                passphrase: self.passphrase.cloned(),
                password: self.password.cloned(),
            },
        };
        Ok((resolved, notes))
    }

    fn jump_host(&self, asked: &Asked) -> Result<Option<Jump>, LeftOut> {
        if let Some(jump) = self.jumps.first() {
            return Ok(Some(jump.clone()));
        }
        if asked.command.is_some() {
            return Err(say("unreachable", format!("{} has a ProxyCommand in the SSH configuration", self.name))
                .because("this build runs no ProxyCommand")
                .fix("write the jump host under `ssh: jump`, or ProxyJump in ~/.ssh/config"));
        }
        let refuse = |why| {
            say("unreachable", format!("{} cannot be reached as the SSH configuration says", self.name))
                .because(why)
                .fix("write one host under `ssh: jump`")
        };
        asked.jump.as_deref().map(|text| jump::parse(text).map_err(refuse)).transpose()
    }
}

fn tilde(path: &std::path::Path, options: &SshOptions) -> String {
    match path.strip_prefix(&options.home) {
        Ok(rest) => format!("~/{}", rest.display()),
        Err(_) => path.display().to_string(),
    }
}

/// All settings for one host.
#[derive(Debug, Clone)]
pub struct Resolved {
    pub(super) node: Option<String>,
    /// How messages call it.
    pub(super) name: String,
    pub(super) host: String,
    pub(super) port: u16,
    /// Its name in known_hosts files.
    pub(super) file_name: String,
    pub(super) kex: Vec<String>,
    pub(super) known: Knowledge,
    pub(super) known_hosts: Vec<PathBuf>,
    pub(super) host_keys: HostKeys,
    pub(super) jump: Option<Jump>,
    pub(super) credentials: Credentials,
}

impl Resolved {
    /// Which sshd it is, for pacing.
    pub fn door(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    fn place(&self) -> String {
        format!("{} port {}", self.host, self.port)
    }

    pub(super) fn silent(&self, limit: Duration) -> LeftOut {
        say("unreachable", format!("no SSH on {}: silence for {} s after connecting", self.place(), limit.as_secs()))
            .because("the port is open, but the key exchange does not get on")
            .fix(format!("check sshd and the load on {}; restart sshd if it hangs", self.name))
    }

    pub(super) fn busy(&self, said: &str, attempts: u32) -> LeftOut {
        say("unreachable", format!("{} closes connections before it answers", self.place()))
            .because(format!("tried {attempts} times; it says: {said}"))
            .because("sshd drops connections so when too many wait to log in (MaxStartups) or after failed logins")
            .fix(format!("check that sshd answers on {}, wait, or raise MaxStartups there", self.place()))
    }

    pub(super) fn stranger(&self, said: &str) -> LeftOut {
        say("unreachable", format!("{} speaks no SSH", self.place()))
            .because(format!("it says: {said}"))
            .fix("check address and port; sshd also turns away so whom it has locked out for a while")
    }

    pub(super) fn broken(&self, why: &str) -> LeftOut {
        say("unreachable", format!("no SSH connection to {}", self.place()))
            .because(why)
            .fix(format!("look at sshd's log on {}", self.name))
    }

    pub(super) fn mismatch(&self, mismatch: Option<(HostKey, Vec<(String, String)>)>) -> LeftOut {
        let mut left = say("host-key", format!("the host key of {} has changed", self.name));
        if let Some((offered, known)) = mismatch {
            left = left.because(format!("{} offers {} {}", self.place(), offered.kind, offered.fingerprint()));
            for (print, place) in known {
                left = left.because(format!("known is {print} ({place})"));
            }
        }
        left.because("it was installed anew, or someone sits between; nothing was sent to it")
            .fix("find out on its console: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub")
            .fix("if the new key is right, replace the known one where it stands (see above)")
    }

    pub(super) fn revoked(&self, offered: &HostKey, place: &str) -> LeftOut {
        say("host-key", format!("the host key of {} is revoked", self.name))
            .because(format!("{} offers {} {}", self.place(), offered.kind, offered.fingerprint()))
            .because(format!("it is marked @revoked in {place}"))
            .fix(format!("give {} a new host key: remove it there and run ssh-keygen -A", self.name))
    }

    pub(super) fn unknown(&self, offered: &HostKey) -> LeftOut {
        let files: Vec<String> = self.known_hosts.iter().map(|path| path.display().to_string()).collect();
        let file = files.first().cloned().unwrap_or_else(|| "~/.ssh/known_hosts".to_owned());
        say("host-key", format!("the host key of {} is not known", self.name))
            .because(format!("{} offers {} {}", self.place(), offered.kind, offered.fingerprint()))
            .because(format!("it stands neither in the manifest, nor in the .nodes file, nor in {}", files.join(", ")))
            .fix(format!("compare it on the console of {} (ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub)", self.name))
            .fix(format!("if it is the same, add to the manifest: host_key: \"{offered}\""))
            .fix(format!("or add to {file}: {} {offered}", self.file_name))
    }
}
