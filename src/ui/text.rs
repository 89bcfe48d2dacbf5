//! Text from anywhere made fit for a terminal: control characters shown, widths counted, columns aligned.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr;

/// Whether a character would be obeyed rather than seen: controls, and the invisible ones that reorder or
/// hide text.
pub(super) fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// One line of text as it may be shown: every control or hidden character becomes its escape (`\x1b`, `\t`, `\u{202e}`).
///
/// A backslash stays as it is, so that text which another room has already made safe is not escaped twice.
pub fn safe(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\t' => shown.push_str("\\t"),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            hidden if is_hidden(hidden) => {
                let number = u32::from(hidden);
                // Writing to a String cannot fail.
                let _ =
                    if number < 0x100 { write!(shown, "\\x{number:02x}") } else { write!(shown, "\\u{{{number:x}}}") };
            }
            seen => shown.push(seen),
        }
    }
    shown
}

/// A line made safe; of a very long one only the beginning, and how much is missing.
pub(super) fn cut(line: &str, limit: usize) -> String {
    match line.char_indices().nth(limit) {
        None => safe(line),
        Some((end, _)) => {
            let (start, rest) = line.split_at(end);
            format!("{} ... {} more characters", safe(start), rest.chars().count())
        }
    }
}

/// Columns a text takes on a terminal.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// `1 node`, `3 nodes`.
pub(super) fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// A time as people say it: `0.3 s`, `42 s`, `3 min 5 s`, `2 h 4 min`.
pub(super) fn duration(millis: u64) -> String {
    let seconds = millis / 1000;
    match seconds {
        0..10 => format!("{}.{} s", seconds, millis % 1000 / 100),
        10..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// Aligns rows of cells, two spaces between columns; no spaces at a line's end.
///
/// A cell wider than `limit` does not widen its column, it only pushes its own line.
pub(super) fn table(rows: &[Vec<String>], limit: usize) -> Vec<String> {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            let cell = width(cell);
            match widths.get_mut(column) {
                Some(widest) if cell <= limit => *widest = cell.max(*widest),
                Some(_) => {}
                None => widths.push(if cell <= limit { cell } else { 0 }),
            }
        }
    }
    rows.iter()
        .map(|row| {
            let mut line = String::new();
            for (cell, column) in row.iter().zip(&widths) {
                line.push_str(cell);
                let padding = column.saturating_sub(width(cell)) + 2;
                line.extend(std::iter::repeat_n(' ', padding));
            }
            line.truncate(line.trim_end().len());
            line
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn whatever_it_is_nothing_hidden_is_left(text in prop::collection::vec(any::<char>(), 0..60)) {
            let text: String = text.into_iter().collect();
            let shown = safe(&text);
            prop_assert!(!shown.contains(is_hidden));
            prop_assert_eq!(safe(&shown), shown.clone());
            prop_assert_eq!(shown == text, !text.contains(is_hidden));
        }
    }

    #[test]
    fn long_lines_say_how_much_is_missing() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöüß!", 3), "äöü ... 2 more characters");
    }

    #[test]
    fn control_characters_are_shown_and_nothing_else_changes() {
        assert_eq!(safe("\u{1b}[2J\u{9b}31m\u{7}a\tb\r\n"), "\\x1b[2J\\x9b31m\\x07a\\tb\\r\\n");
        assert_eq!(safe("a\u{202e}b\u{200b}"), "a\\u{202e}b\\u{200b}");
        assert_eq!(safe("Grüße, 世界 \\x1b"), "Grüße, 世界 \\x1b");
    }

    #[test]
    fn table_counts_columns_not_bytes() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let lines = table(&[row(["世界", "x", ""]), row(["abc", "y", "z"]), row(["a-long-name", "w", "v"])], 6);
        assert_eq!(lines, ["世界  x", "abc   y  z", "a-long-name  w  v"]);
    }

    #[test]
    fn durations_read_naturally() {
        let shown: Vec<String> = [0, 2345, 42_900, 185_000, 7_440_000].into_iter().map(duration).collect();
        assert_eq!(shown, ["0.0 s", "2.3 s", "42 s", "3 min 5 s", "2 h 4 min"]);
    }
}
