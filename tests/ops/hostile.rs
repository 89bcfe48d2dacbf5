//! What users of a node, full disks and odd files do to the mends.

use super::*;

/// The last line of what a failed operation wrote.
fn refused(events: &[NodeEvent]) -> String {
    match events {
        [.., NodeEvent::Failed { tail, .. }, NodeEvent::End { status: 1 }] => tail.last().unwrap().clone(),
        other => panic!("{other:?}"),
    }
}

fn shell(script: &str) {
    let output = Command::new("sh").args(["-ec", script]).output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Unmounts in the end, also after a failure.
struct Mounted(String);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// A folder that user games owns, below one that everybody may enter.
fn users_folder() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let theirs = path(folder.path(), "theirs");
    shell(&format!("chmod 755 {}; mkdir {theirs}; chown games:games {theirs}", folder.path().display()));
    (folder, theirs)
}

fn block(path: &str) -> Block {
    Block::new(path, "x", vec!["new".to_owned()], Ownership::default()).unwrap()
}

#[test]
fn a_users_link_never_makes_root_read_or_write_elsewhere() {
    every_shell(|sh| {
        let (folder, theirs) = users_folder();
        let base = folder.path().join("base");
        let secret = path(folder.path(), "shadow");
        shell(&format!("echo root:hash >{secret}; chmod 600 {secret}; ln -s {secret} {theirs}/keys"));
        assert!(refused(&apply(sh, &base, "1", &[&block(&format!("{theirs}/keys"))])).contains("is a symbolic link"));
        // A hard link, where the kernel lets users make one: the owner of the directory cannot read it.
        shell(&format!("rm {theirs}/keys; ln {secret} {theirs}/keys"));
        assert!(refused(&apply(sh, &base, "2", &[&block(&format!("{theirs}/keys"))])).contains("Permission denied"));
        let keep =
            File::new(&format!("{theirs}/keys"), Content::Any, Ownership::new("games", "games", "0666")).unwrap();
        assert!(refused(&apply(sh, &base, "3", &[&keep])).contains("other hard links"));
        // A directory of theirs that is a link to one of root's.
        let etc = path(folder.path(), "etc");
        shell(&format!("mkdir {etc}; ln -s {etc} {theirs}/d; chown -h games {theirs}/d"));
        let inside = format!("{theirs}/d/passwd");
        let ops: [Box<dyn Op>; 5] = [
            Box::new(File::new(&inside, Content::Bytes(b"x".to_vec()), Ownership::default()).unwrap()),
            Box::new(block(&inside)),
            Box::new(Symlink::new(&inside, "/x").unwrap()),
            Box::new(Directory::new(&format!("{inside}/y"), Ownership::new("games", "", "0777")).unwrap()),
            Box::new(Line::new(&inside, "x", "", Ownership::default()).unwrap()),
        ];
        for (number, op) in ops.iter().enumerate() {
            let said = refused(&apply(sh, &base, &format!("4.{number}"), &[op.as_ref()]));
            assert!(said.contains("others than root can set"), "{}: {said}", op.id());
        }
        let output =
            Command::new("sh").args(["-c", &format!("ls -A {etc}; stat -c '%u %a' {secret}; ls -A {theirs}")]).output();
        assert_eq!(String::from_utf8_lossy(&output.unwrap().stdout), "0 600\nd\nkeys\n");
    });
}

#[test]
fn files_of_users_are_changed_where_nobody_interferes() {
    let (folder, theirs) = users_folder();
    let base = folder.path().join("base");
    shell(&format!(
        "printf 'own line' >{theirs}/keys; chown games:games {theirs}/keys; chmod 600 {theirs}/keys; : >{theirs}/any"
    ));
    let keep = File::new(&format!("{theirs}/any"), Content::Any, Ownership::new("games", "games", "0604")).unwrap();
    let new = File::new(&format!("{theirs}/n"), Content::Bytes(vec![0, 1]), Ownership::new("games", "games", "4755"))
        .unwrap();
    // A link that root made is followed.
    shell(&format!("ln -s theirs {}/link", folder.path().display()));
    let through =
        File::new(&path(folder.path(), "link/t"), Content::Bytes(b"t".to_vec()), Ownership::default()).unwrap();
    let block = block(&format!("{theirs}/keys"));
    let ops: [&dyn Op; 4] = [&block, &keep, &new, &through];
    applied(&apply(SHELLS[0], &base, "1", &ops));
    converged(SHELLS[0], &ops);
    let output = Command::new("sh")
        .args(["-c", &format!("cd {theirs}; cat keys; stat -c '%n %u %a' keys any n t; ls -A")])
        .output();
    assert_eq!(
        String::from_utf8_lossy(&output.unwrap().stdout),
        "own line\n# BEGIN provision x\nnew\n# END provision x\nkeys 5 600\nany 5 604\nn 5 4755\nt 0 644\nany\nkeys\nn\nt\n"
    );
}

