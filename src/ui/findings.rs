//! Findings for people and as JSON.
//!
//! Both say the same; nothing is said by colour alone. What a finding means is not known here.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use serde::Serialize;

use super::snippet::{self, excerpt, shown};
use crate::diag::{Class, Finding, Severity};

/// Code of the finding whose place is a secret written as plain text.
const PLAIN_SECRET: &str = crate::manifest::codes::PLAIN_SECRET;

/// The worst that findings of class `fit` say; an error of class `input` makes it an error too.
pub fn verdict(findings: &[Finding]) -> &'static str {
    let worst = findings
        .iter()
        .filter(|finding| {
            finding.class == Class::Fit || finding.class == Class::Input && finding.severity == Severity::Error
        })
        .map(|finding| finding.severity)
        .min();
    match worst {
        Some(Severity::Error) => "error",
        Some(Severity::Warning) => "warning",
        _ => "ok",
    }
}

/// The object that `check --format json` prints.
#[derive(Debug, Serialize)]
struct Judgement<'a> {
    verdict: &'static str,
    findings: &'a [Finding],
    resolved: &'a [serde_json::Value],
    no_step: &'a [String],
}

/// Findings as JSON with a final newline; `no_step` names the parts this build has no step for.
pub fn json(findings: &[Finding], no_step: &[String]) -> String {
    let judgement = Judgement { verdict: verdict(findings), findings, resolved: &[], no_step };
    let text = serde_json::to_string_pretty(&judgement).unwrap_or_default();
    let mut safe = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        // JSON need not escape these, but a terminal may obey them; they stand inside of strings only.
        if snippet::is_hidden(c) {
            safe.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            safe.push(c);
        }
    }
    safe.push('\n');
    safe
}

/// Findings for people, with colours that a stream which is no terminal must strip; `text` is the manifest `file`.
pub fn human(findings: &[Finding], file: &str, text: &str) -> String {
    let renderer = Renderer::styled();
    findings.iter().map(|finding| format!("{}\n\n", one(&renderer, finding, file, text))).collect()
}

fn one(renderer: &Renderer, finding: &Finding, file: &str, text: &str) -> String {
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let title = shown(&finding.title);
    let place = finding.at.as_ref();
    let shown_file = place.map(|place| shown(&place.file)).unwrap_or_default();
    let found =
        place.filter(|place| *place.file == *file).and_then(|place| excerpt(text, place, finding.code == PLAIN_SECRET));
    let mut because: Vec<String> = finding.because.iter().map(|reason| shown(reason)).collect();
    let label = match &found {
        Some(found) if !found.spot.is_empty() && because.first().is_some_and(|first| first.len() <= 70) => {
            Some(because.remove(0))
        }
        _ => None,
    };
    let mut notes: Vec<(&str, String)> = because.into_iter().map(|reason| ("because", reason)).collect();
    if !finding.nodes.is_empty() {
        notes.push(("nodes", shown(&finding.nodes.join(","))));
    }
    notes.extend(finding.sources.iter().map(|source| ("source", shown(&format!("{}, {}", source.title, source.url)))));
    let fixes: Vec<String> = finding.fix.iter().map(|fix| shown(fix)).collect();
    let mut group = Group::with_title(level.primary_title(title.as_str()).id(finding.code.as_str()));
    match (&found, place) {
        (Some(found), _) => {
            let mut mark = AnnotationKind::Primary.span(found.spot.clone());
            if let Some(label) = &label {
                mark = mark.label(label.as_str());
            }
            let snippet = Snippet::source(found.text.as_str())
                .line_start(found.first_line)
                .path(shown_file.as_str())
                .fold(false)
                .annotation(mark);
            group = group.element(snippet);
        }
        (None, Some(place)) => {
            let origin = annotate_snippets::Origin::path(shown_file.as_str());
            group = group.element(origin.line(place.line as usize).char_column(place.column as usize));
        }
        (None, None) => {}
    }
    for (name, note) in &notes {
        group = group.element(Level::NOTE.with_name(*name).message(note.as_str()));
    }
    for fix in &fixes {
        group = group.element(Level::HELP.message(fix.as_str()));
    }
    renderer.render(&[group])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_is_the_worst_of_fit_and_of_input_errors() {
        let of = |class, severity| Finding { class, severity, ..Finding::input("P0001", "t", None) };
        assert_eq!(verdict(&[]), "ok");
        assert_eq!(verdict(&[of(Class::Unjudged, Severity::Note), of(Class::Life, Severity::Warning)]), "ok");
        assert_eq!(verdict(&[of(Class::Input, Severity::Warning)]), "ok");
        assert_eq!(verdict(&[of(Class::Fit, Severity::Warning)]), "warning");
        assert_eq!(verdict(&[of(Class::Fit, Severity::Warning), of(Class::Input, Severity::Error)]), "error");
    }
}
