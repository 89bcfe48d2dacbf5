//! Who may use whom, as ARCHITECTURE.md says it, and what the core must not touch.
//!
//! Test code is left out: it may use what it likes. The reading is of words, not of types; it sees paths with their
//! `use` groups taken apart, and comments and texts taken out.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, also outside its functions marked so"
)]

mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use source::{code, paths, tested_away, without_tests};

/// The rooms in the order of ARCHITECTURE.md, each with those it may use.
const ROOMS: &[(&str, &[&str])] = &[
    ("diag", &[]),
    ("nodeset", &["diag"]),
    ("secret", &["diag"]),
    ("event", &["diag", "nodeset", "secret"]),
    ("manifest", &["diag", "nodeset", "secret", "event"]),
    ("facts", &["diag", "nodeset", "secret", "event", "manifest"]),
    ("identity", &["diag", "facts"]),
    ("shell", &["secret"]),
    ("ops", &["diag", "nodeset", "secret", "event", "manifest", "facts", "identity", "shell"]),
    ("render", &["diag", "nodeset", "secret", "event", "manifest", "facts", "identity", "shell", "ops"]),
    ("steps", &["diag", "nodeset", "secret", "event", "manifest", "facts", "identity", "shell", "ops", "render"]),
    (
        "plan",
        &["diag", "nodeset", "secret", "event", "manifest", "facts", "identity", "shell", "ops", "render", "steps"],
    ),
    // The core ends here.
    ("ssh", CORE),
    ("state", CORE),
    (
        "exec",
        &[
            "diag", "nodeset", "secret", "event", "manifest", "facts", "identity", "shell", "ops", "render", "steps",
            "plan", "ssh", "state",
        ],
    ),
    // `ui` and `exec` meet only in `event`.
    ("ui", CORE),
    // The practice cluster knows nothing of the product's rooms.
    ("lab", &["diag"]),
    (
        "cli",
        &[
            "diag", "nodeset", "secret", "event", "manifest", "facts", "identity", "shell", "ops", "render", "steps",
            "plan", "ssh", "state", "exec", "ui", "lab",
        ],
    ),
];

/// The rooms without network, clock, environment, terminal, `async` or files.
const CORE: &[&str] =
    &["diag", "nodeset", "secret", "event", "manifest", "facts", "identity", "shell", "ops", "render", "steps", "plan"];

/// Runs of path segments that the core must not contain; the last segment counts as a beginning.
const OUTSIDE: &[&[&str]] = &[
    &["std", "fs"],
    &["std", "env"],
    &["std", "process"],
    &["std", "thread"],
    &["net", "Tcp"],
    &["net", "Udp"],
    &["net", "ToSocketAddrs"],
    &["std", "time", "SystemTime"],
    &["std", "time", "Instant"],
    &["SystemTime", "now"],
    &["Instant", "now"],
    &["Zoned", "now"],
    &["Timestamp", "now"],
    &["io", "stdin"],
    &["io", "stdout"],
    &["io", "stderr"],
    &["tokio"],
    &["futures"],
    &["russh"],
    &["indicatif"],
    &["anstream"],
    &["async"],
    &["await"],
    &["println!"],
    &["print!"],
    &["eprintln!"],
    &["eprint!"],
];

/// The only file that names the SSH library.
const SSH_CLIENT: &str = "src/ssh/client.rs";
const LINES: usize = 500;

/// A file below `src`.
struct Source {
    /// `src/ui/plan.rs`.
    name: String,
    text: String,
    /// Modules from the crate's root: `ui`, `plan`.
    modules: Vec<String>,
    /// Whether it is compiled only for tests.
    test: bool,
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    walk(&root.join("src"), &mut files);
    files.sort();
    let mut sources: Vec<Source> = files
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            let modules = modules(&name);
            Source { name, text, modules, test: false }
        })
        .collect();
    let mut away: BTreeSet<Vec<String>> = BTreeSet::new();
    for source in &sources {
        for module in tested_away(&code(&source.text)) {
            away.insert(source.modules.iter().cloned().chain([module]).collect());
        }
    }
    for source in &mut sources {
        source.test = (1..=source.modules.len()).any(|end| away.contains(&source.modules[..end]));
    }
    sources
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// `src/ui/mod.rs` is the module `ui`, `src/lib.rs` the root.
fn modules(name: &str) -> Vec<String> {
    let name = name.trim_start_matches("src/").trim_end_matches(".rs");
    let mut modules: Vec<String> = name.split('/').map(str::to_owned).collect();
    if matches!(modules.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        modules.pop();
    }
    modules
}

