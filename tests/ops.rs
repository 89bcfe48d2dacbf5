//! Rendered scripts, run for real under dash, bash and busybox sh in temporary folders.
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use provision::ops::file::{AbsentFile, Content, File, Ownership};
use provision::ops::{
    Difference, Op, Question, Seen, block::Block, directory::Directory, line::Line, symlink::Symlink,
};
use provision::render::{self, NodeEvent, OpScript, PhaseScript};
use provision::secret::Secret;

#[path = "ops/hostile.rs"]
mod hostile;

const SHELLS: &[&[&str]] = &[&["dash"], &["bash", "--posix"], &["bash"], &["busybox", "sh"]];

/// The same under all of them, side by side.
fn every_shell(test: impl Fn(&'static [&'static str]) + Sync) {
    std::thread::scope(|scope| {
        for shell in SHELLS {
            scope.spawn(|| test(shell));
        }
    });
}

/// Waits until it holds; fails when that takes too long.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = std::time::Instant::now();
    while !holds() {
        assert!(began.elapsed().as_secs() < 30, "{what}");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

fn run(shell: &[&str], script: &str) -> (Vec<u8>, String, Option<i32>) {
    let mut child = Command::new(shell[0])
        .env("PROVISION_SHELL", shell.join(" "))
        .args(&shell[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let text = script.to_owned();
    let writer = std::thread::spawn(move || {
        let _ = input.write_all(text.as_bytes());
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    (output.stdout, String::from_utf8_lossy(&output.stderr).into_owned(), output.status.code())
}

fn probe(shell: &[&str], ops: &[&dyn Op]) -> Seen {
    let questions: Vec<Question> = ops.iter().flat_map(|op| op.checks()).map(|check| check.question).collect();
    let (output, errors, _) = run(shell, &render::probe("say fact x; printf y", &questions, "N0"));
    let frames = render::parse_frames(&output, "N0").unwrap_or_else(|e| panic!("{e}: {errors}"));
    assert_eq!(frames.facts["x"], "y");
    assert_eq!(errors, "", "{shell:?}");
    frames.seen
}

fn phase_script(base: &Path, id: &str, ops: &[&dyn Op]) -> provision::shell::Shell {
    render::phase(&PhaseScript {
        base: base.to_str().unwrap(),
        id,
        run: "r",
        phase: "node",
        by: "me@here",
        manifest: "00",
        operations: ops.iter().map(|op| OpScript { deadline: 2, ..OpScript::of(*op) }).collect(),
        pending: Vec::new(),
    })
}

/// Starts and follows a phase to its end, as the engine does.
fn apply(shell: &[&str], base: &Path, id: &str, ops: &[&dyn Op]) -> Vec<NodeEvent> {
    let script = phase_script(base, id, ops);
    let (output, errors, status) = run(shell, &render::start(base.to_str().unwrap(), id, &script));
    assert_eq!((String::from_utf8_lossy(&output).trim(), status), ("started", Some(0)), "{errors}");
    follow(shell, base, id)
}

fn follow(shell: &[&str], base: &Path, id: &str) -> Vec<NodeEvent> {
    let (output, errors, _) = run(shell, &render::follow(base.to_str().unwrap(), id, 0));
    assert_eq!(errors, "");
    String::from_utf8(output)
        .unwrap()
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| render::parse_event_line(line).unwrap_or_else(|| panic!("bad line {line:?}")))
        .collect()
}

fn converged(shell: &[&str], ops: &[&dyn Op]) {
    let seen = probe(shell, ops);
    for op in ops {
        assert_eq!(op.differ(&seen), Difference::None, "{} {shell:?} {seen:?}", op.id());
    }
}

fn applied(events: &[NodeEvent]) {
    assert_eq!(events.last(), Some(&NodeEvent::End { status: 0 }), "{events:?}");
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().unwrap().to_owned()
}

#[test]
fn files_and_their_kin_are_made_once_under_every_shell() {
    every_shell(|shell| {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().join("base");
        let own = || Ownership::new("root", "root", "0640");
        let secret = Content::Secret { text: Secret::new("canary-s3cret\n".to_owned()), salt: "machine".to_owned() };
        let text = "it's \"$HOME\" `x` \\ \r\nünï -n\n\n".to_owned();
        std::fs::write(path(folder.path(), "hosts"), "127.0.0.1 localhost\n127.0.1.1 n1.lan n1 other # c\nlast")
            .unwrap();
        std::fs::write(path(folder.path(), "gone"), "x").unwrap();
        let ops: Vec<Box<dyn Op>> = vec![
            Box::new(Directory::new(&path(folder.path(), "a b"), Ownership::new("root", "root", "0750")).unwrap()),
            Box::new(
                File::new(&path(folder.path(), "a b/text"), Content::Bytes(text.clone().into_bytes()), own()).unwrap(),
            ),
            Box::new(File::new(&path(folder.path(), "a b/empty"), Content::Bytes(Vec::new()), own()).unwrap()),
            Box::new(
                File::new(&path(folder.path(), "a b/binary"), Content::Bytes(vec![0, 255, 10, 0]), own()).unwrap(),
            ),
            Box::new(File::new(&path(folder.path(), "a b/any"), Content::Any, own()).unwrap()),
            Box::new(File::new(&path(folder.path(), "a b/secret"), secret, own()).unwrap()),
            Box::new(AbsentFile::new(&path(folder.path(), "gone"), vec![]).unwrap()),
            Box::new(Symlink::new(&path(folder.path(), "link"), "a b/te'xt").unwrap()),
            Box::new(Line::new(&path(folder.path(), "hosts"), "k=v 'x'", "k=", own()).unwrap()),
            Box::new(
                Block::new(&path(folder.path(), "hosts"), "cluster", vec!["10.0.0.1 n1".to_owned()], own()).unwrap(),
            ),
            Box::new(provision::ops::hosts::OwnName::new("n1", &path(folder.path(), "hosts")).unwrap()),
            Box::new(
                provision::ops::command::Command::new(
                    "c",
                    &format!("test -e {}/c", folder.path().display()),
                    &format!("touch {}/c; cat", folder.path().display()),
                    "root",
                    false,
                )
                .unwrap(),
            ),
            Box::new(
                provision::ops::command::Command::new(
                    "h",
                    &format!("test -e {}/h # canary-s3cret", folder.path().display()),
                    &format!("touch {}/h # canary-s3cret", folder.path().display()),
                    "root",
                    true,
                )
                .unwrap(),
            ),
        ];
        let ops: Vec<&dyn Op> = ops.iter().map(AsRef::as_ref).collect();
        let before = probe(shell, &ops);
        for op in &ops {
            assert!(matches!(op.differ(&before), Difference::Change(_)), "{}: {before:?}", op.id());
        }
        let id = "20260101T000000Z-aaaa.1".to_owned();
        let events = apply(shell, &base, &id, &ops);
        applied(&events);
        assert_eq!(events.iter().filter(|e| matches!(e, NodeEvent::Changed { .. })).count(), ops.len());
        converged(shell, &ops);
        assert_eq!(std::fs::read_to_string(path(folder.path(), "a b/text")).unwrap(), text);
        assert_eq!(
            std::fs::read_to_string(path(folder.path(), "hosts")).unwrap(),
            "127.0.0.1 localhost\n127.0.1.1 other # c\nlast\nk=v 'x'\n# BEGIN provision cluster\n10.0.0.1 n1\n# END provision cluster\n"
        );
        // No secret is left anywhere below the base.
        let found = Command::new("grep").args(["-r", "canary-s3cret"]).arg(&base).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&found.stdout), "");
        let again = apply(shell, &base, &format!("{id}.2"), &ops);
        applied(&again);
        assert_eq!(again.iter().filter(|e| matches!(e, NodeEvent::Fine { .. })).count(), ops.len());
        // Started again, nothing runs again.
        let (output, _, _) = run(shell, &render::start(base.to_str().unwrap(), &id, &phase_script(&base, &id, &ops)));
        assert_eq!(String::from_utf8_lossy(&output).trim(), "already");
        assert_eq!(std::fs::read_to_string(base.join("journal.jsonl")).unwrap().lines().count(), 2);
    });
}

#[test]
fn failures_and_deadlines_name_the_operation_and_its_last_lines() {
    every_shell(|shell| {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().join("base");
        let child = path(folder.path(), "child");
        let bad =
            provision::ops::command::Command::new("bad", "false", "echo one; echo two >&2; exit 7", "root", false)
                .unwrap();
        let events = apply(shell, &base, "f1", &[&bad]);
        let [.., NodeEvent::Failed { op, during, status, tail, .. }, NodeEvent::End { status: 1 }] = &events[..] else {
            panic!("{events:?}")
        };
        assert_eq!((*op, during.as_str(), *status), (Some(0), "mend", 7));
        assert_eq!(tail, &["one", "two"]);
        let lies = provision::ops::command::Command::new("lies", "false", "true", "root", false).unwrap();
        let events = apply(shell, &base, "f2", &[&lies]);
        assert!(
            events.iter().any(|e| matches!(e, NodeEvent::Failed { during, .. } if during == "observe")),
            "{events:?}"
        );
        let text = format!("sleep 60 & echo $! >{child}; echo waiting; wait");
        let hangs = provision::ops::command::Command::new("hangs", "false", &text, "root", false).unwrap();
        let began = std::time::Instant::now();
        let events = apply(shell, &base, "f3", &[&hangs]);
        assert!(
            events.iter().any(
                |e| matches!(e, NodeEvent::Failed { during, tail, .. } if during == "deadline" && tail == &["waiting"])
            ),
            "{events:?}"
        );
        assert_eq!(events.last(), Some(&NodeEvent::End { status: 1 }));
        assert!(began.elapsed().as_secs() < 10);
        let child = std::fs::read_to_string(child).unwrap();
        let stat = format!("/proc/{}/stat", child.trim());
        until("children die with it", || std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z ")));
    });
}

#[test]
fn a_directory_is_never_replaced_and_a_link_is() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().join("base");
    std::fs::create_dir(folder.path().join("d")).unwrap();
    std::fs::write(folder.path().join("target"), "keep").unwrap();
    std::os::unix::fs::symlink("target", folder.path().join("l")).unwrap();
    let file =
        |name| File::new(&path(folder.path(), name), Content::Bytes(b"x\n".to_vec()), Ownership::default()).unwrap();
    let events = apply(SHELLS[0], &base, "1", &[&file("d")]);
    assert!(
        events.iter().any(|e| matches!(e, NodeEvent::Failed { tail, .. } if tail[0].contains("is a directory"))),
        "{events:?}"
    );
    applied(&apply(SHELLS[0], &base, "2", &[&file("l")]));
    assert_eq!(std::fs::read_to_string(folder.path().join("target")).unwrap(), "keep");
    converged(SHELLS[0], &[&file("l")]);
}

#[test]
fn killed_at_any_moment_the_rerun_reaches_the_same_tree() {
    let digest = |folder: &Path| {
        let text = "find t -printf '%p %y %m %l\\n' | sort; find t -type f -exec sha256sum {} + | sort";
        Command::new("sh").args(["-c", text]).current_dir(folder).output().unwrap().stdout
    };
    let build = |folder: &Path| -> Vec<Box<dyn Op>> {
        let mut ops: Vec<Box<dyn Op>> =
            vec![Box::new(Directory::new(&path(folder, "t"), Ownership::default()).unwrap())];
        for i in 0..5 {
            let name = format!("t/f{i}");
            ops.push(Box::new(
                File::new(
                    &path(folder, &name),
                    Content::Bytes(vec![b'a' + i; 5000]),
                    Ownership::new("root", "root", "0600"),
                )
                .unwrap(),
            ));
            ops.push(Box::new(
                Block::new(&path(folder, "t/shared"), &format!("b{i}"), vec![name.clone()], Ownership::default())
                    .unwrap(),
            ));
            ops.push(Box::new(Symlink::new(&path(folder, &format!("t/l{i}")), &name).unwrap()));
        }
        ops
    };
    let clean = tempfile::tempdir().unwrap();
    let ops = build(clean.path());
    let ops: Vec<&dyn Op> = ops.iter().map(AsRef::as_ref).collect();
    let events = apply(SHELLS[0], &clean.path().join("base"), "1", &ops);
    applied(&events);
    let whole = std::fs::metadata(clean.path().join("base/runs/1/events")).unwrap().len();
    let mut cut = 0;
    let wanted = digest(clean.path());
    for round in 0..15u32 {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().join("base");
        let ops = build(folder.path());
        let ops: Vec<&dyn Op> = ops.iter().map(AsRef::as_ref).collect();
        let script = phase_script(&base, "1", &ops);
        run(SHELLS[0], &render::start(base.to_str().unwrap(), "1", &script));
        let size = || std::fs::metadata(base.join("runs/1/events")).map_or(0, |file| file.len());
        until("events come", || size() >= whole * u64::from(round) / 15);
        let pid = std::fs::read_to_string(base.join("runs/1/pid")).unwrap_or_default();
        if let Some(pid) = pid.split(' ').next().filter(|pid| !pid.is_empty()) {
            Command::new("sh").args(["-c", &format!("kill -KILL {pid}")]).output().unwrap();
        }
        let events = follow(SHELLS[0], &base, "1");
        assert!(matches!(events.last(), Some(NodeEvent::Gone | NodeEvent::End { status: 0 })), "{events:?}");
        cut += u32::from(events.last() == Some(&NodeEvent::Gone));
        applied(&apply(SHELLS[0], &base, "2", &ops));
        assert_eq!(String::from_utf8_lossy(&digest(folder.path())), String::from_utf8_lossy(&wanted), "round {round}");
    }
    assert!(cut >= 7, "only {cut} of 15 were cut off");
}

#[test]
fn every_script_passes_the_checkers() {
    let folder = tempfile::tempdir().unwrap();
    let kinds = [
        "path", "secret", "block", "line", "package", "service", "user", "group", "sysctl", "module", "sshkey",
        "command", "hostname", "pending",
    ];
    let questions: Vec<Question> =
        kinds.iter().map(|kind| Question { kind: (*kind).to_owned(), key: "/k".to_owned(), args: vec![] }).collect();
    let mut op = OpScript {
        id: "x".to_owned(),
        checks: vec![],
        mend: Default::default(),
        reactions: vec![],
        yields: None,
        deadline: 1,
        hidden: false,
    };
    op.checks = questions
        .iter()
        .map(|question| provision::ops::Check {
            question: question.clone(),
            wanted: vec![provision::ops::Pattern("a\u{1}b".to_owned())],
        })
        .collect();
    op.mend = provision::shell::call("mend_absent", &["/x"]);
    let phase = render::phase(&PhaseScript {
        base: "/b",
        id: "1",
        run: "r",
        phase: "p",
        by: "b",
        manifest: "m",
        operations: vec![op],
        pending: vec![],
    });
    let scripts = [
        ("probe", render::probe("", &questions, "N")),
        ("start", render::start("/b", "1", &phase)),
        ("follow", render::follow("/b", "1", 7)),
        ("phase", phase.text),
    ];
    for (name, text) in scripts {
        let file = folder.path().join(name);
        std::fs::write(&file, &text).unwrap();
        for checker in [
            &["dash", "-n"][..],
            &["bash", "-n"],
            &["busybox", "sh", "-n"],
            &["shellcheck", "-s", "sh", "-S", "warning", "-e", "SC1078,SC3003"],
        ] {
            let output = Command::new(checker[0]).args(&checker[1..]).arg(&file).output().unwrap();
            assert!(
                output.status.success(),
                "{name} {checker:?}\n{}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
        }
        assert!(!text.contains("<<"), "{name}: a here-document makes a temporary file");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn quoting_survives_real_shells(texts in proptest::collection::vec("[^\u{0}]{0,60}|[-'\"\\\\$`!~*?{}\r\n\t ]{0,20}", 1..20)) {
        let mut script = String::from("f() {\n");
        let mut wanted = Vec::new();
        for text in &texts {
            script.push_str(&format!("printf '%s\\0' {}\n", provision::shell::quote(text).unwrap()));
            wanted.extend(text.as_bytes());
            wanted.push(0);
        }
        script.push_str("}\nf </dev/null\n");
        for shell in SHELLS {
            let (output, errors, _) = run(shell, &script);
            prop_assert_eq!(&output, &wanted, "{:?} {}", shell, errors);
        }
    }

    #[test]
    fn mending_holds_twice_is_nothing_and_foreign_lines_stay(
        content in proptest::collection::vec(any::<u8>(), 0..200),
        text in "[^\u{0}]{0,80}",
        foreign in "([-a-z'\"$\\\\é ]{0,12}(\r)?\n){0,6}[-a-z'\"é]{0,6}",
        line in "[-a-z'\"\\\\$é =]{1,12}",
        pick in 0..4usize,
    ) {
        let shell = SHELLS[pick];
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().join("base");
        std::fs::write(folder.path().join("b"), &foreign).unwrap();
        std::fs::write(folder.path().join("l"), &foreign).unwrap();
        let b = File::new(&path(folder.path(), "-x"), Content::Bytes(content.clone()), Ownership::default()).unwrap();
        let t = File::new(&path(folder.path(), "é 'y\""), Content::Bytes(text.clone().into_bytes()), Ownership::default()).unwrap();
        let block = Block::new(&path(folder.path(), "b"), "x", vec![line.clone()], Ownership::default()).unwrap();
        let l = Line::new(&path(folder.path(), "l"), &line, "", Ownership::default()).unwrap();
        let ops: [&dyn Op; 4] = [&b, &t, &block, &l];
        applied(&apply(shell, &base, "1", &ops));
        converged(shell, &ops);
        prop_assert_eq!(std::fs::read(folder.path().join("-x")).unwrap(), content);
        let joined = if foreign.is_empty() || foreign.ends_with('\n') { foreign.clone() } else { format!("{foreign}\n") };
        prop_assert_eq!(std::fs::read_to_string(folder.path().join("b")).unwrap(), format!("{joined}# BEGIN provision x\n{line}\n# END provision x\n"));
        let other = Block::new(&path(folder.path(), "b"), "x", vec!["new".to_owned()], Ownership::default()).unwrap();
        applied(&apply(shell, &base, "2", &[&other]));
        prop_assert_eq!(std::fs::read_to_string(folder.path().join("b")).unwrap(), format!("{joined}# BEGIN provision x\nnew\n# END provision x\n"));
        let gone = Block::new(&path(folder.path(), "b"), "x", vec![], Ownership::default()).unwrap();
        applied(&apply(shell, &base, "3", &[&gone]));
        converged(shell, &[&gone]);
        prop_assert_eq!(std::fs::read_to_string(folder.path().join("b")).unwrap(), joined);
    }
}

#[test]
fn the_fingerprint_of_a_real_key_is_gpgs() {
    let home = tempfile::tempdir().unwrap();
    let gpg = |arguments: &[&str]| {
        let output = Command::new("gpg").env("GNUPGHOME", home.path()).arg("--batch").args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    gpg(&["--passphrase", "", "--quick-gen-key", "test@example.net", "rsa2048"]);
    let listed = String::from_utf8(gpg(&["--list-keys", "--with-colons"])).unwrap();
    let fingerprint =
        listed.lines().find(|line| line.starts_with("fpr")).unwrap().split(':').nth(9).unwrap().to_owned();
    let source = provision::ops::repository::Source {
        uri: "https://example.net/apt".to_owned(),
        suite: "/".to_owned(),
        ..Default::default()
    };
    for key in [gpg(&["--armor", "--export"]), gpg(&["--export"])] {
        assert!(provision::ops::repository::Repository::new("x", &key, &fingerprint, &source).is_ok());
    }
    Command::new("gpgconf").env("GNUPGHOME", home.path()).args(["--kill", "all"]).output().unwrap();
}

#[test]
fn running_kernel_values_are_read_whole_under_every_shell() {
    let wanted = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_rmem").unwrap();
    let op = provision::ops::sysctl::Sysctl::new("net.ipv4.tcp_rmem", wanted.trim_end()).unwrap();
    for shell in SHELLS {
        converged(shell, &[&op]);
    }
}

#[test]
fn installed_packages_are_seen_under_every_shell() {
    use provision::ops::package::{PackageWish, Packages};
    let wish = |name: &str, present| PackageWish { name: name.to_owned(), version: None, hold: Some(false), present };
    let op = Packages::new("x", vec![wish("dash", true), wish("libc6", true), wish("no-such-package", false)]).unwrap();
    for shell in SHELLS {
        converged(shell, &[&op]);
    }
}

#[test]
fn a_reaction_is_remembered_until_it_was_carried_out() {
    if Path::new("/run/systemd/system").exists() {
        return; // Here it would succeed; the lab proves that side.
    }
    use provision::ops::Reaction;
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().join("base");
    let reaction = Reaction::Restart("nosuch.service".to_owned());
    let file = File::new(&path(folder.path(), "f"), Content::Bytes(b"x".to_vec()), Ownership::default())
        .unwrap()
        .triggering(vec![reaction.clone()]);
    let question = render::pending_question(base.to_str().unwrap());
    for id in ["1", "2"] {
        let events = apply(SHELLS[0], &base, id, &[&file]);
        let [.., NodeEvent::Failed { op: None, what, during, tail, .. }, NodeEvent::End { status: 1 }] = &events[..]
        else {
            panic!("{events:?}")
        };
        assert_eq!((what.as_ref(), during.as_str()), (Some(&reaction), "reaction"));
        assert!(tail[0].contains("systemd does not run here"));
        let (output, _, _) = run(SHELLS[0], &render::probe("", std::slice::from_ref(&question), "N"));
        let seen = render::parse_frames(&output, "N").unwrap().seen;
        assert_eq!(render::parse_pending(seen.answer("pending", "all").unwrap()), std::slice::from_ref(&reaction));
    }
}
