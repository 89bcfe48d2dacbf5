//! What is recorded of labs on this machine, and where: enough to remove all of it after any crash.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::LabError;

/// Where everything lives.
pub(super) const BASE: &str = "/var/lib/provision-lab";

/// The folders of one lab.
#[derive(Debug, Clone)]
pub(super) struct Folders {
    /// [`BASE`].
    pub base: PathBuf,
    /// The lab's own; the lab called `lab` lives in the base itself.
    pub own: PathBuf,
}

impl Folders {
    /// Those of a name.
    pub fn of(name: &str) -> Self {
        let base = PathBuf::from(BASE);
        let own = if name == "lab" { base.clone() } else { base.join("labs").join(name) };
        Folders { base, own }
    }

    /// The shared root tree.
    pub fn root(&self) -> PathBuf {
        self.base.join("root")
    }

    /// All nodes of the lab.
    pub fn nodes(&self) -> PathBuf {
        self.own.join("nodes")
    }

    /// One node.
    pub fn node(&self, name: &str) -> PathBuf {
        self.nodes().join(name)
    }

    /// The file that says which lab this is.
    pub fn state(&self) -> PathBuf {
        self.own.join("state.json")
    }

    /// The private key that may log in.
    pub fn key(&self) -> PathBuf {
        self.own.join("id_ed25519")
    }

    /// The script that runs a node.
    pub fn script(&self) -> PathBuf {
        self.own.join("node.sh")
    }

    /// Removes all of a lab, the state last.
    pub fn remove(&self) -> Result<(), LabError> {
        remove(&self.nodes())?;
        for file in [self.key(), self.key().with_extension("pub"), self.script(), self.state()] {
            remove(&file)?;
        }
        if self.own != self.base {
            remove(&self.own)?;
            // Only goes when no other lab is in it.
            let _ = fs::remove_dir(self.base.join("labs"));
        }
        Ok(())
    }
}

/// Removes a file or a whole folder; what is not there is fine.
pub(super) fn remove(path: &Path) -> Result<(), LabError> {
    let result = match fs::symlink_metadata(path) {
        Ok(data) if data.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(_) => return Ok(()),
    };
    result.map_err(LabError::file("cannot remove", path))
}

/// Names become file, cgroup and machine names.
pub(super) fn check_name(name: &str) -> Result<(), LabError> {
    let fine = name.len() <= 20
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.chars().all(|one| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '-');
    if fine { Ok(()) } else { Err(LabError::Name(name.to_owned())) }
}

/// A lab.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct LabState {
    /// Version of this file.
    pub format: u32,
    /// The lab's name.
    pub name: String,
    /// First address of its /22.
    pub network: std::net::Ipv4Addr,
    /// Every `.provision/NAME` that was written.
    pub folders: Vec<PathBuf>,
}

impl LabState {
    /// As recorded; `None` when there is no such lab.
    pub fn read(folders: &Folders) -> Result<Option<Self>, LabError> {
        let found: Option<LabState> = read_json(&folders.state())?;
        match found {
            Some(lab) if lab.format != 1 => {
                Err(LabError::State { path: folders.state(), why: format!("its format is {}, not 1", lab.format) })
            }
            other => Ok(other),
        }
    }

    /// Records it.
    pub fn write(&self, folders: &Folders) -> Result<(), LabError> {
        write_json(&folders.state(), self)
    }
}

/// What we changed on the machine for all labs together.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct MachineState {
    /// Packages that were not there before.
    pub packages: Vec<String>,
    /// Sysctl keys with the values that were there before.
    pub sysctls: Vec<(String, String)>,
}

impl MachineState {
    /// Where it is.
    fn path() -> PathBuf {
        Path::new(BASE).join("machine.json")
    }

    /// As recorded.
    pub fn read() -> Result<Self, LabError> {
        Ok(read_json(&Self::path())?.unwrap_or_default())
    }

    /// Records it.
    pub fn write(&self) -> Result<(), LabError> {
        write_json(&Self::path(), self)
    }
}

/// The names of all labs on this machine.
pub(super) fn labs() -> Vec<String> {
    let base = Path::new(BASE);
    let mut names = Vec::new();
    if base.join("state.json").exists() {
        names.push("lab".to_owned());
    }
    for entry in fs::read_dir(base.join("labs")).into_iter().flatten().flatten() {
        if entry.path().join("state.json").exists() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    names
}

/// The ranges of all labs on this machine.
pub(super) fn networks() -> Vec<std::net::Ipv4Addr> {
    let read = |name: &String| LabState::read(&Folders::of(name)).ok().flatten();
    labs().iter().filter_map(read).map(|lab| lab.network).collect()
}

/// One `up` or `down` at a time changes what labs share; released when dropped or when the process ends.
pub(super) fn lock(folders: &Folders) -> Result<fs::File, LabError> {
    fs::create_dir_all(&folders.own).map_err(LabError::file("cannot make", &folders.own))?;
    // Keys, and userlands with set-user-id programs of their own: for root alone.
    fs::set_permissions(&folders.base, fs::Permissions::from_mode(0o700))
        .map_err(LabError::file("cannot change", &folders.base))?;
    let path = folders.base.join("lock");
    let file = fs::OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(LabError::file("cannot open", &path))?;
    file.lock().map_err(LabError::file("cannot lock", &path))?;
    Ok(file)
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Option<T>, LabError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(LabError::file("cannot read", path)(error)),
    };
    let wrong = |error: serde_json::Error| LabError::State { path: path.to_owned(), why: error.to_string() };
    serde_json::from_str(&text).map(Some).map_err(wrong)
}

fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), LabError> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| LabError::State { path: path.to_owned(), why: error.to_string() })?;
    replace(path, &format!("{text}\n"), 0o600)
}

/// Writes a file whole or not at all.
pub(super) fn replace(path: &Path, text: &str, mode: u32) -> Result<(), LabError> {
    let temporary = path.with_extension("new");
    fs::write(&temporary, text).map_err(LabError::file("cannot write", &temporary))?;
    fs::set_permissions(&temporary, fs::Permissions::from_mode(mode))
        .map_err(LabError::file("cannot change", &temporary))?;
    fs::rename(&temporary, path).map_err(LabError::file("cannot write", path))
}
