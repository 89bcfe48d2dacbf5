//! Holds a tree against the tables of keys and collects all that is wrong with it.
//!
//! Short forms become their maps here, so that later layers see one shape only. What must be judged across
//! layers (a trust without user, a group that does not exist) is not judged here.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::codes;
use super::form;
use super::layer::same_unit;
use super::tables::{self, Field, Form, Shape};
use super::tree::{Entry, Mark, Node, Value};
use crate::diag::{Finding, Place};
use crate::nodeset::{MAX_NAMES, expand, nearest};
use crate::secret::{Part, Reference, scan};

/// Collects findings and secrets while trees are checked.
#[derive(Debug)]
pub struct Decoder {
    file: Arc<str>,
    /// Names that ranges stood for so far.
    expanded: usize,
    /// All that was found wrong.
    pub findings: Vec<Finding>,
    /// Every secret referred to, with the place of its first mention.
    pub secrets: BTreeMap<Reference, Place>,
}

impl Decoder {
    /// Starts with what is already known to be wrong.
    pub fn new(file: &Arc<str>, findings: Vec<Finding>) -> Self {
        Decoder { file: Arc::clone(file), expanded: 0, findings, secrets: BTreeMap::new() }
    }

    /// Records an error and gives it back for reasons and fixes.
    pub fn error(&mut self, code: &str, title: impl Into<String>, mark: Mark) -> &mut Finding {
        let place = mark.place(&self.file);
        self.findings.push(Finding::input(code, title, Some(place)));
        let last = self.findings.len() - 1;
        #[expect(clippy::indexing_slicing, reason = "the finding was pushed two lines above")]
        &mut self.findings[last]
    }

    /// Checks the whole manifest.
    pub fn top(&mut self, root: &mut Node) {
        if !matches!(root.value, Value::Map(_)) {
            let title = format!("the manifest is {}", root.kind());
            let finding = self.error(codes::WRONG_TYPE, title, root.mark);
            finding.because.push("expected a map that starts with version: 1".to_owned());
            return;
        }
        self.map(root, tables::TOP, "the manifest", false);
        for (_, node) in layers(root) {
            self.lists(node);
        }
    }

    /// Checks a value. `item` is true inside of lists, where `~` can unset nothing.
    fn value(&mut self, node: &mut Node, shape: &Shape, name: &str, item: bool) {
        match (shape, &mut node.value) {
            (_, Value::Null) => {
                if item {
                    let finding = self.error(codes::WRONG_TYPE, format!("`{name}` has no value"), node.mark);
                    finding.because.push(format!("expected {}", describe(shape)));
                }
            }
            (Shape::Switch, Value::Text(text, true)) if matches!(text.as_str(), "true" | "false") => {}
            (Shape::Switch, Value::Text(text, _)) => {
                let fix = match text.to_ascii_lowercase().as_str() {
                    "yes" | "on" | "true" | "1" => Some("write true"),
                    "no" | "off" | "false" | "0" => Some("write false"),
                    _ => None,
                };
                let finding = self.error(codes::WRONG_TYPE, format!("`{name}` is neither true nor false"), node.mark);
                finding.because.push("expected true or false, without quotes".to_owned());
                finding.fix.extend(fix.map(str::to_owned));
            }
            (Shape::Choice(words), Value::Text(text, _)) => {
                if !words.contains(&text.as_str()) {
                    let near = nearest(text, words.iter().copied());
                    let title = format!("`{text}` is no value of `{name}`");
                    let finding = self.error(codes::BAD_VALUE, title, node.mark);
                    finding.because.push(format!("expected {}", describe(shape)));
                    finding.fix.extend(near.map(|near| format!("did you mean `{near}`?")));
                }
            }
            (Shape::Text(wanted), Value::Text(text, _)) => {
                self.text(text, *wanted, name, node.mark);
            }
            (Shape::List(shape), Value::List(items)) => {
                for child in items {
                    self.value(child, shape, name, true);
                }
            }
            (Shape::OneOrMany(shape), Value::List(items)) => {
                for child in items {
                    self.value(child, shape, name, true);
                }
            }
            (Shape::OneOrMany(shape), _) => self.value(node, shape, name, item),
            (Shape::Map(fields) | Shape::ShortOrMap(fields), Value::Map(_)) => self.map(node, fields, name, item),
            (Shape::ShortOrMap(fields), Value::Text(..)) => {
                let Some(first) = fields.first() else { return };
                self.value(node, &first.shape, name, item);
                let value = Node { value: std::mem::replace(&mut node.value, Value::Null), mark: node.mark };
                node.value = Value::Map(vec![Entry { key: first.key.to_owned(), key_mark: node.mark, value }]);
            }
            (Shape::Free(form, shape), Value::Map(entries)) => {
                for entry in entries {
                    self.text(&entry.key, *form, name, entry.key_mark);
                    self.value(&mut entry.value, shape, &entry.key, item);
                }
            }
            _ => {
                let title = format!("`{name}` is {}", node.kind());
                let finding = self.error(codes::WRONG_TYPE, title, node.mark);
                finding.because.push(format!("expected {}", describe(shape)));
            }
        }
    }

