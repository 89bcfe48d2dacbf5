//! Public host keys: reading them, their fingerprints, and whether an offered one is trusted.
//!
//! Pure: [`judge`] gets what was offered and all that is known, and answers. It knows neither files nor sockets.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use sha2::{Digest as _, Sha256};

/// A public key as `ssh-ed25519 AAAA...`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostKey {
    /// Type: `ssh-ed25519`, `ssh-rsa`, `ecdsa-sha2-nistp256`, ...
    pub kind: String,
    /// The key itself, base64.
    pub base64: String,
}

impl HostKey {
    /// Reads `TYPE BASE64 [comment]`; `None` when it is no key, or the type inside differs from the one written.
    pub fn parse(text: &str) -> Option<HostKey> {
        let mut words = text.split_ascii_whitespace();
        let kind = words.next()?;
        let encoded = words.next()?;
        let bytes = STANDARD.decode(encoded).ok()?;
        let length = u32::from_be_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
        let inner = bytes.get(4..length.checked_add(4)?)?;
        (inner == kind.as_bytes() && bytes.len() > length + 4)
            .then(|| HostKey { kind: kind.to_owned(), base64: STANDARD.encode(&bytes) })
    }

    /// `SHA256:...`, as `ssh-keygen -l` prints it.
    pub fn fingerprint(&self) -> String {
        let bytes = STANDARD.decode(&self.base64).unwrap_or_default();
        format!("SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(&bytes)))
    }
}

impl std::fmt::Display for HostKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.kind, self.base64)
    }
}

/// A `host_key:` of the manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pin {
    /// The whole key.
    Key(HostKey),
    /// `SHA256:...` without padding.
    Fingerprint(String),
}

impl Pin {
    /// Reads `TYPE BASE64` or `SHA256:...`.
    pub fn parse(text: &str) -> Option<Pin> {
        let text = text.trim();
        if let Some(hash) = text.strip_prefix("SHA256:") {
            let hash = hash.trim_end_matches('=');
            let good = STANDARD_NO_PAD.decode(hash).is_ok_and(|bytes| bytes.len() == 32);
            return good.then(|| Pin::Fingerprint(format!("SHA256:{hash}")));
        }
        HostKey::parse(text).map(Pin::Key)
    }

    fn fits(&self, offered: &HostKey) -> bool {
        match self {
            Pin::Key(key) => key == offered,
            Pin::Fingerprint(hash) => *hash == offered.fingerprint(),
        }
    }

    fn fingerprint(&self) -> String {
        match self {
            Pin::Key(key) => format!("{} {}", key.kind, key.fingerprint()),
            Pin::Fingerprint(hash) => hash.clone(),
        }
    }
}

/// A key that stands in a known_hosts file for the host in question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileKey {
    /// The key.
    pub key: HostKey,
    /// It was marked `@revoked`.
    pub revoked: bool,
    /// `FILE:LINE`.
    pub place: String,
}

/// All that is known of one host.
#[derive(Debug, Clone, Default)]
pub struct Knowledge {
    /// `host_key:` of the manifest.
    pub manifest: Vec<Pin>,
    /// Keys of `NAME.nodes`, and what was accepted earlier in this run.
    pub nodes: Vec<HostKey>,
    /// Keys from known_hosts files.
    pub files: Vec<FileKey>,
}

/// What [`judge`] finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is the known key.
    Trusted,
    /// Nothing is known of this host.
    Unknown,
    /// Another key is known; each as fingerprint and where it stands.
    Changed(Vec<(String, String)>),
    /// The key is revoked, and where that stands.
    Revoked(String),
}

