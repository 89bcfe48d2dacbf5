//! What labs need of this machine and share: programs, the root tree, two sysctls.
//!
//! It says what is missing before anything is changed, and records what was changed so that it can be put back.

use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::run::{command, exists, feed, output};
use super::state::{BASE, Folders, MachineState, labs, remove};
use super::{LabError, Options};

/// Makes the root tree a place for nodes.
const ROOT_SCRIPT: &str = include_str!("../../templates/lab/root.sh");

/// What the nodes have beyond a minimal system.
const ROOT_PACKAGES: &str = "openssh-server,sudo,systemd-sysv,dbus,libpam-systemd,iproute2,iputils-ping,nftables,\
                             procps,kmod,ca-certificates,openssh-client,less";

/// Room for the tree while it is built, in MiB.
const ROOM: u64 = 1200;

/// A program that is used, and Debian's package that has it.
const PROGRAMS: [(&str, &str); 6] = [
    ("mmdebstrap", "mmdebstrap"),
    ("systemd-nspawn", "systemd-container"),
    ("nft", "nftables"),
    ("ip", "iproute2"),
    ("ssh", "openssh-client"),
    ("ssh-keygen", "openssh-client"),
];

/// What has to be changed on this machine.
#[derive(Debug, Clone)]
pub(super) struct Missing {
    /// Packages to install.
    packages: Vec<&'static str>,
    /// Whether the root tree has to be built.
    root: bool,
    /// Sysctls to set: key, value now, value wanted.
    sysctls: Vec<(&'static str, String, String)>,
}

/// Root, Linux and apt are there.
pub(super) fn check() -> Result<(), LabError> {
    check_root()?;
    if os("ID").is_none() || !exists("apt-get") || !exists("dpkg-query") {
        return Err(LabError::NotDebian(os("PRETTY_NAME").unwrap_or_else(|| std::env::consts::OS.to_owned())));
    }
    Ok(())
}

/// We are root.
pub(super) fn check_root() -> Result<(), LabError> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective =
        status.lines().find_map(|line| line.strip_prefix("Uid:")).and_then(|ids| ids.split_whitespace().nth(1));
    if effective == Some("0") { Ok(()) } else { Err(LabError::NotRoot) }
}

/// A value of /etc/os-release.
fn os(key: &str) -> Option<String> {
    let text = fs::read_to_string("/etc/os-release").ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
    Some(value.trim_matches('"').to_owned())
}

/// Looks at the machine; changes nothing.
pub(super) fn missing(nodes: usize) -> Result<Missing, LabError> {
    let mut packages: Vec<&'static str> =
        PROGRAMS.iter().filter(|(program, _)| !exists(program)).map(|(_, package)| *package).collect();
    packages.dedup();
    let mut sysctls = Vec::new();
    // Each systemd takes a handful of inotify instances; the usual 128 are gone after 30 nodes.
    let watchers = 1024.max(nodes * 16);
    for (key, least) in [("net.ipv4.ip_forward", 1), ("fs.inotify.max_user_instances", watchers)] {
        let now = sysctl(key)?;
        if now.parse::<usize>().is_ok_and(|now| now < least) {
            sysctls.push((key, now, least.to_string()));
        }
    }
    let made_from = fs::read_to_string(stamp()).unwrap_or_default();
    let root = made_from.trim() != digest() && (made_from.is_empty() || labs().is_empty());
    Ok(Missing { packages, root, sysctls })
}

/// What is about to happen, for people.
pub(super) fn announce(missing: &Missing, new: bool, options: &Options) -> Vec<String> {
    let mut lines = Vec::new();
    if !missing.packages.is_empty() {
        lines.push(format!("  install packages with apt-get: {}", missing.packages.join(" ")));
    }
    if missing.root {
        lines.push(format!(
            "  build a root tree of about 400 MB under {BASE}/root, once, with packages from this machine's archive"
        ));
    }
    for (key, now, wanted) in &missing.sysctls {
        lines.push(format!("  set {key} to {wanted} (now {now})"));
    }
    if new {
        lines.push(format!(
            "  make {} nodes under {}, a network bridge with a private range, and firewall rules that let them out",
            options.nodes,
            Folders::of(&options.name).nodes().display()
        ));
    }
    if !lines.is_empty() {
        lines.insert(
            0,
            "This changes on this machine (`provision lab down` takes it back; packages and root tree with --purge):"
                .to_owned(),
        );
    }
    lines
}

