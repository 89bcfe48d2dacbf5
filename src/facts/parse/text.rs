//! Small pieces of text as nodes print them, checked for form and length.

/// Most entries taken of any list.
pub(super) const MOST: usize = 4096;

/// Printable ASCII without blanks, at most 255 bytes.
pub(super) fn word(text: &str) -> Option<String> {
    let fine = !text.is_empty() && text.len() <= 255 && text.bytes().all(|byte| byte.is_ascii_graphic());
    fine.then(|| text.to_owned())
}

/// A name: letters, digits and `._+:@/-`, beginning with a letter or digit.
pub(super) fn name(text: &str) -> Option<String> {
    let first = text.bytes().next()?;
    let fine = first.is_ascii_alphanumeric()
        && text.len() <= 255
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._+:@/-".contains(&byte));
    fine.then(|| text.to_owned())
}

/// An absolute path of printable ASCII.
pub(super) fn path(text: &str) -> Option<String> {
    let fine =
        text.starts_with('/') && text.len() <= 1024 && text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    fine.then(|| text.to_owned())
}

/// Words of a product: letters, digits, blanks and `-./()_+`, blanks folded.
pub(super) fn title(text: &str) -> Option<String> {
    let folded = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let fine = !folded.is_empty()
        && folded.len() <= 100
        && folded.bytes().all(|byte| byte.is_ascii_alphanumeric() || b" -./()_+".contains(&byte));
    fine.then_some(folded)
}

/// A version: begins with a digit, then letters, digits and `.+~_-`, at most 64 bytes.
pub(super) fn version(text: &str) -> Option<String> {
    let fine = text.starts_with(|first: char| first.is_ascii_digit())
        && text.len() <= 64
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".+~_-".contains(&byte));
    fine.then(|| text.to_owned())
}

/// Only numbers and dots: `550.54.15`.
pub(super) fn numbers(text: &str) -> Option<String> {
    version(text)
        .filter(|text| text.split('.').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit())))
}

/// What the makers call a package's version: no epoch, no revision, only the leading numbers.
pub(super) fn upstream(package: &str) -> Option<String> {
    let after = package.split_once(':').map_or(package, |(_, after)| after);
    let end = after.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(after.len());
    numbers(after.get(..end)?.trim_end_matches('.'))
}

/// The first `count` numbers of a version; fewer when it has fewer.
pub(super) fn leading(version: &str, count: usize) -> String {
    version.split('.').take(count).collect::<Vec<_>>().join(".")
}

/// Key to sort versions of numbers and dots by.
pub(super) fn order(version: &str) -> Vec<u64> {
    version.split(['.', '-']).map(|part| part.parse().unwrap_or(0)).collect()
}

/// Hexadecimal digits only, exactly so many.
pub(super) fn hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Groups of hexadecimal digits, as a UUID (`-`) or GUID (`:`) has, in lower case.
pub(super) fn groups(text: &str, separator: char, lengths: &[usize]) -> Option<String> {
    let parts: Vec<&str> = text.split(separator).collect();
    let fine = parts.len() == lengths.len() && parts.iter().zip(lengths).all(|(part, length)| hex(part, *length));
    fine.then(|| text.to_ascii_lowercase())
}

/// A URL without user, password, query and fragment, where tokens hide.
pub(super) fn url(text: &str) -> Option<String> {
    let text = text.split(['?', '#']).next()?;
    let (scheme, rest) = text.split_once(':')?;
    let rest = match rest.strip_prefix("//") {
        Some(rest) => {
            let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
            format!("//{}{path}", host.rsplit('@').next()?)
        }
        None => rest.to_owned(),
    };
    word(&format!("{scheme}:{rest}"))
        .filter(|_| scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_lose_epoch_and_revision() {
        for (package, wanted) in [
            ("5:26.1.4-1~ubuntu.22.04~jammy", "26.1.4"),
            ("20.10.24+dfsg1-1+deb12u1", "20.10.24"),
            ("550.54.15-0ubuntu1", "550.54.15"),
            ("11.8.89~11.8.0-5~deb12u1", "11.8.89"),
        ] {
            assert_eq!(upstream(package).as_deref(), Some(wanted));
        }
        assert_eq!(upstream("none"), None);
        assert_eq!(upstream("-1"), None);
    }

    #[test]
    fn a_url_keeps_no_secrets() {
        assert_eq!(url("https://me:pass@repo.example.net/a?token=1").as_deref(), Some("https://repo.example.net/a"));
        assert_eq!(url("https://me:p@ss@repo.example.net").as_deref(), Some("https://repo.example.net"));
        assert_eq!(url("file:/srv/repo").as_deref(), Some("file:/srv/repo"));
        assert_eq!(url("no url"), None);
    }

    #[test]
    fn forms_are_strict() {
        assert_eq!(word("a\u{1b}[31m"), None);
        assert_eq!(word("a b"), None);
        assert_eq!(name("-rf"), None);
        assert_eq!(numbers("550..1"), None);
        assert_eq!(numbers("1.2\n"), None);
        assert_eq!(title("A100  SXM4\tx").as_deref(), Some("A100 SXM4 x"));
        assert_eq!(path("relative"), None);
        assert!(order("9.10.2") > order("9.9.0"));
    }
}
