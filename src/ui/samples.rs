//! Plans, events and reports for tests.

use std::collections::BTreeMap;

use crate::event::{Event, LeftOut, Outcome, Report};
use crate::ops::{Change, Reaction, Seen};
use crate::plan::{NodePlan, OpPlan, PhasePlan, Plan};

/// An operation of the step `base`; `title` without the colon part is its id.
pub(super) fn op(title: &str, diff: &[&str]) -> OpPlan {
    OpPlan {
        step: "base".to_owned(),
        id: title.split(": ").next().unwrap_or_default().to_owned(),
        change: Change { title: title.to_owned(), diff: diff.iter().map(|line| (*line).to_owned()).collect() },
        later: None,
    }
}

/// A phase.
pub(super) fn phase(name: &str, operations: Vec<OpPlan>, reactions: Vec<Reaction>) -> PhasePlan {
    PhasePlan { name: name.to_owned(), operations, reactions }
}

/// A plan of these nodes.
pub(super) fn plan(nodes: impl IntoIterator<Item = (String, Vec<PhasePlan>)>) -> Plan {
    let node = |phases| NodePlan {
        running: None,
        machine_id: "m".to_owned(),
        boot_id: "b".to_owned(),
        host_key: "ssh-ed25519 AAAA".to_owned(),
        phases,
        observed: Seen::default(),
    };
    Plan {
        provision_plan: 1,
        manifest: "cluster.yaml".to_owned(),
        cluster: "train-a".to_owned(),
        inputs: BTreeMap::new(),
        left_out: BTreeMap::new(),
        nodes: nodes.into_iter().map(|(name, phases)| (name, node(phases))).collect(),
    }
}

/// A node that did not answer.
pub(super) fn unreachable(address: &str) -> LeftOut {
    LeftOut {
        kind: "unreachable".to_owned(),
        what: format!("no answer on {address} port 22"),
        because: vec!["connection timed out after 10 s".to_owned()],
        fix: vec!["start the machine, or set `state: out` for it".to_owned()],
    }
}

/// A fresh node: a file with its name, packages, the mesh that waits for the others.
pub(super) fn fresh(name: &str, peer: &str) -> Vec<PhasePlan> {
    let mut known = op("file /home/train/.ssh/known_hosts: keys", &[]);
    known.later = Some(format!("{peer}'s key is made in this run"));
    vec![
        phase(
            "node",
            vec![
                op("file /etc/motd: content", &["-welcome", &format!("+{name}")]),
                op("packages: htop, jq", &["+htop", "+jq"]),
                op("file /etc/chrony/chrony.conf: content", &[" pool a", "-pool b", "+\tpool c"]),
            ],
            vec![Reaction::Restart("chrony".to_owned()), Reaction::ReloadSysctl],
        ),
        phase("mesh", vec![known], Vec::new()),
    ]
}

/// A whole run: n1 changes, n2 is as wanted, n3 fails, n4 is left out.
pub(super) fn events() -> Vec<Event> {
    let node = |number: u32| format!("n{number}");
    let motd = || "file /etc/motd".to_owned();
    let start =
        |number| Event::PhaseStarted { node: node(number), phase: "node".into(), operations: 2, resumed: number == 3 };
    vec![
        Event::RunStarted {
            run: "20261201T100000Z-abcd".into(),
            by: "ada@desk".into(),
            manifest: "cluster.yaml".into(),
            nodes: (1..=4).map(node).collect(),
        },
        Event::NodeLeftOut { node: node(4), why: unreachable("10.0.0.4") },
        Event::NodeProbed { node: node(1), changes: 2 },
        Event::NodeProbed { node: node(2), changes: 0 },
        Event::NodeProbed { node: node(3), changes: 2 },
        Event::NodeDone { node: node(2), changed: 0, missing: Vec::new() },
        start(1),
        start(3),
        Event::OpStarted { node: node(1), op: motd() },
        Event::OpDone { node: node(1), op: motd(), outcome: Outcome::Changed, millis: 120 },
        Event::OpStarted { node: node(3), op: motd() },
        Event::OpDone { node: node(3), op: motd(), outcome: Outcome::Fine, millis: 20 },
        Event::LinkLost { node: node(1), why: "connection reset".into() },
        Event::Reconnected { node: node(1) },
        Event::OpStarted { node: node(3), op: "packages".into() },
        Event::OpFailed {
            node: node(3),
            op: "packages".into(),
            during: "mend".into(),
            status: 100,
            tail: vec!["Reading package lists...".into(), "E: Unable to locate package htpo \u{1b}[31m".into()],
        },
        Event::PhaseDone { node: node(3), phase: "node".into(), ok: false },
        Event::NodeFailed {
            node: node(3),
            at: "packages".into(),
            what: "exit status 100".into(),
            fix: vec!["look at the last lines, then apply again".into()],
        },
        Event::OpDone { node: node(1), op: "packages".into(), outcome: Outcome::Changed, millis: 42_300 },
        Event::PhaseDone { node: node(1), phase: "node".into(), ok: true },
        Event::NodeDone { node: node(1), changed: 2, missing: Vec::new() },
        Event::RunDone { exit: 1 },
    ]
}

/// What events add up to.
pub(super) fn report(events: &[Event]) -> Report {
    let mut report = Report::default();
    for event in events {
        report.fold(event);
    }
    report
}
