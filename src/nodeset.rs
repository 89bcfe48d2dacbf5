//! Nodesets: `gpu[01-16],@group,!gpu07`, and the folding of names back into them.
//!
//! The operators work from left to right as in ClusterShell: `,` adds, `!` takes away, `&` keeps what is in both,
//! `^` keeps what is in one of the two. Knows names and groups, nothing of manifests or machines.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use indexmap::IndexMap;

use crate::diag::Finding;

/// The most names that one expression may stand for.
pub const MAX_NAMES: usize = 100_000;

/// Code of a nodeset that cannot be read; the same as of any other bad value.
const BAD: &str = "P0006";
/// Code of a name that does not exist; the same as of any other reference.
const NO_SUCH: &str = "P0005";

/// An expression that selects nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nodeset {
    terms: Vec<(Operator, Term)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Add,
    Without,
    Both,
    Either,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Term {
    All,
    Group(String),
    Names(Vec<String>),
    Like(String),
}

impl Nodeset {
    /// Reads an expression; `@*` and `*` are all nodes, a leading `!` means all but these.
    ///
    /// # Errors
    /// A finding that says what is wrong with it.
    pub fn parse(text: &str) -> Result<Nodeset, Finding> {
        let mut terms = Vec::new();
        let mut operator = None;
        let mut rest = text;
        loop {
            rest = rest.trim_start();
            let Some(first) = rest.chars().next() else { break };
            let symbol = match first {
                ',' => Some(Operator::Add),
                '!' => Some(Operator::Without),
                '&' => Some(Operator::Both),
                '^' => Some(Operator::Either),
                _ => None,
            };
            if let Some(symbol) = symbol {
                operator = match (operator, symbol, terms.is_empty()) {
                    // A comma before another operator is how people write it: `gpu[1-4],!gpu2`.
                    (None | Some(Operator::Add), Operator::Without, true) => {
                        terms.push((Operator::Add, Term::All));
                        Some(symbol)
                    }
                    (None, _, false)
                    | (Some(Operator::Add), Operator::Without | Operator::Both | Operator::Either, false) => {
                        Some(symbol)
                    }
                    _ => return Err(bad(text, &format!("nothing stands before {first}"))),
                };
                rest = rest.get(first.len_utf8()..).unwrap_or_default();
                continue;
            }
            let end = term_end(rest);
            let (term, after) = rest.split_at(end);
            terms.push((operator.take().unwrap_or(Operator::Add), Term::parse(term.trim_end())?));
            rest = after;
        }
        if operator.is_some() || terms.is_empty() {
            return Err(bad(text, "it ends where a name should be"));
        }
        Ok(Nodeset { terms })
    }

    /// The selected names, in the order of `names`.
    ///
    /// # Errors
    /// A finding when a name or group does not exist, with the nearest one that does.
    pub fn select(&self, names: &[String], groups: &IndexMap<String, Vec<String>>) -> Result<Vec<String>, Finding> {
        let known: HashSet<&str> = names.iter().map(String::as_str).collect();
        let mut chosen: HashSet<&str> = HashSet::new();
        for (operator, term) in &self.terms {
            let these = term.select(names, &known, groups)?;
            match operator {
                Operator::Add => chosen.extend(these),
                Operator::Without => chosen.retain(|name| !these.contains(name)),
                Operator::Both => chosen.retain(|name| these.contains(name)),
                Operator::Either => chosen = chosen.symmetric_difference(&these).copied().collect(),
            }
        }
        Ok(names.iter().filter(|name| chosen.contains(name.as_str())).cloned().collect())
    }
}

impl Term {
    fn parse(text: &str) -> Result<Term, Finding> {
        if let Some(group) = text.strip_prefix('@') {
            return match group {
                "*" => Ok(Term::All),
                "" => Err(bad(text, "a name must follow @")),
                _ => Ok(Term::Group(group.to_owned())),
            };
        }
        if text == "*" {
            return Ok(Term::All);
        }
        if text.contains(['*', '?']) && !text.contains('[') {
            return Ok(Term::Like(text.to_owned()));
        }
        let names = expand(text).map_err(|why| bad(text, &why))?;
        Ok(Term::Names(names))
    }

