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
/// # Errors
/// When the system refuses; the old file is then untouched.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), StateError> {
    let fail = |error| StateError::Io { verb: "write", path: path.to_path_buf(), error };
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(fail)?;
    file.write_all(bytes).map_err(fail)?;
    file.as_file().sync_all().map_err(fail)?;
    if let Ok(old) = std::fs::metadata(path) {
        let _ = file.as_file().set_permissions(old.permissions());
    } else {
        use std::os::unix::fs::PermissionsExt as _;
        let _ = file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644));
    }
    file.persist(path).map_err(|error| fail(error.error))?;
    Ok(())
}
