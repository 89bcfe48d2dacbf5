//! What single values must look like: one check for each [`Form`].
//!
//! Knows texts only; places and keys are the caller's.

use base64::Engine as _;

use super::tables::Form;
use crate::nodeset::{Nodeset, expand};

/// Why a text is not of its form, and how it should be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// What was expected.
    pub expected: String,
    /// What to write, if that is known.
    pub fix: Option<String>,
}

/// Kinds of public keys that are taken.
const KEY_KINDS: [&str; 7] = [
    "ssh-ed25519",
    "ssh-rsa",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
];

/// Whether a text may be the name of a node, group or the like.
pub fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric()) && made_of(text, "._:-")
}

/// Whether an address can be meant: IPv6, IPv4 or a name.
pub fn is_address(text: &str) -> bool {
    if text.parse::<std::net::IpAddr>().is_ok() {
        return true;
    }
    // Digits and dots alone are an IPv4 address with a mistake; more than one colon is such an IPv6 address.
    let like_ip = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') || text.contains(':');
    is_name(text) && !like_ip
}

fn made_of(text: &str, besides: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || besides.contains(c))
}

fn number(text: &str, low: u64, high: u64) -> bool {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    digits && text.parse::<u64>().is_ok_and(|value| (low..=high).contains(&value))
}

fn wish(condition: bool, expected: &str) -> Result<(), Wrong> {
    if condition { Ok(()) } else { Err(Wrong { expected: format!("expected {expected}"), fix: None }) }
}

/// Checks a text against its form.
///
/// # Errors
/// What was expected.
pub fn check(form: Form, text: &str) -> Result<(), Wrong> {
    match form {
        Form::Content | Form::Secret => Ok(()),
        Form::Any => {
            wish(!text.trim().is_empty() && !text.chars().any(|c| c.is_control() && c != '\t'), "one line of text")
        }
        Form::Format => match text {
            "1" => Ok(()),
            _ => Err(Wrong {
                expected: "expected 1, the only format of manifests there is".to_owned(),
                fix: Some("write version: 1".to_owned()),
            }),
        },
        Form::Version => version(text),
        Form::Name | Form::Group => {
            wish(is_name(text), "a name: letters, digits and . _ : - after a first letter or digit")
        }
        Form::NodeName => ranged(text, is_name, "a name like n1 or gpu[01-16]"),
        Form::Address => {
            if text.parse::<std::net::Ipv6Addr>().is_ok() {
                return Ok(());
            }
            if text.contains('[') && text.contains(':') {
                return Err(Wrong {
                    expected: "an IPv6 address has no ranges".to_owned(),
                    fix: Some("write one entry for each node".to_owned()),
                });
            }
            ranged(text, is_address, "an address: 10.0.0.11, 10.0.0.[11-26], an IPv6 address or a name")
        }
        Form::Account => wish(
            made_of(text, "_.@-") && !text.starts_with(['-', '.', '@']) && text.len() <= 256,
            "the name of an account",
        ),
        Form::LocalPath => wish(!text.trim().is_empty() && !text.chars().any(char::is_control), "a path"),
        Form::NodePath => node_path(text),
        Form::Mode => {
            let octal = text.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
            wish(octal && (3..=4).contains(&text.len()), "three or four octal digits, like 0644")
        }
        Form::Port => wish(number(text, 1, 65535), "a port from 1 to 65535"),
        Form::Count => wish(number(text, 0, 1_000_000), "a whole number"),
        Form::Share => {
            let share = text.strip_suffix('%').map_or_else(|| number(text, 1, 1_000_000), |part| number(part, 1, 100));
            wish(share, "a number of nodes or a percentage, like 4 or 25%")
        }
        Form::Limit => wish(text == "unlimited" || number(text, 0, u64::MAX), "unlimited or a whole number"),
        Form::Word => {
            wish(made_of(text, "._-+:~@*/=%^,") && !text.starts_with('-'), "a word without spaces and quotes")
        }
        Form::Package => wish(
            made_of(text, "+._:~-") && text.starts_with(|c: char| c.is_ascii_alphanumeric()) && !text.ends_with('-'),
            "the name of a package; to remove one write `state: absent`",
        ),
        Form::Unit => wish(made_of(text, "@._:\\-") && !text.starts_with(['-', '.']), "the name of a unit of systemd"),
        Form::Jump => {
            let fits = jump(text).is_some();
            wish(fits, "[user@]host[:port]")
        }
        Form::HostKey => host_key(text),
        Form::Gpus => gpus(text),
        Form::Url => wish(
            !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic()),
            "an address like https://mirror.example.net/",
        ),
        Form::Date => wish(text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(), "a day, like 2027-03-01"),
        Form::Code => {
            let digits = text.strip_prefix('P').unwrap_or_default();
            wish(digits.len() == 4 && number(digits, 0, 9999), "the code of a finding, like P0102")
        }
        Form::Nodeset => Nodeset::parse(text)
            .map(drop)
            .map_err(|finding| Wrong { expected: finding.because.join(", "), fix: finding.fix.into_iter().next() }),
    }
}

