//! The main job: bare nodes, one apply, everything as wished, and nothing to do the second time.

use std::path::Path;

use crate::support::Cluster;

/// What an idle node's own clock and logins write, and what a run may write in its own place.
fn noise(path: &Path) -> bool {
    ["var/log", "var/lib/systemd"]
        .iter()
        .any(|prefix| path.iter().skip(1).collect::<std::path::PathBuf>().starts_with(prefix))
}

#[test]
fn bare_nodes_one_apply_and_a_second_changes_nothing() {
    let cluster = Cluster::up("t-apply", 3, None);

    // A plan writes nothing.
    let before = cluster.prints();
    cluster.run(&["plan"]).exits(0).says("n[1-3]");
    cluster.run(&["plan", "--exit-code"]).exits(4);
    cluster.run(&["status"]).exits(4);
    unchanged(&before, &cluster);

    cluster.run(&["apply"]).exits(2).says("--yes");
    unchanged(&before, &cluster);

    cluster.apply().exits(0).says("0 failed, 0 left out");

    // Trust: every ordered pair, itself included, by name and by address.
    for from in &cluster.lab.nodes {
        for to in &cluster.lab.nodes {
            for target in [&to.name, &to.address] {
                let said = cluster.on(&from.name, &format!("sudo -u train ssh -o BatchMode=yes {target} hostname"));
                assert_eq!(said.out.trim(), to.name, "{} to {target}: {}", from.name, said.err);
            }
        }
    }
    // The user's own.
    let said = cluster
        .on("n2", "cat /etc/motd; command -v jq; systemctl is-active cron; test -e /opt/lab/READY && echo ready");
    assert!(said.out.contains("This is n2,"), "{}", said.out);
    assert!(said.out.contains("/jq\nactive\nready\n"), "{}", said.out);
    // Private keys never leave a node, and no other user may log in with the mesh's keys.
    let said = cluster
        .on("n1", "cat /home/train/.ssh/authorized_keys; stat -c %a /home/train/.ssh/id_ed25519 /home/train/.ssh");
    assert!(said.out.contains("from=\"") && said.out.contains("no-agent-forwarding,no-X11-forwarding ssh-ed25519"));
    assert!(said.out.ends_with("600\n700\n"), "{}", said.out);

    // The second time: zero changes, zero writes.
    let before = cluster.prints();
    let nodes_file = std::fs::read(cluster.lab.dir.join("cluster.nodes")).unwrap();
    cluster.apply().exits(0).says("0 changed");
    cluster.run(&["status"]).exits(0).says("up to date");
    cluster.run(&["plan", "--exit-code"]).exits(0).says("no changes");
    unchanged(&before, &cluster);
    assert_eq!(std::fs::read(cluster.lab.dir.join("cluster.nodes")).unwrap(), nodes_file);

    // One changed line in the manifest changes just that, with a diff.
    cluster.rewrite(&cluster.text().replace("a node of the practice cluster", "a host of the practice cluster"));
    let plan = cluster.run(&["plan"]).exits(0);
    assert!(plan.out.contains("+") && plan.out.contains("a host of the practice cluster"), "{}", plan.out);
    let report = cluster.run(&["apply", "--yes", "--format", "json"]).exits(0);
    let report: serde_json::Value = serde_json::from_str(&report.out).unwrap();
    assert_eq!(report["nodes"]["n1"]["changed"], 1, "{report}");

    log_and_saved_plan(&cluster);
    a_node_that_is_down_keeps_its_place(&cluster);
}

fn a_node_that_is_down_keeps_its_place(cluster: &Cluster) {
    let facts = cluster.lab.dir.join("facts");
    cluster.run(&["facts", "--out", facts.to_str().unwrap()]).exits(0);
    let text = std::fs::read_to_string(facts.join("n3.json")).unwrap();
    let n3: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&n3["node"], &n3["os"]["id"], &n3["gpus"]), (&"n3".into(), &"debian".into(), &serde_json::json!([])));

    cluster.on("n3", "systemctl poweroff");
    crate::support::until("n3 is down", || cluster.on("n3", "true").code != 0);
    cluster.run(&["status"]).exits(5).says("n[1-2]: up to date").says("n3: left out: no answer on");
    cluster.apply().exits(5).says("0 changed, 0 failed, 1 left out");
    // Declared out: not contacted, not counted, loses nothing on its peers.
    cluster.rewrite(&cluster.text().replace("  - name: n3\n", "  - name: n3\n    state: out\n"));
    cluster.run(&["status"]).exits(0).says("n[1-2]: up to date");
    // An administrator may not be the user of the trust: refused for the node that says so, before anything changes.
    cluster.on("n1", "usermod -a -G sudo train").exits(0);
    cluster.apply().exits(5).says("P0210").says("group sudo");
}

fn log_and_saved_plan(cluster: &Cluster) {
    let log = crate::support::Ran::of(
        crate::support::provision().arg("log").arg("--manifest").arg(cluster.manifest()).output().unwrap(),
    );
    assert_eq!(log.out.lines().filter(|line| line.contains("done")).count(), 2, "{}", log.out);

    // A saved plan does exactly what it says, or refuses.
    cluster.rewrite(&cluster.text().replace("a host of the practice cluster", "a machine of the practice cluster"));
    let file = cluster.lab.dir.join("saved.plan");
    cluster.run(&["plan", "--out", file.to_str().unwrap()]).exits(0);
    cluster.on("n2", "echo moved >/etc/motd");
    let apply = |yes: &str| {
        crate::support::Ran::of(crate::support::provision().args(["apply", yes]).arg(&file).output().unwrap())
    };
    apply("--yes").exits(2).says("n2: path /etc/motd is no longer what the plan saw");
    assert_eq!(cluster.on("n1", "grep -c host /etc/motd").out, "1\n");
    cluster.run(&["plan", "--out", file.to_str().unwrap()]).exits(0);
    apply("--yes").exits(0);
    assert_eq!(cluster.on("n2", "grep -c machine /etc/motd").out, "1\n");
    apply("--yes").exits(2).says("no longer holds");
}

#[track_caller]
fn unchanged(before: &std::collections::BTreeMap<std::path::PathBuf, String>, cluster: &Cluster) {
    let after = cluster.prints();
    let differing: Vec<_> = after
        .iter()
        .filter(|(path, print)| !noise(path) && before.get(*path) != Some(*print))
        .map(|(path, _)| path)
        .chain(before.keys().filter(|path| !noise(path) && !after.contains_key(*path)))
        .collect();
    assert!(differing.is_empty(), "written: {differing:?}");
}

/// A converged node costs one handshake and one exec: counted in the node's own sshd log.
#[test]
fn a_converged_node_costs_one_handshake_and_one_exec() {
    let cluster = Cluster::up("t-cost", 1, None);
    cluster.apply().exits(0);
    let set_up = "mkdir -p /etc/ssh/sshd_config.d; printf 'LogLevel VERBOSE\\n' >/etc/ssh/sshd_config.d/log.conf; \
                  systemctl restart ssh; journalctl --rotate >/dev/null 2>&1; date +%s.%N";
    let since = cluster.on("n1", set_up).exits(0).out;
    cluster.apply().exits(0).says("0 changed");
    let log = cluster.on("n1", &format!("journalctl -t sshd --since @{} --no-pager", since.trim())).exits(0).out;
    // The question itself is one more connection and one more exec.
    assert_eq!(log.matches("Accepted publickey").count(), 2, "{log}");
    assert_eq!(log.matches("Starting session: command").count(), 2, "{log}");
}