/// Whether `offered` is trusted. The manifest counts before `NAME.nodes`, and that before the files; a revocation
/// counts always. A host of which only keys of another type are known is "changed", not "unknown": we ask for the
/// known types first, so a server that still had such a key would have offered it.
pub fn judge(offered: &HostKey, known: &Knowledge) -> Verdict {
    if let Some(entry) = known.files.iter().find(|entry| entry.revoked && entry.key == *offered) {
        return Verdict::Revoked(entry.place.clone());
    }
    let first = if !known.manifest.is_empty() {
        known.manifest.iter().map(|pin| (pin.fits(offered), pin.fingerprint(), "the manifest".to_owned())).collect()
    } else if !known.nodes.is_empty() {
        let seen = |key: &HostKey| (key == offered, format!("{} {}", key.kind, key.fingerprint()));
        let mut keys = Vec::new();
        for key in &known.nodes {
            let (fits, print) = seen(key);
            keys.push((fits, print, "the .nodes file of the cluster".to_owned()));
        }
        keys
    } else {
        known
            .files
            .iter()
            .filter(|entry| !entry.revoked)
            .map(|entry| {
                let print = format!("{} {}", entry.key.kind, entry.key.fingerprint());
                (entry.key == *offered, print, entry.place.clone())
            })
            .collect::<Vec<_>>()
    };
    if first.is_empty() {
        Verdict::Unknown
    } else if first.iter().any(|(fits, _, _)| *fits) {
        Verdict::Trusted
    } else {
        Verdict::Changed(first.into_iter().map(|(_, print, place)| (print, place)).collect())
    }
}

impl Knowledge {
    /// The key types known of this host, those of the most important source only; asked for first in the handshake.
    pub fn kinds(&self) -> Vec<String> {
        let all: Vec<String> = if !self.manifest.is_empty() {
            self.manifest
                .iter()
                .filter_map(|pin| match pin {
                    Pin::Key(key) => Some(key.kind.clone()),
                    Pin::Fingerprint(_) => None,
                })
                .collect()
        } else if !self.nodes.is_empty() {
            self.nodes.iter().map(|key| key.kind.clone()).collect()
        } else {
            self.files.iter().filter(|entry| !entry.revoked).map(|entry| entry.key.kind.clone()).collect()
        };
        let mut kinds = Vec::new();
        for kind in all {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        kinds
    }

    /// Whether a fingerprint of unknown key type is pinned, so that every type of key must be looked at.
    pub fn any_fingerprint(&self) -> bool {
        self.manifest.iter().any(|pin| matches!(pin, Pin::Fingerprint(_)))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A well-formed key of a type, told apart by `seed`.
    pub fn key(kind: &str, seed: u8) -> HostKey {
        let mut bytes = (kind.len() as u32).to_be_bytes().to_vec();
        bytes.extend(kind.as_bytes());
        bytes.extend([0, 0, 0, 4, seed, seed, seed, seed]);
        HostKey { kind: kind.to_owned(), base64: STANDARD.encode(bytes) }
    }

    #[test]
    fn a_key_whose_inner_type_differs_is_refused() {
        let good = key("ssh-ed25519", 1);
        assert_eq!(HostKey::parse(&format!("{good} comment")), Some(good.clone()));
        assert_eq!(HostKey::parse(&format!("ssh-rsa {}", good.base64)), None);
        assert_eq!(HostKey::parse("ssh-ed25519 AAAA"), None);
        assert_eq!(HostKey::parse("ssh-ed25519"), None);
        assert_eq!(Pin::parse("SHA256:short"), None);
    }

    #[test]
    fn the_manifest_counts_first_then_nodes_then_files() {
        let (a, b, c) = (key("ssh-ed25519", 1), key("ssh-ed25519", 2), key("ssh-rsa", 3));
        let file = |key: &HostKey, revoked| FileKey { key: key.clone(), revoked, place: "f:1".into() };
        let mut known = Knowledge { files: vec![file(&a, false)], ..Knowledge::default() };
        assert_eq!(judge(&a, &known), Verdict::Trusted);
        assert!(matches!(judge(&b, &known), Verdict::Changed(_)));
        assert!(matches!(judge(&c, &known), Verdict::Changed(_)), "another type is no free pass");
        known.nodes = vec![b.clone()];
        assert!(matches!(judge(&a, &known), Verdict::Changed(_)));
        known.manifest = vec![Pin::Fingerprint(c.fingerprint())];
        assert_eq!(judge(&c, &known), Verdict::Trusted);
        assert!(matches!(judge(&b, &known), Verdict::Changed(_)));
        known.files.push(file(&c, true));
        assert_eq!(judge(&c, &known), Verdict::Revoked("f:1".into()), "a revocation beats the manifest");
        assert_eq!(judge(&a, &Knowledge::default()), Verdict::Unknown);
    }
}