    fn map(&mut self, node: &mut Node, fields: &[Field], name: &str, item: bool) {
        let mark = node.mark;
        let Value::Map(entries) = &mut node.value else { return };
        // An entry of `nodes:` is a layer, in which `~` unsets; items of other lists are whole things of their own.
        let item_inside = item && !fields.iter().any(|field| field.key == "packages");
        for entry in &mut *entries {
            if let Some(field) = fields.iter().find(|field| field.key == entry.key) {
                self.value(&mut entry.value, &field.shape, field.key, item_inside);
            } else {
                let known: Vec<&str> = fields.iter().map(|field| field.key).collect();
                let near = nearest(&entry.key, known.iter().copied());
                let elsewhere = tables::TOP.iter().any(|field| field.key == entry.key);
                let finding =
                    self.error(codes::UNKNOWN_KEY, format!("unknown key `{}` in {name}", entry.key), entry.key_mark);
                finding.because.push(format!("known here: {}", known.join(", ")));
                match near {
                    Some(near) => finding.fix.push(format!("did you mean `{near}`?")),
                    None if elsewhere => finding.fix.push(format!("`{}` stands at the top of the manifest", entry.key)),
                    None => {}
                }
            }
        }
        for field in fields.iter().filter(|field| field.needed) {
            let found = entries.iter().find(|entry| entry.key == field.key);
            let empty = found.is_some_and(|entry| entry.value.value == Value::Null && !item_inside);
            if found.is_none() || empty {
                let at = found.map_or(mark, |entry| entry.key_mark);
                let finding = self.error(codes::MISSING, format!("`{}` is missing in {name}", field.key), at);
                finding.because.push(field.about.to_owned());
                finding.fix.push(format!("add {}: {}", field.key, example(field.key)));
            }
        }
    }

    fn text(&mut self, text: &str, wanted: Form, name: &str, mark: Mark) {
        let (parts, malformed) = scan(text);
        for bad in &malformed {
            let title = format!("`{}` is no reference to a secret", bad.written);
            self.error(codes::BAD_SECRET, title, mark).because.push(bad.why.to_owned());
        }
        let references: Vec<&Reference> =
            parts.iter().filter_map(|part| if let Part::Secret(it) = part { Some(it) } else { None }).collect();
        if wanted == Form::Secret && malformed.is_empty() && (references.is_empty() || references.len() != parts.len())
        {
            let finding = self.error(codes::PLAIN_SECRET, format!("`{name}` is written as plain text"), mark);
            finding.because.push("a secret in the manifest ends up in backups and histories".to_owned());
            finding.fix.push("write ${env:NAME}, ${file:PATH} or ${command:...}".to_owned());
            return;
        }
        if matches!(wanted, Form::Secret | Form::Content) {
            for reference in references {
                let place = mark.place(&self.file);
                self.secrets.entry(reference.clone()).or_insert(place);
            }
            return;
        }
        if !references.is_empty() {
            let finding = self.error(codes::BAD_SECRET, format!("no secret may stand in `{name}`"), mark);
            finding.because.push(
                "secrets are for password, passphrase, become_password, content of files, and commands".to_owned(),
            );
        } else if self.too_many(text, wanted) {
            // So many names are refused when the machines are made; looking at each would take for ever.
        } else if malformed.is_empty()
            && let Err(wrong) = form::check(wanted, text)
        {
            let finding = self.error(codes::BAD_VALUE, format!("`{text}` is no value of `{name}`"), mark);
            finding.because.push(wrong.expected);
            finding.fix.extend(wrong.fix);
        }
    }

