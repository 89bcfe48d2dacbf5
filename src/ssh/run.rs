//! One script on one node, over an open connection.
//!
//! Sends by the framing of `sudo`, reads to the end of the channel, and tells an exit status from a lost link. Knows
//! nothing of plans or of how the connection was made.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::client::Session;
use super::sudo::{Ended, Framing, Way, refusal};
use super::wire::Piece;
use super::{ExecError, Exit, Flow, LinkLost, Output, Script, Transport};
use crate::event::LeftOut;
use crate::manifest::model::Become;
use crate::secret::Secret;

/// At most this much is kept of what comes before the script runs.
const NOISE: usize = 64 << 10;

/// An open connection to a node.
pub struct SshLink {
    pub(super) node: String,
    pub(super) user: String,
    pub(super) r#become: Option<Become>,
    pub(super) become_password: Option<Secret>,
    pub(super) session: Session,
    /// Kept open as long as this link uses it.
    pub(super) via: Option<Arc<Session>>,
}

impl SshLink {
    /// The login user.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The key exchange used, for `-v`.
    pub fn kex(&self) -> String {
        self.session.kex()
    }

    /// Whether the connection is gone.
    pub fn is_closed(&self) -> bool {
        self.session.is_closed()
    }

    fn lost(&self) -> ExecError {
        let why = match &self.via {
            Some(jump) if jump.is_closed() => format!("the jump host's connection ended: {}", jump.gone()),
            _ => self.session.gone(),
        };
        ExecError::LinkLost(LinkLost { why })
    }

    fn way(&self, root: bool) -> Result<Way, ExecError> {
        if !root || self.user == "root" {
            return Ok(Way::Plain);
        }
        match (self.r#become, &self.become_password) {
            (Some(Become::None), _) => Err(ExecError::NotRun(LeftOut {
                kind: "root".to_owned(),
                what: format!("{} on {} is not root", self.user, self.node),
                because: vec!["`ssh: become` is `none`".to_owned()],
                fix: vec!["set `ssh: become: sudo`".to_owned(), "or log in as root: `ssh: user: root`".to_owned()],
            })),
            (_, Some(_)) => Ok(Way::SudoAsking),
            (_, None) => Ok(Way::SudoQuiet),
        }
    }
}

/// What is to be sent next.
enum Order {
    Password,
    Script,
    End,
}

/// How far a script has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The reader has not announced itself.
    Waiting,
    /// It has.
    Running,
}

impl Transport for SshLink {
    async fn exec(&self, script: &Script, output: &mut dyn Output) -> Result<Option<Exit>, ExecError> {
        let way = self.way(script.root)?;
        let framing = Framing::new(nonce().map_err(|why| ExecError::LinkLost(LinkLost { why }))?);
        let (mut reading, writing) =
            self.session.start(&framing.command(way)).await.map_err(|why| match self.session.is_closed() {
                true => self.lost(),
                false => ExecError::LinkLost(LinkLost { why }),
            })?;
        let (orders, mut queue) = mpsc::unbounded_channel();
        let sending = async {
            while let Some(order) = queue.recv().await {
                match order {
                    Order::Password => {
                        if let Some(password) = &self.become_password {
                            let line = zeroize::Zeroizing::new(format!("{}\n", password.reveal()));
                            writing.send(line.as_bytes()).await;
                        }
                    }
                    Order::Script => {
                        writing.send(framing.opening().as_bytes()).await;
                        writing.send(script.text.as_bytes()).await;
                        writing.send(framing.closing().as_bytes()).await;
                        writing.end().await;
                    }
                    Order::End => writing.end().await,
                }
            }
        };
        let order = |order| drop(orders.send(order));
        if way != Way::SudoAsking {
            order(Order::Script);
        }
        let mut progress = Progress::new(&framing);
        let mut ended = Ended { way, status: None, asked_again: false };
        let mut exit = None;
        tokio::pin!(sending);
        let mut sent = false;
        let flow = loop {
            let piece = tokio::select! {
                piece = reading.next() => piece,
                () = &mut sending, if !sent => {
                    sent = true;
                    continue;
                }
            };
            let Some(piece) = piece else {
                break Flow::Continue;
            };
            let flow = match piece {
                Piece::Stdout(bytes) if progress.stage == Stage::Running => output.stdout(&bytes),
                Piece::Stderr(bytes) if progress.stage == Stage::Running => output.stderr(&bytes),
                Piece::Stdout(bytes) => match progress.stdout(&bytes) {
                    Some(rest) => {
                        if way == Way::SudoAsking {
                            order(Order::Script);
                        }
                        if rest.is_empty() { Flow::Continue } else { output.stdout(&rest) }
                    }
                    None => Flow::Continue,
                },
                Piece::Stderr(bytes) => {
                    match progress.stderr(&bytes) {
                        1.. if ended.asked_again => {}
                        1 if progress.prompts == 1 => order(Order::Password),
                        1.. => {
                            ended.asked_again = true;
                            order(Order::End);
                        }
                        0 => {}
                    }
                    Flow::Continue
                }
                Piece::Status(status) => {
                    ended.status = Some(status);
                    exit = Some(Exit::Status(status));
                    Flow::Continue
                }
                Piece::Signal => {
                    exit = Some(Exit::Signal);
                    Flow::Continue
                }
                Piece::Refused => {
                    exit.get_or_insert(Exit::Signal);
                    Flow::Stop
                }
            };
            if flow == Flow::Stop {
                break Flow::Stop;
            }
        };
        if flow == Flow::Stop {
            writing.close().await;
        }
        match (progress.stage, exit, flow) {
            (Stage::Running, _, Flow::Stop) => Ok(None),
            (Stage::Running, Some(exit), Flow::Continue) => Ok(Some(exit)),
            (Stage::Waiting, Some(_), _) => {
                Err(ExecError::NotRun(refusal(&self.node, &self.user, ended, &progress.wrote())))
            }
            (_, None, _) => Err(self.lost()),
        }
    }

