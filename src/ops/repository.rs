//! An apt repository: its key, pinned by full fingerprint, and its `.sources` file.
//!
//! The fingerprint is computed here from the key's bytes, before anything is sent, so a node needs no gpg and a
//! wrong key never reaches it. The repository trusts that key only, and no other repository does.

use base64::Engine;
use sha1::{Digest, Sha1};

use super::file::{Content, File, Ownership};
use super::names::{self, BadValue, bad};
use super::{Change, Check, Op, Seen};
use crate::shell::{Shell, call};

/// Where packages are found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Source {
    /// `https://...`.
    pub uri: String,
    /// `bookworm`, or `/` for a flat repository.
    pub suite: String,
    /// `main`; none for a flat one.
    pub components: Vec<String>,
    /// `amd64`; empty is the node's.
    pub architectures: Vec<String>,
}

/// A repository with its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    name: String,
    key: File,
    sources: File,
}

impl Repository {
    /// `key` is armored or binary; its primary key must have this fingerprint (40 hex digits, blanks are ignored).
    ///
    /// # Errors
    /// When a value cannot be used, or the key has another fingerprint.
    pub fn new(name: &str, key: &[u8], fingerprint: &str, source: &Source) -> Result<Self, BadValue> {
        names::word(name)?;
        let wanted: String = fingerprint.split_whitespace().collect::<String>().to_ascii_uppercase();
        if wanted.len() != 40 || !wanted.chars().all(|c| c.is_ascii_hexdigit()) {
            return Err(bad("fingerprint", fingerprint, "all 40 hex digits of it"));
        }
        let bytes = dearmored(key).ok_or_else(|| bad("repository key of", name, "an OpenPGP public key"))?;
        let is = fingerprints(&bytes).ok_or_else(|| bad("repository key of", name, "an OpenPGP public key"))?;
        if is.as_slice() != [wanted.as_str()] {
            return Err(bad("key with fingerprint", &is.join(" "), "exactly the key whose fingerprint is pinned"));
        }
        for word in [&source.uri, &source.suite].into_iter().chain(&source.components).chain(&source.architectures) {
            if word.is_empty() || word.contains(|c: char| c.is_whitespace() || c.is_control()) {
                return Err(bad("repository", word, "one word"));
            }
        }
        let path = format!("/etc/apt/keyrings/provision-{name}.gpg");
        let mut text = format!("# Written by provision.\nTypes: deb\nURIs: {}\nSuites: {}\n", source.uri, source.suite);
        for (field, words) in [("Components", &source.components), ("Architectures", &source.architectures)] {
            if !words.is_empty() {
                text.push_str(&format!("{field}: {}\n", words.join(" ")));
            }
        }
        text.push_str(&format!("Signed-By: {path}\n"));
        let own = || Ownership::new("root", "root", "0644");
        Ok(Repository {
            name: name.to_owned(),
            key: File::new(&path, Content::Bytes(bytes), own())?,
            sources: File::new(
                &format!("/etc/apt/sources.list.d/provision-{name}.sources"),
                Content::Bytes(text.into_bytes()),
                own(),
            )?,
        })
    }
}

impl Op for Repository {
    fn id(&self) -> String {
        format!("repository {}", self.name)
    }

    fn checks(&self) -> Vec<Check> {
        let mut checks = self.key.checks();
        checks.extend(self.sources.checks());
        checks
    }

    fn change(&self, seen: &Seen) -> Change {
        Change { title: format!("repository {}", self.name), diff: self.sources.change(seen).diff }
    }

    fn mend(&self) -> Shell {
        let mut shell = call("mend_directory", &["/etc/apt/keyrings", "root", "root", "0755"]);
        shell.push(self.key.mend());
        shell.push(self.sources.mend());
        shell.push(call("mend_lists", &[&format!("sources.list.d/provision-{}.sources", self.name)]));
        shell
    }

