//! The facts questions run under three shells over stand-in systems, and their answers parsed.
//!
//! `tests/facts/SYSTEM/system.txt` describes a tree (`=== file PATH`, `=== link PATH TARGET`, `=== dir PATH`; a path ending in `:x` is
//! executable) and stand-ins for tools (`=== tool NAME`, then a shell body when it says `case` or `echo`, else what it prints).
//! `facts.json` is what must come out. To write it anew: `PROVISION_BLESS=1 cargo test --test facts`, then read the difference.
//! `tests/facts/recorded/*.txt` are answers of real machines.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "what tests share stops at the first surprise"
)]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use proptest::prelude::*;
use provision::facts::{self, Depth};
use serde_json::Value;

const SAY: &str = "N=n0nce\nsay() { printf '\\n@@%s %s %s\\n' \"$N\" \"$1\" \"$2\"; }\n";
const SHELLS: [&[&str]; 3] = [&["dash"], &["bash"], &["busybox", "sh"]];
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/facts");

/// Splits raw output into frames, as the engine does.
fn frames(output: &str) -> BTreeMap<String, String> {
    let mut frames: BTreeMap<String, String> = BTreeMap::new();
    let mut key = None;
    for line in output.lines() {
        if let Some(rest) = line.strip_prefix("@@n0nce fact ") {
            key = Some(rest.to_owned());
            frames.insert(rest.to_owned(), String::new());
        } else if let Some(text) = key.as_ref().and_then(|key| frames.get_mut(key)) {
            text.push_str(line);
            text.push('\n');
        }
    }
    frames
}

/// Runs the questions; `root` empty is this machine.
fn ask(shell: &[&str], depth: Depth, root: &str, path: Option<&Path>) -> String {
    let program = which(shell[0]);
    let mut command = Command::new(program);
    command
        .args(&shell[1..])
        .env("facts_root", root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(path) = path {
        command.env("PATH", path);
    }
    let mut child = command.spawn().unwrap();
    let text = format!("set -eu\nprobe() {{\n{SAY}{}\nsay fact end\n}}\nprobe </dev/null\n", facts::script(depth));
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{shell:?} complains");
    assert!(output.status.success(), "{shell:?}: {}", output.status);
    let output = String::from_utf8(output.stdout).unwrap();
    output.strip_suffix("@@n0nce fact end\n").expect("the text after the questions runs").to_owned()
}

fn which(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.exists()).expect(program)
}

/// Builds the tree and the tools of a system.
fn build(description: &str, root: &Path, tools: &Path) {
    fs::create_dir_all(tools).unwrap();
    for tool in ["grep", "timeout", "sh", "tail"] {
        symlink(which(tool), tools.join(tool)).unwrap();
    }
    for section in description.split("=== ").skip(1) {
        let (head, body) = section.split_once('\n').unwrap();
        let (kind, rest) = head.split_once(' ').unwrap();
        let (file, mode) = rest.strip_suffix(":x").map_or((rest, 0o644), |file| (file, 0o755));
        let at = root.join(file);
        let parents = |at: &Path| fs::create_dir_all(at.parent().unwrap()).unwrap();
        match kind {
            "file" => {
                parents(&at);
                fs::write(&at, body).unwrap();
                fs::set_permissions(&at, fs::Permissions::from_mode(mode)).unwrap();
            }
            "dir" => fs::create_dir_all(&at).unwrap(),
            "link" => {
                let (from, to) = rest.split_once(' ').unwrap();
                parents(&root.join(from));
                symlink(to, root.join(from)).unwrap();
            }
            "tool" => {
                let shell = body.starts_with("case ") || body.starts_with("echo ");
                let quoted = body.lines().map(|line| format!("printf '%s\\n' '{line}'\n")).collect::<String>();
                let text = format!("#!/bin/sh\n{}", if shell { body } else { &quoted });
                fs::write(tools.join(rest), text).unwrap();
                fs::set_permissions(tools.join(rest), fs::Permissions::from_mode(0o755)).unwrap();
            }
            _ => panic!("what is {kind}?"),
        }
    }
}

