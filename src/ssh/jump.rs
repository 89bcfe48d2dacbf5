//! Jump hosts: one connection to each, shared by all nodes behind it.
//!
//! Knows which jump is meant and keeps its connection; how one is opened is given by the caller.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::client::Session;
use crate::event::LeftOut;
use crate::manifest::model::Jump;

/// Reads `[user@]host[:port]`, as `ssh -G` prints it.
///
/// # Errors
/// What is wrong with it: more than one host, or no port number.
pub fn parse(text: &str) -> Result<Jump, String> {
    if text.contains(',') {
        return Err(format!("ProxyJump {text} has several hosts; this build goes through one jump host"));
    }
    let text = text.strip_prefix("ssh://").unwrap_or(text).trim_end_matches('/');
    let (user, place) = match text.rsplit_once('@') {
        Some((user, place)) => (Some(user.to_owned()), place),
        None => (None, text),
    };
    let (host, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => match place.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') => (host, Some(port)),
            _ => (place, None),
        },
    };
    let port = port.map(str::parse).transpose().map_err(|_| format!("ProxyJump {text} has no port number"))?;
    if host.is_empty() {
        return Err(format!("ProxyJump {text} names no host"));
    }
    Ok(Jump { host: host.to_owned(), port, user, ..Jump::default() })
}

/// How long a failure counts for those who come after: long enough that a hundred nodes behind a dead jump host do not
/// wait one after the other, short enough that a later reconnect tries anew.
const FAILED_FOR: Duration = Duration::from_secs(20);

#[derive(Default)]
struct Slot {
    open: Option<Arc<Session>>,
    failed: Option<(Instant, LeftOut)>,
}

type Slots = HashMap<String, Arc<tokio::sync::Mutex<Slot>>>;

/// The open connections to jump hosts.
#[derive(Default)]
pub struct Jumps {
    slots: Mutex<Slots>,
}

impl Jumps {
    /// The connection kept under `key`, opened by `open` if there is none. A refused login or an untrusted key stays
    /// refused for the whole run.
    ///
    /// # Errors
    /// Why it cannot be had.
    pub async fn get<F>(&self, key: String, open: F) -> Result<Arc<Session>, LeftOut>
    where
        F: Future<Output = Result<Session, LeftOut>>,
    {
        let slot = {
            let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(slots.entry(key).or_default())
        };
        let mut slot = slot.lock().await;
        if let Some(session) = slot.open.as_ref().filter(|session| !session.is_closed()) {
            return Ok(Arc::clone(session));
        }
        if let Some((when, why)) = &slot.failed
            && (why.kind != "unreachable" || when.elapsed() < FAILED_FOR)
        {
            return Err(why.clone());
        }
        match open.await {
            Ok(session) => {
                let session = Arc::new(session);
                *slot = Slot { open: Some(Arc::clone(&session)), failed: None };
                Ok(session)
            }
            Err(why) => {
                *slot = Slot { open: None, failed: Some((Instant::now(), why.clone())) };
                Err(why)
            }
        }
    }

    /// Lets go of all connections; each closes when its last node is done.
    pub fn clear(&self) {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_ssh_prints() {
        let jump = |host: &str, port, user: Option<&str>| Jump {
            host: host.to_owned(),
            port,
            user: user.map(str::to_owned),
            ..Jump::default()
        };
        assert_eq!(parse("bastion"), Ok(jump("bastion", None, None)));
        assert_eq!(parse("me@bastion:2222"), Ok(jump("bastion", Some(2222), Some("me"))));
        assert_eq!(parse("me@[fd00::1]:2222"), Ok(jump("fd00::1", Some(2222), Some("me"))));
        assert_eq!(parse("fd00::1"), Ok(jump("fd00::1", None, None)));
        assert_eq!(parse("ssh://me@b:1"), Ok(jump("b", Some(1), Some("me"))));
        assert!(parse("a,b").unwrap_err().contains("one jump host"));
        assert!(parse("a:port").is_err() && parse("@:1").is_err());
    }
}
