//! Whether the SSH configuration says the same of every host, so that `ssh -G` need be asked only once.
//!
//! Decides from the files that `ssh -v -G` says it has read, and only for what is surely so: every keyword must be on the
//! list, `Host` may only be `Host *`, and no value may have a token. Whatever else, each host is asked for itself.

use std::path::Path;

/// Keywords that cannot make a difference between hosts (`host` and `include` are looked at more closely).
const KEYWORDS: [&str; 44] = [
    "addkeystoagent",
    "batchmode",
    "checkhostip",
    "ciphers",
    "compression",
    "connectionattempts",
    "connecttimeout",
    "controlmaster",
    "controlpersist",
    "forwardagent",
    "forwardx11",
    "forwardx11timeout",
    "forwardx11trusted",
    "globalknownhostsfile",
    "gssapiauthentication",
    "gssapidelegatecredentials",
    "hashknownhosts",
    "host",
    "hostkeyalgorithms",
    "identitiesonly",
    "identityfile",
    "include",
    "ipqos",
    "kbdinteractiveauthentication",
    "kexalgorithms",
    "loglevel",
    "macs",
    "numberofpasswordprompts",
    "passwordauthentication",
    "port",
    "preferredauthentications",
    "pubkeyacceptedalgorithms",
    "pubkeyauthentication",
    "rekeylimit",
    "sendenv",
    "serveralivecountmax",
    "serveraliveinterval",
    "setenv",
    "stricthostkeychecking",
    "tcpkeepalive",
    "updatehostkeys",
    "user",
    "userknownhostsfile",
    "visualhostkey",
];

/// Whether a name means the same to `ssh` as it stands: a plain host name in lower case, no address.
pub fn plain(name: &str) -> bool {
    name.starts_with(|letter: char| letter.is_ascii_lowercase())
        && name.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-.".contains(letter))
}

/// Whether all files that `ssh -v` says it has read speak of all hosts alike.
pub fn all(said: &str) -> bool {
    said.starts_with("OpenSSH_")
        && said.lines().filter_map(|line| line.strip_prefix("debug1: Reading configuration data ")).all(|path| {
            std::fs::read_to_string(Path::new(path.trim_end_matches('\r'))).is_ok_and(|text| text.lines().all(line))
        })
}

/// Whether a line of a configuration file cannot tell one host from another.
fn line(line: &str) -> bool {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return true;
    }
    let (keyword, value) =
        line.split_once(|letter: char| letter.is_whitespace() || letter == '=').unwrap_or((line, ""));
    let (keyword, value) = (keyword.to_ascii_lowercase(), value.trim());
    KEYWORDS.contains(&keyword.as_str())
        && !value.contains('%')
        && match keyword.as_str() {
            "host" => value == "*",
            "include" => !value.contains('$'),
            _ => true,
        }
}

/// What `ssh -G` said of the host `first`, as it would say it of `other`; both are plain.
pub fn instead(text: &str, first: &str, other: &str) -> Option<String> {
    let named = format!("hostname {first}");
    if !text.lines().any(|line| line == named) {
        return None;
    }
    let lines =
        text.lines().map(|line| if line == named { format!("hostname {other}\n") } else { format!("{line}\n") });
    Some(lines.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_tell_hosts_apart_is_found() {
        for same in ["", "  # Host a", "Host *", "User=me", "identityfile ~/.ssh/id_x", "Include /etc/ssh/x.d/*.conf"] {
            assert!(line(same), "{same}");
        }
        for other in [
            "Host a",
            "Host * !a",
            "Match all",
            "HostName 10.0.0.1",
            "ProxyJump b",
            "IdentityFile ~/%h",
            "Include ${X}",
            "\"Host\" *",
        ] {
            assert!(!line(other), "{other}");
        }
        assert!(!plain("10.0.0.1") && !plain("N1") && !plain("a@b") && !plain("") && plain("gpu-01.lan"));
    }

    #[test]
    fn files_that_cannot_be_read_and_other_programs_prove_nothing() {
        assert!(all("OpenSSH_9.2p1\n"));
        assert!(!all("dropbear\n") && !all(""));
        assert!(!all("OpenSSH_9.2p1\ndebug1: Reading configuration data /no/such/file\n"));
    }

    #[test]
    fn the_name_is_replaced_where_it_is_the_host_only() {
        let text = "host n1\nhostname n1\nidentityfile ~/n1\n";
        assert_eq!(instead(text, "n1", "n2").unwrap(), "host n1\nhostname n2\nidentityfile ~/n1\n");
        assert_eq!(instead("hostname 10.0.0.1\n", "n1", "n2"), None);
    }
}
