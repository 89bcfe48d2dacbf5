//! The SSH library, wrapped: handshakes, login attempts and channels in our own words.
//!
//! The only file that names russh, which breaks its interface often. It decides nothing: who is trusted comes in
//! in [`Terms`], what to try comes from `auth`, what to run from `run`.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use russh::client::{self, AuthResult, DisconnectReason, KeyboardInteractiveAuthResponse};
use russh::keys::{Algorithm, EcdsaCurve, HashAlg, PrivateKey, PrivateKeyWithHashAlg, PublicKey};
use russh::keys::{PublicKeyOrCertificate, agent};
use russh::{ChannelMsg, ChannelReadHalf, ChannelWriteHalf, MethodSet, kex};

use super::host_key::{HostKey, Verdict, judge};
use super::shown;
use super::wire::{Attempt, Broken, FirstBytes, Piece, Stream, Terms, Unusable, Watched, spoke};

/// What the handler learns, for those outside.
#[derive(Debug, Default)]
struct Seen {
    offered: Option<(HostKey, Verdict)>,
    kex: String,
    banner: String,
    gone: Option<String>,
}

type Shared = Arc<Mutex<Seen>>;

fn lock(shared: &Shared) -> MutexGuard<'_, Seen> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Handler {
    terms: Arc<Terms>,
    shared: Shared,
}

/// An error of the library.
#[derive(Debug)]
struct Fault(russh::Error);

impl From<russh::Error> for Fault {
    fn from(error: russh::Error) -> Self {
        Fault(error)
    }
}

impl client::Handler for Handler {
    type Error = Fault;

    async fn check_server_key(&mut self, offered: &PublicKeyOrCertificate) -> Result<bool, Fault> {
        let PublicKeyOrCertificate::PublicKey { key, .. } = offered else {
            return Ok(false);
        };
        let Some(key) = plain(key) else {
            return Ok(false);
        };
        let verdict = judge(&key, &self.terms.known);
        let mut seen = lock(&self.shared);
        // Asked again when keys are exchanged anew: a key that was taken as new must stay the same.
        let taken = matches!(&seen.offered, Some((before, Verdict::Unknown)) if *before == key);
        let first = seen.offered.is_none();
        let good = match verdict {
            Verdict::Trusted => true,
            Verdict::Unknown => self.terms.accept_new && (first || taken),
            Verdict::Changed(_) | Verdict::Revoked(_) => false,
        };
        seen.offered = Some((key, verdict));
        Ok(good)
    }

    async fn kex_done(&mut self, _: Option<&[u8]>, names: &russh::Names, _: &mut client::Session) -> Result<(), Fault> {
        let name: &str = names.kex.as_ref();
        name.clone_into(&mut lock(&self.shared).kex);
        Ok(())
    }

    async fn auth_banner(&mut self, banner: &str, _: &mut client::Session) -> Result<(), Fault> {
        let kept: String = banner.chars().take(2000).collect();
        lock(&self.shared).banner = kept;
        Ok(())
    }

    async fn disconnected(&mut self, reason: DisconnectReason<Fault>) -> Result<(), Fault> {
        lock(&self.shared).gone = Some(match reason {
            DisconnectReason::ReceivedDisconnect(info) => format!("the node disconnected: {}", shown(&info.message)),
            DisconnectReason::Error(Fault(error)) => describe(&error),
        });
        Ok(())
    }
}

/// An error in words for people.
fn describe(error: &russh::Error) -> String {
    match error {
        russh::Error::Disconnect | russh::Error::HUP | russh::Error::SendError | russh::Error::RecvError => {
            "the connection was closed".to_owned()
        }
        russh::Error::IO(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            "the connection was closed".to_owned()
        }
        russh::Error::KeepaliveTimeout => "the node stopped answering".to_owned(),
        russh::Error::NoCommonAlgo { kind, ours, theirs } => {
            let theirs = shown(&theirs.join(", "));
            format!("no common {kind:?} algorithm: we have {}; the node has {theirs}", ours.join(", "))
        }
        other => shown(&other.to_string()),
    }
}

fn plain(key: &PublicKey) -> Option<HostKey> {
    HostKey::parse(&key.to_openssh().ok()?)
}

