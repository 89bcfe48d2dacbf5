//! How fast we knock: few logins at once to one sshd, and growing pauses when it is full.
//!
//! sshd drops connections at random once ten wait to be authenticated (`MaxStartups 10:30:100`). Knows addresses as
//! text, nothing of SSH.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Logins at once to one sshd; below its ten, because others log in too.
const AT_ONCE: usize = 8;

/// Attempts at one connection before it counts as refused.
pub const ATTEMPTS: u32 = 7;

/// A doorkeeper for each sshd.
#[derive(Debug, Default)]
pub struct Pacing {
    doors: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl Pacing {
    /// Waits until one more login to `door` (address and port) may begin; the permit is dropped once logged in.
    pub async fn enter(&self, door: &str) -> Option<OwnedSemaphorePermit> {
        let semaphore = {
            let mut doors = self.doors.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(doors.entry(door.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(AT_ONCE))))
        };
        semaphore.acquire_owned().await.ok()
    }
}

/// How long to wait after the `attempt`th refusal (from 0): doubling from 0.1 s, and up to half longer, spread by
/// `salt` so that those refused together do not come back together.
pub fn pause(attempt: u32, salt: &str) -> Duration {
    let base = 100u64 << attempt.min(5);
    let spread = salt.bytes().fold(u64::from(attempt), |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
    Duration::from_millis(base + spread % (base / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn eight_enter_and_the_ninth_waits() {
        let pacing = Pacing::default();
        let mut inside = Vec::new();
        for _ in 0..AT_ONCE {
            inside.push(pacing.enter("10.0.0.7:22").await);
        }
        let ninth = pacing.enter("10.0.0.7:22");
        tokio::pin!(ninth);
        assert!(futures::poll!(&mut ninth).is_pending());
        assert!(pacing.enter("10.0.0.8:22").await.is_some(), "another door is open");
        inside.pop();
        assert!(ninth.await.is_some());
    }

    #[test]
    fn pauses_grow_and_differ() {
        assert!(pause(3, "n1") > pause(1, "n1"));
        assert_ne!(pause(3, "n1"), pause(3, "n2"));
        assert!(pause(99, "n1") < Duration::from_secs(5));
    }
}
