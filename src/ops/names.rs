//! What may stand as a path, user, unit or package name on a node; everything else is refused before a script is made.

/// A value that cannot be used on a node; the text says what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} `{value}`: {expected}")]
pub struct BadValue {
    /// What it was meant to be: `path`.
    pub what: &'static str,
    /// The value, control characters escaped.
    pub value: String,
    /// What is expected.
    pub expected: &'static str,
}

pub(super) fn bad(what: &'static str, value: &str, expected: &'static str) -> BadValue {
    let value = value.chars().take(120).flat_map(char::escape_debug).collect();
    BadValue { what, value, expected }
}

/// An absolute path without control characters, backslashes, `.`, `..` or empty parts.
///
/// # Errors
/// When it is not.
pub fn path(text: &str) -> Result<(), BadValue> {
    let inner = text.strip_prefix('/');
    let good = inner.is_some_and(|inner| {
        !inner.is_empty()
            && text.len() < 4096
            && inner.split('/').all(|part| !part.is_empty() && part != "." && part != ".." && part.len() < 240)
            && !text.chars().any(|c| c.is_control() || c == '\\')
    });
    if good {
        Ok(())
    } else {
        Err(bad("path", text, "an absolute path without `..`, `//`, backslash or control characters"))
    }
}

/// A user or group name, no number; may be empty where `optional` (not managed).
///
/// # Errors
/// When it is not one.
pub fn user(text: &str, optional: bool) -> Result<(), BadValue> {
    let good = (optional && text.is_empty())
        || (text.len() <= 32
            && text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
            && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
            // A node answers with names, so a number would differ for ever.
            && !text.chars().all(|c| c.is_ascii_digit()));
    if good { Ok(()) } else { Err(bad("user or group", text, "a name of letters, digits, `_`, `-`, `.`, at most 32")) }
}

/// A file mode of three or four octal digits, or empty (not managed).
///
/// # Errors
/// When it is not one.
pub fn mode(text: &str) -> Result<(), BadValue> {
    let good = text.is_empty() || ((3..=4).contains(&text.len()) && text.chars().all(|c| ('0'..='7').contains(&c)));
    if good { Ok(()) } else { Err(bad("mode", text, "three or four octal digits, quoted in YAML")) }
}

/// One line: no newline, carriage return at the end is allowed, no NUL.
///
/// # Errors
/// When it is more than a line.
pub fn line(text: &str) -> Result<(), BadValue> {
    if text.contains(['\n', '\0']) { Err(bad("line", text, "one line without NUL")) } else { Ok(()) }
}

/// A word of lower case letters, digits and `-`, as in the marker of a block.
///
/// # Errors
/// When it is not one.
pub fn word(text: &str) -> Result<(), BadValue> {
    let good = !text.is_empty()
        && text.len() <= 64
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if good { Ok(()) } else { Err(bad("name", text, "lower case letters, digits and `-`")) }
}
