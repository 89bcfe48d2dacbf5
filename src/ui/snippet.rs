//! The line of a file that a finding is about, made safe for a screen.
//!
//! Control characters are shown, never obeyed; passwords written as plain text are covered; endless lines are cut.
//! Knows texts and places, nothing of findings.

use std::ops::Range;

use crate::diag::Place;

/// Bytes kept before and after the spot on a line that is longer.
const AROUND: usize = 300;

/// Lines around a spot, with the spot's range in them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// One or two lines.
    pub text: String,
    /// Number of the first of them.
    pub first_line: usize,
    /// The spot, in bytes of `text`; never empty unless the line is.
    pub spot: Range<usize>,
}

/// Shows control characters and those that turn the direction of text, as escapes.
pub fn shown(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        push(&mut safe, c);
    }
    safe
}

/// Whether a character acts on a terminal without being seen; line breaks are no such characters.
pub fn is_hidden(c: char) -> bool {
    let turns = matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    c != '\n' && (c.is_control() || turns)
}

fn push(safe: &mut String, c: char) {
    match c {
        '\n' => safe.push_str("\\n"),
        '\r' => safe.push_str("\\r"),
        '\t' => safe.push(' '),
        c if is_hidden(c) => safe.extend(c.escape_unicode()),
        c => safe.push(c),
    }
}

/// The line of a place and the one before it; `None` when the place is not in the text.
///
/// With `cover` the spot is a secret, and nothing from there to the end of its line is shown.
pub fn excerpt(text: &str, place: &Place, cover: bool) -> Option<Excerpt> {
    let before = text.get(..place.start)?;
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = line_at(text, line_start)?;
    let mut excerpt = Excerpt { text: String::new(), first_line: place.line as usize, spot: 0..0 };
    if place.line > 1 && line_start > 0 {
        let start = before.get(..line_start - 1)?.rfind('\n').map_or(0, |at| at + 1);
        let previous = line_at(text, start)?;
        excerpt.first_line -= 1;
        let (previous, _) = safe_line(previous, 0..0);
        excerpt.text = format!("{previous}\n");
    }
    let covered: String;
    let (line, end) = if cover {
        covered = format!("{}***", line.get(..place.start.checked_sub(line_start)?)?);
        (covered.as_str(), place.start + 3)
    } else {
        (line, place.end.clamp(place.start, line_start + line.len()))
    };
    let (line, spot) = safe_line(line, place.start - line_start..end - line_start);
    let offset = excerpt.text.len();
    excerpt.text.push_str(&line);
    excerpt.spot = offset + spot.start..offset + spot.end.max(spot.start + usize::from(spot.start < line.len()));
    // A spot of one byte may end inside of a character.
    while !excerpt.text.is_char_boundary(excerpt.spot.end) {
        excerpt.spot.end += 1;
    }
    Some(excerpt)
}

fn line_at(text: &str, start: usize) -> Option<&str> {
    let rest = text.get(start..)?;
    let line = rest.get(..rest.find('\n').unwrap_or(rest.len()))?;
    Some(line.strip_suffix('\r').unwrap_or(line))
}

/// A line made safe, and where its spot went.
fn safe_line(line: &str, spot: Range<usize>) -> (String, Range<usize>) {
    let low = floor(line, spot.start.saturating_sub(AROUND));
    let high = floor(line, spot.start.saturating_add(AROUND));
    let hidden = secrets(line);
    let (mut safe, mut start, mut end) = (String::new(), None, None);
    if low > 0 {
        safe.push('…');
    }
    for (at, c) in line.char_indices().filter(|(at, _)| (low..high).contains(at)) {
        if at >= spot.start {
            start.get_or_insert(safe.len());
        }
        if at >= spot.end {
            end.get_or_insert(safe.len());
        }
        match hidden.iter().find(|range| range.contains(&at)) {
            Some(range) if range.start == at || at == low => safe.push_str("***"),
            Some(_) => {}
            None => push(&mut safe, c),
        }
    }
    let length = safe.len();
    if high < line.len() {
        safe.push('…');
    }
    let start = start.unwrap_or(length);
    (safe, start..end.unwrap_or(length).max(start))
}

fn floor(line: &str, mut at: usize) -> usize {
    at = at.min(line.len());
    while !line.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Where a line has the plain text of a password: what follows `password:` or `passphrase:` and is no reference.
fn secrets(line: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for key in ["password", "passphrase"] {
        for (at, _) in line.match_indices(key) {
            let after = line.get(at + key.len()..).unwrap_or_default();
            let value = after.trim_start_matches(['"', '\'', ' ', '\t']);
            let Some(value) = value.strip_prefix(':') else { continue };
            let value = value.trim_start();
            let start = line.len() - value.len();
            let bare = value.trim_start_matches(['"', '\'']);
            if value.is_empty() || bare.starts_with("${") && bare.trim_end().ends_with(['}', '"', '\'']) {
                continue;
            }
            // All that follows is covered: where a password ends is the user's guess as much as ours.
            found.push(start..line.len());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn place(text: &str, wanted: &str) -> Place {
        let start = text.find(wanted).unwrap();
        let line = text[..start].matches('\n').count() as u32 + 1;
        Place { file: Arc::from("t"), line, column: 1, start, end: start + wanted.len() }
    }

    #[test]
    fn control_characters_are_shown() {
        assert_eq!(shown("a\u{1b}[31mb\u{7}\n\u{202e}"), "a\\u{1b}[31mb\\u{7}\\n\\u{202e}");
        let text = "k: v\u{9b}x WANTED y";
        let excerpt = excerpt(text, &place(text, "WANTED"), false).unwrap();
        assert_eq!(excerpt.text, "k: v\\u{9b}x WANTED y");
        assert_eq!(&excerpt.text[excerpt.spot], "WANTED");
    }

    #[test]
    fn the_line_before_is_shown_too() {
        let text = "one: 1\r\ntwo: 2\r\nthree: ü\r\n";
        let found = excerpt(text, &place(text, "ü"), false).unwrap();
        assert_eq!((found.text.as_str(), found.first_line), ("two: 2\nthree: ü", 2));
        assert_eq!(&found.text[found.spot], "ü");
    }

    #[test]
    fn plain_passwords_are_covered() {
        let text = "ssh: {become_password: hunter2, port: x}";
        let found = excerpt(text, &place(text, "hunter2"), false).unwrap();
        assert_eq!(found.text, "ssh: {become_password: ***");
        let text = "password:\n  hunter2 # x";
        let found = excerpt(text, &place(text, "hunter2"), true).unwrap();
        assert_eq!((found.text.as_str(), found.spot), ("password:\n  ***", 12..15));
        let text = "password: ${env:A}";
        assert_eq!(excerpt(text, &place(text, "env"), false).unwrap().text, text);
    }

    #[test]
    fn long_lines_are_cut_and_odd_places_do_no_harm() {
        let text = format!("{}X{}", "ä".repeat(5000), "b".repeat(5000));
        let found = excerpt(&text, &place(&text, "X"), false).unwrap();
        assert!(found.text.len() < 2000);
        assert_eq!(&found.text[found.spot], "X");
        let mut odd = place(&text, "X");
        odd.start = 1;
        assert_eq!(excerpt(&text, &odd, false), None);
        odd.start = 99999;
        assert_eq!(excerpt(&text, &odd, false), None);
        let end = Place { file: Arc::from("t"), line: 2, column: 1, start: 2, end: 2 };
        assert_eq!(excerpt("a\n", &end, false).unwrap().spot, 2..2);
    }
}
