//! Manifests through the real binary, and properties of the loader.

#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests may fail loudly")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use assert_cmd::Command;
use proptest::prelude::*;
use provision::diag::Finding;
use provision::manifest::model::{FileState, NodeState};
use provision::manifest::{Manifest, load};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn provision() -> Command {
    let mut command = Command::cargo_bin("provision").unwrap();
    command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").current_dir(root());
    command
}

/// Exit code, and what the JSON says as lines `CODE line:column title`.
fn check(path: &Path) -> (i32, String) {
    let output = provision().args(["check", "--format", "json"]).arg(path).output().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let code = output.status.code().unwrap();
    let mut lines = format!("exit {code} {}\n", json["verdict"].as_str().unwrap());
    for finding in json["findings"].as_array().unwrap() {
        let at = match &finding["at"] {
            serde_json::Value::Null => "-".to_owned(),
            at => format!("{}:{}", at["line"], at["column"]),
        };
        let (id, title) = (finding["code"].as_str().unwrap(), finding["title"].as_str().unwrap());
        lines.push_str(&format!("{id} {at} {title}\n"));
    }
    for part in json["no_step"].as_array().unwrap() {
        lines.push_str(&format!("no step: {}\n", part.as_str().unwrap()));
    }
    (code, lines)
}

/// Each folder of `tests/manifests` has a manifest and what `check` must say of it, to the column.
#[test]
fn every_case_has_exactly_the_findings_expected() {
    let mut cases: Vec<PathBuf> =
        fs::read_dir(root().join("tests/manifests")).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    let mut wrong = String::new();
    for case in &cases {
        let (code, found) = check(&case.join("cluster.yaml"));
        let good = case.file_name().unwrap().to_str().unwrap().starts_with("good-");
        assert_eq!(code, if good { 0 } else { 2 }, "{}", case.display());
        let expected = fs::read_to_string(case.join("expect.txt")).unwrap_or_default();
        if found != expected {
            wrong.push_str(&format!("{}\n--- expected\n{expected}--- found\n{found}", case.display()));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(cases.len() >= 15);
}

#[test]
fn examples_are_valid() {
    for entry in fs::read_dir(root().join("manifests")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "yaml") && !path.ends_with("lab.yaml") {
            let (code, found) = check(&path);
            assert_eq!(code, 0, "{found}");
        }
    }
}

#[test]
fn the_schema_is_the_committed_one() {
    let printed = provision().arg("schema").assert().success().get_output().stdout.clone();
    let committed = fs::read_to_string(root().join("manifests/schema.json")).unwrap();
    let same = String::from_utf8(printed).unwrap() == committed;
    assert!(same, "run `provision schema > manifests/schema.json`");
}

#[test]
fn people_read_where_why_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let text = "version: 1\ncluster: a\npakages: [\"\\e[31m\"]\nnodes: [{name: n1}]\n";
    fs::write(folder.path().join("cluster.yaml"), text).unwrap();
    let output = provision().arg("check").current_dir(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(!shown.contains('\u{1b}'), "colours in a pipe: {shown}");
    let wanted = [
        "error[P0002]: unknown key `pakages` in the manifest\n --> cluster.yaml:3:1\n",
        "2 | cluster: a\n3 | pakages: [\"\\e[31m\"]\n  | ^^^^^^^",
        "help: did you mean `packages`?",
        "cluster.yaml: 1 error; file is not valid; nothing was judged\n",
    ];
    for part in wanted {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    let coloured = provision().arg("check").current_dir(folder.path()).env("CLICOLOR_FORCE", "1").output().unwrap();
    assert!(String::from_utf8(coloured.stdout).unwrap().contains('\u{1b}'));
    let plain = provision().arg("check").current_dir(folder.path()).env("NO_COLOR", "1").output().unwrap();
    assert_eq!(String::from_utf8(plain.stdout).unwrap(), shown);
}

#[test]
fn control_characters_of_the_manifest_never_reach_the_screen() {
    let text = "version: 1\ncluster: \"\\e]0;x\\a\\u202e\\x9b\"\nnodes: [{name: n1}]\n";
    for format in ["human", "json"] {
        let output = provision().args(["check", "-", "--format", format]).write_stdin(text).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let shown = String::from_utf8(output.stdout).unwrap();
        let bad = shown.chars().find(|c| c.is_control() && *c != '\n' || *c == '\u{202e}');
        assert_eq!(bad, None, "{shown}");
    }
}

#[test]
fn a_plain_password_is_never_shown() {
    let text = "version: 1\ncluster: a\nssh: {password: hunter2, x: 1}\nnodes: [{name: n1}]\n";
    for format in ["human", "json"] {
        let output = provision().args(["check", "-", "--format", format]).write_stdin(text).output().unwrap();
        let shown = String::from_utf8(output.stdout).unwrap();
        assert!(shown.contains("P0009") && !shown.contains("hunter2"), "{shown}");
    }
}

#[test]
fn the_last_line_counts_and_names_what_has_no_step() {
    let text = "version: 1\ncluster: a\nnodes: [{name: 'n[1-3]'}, {name: x, state: out}]\n";
    let output = provision().args(["check", "-"]).write_stdin(text).assert().success().get_output().stdout.clone();
    let last = String::from_utf8(output).unwrap().lines().last().unwrap().to_owned();
    assert_eq!(last, "3 nodes; file is valid; versions not judged");
    let text = format!("{text}stack: {{driver: 550, cuda: 12.4}}\n");
    let output = provision().args(["check", "-"]).write_stdin(text).assert().success().get_output().stdout.clone();
    let last = String::from_utf8(output).unwrap().lines().last().unwrap().to_owned();
    assert_eq!(
        last,
        "3 nodes; file is valid; versions not judged; no step in this build for: stack.driver, stack.cuda"
    );
}

#[test]
fn what_cannot_be_read_is_a_finding() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(check(&folder.path().join("none.yaml")).1.lines().nth(1).unwrap().split(' ').next(), Some("P0011"));
    assert_eq!(check(folder.path()).0, 2);
    let write = |bytes: &[u8]| {
        let path = folder.path().join("m.yaml");
        fs::write(&path, bytes).unwrap();
        let (code, found) = check(&path);
        assert_eq!(code, 2);
        found.lines().nth(1).unwrap().to_owned()
    };
    assert_eq!(write(b"version: 1\ncluster: \xff\n"), "P0001 2:10 the file is not UTF-8 text");
    assert_eq!(write(b"version: 1\n\0"), "P0001 2:1 control character \\u{0} in the manifest");
    assert!(write(b"").starts_with("P0007 1:1 "));
    assert!(write("[".repeat(100_000).as_bytes()).starts_with("P0012 1:65 lists and maps nested"));
    let deep: String = (0..500).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    assert!(write(deep.as_bytes()).starts_with("P0012 65:65 lists and maps nested"));
    let mut chain = String::from("a0: &a0 x\n");
    for i in 1..20_000 {
        chain.push_str(&format!("a{i}: &a{i} [*a{}]\n", i - 1));
    }
    assert!(write(chain.as_bytes()).starts_with("P0012 "));
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for i in 1..12 {
        let items = vec![format!("*a{}", i - 1); 10].join(", ");
        bomb.push_str(&format!("a{i}: &a{i} [{items}]\n"));
    }
    assert!(write(bomb.as_bytes()).starts_with("P0012 "), "{}", write(bomb.as_bytes()));
    let ranges = "  - {name: 'n[1-100000]', address: 'x[1-100000]'}\n".repeat(20_000);
    let first = write(format!("version: 1\ncluster: a\nnodes:\n{ranges}").as_bytes());
    assert_eq!(first, "P0012 5:5 more than 100000 nodes");
    assert!(write(b"a: &a [*a]\n").starts_with("P0001 1:8 "), "{}", write(b"a: &a [*a]\n"));
    let path = folder.path().join("m.yaml");
    fs::File::create(&path).unwrap().set_len(100 << 20).unwrap();
    assert!(check(&path).1.contains("P0012 1:1 the manifest is too large"));
}

#[test]
fn windows_line_ends_and_a_byte_order_mark_do_no_harm() {
    let text = "\u{feff}version: 1\r\ncluster: ab\r\nssh:\r\n  usr: x\r\nnodes: [{name: n1}]\r\n";
    let (manifest, findings) = load("t", text);
    assert!(manifest.is_none());
    let place = findings[0].at.as_ref().unwrap();
    assert_eq!((findings.len(), place.line, place.column, &text[place.start..place.end]), (1, 4, 3, "usr"));
    assert_eq!(good(&text.replace("usr", "user")).cluster, "ab");
}

#[test]
fn init_writes_what_check_accepts_and_overwrites_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("new");
    provision().arg("init").arg(&dir).assert().success();
    let text = fs::read_to_string(dir.join("cluster.yaml")).unwrap();
    assert!(text.starts_with("# yaml-language-server: $schema="));
    assert_eq!(fs::read_to_string(dir.join(".gitignore")).unwrap(), ".provision/\n");
    provision().arg("check").current_dir(&dir).assert().success();
    fs::write(dir.join("cluster.yaml"), "mine").unwrap();
    fs::write(dir.join(".gitignore"), "mine").unwrap();
    provision().arg("init").arg(&dir).assert().code(2);
    assert_eq!(fs::read_to_string(dir.join("cluster.yaml")).unwrap(), "mine");
    fs::remove_file(dir.join("cluster.yaml")).unwrap();
    provision().arg("init").arg(&dir).assert().success();
    assert_eq!(fs::read_to_string(dir.join(".gitignore")).unwrap(), "mine");
}

