//! Run folders: `.provision/NAME/runs/ID/{plan.json, events.jsonl, nodes/NODE.log, report.json}`.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use super::{Places, StateError, make_private, write_whole};
use crate::event::{Event, Report};
use crate::plan::Plan;

/// A run that is being recorded. Events are written line by line as they happen, so that a killed controller
/// leaves all that it knew.
pub struct RunFolder {
    /// The run's ID: UTC second and four letters.
    pub id: String,
    /// The folder, `None` when nothing is kept.
    pub path: Option<PathBuf>,
    events: Option<BufWriter<File>>,
}

impl RunFolder {
    /// Makes the folder of a new run and writes its plan.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(places: &Places, id: String, plan: &Plan) -> Result<Self, StateError> {
        if !places.kept {
            return Ok(RunFolder { id, path: None, events: None });
        }
        let path = places.folder().join("runs").join(&id);
        make_private(&path.join("nodes"))?;
        let text = serde_json::to_string_pretty(plan).unwrap_or_default();
        write_whole(&path.join("plan.json"), text.as_bytes())?;
        let events = path.join("events.jsonl");
        let file = File::create(&events).map_err(|error| StateError::Io { verb: "write", path: events, error })?;
        Ok(RunFolder { id, path: Some(path), events: Some(BufWriter::new(file)) })
    }

    /// Appends an event.
    pub fn record(&mut self, event: &Event) {
        if let (Some(file), Ok(line)) = (self.events.as_mut(), serde_json::to_string(event)) {
            let _ = writeln!(file, "{line}");
            let _ = file.flush();
        }
    }

    /// Appends what a node wrote to its log.
    pub fn log(&self, node: &str, text: &str) {
        let Some(path) = &self.path else { return };
        let file = File::options().create(true).append(true).open(path.join("nodes").join(format!("{node}.log")));
        if let Ok(mut file) = file {
            let _ = file.write_all(text.as_bytes());
        }
    }

    /// Writes the report at the end.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(&mut self, report: &Report) -> Result<(), StateError> {
        let Some(path) = &self.path else { return Ok(()) };
        let text = serde_json::to_string_pretty(report).unwrap_or_default();
        write_whole(&path.join("report.json"), text.as_bytes())
    }
}

/// A new run's ID: the UTC second and four letters.
pub fn new_id() -> String {
    use std::hash::{BuildHasher as _, Hasher as _};
    let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
    // The standard hasher is seeded from the system's randomness.
    let mut seed = std::collections::hash_map::RandomState::new().build_hasher().finish();
    let mut letters = String::new();
    for _ in 0..4 {
        letters.push(char::from(b'a' + u8::try_from(seed % 26).unwrap_or(0)));
        seed /= 26;
    }
    format!("{now}-{letters}")
}

/// A recorded run as read back.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// Folder of the run.
    pub path: PathBuf,
    /// Its ID.
    pub id: String,
    /// Its events, as far as they can be read; a line cut by a crash ends them.
    pub events: Vec<Event>,
    /// The fold over them.
    pub report: Report,
}

/// All recorded runs, oldest first.
pub fn list(places: &Places) -> Vec<Recorded> {
    let Ok(entries) = std::fs::read_dir(places.folder().join("runs")) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.iter().filter_map(|path| read(path)).collect()
}

fn read(path: &Path) -> Option<Recorded> {
    let id = path.file_name()?.to_string_lossy().into_owned();
    let text = std::fs::read_to_string(path.join("events.jsonl")).ok()?;
    let events: Vec<Event> = text.lines().map_while(|line| serde_json::from_str(line).ok()).collect();
    let mut report = Report::default();
    for event in &events {
        report.fold(event);
    }
    Some(Recorded { path: path.to_path_buf(), id, events, report })
}
