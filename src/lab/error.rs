//! What can go wrong with a practice cluster, each with its reason and what to do.

use std::path::{Path, PathBuf};

/// Why a lab could not be made, shown or removed.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// Namespaces, bridges and overlays need root.
    #[error("the practice cluster needs root on this machine")]
    NotRoot,
    /// Another system.
    #[error("the practice cluster needs Linux with Debian's apt, this is {0}")]
    NotDebian(String),
    /// A lab's name becomes file and interface names.
    #[error("`{0}` cannot be the name of a lab")]
    Name(String),
    /// More nodes than addresses, or none.
    #[error("a lab has 1 to {most} nodes, not {wanted}")]
    Count {
        /// As asked.
        wanted: usize,
        /// The limit.
        most: usize,
    },
    /// Not enough room for the root tree.
    #[error("{free_mib} MiB are free under {place}, the root tree needs {needed_mib}")]
    Disk {
        /// What is there.
        free_mib: u64,
        /// What is needed.
        needed_mib: u64,
        /// Where.
        place: PathBuf,
    },
    /// Overlays need a real file system below them.
    #[error("{place} lies on {kind}, which cannot carry the nodes' overlays")]
    FileSystem {
        /// Its kind.
        kind: String,
        /// Where.
        place: PathBuf,
    },
    /// apt names no archive of this system.
    #[error("apt on this machine names no archive of {0}")]
    NoArchive(String),
    /// No free range of addresses.
    #[error("no private address range is free on this machine")]
    NoRange,
    /// A file could not be read or written.
    #[error("{doing} {path}: {source}")]
    File {
        /// `cannot read` or the like.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A recorded state that we do not understand.
    #[error("{path} is not a state of a lab that this version knows: {why}")]
    State {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// A program failed.
    #[error("{doing} failed: {command} {ended}")]
    Command {
        /// What it was for.
        doing: String,
        /// Program and arguments.
        command: String,
        /// `exited with 1`, `cannot be started: ...`.
        ended: String,
        /// The last lines that it wrote.
        said: Vec<String>,
    },
    /// A node that did not come up or go down.
    #[error("{node} {what}")]
    Node {
        /// Its name.
        node: String,
        /// What is wrong.
        what: String,
        /// The last lines of its console.
        said: Vec<String>,
    },
}

impl LabError {
    /// Wraps what the system said about a file.
    pub(crate) fn file(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> LabError {
        let path = path.to_owned();
        move |source| LabError::File { doing, path, source }
    }

    /// Why, line by line.
    #[must_use]
    pub fn because(&self) -> Vec<String> {
        match self {
            LabError::NotRoot => {
                vec!["it makes network interfaces, mounts and firewall rules, and removes them again".to_owned()]
            }
            LabError::NotDebian(_) => vec!["its nodes are made from the packages of this machine's archive".to_owned()],
            LabError::Name(_) => vec!["names are 1 to 20 of a-z, 0-9 and -, a letter first".to_owned()],
            LabError::NoArchive(_) => vec!["the root tree is built from the archive that apt uses here".to_owned()],
            LabError::Command { said, .. } | LabError::Node { said, .. } => said.clone(),
            _ => Vec::new(),
        }
    }

    /// What to do.
    #[must_use]
    pub fn fix(&self) -> Vec<String> {
        let fix = match self {
            LabError::NotRoot => "run it as root, for example with sudo",
            LabError::NotDebian(_) => "use a Debian 12 machine; a virtual machine will do",
            LabError::Name(_) => "choose another name, or none",
            LabError::Count { .. } => "give another number to --nodes",
            LabError::Disk { .. } => "free some space there",
            LabError::FileSystem { .. } => {
                "mount a disk or a volume there (in a container: a volume on /var/lib/provision-lab)"
            }
            LabError::NoArchive(_) => "see that `apt-get update` works and /etc/apt names the archive",
            LabError::NoRange => "free one /22 of 10.77.0.0-10.126.0.0, 172.20.0.0-172.31.0.0 or 192.168.0.0",
            LabError::File { .. } => "see whether the path can be written and the disk is not full, then try again",
            LabError::State { .. } => "use the version that made it, or `provision lab down` and start anew",
            LabError::Command { .. } => {
                "mend what it complains about and try again; `provision lab down` removes what was made so far"
            }
            LabError::Node { .. } => "`provision lab down`, then `provision lab up` makes the nodes anew",
        };
        vec![fix.to_owned()]
    }
}
