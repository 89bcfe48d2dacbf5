//! Texts with `{{ ... }}` in them: the content of files, not shell.

use minijinja::{Environment, UndefinedBehavior};

/// Steps a template may take, so that a loop in one ends.
const FUEL: u64 = 1_000_000;

/// Fills in a text; a name that is not known is an error, and nothing is escaped.
///
/// # Errors
/// What is wrong with the template and in which line.
pub fn document(text: &str, values: &serde_json::Value) -> Result<String, String> {
    if !text.contains("{{") && !text.contains("{%") && !text.contains("{#") {
        return Ok(text.to_owned());
    }
    let mut environment = Environment::empty();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(FUEL));
    environment.add_filter("join", minijinja::filters::join);
    // The engine drops one newline at the end; it gets one more, so that the text keeps its own.
    let text = format!("{text}\n");
    environment.render_str(&text, minijinja::value::Serde(values)).map_err(|error| {
        let line = error.line().map_or_else(String::new, |line| format!(" in line {line} of the text"));
        let detail =
            error.detail().map_or_else(|| error.kind().to_string(), |detail| format!("{}: {detail}", error.kind()));
        format!("the template cannot be filled in{line}: {detail}")
    })
}

#[cfg(test)]
mod tests {
    use super::document;

    #[test]
    fn known_names_are_filled_in_and_unknown_ones_are_errors() {
        let values = serde_json::json!({"node": {"name": "n1", "groups": ["a", "b"]}});
        assert_eq!(document("I am {{ node.name }}\n", &values).unwrap(), "I am n1\n");
        assert_eq!(document("{{ node.groups | join(',') }}", &values).unwrap(), "a,b");
        assert_eq!(document("no braces { } $x\n\n", &values).unwrap(), "no braces { } $x\n\n");
        assert!(document("{{ node.nmae }}", &values).unwrap_err().contains("line 1"));
        assert!(document("a\n{{ node.", &values).is_err());
        assert!(document("{% for i in range(99999999) %}x{% endfor %}", &values).is_err());
    }
}