    fn how(&self) -> String {
        let key = Transport::host_key(self);
        let kind = key.split(' ').next().unwrap_or_default();
        format!("{}, {}, {kind}", self.user(), self.kex())
    }

    fn host_key(&self) -> String {
        self.session.host_key().0.to_string()
    }

    async fn close(self) {
        self.session.close().await;
    }
}

/// What came before the reader announced itself: noise of the login shell, prompts, sudo's complaints.
struct Progress {
    stage: Stage,
    ready: Vec<u8>,
    prompt: Vec<u8>,
    out: Vec<u8>,
    err: Vec<u8>,
    prompts: usize,
}

impl Progress {
    fn new(framing: &Framing) -> Progress {
        Progress {
            stage: Stage::Waiting,
            ready: format!("{}\n", framing.ready()).into_bytes(),
            prompt: framing.prompt().into_bytes(),
            out: Vec::new(),
            err: Vec::new(),
            prompts: 0,
        }
    }

    /// Takes standard output; once the reader has announced itself, what came after that.
    fn stdout(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        self.out.extend(bytes);
        if let Some(at) = find(&self.out, &self.ready) {
            self.stage = Stage::Running;
            return Some(self.out.split_off(at + self.ready.len()));
        }
        if self.out.len() > NOISE {
            self.out.drain(..self.out.len() - self.ready.len());
        }
        None
    }

    /// Takes standard error; the number of prompts that are new in it.
    fn stderr(&mut self, bytes: &[u8]) -> usize {
        if self.err.len() < NOISE {
            self.err.extend(bytes);
        }
        let mut prompts = 0;
        let mut rest = self.err.as_slice();
        while let Some(at) = find(rest, &self.prompt) {
            prompts += 1;
            rest = rest.get(at + self.prompt.len()..).unwrap_or_default();
        }
        let fresh = prompts - self.prompts;
        self.prompts = prompts;
        fresh
    }

    fn wrote(&self) -> String {
        let prompt = String::from_utf8_lossy(&self.prompt).into_owned();
        let err = String::from_utf8_lossy(&self.err).replace(&prompt, "");
        format!("{err}\n{}", String::from_utf8_lossy(&self.out))
    }
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}

/// 128 random bits as hex.
fn nonce() -> Result<String, String> {
    use std::io::Read as _;
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(|error| format!("/dev/urandom gives no random bytes: {error}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_announcement_is_found_in_noise_and_across_pieces() {
        let framing = Framing::new("abc".to_owned());
        let mut progress = Progress::new(&framing);
        assert_eq!(progress.stdout(b"hello from .bashrc @@ab"), None);
        assert_eq!(progress.stdout(b"c\n@@abc rea"), None);
        assert_eq!(progress.stdout(b"dy\nfirst"), Some(b"first".to_vec()));
    }

    #[test]
    fn prompts_are_counted_once() {
        let framing = Framing::new("abc".to_owned());
        let mut progress = Progress::new(&framing);
        assert_eq!(progress.stderr(b"lecture\n@@abc pass"), 0);
        assert_eq!(progress.stderr(b"word:"), 1);
        assert_eq!(progress.stderr(b"\nSorry"), 0);
        assert_eq!(progress.stderr(b", try again.\n@@abc password:"), 1);
        assert!(!progress.wrote().contains("abc"));
    }

    #[test]
    fn nonces_differ() {
        assert_ne!(nonce().unwrap(), nonce().unwrap());
    }
}
