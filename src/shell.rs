//! Quoting: the only way a value becomes shell.
//!
//! A piece of shell is made of calls of library functions (`templates/*.sh`), and every argument of a call goes through
//! [`quote`]; there is no other way to put a value into a script. It does not know what the functions do.

use std::collections::BTreeMap;

use crate::secret::Secret;

/// A piece of POSIX shell: every value in it has been quoted by [`quote`].
///
/// The text never holds a secret's value, only the name of the variable that will hold it; the values
/// travel beside it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shell {
    /// The text.
    pub text: String,
    /// Whether secrets belong to it.
    pub secret: bool,
    /// The secrets by the name of their variable, without the `payload_` before it.
    pub payloads: BTreeMap<String, Secret>,
}

/// A text holds a NUL byte, which no shell word can carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the text holds a NUL byte, which a shell cannot carry")]
pub struct HasNul;

/// Makes one shell word that stands for exactly this text.
///
/// # Errors
/// [`HasNul`] when the text holds a NUL byte.
pub fn quote(text: &str) -> Result<String, HasNul> {
    if text.contains('\0') {
        return Err(HasNul);
    }
    // Between single quotes nothing has a meaning but the quote itself.
    Ok(format!("'{}'", text.replace('\'', "'\\''")))
}

/// An argument of a shell function.
#[derive(Debug, Clone)]
pub enum Argument<'a> {
    /// Stands in the script, quoted.
    Plain(&'a str),
    /// Travels beside the script in a file of its own that is removed when the phase ends.
    Secret(&'a Secret),
}

/// A call of a function of the shell library; every argument is quoted.
///
/// A value with a NUL byte gives a script that fails and says so: it never runs with another value.
pub fn call(function: &'static str, arguments: &[&str]) -> Shell {
    let arguments: Vec<Argument> = arguments.iter().map(|text| Argument::Plain(text)).collect();
    call_with(function, "", &arguments)
}

/// Like [`call`], with arguments that may be secret; `owner` (an operation's id) keeps their names apart.
pub fn call_with(function: &'static str, owner: &str, arguments: &[Argument]) -> Shell {
    let mut shell = Shell { text: function.to_owned(), ..Shell::default() };
    for (position, argument) in arguments.iter().enumerate() {
        shell.text.push(' ');
        match argument {
            Argument::Plain(text) => match quote(text) {
                Ok(word) => shell.text.push_str(&word),
                Err(_) => return refusal(),
            },
            Argument::Secret(secret) => {
                if secret.reveal().contains('\0') {
                    return refusal();
                }
                let name = payload_name(owner, function, position);
                shell.text.push_str("\"$payload_");
                shell.text.push_str(&name);
                shell.text.push('"');
                shell.payloads.insert(name, (*secret).clone());
                shell.secret = true;
            }
        }
    }
    shell.text.push('\n');
    shell
}

/// The call that stands in for one whose value cannot be carried.
fn refusal() -> Shell {
    Shell { text: "refuse 'a value holds a NUL byte'\n".to_owned(), ..Shell::default() }
}

/// The name of a payload: from where it is used, never from what it holds.
fn payload_name(owner: &str, function: &str, position: usize) -> String {
    let digest = sha256_hex(format!("{owner}\n{function}\n{position}").as_bytes());
    digest.chars().take(24).collect()
}

/// SHA-256 as lower case hex.
pub fn sha256_hex(bytes: &[u8]) -> String {
    use sha2::Digest;
    use std::fmt::Write;
    let mut text = String::with_capacity(64);
    for byte in sha2::Sha256::digest(bytes) {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

impl Shell {
    /// Appends another piece.
    pub fn push(&mut self, other: Shell) {
        self.text.push_str(&other.text);
        self.secret |= other.secret;
        self.payloads.extend(other.payloads);
    }

    /// The text for people (`plan --scripts`): a secret stands as `***`.
    pub fn shown(&self) -> String {
        self.payloads
            .keys()
            .fold(self.text.clone(), |text, name| text.replace(&format!("\"$payload_{name}\""), "'***'"))
    }
}

/// Secret values by the name of the shell variable that will hold them.
pub type Payloads = BTreeMap<String, Secret>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nul_is_refused_and_fails_loudly() {
        assert_eq!(quote("a\0b"), Err(HasNul));
        assert_eq!(call("mend_x", &["a\0"]).text, "refuse 'a value holds a NUL byte'\n");
    }

    #[test]
    fn secrets_stand_beside_the_script() {
        let secret = Secret::new("hunter2".to_owned());
        let shell = call_with("mend_file", "file /x", &[Argument::Plain("/x y"), Argument::Secret(&secret)]);
        assert!(!shell.text.contains("hunter2") && shell.secret);
        assert_eq!(shell.payloads.len(), 1);
        assert_eq!(shell.shown(), "mend_file '/x y' '***'\n");
    }
}