fn is_room(name: &str) -> bool {
    ROOMS.iter().any(|(room, _)| *room == name)
}

/// The rooms that a file's code uses.
fn uses(text: &str, modules: &[String]) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    for path in paths(text) {
        let supers = path.iter().take_while(|segment| *segment == "super").count();
        let room = if path.first().is_some_and(|segment| segment == "crate") {
            path.get(1)
        } else if supers >= modules.len() && supers > 0 {
            // It may also be an inner module that looks at its own file; then the name is seldom a room's.
            path.get(supers).filter(|name| is_room(name))
        } else {
            None
        };
        used.extend(room.filter(|room| room.starts_with(|first: char| first.is_ascii_lowercase())).cloned());
    }
    used
}

/// What the core must not touch, of one file's code.
fn outside(text: &str) -> Vec<String> {
    let touches = |path: &[String], banned: &[&str]| {
        path.windows(banned.len()).any(|window| {
            let last = banned.len() - 1;
            window[..last].iter().zip(banned).all(|(a, b)| a == b)
                && if banned.len() == 1 { window[0] == banned[0] } else { window[last].starts_with(banned[last]) }
        })
    };
    paths(text)
        .into_iter()
        .filter(|path| OUTSIDE.iter().any(|banned| touches(path, banned)))
        .map(|path| path.join("::"))
        .collect()
}

#[test]
fn arrows_point_left() {
    let mut wrong = Vec::new();
    let mut arrows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for source in sources().iter().filter(|source| !source.test) {
        let Some(room) = source.modules.first() else { continue };
        let Some((_, allowed)) = ROOMS.iter().find(|(name, _)| name == room) else {
            wrong.push(format!("{}: `{room}` is no room of the table", source.name));
            continue;
        };
        for used in uses(&without_tests(&code(&source.text)), &source.modules) {
            if used == *room {
                continue;
            }
            if !is_room(&used) {
                wrong.push(format!("{}: `crate::{used}` is no room of the table", source.name));
            } else if !allowed.contains(&used.as_str()) {
                wrong.push(format!("{}: `{room}` must not use `{used}`", source.name));
            }
            arrows.entry(room.clone()).or_default().insert(used);
        }
    }
    for (room, used) in &arrows {
        for other in used {
            if room < other && arrows.get(other).is_some_and(|back| back.contains(room)) {
                wrong.push(format!("`{room}` and `{other}` use each other"));
            }
        }
    }
    assert!(wrong.is_empty(), "wrong arrows, see ARCHITECTURE.md:\n{}", wrong.join("\n"));
}

#[test]
fn the_core_is_pure() {
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|source| !source.test) {
        if source.modules.first().is_some_and(|room| CORE.contains(&room.as_str())) {
            for what in outside(&without_tests(&code(&source.text))) {
                wrong.push(format!("{}: {what}", source.name));
            }
        }
    }
    assert!(wrong.is_empty(), "the core touches the outside:\n{}", wrong.join("\n"));
}

#[test]
fn one_file_names_the_ssh_library() {
    let wrong: Vec<String> = sources()
        .into_iter()
        .filter(|source| source.name != SSH_CLIENT)
        .filter(|source| paths(&code(&source.text)).iter().any(|path| path[0].starts_with("russh")))
        .map(|source| source.name)
        .collect();
    assert!(wrong.is_empty(), "only {SSH_CLIENT} may name russh: {wrong:?}");
}