fn check_system(system: &str) {
    let folder = Path::new(FOLDER).join(system);
    let space = tempfile::tempdir().unwrap();
    let (root, tools) = (space.path().join("root"), space.path().join("tools"));
    build(&fs::read_to_string(folder.join("system.txt")).unwrap(), &root, &tools);
    let root = root.to_str().unwrap();
    let before = listing(space.path());
    let answers = SHELLS.map(|shell| ask(shell, Depth::Full, root, Some(&tools)));
    let core = ask(SHELLS[0], Depth::Core, root, Some(&tools));
    assert_eq!(listing(space.path()), before, "the questions write nothing");
    assert!(answers[0].starts_with(&core), "the full questions begin with the core ones");
    let limit = |answer: &str| answer.lines().skip_while(|line| !line.ends_with(" memlock")).nth(1).map(str::to_owned);
    for (shell, answer) in SHELLS.iter().zip(&answers) {
        // bash and the others may have started with another limit, nothing else may differ.
        assert_eq!(limit(answer), limit(&answers[0]));
        assert_eq!(answer, &answers[0], "{shell:?} and {:?} disagree on {system}", SHELLS[0]);
    }
    let (mut found, problems) = facts::parse(system, &frames(&answers[0]));
    assert_eq!(problems, Vec::<String>::new());
    // This machine's, not the stand-in's.
    found.limits = facts::Known::Unknown;
    agree(&folder.join("facts.json"), &found);
}

/// Compares with the expected facts, and proves that the JSON comes back the same.
fn agree(expected: &Path, found: &facts::Facts) {
    let json = facts::to_json(found).unwrap();
    if std::env::var_os("PROVISION_BLESS").is_some() {
        fs::write(expected, &json).unwrap();
    }
    let wanted = fs::read_to_string(expected).unwrap_or_default();
    assert!(wanted == json, "{} differs, found:\n{json}", expected.display());
    assert_eq!(&facts::from_json(&json).unwrap(), found);
}

fn listing(at: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![at.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                open.push(entry.path());
            }
            found.push(entry.path());
        }
    }
    found.sort();
    found
}

#[test]
fn ubuntu_with_eight_a100_fabric_manager_and_roce() {
    check_system("ubuntu-22.04-a100");
}

#[test]
fn rocky_with_driver_from_rpm() {
    check_system("rocky-9-driver-rpm");
}

#[test]
fn gpus_without_a_driver() {
    check_system("debian-12-gpus-no-driver");
}

#[test]
fn grace_hopper_whose_driver_was_replaced_but_not_reloaded() {
    check_system("ubuntu-22.04-gh200");
}

#[test]
fn docker_with_images() {
    check_system("ubuntu-22.04-docker-26");
}

#[test]
fn recorded_answers() {
    let folder = Path::new(FOLDER).join("recorded");
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            let (found, problems) = facts::parse("n1", &frames(&fs::read_to_string(&path).unwrap()));
            assert_eq!(problems, Vec::<String>::new(), "{}", path.display());
            agree(&path.with_extension("json"), &found);
            count += 1;
        }
    }
    assert!(count > 0);
}

#[test]
fn this_machine_answers_under_every_shell() {
    for shell in SHELLS {
        for depth in [Depth::Core, Depth::Full] {
            let (found, problems) = facts::parse("here", &frames(&ask(shell, depth, "", None)));
            assert_eq!(problems, Vec::<String>::new());
            let os = found.os.yes().expect("an operating system");
            assert_eq!(os.arch.yes().map(String::as_str), Some(std::env::consts::ARCH));
            assert!(os.kernel.yes().is_some());
            assert!(found.boot_id.yes().is_some());
            assert!(found.network.yes().is_some());
            assert_eq!(found.disk_free.yes().is_some(), depth == Depth::Full);
            assert!(facts::human(&found)[0].starts_with("here: "));
        }
    }
}

#[test]
fn a_root_that_cannot_be_entered_gives_unknown_and_not_absent() {
    let (found, problems) = facts::parse("n1", &frames(&ask(SHELLS[0], Depth::Full, "/nowhere", None)));
    assert_eq!(found, facts::Facts { node: "n1".to_owned(), ..facts::Facts::default() });
    assert_eq!(problems.len(), 1);
    assert_eq!(facts::to_json(&found).unwrap(), "{\n  \"node\": \"n1\"\n}\n");
}