    fn too_many(&mut self, text: &str, wanted: Form) -> bool {
        if !matches!(wanted, Form::NodeName | Form::Address) || !text.contains('[') {
            return false;
        }
        if self.expanded > 4 * MAX_NAMES {
            return true;
        }
        self.expanded += expand(text).map_or(0, |names| names.len());
        false
    }

    /// Duplicate items, and keys of files that exclude each other.
    fn lists(&mut self, layer: &Node) {
        for (list, key) in tables::LISTS {
            let Some(node) = layer.get(list) else { continue };
            let mut seen: HashMap<&str, Mark> = HashMap::new();
            let Value::List(items) = &node.value else { continue };
            for item in items {
                let Some(value) = item.get(key) else { continue };
                let Some(text) = value.text() else { continue };
                let identity = same_unit(text);
                if let Some(first) = seen.get(identity) {
                    let first = first.place(&self.file).line;
                    let finding =
                        self.error(codes::DUPLICATE, format!("`{text}` is given twice in `{list}`"), value.mark);
                    finding.because.push(format!("first given on line {first}"));
                    finding.fix.push("keep one of the two".to_owned());
                } else {
                    seen.insert(identity, value.mark);
                }
                if list == "files" {
                    self.file_entry(item);
                }
            }
        }
    }

    fn file_entry(&mut self, item: &Node) {
        let state = item.get("state").and_then(Node::text).unwrap_or("present");
        let given: Vec<&Entry> = ["content", "source", "template"].iter().filter_map(|key| item.entry(key)).collect();
        let mut clash = |entry: &Entry, other: &str| {
            let title = format!("`{}` and `{other}` exclude each other", entry.key);
            self.error(codes::CONFLICT, title, entry.key_mark).fix.push(format!("keep `{}` or `{other}`", entry.key));
        };
        if let [first, second, ..] = given.as_slice() {
            clash(second, &first.key);
        }
        if let (Some(first), "absent" | "directory" | "link") = (given.first(), state) {
            clash(first, &format!("state: {state}"));
        }
        if let (Some(target), false) = (item.entry("target"), state == "link") {
            clash(target, &format!("state: {state}"));
        }
        if let (Some(mode), "link") = (item.entry("mode"), state) {
            clash(mode, "state: link");
        }
        if state == "link" && item.get("target").is_none() {
            let at = item.get("state").map_or(item.mark, |node| node.mark);
            let finding = self.error(codes::MISSING, "`target` is missing for a link", at);
            finding.fix.push("add target: and what the link points to".to_owned());
        }
    }
}

/// Every layer of a manifest: the top, each group, each entry of `nodes:`; with the name of its group.
pub fn layers(root: &Node) -> impl Iterator<Item = (Option<&str>, &Node)> {
    let groups = root.get("groups").map(Node::entries).unwrap_or_default();
    let nodes = match root.get("nodes").map(|node| &node.value) {
        Some(Value::List(nodes)) => nodes.as_slice(),
        _ => &[],
    };
    std::iter::once((None, root))
        .chain(groups.iter().map(|entry| (Some(entry.key.as_str()), &entry.value)))
        .chain(nodes.iter().map(|node| (None, node)))
}

/// What is expected, in words.
fn describe(shape: &Shape) -> String {
    let keys = |fields: &[Field]| {
        let keys: Vec<&str> = fields.iter().map(|field| field.key).take(4).collect();
        format!("a map like {{{}: ...}}", keys.join(": ..., "))
    };
    match shape {
        Shape::Switch => "true or false".to_owned(),
        Shape::Text(_) => "a single value".to_owned(),
        Shape::Choice(words) => match words.split_last() {
            Some((last, [])) => (*last).to_owned(),
            Some((last, before)) => format!("{} or {last}", before.join(", ")),
            None => String::new(),
        },
        Shape::List(_) => "a list".to_owned(),
        Shape::OneOrMany(inner) => format!("{}, or a list of such", describe(inner)),
        Shape::Map(fields) => keys(fields),
        Shape::ShortOrMap(fields) => format!("a single value, or {}", keys(fields)),
        Shape::Free(..) => "a map".to_owned(),
    }
}

fn example(key: &str) -> &'static str {
    match key {
        "version" => "1",
        "path" => "/etc/motd",
        "code" => "P0102",
        "check" | "apply" => "\"...\"",
        "nodes" => "[{name: n1}]",
        "because" => "and the reason",
        _ => "and a name",
    }
}
