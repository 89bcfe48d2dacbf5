//! Lost links and killed controllers: what was started is finished once, and a rerun goes on.

use crate::support::{Cluster, Ran, kill_9, until};
use std::process::{Command, Stdio};

/// A wish whose command waits for a file, so that the test decides when a phase is in its middle.
const WISH: &str = "version: 1
cluster: recovery
trust: {user: train}
files:
  - {path: /etc/first, content: \"first on {{ node.name }}\\n\"}
commands:
  - name: gate
    check: test -e /opt/done
    apply: |
      echo ran >>/opt/count
      touch /opt/inside
      while [ ! -e /opt/go ]; do sleep 0.05; done
      touch /opt/done
";

fn inside(cluster: &Cluster, node: &str) -> bool {
    cluster.on(node, "test -e /opt/inside").code == 0
}

/// Ends the processes of the login user's SSH sessions, from the outside.
const KILL_SESSIONS: &str = "for p in /proc/[0-9]*; do \
    [ \"$(cat $p/comm 2>/dev/null)\" = sshd ] && tr '\\0' ' ' <$p/cmdline | grep -q '^sshd: admin@' && kill -9 ${p#/proc/}; \
    done; true";

#[test]
fn a_link_cut_in_the_middle_of_a_phase_costs_nothing() {
    let cluster = Cluster::up("t-link", 2, Some(WISH));
    let said = cluster.lab.dir.join("stderr");
    let mut command = cluster.command(&["apply", "--yes", "--progress", "plain"]);
    let child = command.stdout(Stdio::piped()).stderr(std::fs::File::create(&said).unwrap()).spawn().unwrap();
    until("both are inside the phase", || inside(&cluster, "n1") && inside(&cluster, "n2"));
    // Nothing new can come in, and then n2's sessions die.
    let rule = "add table inet cut; add chain inet cut in { type filter hook input priority 0; }; \
                add rule inet cut in tcp dport 22 ct state new reject with tcp reset";
    within(&cluster, "n2", &["nft", rule]);
    within(&cluster, "n2", &["sh", "-c", KILL_SESSIONS]);
    until("the loss is said", || std::fs::read_to_string(&said).unwrap().contains("n2: link lost"));
    within(&cluster, "n2", &["nft", "delete table inet cut"]);
    until("the link is said to be back", || std::fs::read_to_string(&said).unwrap().contains("n2: link is back"));
    for node in ["n1", "n2"] {
        cluster.on(node, "touch /opt/go").exits(0);
    }
    Ran::of(child.wait_with_output().unwrap()).exits(0);
    for node in ["n1", "n2"] {
        assert_eq!(cluster.on(node, "cat /opt/count").out, "ran\n", "{node}");
    }
    // The log of the run is whole: it tells of the phase from before the cut to its end, nothing twice.
    let log = log_of(&cluster, "n2");
    assert_eq!(log.matches(": begin, ").count(), 2, "{log}");
    assert_eq!(log.matches(": end, status 0").count(), 2, "{log}");
    cluster.apply().exits(0).says("0 changed");
}

/// Runs a command in a node's namespaces, without SSH.
fn within(cluster: &Cluster, node: &str, arguments: &[&str]) {
    let holder = cluster.node(node).pid.unwrap();
    let child = |pid: u32| -> u32 {
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        children.split_whitespace().next().unwrap().parse().unwrap()
    };
    let inner = child(holder).to_string();
    let status = Command::new("nsenter").args(["--net", "--pid", "--mount", "-t", &inner]).args(arguments).status();
    assert!(status.unwrap().success(), "{arguments:?}");
}

fn log_of(cluster: &Cluster, node: &str) -> String {
    let runs = cluster.lab.dir.join(".provision/cluster/runs");
    let mut paths: Vec<_> = std::fs::read_dir(runs).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    std::fs::read_to_string(paths[0].join("nodes").join(format!("{node}.log"))).unwrap()
}

fn spawn(cluster: &Cluster) -> std::process::Child {
    cluster
        .command(&["apply", "--yes", "--progress", "plain"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What the user sees of a node's tree after a run: the wished files, the mesh, the count of the gate.
fn outcome(cluster: &Cluster, node: &str) -> String {
    cluster
        .on(
            node,
            "cat /etc/first /opt/count /etc/hosts; cd /home/train/.ssh && ls -A && stat -c '%n %a %U' * && \
             sed -n 's/ssh-ed25519 [^ ]*/KEY/gp' authorized_keys known_hosts; ls /var/lib/provision/pending 2>/dev/null; true",
        )
        .exits(0)
        .out
        .replace(node, "NODE")
}

#[test]
fn a_controller_killed_at_five_moments_is_caught_up_by_a_rerun() {
    let undisturbed = {
        let cluster = Cluster::up("t-calm", 2, Some(WISH));
        let child = spawn(&cluster);
        for node in ["n1", "n2"] {
            until("inside", || inside(&cluster, node));
            cluster.on(node, "touch /opt/go").exits(0);
        }
        Ran::of(child.wait_with_output().unwrap()).exits(0);
        addressless(&cluster, &outcome(&cluster, "n1"))
    };

    // While asking; right after the start; inside the phase; inside on one node and past it on the other; at the end.
    for moment in 0..5 {
        let cluster = Cluster::up("t-kill", 2, Some(WISH));
        let mut child = spawn(&cluster);
        match moment {
            0 => until("a connection is open", || {
                let sockets = Command::new("ss").args(["-Htn", "dst", &cluster.node("n1").address]).output().unwrap();
                !sockets.stdout.is_empty()
            }),
            1 => until("a phase is stored", || cluster.on("n1", "ls /var/lib/provision/runs/*/script").code == 0),
            2 => until("inside", || inside(&cluster, "n1")),
            3 => {
                until("inside", || inside(&cluster, "n1") && inside(&cluster, "n2"));
                cluster.on("n1", "touch /opt/go").exits(0);
                until("n1 is through", || cluster.on("n1", "test -e /opt/done").code == 0);
            }
            _ => {
                until("inside", || inside(&cluster, "n1") && inside(&cluster, "n2"));
                for node in ["n1", "n2"] {
                    cluster.on(node, "touch /opt/go").exits(0);
                }
                until("the mesh begins", || cluster.on("n2", "ls /var/lib/provision/runs/*.mesh").code == 0);
            }
        }
        kill_9(&mut child);
        // The rerun follows what still runs there; the gate opens for it.
        let rerun = spawn(&cluster);
        for node in ["n1", "n2"] {
            until("the gate was reached", || inside(&cluster, node));
            cluster.on(node, "touch /opt/go").exits(0);
        }
        Ran::of(rerun.wait_with_output().unwrap()).exits(0);
        assert_eq!(addressless(&cluster, &outcome(&cluster, "n1")), undisturbed, "killed at moment {moment}");
        cluster.apply().exits(0).says("0 changed");
    }
}

/// Labs have different ranges; the outcome is compared without them.
fn addressless(cluster: &Cluster, text: &str) -> String {
    cluster
        .lab
        .nodes
        .iter()
        .fold(text.to_owned(), |text, node| text.replace(&node.address, &format!("address of {}", node.name)))
}

#[test]
fn one_interrupt_ends_the_following_and_a_rerun_goes_on() {
    let cluster = Cluster::up("t-interrupt", 1, Some(WISH));
    let child = spawn(&cluster);
    until("inside", || inside(&cluster, "n1"));
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
    Ran::of(child.wait_with_output().unwrap()).exits(130).says("interrupted");
    let rerun = spawn(&cluster);
    cluster.on("n1", "touch /opt/go").exits(0);
    Ran::of(rerun.wait_with_output().unwrap()).exits(0);
    assert_eq!(cluster.on("n1", "cat /opt/count").out, "ran\n");
}
