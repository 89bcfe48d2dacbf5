//! JSON as the program prints it: pretty, ending with a newline, safe on a terminal.

use serde::Serialize;

use super::text::is_hidden;

/// A value as indented JSON, ending with a newline.
///
/// Characters that a terminal would obey are written as `\uXXXX`, which reads back as the same text.
///
/// # Errors
/// When a map of the value has keys that are not text.
pub fn pretty<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<String> {
    Ok(shown(serde_json::to_string_pretty(value)?))
}

/// The same on one line.
///
/// # Errors
/// As [`pretty`].
pub fn compact<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<String> {
    Ok(shown(serde_json::to_string(value)?))
}

fn shown(mut json: String) -> String {
    use std::fmt::Write as _;
    let escape = |character: char| character != '\n' && is_hidden(character);
    if json.contains(escape) {
        let mut safe = String::with_capacity(json.len() + 64);
        for character in json.chars() {
            if escape(character) {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    // Writing to a String cannot fail.
                    let _ = write!(safe, "\\u{unit:04x}");
                }
            } else {
                safe.push(character);
            }
        }
        json = safe;
    }
    json.push('\n');
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_a_terminal_obeys_and_the_same_text_back() {
        let text = "a\u{9b}2J\u{1b}[m\u{202e}\u{e0041}\u{7f}\nü";
        for json in [pretty(&[text]).unwrap(), compact(&[text]).unwrap()] {
            assert!(!json.trim_end().replace("\n", "").contains(char::is_control), "{json:?}");
            assert!(!json.contains('\u{202e}'));
            assert!(json.ends_with("]\n"));
            assert_eq!(serde_json::from_str::<Vec<String>>(&json).unwrap(), [text]);
        }
    }
}
