//! One node: its own files, its start, how it does and its end.

use std::fs;
use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::run::{last_lines, output};
use super::state::{Folders, LabState, replace};
use super::{LabError, LabNode, NodeStatus, command, files, network};

/// Runs a node.
const SCRIPT: &str = include_str!("../../templates/lab/node.sh");

/// What booting and logging in write, relative to `/`; a path that ends in `/` stands for all below it too.
const NOISE: [&str; 8] = [
    "etc/machine-id",
    "etc/.pwd.lock",
    "var/log/journal/",
    "var/log/lastlog",
    "var/log/wtmp",
    "var/tmp/systemd-private-",
    "var/lib/systemd/",
    "var/lib/dbus/",
];

/// `n1`, `n2`, ... as far as there are.
pub(super) fn names(folders: &Folders) -> Vec<String> {
    (1..).map(|number| format!("n{number}")).take_while(|name| folders.node(name).join("identity").exists()).collect()
}

/// Makes a node's files when it is new.
pub(super) fn make(
    folders: &Folders,
    lab: &LabState,
    number: usize,
    key: &str,
    changed: &mut Vec<String>,
) -> Result<(), LabError> {
    let name = format!("n{number}");
    let home = folders.node(&name);
    if home.join("identity").exists() {
        return Ok(());
    }
    // Whole or not at all: a half-made identity must never boot.
    let fresh = home.join("identity.new");
    super::state::remove(&fresh)?;
    for folder in ["etc/ssh", "home/admin/.ssh"] {
        directory(&fresh.join(folder))?;
    }
    for folder in ["upper", "work", "tree"] {
        directory(&home.join(folder))?;
    }
    files::make_key(&fresh.join("etc/ssh/ssh_host_ed25519_key"), &name)?;
    let hosts = format!(
        "127.0.0.1\tlocalhost\n127.0.1.1\t{name}\n\n::1\tlocalhost ip6-localhost ip6-loopback\nff02::1\tip6-allnodes\n\
         ff02::2\tip6-allrouters\n"
    );
    write(&fresh.join("etc/hostname"), &format!("{name}\n"), 0o644)?;
    write(&fresh.join("etc/hosts"), &hosts, 0o644)?;
    write(&fresh.join("etc/resolv.conf"), &resolvers(), 0o644)?;
    write(&fresh.join("etc/machine-id"), &machine_id()?, 0o444)?;
    write(&fresh.join("home/admin/.ssh/authorized_keys"), key, 0o600)?;
    set_mode(&fresh.join("home/admin/.ssh"), 0o700)?;
    for path in ["home/admin", "home/admin/.ssh", "home/admin/.ssh/authorized_keys"] {
        let path = fresh.join(path);
        chown(&path, Some(1000), Some(1000)).map_err(LabError::file("cannot give away", &path))?;
    }
    let identity = home.join("identity");
    fs::rename(&fresh, &identity).map_err(LabError::file("cannot rename", &fresh))?;
    changed.push(format!("made {name} with {}", network::address(lab.network, number)));
    Ok(())
}

fn directory(path: &Path) -> Result<(), LabError> {
    fs::create_dir_all(path).map_err(LabError::file("cannot make", path))
}

fn set_mode(path: &Path, mode: u32) -> Result<(), LabError> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(LabError::file("cannot change", path))
}

fn write(path: &Path, text: &str, mode: u32) -> Result<(), LabError> {
    fs::write(path, text).map_err(LabError::file("cannot write", path))?;
    set_mode(path, mode)
}

/// A fresh one; the kernel's UUIDs are random.
fn machine_id() -> Result<String, LabError> {
    let path = Path::new("/proc/sys/kernel/random/uuid");
    let text = fs::read_to_string(path).map_err(LabError::file("cannot read", path))?;
    Ok(text.replace('-', ""))
}

/// The machine's resolvers, unless they listen on its loopback, where no node can ask.
fn resolvers() -> String {
    let read = |path| {
        let text = fs::read_to_string(path).unwrap_or_default();
        let reachable = |line: &&str| {
            !line.starts_with("nameserver 127.") && !line.starts_with("nameserver ::1") && !line.starts_with('#')
        };
        text.lines().filter(reachable).map(|line| format!("{line}\n")).collect::<String>()
    };
    let own = read("/etc/resolv.conf");
    if own.contains("nameserver") { own } else { read("/run/systemd/resolve/resolv.conf") }
}

