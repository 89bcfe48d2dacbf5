//! YAML as a tree in which every key and value knows its place.
//!
//! Scalars stay the text that was written, so `12.10` is never the number 12.1. Only the part of YAML that a
//! manifest needs is taken: no tags, no merge keys, one document. This file knows nothing of the manifest's keys,
//! and is the only one that names the YAML library.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use serde_saphyr::granit_parser::{ErrorKind, Event, Marker, Options, Parser, ScalarStyle, ScanError, Span, options};

use super::codes;
use crate::diag::{Finding, Place};

/// The largest manifest that is read, in bytes.
pub const MAX_BYTES: usize = 64 << 20;
/// How deep lists and maps may nest.
const MAX_DEPTH: usize = 64;
/// How many keys a map may have; nodes are a list and do not count.
const MAX_KEYS: usize = 10_000;
/// How many values all aliases together may stand for.
const MAX_ALIASED: usize = 100_000;

/// A spot in the manifest; small, because every value of the tree has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mark {
    line: u32,
    column: u32,
    start: u32,
    end: u32,
}

impl Mark {
    /// The same spot with the file's name.
    pub fn place(self, file: &Arc<str>) -> Place {
        Place {
            file: Arc::clone(file),
            line: self.line,
            column: self.column,
            start: self.start as usize,
            end: self.end as usize,
        }
    }
}

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Its spot.
    pub mark: Mark,
}

/// What a YAML value can be in a manifest.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `~` or nothing.
    Null,
    /// A scalar's text, and whether it was written without quotes.
    Text(String, bool),
    /// A list.
    List(Vec<Node>),
    /// A map in written order.
    Map(Vec<Entry>),
}

/// A key of a map with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub key_mark: Mark,
    /// The value.
    pub value: Node,
}

impl Node {
    /// The value of a key, when this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// A key with its value, when this is a map that has it.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    /// The entries of a map; none when this is something else.
    pub fn entries(&self) -> &[Entry] {
        if let Value::Map(entries) = &self.value { entries } else { &[] }
    }

    /// The text of a scalar.
    pub fn text(&self) -> Option<&str> {
        if let Value::Text(text, _) = &self.value { Some(text) } else { None }
    }

    /// The items of a list, or the value itself when it is no list; nothing for null.
    pub fn items(&self) -> &[Node] {
        match &self.value {
            Value::List(items) => items,
            Value::Null => &[],
            _ => std::slice::from_ref(self),
        }
    }

    /// What this is, for messages.
    pub fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Text(..) => "a single value",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }

    /// Levels of lists and maps; small, because no tree is built that is deeper than the limit.
    fn depth(&self) -> usize {
        match &self.value {
            Value::Null | Value::Text(..) => 0,
            Value::List(items) => 1 + items.iter().map(Node::depth).max().unwrap_or_default(),
            Value::Map(entries) => 1 + entries.iter().map(|entry| entry.value.depth()).max().unwrap_or_default(),
        }
    }

    fn count(&self) -> usize {
        1 + match &self.value {
            Value::Null | Value::Text(..) => 0,
            Value::List(items) => items.iter().map(Node::count).sum(),
            Value::Map(entries) => entries.iter().map(|entry| entry.value.count()).sum(),
        }
    }
}

/// Makes text of a manifest's bytes.
///
/// # Errors
/// A finding when they are too many, or not UTF-8.
pub fn decode<'a>(file: &str, bytes: &'a [u8]) -> Result<&'a str, Finding> {
    let top = Mark { line: 1, column: 1, start: 0, end: 0 }.place(&Arc::from(file));
    if bytes.len() > MAX_BYTES {
        return Err(too_large(top, bytes.len()));
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let text = std::str::from_utf8(good).unwrap_or_default();
        let place = spot(text, text.len(), 0).place(&top.file);
        Finding::input(codes::SYNTAX, "the file is not UTF-8 text", Some(place))
            .because("this byte is no part of a character in UTF-8")
            .fix("save the file as UTF-8")
    })
}

fn too_large(place: Place, bytes: usize) -> Finding {
    Finding::input(codes::TOO_LARGE, "the manifest is too large", Some(place))
        .because(format!("{} MiB, and the limit is {} MiB", bytes >> 20, MAX_BYTES >> 20))
        .fix("write nodes as ranges, gpu[001-500], and large files as source:")
}

/// The mark of `length` bytes that start at byte `start`.
pub fn spot(text: &str, start: usize, length: usize) -> Mark {
    let before = text.get(..start).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let column = before.get(line_start..).unwrap_or_default().chars().count() + 1;
    Mark { line: small(line), column: small(column), start: small(start), end: small(start + length) }
}

fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Reads the text into a tree; `None` when it is not YAML as a manifest uses it.
pub fn parse(file: &Arc<str>, text: &str, findings: &mut Vec<Finding>) -> Option<Node> {
    if text.len() > MAX_BYTES {
        findings.push(too_large(spot(text, 0, 0).place(file), text.len()));
        return None;
    }
    let odd = |c: char| (c.is_control() && !matches!(c, '\n' | '\r' | '\t')) || matches!(c, '\u{fffe}' | '\u{ffff}');
    if let Some((at, odd)) = text.char_indices().find(|(_, c)| odd(*c)) {
        let place = spot(text, at, odd.len_utf8()).place(file);
        let title = format!("control character {} in the manifest", odd.escape_unicode());
        findings.push(
            Finding::input(codes::SYNTAX, title, Some(place))
                .because("YAML allows none of them unescaped")
                .fix("remove it, or write it as an escape in double quotes: \"\\x1b\""),
        );
        return None;
    }
    let mut limits: Options = options! {
        disallow_directives: true,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    limits.set_emit_comments(false);
    let mut builder =
        Builder { file, text, findings, open: Vec::new(), anchors: BTreeMap::new(), aliased: 0, root: None };
    for event in Parser::new_from_str_with_options(text, limits) {
        let go_on = match event {
            Ok((event, span)) => builder.event(event, span),
            Err(error) => builder.syntax(&error),
        };
        go_on?;
    }
    builder.root
}

/// Puts the parser's events together.
struct Builder<'a> {
    file: &'a Arc<str>,
    text: &'a str,
    findings: &'a mut Vec<Finding>,
    open: Vec<Open>,
    anchors: BTreeMap<usize, Node>,
    aliased: usize,
    root: Option<Node>,
}

/// A list or map that has begun and not ended.
struct Open {
    value: Value,
    mark: Mark,
    anchor: usize,
    key: Option<(String, Mark, bool)>,
    seen: HashSet<String>,
}

