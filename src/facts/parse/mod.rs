//! From what a node printed to facts: one pure parser for each answer.
//!
//! Parsers are total: any bytes give facts, and what is not understood is left unknown and named as a problem. Nothing here
//! asks why a fact matters.

mod engine;
mod gpu;
mod network;
mod python;
mod software;
mod system;
mod text;

use std::collections::BTreeMap;

use super::model::Facts;

/// Reads a node's answers to the facts questions: frame key to the lines printed.
///
/// Returns also what could not be understood, one line each, fit to be shown: these facts are unknown.
pub fn parse(node: &str, frames: &BTreeMap<String, String>) -> (Facts, Vec<String>) {
    let mut answers = Answers::new(frames);
    let mut facts = Facts { node: node.to_owned(), ..Facts::default() };
    system::read(&mut answers, &mut facts);
    gpu::read(&mut answers, &mut facts);
    network::read(&mut answers, &mut facts);
    software::read(&mut answers, &mut facts);
    python::read(&mut answers, &mut facts);
    engine::read(&mut answers, &mut facts);
    (facts, answers.problems)
}

/// The answers, those that several parsers need taken apart once.
struct Answers<'a> {
    frames: &'a BTreeMap<String, String>,
    /// Lines of small files by path; empty when the files could not be read at all.
    files: BTreeMap<&'a str, Vec<&'a str>>,
    /// `name=value` of the marks, in order.
    marks: Vec<(&'a str, &'a str)>,
    /// Installed packages of interest, if the list was whole.
    packages: Option<Packages<'a>>,
    problems: Vec<String>,
}

/// What dpkg or rpm say.
#[derive(Default)]
struct Packages<'a> {
    installed: BTreeMap<&'a str, &'a str>,
    held: Vec<String>,
}

impl<'a> Answers<'a> {
    fn new(frames: &'a BTreeMap<String, String>) -> Self {
        let mut answers =
            Answers { frames, files: BTreeMap::new(), marks: Vec::new(), packages: None, problems: Vec::new() };
        for line in answers.lines("files") {
            // The one kind of path that has colons in it.
            let split = if line.starts_with("proc/driver/nvidia/gpus/") {
                line.split_once("/information:")
            } else {
                line.split_once(':')
            };
            if let Some((path, content)) = split {
                answers.files.entry(path).or_default().push(content);
            }
        }
        if !answers.files.contains_key("proc/sys/kernel/osrelease") {
            answers.files.clear();
            answers.problem("the small files of /proc, /sys and /etc", "no kernel release among them");
        }
        answers.marks = answers.lines("marks").filter_map(|line| line.split_once('=')).collect();
        answers.packages = software::packages(&answers);
        answers
    }

    /// The lines of an answer without empty ones, none when it is missing.
    fn lines(&self, key: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        self.frames.get(key).map_or("", String::as_str).lines().filter(|line| !line.is_empty())
    }

    /// Whether the question was answered.
    fn has(&self, key: &str) -> bool {
        self.frames.contains_key(key)
    }

    /// The first line of a small file.
    fn file(&self, path: &str) -> Option<&'a str> {
        self.files.get(path)?.first().copied()
    }

    /// Whether the small files were read; if not, an absent one says nothing.
    fn has_files(&self) -> bool {
        !self.files.is_empty()
    }

    /// The first value of a mark.
    fn mark(&self, name: &str) -> Option<&'a str> {
        self.marks.iter().find(|(mark, _)| *mark == name).map(|(_, value)| *value)
    }

    /// Whether a unit runs, where that could be asked.
    fn running(&self, unit: &str) -> Option<bool> {
        self.mark("units")?;
        Some(self.marks.contains(&("running", unit)))
    }

    /// Notes what could not be understood; at most 20, control characters shown.
    fn problem(&mut self, what: &str, said: &str) {
        if self.problems.len() < 20 {
            let shown: String = said.chars().take(80).flat_map(char::escape_debug).collect();
            self.problems.push(format!("{what}: {shown}"));
        }
    }
}