fn good(text: &str) -> Manifest {
    let (manifest, findings) = load("t", text);
    manifest.unwrap_or_else(|| panic!("{findings:#?}"))
}

const EVERYTHING: &str = include_str!("manifests/good-everything/cluster.yaml");

#[test]
fn values_arrive_as_written() {
    let manifest = good(EVERYTHING);
    assert_eq!(manifest.nodes.len(), 17);
    let [first, .., last] = &manifest.nodes[..] else { panic!() };
    assert_eq!((first.name.as_str(), first.address.as_str()), ("gpu01", "10.0.0.11"));
    assert_eq!((last.name.as_str(), last.address.as_str(), last.state), ("old", "2001:db8::7", NodeState::Out));
    let settings = &first.settings;
    assert_eq!(settings.stack["cuda.version"][0].value, "12.10");
    assert_eq!(settings.stack["nccl_env.NCCL_DEBUG"][0].value, "INFO");
    assert_eq!(last.settings.stack["cuda.version"].len(), 2);
    assert_eq!(settings.ssh.jump[1].host, "2001:db8::1");
    assert_eq!(settings.ssh.jump[1].port, Some(2222));
    assert_eq!(settings.ssh.jump[1].user.as_deref(), Some("u"));
    assert_eq!(settings.files[0].mode.as_deref(), Some("0644"));
    assert!(matches!(settings.files[0].what, FileState::Content(_)));
    assert_eq!(settings.base.as_ref().unwrap().limits["nofile"], "1048576");
    assert_eq!(settings.trust.as_ref().unwrap().user, "train");
    assert_eq!(first.declared["gpus"][0].value, "8x A100-SXM4-80GB");
    assert_eq!(manifest.groups["a100"].len(), 16);
    assert_eq!(manifest.secrets.len(), 2);
    assert!(std::sync::Arc::ptr_eq(&manifest.nodes[0].settings, &manifest.nodes[15].settings));
    let refused = manifest.refuse_unbuilt();
    assert!(refused.iter().all(|finding| finding.code == "P0020" && finding.at.is_some()));
    assert_eq!(refused.len(), manifest.unbuilt.len());
}