impl Builder<'_> {
    fn say(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Takes one event; `None` stops the reading.
    fn event(&mut self, event: Event<'_>, span: Span) -> Option<()> {
        let mark = self.mark(&span);
        match event {
            Event::DocumentStart(..) if self.root.is_some() => {
                self.say(
                    Finding::input(codes::SYNTAX, "a second document in the file", Some(mark.place(self.file)))
                        .because("a manifest is one YAML document")
                        .fix("put it into a file of its own, or remove the line ---"),
                );
                return None;
            }
            Event::Scalar(text, style, anchor, tag) => {
                if tag.is_some() {
                    self.tag(&span);
                }
                let plain = style == ScalarStyle::Plain;
                let value = match text.as_ref() {
                    "" | "~" | "null" | "Null" | "NULL" if plain => Value::Null,
                    _ => Value::Text(text.into_owned(), plain),
                };
                self.done(Node { value, mark }, anchor)?;
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.begin(Value::List(Vec::new()), mark, anchor, tag.is_some().then_some(&span))?;
            }
            Event::MappingStart(_, anchor, tag) => {
                self.begin(Value::Map(Vec::new()), mark, anchor, tag.is_some().then_some(&span))?;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Open { value, mark: start, anchor, .. } = self.open.pop()?;
                let mark = Mark { end: mark.end.max(start.start), ..start };
                self.done(Node { value, mark }, anchor)?;
            }
            Event::Alias(id) => return self.alias(id, mark),
            _ => {}
        }
        Some(())
    }

    fn mark(&self, span: &Span) -> Mark {
        let byte = |marker: &Marker| small(marker.byte_offset().unwrap_or(self.text.len()));
        Mark {
            line: small(span.start.line()),
            column: small(span.start.col() + 1),
            start: byte(&span.start),
            end: byte(&span.end),
        }
    }

    fn begin(&mut self, value: Value, mark: Mark, anchor: usize, tagged: Option<&Span>) -> Option<()> {
        if let Some(span) = tagged {
            self.tag(span);
        }
        if self.open.len() >= MAX_DEPTH {
            return self.too_deep(mark);
        }
        self.open.push(Open { value, mark, anchor, key: None, seen: HashSet::new() });
        Some(())
    }

    fn too_deep(&mut self, mark: Mark) -> Option<()> {
        let title = format!("lists and maps nested deeper than {MAX_DEPTH} levels");
        self.say(Finding::input(codes::TOO_LARGE, title, Some(mark.place(self.file))));
        None
    }

    fn tag(&mut self, span: &Span) {
        let token = span.tag_span().unwrap_or(*span);
        let place = self.mark(&token).place(self.file);
        self.say(
            Finding::input(codes::SYNTAX, "a YAML tag", Some(place))
                .because("the type of a value follows from its key, tags are not used")
                .fix("remove the tag"),
        );
    }

    fn alias(&mut self, id: usize, mark: Mark) -> Option<()> {
        let Some(node) = self.anchors.get(&id) else {
            let title = "an alias inside of what it stands for";
            self.say(Finding::input(codes::SYNTAX, title, Some(mark.place(self.file))));
            return None;
        };
        self.aliased += node.count();
        if self.aliased > MAX_ALIASED {
            self.say(
                Finding::input(codes::TOO_LARGE, "the aliases stand for too much", Some(mark.place(self.file)))
                    .because(format!("all aliases together may stand for {MAX_ALIASED} values"))
                    .fix("use a group in place of aliases"),
            );
            return None;
        }
        let node = node.clone();
        // Aliases that nest in each other would else grow a tree too deep for any walk over it.
        if self.open.len() + node.depth() > MAX_DEPTH {
            return self.too_deep(mark);
        }
        self.done(node, 0)
    }

    /// Puts a complete value where it belongs.
    fn done(&mut self, mut node: Node, anchor: usize) -> Option<()> {
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Some(());
        };
        match (&mut open.value, open.key.take()) {
            (Value::List(items), _) => items.push(node),
            (Value::Map(entries), Some((key, key_mark, keep))) => {
                if node.value == Value::Null && node.mark.start == node.mark.end {
                    node.mark = key_mark;
                }
                if keep {
                    entries.push(Entry { key, key_mark, value: node });
                }
            }
            (Value::Map(entries), None) => {
                if entries.len() >= MAX_KEYS {
                    let title = format!("a map with more than {MAX_KEYS} keys");
                    self.say(Finding::input(codes::TOO_LARGE, title, Some(node.mark.place(self.file))));
                    return None;
                }
                self.key(node);
            }
            _ => {}
        }
        Some(())
    }

    /// Takes a complete value as the key of the innermost map.
    fn key(&mut self, node: Node) {
        let place = node.mark.place(self.file);
        let finding = match &node.value {
            Value::Text(text, _) if text == "<<" => Some(
                Finding::input(codes::SYNTAX, "a YAML merge key", Some(place))
                    .because("which of two values would win is not visible in the file")
                    .fix("use a group: its settings merge into its nodes"),
            ),
            Value::Text(text, _) => {
                let Some(open) = self.open.last_mut() else { return };
                if open.seen.insert(text.clone()) {
                    None
                } else {
                    let first = match &open.value {
                        Value::Map(entries) => entries.iter().find(|entry| entry.key == *text),
                        _ => None,
                    };
                    let line = first.map(|entry| format!("first given on line {}", entry.key_mark.line));
                    let mut finding = Finding::input(codes::DUPLICATE, format!("`{text}` is given twice"), Some(place));
                    finding.because.extend(line);
                    Some(finding.fix("keep one of the two"))
                }
            }
            _ => Some(
                Finding::input(codes::WRONG_TYPE, format!("a key that is {}", node.kind()), Some(place))
                    .because("a key is a word")
                    .fix("put quotes around it if text is meant: templates start with a quote, \"{{ node.name }}\""),
            ),
        };
        let keep = finding.is_none();
        if let Some(open) = self.open.last_mut() {
            let text = if let Value::Text(text, _) = node.value { text } else { String::new() };
            open.key = Some((text, node.mark, keep));
        }
        self.findings.extend(finding);
    }

    fn syntax(&mut self, error: &ScanError) -> Option<()> {
        let start = error.marker().byte_offset().unwrap_or(self.text.len()).min(self.text.len());
        let mark = Mark {
            line: small(error.marker().line()),
            column: small(error.marker().col() + 1),
            start: small(start),
            end: small((start + 1).min(self.text.len())),
        };
        if matches!(error.kind(), ErrorKind::RecursionLimitExceeded) {
            return self.too_deep(mark);
        }
        let before = self.text.get(..start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = self.text.get(line_start..).unwrap_or_default();
        let indent = line.split(|c: char| c != ' ' && c != '\t').next().unwrap_or_default();
        let tab = indent.find('\t');
        let mark = tab.map_or(mark, |tab| spot(self.text, line_start + tab, 1));
        let mut finding = Finding::input(codes::SYNTAX, "this is not YAML", Some(mark.place(self.file)))
            .because(error.kind().to_string());
        if tab.is_some() {
            finding = finding.fix("indent with spaces, YAML allows no tabs there");
        }
        self.say(finding);
        None
    }
}
