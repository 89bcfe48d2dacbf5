//! What the user gets in `.provision/NAME`: the filled-in manifest, the key and an ssh_config.

use std::fs;
use std::path::{Path, PathBuf};

use super::run::{command, output};
use super::state::{Folders, remove as remove_path, replace};
use super::{LabError, LabNode, Options};

/// The folder, absolute.
pub(super) fn folder(options: &Options) -> Result<PathBuf, LabError> {
    let start = fs::canonicalize(&options.directory).map_err(LabError::file("cannot find", &options.directory))?;
    Ok(start.join(".provision").join(&options.name))
}

/// The manifest to fill in: the one given, else what is there already, else the built-in one.
pub(super) fn base_text(options: &Options, folder: &Path) -> Result<String, LabError> {
    if let Some(path) = &options.manifest {
        return fs::read_to_string(path).map_err(LabError::file("cannot read", path));
    }
    Ok(fs::read_to_string(folder.join("cluster.yaml")).unwrap_or_else(|_| super::MANIFEST.to_owned()))
}

/// Makes the key that may log in; gives the public half.
pub(super) fn login_key(folders: &Folders) -> Result<String, LabError> {
    let key = folders.key();
    if !key.exists() {
        make_key(&key, "provision-lab")?;
    }
    let public = key.with_extension("pub");
    fs::read_to_string(&public).map_err(LabError::file("cannot read", &public))
}

/// An ed25519 key pair without passphrase.
pub(super) fn make_key(path: &Path, comment: &str) -> Result<(), LabError> {
    let name = path.display().to_string();
    let arguments = ["-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", &name];
    output("making a key", command("ssh-keygen", &arguments)).map(drop)
}

/// Writes all files that differ.
pub(super) fn write(
    folder: &Path,
    folders: &Folders,
    text: &str,
    nodes: &[LabNode],
    changed: &mut Vec<String>,
) -> Result<(), LabError> {
    fs::create_dir_all(folder).map_err(LabError::file("cannot make", folder))?;
    let key = folders.key();
    let private = fs::read_to_string(&key).map_err(LabError::file("cannot read", &key))?;
    let known: String =
        nodes.iter().map(|node| format!("{},{} {}\n", node.name, node.address, node.host_key)).collect();
    for (name, content, mode) in [
        ("id_ed25519", private, 0o600),
        ("known_hosts", known, 0o644),
        ("ssh_config", ssh_config(folder, nodes), 0o644),
        ("cluster.yaml", fill(text, nodes), 0o644),
    ] {
        let path = folder.join(name);
        if fs::read_to_string(&path).is_ok_and(|present| present == content) {
            continue;
        }
        replace(&path, &content, mode)?;
        changed.push(format!("wrote {}", path.display()));
    }
    Ok(())
}

/// Removes what `up` wrote there and what runs on these nodes left: with the nodes gone it is of no use.
pub(super) fn remove(folder: &Path) -> Result<(), LabError> {
    for name in
        ["id_ed25519", "known_hosts", "ssh_config", "cluster.yaml", "cluster.nodes", "cluster.lock", ".provision"]
    {
        remove_path(&folder.join(name))?;
    }
    // Both stay when the user has put something there.
    let _ = fs::remove_dir(folder);
    let _ = folder.parent().map(fs::remove_dir);
    Ok(())
}

fn ssh_config(folder: &Path, nodes: &[LabNode]) -> String {
    let mut text = String::from("# For `ssh -F THIS n1`. Made by `provision lab up`.\n");
    for node in nodes {
        text.push_str(&format!("Host {}\n  HostName {}\n", node.name, node.address));
    }
    text.push_str(&format!(
        "Host *\n  User admin\n  IdentityFile \"{0}/id_ed25519\"\n  IdentitiesOnly yes\n  \
         UserKnownHostsFile \"{0}/known_hosts\"\n  GlobalKnownHostsFile none\n  StrictHostKeyChecking yes\n  \
         UpdateHostKeys no\n",
        folder.display()
    ));
    text
}

/// The manifest's text with `ssh:` and `nodes:` replaced by those of the lab; all else stays as it is.
fn fill(text: &str, nodes: &[LabNode]) -> String {
    let mut filled = without(&without(text, "ssh"), "nodes").trim_end().to_owned();
    filled.push_str(
        "\n\nssh:\n  # Filled in by `provision lab up`, as are the nodes.\n  user: admin\n  identity: id_ed25519\n  \
         become: sudo\n\nnodes:\n",
    );
    for node in nodes {
        filled.push_str(&format!(
            "  - name: {}\n    address: {}\n    host_key: {}\n",
            node.name, node.address, node.host_key
        ));
    }
    filled
}

/// The text without one top-level key and what belongs to it.
fn without(text: &str, key: &str) -> String {
    let mut kept = String::new();
    let mut waiting = String::new();
    let mut inside = false;
    for line in text.split_inclusive('\n') {
        let opens = line.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with(':'));
        let silent = line.trim().is_empty() || line.starts_with('#');
        if inside && silent {
            // Whose comment it is shows at the next line that says something.
            waiting.push_str(line);
        } else if opens || (inside && (line.starts_with([' ', '\t']) || line.starts_with("- "))) {
            inside = true;
            waiting.clear();
        } else {
            kept.push_str(&waiting);
            waiting.clear();
            kept.push_str(line);
            inside = false;
        }
    }
    kept.push_str(&waiting);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node() -> LabNode {
        LabNode {
            name: "n1".to_owned(),
            address: "10.77.0.11".to_owned(),
            host_key: "ssh-ed25519 AAAA".to_owned(),
            upper: PathBuf::new(),
            pid: None,
        }
    }

    #[test]
    fn filling_replaces_nodes_and_ssh_and_keeps_the_rest() {
        let text = "version: 1\nssh:\n  user: x\n\n# about packages\npackages: [jq]\nnodes:\n- name: a\n# one more\n- name: b\n";
        let filled = fill(text, &[node()]);
        assert!(filled.starts_with("version: 1\n\n# about packages\npackages: [jq]\n\nssh:\n"), "{filled}");
        assert!(!filled.contains("name: b") && !filled.contains("user: x") && !filled.contains("one more"), "{filled}");
        assert!(filled.contains("  - name: n1\n    address: 10.77.0.11\n    host_key: ssh-ed25519 AAAA\n"));
    }

    #[test]
    fn filling_twice_is_filling_once() {
        let once = fill(super::super::MANIFEST, &[node()]);
        assert_eq!(fill(&once, &[node()]), once);
    }

    #[test]
    fn the_built_in_manifest_has_no_addresses_or_keys() {
        assert!(!super::super::MANIFEST.contains("\nnodes:") && !super::super::MANIFEST.contains("\nssh:"));
    }
}