    fn select<'a>(
        &'a self,
        names: &'a [String],
        known: &HashSet<&'a str>,
        groups: &'a IndexMap<String, Vec<String>>,
    ) -> Result<HashSet<&'a str>, Finding> {
        match self {
            Term::All => Ok(names.iter().map(String::as_str).collect()),
            Term::Group(group) => match groups.get(group) {
                Some(members) => Ok(members.iter().map(String::as_str).collect()),
                None => Err(no_such(&format!("no group `{group}`"), group, groups.keys().map(String::as_str))),
            },
            Term::Like(pattern) => {
                let found: HashSet<&str> =
                    names.iter().map(String::as_str).filter(|name| like(pattern, name)).collect();
                if found.is_empty() {
                    return Err(Finding::input(NO_SUCH, format!("no node is named like `{pattern}`"), None));
                }
                Ok(found)
            }
            Term::Names(wanted) => {
                let missing: Vec<&str> =
                    wanted.iter().map(String::as_str).filter(|name| !known.contains(name)).collect();
                match missing.first() {
                    Some(first) => {
                        let title = format!("no node `{}`", fold(&missing));
                        Err(no_such(&title, first, names.iter().map(String::as_str)))
                    }
                    None => Ok(wanted.iter().map(String::as_str).collect()),
                }
            }
        }
    }
}

/// Where the term at the start of the text ends: at an operator outside of brackets.
fn term_end(text: &str) -> usize {
    let mut inside = false;
    for (at, c) in text.char_indices() {
        match c {
            '[' => inside = true,
            ']' => inside = false,
            ',' | '!' | '&' | '^' if !inside => return at,
            c if c.is_whitespace() && !inside => return at,
            _ => {}
        }
    }
    text.len()
}

fn bad(text: &str, why: &str) -> Finding {
    Finding::input(BAD, format!("`{text}` is no nodeset"), None)
        .because(why.to_owned())
        .fix("write it like gpu[01-16],@group,!gpu07")
}

fn no_such<'a>(title: &str, wanted: &str, known: impl Iterator<Item = &'a str>) -> Finding {
    let finding = Finding::input(NO_SUCH, title, None);
    match nearest(wanted, known) {
        Some(near) => finding.fix(format!("did you mean `{near}`?")),
        None => finding,
    }
}

/// The known name that looks most like the one written, if any is near enough to have been meant.
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Names far longer than any known one cost time and are never near.
    if written.len() > 200 {
        return None;
    }
    let written = written.to_lowercase();
    let limit = (written.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&written, &name.to_lowercase()), name))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Whether a name fits a pattern of `*` and `?`.
fn like(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let mut states: BTreeSet<usize> = BTreeSet::from([0]);
    let spread = |states: &mut BTreeSet<usize>| {
        for at in 0..pattern.len() {
            if states.contains(&at) && pattern.get(at) == Some(&'*') {
                states.insert(at + 1);
            }
        }
    };
    spread(&mut states);
    for c in name.chars() {
        let mut next = BTreeSet::new();
        for at in states {
            match pattern.get(at) {
                Some('*') => drop(next.insert(at)),
                Some(p) if *p == '?' || *p == c => drop(next.insert(at + 1)),
                _ => {}
            }
        }
        spread(&mut next);
        states = next;
    }
    states.contains(&pattern.len())
}

/// The names a text with ranges stands for, in written order: `gpu[01-03,7]`, `r[1-2]n[1-4]`, `n[0-8/2]`.
///
/// # Errors
/// What is wrong with it, as one sentence.
pub fn expand(text: &str) -> Result<Vec<String>, String> {
    let mut names = vec![String::new()];
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        let Some((inside, after)) = after.split_once(']') else { return Err("a ] is missing".to_owned()) };
        if before.contains(']') {
            return Err("a [ is missing".to_owned());
        }
        let numbers = numbers(inside)?;
        if names.len().saturating_mul(numbers.len()) > MAX_NAMES {
            return Err(format!("it stands for more than {MAX_NAMES} names"));
        }
        names =
            names.iter().flat_map(|name| numbers.iter().map(move |number| format!("{name}{before}{number}"))).collect();
        rest = after;
    }
    if rest.contains(']') {
        return Err("a [ is missing".to_owned());
    }
    for name in &mut names {
        name.push_str(rest);
    }
    Ok(names)
}

