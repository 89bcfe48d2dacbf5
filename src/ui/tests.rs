//! How whole plans, reports and logs look.

use std::fmt::Write as _;

use super::log::RunEntry;
use super::report::Failures;
use super::samples::*;
use super::*;
use crate::diag::ExitCode;
use crate::event::{Event, NodeReport, Outcome, Report};
use crate::ops::Reaction;
use crate::plan::Plan;

fn human(plan: &Plan) -> String {
    plan::human(plan, &View::plain())
}

#[test]
fn three_equal_nodes_and_one_left_out() {
    let mut plan = plan((1..=3).map(|n| (format!("n{n}"), fresh(&format!("n{n}"), &format!("n{}", n % 3 + 1)))));
    plan.left_out.insert("n4".into(), unreachable("10.0.0.4"));
    insta::assert_snapshot!(human(&plan));
    assert!(human(&plan).ends_with("\n4 nodes: 12 changes; 1 left out\n"));
}

#[test]
fn a_hundred_nodes_in_two_variants() {
    let nodes = (1..=100).map(|n| {
        let name = format!("gpu{n:03}");
        let mut phases = vec![fresh(&name, "gpu000").remove(0)];
        if n > 60 {
            phases[0].operations.truncate(1);
            phases[0].reactions.clear();
        }
        (name, phases)
    });
    insta::assert_snapshot!(human(&plan(nodes)));
}

#[test]
fn full_view_shows_every_variant_and_every_line() {
    let plan = plan(["n1", "n2"].map(|name| (name.to_owned(), fresh(name, "n3"))));
    let text = plan::human(&plan, &View::plain().full(true));
    assert!(text.contains("+n1") && text.contains("+n2") && !text.contains("as on"), "{text}");
}

#[test]
fn nodes_without_changes_and_empty_plans() {
    let same = plan(["n1", "n2", "n3"].map(|name| (name.to_owned(), vec![])));
    assert_eq!(human(&same), "n[1-3]: no changes\n\n3 nodes: 0 changes; 0 left out\n");
    assert_eq!(human(&plan([])), "0 nodes: 0 changes; 0 left out\n");
    let mixed = plan([
        ("n1".to_owned(), vec![]),
        ("n2".to_owned(), vec![phase("node", vec![op("package jq: gone", &["-jq 1.6"])], vec![])]),
        ("n3".to_owned(), vec![]),
    ]);
    insta::assert_snapshot!(human(&mixed));
}

#[test]
fn what_differs_in_kind_does_not_fold() {
    let make = |diff: &[&str], reactions: Vec<Reaction>, later: Option<&str>| {
        let mut operation = op("file /etc/x: content", diff);
        operation.later = later.map(str::to_owned);
        vec![phase("node", vec![operation], reactions)]
    };
    let plan = plan([
        ("a".to_owned(), make(&["+x"], vec![], None)),
        ("b".to_owned(), make(&["-y", "+x"], vec![], None)),
        ("c".to_owned(), make(&["+x"], vec![Reaction::Restart("x".into())], None)),
        ("d".to_owned(), make(&["+x"], vec![], Some("reboot"))),
    ]);
    let text = human(&plan);
    for name in ["a", "b", "c", "d"] {
        assert!(text.contains(&format!("{name}: 1 change\n")), "{text}");
    }
}

#[test]
fn left_out_nodes_fold_when_only_name_and_address_differ() {
    let mut plan = plan([]);
    for n in 5..=7 {
        plan.left_out.insert(format!("n{n}"), unreachable(&format!("10.0.0.{n}")));
    }
    let mut key = unreachable("10.0.0.9");
    key.kind = "host-key".into();
    key.what = "n9 shows another host key than cluster.nodes has".into();
    plan.left_out.insert("n9".into(), key);
    insta::assert_snapshot!(human(&plan));
    insta::assert_snapshot!(status::human(&plan, &View::plain()));
}

