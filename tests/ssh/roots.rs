//! Becoming root: sudo with and without a password, and a password that must never show.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use provision::manifest::model::Become;
use provision::ssh::{ExecError, Exit, Target, Transport as _};

use crate::server::*;

fn for_user(server: &Server, user: &User, password: Option<&str>) -> Target {
    let mut ssh = server.ssh();
    ssh.user = Some(user.name.clone());
    ssh.r#become = Some(Become::Sudo);
    let mut target = target(ssh);
    target.become_password = password.and_then(secret);
    target
}

/// Logs sudo to a file and to its input log, so that a leak would be seen.
fn logged(server: &Server, rule: &str) -> String {
    let folder = server.folder.path().display();
    format!(
        "Defaults:USER logfile=\"{folder}/sudo.log\", log_input, iolog_dir=\"{folder}/io\"\nUSER ALL=(ALL) {rule}\n"
    )
}

/// Everything sudo wrote, its compressed logs unpacked.
fn sudo_logs(server: &Server) -> String {
    let folder = server.folder.path().display();
    run(
        "sh",
        &["-c", &format!("cat {folder}/sudo.log; find {folder}/io -type f -exec zcat -f {{}} + 2>/dev/null; true")],
    )
}

/// Watches the arguments and environments of all processes for a text until told to stop.
fn watch(text: &'static str) -> (Arc<AtomicBool>, std::thread::JoinHandle<(usize, usize)>) {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let watching = std::thread::spawn(move || {
        let (mut leaks, mut rounds) = (0, 0);
        while !stopped.load(Ordering::SeqCst) {
            for entry in fs::read_dir("/proc").unwrap().flatten() {
                for file in ["cmdline", "environ"] {
                    let bytes = fs::read(entry.path().join(file)).unwrap_or_default();
                    leaks += usize::from(bytes.windows(text.len()).any(|window| window == text.as_bytes()));
                }
            }
            rounds += 1;
        }
        (leaks, rounds)
    });
    (stop, watching)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_that_sudo_does_not_ask_for_never_leaves() {
    for shell in ["/bin/sh", "/bin/bash"] {
        let user = User::make("np", shell);
        let server = Server::start(&["ed25519"], "");
        user.sudoers(&logged(&server, "NOPASSWD: ALL"));
        // As a command, the canary would leave a file.
        let canary = "touch /tmp/CANARY-7f3a";
        let (stop, watching) = watch("CANARY-7f3a");
        let link = open(&server.connector(), &for_user(&server, &user, Some(canary))).await;
        for _ in 0..5 {
            let (result, kept) = exec(&link, "id -u; env; cat; echo \"$-\"", true).await;
            assert_eq!(result, Ok(Some(Exit::Status(0))), "{:?}", kept.text());
            assert!(kept.text().starts_with("0\n"));
            assert!(!kept.text().contains("CANARY") && kept.err.is_empty());
        }
        stop.store(true, Ordering::SeqCst);
        let (leaks, rounds) = watching.join().unwrap();
        assert!(rounds > 0);
        assert_eq!(leaks, 0);
        let logs = sudo_logs(&server);
        assert!(logs.contains("COMMAND="), "sudo's log is looked at");
        assert!(!logs.contains("CANARY") && !server.log().contains("CANARY"));
        assert!(!std::path::Path::new("/tmp/CANARY-7f3a").exists());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_that_sudo_asks_for() {
    let user = User::make("as", "/bin/bash");
    let server = Server::start(&["ed25519"], "");
    user.sudoers(&logged(&server, "ALL"));
    let (stop, watching) = watch(PASSWORD);
    let link = open(&server.connector(), &for_user(&server, &user, Some(PASSWORD))).await;
    // The first exec has no cached right, the second may have one, `sudo -k` in the third takes it away.
    for text in ["id -u", "id -u", "sudo -k; id -u", "id -u"] {
        let (result, kept) = exec(&link, text, true).await;
        assert_eq!((result, kept.text().as_str()), (Ok(Some(Exit::Status(0))), "0\n"));
        assert!(kept.err.is_empty(), "no prompt is left in the output");
    }
    stop.store(true, Ordering::SeqCst);
    assert_eq!(watching.join().unwrap().0, 0);
    assert!(!sudo_logs(&server).contains(PASSWORD));
    // What needs no root does not get it.
    assert_eq!(exec(&link, "id -un", false).await.1.text(), format!("{}\n", user.name));
}

#[tokio::test]
async fn sudo_with_a_terminal_of_its_own_takes_a_large_script() {
    let user = User::make("pt", "/bin/sh");
    let server = Server::start(&["ed25519"], "");
    let line = "# 0123456789 0123456789 0123456789 0123456789 0123456789\n";
    let text =
        format!("{}id -u; head -c 3000000 /dev/zero | tr '\\0' x; echo trouble >&2; exit 4", line.repeat(40_000));
    for rule in ["ALL", "NOPASSWD: ALL"] {
        user.sudoers(&format!("Defaults:USER use_pty\nUSER ALL=(ALL) {rule}\n"));
        let password = (rule == "ALL").then_some(PASSWORD);
        let link = open(&server.connector(), &for_user(&server, &user, password)).await;
        let (result, kept) = exec(&link, &text, true).await;
        assert_eq!(result, Ok(Some(Exit::Status(4))), "{rule}: {}", String::from_utf8_lossy(&kept.err));
        assert!(kept.out.starts_with(b"0\n") && kept.out.len() == 3_000_002, "{rule}: {}", kept.out.len());
        assert_eq!(kept.err, b"trouble\n", "{rule}");
    }
}

#[tokio::test]
async fn a_wrong_password_counts_once_and_runs_nothing() {
    let user = User::make("wr", "/bin/sh");
    let server = Server::start(&["ed25519"], "");
    user.sudoers(&logged(&server, "ALL"));
    let link = open(&server.connector(), &for_user(&server, &user, Some("Wrong-Canary"))).await;
    let mark = server.path("ran");
    let (result, kept) = exec(&link, &format!("touch {}", mark.display()), true).await;
    let Err(ExecError::NotRun(why)) = result else { panic!("{result:?}") };
    assert_eq!(why.kind, "root");
    assert!(why.what.contains("password") && why.what.contains("wrong"), "{why:?}");
    assert!(why.fix[0].contains("become_password"));
    assert!(!mark.exists() && kept.out.is_empty());
    let logs = sudo_logs(&server);
    assert!(logs.contains("1 incorrect password attempt"), "{logs}");
    assert!(!logs.contains("Wrong-Canary") && !format!("{why:?}").contains("Canary"));
}

#[tokio::test]
async fn no_root_is_told_apart() {
    let user = User::make("no", "/bin/sh");
    let server = Server::start(&["ed25519"], "");
    let connector = server.connector();
    let cases: [(&str, Option<&str>, &str); 4] = [
        ("USER ALL=(ALL) ALL\n", None, "asks"),
        ("# nothing\n", Some(PASSWORD), "may not become root"),
        ("USER ALL=(ALL) /bin/true\n", Some(PASSWORD), "may not become root"),
        ("Defaults:USER requiretty\nUSER ALL=(ALL) NOPASSWD: ALL\n", None, "wants a terminal"),
    ];
    for (sudoers, password, wanted) in cases {
        user.sudoers(sudoers);
        let link = open(&connector, &for_user(&server, &user, password)).await;
        let (result, _) = exec(&link, "id -u", true).await;
        let Err(ExecError::NotRun(why)) = result else { panic!("{wanted}: {result:?}") };
        assert!(why.kind == "root" && why.what.contains(wanted) && !why.fix.is_empty(), "{wanted}: {why:#?}");
        link.close().await;
    }
    let mut none = for_user(&server, &user, None);
    let mut settings = (*none.ssh).clone();
    settings.ssh.r#become = Some(Become::None);
    none.ssh = Arc::new(settings);
    let link = open(&connector, &none).await;
    let (result, _) = exec(&link, "id -u", true).await;
    assert!(matches!(&result, Err(ExecError::NotRun(why)) if why.because.join("").contains("become")), "{result:?}");
}

#[tokio::test]
async fn a_login_shell_that_talks_is_not_heard() {
    let user = User::make("tk", "/bin/bash");
    fs::write(format!("/home/{}/.bashrc", user.name), "echo Welcome; printf 'no newline'; echo Hello >&2\n").unwrap();
    let server = Server::start(&["ed25519"], "");
    user.sudoers("USER ALL=(ALL) NOPASSWD: ALL\n");
    let link = open(&server.connector(), &for_user(&server, &user, None)).await;
    for root in [false, true] {
        let (result, kept) = exec(&link, "echo answer; echo trouble >&2", root).await;
        assert_eq!(result, Ok(Some(Exit::Status(0))));
        assert_eq!(kept.text(), "answer\n");
    }
}

#[tokio::test]
async fn an_account_without_a_shell() {
    let user = User::make("ns", "/usr/sbin/nologin");
    let server = Server::start(&["ed25519"], "");
    let link = open(&server.connector(), &for_user(&server, &user, None)).await;
    let (result, _) = exec(&link, "id -u", false).await;
    let Err(ExecError::NotRun(why)) = result else { panic!("{result:?}") };
    assert!(why.what.contains("no shell") && why.because.join(" ").contains("not available"), "{why:?}");
}
