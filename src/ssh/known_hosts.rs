//! known_hosts files: which keys they hold for a host.
//!
//! Our own parser, because the SSH library's helper ignores `@revoked`, wildcards and negation. Certificate
//! authorities have no effect in this build: a line with `@cert-authority` is skipped. Lines that cannot be read are
//! skipped too, as OpenSSH does. The text comes from the caller; nothing here opens a file.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha1::Sha1;

use super::host_key::{FileKey, HostKey};

/// One usable line.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    number: usize,
    revoked: bool,
    hosts: Hosts,
    key: HostKey,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Hosts {
    Hashed { salt: Vec<u8>, hash: Vec<u8> },
    Patterns(Vec<String>),
}

/// A parsed file.
#[derive(Debug, Clone, Default)]
pub struct KnownHosts {
    file: String,
    lines: Vec<Line>,
}

impl KnownHosts {
    /// Parses a file's text; `file` names it in places.
    pub fn parse(file: &str, text: &str) -> KnownHosts {
        let lines = text.lines().enumerate().filter_map(|(index, line)| parse_line(index + 1, line)).collect();
        KnownHosts { file: file.to_owned(), lines }
    }

    /// The keys of a host, as it is named in such files (see [`file_name`]).
    pub fn keys(&self, name: &str) -> Vec<FileKey> {
        self.find(name, false)
    }

    /// Its revoked keys only. Where a better source knows the host, these are all that counts, and thousands of hashed
    /// lines need not be tried for each of thousands of nodes.
    pub fn revoked(&self, name: &str) -> Vec<FileKey> {
        self.find(name, true)
    }

    fn find(&self, name: &str, revoked_only: bool) -> Vec<FileKey> {
        self.lines
            .iter()
            .filter(|line| (line.revoked || !revoked_only) && line.hosts.fit(name))
            .map(|line| FileKey {
                key: line.key.clone(),
                revoked: line.revoked,
                place: format!("{}:{}", self.file, line.number),
            })
            .collect()
    }
}

/// How a host is named in known_hosts: `host`, or `[host]:port` when the port is not 22; in lower case.
pub fn file_name(host: &str, port: u16) -> String {
    let host = host.to_ascii_lowercase();
    if port == 22 { host } else { format!("[{host}]:{port}") }
}

fn parse_line(number: usize, line: &str) -> Option<Line> {
    let line = line.trim();
    if line.starts_with('#') {
        return None;
    }
    let (revoked, line) = match line.strip_prefix('@') {
        None => (false, line),
        Some(rest) => {
            let (marker, rest) = rest.split_once([' ', '\t'])?;
            if marker != "revoked" {
                return None;
            }
            (true, rest.trim_start())
        }
    };
    let (hosts, key) = line.split_once([' ', '\t'])?;
    let hosts = match hosts.strip_prefix("|1|") {
        Some(hashed) => {
            let (salt, hash) = hashed.split_once('|')?;
            Hosts::Hashed { salt: STANDARD.decode(salt).ok()?, hash: STANDARD.decode(hash).ok()? }
        }
        None if hosts.starts_with('|') => return None,
        None => Hosts::Patterns(hosts.split(',').map(str::to_ascii_lowercase).collect()),
    };
    Some(Line { number, revoked, hosts, key: HostKey::parse(key)? })
}

impl Hosts {
    fn fit(&self, name: &str) -> bool {
        match self {
            Hosts::Hashed { salt, hash } => Hmac::<Sha1>::new_from_slice(salt).is_ok_and(|mut mac| {
                mac.update(name.as_bytes());
                mac.verify_slice(hash).is_ok()
            }),
            Hosts::Patterns(patterns) => {
                let mut fits = false;
                for pattern in patterns {
                    match pattern.strip_prefix('!') {
                        Some(negated) if wildcard(negated.as_bytes(), name.as_bytes()) => return false,
                        Some(_) => {}
                        None => fits = fits || wildcard(pattern.as_bytes(), name.as_bytes()),
                    }
                }
                fits
            }
        }
    }
}

/// `*` and `?`, in time that grows at most with the product of both lengths.
fn wildcard(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(wanted) if *wanted == b'?' || text.get(t) == Some(wanted) => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    p = at + 1;
                    t = from + 1;
                    star = Some((at, from + 1));
                }
                None => return false,
            },
        }
    }
    pattern.get(p..).is_some_and(|rest| rest.iter().all(|byte| *byte == b'*'))
}

#[cfg(test)]
mod tests {
    use super::super::host_key::tests::key;
    use super::*;

    fn count(hosts: &str, name: &str) -> usize {
        KnownHosts::parse("f", &format!("{hosts} {}\n", key("ssh-ed25519", 1))).keys(name).len()
    }

    #[test]
    fn patterns_negation_and_ports() {
        assert_eq!(count("gpu01", "gpu01"), 1);
        assert_eq!(count("GPU01", &file_name("Gpu01", 22)), 1);
        assert_eq!(count("gpu0?", "gpu01"), 1);
        assert_eq!(count("gpu0?", "gpu0"), 0);
        assert_eq!(count("*.example.net,!bad.example.net", "good.example.net"), 1);
        assert_eq!(count("*.example.net,!bad.example.net", "bad.example.net"), 0);
        assert_eq!(count("!bad.example.net", "good.example.net"), 0, "negation alone fits nobody");
        assert_eq!(count("n1", &file_name("n1", 2222)), 0);
        assert_eq!(count("[n1]:2222", &file_name("n1", 2222)), 1);
        assert_eq!(count("[10.0.0.*]:22*", "[10.0.0.7]:2222"), 1);
        assert_eq!(count("10.0.0.7,n1", "n1"), 1);
        assert_eq!(count("a*b*c*d", &"abc".repeat(200)), 0);
    }

    #[test]
    fn hashed_names() {
        let mut mac = Hmac::<Sha1>::new_from_slice(b"01234567890123456789").unwrap();
        mac.update(b"[n1]:2222");
        let hosts =
            format!("|1|{}|{}", STANDARD.encode(b"01234567890123456789"), STANDARD.encode(mac.finalize().into_bytes()));
        assert_eq!(count(&hosts, "[n1]:2222"), 1);
        assert_eq!(count(&hosts, "n1"), 0);
        assert_eq!(count("|1|broken", "broken"), 0);
        assert_eq!(count("|2|a|b", "a"), 0);
    }

    #[test]
    fn markers_comments_and_broken_lines() {
        let (a, b) = (key("ssh-ed25519", 1), key("ssh-rsa", 2));
        let text = format!(
            "# note\n\nn1\nn1 ssh-ed25519\nn1 ssh-ed25519 !!!\n@revoked n1 {b}\n@cert-authority n1 {a}\n@odd n1 {a}\n\tn1 {a} me@here\n"
        );
        let found = KnownHosts::parse("kh", &text).keys("n1");
        assert_eq!(found.len(), 2);
        assert!(found[0].revoked && found[0].key == b && found[0].place == "kh:6");
        assert!(!found[1].revoked && found[1].key == a && found[1].place == "kh:9");
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_panic(text in "\\PC*", name in "\\PC{0,20}") {
            KnownHosts::parse("f", &text).keys(&name);
        }
    }
}