fn ranged(text: &str, fits: fn(&str) -> bool, expected: &str) -> Result<(), Wrong> {
    let wrong = |why: String| Wrong { expected: format!("expected {expected}; {why}"), fix: None };
    let names = expand(text).map_err(wrong)?;
    match names.iter().find(|name| !fits(name)) {
        Some(name) if name == text => wish(false, expected),
        Some(name) => Err(wrong(format!("`{name}` is none"))),
        None => Ok(()),
    }
}

fn version(text: &str) -> Result<(), Wrong> {
    let expected = "a version (12.4.1), a prefix (12.4), a range (\">=535,<560\"), auto or none";
    if matches!(text, "auto" | "none") {
        return Ok(());
    }
    let bound = |part: &str| {
        let part = part.trim();
        let version = part.trim_start_matches(['<', '>', '=', '!']);
        let operator = part.get(..part.len() - version.len()).unwrap_or_default();
        let version = version.trim();
        let fits = version.starts_with(|c: char| c.is_ascii_digit()) && made_of(version, ".+~_:-");
        fits && matches!(operator, "" | "<" | "<=" | ">" | ">=" | "=" | "==" | "!=")
    };
    if text.split(',').all(bound)
        && (!text.contains(',') || text.split(',').all(|part| part.trim().starts_with(['<', '>', '=', '!'])))
    {
        return Ok(());
    }
    let bare = text.trim_start_matches(['v', 'V']);
    let fix = (bare != text && bound(bare)).then(|| format!("write {bare}"));
    Err(Wrong { expected: format!("expected {expected}"), fix })
}

fn node_path(text: &str) -> Result<(), Wrong> {
    if !text.starts_with('/') {
        return Err(Wrong {
            expected: "expected an absolute path on the node".to_owned(),
            fix: text
                .starts_with(|c: char| c.is_ascii_alphanumeric())
                .then(|| format!("write /{text} if that is meant")),
        });
    }
    let clean = text.split('/').skip(1).all(|part| !matches!(part, "" | "." | ".."));
    wish(clean && !text.chars().any(char::is_control), "a path without //, . and .., and without a / at its end")
}

fn host_key(text: &str) -> Result<(), Wrong> {
    if let Some(hash) = text.strip_prefix("SHA256:") {
        let decoded = base64::engine::general_purpose::STANDARD_NO_PAD.decode(hash.trim_end_matches('='));
        return wish(decoded.is_ok_and(|bytes| bytes.len() == 32), "SHA256: and 43 characters of base64");
    }
    let mut words = text.split_whitespace();
    let (kind, data) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let blob = base64::engine::general_purpose::STANDARD.decode(data).unwrap_or_default();
    let (length, rest) = blob.split_at_checked(4).unwrap_or_default();
    let length = length.iter().fold(0_usize, |sum, byte| sum << 8 | usize::from(*byte));
    let fits = KEY_KINDS.contains(&kind) && rest.get(..length) == Some(kind.as_bytes()) && rest.len() > length + 4;
    wish(fits, "a whole public key (ssh-ed25519 AAAA...) or its fingerprint (SHA256:...)")
}

