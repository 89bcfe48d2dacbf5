//! Layers: what top, groups and a node say about the same thing becomes one.
//!
//! Maps merge, single values and lists replace, the four lists of items grow and the nearest item of a name wins,
//! `~` unsets. Works on trees, so that every value keeps its place.

use std::collections::HashMap;

use super::tables::{self, LISTS};
use super::tree::{Entry, Node, Value};

/// Whether a key of top, group or node takes part in layering.
pub fn is_layered(key: &str) -> bool {
    tables::GROUP.iter().any(|field| field.key == key)
}

/// Lays a further layer over what the earlier ones gave.
pub fn lay(below: &mut Node, above: &Node) {
    let Value::Map(entries) = &mut below.value else { return };
    for entry in above.entries().iter().filter(|entry| is_layered(&entry.key)) {
        let identity = LISTS.iter().find(|(list, _)| *list == entry.key).map(|(_, key)| *key);
        let found = entries.iter_mut().find(|old| old.key == entry.key);
        match (identity, found, &entry.value.value) {
            (Some(key), Some(old), Value::List(items)) => {
                if let Value::List(old) = &mut old.value.value {
                    append(old, items, key);
                } else {
                    old.value = entry.value.clone();
                }
            }
            _ => put(entries, entry),
        }
    }
}

/// Puts one key of the upper layer into the entries of the lower one.
fn put(entries: &mut Vec<Entry>, above: &Entry) {
    if above.value.value == Value::Null {
        entries.retain(|entry| entry.key != above.key);
        return;
    }
    let Some(old) = entries.iter_mut().find(|entry| entry.key == above.key) else {
        let mut value = Node { value: Value::Null, mark: above.value.mark };
        over(&mut value, &above.value);
        entries.push(Entry { key: above.key.clone(), key_mark: above.key_mark, value });
        return;
    };
    old.key_mark = above.key_mark;
    over(&mut old.value, &above.value);
}

/// Lays a value over another: maps merge, all else replaces.
fn over(below: &mut Node, above: &Node) {
    let Value::Map(upper) = &above.value else {
        *below = above.clone();
        return;
    };
    if !matches!(below.value, Value::Map(_)) {
        *below = Node { value: Value::Map(Vec::new()), mark: above.mark };
    }
    let Value::Map(lower) = &mut below.value else { return };
    for entry in upper {
        put(lower, entry);
    }
}

/// A name without `.service`, which units may be written without; nothing else that is named ends so.
pub fn same_unit(name: &str) -> &str {
    name.strip_suffix(".service").filter(|name| !name.contains('/')).unwrap_or(name)
}

/// Appends items; one with the same identity takes the place of the earlier one.
fn append(below: &mut Vec<Node>, above: &[Node], key: &str) {
    let identity = |node: &Node| node.get(key).and_then(Node::text).map(|name| same_unit(name).to_owned());
    let mut at: HashMap<String, usize> =
        below.iter().enumerate().filter_map(|(at, node)| Some((identity(node)?, at))).collect();
    for item in above {
        match identity(item).and_then(|name| at.get(&name).copied()).and_then(|at| below.get_mut(at)) {
            Some(old) => *old = item.clone(),
            None => {
                at.extend(identity(item).map(|name| (name, below.len())));
                below.push(item.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::manifest::tree::parse;

    fn show(node: &Node) -> String {
        match &node.value {
            Value::Null => "~".to_owned(),
            Value::Text(text, _) => text.clone(),
            Value::List(items) => format!("[{}]", items.iter().map(show).collect::<Vec<_>>().join(", ")),
            Value::Map(entries) => {
                let inner: Vec<String> = entries.iter().map(|e| format!("{}: {}", e.key, show(&e.value))).collect();
                format!("{{{}}}", inner.join(", "))
            }
        }
    }

    fn laid(layers: &[&str]) -> String {
        let mut all = Node { value: Value::Map(Vec::new()), mark: Default::default() };
        for layer in layers {
            let mut findings = Vec::new();
            let tree = parse(&Arc::from("t"), layer, &mut findings).unwrap();
            assert!(findings.is_empty(), "{findings:?}");
            lay(&mut all, &tree);
        }
        show(&all)
    }

    #[test]
    fn maps_merge_and_values_and_lists_replace() {
        assert_eq!(
            laid(&["ssh: {user: a, port: 1, kex: [x, y]}", "ssh: {user: b, kex: [z]}"]),
            "{ssh: {user: b, port: 1, kex: [z]}}"
        );
        assert_eq!(laid(&["gpus: [a, b]", "gpus: c"]), "{gpus: c}");
        assert_eq!(laid(&["stack: {cuda: [1, 2]}", "stack: {cuda: {version: 3}}"]), "{stack: {cuda: {version: 3}}}");
    }

    #[test]
    fn items_are_appended_and_the_nearest_wins() {
        assert_eq!(
            laid(&["packages: [{name: a}, {name: b}]", "packages: [{name: c}, {name: a, hold: true}]", "packages: []"]),
            "{packages: [{name: a, hold: true}, {name: b}, {name: c}]}"
        );
        assert_eq!(
            laid(&["services: [{name: a}]", "services: [{name: a.service}]"]),
            "{services: [{name: a.service}]}"
        );
        assert_eq!(laid(&["files: [{path: /a, mode: 1}]", "files: [{path: /a}]"]), "{files: [{path: /a}]}");
    }

    #[test]
    fn nothing_unsets() {
        assert_eq!(laid(&["trust: {user: a}", "trust: ~"]), "{}");
        assert_eq!(laid(&["trust: {user: a}", "trust: ~", "trust: {method: keys}"]), "{trust: {method: keys}}");
        assert_eq!(
            laid(&["base: {limits: {nofile: 1, memlock: 2}}", "base: {limits: {nofile: ~}}"]),
            "{base: {limits: {memlock: 2}}}"
        );
        assert_eq!(laid(&["base: {limits: {nofile: ~}}"]), "{base: {limits: {}}}");
        assert_eq!(laid(&["packages: [{name: a}]", "packages: ~", "packages: [{name: b}]"]), "{packages: [{name: b}]}");
    }

    #[test]
    fn keys_of_the_top_alone_take_no_part() {
        assert_eq!(laid(&["cluster: a\nos: b", "name: c"]), "{os: b}");
    }
}