/// Starts a node and comes back when its process is known.
pub(super) fn start(folders: &Folders, lab: &LabState, number: usize) -> Result<(), LabError> {
    let name = format!("n{number}");
    let home = folders.node(&name);
    replace(&folders.script(), SCRIPT, 0o755)?;
    super::state::remove(&home.join("pid"))?;
    let cable = network::cable(&lab.name, number);
    if network::exists(&cable) {
        output("removing an old cable", command("ip", &["link", "delete", &cable]))?;
    }
    let console = home.join("console");
    let log = fs::File::create(&console).map_err(LabError::file("cannot write", &console))?;
    let errors = log.try_clone().map_err(LabError::file("cannot write", &console))?;
    let (script, root) = (folders.script().display().to_string(), folders.root().display().to_string());
    let mut start = command("setsid", &["--fork", "sh", &script, "outer", &lab.name, &name]);
    start.args([
        &home.display().to_string(),
        &root,
        &network::address(lab.network, number).to_string(),
        &network::PREFIX.to_string(),
        &network::gateway(lab.network).to_string(),
        &network::bridge(&lab.name),
        &cable,
        &network::card(&lab.name, number),
    ]);
    let status = start.stdin(Stdio::null()).stdout(log).stderr(errors).status();
    let broken = |what: &str| LabError::Node { node: name.clone(), what: what.to_owned(), said: said(&home) };
    if !status.is_ok_and(|status| status.success()) {
        return Err(broken("cannot be started"));
    }
    let deadline = Instant::now() + Duration::from_secs(10);
    while fs::read_to_string(home.join("pid")).unwrap_or_default().is_empty() {
        if Instant::now() > deadline {
            return Err(broken("did not start within 10 s"));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

fn said(home: &Path) -> Vec<String> {
    last_lines(&fs::read_to_string(home.join("console")).unwrap_or_default())
}

/// The process of a node, if it is still the one that we started.
pub(super) fn alive(home: &Path) -> Option<u32> {
    let text = fs::read_to_string(home.join("pid")).ok()?;
    let mut words = text.split_whitespace();
    let (pid, started, boot) = (words.next()?, words.next()?, words.next()?);
    if fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim() != boot {
        return None;
    }
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split_whitespace();
    let ended = matches!(fields.next()?, "Z" | "X");
    (!ended && fields.nth(18)? == started).then(|| pid.parse().ok())?
}

/// Waits until sshd greets.
pub(super) fn wait(folders: &Folders, lab: &LabState, number: usize, most: Duration) -> Result<(), LabError> {
    let name = format!("n{number}");
    let home = folders.node(&name);
    let deadline = Instant::now() + most;
    loop {
        if greets(lab, number, Duration::from_secs(2)) {
            return Ok(());
        }
        let what = if alive(&home).is_none() {
            "ended while it booted".to_owned()
        } else if Instant::now() > deadline {
            format!("does not answer on port 22 after {} s", most.as_secs())
        } else {
            std::thread::sleep(Duration::from_millis(20));
            continue;
        };
        return Err(LabError::Node { node: name, what, said: said(&home) });
    }
}

fn greets(lab: &LabState, number: usize, most: Duration) -> bool {
    let address = SocketAddr::from((network::address(lab.network, number), 22));
    let Ok(mut stream) = TcpStream::connect_timeout(&address, most) else { return false };
    let mut greeting = [0; 4];
    stream.set_read_timeout(Some(most)).is_ok() && stream.read_exact(&mut greeting).is_ok() && &greeting == b"SSH-"
}

/// What the library's users see.
pub(super) fn describe(folders: &Folders, lab: &LabState, number: usize) -> Result<LabNode, LabError> {
    let name = format!("n{number}");
    let home = folders.node(&name);
    let path = home.join("identity/etc/ssh/ssh_host_ed25519_key.pub");
    let text = fs::read_to_string(&path).map_err(LabError::file("cannot read", &path))?;
    let host_key = text.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    let address = network::address(lab.network, number).to_string();
    Ok(LabNode { name, address, host_key, upper: home.join("upper"), pid: alive(&home) })
}

/// How it does now.
pub(super) fn status(folders: &Folders, lab: &LabState, number: usize) -> NodeStatus {
    let name = format!("n{number}");
    let home = folders.node(&name);
    let running = alive(&home).is_some();
    let booted = fs::read_to_string(home.join("booted")).ok().and_then(|text| text.trim().parse::<u64>().ok());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    NodeStatus {
        name,
        address: network::address(lab.network, number).to_string(),
        running,
        ssh: running && greets(lab, number, Duration::from_secs(2)),
        uptime_seconds: booted.filter(|_| running).map(|booted| now.saturating_sub(booted)),
    }
}

/// Ends all nodes of a lab and removes their cgroups; their mounts and interfaces go with their namespaces.
pub(super) fn stop_all(folders: &Folders) -> Result<(), LabError> {
    let lab = folders
        .own
        .file_name()
        .filter(|_| folders.own != folders.base)
        .map_or("lab".into(), |name| name.to_string_lossy());
    let homes: Vec<PathBuf> =
        fs::read_dir(folders.nodes()).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    for home in &homes {
        if let Some(pid) = alive(home) {
            // It may just have ended by itself.
            let _ = output("ending a node", command("sh", &["-c", "kill -9 \"$1\"", "sh", &pid.to_string()]));
        }
    }
    let deadline = Instant::now() + Duration::from_secs(30);
    for home in &homes {
        let name = home.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let cable = name.trim_start_matches('n').parse().map(|number| network::cable(&lab, number)).unwrap_or_default();
        loop {
            let groups = cgroups(&lab, &name);
            groups.iter().for_each(|group| remove_group(group));
            let gone = alive(home).is_none() && groups.iter().all(|group| !group.exists());
            if gone && (cable.is_empty() || !network::exists(&cable)) {
                break;
            }
            if Instant::now() > deadline {
                return Err(LabError::Node { node: name, what: "does not end".to_owned(), said: said(home) });
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    if !homes.is_empty() && hierarchies().is_empty() {
        // The nodes mounted them for themselves; so does this, and it can be gone before the kernel has let go.
        let script = "mount -t cgroup2 cgroup2 /sys/fs/cgroup && cd /sys/fs/cgroup || exit 0\n\
                      for attempt in 1 2 3 4 5 6 7 8 9 10; do\n\
                      find . -depth -type d -path \"./provision-lab.$1.*\" -exec rmdir {} + 2>/dev/null && break\n\
                      sleep 0.2\ndone";
        let _ = output("removing cgroups", command("unshare", &["--mount", "sh", "-c", script, "sh", &lab]));
    }
    Ok(())
}

/// A node's cgroups, one in each hierarchy that systemd uses.
fn cgroups(lab: &str, name: &str) -> Vec<PathBuf> {
    let folder = format!("provision-lab.{lab}.{name}");
    hierarchies().into_iter().map(|at| at.join(&folder)).filter(|path| path.exists()).collect()
}

/// Where the cgroup hierarchies that systemd uses are mounted.
fn hierarchies() -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let used =
        |line: &&str| line.contains("- cgroup2 ") || (line.contains("- cgroup ") && line.contains("name=systemd"));
    mounts.lines().filter(used).filter_map(|line| line.split(' ').nth(4).map(PathBuf::from)).collect()
}

/// Deepest first; one that still has processes stays for the next try.
fn remove_group(group: &Path) {
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_group(&entry.path());
        }
    }
    let _ = fs::remove_dir(group);
}

/// Everything in the upper folder that neither boot nor login put there.
pub(super) fn written(upper: &Path) -> Vec<PathBuf> {
    fn walk(upper: &Path, below: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(upper.join(below)).into_iter().flatten().flatten() {
            let path = below.join(entry.file_name());
            let text = format!("{}/", path.display());
            if NOISE.iter().any(|noise| text.starts_with(noise)) {
                continue;
            }
            let folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let before = found.len();
            if folder {
                walk(upper, &path, found);
            }
            // A folder that was only opened on the way to noise says nothing.
            let parent_of_noise = NOISE.iter().any(|noise| noise.starts_with(&text));
            if !folder || (found.len() == before && !parent_of_noise) {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(upper, Path::new(""), &mut found);
    found.sort();
    found
}