/// Does what [`announce`] said about the machine itself.
pub(super) fn prepare(missing: &Missing, options: &Options, changed: &mut Vec<String>) -> Result<(), LabError> {
    let mut machine = MachineState::read()?;
    if missing.root {
        check_room()?;
    }
    if !missing.packages.is_empty() {
        (options.say)("installing packages");
        apt(&["update"])?;
        // Recorded first: a package too many in the list is simulated away when purging, one too few would stay.
        let new = would_install(&missing.packages)?;
        machine.packages.extend(new);
        machine.write()?;
        let mut arguments = vec!["install", "--no-install-recommends"];
        arguments.extend(&missing.packages);
        apt(&arguments)?;
        changed.push(format!("installed {}", missing.packages.join(" ")));
    }
    for (key, now, wanted) in &missing.sysctls {
        if !machine.sysctls.iter().any(|(known, _)| known == key) {
            machine.sysctls.push(((*key).to_owned(), now.clone()));
            machine.write()?;
        }
        set_sysctl(key, wanted)?;
        changed.push(format!("set {key} to {wanted}"));
    }
    if missing.root {
        (options.say)("building the root tree; this takes about half a minute");
        build_root()?;
        changed.push("built the root tree".to_owned());
    }
    Ok(())
}

/// Removes a root tree that was never finished.
pub(super) fn remove_unfinished() -> Result<(), LabError> {
    remove(&Path::new(BASE).join("root.new"))?;
    remove(&Path::new(BASE).join("root.sh"))
}

/// Puts the sysctls back.
pub(super) fn restore() -> Result<(), LabError> {
    let mut machine = MachineState::read()?;
    for (key, value) in std::mem::take(&mut machine.sysctls) {
        set_sysctl(&key, &value)?;
    }
    if !Path::new(BASE).join("machine.json").exists() {
        return Ok(());
    }
    machine.write()
}

/// What stays after `down`.
pub(super) fn kept() -> Result<Vec<String>, LabError> {
    let machine = MachineState::read()?;
    let mut lines = Vec::new();
    if Path::new(BASE).join("root").exists() {
        lines.push(format!("the root tree {BASE}/root, about 400 MB"));
    }
    if !machine.packages.is_empty() {
        lines.push(format!("packages that `lab up` installed: {}", machine.packages.join(" ")));
    }
    Ok(lines)
}

/// Removes the packages that we installed, the root tree and the last file of ours.
pub(super) fn purge(options: &Options) -> Result<(), LabError> {
    let machine = MachineState::read()?;
    if !machine.packages.is_empty() {
        let ours: Vec<&str> = machine.packages.iter().map(String::as_str).collect();
        let plan = apt(&[&["purge", "--simulate"], ours.as_slice()].concat())?;
        let removed = plan.lines().filter_map(|line| {
            line.strip_prefix("Purg ").or_else(|| line.strip_prefix("Remv "))?.split_whitespace().next()
        });
        let others: Vec<&str> = removed.filter(|package| !ours.contains(package)).collect();
        if others.is_empty() {
            (options.say)("removing packages");
            apt(&[&["purge"], ours.as_slice()].concat())?;
        } else {
            // Somebody came to rely on them since: then they are no longer ours to remove.
            (options.say)(&format!("packages stay, because others need them now: {}", others.join(" ")));
            output("handing packages to apt", command("apt-mark", &[&["auto"], ours.as_slice()].concat()))?;
        }
    }
    let base = Path::new(BASE);
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        remove(&entry.path())?;
    }
    // It stays when a disk of its own is mounted there.
    let _ = fs::remove_dir(base);
    Ok(())
}