#[test]
fn secrets_long_diffs_and_long_lines() {
    let long: Vec<String> = (1..=100).map(|n| format!("+line {n}")).collect();
    let long: Vec<&str> = long.iter().map(String::as_str).collect();
    let wide = format!("+{}", "ü".repeat(3000));
    let phases = vec![phase(
        "node",
        vec![
            op("file /etc/token: content", &["content: secret"]),
            op("file /etc/long: content", &long),
            op("file /etc/wide: content", &[&wide]),
            op("file /etc/near: content", &long[..41]),
        ],
        vec![],
    )];
    let text = human(&plan([("n1".to_owned(), phases)]));
    assert!(text.contains("  ~ file /etc/token: content\n      content: secret\n"));
    assert!(text.contains("      +line 40\n      ... 60 more lines\n"), "{text}");
    assert!(text.contains("ü ... 1001 more characters\n"));
    assert!(text.contains("      +line 41\n\n"), "a single line more is shown: {text}");
}

#[test]
fn hostile_text_is_shown_and_not_obeyed() {
    let evil = "\u{1b}[2J\u{9b}1m\n\u{202e}\r\u{7}";
    let mut operation = op(evil, &["+x"]);
    operation.change.diff = vec![format!("+{evil}")];
    operation.later = Some(evil.into());
    let phases = vec![phase(evil, vec![operation], vec![Reaction::Restart(evil.into())]), phase("b", vec![], vec![])];
    let mut plan = plan([(evil.to_owned(), phases)]);
    let mut why = unreachable(evil);
    why.because.push(evil.into());
    why.fix.push(evil.into());
    plan.left_out.insert(format!("x{evil}"), why);
    let mut report = Report { run: evil.into(), exit: Some(1), ..Report::default() };
    let node =
        NodeReport { result: evil.into(), changed: 1, already: 1, problem: Some(evil.into()), fix: vec![evil.into()] };
    report.nodes.insert(evil.into(), node);
    let mut failures = Failures::default();
    failures.0.insert(
        evil.into(),
        report::Failure { op: evil.into(), during: evil.into(), status: 1, tail: vec![evil.into()] },
    );
    let entry = RunEntry {
        run: evil.into(),
        by: evil.into(),
        when: evil.into(),
        manifest: evil.into(),
        folder: evil.into(),
        report: report.clone(),
        events: events(),
    };
    let entries = [entry];
    for text in [
        human(&plan),
        status::human(&plan, &View::plain()),
        report::human(&report, &failures, Some(evil), &View::plain()),
        log::runs(&entries, &View::plain()),
        log::run(&entries[0], &View::plain()),
        log::node(&entries, evil, &View::plain()),
        log::node(&[], evil, &View::plain()),
        plan::json(&plan).unwrap(),
        report::json(&report).unwrap(),
        log::runs_json(&entries).unwrap(),
        log::run_json(&entries[0]).unwrap(),
    ] {
        assert!(!text.replace('\n', "").contains(text::is_hidden), "{text:?}");
    }
}

#[test]
fn colour_adds_only_escape_sequences() {
    let mut plan = plan(["n1", "n2"].map(|name| (name.to_owned(), fresh(name, "n3"))));
    plan.left_out.insert("n4".into(), unreachable("10.0.0.4"));
    let (report, failures) = folded();
    let view = View { color: true, full: false };
    for (colored, plain) in [
        (plan::human(&plan, &view), human(&plan)),
        (status::human(&plan, &view), status::human(&plan, &View::plain())),
        (report::human(&report, &failures, None, &view), report::human(&report, &failures, None, &View::plain())),
    ] {
        assert!(colored.contains('\u{1b}'));
        assert_eq!(anstream::adapter::strip_str(&colored).to_string(), plain);
    }
}

#[test]
fn plan_file_begins_with_its_format_and_reads_back() {
    let plan = plan([("n1".to_owned(), fresh("n1", "n2"))]);
    let json = plan::json(&plan).unwrap();
    assert!(json.starts_with("{\n  \"provision_plan\": 1,"));
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
}

