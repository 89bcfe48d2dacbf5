//! What a hurried person does: two runs at once, a saved plan with a limit, Ctrl-C while nodes are asked.

use std::process::Stdio;

use crate::support::{Cluster, Ran, provision, until};

const WISH: &str = "version: 1\ncluster: edges\ntrust: {user: train}\n";

#[test]
fn two_runs_on_different_nodes_forget_neither_and_a_saved_plan_may_be_limited() {
    let cluster = Cluster::up("t-edges", 2, Some(WISH));

    // A plan for all, applied to one node: fewer keys are made in that run, which is no difference.
    let saved = cluster.lab.dir.join("saved.plan");
    cluster.run(&["plan", "--out", saved.to_str().unwrap()]).exits(0);
    let apply = |limit: &str| {
        let mut command = provision();
        Ran::of(command.args(["apply", "--yes", "--limit", limit]).arg(&saved).output().unwrap())
    };
    apply("n2,!n2").exits(2).says("selects no node");
    apply("n2").exits(0).says("0 failed");
    for node in ["n1", "n2"] {
        cluster.on(node, "userdel -r train; true");
    }
    std::fs::remove_file(cluster.lab.dir.join("cluster.nodes")).unwrap();

    // Both read NAME.nodes before either writes it: one waits inside until the other has ended.
    let gate = "commands:\n  - {name: gate, check: test -e /opt/done, \
                apply: \"touch /opt/in; while [ ! -e /opt/go ]; do sleep 0.05; done; touch /opt/done\"}\n";
    cluster.rewrite(&cluster.text().replace("trust: {user: train}\n", &format!("trust: {{user: train}}\n{gate}")));
    cluster.on("n2", "touch /opt/done").exits(0);
    let mut slow = cluster.command(&["apply", "--yes", "--limit", "n1"]);
    let slow = slow.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("the first is inside", || cluster.on("n1", "test -e /opt/in").code == 0);
    cluster.run(&["apply", "--yes", "--limit", "n2"]).exits(0);
    cluster.on("n1", "touch /opt/go").exits(0);
    Ran::of(slow.wait_with_output().unwrap()).exits(0);
    let text = std::fs::read_to_string(cluster.lab.dir.join("cluster.nodes")).unwrap();
    assert_eq!(text.matches("trust_key:").count(), 2, "{text}");
    // And so the next run completes the mesh.
    cluster.apply().exits(0);
    cluster.apply().exits(0).says("0 changed");
}

#[test]
fn an_interrupt_while_nodes_are_asked_is_said_once() {
    let cluster = Cluster::up("t-asked", 2, Some("version: 1\ncluster: edges\nfiles: [{path: /etc/x, content: x}]\n"));
    // sshd takes the connection and says nothing more.
    for node in ["n1", "n2"] {
        cluster.on(node, "kill -STOP $(cat /run/sshd.pid)").exits(0);
    }
    for command in ["plan", "apply", "status", "facts"] {
        let mut command = cluster.command(&[command]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let port = |text: String| text.lines().filter(|line| line.contains(":0016 01")).count();
        let sockets = format!("/proc/{}/net/tcp", child.id());
        until("both are asked", || port(std::fs::read_to_string(&sockets).unwrap_or_default()) >= 2);
        let number = child.id().to_string();
        assert!(std::process::Command::new("kill").args(["-INT", &number]).status().unwrap().success());
        let ran = Ran::of(child.wait_with_output().unwrap()).exits(130);
        assert_eq!(ran.err.lines().filter(|line| !line.starts_with("asking")).count(), 1, "{}", ran.err);
        assert!(ran.err.lines().last().unwrap().starts_with("interrupted: "), "{}", ran.err);
    }
}

/// With NAME.nodes lost, a peer that is out of reach keeps its place on the others (P18).
#[test]
fn a_lost_nodes_file_and_a_peer_out_of_reach_remove_nobody() {
    let cluster = Cluster::up("t-lost", 2, Some(WISH));
    // Without its key in the manifest, only NAME.nodes could know the peer.
    let text = cluster.text().replace("ssh:\n", "ssh:\n  host_keys: accept-new\n");
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("host_key:"));
    cluster.rewrite(&lines.fold(String::new(), |text, line| text + line + "\n"));
    cluster.apply().exits(0).says("0 failed");
    let look = "cat /home/train/.ssh/known_hosts /home/train/.ssh/authorized_keys";
    let before = cluster.on("n1", look).exits(0).out;
    assert!(before.contains("train@n2") && before.contains("n2,"), "{before}");

    std::fs::remove_file(cluster.lab.dir.join("cluster.nodes")).unwrap();
    cluster.on("n2", "systemctl poweroff");
    until("n2 is down", || cluster.on("n2", "true").code != 0);
    cluster.apply().exits(5).says("0 changed, 0 failed, 1 left out");
    assert_eq!(cluster.on("n1", look).out, before);
    cluster.run(&["status"]).exits(5).says("n1: up to date");
}

