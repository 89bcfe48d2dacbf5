//! A public key: the only form in which one node's key reaches another node or a file.

use std::fmt;

use base64::Engine;

use super::names::{BadValue, bad};

/// Kinds of keys that are accepted.
const KINDS: &[&str] = &[
    "ssh-ed25519",
    "ssh-rsa",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
];

/// Type and key; printed anew from these two, so nothing else a node says travels with it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey {
    kind: &'static str,
    base64: String,
}

impl PublicKey {
    /// Reads `TYPE BASE64`, a comment after it is dropped.
    ///
    /// # Errors
    /// When it is not one line, the type is unknown, or the key's inner type is another.
    pub fn parse(text: &str) -> Result<Self, BadValue> {
        let wrong = || bad("public key", text, "`TYPE BASE64` on one line, such as `ssh-ed25519 AAAA...`");
        let text = text.strip_suffix('\n').unwrap_or(text);
        if text.contains(char::is_control) || text.len() > 16 * 1024 {
            return Err(wrong());
        }
        let mut words = text.split(' ');
        let kind = words.next().and_then(|word| KINDS.iter().find(|kind| **kind == word)).ok_or_else(wrong)?;
        let engine = base64::engine::general_purpose::STANDARD;
        let bytes = words.next().and_then(|word| engine.decode(word).ok()).ok_or_else(wrong)?;
        let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(wrong)?;
        let length = u32::from_be_bytes(*length) as usize;
        if length != kind.len() || !rest.starts_with(kind.as_bytes()) || rest.len() <= length + 4 {
            return Err(wrong());
        }
        Ok(PublicKey { kind, base64: engine.encode(bytes) })
    }

    /// `ssh-ed25519` and the like.
    pub fn kind(&self) -> &'static str {
        self.kind
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.base64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_type_and_key_survive() {
        let mut bytes = b"\0\0\0\x0bssh-ed25519\0\0\0\x20".to_vec();
        bytes.extend([7; 32]);
        let good = format!("ssh-ed25519 {}", base64::engine::general_purpose::STANDARD.encode(&bytes));
        assert_eq!(PublicKey::parse(&format!("{good} me@host\n")).unwrap().to_string(), good);
        for wrong in [good.replace("ed25519 ", "rsa "), format!("{good}\n{good}"), "command=\"x\" ".to_owned() + &good]
        {
            assert!(PublicKey::parse(&wrong).is_err(), "{wrong}");
        }
    }
}