/// Host key algorithms, those of known keys first. SHA-1 signatures are never asked for.
fn host_key_order(terms: &Terms) -> Vec<Algorithm> {
    let kinds = terms.known.kinds();
    let ecdsa = |curve| Algorithm::Ecdsa { curve };
    let mut all = vec![
        ("ssh-ed25519", Algorithm::Ed25519),
        ("ecdsa-sha2-nistp256", ecdsa(EcdsaCurve::NistP256)),
        ("ecdsa-sha2-nistp384", ecdsa(EcdsaCurve::NistP384)),
        ("ecdsa-sha2-nistp521", ecdsa(EcdsaCurve::NistP521)),
        ("ssh-rsa", Algorithm::Rsa { hash: Some(HashAlg::Sha512) }),
        ("ssh-rsa", Algorithm::Rsa { hash: Some(HashAlg::Sha256) }),
    ];
    all.retain(|(kind, _)| !terms.without.iter().any(|without| without == kind));
    all.sort_by_key(|(kind, _)| kinds.iter().position(|known| known == kind).unwrap_or(usize::MAX));
    all.into_iter().map(|(_, algorithm)| algorithm).collect()
}

fn config(terms: &Terms) -> Result<client::Config, Broken> {
    let mut preferred = russh::Preferred { key: Cow::Owned(host_key_order(terms)), ..russh::Preferred::DEFAULT };
    if !terms.kex.is_empty() {
        let mut names = Vec::new();
        for wanted in &terms.kex {
            names.push(kex::Name::try_from(wanted.as_str()).map_err(|()| {
                Broken::Other(format!("`ssh: kex` names {}, which this build does not have", shown(wanted)))
            })?);
        }
        names.extend([kex::EXTENSION_SUPPORT_AS_CLIENT, kex::EXTENSION_OPENSSH_STRICT_KEX_AS_CLIENT]);
        preferred.kex = Cow::Owned(names);
    }
    Ok(client::Config {
        preferred,
        nodelay: true,
        inactivity_timeout: None,
        keepalive_interval: Some(Duration::from_secs(15)),
        keepalive_max: 3,
        ..client::Config::default()
    })
}

/// A connection whose host key is trusted; not yet logged in.
pub struct Session {
    handle: client::Handle<Handler>,
    shared: Shared,
    host_key: HostKey,
    new: bool,
}

/// Exchanges keys over a stream and checks the host key.
///
/// # Errors
/// [`Broken`]; nothing was sent that tells who we are.
pub async fn handshake(stream: Box<dyn Stream>, terms: Arc<Terms>) -> Result<Session, Broken> {
    let config = Arc::new(config(&terms)?);
    let shared = Shared::default();
    let first = FirstBytes::default();
    let watched = Watched::new(stream, Arc::clone(&first));
    let handler = Handler { terms, shared: Arc::clone(&shared) };
    let result = client::connect_stream(config, watched, handler).await;
    let first = first.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut seen = lock(&shared);
    let offered = seen.offered.take();
    match (result, offered) {
        (Ok(handle), Some((host_key, verdict))) => {
            let new = verdict == Verdict::Unknown;
            seen.offered = Some((host_key.clone(), verdict));
            drop(seen);
            Ok(Session { handle, shared, host_key, new })
        }
        (Err(Fault(russh::Error::UnknownKey)), Some((key, verdict))) => Err(Broken::HostKey(key, verdict)),
        (Err(Fault(russh::Error::NoCommonAlgo { kind: russh::AlgorithmKind::Key, .. })), _) => Err(Broken::NoKeyType),
        (Err(Fault(error)), _) if !spoke(&first) => {
            let said = shown(String::from_utf8_lossy(&first).trim());
            let closed = matches!(error, russh::Error::Disconnect | russh::Error::HUP | russh::Error::IO(_));
            let busy = closed && (said.is_empty() || said.contains("MaxStartups"));
            Err(Broken::BeforeBanner { said: if said.is_empty() { describe(&error) } else { said }, busy })
        }
        (Err(Fault(error)), _) => Err(Broken::Other(describe(&error))),
        (Ok(_), None) => Err(Broken::Other("the node proved no host key".to_owned())),
    }
}

/// A private key, ready to sign.
#[derive(Clone)]
pub struct SigningKey(Arc<PrivateKey>);

impl SigningKey {
    /// Decodes the text of a key file.
    ///
    /// # Errors
    /// [`Unusable`].
    pub fn decode(text: &str, passphrase: Option<&str>) -> Result<SigningKey, Unusable> {
        match russh::keys::decode_secret_key(text, passphrase) {
            Ok(key) if key.is_encrypted() => Err(Unusable::Encrypted),
            Ok(key) => Ok(SigningKey(Arc::new(key))),
            Err(russh::keys::Error::KeyIsEncrypted) if passphrase.is_none() => Err(Unusable::Encrypted),
            Err(error) => {
                let encrypted =
                    PrivateKey::from_openssh(text).is_ok_and(|key| key.is_encrypted()) || text.contains("ENCRYPTED");
                Err(match (encrypted, passphrase) {
                    (true, Some(_)) => Unusable::WrongPassphrase,
                    (true, None) => Unusable::Encrypted,
                    (false, _) => Unusable::Unreadable(shown(&error.to_string())),
                })
            }
        }
    }