/// The numbers of a bracket, padded as written.
fn numbers(inside: &str) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    for part in inside.split(',').map(str::trim) {
        let (range, step) = part.split_once('/').unwrap_or((part, "1"));
        let (low, high) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (number(low)?, number(high)?);
        let step = number(step)?;
        if first > last {
            return Err(format!("the range {part} ends before it begins"));
        }
        if step == 0 {
            return Err(format!("the range {part} has the step 0"));
        }
        if (last - first) / step >= MAX_NAMES as u64 || all.len() > MAX_NAMES {
            return Err(format!("the range {part} is longer than {MAX_NAMES}"));
        }
        let width = if low.starts_with('0') { low.len() } else { 1 };
        let mut value = first;
        while value <= last {
            all.push(format!("{value:0width$}"));
            value += step;
        }
    }
    Ok(all)
}

fn number(text: &str) -> Result<u64, String> {
    if text.is_empty() || text.len() > 18 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("`{text}` is no number of a range"));
    }
    text.parse().map_err(|_| format!("`{text}` is no number of a range"))
}

/// Numbers of names that are else the same: value, number of digits, digits.
type Numbers<'a> = BTreeSet<(u64, usize, &'a str)>;

/// Writes names as short as possible: `gpu[01-16],n1`. Sorted, each name once.
pub fn fold<S: AsRef<str>>(names: &[S]) -> String {
    let mut families: BTreeMap<(&str, &str), Numbers<'_>> = BTreeMap::new();
    let mut single: BTreeSet<&str> = BTreeSet::new();
    for name in names {
        match cut(name.as_ref()) {
            Some((before, digits, value, after)) => {
                families.entry((before, after)).or_default().insert((value, digits.len(), digits));
            }
            None => drop(single.insert(name.as_ref())),
        }
    }
    let mut written: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for name in single {
        written.entry(name).or_default().push(name.to_owned());
    }
    for ((before, after), numbers) in families {
        let digits: Vec<&str> = numbers.iter().map(|(_, _, digits)| *digits).collect();
        let runs = runs(&digits);
        let text = match (runs.as_slice(), digits.as_slice()) {
            (_, [only]) => format!("{before}{only}{after}"),
            _ => format!("{before}[{}]{after}", runs.join(",")),
        };
        written.entry(before).or_default().push(text);
    }
    written.into_values().flatten().collect::<Vec<_>>().join(",")
}

/// Cuts a name at its last number: before, digits, value, after.
fn cut(name: &str) -> Option<(&str, &str, u64, &str)> {
    let end = name.rfind(|c: char| c.is_ascii_digit())? + 1;
    let head = name.get(..end)?;
    let start = head
        .rfind(|c: char| !c.is_ascii_digit())
        .map_or(0, |at| at + head.get(at..).and_then(|tail| tail.chars().next()).map_or(1, char::len_utf8));
    let digits = head.get(start..)?;
    let value = number(digits).ok()?;
    Some((name.get(..start)?, digits, value, name.get(end..)?))
}

