//! Nodes that are broken in the ways of the field: each is named with what, where, why and what to do, and the
//! others go on.

use serde_json::Value;

use crate::support::{Cluster, Ran, provision};

/// A manifest for the lab's nodes; `extra` gives further lines for a node's entry.
fn manifest(cluster: &Cluster, body: &str, extra: impl Fn(&str) -> String) -> String {
    let identity = cluster.lab.dir.join("id_ed25519");
    let mut text = format!(
        "version: 1\ncluster: faults\nssh: {{user: admin, identity: {}, become: sudo, config: false}}\n{body}nodes:\n",
        identity.display()
    );
    for node in &cluster.lab.nodes {
        text.push_str(&format!("  - name: {}\n    address: {}\n{}", node.name, node.address, extra(&node.name)));
        if !extra(&node.name).contains("host_key:") {
            text.push_str(&format!("    host_key: {}\n", node.host_key));
        }
    }
    text
}

fn report(ran: &Ran) -> Value {
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}\n{}", ran.out, ran.err))
}

#[track_caller]
fn problem(report: &Value, node: &str, result: &str, words: &[&str]) {
    let node_report = &report["nodes"][node];
    assert_eq!(node_report["result"], result, "{node}: {report:#}");
    let problem = node_report["problem"].as_str().unwrap();
    for word in words {
        assert!(problem.contains(word), "{node}: {problem:?} does not say {word:?}");
    }
    assert!(!node_report["fix"].as_array().unwrap().is_empty(), "{node}: nothing to do is said");
}

#[test]
fn broken_nodes_are_named_and_the_others_go_on() {
    let cluster = Cluster::up("t-faults", 11, None);
    let wish = "files:\n  - {path: /etc/healthy, content: \"yes\\n\"}\n";
    let extra = |node: &str| match node {
        // A key that is not the node's.
        "n4" => "    host_key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGZHd6V6yM4MgkhVAjqyPl9X5+PkYbIQ1bpVBJgHxFQz\n"
            .to_owned(),
        "n6" => "    ssh: {become_password: \"${env:WRONG_PASSWORD}\"}\n".to_owned(),
        "n8" => "    files:\n      - {path: /srv/full/big, source: big}\n".to_owned(),
        // apt would take a name with a dot that it does not have for an expression, and install what matches.
        "n9" => "    packages: [no-such-package-xyzzy, jq., {name: libjq.-dev, state: absent}]\n".to_owned(),
        _ => String::new(),
    };
    cluster.rewrite(&manifest(&cluster, wish, extra));
    std::fs::write(cluster.lab.dir.join("big"), "x".repeat(300_000)).unwrap();

    let asks = "rm /etc/sudoers.d/*; echo 'admin ALL=(ALL) ALL' >/etc/sudoers.d/x; echo admin:right | chpasswd";
    let garbage = "printf '#!/bin/sh\\nwhile :; do echo garbage; done | head -c 100000\\n' >/bin/garbage; \
                   chmod +x /bin/garbage; usermod -s /bin/garbage admin";
    for (node, script) in [
        ("n2", "systemctl stop ssh.socket ssh.service 2>/dev/null; true"),
        (
            "n3",
            "find / -xdev -path '*/admin/.ssh/authorized_keys' -delete; : >/etc/ssh/empty; \
                echo AuthorizedKeysFile /etc/ssh/empty >/etc/ssh/sshd_config.d/empty.conf; systemctl reload ssh",
        ),
        ("n5", "gpasswd -d admin sudo >/dev/null 2>&1; rm -f /etc/sudoers.d/*; :"),
        ("n6", asks),
        ("n7", garbage),
        ("n8", "mkdir -p /srv/full && mount -t tmpfs -o size=64k tmpfs /srv/full"),
    ] {
        let ran = cluster.on(node, script);
        assert!(ran.code == 0 || node == "n2", "{node}: {ran:?}");
    }
    // A frozen sshd: the kernel still answers, nobody greets.
    let frozen = cluster.on("n10", "kill -STOP $(cat /run/sshd.pid)");
    assert_eq!(frozen.code, 0, "{frozen:?}");
    // A FIFO where a file is expected must not hang the probe.
    cluster.on("n11", "mkfifo /etc/healthy").exits(0);

    let mut command = provision();
    command.env("WRONG_PASSWORD", "canary-4711-wrong");
    command.args(["apply", "--yes", "--format", "json"]).arg(cluster.manifest());
    let ran = Ran::of(command.output().unwrap()).exits(1);
    assert!(!ran.out.contains("canary-4711") && !ran.err.contains("canary-4711"));
    let report = report(&ran);
    assert_eq!(report["nodes"]["n1"]["result"], "changed", "{report:#}");
    problem(&report, "n2", "left-out", &["no answer", "port 22", "refused"]);
    problem(&report, "n3", "left-out", &["admin"]);
    problem(&report, "n4", "left-out", &["host key"]);
    problem(&report, "n5", "left-out", &["sudo"]);
    problem(&report, "n6", "left-out", &["password"]);
    problem(&report, "n7", "left-out", &[]);
    problem(&report, "n8", "failed", &["/srv/full/big", "space"]);
    problem(&report, "n9", "failed", &["no-such-package-xyzzy"]);
    problem(&report, "n10", "left-out", &["no SSH on", "silence"]);
    problem(&report, "n11", "failed", &["/etc/healthy"]);
    assert_eq!(cluster.on("n9", "dpkg-query -W jq libjq1 2>/dev/null").out, "");
    // Nothing half-written.
    assert_eq!(cluster.on("n8", "ls -A /srv/full").out, "");
    assert_eq!(cluster.on("n11", "test -p /etc/healthy && echo still").out, "still\n");

    // Without the nodes that fail while changing, the exit code says that some were left out.
    let mut command = cluster.command(&["apply", "--yes", "--limit", "n[1-3]"]);
    Ran::of(command.env("WRONG_PASSWORD", "x").output().unwrap()).exits(5).says("left out");
    let mut command = cluster.command(&["apply", "--yes", "--require-all", "--limit", "n[1-3]"]);
    Ran::of(command.env("WRONG_PASSWORD", "x").output().unwrap()).exits(5).says("require-all");
}

