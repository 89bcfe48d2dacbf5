//! A small unified diff of two texts, for plans.

/// Most lines a diff shows.
const MOST: usize = 80;
/// Lines around a difference.
const AROUND: usize = 2;
/// Beyond this many cells of the table the middle is shown as removed and added whole.
const CELLS: usize = 1_000_000;

/// Lines starting with `-`, `+` or a space; what is cut is said in the last line. A text that is missing is empty.
pub fn lines(old: &str, new: &str) -> Vec<String> {
    let (a, b): (Vec<&str>, Vec<&str>) = (split(old), split(new));
    let head = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let (a_rest, b_rest) = (a.get(head..).unwrap_or(&[]), b.get(head..).unwrap_or(&[]));
    let tail = a_rest.iter().rev().zip(b_rest.iter().rev()).take_while(|(x, y)| x == y).count();
    let a_middle = a_rest.get(..a_rest.len() - tail).unwrap_or(&[]);
    let b_middle = b_rest.get(..b_rest.len() - tail).unwrap_or(&[]);
    let mut all: Vec<(char, &str)> = a.iter().take(head).map(|line| (' ', *line)).collect();
    all.extend(middle(a_middle, b_middle));
    all.extend(a_rest.iter().skip(a_middle.len()).map(|line| (' ', *line)));
    let near = |at: usize| {
        all.iter().skip(at.saturating_sub(AROUND)).take(2 * AROUND + 1).any(|(sign, _)| *sign != ' ')
            && all.get(at).is_some()
    };
    let mut shown = Vec::new();
    for (at, (sign, line)) in all.iter().enumerate() {
        if !near(at) {
            continue;
        }
        if shown.len() == MOST {
            shown.push(" (more lines differ)".to_owned());
            break;
        }
        let line: String = line.chars().take(300).flat_map(show).collect();
        shown.push(format!("{sign}{line}"));
    }
    if shown.is_empty() && old != new {
        shown.push(" (only the newline at the end differs)".to_owned());
    }
    shown
}

/// Control characters are shown, never obeyed.
fn show(c: char) -> impl Iterator<Item = char> {
    let text = if c.is_control() && c != '\t' { c.escape_default().to_string() } else { c.to_string() };
    text.chars().collect::<Vec<_>>().into_iter()
}

fn split(text: &str) -> Vec<&str> {
    if text.is_empty() { Vec::new() } else { text.strip_suffix('\n').unwrap_or(text).split('\n').collect() }
}

/// The longest common subsequence, by table.
fn middle<'a>(a: &[&'a str], b: &[&'a str]) -> Vec<(char, &'a str)> {
    if a.len().saturating_mul(b.len()) > CELLS {
        return a.iter().map(|line| ('-', *line)).chain(b.iter().map(|line| ('+', *line))).collect();
    }
    let width = b.len() + 1;
    let mut table = vec![0u32; (a.len() + 1) * width];
    let cell = |table: &[u32], i: usize, j: usize| table.get(i * width + j).copied().unwrap_or(0);
    for (i, x) in a.iter().enumerate().rev() {
        for (j, y) in b.iter().enumerate().rev() {
            let value = if x == y {
                cell(&table, i + 1, j + 1) + 1
            } else {
                cell(&table, i + 1, j).max(cell(&table, i, j + 1))
            };
            if let Some(slot) = table.get_mut(i * width + j) {
                *slot = value;
            }
        }
    }
    let (mut i, mut j, mut out) = (0, 0, Vec::new());
    loop {
        match (a.get(i), b.get(j)) {
            (Some(x), Some(y)) if x == y => {
                out.push((' ', *x));
                i += 1;
                j += 1;
            }
            (Some(x), y) if y.is_none() || cell(&table, i + 1, j) >= cell(&table, i, j + 1) => {
                out.push(('-', *x));
                i += 1;
            }
            (_, Some(y)) => {
                out.push(('+', *y));
                j += 1;
            }
            _ => return out,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn shows_what_differs_with_a_little_around() {
        assert_eq!(lines("a\nb\nc\nd\ne\n", "a\nb\nx\nd\ne\n"), [" a", " b", "-c", "+x", " d", " e"]);
        assert_eq!(lines("", "a\n"), ["+a"]);
        assert_eq!(lines("a", "a\n"), [" (only the newline at the end differs)"]);
        assert_eq!(lines("1\n2\n3\n4\n5\n6\n7\n", "1\n2\n3\n4\n5\n6\n"), [" 5", " 6", "-7"]);
        assert_eq!(lines("\x1b[31m", ""), ["-\\u{1b}[31m"]);
    }
}