/// Joins neighbours among sorted numbers: 01, 02, 03, 7 is `01-03`, `7`.
fn runs(digits: &[&str]) -> Vec<String> {
    let mut runs: Vec<(&str, &str)> = Vec::new();
    for next in digits {
        if let Some((low, high)) = runs.last_mut() {
            let width = if low.starts_with('0') { low.len() } else { 1 };
            let value = number(high).unwrap_or_default() + 1;
            if *next == format!("{value:0width$}") {
                *high = next;
                continue;
            }
        }
        runs.push((next, next));
    }
    runs.into_iter().map(|(low, high)| if low == high { low.to_owned() } else { format!("{low}-{high}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn select(text: &str) -> Result<String, Finding> {
        let names: Vec<String> = expand("gpu[01-16]").unwrap().into_iter().chain(["n1".to_owned()]).collect();
        let groups = IndexMap::from([("old".to_owned(), expand("gpu[01-04]").unwrap())]);
        Ok(fold(&Nodeset::parse(text)?.select(&names, &groups)?))
    }

    #[test]
    fn operators_work_from_left_to_right() {
        for (text, wanted) in [
            ("gpu[01-16],!gpu07", "gpu[01-06,08-16]"),
            ("gpu[01-16]!gpu07", "gpu[01-06,08-16]"),
            ("@old", "gpu[01-04]"),
            ("@old,n1", "gpu[01-04],n1"),
            ("@*!@old", "gpu[05-16],n1"),
            ("!@old", "gpu[05-16],n1"),
            ("gpu[01-08]&@old", "gpu[01-04]"),
            ("gpu[03-06]^@old", "gpu[01-02,05-06]"),
            ("@old,!gpu01,gpu01", "gpu[01-04]"),
            ("gpu0*", "gpu[01-09]"),
            ("gpu?5, n1", "gpu[05,15],n1"),
            ("gpu[01-16/5]", "gpu[01,06,11,16]"),
            ("n1", "n1"),
        ] {
            assert_eq!(select(text).unwrap(), wanted, "{text}");
        }
    }

    #[test]
    fn what_does_not_exist_is_named_with_its_nearest() {
        let finding = select("gpu[15-18]").unwrap_err();
        assert_eq!(finding.title, "no node `gpu[17-18]`");
        assert_eq!(select("@odl").unwrap_err().fix, ["did you mean `old`?"]);
        assert_eq!(select("gpu1").unwrap_err().code, "P0005");
        assert!(select("x*").is_err());
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            ",",
            "a,",
            ",a",
            "a!",
            "@",
            "a[",
            "a]",
            "a[]",
            "a[1-]",
            "a[3-1]",
            "a[x]",
            "a[1-3/0]",
            "a,,b",
            "a[0-999999]",
        ] {
            assert_eq!(Nodeset::parse(text).unwrap_err().code, "P0006", "{text}");
        }
    }

    #[test]
    fn padding_is_kept() {
        assert_eq!(expand("n[08-11]").unwrap(), ["n08", "n09", "n10", "n11"]);
        assert_eq!(expand("n[8-10]").unwrap(), ["n8", "n9", "n10"]);
        assert_eq!(expand("r[1-2]n[1-2]x").unwrap(), ["r1n1x", "r1n2x", "r2n1x", "r2n2x"]);
        assert_eq!(fold(&["n1", "n01", "n2", "n02"]), "n[1,01,2,02]");
        assert_eq!(fold(&["n098", "n099", "n100", "n9", "n10"]), "n[9-10,098-100]");
        assert_eq!(fold::<&str>(&[]), "");
    }

    proptest! {
        #[test]
        fn fold_then_expand_is_the_identity(names in prop::collection::btree_set("[a-c]{0,2}[0-9]{0,3}[.-]?[0-9]{1,2}[x]?", 1..40)) {
            let names: Vec<String> = names.into_iter().collect();
            let set = Nodeset::parse(&fold(&names)).unwrap();
            let back = set.select(&names, &IndexMap::new()).unwrap();
            prop_assert_eq!(&back, &names);
            let mut expanded: Vec<String> = Vec::new();
            for (_, term) in &set.terms {
                let Term::Names(some) = term else { panic!("{term:?}") };
                expanded.extend(some.iter().cloned());
            }
            expanded.sort();
            prop_assert_eq!(&expanded, &names);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[a-c0-9\\[\\],!&^@*?/ -]{0,30}|.{0,20}") {
            if let Ok(set) = Nodeset::parse(&text) {
                let _ = set.select(&["a1".to_owned()], &IndexMap::new());
            }
        }
    }
}