#[test]
fn status_is_a_line_for_each_state() {
    let one = |name: &str| vec![fresh(name, "n9").remove(0)];
    let plan = plan([
        ("n1".to_owned(), vec![]),
        ("n2".to_owned(), one("n2")),
        ("n3".to_owned(), one("n3")),
        ("n4".to_owned(), vec![]),
    ]);
    insta::assert_snapshot!(status::human(&plan, &View::plain()), @r"
    n[1,4]: up to date
    n[2-3]: 3 changes pending
    4 nodes: 2 up to date, 2 with changes pending, 0 left out
    ");
}

#[test]
fn ten_thousand_nodes() {
    let mut plan = plan((0..10_000).map(|n| {
        let name = format!("gpu{n:05}");
        let phases = fresh(&name, "gpu00000");
        (name, phases)
    }));
    for n in 0..10_000 {
        plan.left_out.insert(format!("x{n:05}"), unreachable(&format!("10.0.{}.{}", n / 256, n % 256)));
    }
    let text = human(&plan);
    assert!(text.contains("gpu[00000-09999]: 4 changes each\n"), "{}", text.lines().count());
    assert!(text.contains("not planned: x[00000-09999], no answer on 10.0.0.0 port 22 (as on x00000)\n"));
    assert!(text.ends_with("\n20000 nodes: 40000 changes; 10000 left out\n"));
    assert_eq!(status::human(&plan, &View::plain()).lines().count(), 3);
    // Folding off is the worst case: as many groups as nodes.
    let full = plan::human(&plan, &View::plain().full(true));
    assert!(full.lines().count() > 100_000);
}

fn folded() -> (Report, Failures) {
    let events = events();
    let mut failures = Failures::default();
    events.iter().for_each(|event| failures.fold(event));
    (report(&events), failures)
}

#[test]
fn report_of_every_kind_of_result() {
    let (report, failures) = folded();
    insta::assert_snapshot!(report::human(&report, &failures, Some(".provision/cluster/runs/R"), &View::plain()));
    assert_eq!(report::exit_code(&report), ExitCode::Failed);
}

#[test]
fn equal_results_fold_and_say_each() {
    let mut report = Report { run: "R".into(), exit: Some(0), ..Report::default() };
    for n in 1..=16 {
        let node = NodeReport { result: "changed".into(), changed: 7, ..NodeReport::default() };
        report.nodes.insert(format!("gpu{n:02}"), node);
    }
    insta::assert_snapshot!(report::human(&report, &Failures::default(), None, &View::plain()), @r"
    nodes       result   changed
    gpu[01-16]  changed  7 each

    done: 16 nodes; 112 changed, 0 failed, 0 left out
    ");
}

#[test]
fn equal_failures_fold_with_one_sample() {
    let mut all = Vec::new();
    for n in 1..=20 {
        let node = format!("gpu{n:02}");
        all.push(Event::OpFailed {
            node: node.clone(),
            op: "packages".into(),
            during: "mend".into(),
            status: 100,
            tail: vec![format!("E: no space left on {node}")],
        });
        all.push(Event::NodeFailed {
            node,
            at: "packages".into(),
            what: "exit status 100".into(),
            fix: vec!["free some space".into()],
        });
    }
    let mut failures = Failures::default();
    all.iter().for_each(|event| failures.fold(event));
    insta::assert_snapshot!(report::human(&report(&all), &failures, Some("runs/R"), &View::plain()));
}

#[test]
fn last_line_says_the_same_as_the_exit_code() {
    let make = |results: &[&str], exit| Report {
        run: "R".into(),
        nodes: results
            .iter()
            .enumerate()
            .map(|(n, result)| {
                (format!("n{n}"), NodeReport { result: (*result).into(), changed: 7, ..NodeReport::default() })
            })
            .collect(),
        exit,
    };
    let mut shown = String::new();
    for (results, exit) in [
        (&["changed", "changed", "changed"][..], Some(0)),
        (&["changed", "failed"], Some(1)),
        (&["changed", "left-out"], Some(5)),
        (&["changed", "unfinished"], Some(130)),
        (&["changed"], Some(4)),
        (&[], Some(2)),
        (&[], Some(3)),
        (&["changed", "unfinished"], None),
        // The exit code says less than the nodes: the worse counts.
        (&["failed"], Some(0)),
        (&["unfinished"], Some(0)),
    ] {
        let _ = writeln!(shown, "{:?} {}", exit, report::last_line(&make(results, exit)));
    }
    insta::assert_snapshot!(shown, @r"
    Some(0) done: 3 nodes; 21 changed, 0 failed, 0 left out
    Some(1) failed: 2 nodes; 14 changed, 1 failed, 0 left out
    Some(5) incomplete: 2 nodes; 14 changed, 0 failed, 1 left out
    Some(130) interrupted: 2 nodes; 14 changed, 0 failed, 0 left out, 1 unfinished
    Some(4) changes pending: 1 node; 7 changed, 0 failed, 0 left out
    Some(2) refused: 0 nodes; 0 changed, 0 failed, 0 left out
    Some(3) refused: 0 nodes; 0 changed, 0 failed, 0 left out
    None unfinished: 2 nodes; 14 changed, 0 failed, 0 left out, 1 unfinished
    Some(0) failed: 1 node; 7 changed, 1 failed, 0 left out
    Some(0) failed: 1 node; 7 changed, 0 failed, 0 left out, 1 unfinished
    ");
    // Whatever the nodes are: "done" and 0 failed, 0 left out, 0 unfinished are the same.
    let kinds = ["converged", "changed", "failed", "left-out", "unfinished"];
    for a in kinds {
        for b in kinds {
            let mut report = make(&[a, b], None);
            report.exit = Some(report::exit_code(&report).number());
            let line = report::last_line(&report);
            assert_eq!(line.starts_with("done: "), report.exit == Some(0), "{line}");
            assert_eq!(line.ends_with(" 0 failed, 0 left out"), report.exit == Some(0), "{line}");
        }
    }
}

#[test]
fn wide_names_keep_the_columns() {
    let mut report = Report { run: "R".into(), exit: Some(0), ..Report::default() };
    for (name, changed) in [("n1", 3), ("knoten-世界", 12), (&*"x".repeat(60), 7)] {
        let node = NodeReport { result: "changed".into(), changed, ..NodeReport::default() };
        report.nodes.insert(name.into(), node);
    }
    insta::assert_snapshot!(report::human(&report, &Failures::default(), None, &View::plain()));
}

fn entries() -> Vec<RunEntry> {
    let run = |run: &str, when: &str, events: Vec<Event>| RunEntry {
        run: run.into(),
        by: "ada@desk".into(),
        when: when.into(),
        manifest: "cluster.yaml".into(),
        folder: format!(".provision/cluster/runs/{run}"),
        report: report(&events),
        events,
    };
    let begun = events().into_iter().take(1).collect();
    vec![
        run("20261130T090000Z-aaaa", "2026-11-30 10:00", begun),
        run("20261201T100000Z-abcd", "2026-12-01 11:00", events()),
    ]
}

#[test]
fn log_lists_runs_newest_first() {
    insta::assert_snapshot!(log::runs(&entries(), &View::plain()));
    assert_eq!(log::runs(&[], &View::plain()), "no runs yet\n");
    let json: serde_json::Value = serde_json::from_str(&log::runs_json(&entries()).unwrap()).unwrap();
    assert_eq!(json[0]["run"], "20261201T100000Z-abcd");
    assert!(json[0].get("events").is_none());
}

#[test]
fn log_of_one_run_and_of_one_node() {
    insta::assert_snapshot!(log::run(&entries()[1], &View::plain()));
    insta::assert_snapshot!(log::node(&entries(), "n3", &View::plain()));
    assert_eq!(log::node(&entries(), "n99", &View::plain()), "n99: in no run so far\n");
    let json: RunEntry = serde_json::from_str(&log::run_json(&entries()[1]).unwrap()).unwrap();
    assert_eq!(json, entries()[1]);
}

#[test]
fn what_is_new_has_a_plus_and_what_goes_a_minus() {
    let titles =
        ["user train: new", "ssh key id_ed25519 of train: make", "file /etc/x: remove", "file /etc/y: mode 600 -> 644"];
    let operations = titles.iter().map(|title| op(title, &[])).collect();
    let text = human(&plan([("n1".to_owned(), vec![phase("node", operations, vec![])])]));
    for (sign, title) in ["+", "+", "-", "~"].into_iter().zip(titles) {
        assert!(text.contains(&format!("  {sign} {title}\n")), "{text}");
    }
}

#[test]
fn what_was_planned_and_not_needed_is_counted_and_a_missing_key_is_said() {
    let mut report = Report { exit: Some(1), ..Report::default() };
    let done = |node: &str, outcome| Event::OpDone { node: node.into(), op: "x".into(), outcome, millis: 1 };
    report.fold(&done("n1", Outcome::Changed));
    report.fold(&done("n1", Outcome::Fine));
    report.fold(&Event::NodeDone { node: "n1".into(), changed: 1, missing: vec!["n2".into(), "n3".into()] });
    assert_eq!(report::last_line(&report), "failed: 1 node; 1 changed, 1 already as wanted, 0 failed, 0 left out");
    let text = report::human(&report, &Failures::default(), None, &View::plain());
    assert!(text.contains("trust: no key was made on n[2-3]"), "{text}");
}