#[test]
fn pipes_and_devices_are_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().join("base");
    let pipe = path(folder.path(), "pipe");
    shell(&format!("mkfifo {pipe}"));
    let own = || Ownership::new("root", "root", "0644");
    let line = Line::new(&pipe, "x", "", own()).unwrap();
    let name = provision::ops::hosts::OwnName::new("n1", &pipe).unwrap();
    let file = File::new(&pipe, Content::Bytes(b"x".to_vec()), own()).unwrap();
    let secret = Content::Secret { text: Secret::new("s".to_owned()), salt: "m".to_owned() };
    let secret = File::new(&pipe, secret, own()).unwrap();
    let block = block(&pipe);
    let ops: [&dyn Op; 5] = [&line, &name, &file, &block, &secret];
    probe(SHELLS[0], &ops);
    for (number, op) in ops.iter().enumerate() {
        let said = refused(&apply(SHELLS[0], &base, &number.to_string(), &[*op]));
        assert!(said.contains("no file") || said.contains("neither a file"), "{said}");
    }
}

#[test]
fn what_cannot_be_made_says_why() {
    every_shell(|sh| {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().join("base");
        let file = File::new("/proc/sys/x", Content::Bytes(b"x".to_vec()), Ownership::default()).unwrap();
        let said = refused(&apply(sh, &base, "1", &[&file]));
        assert!(said.starts_with("/proc/sys/x is not written: ") && !said.contains("script"), "{said}");
        let kernel = provision::ops::sysctl::Sysctl::new("kernel.pid_max", "nonsense").unwrap();
        let said = refused(&apply(sh, &base, "2", &[&kernel]));
        assert!(said.starts_with("the kernel refused kernel.pid_max = nonsense: "), "{said}");
        assert!(said.ends_with("Invalid argument"), "{said}");
    });
}

#[test]
fn a_full_disk_leaves_what_was_there_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let small = path(folder.path(), "small");
    shell(&format!("mkdir {small}; mount -t tmpfs -o size=256k none {small}"));
    let _mounted = Mounted(small.clone());
    let base = folder.path().join("base");
    for sh in SHELLS {
        let name = format!("{small}/f");
        std::fs::write(&name, "old").unwrap();
        for content in [vec![b'x'; 400_000], vec![0; 400_000]] {
            let file = File::new(&name, Content::Bytes(content), Ownership::default()).unwrap();
            let id = format!("{}{}", sh.join("-"), std::fs::read_dir(base.join("runs")).map_or(0, Iterator::count));
            assert_eq!(
                refused(&apply(sh, &base, &id, &[&file])),
                format!("{name} is not written: No space left on device")
            );
        }
        assert_eq!(std::fs::read_to_string(&name).unwrap(), "old");
        assert_eq!(std::fs::read_dir(&small).unwrap().count(), 1);
    }
    // The place for our own runs is full: nothing starts, and the reason is said.
    let file = File::new(&path(folder.path(), "g"), Content::Bytes(b"x".to_vec()), Ownership::default()).unwrap();
    shell(&format!("head -c 1M /dev/zero >{small}/f || :"));
    let inner = format!("{small}/base");
    let script = phase_script(Path::new(&inner), "1", &[&file]);
    let (_, errors, status) = run(SHELLS[0], &render::start(&inner, "1", &script));
    shell(&format!("rm {small}/f"));
    assert_eq!(status, Some(1));
    assert!(errors.trim_end().ends_with("No space left on device"), "{errors}");
    assert!(!Path::new(&format!("{inner}/runs/1/script")).exists());
    // It fills up on the way: that the operation failed is written down all the same.
    let fill = format!("head -c 12000 /dev/zero | tr '\\0' x; head -c 1M /dev/zero >{small}/fill 2>/dev/null; false");
    let fills = provision::ops::command::Command::new("fills", "false", &fill, "root", false).unwrap();
    run(SHELLS[0], &render::start(&inner, "2", &phase_script(Path::new(&inner), "2", &[&fills])));
    let (output, _, _) = run(SHELLS[0], &render::follow(&inner, "2", 0));
    // The line that no longer fitted stands there half, and then whole.
    let events: Vec<NodeEvent> =
        String::from_utf8(output).unwrap().lines().filter_map(render::parse_event_line).collect();
    assert!(refused(&events).starts_with('x'), "{events:?}");
}

