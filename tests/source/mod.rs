//! Reads Rust source by its words: enough to see which paths it names.

/// The code without comments, and with texts and characters emptied.
pub fn code(text: &str) -> String {
    let all: Vec<char> = text.chars().collect();
    let mut result = String::new();
    let mut at = 0;
    let is = |at: usize, wanted: &str| wanted.chars().enumerate().all(|(n, c)| all.get(at + n) == Some(&c));
    while at < all.len() {
        let before = at.checked_sub(1).map_or(' ', |before| all[before]);
        if is(at, "//") {
            while at < all.len() && all[at] != '\n' {
                at += 1;
            }
        } else if is(at, "/*") {
            let mut depth = 0;
            loop {
                if is(at, "/*") {
                    depth += 1;
                    at += 2;
                } else if is(at, "*/") {
                    depth -= 1;
                    at += 2;
                } else {
                    at += 1;
                }
                if depth == 0 || at >= all.len() {
                    break;
                }
            }
        } else if let Some(hashes) = raw(&all, at).filter(|_| !word(before)) {
            at += 2 + hashes;
            let end: String = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
            while at < all.len() && !is(at, &end) {
                at += 1;
            }
            at += end.len();
            result.push_str("\"\"");
        } else if all[at] == '"' {
            at += 1;
            while at < all.len() && all[at] != '"' {
                at += if all[at] == '\\' { 2 } else { 1 };
            }
            at += 1;
            result.push_str("\"\"");
        } else if all[at] == '\'' && (is(at + 1, "\\") || is(at + 2, "'")) {
            // A character, not a lifetime.
            at += if all.get(at + 1) == Some(&'\\') { 3 } else { 2 };
            while at < all.len() && all[at] != '\'' {
                at += 1;
            }
            at += 1;
            result.push_str("' '");
        } else {
            result.push(all[at]);
            at += 1;
        }
    }
    result
}

/// The number of hashes when a raw text begins here.
fn raw(all: &[char], at: usize) -> Option<usize> {
    let hashes = all.get(at + 1..)?.iter().take_while(|c| **c == '#').count();
    (all.get(at) == Some(&'r') && all.get(at + 1 + hashes) == Some(&'"')).then_some(hashes)
}

fn word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The code without items marked `#[cfg(test)]`.
pub fn without_tests(code: &str) -> String {
    let mut result = String::new();
    let mut rest = code;
    while let Some((before, marked)) = rest.split_once("#[cfg(test)]") {
        result.push_str(before);
        let mut depth = 0_i32;
        let mut end = marked.len();
        for (at, character) in marked.char_indices() {
            match character {
                '{' | '[' | '(' => depth += 1,
                '}' | ']' | ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 && matches!(character, '}' | ';') {
                end = at + 1;
                break;
            }
        }
        rest = &marked[end..];
    }
    result + rest
}

/// Modules in files of their own that are marked `#[cfg(test)]`.
pub fn tested_away(code: &str) -> Vec<String> {
    code.split("#[cfg(test)]")
        .skip(1)
        .filter_map(|marked| {
            let (head, _) = marked.split_once(';')?;
            let (visible, name) = head.split_once("mod ")?;
            (!visible.contains(['{', '=']) && name.chars().all(word)).then(|| name.to_owned())
        })
        .collect()
}

/// Every path the code names, groups taken apart: `a::{b, c::d}` is `a::b` and `a::c::d`. A single word is
/// a path too, and a macro's name ends with its mark.
pub fn paths(code: &str) -> Vec<Vec<String>> {
    let mut tokens: Vec<String> = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let end = if word(first) {
            let end = rest.find(|c| !word(c)).unwrap_or(rest.len());
            // The mark of a macro belongs to its name.
            if rest[end..].starts_with('!') && !rest[end..].starts_with("!=") { end + 1 } else { end }
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        tokens.push(rest[..end].to_owned());
        rest = rest[end..].trim_start();
    }
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at].starts_with(word) {
            at = path(&tokens, at, &mut Vec::new(), &mut found);
        } else {
            at += 1;
        }
    }
    found
}

/// Reads the path that begins at a token; gives the token after it.
fn path(tokens: &[String], mut at: usize, before: &mut Vec<String>, found: &mut Vec<Vec<String>>) -> usize {
    let outer = before.len();
    let token = |at: usize| tokens.get(at).map_or("", String::as_str);
    loop {
        if token(at).starts_with(word) {
            before.push(token(at).to_owned());
            at += 1;
            if token(at) == "::" {
                at += 1;
                continue;
            }
            found.push(before.clone());
        } else if token(at) == "{" && !before.is_empty() {
            at += 1;
            while at < tokens.len() && token(at) != "}" {
                at = if token(at) == "as" {
                    // The name after it is a new one, no path.
                    at + 2
                } else if token(at).starts_with(word) || token(at) == "{" {
                    path(tokens, at, before, found)
                } else {
                    at + 1
                };
            }
            at += 1;
        } else {
            // `a::*`, `a::<T>`: what stands before counts.
            found.push(before.clone());
        }
        before.truncate(outer);
        return at;
    }
}
