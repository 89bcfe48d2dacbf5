//! The words in which `client` speaks to the rest of the room: terms, outcomes, pieces of output.
//!
//! Plain types without a trace of the SSH library, and the wrappers of streams.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::host_key::{HostKey, Knowledge, Verdict};

/// Anything that carries bytes both ways.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// What a handshake goes by.
#[derive(Debug, Clone, Default)]
pub struct Terms {
    /// What is known of the host's keys.
    pub known: Knowledge,
    /// Whether a key of an unknown host is taken.
    pub accept_new: bool,
    /// Host key types not to ask for.
    pub without: Vec<String>,
    /// Key exchange algorithms; empty for the default.
    pub kex: Vec<String>,
}

/// Why a handshake failed.
#[derive(Debug)]
pub enum Broken {
    /// The host key is not trusted.
    HostKey(HostKey, Verdict),
    /// The connection ended before the server said who it is.
    BeforeBanner {
        /// What it said instead, or how the connection ended.
        said: String,
        /// It was merely closed, as a server does that is too busy: worth another try.
        busy: bool,
    },
    /// The server has no host key of a type that was asked for.
    NoKeyType,
    /// Anything else.
    Other(String),
}

/// How a login attempt ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Attempt {
    /// Logged in.
    In,
    /// Refused; the methods the server still takes. `partial`: accepted, but it wants another method too.
    Refused {
        /// Names of methods.
        methods: Vec<String>,
        /// Whether this method was accepted.
        partial: bool,
    },
    /// The server closed the connection.
    Closed(String),
    /// It could not be tried.
    Failed(String),
}

/// Why a key file cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub enum Unusable {
    /// It is encrypted and no passphrase is known.
    Encrypted,
    /// The passphrase does not open it.
    WrongPassphrase,
    /// It is no private key that we can read.
    Unreadable(String),
}

/// What comes out of a channel.
#[derive(Debug)]
pub enum Piece {
    /// Standard output.
    Stdout(Vec<u8>),
    /// Standard error.
    Stderr(Vec<u8>),
    /// The exit status.
    Status(u32),
    /// Killed by a signal.
    Signal,
    /// The server does not run the command.
    Refused,
}

/// The first bytes of a connection.
pub type FirstBytes = Arc<Mutex<Vec<u8>>>;

/// Keeps the first bytes that come in, to tell a server that never spoke SSH from one that broke off later.
pub struct Watched<S> {
    inner: S,
    first: FirstBytes,
    done: bool,
}

impl<S: Stream> Watched<S> {
    /// Wraps a stream; what comes in first is told through `first`.
    pub fn new(inner: S, first: FirstBytes) -> Watched<S> {
        Watched { inner, first, done: false }
    }
}

impl<S: Stream> AsyncRead for Watched<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(cx, buf);
        if !self.done {
            let fresh = buf.filled().get(before..).unwrap_or_default();
            let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
            first.extend(fresh.iter().take(1024));
            let enough = first.len() >= 1024 || spoke(&first);
            drop(first);
            self.done = enough;
        }
        polled
    }
}

impl<S: Stream> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

/// Whether an SSH server said who it is.
pub fn spoke(bytes: &[u8]) -> bool {
    bytes.starts_with(b"SSH-") || bytes.windows(5).any(|window| window == b"\nSSH-")
}

/// A TCP stream that acknowledges at once. sshd leaves Nagle's algorithm on for sessions without a terminal, and that
/// meets our kernel's delayed ACK: 40 ms at the start of a command and again at its end. The kernel forgets the option,
/// so it is set anew with every read.
pub struct Prompt(TcpStream);

impl Prompt {
    /// Wraps a connected stream and switches both delays off.
    ///
    /// # Errors
    /// The socket is no longer usable.
    pub fn new(stream: TcpStream) -> std::io::Result<Prompt> {
        stream.set_nodelay(true)?;
        stream.set_quickack(true)?;
        Ok(Prompt(stream))
    }
}

impl AsyncRead for Prompt {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let polled = Pin::new(&mut self.0).poll_read(cx, buf);
        if polled.is_ready() {
            // Only speed is lost when this fails.
            let _ = self.0.set_quickack(true);
        }
        polled
    }
}

impl AsyncWrite for Prompt {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
