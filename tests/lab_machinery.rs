//! The practice cluster on this machine: up, what its nodes can do, and down without a trace. Needs root.
#![cfg(feature = "lab")]
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use provision::lab::{self, Lab, LabNode, Options};

/// Takes the lab down also when the test fails.
struct Guard(Options);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = lab::down(&self.0, false);
    }
}

fn options(name: &str, directory: &Path, nodes: usize) -> Options {
    Options {
        name: format!("{name}-{}", std::process::id()),
        nodes,
        directory: directory.to_owned(),
        ..Options::default()
    }
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn ssh(lab: &Lab, node: &LabNode, script: &str) -> Output {
    Command::new("ssh")
        .arg("-F")
        .arg(lab.dir.join("ssh_config"))
        .args(["-o", "BatchMode=yes", "-o", "ConnectTimeout=5", "-o", "LogLevel=ERROR", &node.name, script])
        .output()
        .expect("ssh runs")
}

fn says(lab: &Lab, node: &LabNode, script: &str) -> String {
    let output = ssh(lab, node, script);
    assert!(output.status.success(), "{script}: {}", text(&output));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Whatever of this lab can be seen on the machine: processes, interfaces, tables, mounts, cgroups, routes.
fn traces(name: &str, tag: &str, network: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut look = |program: &str, arguments: &[&str], words: &[&str]| {
        let output = Command::new(program).args(arguments).output().expect("a program of the machine runs");
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            if words.iter().any(|word| line.contains(word)) {
                found.insert(format!("{program}: {line}"));
            }
        }
    };
    look("ps", &["axww", "-o", "args"], &[&format!("/{name}/"), &format!(" {name} ")]);
    look("ip", &["-o", "link"], &[tag]);
    look("ip", &["route", "show", "table", "all"], &[network]);
    look("nft", &["list", "tables"], &[tag]);
    look("cat", &["/proc/self/mountinfo"], &[name]);
    look("find", &["/sys/fs/cgroup", "-maxdepth", "3", "-name", "provision-lab*"], &[name]);
    look("find", &["/var/lib/provision-lab", "-maxdepth", "2"], &[name]);
    found
}

fn sysctls() -> Vec<String> {
    ["net/ipv4/ip_forward", "fs/inotify/max_user_instances"]
        .iter()
        .map(|key| std::fs::read_to_string(format!("/proc/sys/{key}")).expect("a sysctl"))
        .collect()
}

fn wait_for(what: &str, mut happened: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !happened() {
        assert!(Instant::now() < deadline, "{what} did not happen within 60 s");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_lab_comes_up_works_grows_and_leaves_no_trace() {
    let directory = tempfile::tempdir().expect("a folder");
    let wish = options("machinery", directory.path(), 2);
    let sysctls_before = sysctls();
    let guard = Guard(wish.clone());
    let first = lab::up(&wish).unwrap_or_else(|error| panic!("{error}: {:?}", error.because()));
    assert_eq!(first.nodes.len(), 2);

    let (n1, n2) = (&first.nodes[0], &first.nodes[1]);
    assert_eq!(says(&first, n1, "hostname; id -un; sudo id -u"), "n1\nadmin\n0");
    assert_eq!(says(&first, n2, "systemctl is-system-running --wait"), "running");
    assert_eq!(says(&first, n1, "getent hosts n1 | tr -s ' '"), "127.0.1.1 n1");
    assert_ne!(says(&first, n1, "cat /etc/machine-id"), says(&first, n2, "cat /etc/machine-id"));
    assert_eq!(n1.written(), Vec::<PathBuf>::new(), "booting and logging in count as nothing written");

    // What a run writes is what lies in the upper folder.
    says(&first, n1, "echo x | sudo tee /opt/proof");
    assert_eq!(n1.written(), [PathBuf::from("opt/proof")]);
    assert!(!n2.upper.join("opt/proof").exists());

    // Real packages and services; the lists are there already.
    says(&first, n1, "sudo DEBIAN_FRONTEND=noninteractive apt-get install -y -qq tree cron");
    assert_eq!(says(&first, n1, "tree --version | cut -d' ' -f1; systemctl is-active cron"), "tree\nactive");
    // Logins can only go on with the host key that was written.
    let text_of = |file: &str| std::fs::read_to_string(first.dir.join(file)).expect("a file of the lab");
    assert!(text_of("known_hosts").contains(&n1.host_key));
    assert!(text_of("cluster.yaml").contains(&format!("address: {}", n2.address)));

    // A second time changes nothing.
    let second = lab::up(&wish).expect("a second time");
    assert_eq!(second.changed, Vec::<String>::new());
    assert_eq!(second.nodes[0].pid, n1.pid);

    // A reboot is one, and what was written survives it.
    let boot = says(&first, n1, "cat /proc/sys/kernel/random/boot_id");
    ssh(&first, n1, "sudo systemctl reboot");
    wait_for("the reboot", || {
        let output = ssh(&first, n1, "cat /proc/sys/kernel/random/boot_id");
        output.status.success() && String::from_utf8_lossy(&output.stdout).trim() != boot
    });
    assert_eq!(
        says(&first, n1, "systemctl is-system-running --wait; cat /opt/proof; systemctl is-active cron"),
        "running\nx\nactive"
    );

    // Switched off, it is started again; asked for more, more come. The others are left alone.
    ssh(&first, n2, "sudo systemctl poweroff");
    wait_for("the end of n2", || {
        lab::status(&wish.name).expect("a status").expect("a lab").iter().any(|node| !node.running)
    });
    let grown = lab::up(&Options { nodes: 3, ..wish.clone() }).expect("one more");
    assert_eq!(grown.nodes.len(), 3);
    assert_eq!(grown.nodes[0].pid, n1.pid);
    assert_eq!(grown.nodes[1].host_key, n2.host_key);
    let status = lab::status(&wish.name).expect("a status").expect("a lab");
    assert!(status.iter().all(|node| node.running && node.ssh), "{status:?}");
    let answer = says(&grown, &grown.nodes[2], &format!("ping -c1 -W2 {} >/dev/null && echo reached", n1.address));
    assert_eq!(answer, "reached");

    // Nothing stays.
    let bridge = Command::new("ip").args(["-o", "-4", "address", "show"]).output().expect("ip runs");
    let (network, _) = n1.address.rsplit_once('.').expect("an address");
    let bridge = String::from_utf8_lossy(&bridge.stdout)
        .lines()
        .find(|line| line.contains(&format!("{network}.1/")))
        .and_then(|line| line.split_whitespace().nth(1).map(str::to_owned))
        .expect("the lab's bridge");
    let tag = bridge.trim_start_matches("plab").to_owned();
    assert!(traces(&wish.name, &tag, network).len() > 6, "the search for traces must find a lab that is up");
    lab::down(&wish, false).expect("down");
    assert_eq!(traces(&wish.name, &tag, network), BTreeSet::new());
    assert!(!first.dir.exists());
    assert!(lab::status(&wish.name).expect("a status").is_none());
    // Another test's lab may still need them.
    if !Path::new("/var/lib/provision-lab/labs").exists() && !Path::new("/var/lib/provision-lab/state.json").exists() {
        assert_eq!(sysctls(), sysctls_before);
    }
    drop(guard);
}

#[test]
fn down_cleans_up_after_an_up_that_failed() {
    let directory = tempfile::tempdir().expect("a folder");
    let wish = options("broken", directory.path(), 1);
    let _guard = Guard(wish.clone());
    lab::up(&wish).unwrap_or_else(|error| panic!("{error}: {:?}", error.because()));
    // A node's files are half gone and it is running: nothing that `up` could have left is worse.
    let home = PathBuf::from("/var/lib/provision-lab/labs").join(&wish.name).join("nodes/n1");
    std::fs::remove_dir_all(home.join("identity")).expect("the identity goes");
    lab::down(&wish, false).expect("down");
    assert!(!home.exists());
    assert_eq!(traces(&wish.name, "no-such-tag", "no-such-network"), BTreeSet::new());
}

#[test]
fn a_manifest_of_the_users_own_is_filled_in_and_edits_stay() {
    let directory = tempfile::tempdir().expect("a folder");
    let manifest = directory.path().join("mine.yaml");
    std::fs::write(&manifest, "version: 1\ncluster: mine\npackages: [jq]\nnodes: []\n").expect("a manifest");
    let wish = Options { manifest: Some(manifest), ..options("own", directory.path(), 1) };
    let _guard = Guard(wish.clone());
    let lab = lab::up(&wish).unwrap_or_else(|error| panic!("{error}: {:?}", error.because()));
    let path = lab.dir.join("cluster.yaml");
    let written = std::fs::read_to_string(&path).expect("cluster.yaml");
    assert!(written.contains("packages: [jq]") && written.contains("name: n1") && !written.contains("nodes: []"));

    let edited = written.replace("[jq]", "[jq, htop]");
    std::fs::write(&path, &edited).expect("an edit");
    let again = lab::up(&Options { manifest: None, ..wish.clone() }).expect("a second time");
    assert_eq!(again.changed, Vec::<String>::new());
    assert_eq!(std::fs::read_to_string(&path).expect("cluster.yaml"), edited);
}

#[test]
fn a_wish_that_cannot_be_is_refused_with_a_way_out() {
    for (name, nodes) in [("Not A Name", 1), ("../x", 1), ("fine", 0), ("fine", 5000)] {
        let error = lab::up(&Options { name: name.to_owned(), nodes, ..Options::default() }).expect_err(name);
        assert!(!error.fix().is_empty(), "{error}");
    }
    assert!(!Path::new("/var/lib/provision-lab/labs/fine").exists());
}
