//! What is kept on the controller: `NAME.nodes` beside the manifest, last facts and run folders under `.provision/NAME`.
//!
//! The types are the core's; this room only reads and writes them, each file whole (temporary file, sync, rename).

pub mod runs;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::facts::Facts;
use crate::identity::{self, Identities};

/// A file of ours that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The system refused.
    #[error("cannot {verb} {}: {error}", path.display())]
    Io {
        /// `read`, `write`, `make`.
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        error: std::io::Error,
    },
    /// The content makes no sense.
    #[error("{}: {what}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
}

/// Where the files of one manifest live.
#[derive(Debug, Clone)]
pub struct Places {
    /// Folder of the manifest.
    pub beside: PathBuf,
    /// File name without its ending.
    pub name: String,
    /// False for a manifest from standard input: nothing is written then.
    pub kept: bool,
}

impl Places {
    /// The places of a manifest file; `-` keeps nothing.
    pub fn of(manifest: &str) -> Self {
        let path = Path::new(manifest);
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        Places {
            beside: parent.map_or_else(|| PathBuf::from("."), Path::to_path_buf),
            name: path.file_stem().map_or_else(|| "cluster".to_owned(), |stem| stem.to_string_lossy().into_owned()),
            kept: manifest != "-",
        }
    }

    /// `NAME.nodes`.
    pub fn nodes_file(&self) -> PathBuf {
        self.beside.join(format!("{}.nodes", self.name))
    }

    /// `.provision/NAME`.
    pub fn folder(&self) -> PathBuf {
        self.beside.join(".provision").join(&self.name)
    }

    /// Reads `NAME.nodes`; none yet is an empty one.
    ///
    /// # Errors
    /// When it cannot be read or is not of this form.
    pub fn read_nodes(&self) -> Result<Identities, StateError> {
        let path = self.nodes_file();
        if !self.kept {
            return Ok(Identities::new());
        }
        match std::fs::read_to_string(&path) {
            Ok(text) => identity::parse(&text).map_err(|what| StateError::Content { path, what }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Identities::new()),
            Err(error) => Err(StateError::Io { verb: "read", path, error }),
        }
    }

    /// Writes `NAME.nodes` when its text changes.
    ///
    /// # Errors
    /// When it cannot be written; the old file is then still there.
    pub fn write_nodes(&self, nodes: &Identities) -> Result<(), StateError> {
        if !self.kept {
            return Ok(());
        }
        let path = self.nodes_file();
        let text = identity::print(nodes);
        if std::fs::read_to_string(&path).is_ok_and(|old| old == text) {
            return Ok(());
        }
        write_whole(&path, text.as_bytes())
    }

    /// Changes `NAME.nodes` as it is now on disk, which another run may have written since it was read.
    ///
    /// # Errors
    /// When it cannot be read or written; the old file is then still there.
    pub fn change_nodes(&self, change: impl FnOnce(&mut Identities)) -> Result<(), StateError> {
        if !self.kept {
            return Ok(());
        }
        // Held until the end of the function. A file system without locks only loses this protection.
        let lock = std::fs::File::open(&self.beside).ok().filter(|folder| folder.lock().is_ok());
        let mut nodes = self.read_nodes()?;
        change(&mut nodes);
        let written = self.write_nodes(&nodes);
        drop(lock);
        written
    }

    /// The facts of the last contact, if there are any that can be read.
    pub fn read_facts(&self, node: &str) -> Option<Facts> {
        let path = self.folder().join("facts").join(format!("{node}.json"));
        crate::facts::from_json(&std::fs::read_to_string(path).ok()?).ok()
    }

    /// Keeps a node's facts for the next time; nothing is written when they did not change.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write_facts(&self, node: &str, facts: &Facts) -> Result<(), StateError> {
        if !self.kept {
            return Ok(());
        }
        let folder = self.folder().join("facts");
        let path = folder.join(format!("{node}.json"));
        let Ok(text) = crate::facts::to_json(facts) else { return Ok(()) };
        if std::fs::read_to_string(&path).is_ok_and(|old| old == text) {
            return Ok(());
        }
        make_private(&folder)?;
        write_whole(&path, text.as_bytes())
    }
}

/// Makes a folder that only we can read, parents included.
///
/// # Errors
/// When the system refuses.
pub fn make_private(folder: &Path) -> Result<(), StateError> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| StateError::Io {
        verb: "make",
        path: folder.to_path_buf(),
        error,
    })
}

/// Writes a file so that it is either the old or the new one: temporary file, sync, rename.
///
/// A link stays a link, the file that it names is written; what is no file (a pipe, a terminal, a device) is written to
/// and never replaced.
///
/// # Errors
/// When the system refuses; the old file is then untouched.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), StateError> {
    let fail = |error| StateError::Io { verb: "write", path: path.to_path_buf(), error };
    let old = std::fs::metadata(path).ok();
    if let Some(old) = &old
        && !old.is_file()
    {
        return std::fs::File::options()
            .write(true)
            .open(path)
            .and_then(|mut file| file.write_all(bytes))
            .map_err(fail);
    }
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let folder = real.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(fail)?;
    file.write_all(bytes).map_err(fail)?;
    file.as_file().sync_all().map_err(fail)?;
    if let Some(old) = old {
        let _ = file.as_file().set_permissions(old.permissions());
    } else {
        use std::os::unix::fs::PermissionsExt as _;
        let _ = file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644));
    }
    file.persist(&real).map_err(|error| fail(error.error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Identity;

    fn places(folder: &Path) -> Places {
        Places { beside: folder.to_path_buf(), name: "cluster".to_owned(), kept: true }
    }

    #[test]
    fn what_is_no_file_is_written_to_and_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        std::fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink("real", &link).unwrap();
        write_whole(&link, b"new").unwrap();
        assert_eq!(std::fs::read_to_string(&real).unwrap(), "new");
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());

        // A pipe of ours, by the name under which a shell passes one on.
        let (mut reader, writer) = std::io::pipe().unwrap();
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&writer));
        write_whole(Path::new(&path), b"plan").unwrap();
        drop(writer);
        let mut text = String::new();
        std::io::Read::read_to_string(&mut reader, &mut text).unwrap();
        assert_eq!(text, "plan");
    }

    #[test]
    fn what_another_run_wrote_since_is_not_lost() {
        let folder = tempfile::tempdir().unwrap();
        let places = places(folder.path());
        let add = |name: &str| {
            places.change_nodes(|nodes| drop(nodes.insert(name.to_owned(), Identity::default()))).unwrap();
        };
        std::thread::scope(|scope| {
            for number in 0..8 {
                scope.spawn(move || add(&format!("n{number}")));
            }
        });
        assert_eq!(places.read_nodes().unwrap().len(), 8);
    }

    #[test]
    fn a_broken_file_is_never_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let places = places(folder.path());
        std::fs::write(places.nodes_file(), "format: 2\nnodes: {n1: {new_key: 1}}\n").unwrap();
        let why = places.change_nodes(Identities::clear).unwrap_err().to_string();
        assert!(why.contains("use a newer provision") && !why.contains('\n'), "{why}");
        assert!(std::fs::read_to_string(places.nodes_file()).unwrap().contains("new_key"));
    }
}
