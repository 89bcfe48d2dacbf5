//! `provision init`: a commented manifest to start from.

use std::fs::{OpenOptions, create_dir_all};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::print;
use crate::diag::ExitCode;

/// The manifest that is written.
const STARTER: &str = include_str!("../../templates/init/cluster.yaml");

/// Writes a commented manifest to start from; never overwrites a file.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  provision init train-a && provision check train-a/cluster.yaml")]
pub struct Arguments {
    /// The folder, made when it does not exist.
    #[arg(default_value = ".")]
    dir: PathBuf,
}

/// What became of a file.
enum Written {
    New,
    Kept,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> ExitCode {
    match write_all(&arguments.dir) {
        Ok(talk) => print(&talk),
        Err(why) => {
            crate::ui::output::say(&format!("error: {}\n", crate::ui::snippet::shown(&why)));
            ExitCode::Usage
        }
    }
}

fn write_all(dir: &Path) -> Result<String, String> {
    let name = |path: &Path| crate::ui::snippet::shown(&path.display().to_string());
    let manifest = dir.join("cluster.yaml");
    create_dir_all(dir.join(".provision")).map_err(|error| format!("cannot make {}: {error}", dir.display()))?;
    if let Written::Kept = write(&manifest, STARTER)? {
        return Err(format!("{} exists and is left as it is; name another folder", name(&manifest)));
    }
    let mut talk = format!("wrote {}\n", name(&manifest));
    let schema = dir.join(".provision/schema.json");
    if let Written::New = write(&schema, &crate::manifest::schema::schema())? {
        talk.push_str(&format!("wrote {}, for your editor\n", name(&schema)));
    }
    let ignore = dir.join(".gitignore");
    match write(&ignore, ".provision/\n")? {
        Written::New => talk.push_str(&format!("wrote {}\n", name(&ignore))),
        Written::Kept => talk
            .push_str(&format!("{} exists and is left as it is; it should have the line .provision/\n", name(&ignore))),
    }
    talk.push_str(&format!("next: fill in your nodes, then `provision check {}`\n", name(&manifest)));
    Ok(talk)
}

/// Writes a file that does not exist yet.
fn write(path: &Path, text: &str) -> Result<Written, String> {
    let failed = |error: std::io::Error| format!("cannot write {}: {error}", path.display());
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut file) => file.write_all(text.as_bytes()).map(|()| Written::New).map_err(failed),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(Written::Kept),
        Err(error) => Err(failed(error)),
    }
}