/// The form that other commands and people's own facts files rely on, every key once.
#[test]
fn every_key_comes_back_as_it_was_written() {
    let text = fs::read_to_string(Path::new(FOLDER).join("every-key.json")).unwrap();
    let found = facts::from_json(&text).unwrap();
    let again: Value = serde_json::from_str(&facts::to_json(&found).unwrap()).unwrap();
    assert_eq!(again, serde_json::from_str::<Value>(&text).unwrap());
}

#[test]
fn missing_is_unknown_and_null_is_absent() {
    let text = r#"{"node": "n1", "driver": null, "cuda": [], "limits": {"memlock": 65536}, "later": {"key": 1}}"#;
    let found = facts::from_json(text).unwrap();
    assert_eq!(found.driver, facts::Known::No);
    assert_eq!(found.cuda, facts::Known::Yes(Vec::new()));
    assert_eq!(found.gpus, facts::Known::Unknown);
    assert_eq!(found.limits.yes().unwrap().memlock, facts::Known::Yes(facts::Memlock::Bytes(65536)));
    for wrong in [r#"{"node": "n1", "limits": {"memlock": "much"}}"#, r#"{"cuda": []}"#, "[]", "{"] {
        assert!(facts::from_json(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn people_read_a_few_lines() {
    let text = fs::read_to_string(Path::new(FOLDER).join("ubuntu-22.04-a100/facts.json")).unwrap();
    let lines = facts::human(&facts::from_json(&text).unwrap());
    assert_eq!(
        lines,
        [
            "ubuntu-22.04-a100: ubuntu 22.04, kernel 5.15.0-91-generic, x86_64, Secure Boot",
            "  gpus      8x A100-SXM4-80GB, 6 NVSwitches",
            "  driver    550.54.15 loaded, proprietary, fabric manager 550.54.15 running",
            "  software  CUDA 12.4, torch 2.4.0+cu124 in /opt/torch, container toolkit 1.17.8",
            "  rdma      mlx5_0 ACTIVE 200 Gbit/s, mlx5_1 DOWN 40 Gbit/s",
            "  network   eno1 10.0.0.11/24, rocep1 10.1.0.11/16 fe80::e42:a1ff:fe12:3450/64",
        ]
    );
    let bare = facts::from_json(r#"{"node": "n1"}"#).unwrap();
    assert_eq!(facts::human(&bare), ["n1: operating system not known"]);
}

#[test]
fn of_many_devices_only_nvidias_are_listed() {
    let space = tempfile::tempdir().unwrap();
    let devices = space.path().join("sys/bus/pci/devices");
    for bus in 0..120 {
        let device = devices.join(format!("0000:{bus:02x}:00.0"));
        fs::create_dir_all(&device).unwrap();
        let vendor = if bus % 40 == 7 { "0x10de\n" } else { "0x8086\n" };
        for (file, text) in [("vendor", vendor), ("device", "0x2330\n"), ("class", "0x030200\n")] {
            fs::write(device.join(file), text).unwrap();
        }
    }
    for shell in SHELLS {
        let (found, _) = facts::parse("n1", &frames(&ask(shell, Depth::Core, space.path().to_str().unwrap(), None)));
        assert_eq!(found.gpus.yes().map(Vec::len), Some(3), "{shell:?}");
    }
}

#[test]
fn the_questions_please_shellcheck() {
    for depth in [Depth::Core, Depth::Full] {
        let mut child =
            Command::new(which("shellcheck")).args(["--shell=sh", "-"]).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(facts::script(depth).as_bytes()).unwrap();
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn hostile_answers_are_dropped_and_named() {
    let hostile = [
        (
            "files",
            "proc/sys/kernel/osrelease:6.1\u{1b}]0;x\u{7}\netc/machine-id:../../etc\netc/os-release:ID=$(reboot)\n",
        ),
        ("pci", "0000:01:00.0 0x20b2\u{1b} 0x030200\n0000:zz:00.0 0x20b2 0x030200\n"),
        (
            "addresses",
            "2: eth0;reboot: mtu 1 state UP\n3: eth1: mtu 9 state UP\n    inet 10.0.0.999/24\n    inet 10.0.0.1/99\n",
        ),
        ("runs", "../../x 12\nok 1\nok -5\n"),
        ("smi", "00000000:01:00.0, GPU-1\n"),
        ("marks", "uid=-1\nsystemd=maybe\npackage_manager=apt;x\n"),
    ];
    let frames = hostile.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect();
    let (found, problems) = facts::parse("n1", &frames);
    let json = facts::to_json(&found).unwrap();
    for bad in ["reboot", "..", "u001b", "999", "/99", "zz", "maybe"] {
        assert!(!json.contains(bad), "{bad} in {json}");
    }
    assert!(problems.len() >= 7, "{problems:#?}");
    assert!(problems.iter().all(|line| !line.contains(char::is_control)));
}

#[test]
fn every_recorded_case_survives_being_cut_anywhere() {
    for system in ["ubuntu-22.04-a100", "rocky-9-driver-rpm"] {
        let space = tempfile::tempdir().unwrap();
        let (root, tools) = (space.path().join("root"), space.path().join("tools"));
        build(&fs::read_to_string(Path::new(FOLDER).join(system).join("system.txt")).unwrap(), &root, &tools);
        let answer = ask(SHELLS[0], Depth::Full, root.to_str().unwrap(), Some(&tools));
        for end in (0..answer.len()).step_by(7) {
            let (found, _) = facts::parse(system, &frames(&answer[..end]));
            let json = facts::to_json(&found).unwrap();
            assert_eq!(facts::from_json(&json).unwrap(), found);
        }
    }
}

const KEYS: [&str; 26] = [
    "files",
    "pci",
    "modules",
    "marks",
    "arch",
    "glibc",
    "addresses",
    "interfaces",
    "hosts",
    "runs",
    "pending",
    "dpkg",
    "rpm",
    "versionlock",
    "settings",
    "repos",
    "memlock",
    "libraries",
    "environments",
    "smi",
    "processes",
    "container",
    "docker",
    "images",
    "gids",
    "disks",
];

proptest! {
    #[test]
    fn parsers_take_any_text(key in prop::sample::select(KEYS.to_vec()), text in "\\PC*|[ -~\\n\\x00-\\x1f:/=]*") {
        let seed = "proc/sys/kernel/osrelease:6.1\n";
        let frames = BTreeMap::from([("files".to_owned(), seed.to_owned()), (key.to_owned(), format!("{seed}{text}"))]);
        let (found, problems) = facts::parse("n1", &frames);
        let json = facts::to_json(&found).unwrap();
        prop_assert_eq!(facts::from_json(&json).unwrap(), found.clone());
        prop_assert!(!json.contains("\\u00"), "a control character in {}", json);
        prop_assert!(problems.iter().all(|line| !line.contains(char::is_control)));
        prop_assert!(facts::human(&found).iter().all(|line| !line.contains(char::is_control)));
    }

    #[test]
    fn lines_that_look_right_never_carry_control_characters(
        prefix in prop::sample::select(vec![
            "etc/os-release:ID=", "etc/os-release:VERSION_ID=", "proc/sys/kernel/hostname:", "proc/sys/kernel/arch:",
            "proc/driver/nvidia/version:NVRM version: NVIDIA UNIX x86_64 Kernel Module ", "sys/module/nvidia/version:",
            "etc/ssh/ssh_host_x_key.pub:ssh-ed25519 ", "sys/class/infiniband/", "etc/machine-id:",
        ]),
        text in "[ -~\\x00-\\x1f\\x7f-\\u{a0}]{0,40}",
    ) {
        let files = format!("proc/sys/kernel/osrelease:6.1\n{prefix}{text}\n");
        let marks = "package_manager=apt\nrdma=yes\nofed=no\n".to_owned();
        let frames = BTreeMap::from([("files".to_owned(), files), ("marks".to_owned(), marks)]);
        let json = facts::to_json(&facts::parse("n1", &frames).0).unwrap();
        prop_assert!(json.chars().all(|c| c == '\n' || !c.is_control()) && !json.contains("\\u"), "{}", json);
    }

    #[test]
    fn a_facts_file_of_any_text_is_an_error_at_most(text in "\\PC*") {
        let _ = facts::from_json(&text);
    }
}