#[test]
fn layers_reach_the_typed_values() {
    let manifest = good(
        "version: 1\ncluster: a\nssh: {user: a, port: 1}\npackages: [x, y]\ntrust: {user: t}\nstack: {driver: {version: 1, flavor: open}}\n\
         groups:\n  g: {ssh: {user: b}, packages: [{name: x, hold: true}], stack: {driver: 2}}\n  h: {ssh: {user: c}}\n\
         nodes:\n  - {name: n1, groups: [h, g], trust: ~, packages: [z]}\n  - {name: n2, groups: [g, h], ssh: {port: 3}, stack: {driver: ~}}\n",
    );
    let [n1, n2] = &manifest.nodes[..] else { panic!() };
    assert_eq!((n1.settings.ssh.user.as_deref(), n1.settings.ssh.port), (Some("b"), Some(1)));
    assert_eq!((n2.settings.ssh.user.as_deref(), n2.settings.ssh.port), (Some("c"), Some(3)));
    assert!(n1.settings.trust.is_none() && n2.settings.trust.is_some());
    let packages: Vec<(&str, Option<bool>)> =
        n1.settings.packages.iter().map(|package| (package.name.as_str(), package.hold)).collect();
    assert_eq!(packages, [("x", Some(true)), ("y", None), ("z", None)]);
    assert_eq!(n1.settings.stack["driver.version"][0].value, "2");
    assert_eq!(n1.settings.stack["driver.flavor"][0].value, "open");
    assert!(n2.settings.stack.is_empty());
}