    /// Its public half.
    pub fn public(&self) -> Option<HostKey> {
        plain(self.0.public_key())
    }
}

/// The public half of an OpenSSH key file, which is readable without a passphrase.
pub fn public_half(text: &str) -> Option<HostKey> {
    plain(PrivateKey::from_openssh(text).ok()?.public_key())
}

/// A running agent.
pub struct Agent(agent::client::AgentClient<tokio::net::UnixStream>);

impl Agent {
    /// Connects to the agent's socket and asks for its keys, with their comments.
    ///
    /// # Errors
    /// Why it does not answer.
    pub async fn open(path: &std::path::Path) -> Result<(Agent, Vec<(HostKey, String)>), String> {
        let mut client =
            agent::client::AgentClient::connect_uds(path).await.map_err(|error| shown(&error.to_string()))?;
        let identities = client.request_identities().await.map_err(|error| shown(&error.to_string()))?;
        let keys = identities
            .iter()
            .filter_map(|identity| match identity {
                agent::AgentIdentity::PublicKey { key, comment } => Some((plain(key)?, comment.clone())),
                agent::AgentIdentity::Certificate { .. } => None,
            })
            .collect();
        Ok((Agent(client), keys))
    }
}

impl Session {
    /// The host key, and whether it was unknown before and is taken as new.
    pub fn host_key(&self) -> (&HostKey, bool) {
        (&self.host_key, self.new)
    }

    /// The key exchange used.
    pub fn kex(&self) -> String {
        lock(&self.shared).kex.clone()
    }

    /// What the server shows before the login, control characters shown.
    pub fn banner(&self) -> String {
        shown(&lock(&self.shared).banner)
    }

    /// Whether the connection is gone.
    pub fn is_closed(&self) -> bool {
        self.handle.is_closed()
    }

    /// Why the connection is gone, as far as it is known.
    pub fn gone(&self) -> String {
        lock(&self.shared).gone.clone().unwrap_or_else(|| "the channel was closed without an exit status".to_owned())
    }

    fn attempt(&self, result: Result<AuthResult, russh::Error>) -> Attempt {
        match result {
            Ok(AuthResult::Success) => Attempt::In,
            Ok(AuthResult::Failure { remaining_methods, partial_success }) => {
                self.refused(&remaining_methods, partial_success)
            }
            Err(error) => match self.handle.is_closed() {
                true => Attempt::Closed(self.gone()),
                false => Attempt::Failed(describe(&error)),
            },
        }
    }