/// The others' mesh goes on without a node that fails before it has a key, says so, and is completed later.
#[test]
fn a_node_without_a_key_is_missed_and_a_phase_that_cannot_start_says_why() {
    let cluster = Cluster::up("t-nokey", 2, Some(WISH));
    let break_it = "mv /usr/sbin/useradd /usr/sbin/kept; printf '#!/bin/sh\\nexit 9\\n' >/usr/sbin/useradd; chmod +x /usr/sbin/useradd";
    cluster.on("n2", break_it).exits(0);
    let ran = cluster.apply().exits(1);
    let line = ran.out.lines().find(|line| line.starts_with("n1 ")).unwrap();
    assert!(line.contains("changed") && line.ends_with("trust: no key was made on n2"), "{}", ran.out);

    // No room for the phase's script: the tool's own words are told, and stand in the node's log.
    cluster
        .on(
            "n2",
            "mv /usr/sbin/kept /usr/sbin/useradd; mount -t tmpfs -o size=4k none /var/lib/provision; \
                      head -c 4096 /dev/zero >/var/lib/provision/fill",
        )
        .exits(0);
    let ran = cluster.apply().exits(1).says("could not be started").says("df -h /var/lib/provision on n2");
    let folder = cluster.lab.dir.join(".provision/cluster/runs");
    let last = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).max().unwrap();
    let log = std::fs::read_to_string(last.join("nodes/n2.log")).unwrap_or_else(|why| panic!("{why}: {}", ran.out));
    assert!(log.contains("cannot write /var/lib/provision/runs/"), "{log}");

    cluster.on("n2", "umount /var/lib/provision").exits(0);
    cluster.apply().exits(0);
    assert_eq!(cluster.on("n1", "sudo -u train ssh -o BatchMode=yes n2 hostname").out, "n2\n");
    cluster.apply().exits(0).says("0 changed");
}

/// Ctrl-C at the question ends the run with a last line: nothing may wait for whoever asks.
#[test]
fn an_interrupt_at_the_question_ends_the_run() {
    let cluster = Cluster::up("t-ask", 1, Some("version: 1\ncluster: edges\nfiles: [{path: /etc/x, content: x}]\n"));
    let typescript = cluster.lab.dir.join("typescript");
    let line = format!("exec {} apply {}", env!("CARGO_BIN_EXE_provision"), cluster.manifest().display());
    let mut command = std::process::Command::new("script");
    command.args(["-qefc", &line]).arg(&typescript).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    let shown = || std::fs::read_to_string(&typescript).unwrap_or_default();
    until("it asks", || shown().contains("[y/N]"));
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"\x03").unwrap();
    until("it says that nothing was changed", || shown().contains("interrupted: nothing was changed"));
    assert_eq!(child.wait().unwrap().code(), Some(130), "{}", shown());
}