#[test]
fn a_producer_that_dies_leaves_the_old_content() {
    every_shell(|sh| {
        let folder = tempfile::tempdir().unwrap();
        let file = path(folder.path(), "f");
        std::fs::write(&file, "old").unwrap();
        let own = || Ownership::default();
        let op = File::new(&file, Content::Bytes(vec![0, 1, 2]), own()).unwrap();
        for (number, broken) in
            ["printf '%s' 'cut'; sh -c 'kill -KILL $PPID'", "printf x; false", "printf eHg | base64 -d"]
                .iter()
                .enumerate()
        {
            let mut script = OpScript { deadline: 2, ..OpScript::of(&op) };
            script.mend.text = format!("broken() {{\n{broken}\n}}\nput {file} '' '' '' broken\n");
            let base = folder.path().join("base");
            let id = number.to_string();
            let text = render::phase(&PhaseScript {
                base: base.to_str().unwrap(),
                id: &id,
                run: "r",
                phase: "node",
                by: "me@here",
                manifest: "00",
                operations: vec![script],
                pending: Vec::new(),
            });
            run(sh, &render::start(base.to_str().unwrap(), &id, &text));
            let said = refused(&follow(sh, &base, &id));
            assert!(said.starts_with(&format!("{file} is not written: ")), "{sh:?} {broken}: {said}");
            assert_eq!(std::fs::read_to_string(&file).unwrap(), "old");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "no temporary file is left");
    });
}

#[test]
fn blocks_that_were_tampered_with() {
    let cases = [
        // Written on Windows, or by hand: the markers are still ours.
        (
            "a\r\n# BEGIN provision x\r\nold\r\n# END provision x \r\nb\r\n",
            Some("a\r\n# BEGIN provision x\nnew\n# END provision x\nb\r\n"),
        ),
        ("# BEGIN provision x\nold\n# END provision x", Some("# BEGIN provision x\nnew\n# END provision x\n")),
        (
            "# BEGIN provision x\nold\n# END provision x\nlast",
            Some("# BEGIN provision x\nnew\n# END provision x\nlast"),
        ),
        (
            "a\n# BEGIN provision x\n1\n# END provision x\nb\n# BEGIN provision x\n2\n# END provision x\nc\n",
            Some("a\n# BEGIN provision x\nnew\n# END provision x\nb\nc\n"),
        ),
        (
            "a\n# BEGIN provision xy\n1\n# END provision xy\n",
            Some("a\n# BEGIN provision xy\n1\n# END provision xy\n# BEGIN provision x\nnew\n# END provision x\n"),
        ),
        ("a\n# BEGIN provision x\nold\nb\nc\n", None),
        ("a\nold\n# END provision x\nb\n", None),
        ("# BEGIN provision x\n# BEGIN provision x\n# END provision x\n", None),
    ];
    every_shell(|sh| {
        let folder = tempfile::tempdir().unwrap();
        let file = path(folder.path(), "f");
        let block = block(&file);
        for (number, (before, after)) in cases.iter().enumerate() {
            std::fs::write(&file, before).unwrap();
            let events = apply(sh, &folder.path().join("base"), &number.to_string(), &[&block]);
            if let Some(after) = after {
                applied(&events);
                converged(sh, &[&block]);
                assert_eq!(std::fs::read_to_string(&file).unwrap(), *after);
            } else {
                assert!(refused(&events).contains("do not come in pairs"), "{events:?}");
                assert_eq!(std::fs::read_to_string(&file).unwrap(), *before);
            }
        }
    });
}