#[test]
fn ten_thousand_nodes_load_fast() {
    let mut text = String::from("version: 1\ncluster: a\npackages: [a, b, c]\ngroups: {g: {os: debian-12}}\nnodes:\n");
    for i in 0..10_000 {
        text.push_str(&format!("  - {{name: n{i}, address: 10.0.{}.{}, groups: [g]}}\n", i / 250, i % 250));
    }
    let start = Instant::now();
    assert_eq!(good(&text).nodes.len(), 10_000);
    // Unoptimized and on a busy machine; the release build has its own goal.
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

/// Whatever is found has a place inside of the text, and there is a manifest exactly when nothing is wrong.
fn sound(text: &str) -> Result<Vec<Finding>, TestCaseError> {
    let (manifest, findings) = load("t", text);
    prop_assert_eq!(manifest.is_none(), !findings.is_empty());
    for finding in &findings {
        let place = finding.at.as_ref().unwrap();
        prop_assert!(place.line >= 1 && place.column >= 1 && place.start <= place.end.max(place.start));
        prop_assert!(place.start <= text.len() && place.line as usize <= text.lines().count() + 1);
    }
    let _ = provision::ui::findings::human(&findings, "t", text);
    Ok(findings)
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(text) = provision::manifest::tree::decode("t", &bytes) {
            sound(text)?;
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in "(\\PC|[\\n\\t:\\[\\]{}&*!'\"#|>~, -]){0,120}") {
        sound(&text)?;
    }

    #[test]
    fn no_change_to_a_good_manifest_makes_it_panic(
        at in 0..EVERYTHING.len(),
        cut in 0_usize..30,
        put in "[\\n\\t :\\[\\]{}&*!'\"#|>~,a-z0-9$@-]{0,6}",
    ) {
        let mut text = EVERYTHING.to_owned();
        text.replace_range(at..(at + cut).min(text.len()), &put);
        sound(&text)?;
    }
}

/// A manifest in a folder of its own whose only node is never reached.
fn lonely(body: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "version: 1\ncluster: t\nssh: {{user: nobody, config: false}}\n{body}nodes:\n  - {{name: n1, address: 127.0.0.1, \
         ssh: {{port: 1}}}}\n  - {{name: n2, state: out}}\n"
    );
    fs::write(folder.path().join("cluster.yaml"), text).unwrap();
    folder
}