    /// The library reports a closed connection as a refusal that leaves no method.
    fn refused(&self, methods: &MethodSet, partial: bool) -> Attempt {
        let methods: Vec<String> = methods.iter().map(|method| <&'static str>::from(method).to_owned()).collect();
        if methods.is_empty() && self.handle.is_closed() {
            return Attempt::Closed(self.gone());
        }
        Attempt::Refused { methods, partial }
    }

    async fn hash(&self, rsa: bool) -> Option<HashAlg> {
        if !rsa {
            return None;
        }
        match self.handle.best_supported_rsa_hash().await {
            Ok(Some(Some(hash))) => Some(hash),
            _ => Some(HashAlg::Sha512),
        }
    }

    /// Tries a key file's key.
    pub async fn try_key(&mut self, user: &str, key: &SigningKey) -> Attempt {
        let hash = self.hash(key.0.algorithm().is_rsa()).await;
        let key = PrivateKeyWithHashAlg::new(Arc::clone(&key.0), hash);
        let result = self.handle.authenticate_publickey(user, key).await;
        self.attempt(result)
    }

    /// Tries a key that the agent holds.
    pub async fn try_agent(&mut self, user: &str, key: &HostKey, agent: &mut Agent) -> Attempt {
        let Ok(public) = PublicKey::from_openssh(&key.to_string()) else {
            return Attempt::Failed("the agent's key cannot be read".to_owned());
        };
        let hash = self.hash(public.algorithm().is_rsa()).await;
        match self.handle.authenticate_publickey_with(user, public, hash, &mut agent.0).await {
            Ok(result) => self.attempt(Ok(result)),
            Err(error) => Attempt::Failed(shown(&error.to_string())),
        }
    }

    /// Tries a password.
    pub async fn try_password(&mut self, user: &str, password: &str) -> Attempt {
        let result = self.handle.authenticate_password(user, password).await;
        self.attempt(result)
    }

    /// Tries keyboard-interactive, answering a hidden prompt that asks for a password, once, and nothing else.
    pub async fn try_keyboard(&mut self, user: &str, password: &str) -> Attempt {
        let mut reply = self.handle.authenticate_keyboard_interactive_start(user, None).await;
        let mut used = false;
        for _ in 0..8 {
            match reply {
                Ok(KeyboardInteractiveAuthResponse::Success) => return Attempt::In,
                Ok(KeyboardInteractiveAuthResponse::Failure { remaining_methods, partial_success }) => {
                    return self.refused(&remaining_methods, partial_success);
                }
                Ok(KeyboardInteractiveAuthResponse::InfoRequest { prompts, .. }) => {
                    let mut answers = Vec::new();
                    for prompt in &prompts {
                        if used || prompt.echo || !prompt.prompt.to_ascii_lowercase().contains("passw") {
                            return Attempt::Failed(format!(
                                "the server asks {:?}, which only a person can answer",
                                shown(prompt.prompt.trim())
                            ));
                        }
                        used = true;
                        answers.push(password.to_owned());
                    }
                    reply = self.handle.authenticate_keyboard_interactive_respond(answers).await;
                }
                Err(error) => return self.attempt(Err(error)),
            }
        }
        Attempt::Failed("the server asks again and again".to_owned())
    }

    /// Opens a byte stream from the far end to `host` and `port`.
    ///
    /// # Errors
    /// Why not, in words.
    pub async fn forward(&self, host: &str, port: u16) -> Result<Box<dyn Stream>, String> {
        match self.handle.channel_open_direct_tcpip(host, u32::from(port), "127.0.0.1", 0).await {
            Ok(channel) => Ok(Box::new(channel.into_stream())),
            Err(russh::Error::ChannelOpenFailure(reason)) => Err(match reason {
                russh::ChannelOpenFailure::AdministrativelyProhibited => "it forbids forwarding".to_owned(),
                russh::ChannelOpenFailure::ConnectFailed => "it cannot connect".to_owned(),
                other => format!("{other:?}"),
            }),
            Err(error) => Err(describe(&error)),
        }
    }

    /// Starts a command; nothing waits for the server's consent to it.
    ///
    /// # Errors
    /// Why no channel opens.
    pub async fn start(&self, command: &str) -> Result<(Reading, Writing), String> {
        let channel = self.handle.channel_open_session().await.map_err(|error| match error {
            russh::Error::ChannelOpenFailure(reason) => format!("the node opens no channel: {reason:?}"),
            _ => self.gone(),
        })?;
        channel.exec(true, command).await.map_err(|_| self.gone())?;
        let (read, write) = channel.split();
        Ok((Reading(read), Writing(write)))
    }

    /// Says goodbye.
    pub async fn close(mut self) {
        if self.handle.disconnect(russh::Disconnect::ByApplication, "done", "").await.is_ok() {
            let _ = tokio::time::timeout(Duration::from_secs(1), &mut self.handle).await;
        }
    }
}

/// The reading half of a channel.
pub struct Reading(ChannelReadHalf);

impl Reading {
    /// The next piece; `None` once the channel is closed.
    pub async fn next(&mut self) -> Option<Piece> {
        loop {
            return Some(match self.0.wait().await? {
                ChannelMsg::Data { data } => Piece::Stdout(data.into()),
                ChannelMsg::ExtendedData { data, .. } => Piece::Stderr(data.into()),
                ChannelMsg::ExitStatus { exit_status } => Piece::Status(exit_status),
                ChannelMsg::ExitSignal { .. } => Piece::Signal,
                ChannelMsg::Failure => Piece::Refused,
                ChannelMsg::Close => return None,
                _ => continue,
            });
        }
    }
}

/// The writing half of a channel. Errors are not told: whoever reads sees the end.
pub struct Writing(ChannelWriteHalf<client::Msg>);

impl Writing {
    /// Sends bytes, as fast as the window lets them.
    pub async fn send(&self, bytes: &[u8]) {
        for piece in bytes.chunks(1 << 18) {
            if self.0.data_bytes(piece.to_vec()).await.is_err() {
                return;
            }
        }
    }

    /// Ends standard input.
    pub async fn end(&self) {
        let _ = self.0.eof().await;
    }

    /// Closes the channel.
    pub async fn close(&self) {
        let _ = self.0.close().await;
    }
}