#[test]
fn commands_of_the_user_stay_in_their_own_shell() {
    every_shell(|sh| {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().join("base");
        shell(&format!("chmod 777 {}", folder.path().display()));
        let done = |name: &str| path(folder.path(), name);
        let command = |name: &str, apply: &str, user: &str| {
            let check = format!("test -e {}", done(name));
            provision::ops::command::Command::new(name, &check, &format!("{apply}\n:"), user, false).unwrap()
        };
        let a = command("a", &format!("touch {}; set -f; cd /; trap '' TERM; exit", done("a")), "root");
        let daemon = command("daemon", &format!("sleep 30 & echo $! >{}", done("daemon")), "root");
        let stdin = command("stdin", &format!("cat; touch {}", done("stdin")), "root");
        let user = command(
            "user",
            &format!("test \"$HOME\" = ~games && test \"$USER\" = games && touch {}", done("user")),
            "games",
        );
        let loud = command("loud", &format!("head -c 40000000 /dev/zero | tr '\\0' x; touch {}", done("loud")), "root");
        let began = std::time::Instant::now();
        applied(&apply(sh, &base, "1", &[&a, &daemon, &stdin, &user, &loud]));
        assert!(began.elapsed().as_secs() < 20);
        assert!(std::fs::metadata(base.join("runs/1/out")).unwrap().len() < 9_000_000);
        let nobody = command("nobody", "touch x", "no-such-user");
        assert!(refused(&apply(sh, &base, "2", &[&nobody])).contains("no-such-user"));
        let suicide = command("suicide", "kill -KILL 0", "root");
        let events = apply(sh, &base, "3", &[&suicide]);
        assert!(matches!(events[..], [.., NodeEvent::Start { op: 0 }, NodeEvent::Gone]), "{events:?}");
        // What differs after a change is said in one short line.
        let lies = File::new(&done("link"), Content::Bytes(b"x".repeat(5000)), Ownership::default()).unwrap();
        let mut script = OpScript { deadline: 2, ..OpScript::of(&lies) };
        script.mend = provision::shell::call("mend_symlink", &[&done("link"), "/nowhere"]);
        let text = render::phase(&PhaseScript {
            base: base.to_str().unwrap(),
            id: "4",
            run: "r",
            phase: "p",
            by: "b",
            manifest: "m",
            operations: vec![script],
            pending: vec![],
        });
        run(sh, &render::start(base.to_str().unwrap(), "4", &text));
        let said = refused(&follow(sh, &base, "4"));
        assert!(said.starts_with("after the change it is \"link /nowhere\"; wanted is \"file * * * "), "{said}");
        // The daemon outlives the phase here; it is ours to end.
        shell(&format!("kill $(cat {})", done("daemon")));
    });
}

#[test]
fn the_place_for_runs_is_roots_and_no_link_and_old_secrets_go() {
    let (folder, theirs) = users_folder();
    let file = File::new(&path(folder.path(), "f"), Content::Bytes(b"x".to_vec()), Ownership::default()).unwrap();
    let link = path(folder.path(), "link");
    shell(&format!("ln -s {theirs} {link}"));
    for base in [&theirs, &link] {
        let (_, errors, status) =
            run(SHELLS[0], &render::start(base, "1", &phase_script(Path::new(base), "1", &[&file])));
        assert_eq!(status, Some(1));
        assert!(errors.contains("not used"), "{errors}");
    }
    let base = folder.path().join("base");
    shell(&format!("mkdir -p {0}/runs/00old/payload; echo canary >{0}/runs/00old/payload/x", base.display()));
    for id in 10..35 {
        applied(&apply(SHELLS[0], &base, &id.to_string(), &[&file]));
    }
    assert!(!base.join("runs/00old").exists());
    assert_eq!(std::fs::read_dir(base.join("runs")).unwrap().count(), 20);
    shell(&format!("mkdir -p {0}/runs/34z/payload; echo canary >{0}/runs/34z/payload/x", base.display()));
    applied(&apply(SHELLS[0], &base, "35", &[&file]));
    assert!(base.join("runs/34z").exists() && !base.join("runs/34z/payload").exists());
}

#[test]
fn started_twice_at_once_it_runs_once() {
    every_shell(|sh| {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().join("base");
        let log = path(folder.path(), "log");
        let secret = format!("echo \"$$ {}\" >>{log}; echo failed; false", "s".repeat(20_000));
        let once = provision::ops::command::Command::new("once", "false", &secret, "root", true).unwrap();
        let text = render::start(base.to_str().unwrap(), "1", &phase_script(&base, "1", &[&once]));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert_eq!(run(sh, &text).2, Some(0)));
            }
        });
        refused(&follow(sh, &base, "1"));
        let log = std::fs::read_to_string(log).unwrap();
        assert_eq!((log.lines().count(), log.matches('s').count()), (1, 20_000));
    });
}