/// A password that sudo does not ask for is never run, logged, or seen in the arguments of a process.
#[test]
fn a_password_that_sudo_did_not_ask_for_leaks_nowhere() {
    const CANARY: &str = "canary-0815-secret";
    let cluster = Cluster::up("t-canary", 1, None);
    let extra = |_: &str| "    ssh: {become_password: \"${env:CANARY}\"}\n".to_owned();
    let wish = "files:\n  - {path: /etc/token, content: \"token ${env:CANARY}\\n\"}\n\
                commands:\n  - {name: slow, check: test -e /opt/slow, apply: \"touch /opt/started; while [ ! -e /opt/go ]; do sleep 0.1; done; touch /opt/slow\"}\n";
    cluster.rewrite(&manifest(&cluster, wish, extra));
    let mut command = cluster.command(&["apply", "--yes", "--verbose"]);
    command.env("CANARY", CANARY).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let child = command.spawn().unwrap();
    crate::support::until("the command runs", || cluster.on("n1", "test -e /opt/started").code == 0);
    // While it runs: no process of the node or of ours shows it.
    let arguments = "for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$f; echo; done 2>/dev/null";
    assert!(!cluster.on("n1", arguments).out.contains(CANARY));
    let ours = std::process::Command::new("sh").args(["-c", arguments]).output().unwrap();
    assert!(!String::from_utf8_lossy(&ours.stdout).contains(CANARY));
    cluster.on("n1", "touch /opt/go").exits(0);
    let ran = Ran::of(child.wait_with_output().unwrap()).exits(0);
    assert!(!ran.out.contains(CANARY) && !ran.err.contains(CANARY), "{}{}", ran.out, ran.err);
    // Afterwards: in the wanted file, and nowhere else on the node or beside the manifest.
    let found = cluster.on("n1", &format!("journalctl --no-pager | grep -c {CANARY}; grep -rls {CANARY} /etc /var /root /home /opt /tmp /run 2>/dev/null"));
    assert_eq!(found.out, "0\n/etc/token\n", "{}", found.err);
    let beside = std::process::Command::new("grep").args(["-rl", CANARY]).arg(&cluster.lab.dir).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&beside.stdout), "");
    // Who has kept no facts (another clone, another machine) finds the same: nothing to do.
    std::fs::remove_dir_all(cluster.lab.dir.join(".provision/cluster/facts")).unwrap();
    Ran::of(cluster.command(&["status"]).env("CANARY", CANARY).output().unwrap()).exits(0).says("up to date");
    assert_eq!(cluster.on("n1", "stat -c %a /etc/token").out, "600\n");
    // The plan does not show it either, and knows that the content is right.
    let plan = |value: &str| Ran::of(cluster.command(&["plan", "--scripts"]).env("CANARY", value).output().unwrap());
    plan(CANARY).exits(0).says("no changes");
    let other = plan("another-secret").exits(0).says("content: secret");
    assert!(!other.out.contains("another-secret") && !other.out.contains(CANARY), "{}", other.out);
}