fn apt(arguments: &[&str]) -> Result<String, LabError> {
    let mut all = vec!["-y", "-q", "-o", "DPkg::Lock::Timeout=300"];
    all.extend(arguments);
    let mut apt = command("apt-get", &all);
    apt.env("DEBIAN_FRONTEND", "noninteractive");
    for key in ["http_proxy", "https_proxy", "no_proxy"] {
        if let Some(value) = std::env::var_os(key) {
            apt.env(key, value);
        }
    }
    output(&format!("apt-get {}", arguments.first().unwrap_or(&"")), apt)
}

/// Every package that comes with these, by apt's own simulation.
fn would_install(packages: &[&str]) -> Result<Vec<String>, LabError> {
    let mut arguments = vec!["install", "--simulate", "--no-install-recommends"];
    arguments.extend(packages);
    let plan = apt(&arguments)?;
    let present = |package: &&str| {
        output("dpkg-query", command("dpkg-query", &["-W", "-f", "${db:Status-Status}", package]))
            .is_ok_and(|status| status == "installed")
    };
    let named = plan.lines().filter_map(|line| line.strip_prefix("Inst ")?.split_whitespace().next());
    Ok(named.filter(|package| !present(package)).map(str::to_owned).collect())
}

fn sysctl_path(key: &str) -> std::path::PathBuf {
    Path::new("/proc/sys").join(key.replace('.', "/"))
}

fn sysctl(key: &str) -> Result<String, LabError> {
    let path = sysctl_path(key);
    Ok(fs::read_to_string(&path).map_err(LabError::file("cannot read", &path))?.trim().to_owned())
}

fn set_sysctl(key: &str, value: &str) -> Result<(), LabError> {
    let path = sysctl_path(key);
    fs::write(&path, value).map_err(LabError::file("cannot write", &path))
}

/// Says which recipe the tree was made from.
fn stamp() -> std::path::PathBuf {
    Path::new(BASE).join("root.stamp")
}