#[test]
fn no_file_is_too_long() {
    let wrong: Vec<String> = sources()
        .into_iter()
        .map(|source| (source.text.lines().count(), source.name))
        .filter(|(lines, _)| *lines > LINES)
        .map(|(lines, name)| format!("{name}: {lines} lines"))
        .collect();
    assert!(wrong.is_empty(), "over {LINES} lines, to be split by meaning: {wrong:?}");
}

#[test]
fn the_table_is_the_one_of_the_page() {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("ARCHITECTURE.md")).unwrap();
    let rooms: Vec<&str> = page
        .lines()
        .skip_while(|line| !line.starts_with("## Rooms"))
        .skip(1)
        .take_while(|line| !line.starts_with("## "))
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|line| line.split_once('|'))
        .flat_map(|(cell, _)| cell.split(',').map(|room| room.trim().trim_matches('`')))
        .collect();
    let coded: Vec<&str> = ROOMS.iter().map(|(room, _)| *room).collect();
    assert_eq!(rooms, coded);
    let core: Vec<&str> = coded.iter().copied().take_while(|room| *room != "ssh").collect();
    assert_eq!(core, CORE);
    for (at, (room, allowed)) in ROOMS.iter().enumerate() {
        for used in *allowed {
            let before = ROOMS.iter().position(|(name, _)| name == used).unwrap() < at;
            assert!(before || (*room == "ops" && *used == "render"), "{room} -> {used}");
        }
    }
}

#[test]
fn wrong_code_is_found() {
    let ui = ["ui".to_owned(), "plan".to_owned()];
    let found = |text: &str| uses(&without_tests(&code(text)), &ui).into_iter().collect::<Vec<_>>();
    assert_eq!(found("use crate::exec::run;"), ["exec"]);
    assert_eq!(found("use crate::{event::{Event, Report}, ssh, plan as p};"), ["event", "plan", "ssh"]);
    assert_eq!(found("fn f() { let x = crate :: exec::run(); }"), ["exec"]);
    assert_eq!(found("use super::super::exec::run; use super::text;"), ["exec"]);
    assert_eq!(found("pub(in crate::ui) fn f() {}"), ["ui"]);
    assert!(
        found("// crate::exec\n/* crate::exec /* */ crate::exec */ const A: &str = r#\"crate::exec\"#;").is_empty()
    );
    assert!(
        found("const A: char = '\"'; #[cfg(test)] mod tests { use crate::exec; fn f() { let _ = '{'; } }").is_empty()
    );
    assert_eq!(found("#[cfg(test)] mod tests; use crate::exec;"), ["exec"]);
    assert_eq!(found("fn f<'a>(x: &'a str) { crate::exec::f('\\'') }"), ["exec"]);

    for text in [
        "use std::fs;",
        "use std::{collections::BTreeMap, fs::read};",
        "use std::env;",
        "fn f() { std::process::exit(1) }",
        "use std::net::{IpAddr, TcpStream};",
        "use std::time::{Duration, Instant};",
        "use std::io; fn f() { io::stdin(); }",
        "async fn f() {}",
        "use tokio::sync::mpsc;",
        "use russh::client;",
        "fn f() { println!(\"\"); }",
        "fn f() { x.run().await }",
    ] {
        assert!(!outside(&without_tests(&code(text))).is_empty(), "{text}");
    }
    for text in [
        "use std::net::IpAddr; use std::time::Duration; use std::fmt; use std::io::Write; fn print() { print(1) != x!=y }",
        "/// Reads with std::fs.\nconst A: &str = \"tokio std::env async\";",
        "#[cfg(test)]\nmod tests { use std::fs; }",
        "#[cfg(test)]\nfn only_here() -> [u8; 2] { std::process::id(); [1, 2] }",
    ] {
        assert_eq!(outside(&without_tests(&code(text))), Vec::<String>::new(), "{text}");
    }
    assert_eq!(
        tested_away(&code("#[cfg(test)]\nmod samples;\n#[cfg(test)] pub(super) mod more;")),
        ["samples", "more"]
    );
}
