//! Putting equal nodes together: grouping by a key, and names that differ only in who or where the node is.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use super::safe;
use crate::nodeset;

/// Items of one kind: the first of them, and the names of all.
pub(super) struct Group<'a, T> {
    /// The first item, shown for all.
    pub first: T,
    /// The names, in the order they came.
    pub names: Vec<&'a str>,
    /// For each detail, whether every item has the same as the first.
    same: Vec<bool>,
    details: Vec<u64>,
}

/// Groups in the order of their first members; one hash look-up for each item.
pub(super) struct Groups<'a, T> {
    index: HashMap<String, usize>,
    /// The groups.
    pub groups: Vec<Group<'a, T>>,
}

impl<'a, T> Groups<'a, T> {
    /// No groups yet.
    pub fn new() -> Self {
        Groups { index: HashMap::new(), groups: Vec::new() }
    }

    /// Puts an item to the group with its key; `details` are hashes of what may differ inside a group, the same
    /// number for equal keys.
    pub fn add(&mut self, name: &'a str, item: T, key: Key, details: Vec<u64>) {
        if let Some(group) = self.index.get(&key.0).and_then(|index| self.groups.get_mut(*index)) {
            group.names.push(name);
            for ((same, first), other) in group.same.iter_mut().zip(&group.details).zip(&details) {
                *same &= first == other;
            }
        } else {
            self.index.insert(key.0, self.groups.len());
            self.groups.push(Group { first: item, names: vec![name], same: vec![true; details.len()], details });
        }
    }
}

impl<T> Group<'_, T> {
    /// The names, folded, safe to show.
    pub fn nodes(&self) -> String {
        safe(&nodeset::fold(&self.names))
    }

    /// ` (as on n1)` when the detail that is shown holds only for the first of several.
    pub fn as_on(&self, detail: usize) -> String {
        match self.names.first() {
            Some(first) if self.same.get(detail) == Some(&false) => format!(" (as on {})", safe(first)),
            _ => String::new(),
        }
    }
}

/// A key to group by, made of pieces that cannot run into each other.
#[derive(Default)]
pub(super) struct Key(String);

impl Key {
    /// Appends a piece.
    pub fn push(&mut self, piece: &str) -> &mut Self {
        self.0.push_str(&piece.len().to_string());
        self.0.push(':');
        self.0.push_str(piece);
        self
    }
}

/// Hash of anything, to tell whether details are equal.
pub(super) fn digest(value: &impl std::hash::Hash) -> u64 {
    use std::hash::{DefaultHasher, Hasher};
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// The text with the node's own name replaced, so that `gpu01's key` and `gpu02's key` read the same.
pub(super) fn without_name(text: &str, node: &str) -> String {
    replace_words(text, |word| word == node)
}

/// The text with the node's own name and every address replaced.
pub(super) fn without_identity(text: &str, node: &str) -> String {
    replace_words(text, |word| word == node || word.parse::<IpAddr>().is_ok() || word.parse::<SocketAddr>().is_ok())
}

fn replace_words(text: &str, replaced: impl Fn(&str) -> bool) -> String {
    let part = |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | ':' | '-');
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|character| !part(character)).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        // A sentence's mark at the end of a name is not part of it.
        let word = run.trim_end_matches(['.', ':', '-']);
        if !word.is_empty() && replaced(word) {
            result.push('\u{0}');
            result.push_str(run.get(word.len()..).unwrap_or_default());
        } else {
            result.push_str(run);
        }
        let next = after.find(part).unwrap_or(after.len());
        let (gap, after) = after.split_at(next);
        result.push_str(gap);
        rest = after;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_name_is_replaced_only_as_a_word() {
        assert_eq!(without_name("n1's key on n1: n10, n1.", "n1"), "\0's key on \0: n10, \0.");
        assert_eq!(without_name("version 10.0.0.7", "n1"), "version 10.0.0.7");
        assert_eq!(without_identity("no answer on 10.0.0.7 port 22", "n1"), "no answer on \0 port 22");
        assert_eq!(without_identity("[fd00::7]:22 and 10.0.0.7:22.", "n1"), "[\0]:22 and \0.");
    }

    proptest::proptest! {
        #[test]
        fn only_the_name_is_replaced(text in "[ -~üß]{0,40}") {
            proptest::prop_assert_eq!(without_name(&text, "no-node-has-this-name-at-all"), text.clone());
            let on = |node: &str| without_name(&format!("{text} {node} {text}"), node);
            proptest::prop_assert_eq!(on("node-with-a-name"), on("node-with-another"));
        }
    }

    #[test]
    fn pieces_of_a_key_do_not_run_together() {
        let (mut a, mut b) = (Key::default(), Key::default());
        a.push("ab").push("c");
        b.push("a").push("bc");
        assert_ne!(a.0, b.0);
    }
}
