//! The codes of the findings that the manifest alone can cause, each with its meaning.
//!
//! A code never changes its meaning once released. This module knows no findings, only their names.

/// The text is not YAML, or uses a part of YAML that a manifest may not use.
pub const SYNTAX: &str = "P0001";
/// A key that is not known here.
pub const UNKNOWN_KEY: &str = "P0002";
/// A value of the wrong type.
pub const WRONG_TYPE: &str = "P0003";
/// A key, name or path that was already given.
pub const DUPLICATE: &str = "P0004";
/// A reference to a group or node that does not exist.
pub const NO_SUCH: &str = "P0005";
/// A value of the right type that cannot be meant.
pub const BAD_VALUE: &str = "P0006";
/// A key that must be there is not.
pub const MISSING: &str = "P0007";
/// A reference to a secret that is malformed, or stands where no secret may stand.
pub const BAD_SECRET: &str = "P0008";
/// A secret written as plain text.
pub const PLAIN_SECRET: &str = "P0009";
/// Keys that exclude each other, or lists that must be equally long and are not.
pub const CONFLICT: &str = "P0010";
/// The file cannot be read.
pub const UNREADABLE: &str = "P0011";
/// Bytes, nesting, aliases or nodes beyond the limits.
pub const TOO_LARGE: &str = "P0012";
/// A saved plan that cannot be used, or no longer holds.
pub const SAVED_PLAN: &str = "P0013";
/// Arguments of the command line that make no sense.
pub const USAGE: &str = "P0014";
/// A file of ours cannot be written.
pub const UNWRITABLE: &str = "P0015";
/// Versions were declared but this build has no data to judge them.
pub const NOT_JUDGED: &str = "P0019";
/// A part is wanted for which this build has no step.
pub const NO_STEP: &str = "P0020";
/// The user of the trust is an administrator.
pub const TRUST_ADMIN: &str = "P0210";

/// Every code with one sentence on what it means.
pub const ALL: [(&str, &str); 18] = [
    (SYNTAX, "the text is not YAML, or uses a part of YAML that a manifest may not use"),
    (UNKNOWN_KEY, "a key that is not known here"),
    (WRONG_TYPE, "a value of the wrong type"),
    (DUPLICATE, "a key, name or path that was already given"),
    (NO_SUCH, "a reference to a group or node that does not exist"),
    (BAD_VALUE, "a value that cannot be meant"),
    (MISSING, "a key that must be there is not"),
    (BAD_SECRET, "a malformed reference to a secret, or one where no secret may stand"),
    (PLAIN_SECRET, "a secret written as plain text"),
    (CONFLICT, "keys that exclude each other, or ranges of unequal length"),
    (UNREADABLE, "the file cannot be read"),
    (TOO_LARGE, "size, nesting, aliases or nodes beyond the limits"),
    (SAVED_PLAN, "a saved plan cannot be used, or no longer holds"),
    (USAGE, "arguments of the command line make no sense"),
    (UNWRITABLE, "a file cannot be written on this machine"),
    (NOT_JUDGED, "what was wished was not judged"),
    (NO_STEP, "a part is wanted for which this build has no step"),
    (TRUST_ADMIN, "the user of the trust is an administrator"),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn every_code_is_listed_once_and_well_formed() {
        let codes: BTreeSet<&str> = super::ALL.iter().map(|(code, _)| *code).collect();
        assert_eq!(codes.len(), super::ALL.len());
        assert!(codes.iter().all(|code| code.len() == 5 && code.starts_with('P')));
    }
}
