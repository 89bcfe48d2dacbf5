//! A lab for one test, and the program run against it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use provision::lab::{self, Lab, LabNode, Options};

/// A practice cluster that goes away with the test.
pub struct Cluster {
    /// The lab.
    pub lab: Lab,
    options: Options,
    _folder: tempfile::TempDir,
}

impl Cluster {
    /// Brings a lab up with the built-in manifest, or with another text without `nodes:` and `ssh:`.
    pub fn up(name: &str, nodes: usize, manifest: Option<&str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let manifest = manifest.map(|text| {
            let path = folder.path().join("wish.yaml");
            std::fs::write(&path, text).unwrap();
            path
        });
        let options =
            Options { name: name.to_owned(), nodes, manifest, directory: folder.path().to_owned(), say: |_| () };
        let lab = match lab::up(&options) {
            Ok(lab) => lab,
            Err(error) => {
                let _ = lab::down(&options, false);
                panic!("the lab did not come up: {error}");
            }
        };
        Cluster { lab, options, _folder: folder }
    }

    /// The manifest that the lab wrote.
    pub fn manifest(&self) -> PathBuf {
        self.lab.dir.join("cluster.yaml")
    }

    /// Its text.
    pub fn text(&self) -> String {
        std::fs::read_to_string(self.manifest()).unwrap()
    }

    /// Writes the manifest anew.
    pub fn rewrite(&self, text: &str) {
        std::fs::write(self.manifest(), text).unwrap();
    }

    /// A node by name.
    pub fn node(&self, name: &str) -> &LabNode {
        self.lab.nodes.iter().find(|node| node.name == name).unwrap()
    }

    /// The program, with the manifest as its last argument.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = provision();
        command.args(arguments).arg(self.manifest());
        command
    }

    /// Runs the program with the manifest as its last argument.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments).output().unwrap())
    }

    /// `apply --yes`.
    pub fn apply(&self) -> Ran {
        self.run(&["apply", "--yes"])
    }

    /// A shell command as root on a node, from outside of SSH's way of doing it.
    pub fn on(&self, node: &str, script: &str) -> Ran {
        let mut command = Command::new("ssh");
        command
            .arg("-F")
            .arg(self.lab.dir.join("ssh_config"))
            .args(["-o", "BatchMode=yes", "-o", "ConnectTimeout=20", node, "sudo", "sh", "-s"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), script.as_bytes()).unwrap();
        Ran::of(child.wait_with_output().unwrap())
    }

    /// Content, mode and time of all that was written on a node, for "nothing changed".
    pub fn prints(&self) -> BTreeMap<PathBuf, String> {
        let mut prints = BTreeMap::new();
        for node in &self.lab.nodes {
            for path in node.written() {
                let full = node.upper.join(path.strip_prefix("/").unwrap_or(&path));
                let Ok(data) = std::fs::symlink_metadata(&full) else { continue };
                use std::os::unix::fs::MetadataExt;
                let print =
                    format!("{:o} {} {}.{} {}", data.mode(), data.ino(), data.mtime(), data.mtime_nsec(), data.size());
                prints.insert(Path::new(&node.name).join(path.strip_prefix("/").unwrap_or(&path)), print);
            }
        }
        prints
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("cluster.yaml:\n{}", self.text());
        }
        if let Err(error) = lab::down(&self.options, false) {
            eprintln!("the lab did not go down: {error}");
        }
    }
}

/// The program itself, without anything of the caller's own SSH set-up.
pub fn provision() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_provision"));
    command.env_remove("SSH_AUTH_SOCK").env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

/// How a command ended and what it said.
#[derive(Debug)]
pub struct Ran {
    /// Exit code, -1 when killed.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Ran {
    /// From a finished process.
    pub fn of(output: Output) -> Self {
        Ran {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Fails the test unless the exit code is this one.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }

    /// Fails the test unless standard output or error says this.
    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        assert!(
            self.out.contains(text) || self.err.contains(text),
            "{text:?} is not in\nstdout:\n{}\nstderr:\n{}",
            self.out,
            self.err
        );
        self
    }
}

/// Waits until something holds; fails the test when it does not within a minute.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(60), "after a minute still not: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Kills a process of ours without giving it a chance to clean up.
pub fn kill_9(child: &mut Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}
