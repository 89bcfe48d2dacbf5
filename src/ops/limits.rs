//! A file in `/etc/security/limits.d` for one user.

use super::file::{Content, File, Ownership};
use super::names::{self, BadValue};

/// Soft and hard limits of a user: (`memlock`, `unlimited`), (`nofile`, `1048576`).
///
/// # Errors
/// When a name or value cannot stand there.
pub fn limits(user: &str, items: &[(String, String)]) -> Result<File, BadValue> {
    names::user(user, false)?;
    let mut text = String::from("# Written by provision.\n");
    for (item, value) in items {
        names::word(item)?;
        if value != "unlimited" && value.parse::<u64>().is_err() {
            return Err(names::bad("limit", value, "a number or `unlimited`"));
        }
        text.push_str(&format!("{user} - {item} {value}\n"));
    }
    let path = format!("/etc/security/limits.d/60-provision-{user}.conf");
    File::new(&path, Content::Bytes(text.into_bytes()), Ownership::new("root", "root", "0644"))
}