/// Exit code, standard output and standard error of the program in a folder.
fn ran(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = provision().current_dir(folder).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn every_exit_2_has_one_json_document_that_says_why() {
    let folder = lonely("");
    let place = folder.path();
    let plan = |format: u32, rest: &str| format!("{{\"provision_plan\": {format}{rest}");
    fs::write(place.join("cut.plan"), plan(1, ", \"manif")).unwrap();
    fs::write(place.join("new.plan"), plan(2, "}")).unwrap();
    fs::write(place.join("odd.plan"), plan(1, "}")).unwrap();
    fs::write(place.join("file"), "").unwrap();
    for (arguments, says) in [
        (&["plan", "nope.yaml"][..], "cannot read nope.yaml"),
        (&["apply", "cut.plan"], "no whole plan"),
        (&["apply", "new.plan"], "newer"),
        (&["apply", "odd.plan"], "no plan"),
        (&["plan", "cut.plan"], "is a saved plan"),
        (&["check", "cut.plan"], "is a saved plan"),
        (&["status", "--limit", "!n1"], "selects no node"),
        (&["apply", "--yes", "--limit", "n1,!n1"], "selects no node"),
        (&["plan", "--limit", "n2"], "state: out"),
        (&["plan", "--limit", "n3"], "no node `n3`"),
        (&["plan", "--bogus"], "--bogus"),
        (&["apply", "a", "b"], "unexpected argument"),
        (&["plan", "--deadline", "nap=1"], "nap"),
        (&["plan", "--out", "file/x"], "not saved"),
        (&["facts", "--out", "file/x"], "not written"),
        (&["log", "--manifest", "nope.yaml"], "nope.yaml"),
        (&["log", "n9"], "n9"),
    ] {
        let arguments: Vec<&str> = arguments.iter().copied().chain(["--format", "json"]).collect();
        let (code, out, err) = ran(place, &arguments);
        assert_eq!(code, 2, "{arguments:?}: {out}{err}");
        let json: serde_json::Value =
            serde_json::from_str(&out).unwrap_or_else(|why| panic!("{arguments:?}: {why}: {out:?}"));
        assert_eq!(json["verdict"], "error", "{arguments:?}");
        assert!(out.contains(says), "{arguments:?}: {out}");
    }
}

#[test]
fn a_full_disk_is_no_success_and_a_full_standard_error_no_panic() {
    let folder = lonely("");
    let full = || fs::File::options().write(true).open("/dev/full").unwrap();
    let run = |arguments: &[&str], out: bool| {
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("provision"));
        command.current_dir(folder.path()).args(arguments);
        if out {
            command.stdout(full())
        } else {
            command.stderr(full())
        };
        command.output().unwrap().status.code().unwrap()
    };
    for arguments in [&["check"][..], &["schema"], &["help"], &["--version"], &["log"]] {
        assert_eq!(run(arguments, true), 1, "{arguments:?}");
    }
    assert_eq!(run(&["check", "nope.yaml"], true), 2);
    for arguments in [&["plan", "nope.yaml"][..], &["plan", "--bogus"], &["apply", "nope.yaml"], &["init", "/dev/null"]]
    {
        assert_eq!(run(arguments, false), 2, "{arguments:?}");
    }
}

#[test]
fn secrets_that_cannot_be_meant_are_refused_before_a_node_is_contacted() {
    for (body, says) in [
        ("files: [{path: /x, content: \"${command:yes canary}\"}]\n", "larger than 1 MiB"),
        ("files: [{path: /x, content: \"${command:printf 'canary\\\\0'}\"}]\n", "NUL"),
        ("files: [{path: /x, content: \"${command:printf 'canary\\\\377'}\"}]\n", "UTF-8"),
        ("files: [{path: /x, content: \"${command:echo canary; exit 3}\"}]\n", "exit status: 3"),
        ("files: [{path: /x, content: \"${file:link}\"}]\n", "outside the manifest's folder"),
    ] {
        let folder = lonely(body);
        std::os::unix::fs::symlink("/etc/hostname", folder.path().join("link")).unwrap();
        let (code, out, err) = ran(folder.path(), &["plan"]);
        assert!(code == 2 && err.contains(says) && out.is_empty(), "{body}: {code} {err}");
        assert_eq!(err.matches("canary").count(), body.matches("canary").count() * err.matches("${command:").count());
    }
    // A password is one line: whoever reads it takes one line for it.
    let folder = lonely("");
    let text = fs::read_to_string(folder.path().join("cluster.yaml")).unwrap();
    let text = text.replace("config: false", "config: false, become_password: \"${file:two}\"");
    fs::write(folder.path().join("cluster.yaml"), text).unwrap();
    fs::write(folder.path().join("two"), "canary\ntouch /tmp/x\n").unwrap();
    let (code, _, err) = ran(folder.path(), &["plan"]);
    assert!(code == 2 && err.contains("more than one line") && !err.contains("canary"), "{err}");
}

#[test]
fn wishes_that_make_no_operations_are_refused_before_a_node_is_contacted() {
    for (body, says) in [
        ("files: [{path: /x, content: \"{{ node.nmae }}\"}]\n", "cannot be filled in"),
        ("packages: [Htop]\n", "lower case"),
        ("base: {limits: {nofile: 5}}\n", "ssh.user"),
    ] {
        let folder = lonely(body);
        if body.starts_with("base") {
            let path = folder.path().join("cluster.yaml");
            let text = fs::read_to_string(&path).unwrap().replace("user: nobody, ", "");
            fs::write(&path, text).unwrap();
        }
        let (code, out, err) = ran(folder.path(), &["apply", "--yes"]);
        assert!(
            code == 2 && err.contains(says) && err.contains("nothing was contacted") && out.is_empty(),
            "{code} {err}"
        );
    }
}