fn gpus(text: &str) -> Result<(), Wrong> {
    let (count, name) = text.split_once(['x', 'X']).unwrap_or_default();
    let fits = number(count.trim(), 1, 1024) && name.starts_with(' ') && !name.trim().is_empty();
    if fits || text == "none" { Ok(()) } else { wish(false, "a count and a name, like 8x A100-SXM4-80GB") }
}

/// User, host and port of `[user@]host[:port]`; an IPv6 address with a port stands in brackets.
pub fn jump(text: &str) -> Option<(Option<&str>, &str, Option<u16>)> {
    let (user, rest) = match text.rsplit_once('@') {
        Some((user, rest)) => (Some(user), rest),
        None => (None, text),
    };
    if user.is_some_and(|user| check(Form::Account, user).is_err()) {
        return None;
    }
    if rest.parse::<std::net::Ipv6Addr>().is_ok() {
        return Some((user, rest, None));
    }
    let (host, port) = match rest.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        Some((host, after)) if host.parse::<std::net::Ipv6Addr>().is_ok() => match after {
            "" => (host, None),
            _ => (host, Some(after.strip_prefix(':')?)),
        },
        Some(_) => return None,
        None => match rest.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (rest, None),
        },
    };
    let port = match port {
        Some(port) if number(port, 1, 65535) => Some(port.parse().ok()?),
        Some(_) => return None,
        None => None,
    };
    is_address(host).then_some((user, host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_values_pass_and_bad_ones_do_not() {
        let cases: [(Form, &[&str], &[&str]); 14] = [
            (
                Form::Version,
                &["12.10", "550", ">=535,<560", "> 5", "auto", "none", "550.54.15", "13-0", "2.4.0+cu124"],
                &["", "latest", "v12", ">=", ">=535,560", "12 4", "=>5", "1;2"],
            ),
            (Form::Name, &["a", "gpu01", "a.b_c:d-e", "1"], &["", "-a", ".a", "a b", "ä", "a/b", "$x"]),
            (
                Form::Address,
                &["10.0.0.1", "10.0.0.[1-4]", "::1", "fe80::1", "n1.example.net", "n[1-2].x"],
                &["10.0.0.256", "10.0.0.[250-260]", "1.2.3", "fe80::[1-2]", "a b", "[::1]", "1::2::3", "host:22"],
            ),
            (Form::Mode, &["0644", "644", "1777"], &["644x", "0888", "u+x", "64", "00644"]),
            (Form::NodePath, &["/etc/motd", "/a b"], &["etc/motd", "/", "/a/", "/a//b", "/a/../b", "~/x", "/a\nb"]),
            (Form::Port, &["22", "65535"], &["0", "65536", "-1", "+22", "ssh"]),
            (Form::Share, &["1", "25%"], &["0", "0%", "101%", "x"]),
            (
                Form::Jump,
                &["b", "u@b:22", "[::1]:22", "::1", "u@10.0.0.1"],
                &["", "@b", "b:", "b:x", "[x]", "u@", "1.2.3"],
            ),
            (Form::Gpus, &["8x A100-SXM4-80GB", "1x RTX 4090"], &["A100", "0x A100", "8xA100", "x A100"]),
            (Form::Date, &["2027-03-01"], &["2027-02-30", "1.3.2027", "tomorrow"]),
            (Form::Code, &["P0102"], &["0102", "P102", "p0102"]),
            (Form::Limit, &["unlimited", "1048576"], &["infinity", "-1"]),
            (Form::Account, &["train", "_x", "a.b"], &["", "-x", "a b", "root;"]),
            (
                Form::HostKey,
                &["SHA256:uNiVztksCsDhcc0u9e8BgrJXVGDUiAKYuvPNcJD2wQk"],
                &["SHA256:abc", "ssh-ed25519 AAAA", "ssh-ed25519", "MD5:00"],
            ),
        ];
        for (form, good, bad) in cases {
            for text in good {
                assert_eq!(check(form, text), Ok(()), "{form:?} {text}");
            }
            for text in bad {
                assert!(check(form, text).is_err(), "{form:?} {text}");
            }
        }
    }
}