    fn deadline(&self) -> u32 {
        300
    }
}

/// The bytes of a key that may be armored.
fn dearmored(key: &[u8]) -> Option<Vec<u8>> {
    if key.first().is_some_and(|byte| byte & 0x80 != 0) {
        return Some(key.to_vec());
    }
    let text = std::str::from_utf8(key).ok()?;
    let (_, text) = text.split_once("-----BEGIN PGP PUBLIC KEY BLOCK-----")?;
    let (text, _) = text.split_once("-----END PGP PUBLIC KEY BLOCK-----")?;
    // Headers end with an empty line; the checksum line begins with `=`.
    let lines = text.lines().map(str::trim).skip_while(|line| line.contains(':') || line.is_empty());
    let body: String = lines.take_while(|line| !line.starts_with('=')).collect();
    base64::engine::general_purpose::STANDARD.decode(body).ok()
}

/// Fingerprints of all primary keys (version 4) in a key file.
fn fingerprints(mut bytes: &[u8]) -> Option<Vec<String>> {
    let mut found = Vec::new();
    while let Some((&tag, rest)) = bytes.split_first() {
        let (kind, length, rest) = if tag & 0xc0 == 0xc0 {
            let (&first, rest) = rest.split_first()?;
            let (length, rest) = match first {
                0..=191 => (usize::from(first), rest),
                192..=223 => {
                    let (&second, rest) = rest.split_first()?;
                    ((usize::from(first) - 192) * 256 + usize::from(second) + 192, rest)
                }
                255 => number(rest, 4)?,
                _ => return None,
            };
            (tag & 0x3f, length, rest)
        } else if tag & 0x80 != 0 {
            let (length, rest) = number(rest, *[1, 2, 4].get(usize::from(tag & 3))?)?;
            ((tag >> 2) & 0x0f, length, rest)
        } else {
            return None;
        };
        let body = rest.get(..length)?;
        bytes = rest.get(length..)?;
        if kind == 6 {
            if body.first() != Some(&4) {
                return None;
            }
            let mut hash = Sha1::new();
            hash.update([0x99]);
            hash.update(u16::try_from(length).ok()?.to_be_bytes());
            hash.update(body);
            found.push(hash.finalize().iter().map(|byte| format!("{byte:02X}")).collect());
        }
    }
    Some(found)
}

/// A big-endian number of so many bytes.
fn number(bytes: &[u8], size: usize) -> Option<(usize, &[u8])> {
    let value = bytes.get(..size)?.iter().fold(0, |value, byte| value << 8 | usize::from(*byte));
    Some((value, bytes.get(size..)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A key packet that is not a real key but has the shape of one.
    fn key(old: bool) -> Vec<u8> {
        let body = [4, 1, 2, 3, 4, 22, 9, 9];
        let mut bytes = if old { vec![0x98, body.len() as u8] } else { vec![0xc6, body.len() as u8] };
        bytes.extend(body);
        bytes
    }

    #[test]
    fn a_key_with_another_fingerprint_is_refused() {
        let source = Source { uri: "https://example.net/apt".into(), suite: "/".into(), ..Source::default() };
        let pinned = fingerprints(&key(true)).unwrap();
        assert_eq!(pinned, fingerprints(&key(false)).unwrap());
        let good = Repository::new("x", &key(true), &pinned[0], &source).unwrap();
        assert!(good.mend().text.contains("Signed-By: /etc/apt/keyrings/provision-x.gpg"));
        assert!(Repository::new("x", &key(true), &"A".repeat(40), &source).is_err());
        assert!(Repository::new("x", &key(true), &pinned[0][24..], &source).is_err());
        let two = [key(true), key(false)].concat();
        assert!(Repository::new("x", &two, &pinned[0], &source).is_err(), "a second key is not smuggled in");
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = dearmored(&bytes).and_then(|bytes| fingerprints(&bytes));
        }
    }
}