/// Names the recipe.
fn digest() -> String {
    let sum = Sha256::new().chain_update(ROOT_SCRIPT).chain_update(ROOT_PACKAGES).finalize();
    sum.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn check_room() -> Result<(), LabError> {
    let printed = output("looking for room", command("df", &["-PTm", BASE]))?;
    let fields: Vec<&str> = printed.lines().nth(1).unwrap_or_default().split_whitespace().collect();
    if let Some(kind) = fields.get(1)
        && ["overlay", "nfs", "nfs4", "vfat", "9p", "aufs"].contains(kind)
    {
        return Err(LabError::FileSystem { kind: (*kind).to_owned(), place: BASE.into() });
    }
    match fields.get(4).and_then(|free| free.parse().ok()) {
        Some(free_mib) if free_mib < ROOM => Err(LabError::Disk { free_mib, needed_mib: ROOM, place: BASE.into() }),
        _ => Ok(()),
    }
}

/// The archive's lines for sources.list, as this machine's apt has them, the release itself first.
fn sources() -> Result<(String, Vec<String>), LabError> {
    let release = os("VERSION_CODENAME").unwrap_or_default();
    let vendor = os("ID").unwrap_or_default();
    let ask = || {
        let format = "$(CREATED_BY)|$(ORIGIN)|$(CODENAME)|$(COMPONENT)|$(REPO_URI)";
        output("asking apt for its archives", command("apt-get", &["indextargets", "--format", format]))
    };
    // Debian 12 trusts its archive for all sources; later releases name the key with each source.
    let keys = fs::read_dir("/etc/apt/trusted.gpg.d").into_iter().flatten().flatten();
    let trusted = keys.map(|key| key.file_name()).any(|name| name.to_string_lossy().contains("-archive-"));
    let keyring = format!("/usr/share/keyrings/{vendor}-archive-keyring.gpg");
    let signed =
        if !trusted && Path::new(&keyring).exists() { format!("[signed-by={keyring}] ") } else { String::new() };
    let pick = |printed: &str| {
        let mut lines: Vec<String> = Vec::new();
        for line in printed.lines() {
            let fields: Vec<&str> = line.split('|').collect();
            if let [created, origin, codename, component, uri] = fields.as_slice()
                && *created == "Packages"
                && origin.eq_ignore_ascii_case(&vendor)
                && (*codename == release || codename.starts_with(&format!("{release}-")))
            {
                let line = format!("deb {signed}{uri} {codename} {component}");
                if !lines.contains(&line) {
                    lines.push(line);
                }
            }
        }
        lines.sort_by_key(|line| !line.contains(&format!(" {release} ")));
        lines
    };
    let mut lines = pick(&ask()?);
    if lines.is_empty() {
        // Without lists, apt does not know what it could get from where.
        apt(&["update"])?;
        lines = pick(&ask()?);
    }
    if lines.is_empty() { Err(LabError::NoArchive(format!("{vendor} {release}"))) } else { Ok((release, lines)) }
}

/// apt's settings of this machine without which its archive may not be reachable.
fn apt_options() -> Result<Vec<String>, LabError> {
    let dump = output("asking apt for its settings", command("apt-config", &["dump"]))?;
    let kept = ["Acquire::http::Proxy", "Acquire::https::Proxy", "Acquire::Check-Valid-Until", "Acquire::Check-Date"];
    let mut options: Vec<String> = dump
        .lines()
        .filter(|line| kept.iter().any(|key| line.starts_with(&format!("{key} "))) && !line.ends_with("\"\";"))
        .map(|line| line.trim_end_matches(';').to_owned())
        .collect();
    for (variable, key) in [("http_proxy", "Acquire::http::Proxy"), ("https_proxy", "Acquire::https::Proxy")] {
        if let Ok(value) = std::env::var(variable)
            && !value.is_empty()
            && !options.iter().any(|option| option.starts_with(key))
        {
            options.push(format!("{key} \"{value}\""));
        }
    }
    options.push("Acquire::Languages \"none\"".to_owned());
    Ok(options)
}

fn build_root() -> Result<(), LabError> {
    let (release, lines) = sources()?;
    let base = Path::new(BASE);
    let (root, fresh, script) = (base.join("root"), base.join("root.new"), base.join("root.sh"));
    remove(&stamp())?;
    remove(&fresh)?;
    fs::write(&script, ROOT_SCRIPT).map_err(LabError::file("cannot write", &script))?;
    let mut arguments = vec![
        "--quiet".to_owned(),
        "--variant=minbase".to_owned(),
        format!("--include={ROOT_PACKAGES}"),
        // The lists stay, so that the first installation on a node needs no update.
        "--skip=cleanup/apt/lists".to_owned(),
        format!("--customize-hook=sh {} \"$1\"", script.display()),
    ];
    arguments.extend(apt_options()?.into_iter().map(|option| format!("--aptopt={option}")));
    arguments.extend([release, fresh.display().to_string(), "-".to_owned()]);
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut text = lines.join("\n");
    text.push('\n');
    // It ends when we end, and in a view of its own, so that no mount of /dev stays in a tree that is removed later.
    let guard = ["--pdeathsig", "KILL", "unshare", "--mount", "--propagation", "private", "--pid", "--fork"];
    let mut build = command("setpriv", &guard);
    build.args(["--kill-child", "--mount-proc", "mmdebstrap"]);
    build.args(&words);
    feed("building the root tree", build, &text)?;
    remove(&script)?;
    remove(&root)?;
    fs::rename(&fresh, &root).map_err(LabError::file("cannot rename", &fresh))?;
    let stamp = stamp();
    fs::write(&stamp, digest()).map_err(LabError::file("cannot write", &stamp))
}
