//! Running scripts: output, exit status, lost links, size, and what it costs.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use provision::ssh::{Connector as _, ExecError, Exit, Flow, Output, Transport as _};

use crate::server::*;

#[tokio::test]
async fn output_status_and_signal() {
    let server = Server::start(&["ed25519"], "");
    let link = open(&server.connector(), &target(server.ssh())).await;
    let (result, kept) = exec(&link, "echo out; echo err >&2; exit 3", true).await;
    assert_eq!(result, Ok(Some(Exit::Status(3))));
    assert_eq!((kept.out.as_slice(), kept.err.as_slice()), (&b"out\n"[..], &b"err\n"[..]));
    let (result, _) = exec(&link, "kill -9 $$", true).await;
    assert_eq!(result, Ok(Some(Exit::Signal)));
    // Standard input is empty for the script: nothing of it can be swallowed by a command.
    let (result, kept) = exec(&link, "cat; echo still here", true).await;
    assert_eq!((result, kept.text().as_str()), (Ok(Some(Exit::Status(0))), "still here\n"));
    let (_, kept) = exec(&link, "printf '%s' 'a\"b$(id)\\n`'", true).await;
    assert_eq!(kept.text(), "a\"b$(id)\\n`");
    // What comes after the exit status still counts.
    let (result, kept) = exec(&link, "(while kill -0 $$ 2>/dev/null; do :; done; echo late) & exit 0", true).await;
    assert_eq!((result, kept.text().as_str()), (Ok(Some(Exit::Status(0))), "late\n"));
    server.logged("Accepted publickey", 1);
    link.close().await;
    wait_for("the goodbye", || server.log().contains("Received disconnect"));
}

#[tokio::test]
async fn a_megabyte_script_and_much_output_at_once() {
    let server = Server::start(&["ed25519"], "");
    let link = open(&server.connector(), &target(server.ssh())).await;
    let mut text = String::new();
    while text.len() < 5_000_000 {
        text.push_str("x='0123456789 0123456789 0123456789 0123456789 0123456789 0123456789'\n");
    }
    text.push_str("head -c 8000000 /dev/zero | tr '\\0' x; echo end");
    let started = Instant::now();
    let (result, kept) = exec(&link, &text, true).await;
    assert_eq!(result, Ok(Some(Exit::Status(0))));
    assert_eq!(kept.out.len(), 8_000_004);
    println!("5 MB script, 8 MB output: {:?}", started.elapsed());
}

#[tokio::test]
async fn output_is_stopped_and_the_link_lives_on() {
    let server = Server::start(&["ed25519"], "");
    let link = open(&server.connector(), &target(server.ssh())).await;
    let mut kept = Kept { stop_after: Some(64 << 20), ..Kept::default() };
    let result = link.exec(&script("exec cat /dev/zero", true), &mut kept).await;
    assert_eq!(result, Ok(None));
    assert!(kept.out.len() >= 64 << 20 && kept.out.len() < 65 << 20, "{}", kept.out.len());
    assert_eq!(exec(&link, "echo alive", true).await.1.text(), "alive\n");
}

fn session_of(server: &Server) -> String {
    children(&server.pid().to_string()).remove(0)
}

/// Kills the session's sshd once the script says that it runs.
struct Killer {
    pid: String,
    killed: bool,
}

impl Output for Killer {
    fn stdout(&mut self, _: &[u8]) -> Flow {
        if !self.killed {
            run("kill", &["-9", &self.pid]);
            self.killed = true;
        }
        Flow::Continue
    }

    fn stderr(&mut self, _: &[u8]) -> Flow {
        Flow::Continue
    }
}

#[tokio::test]
async fn a_killed_session_is_a_lost_link() {
    let server = Server::start(&["ed25519"], "");
    let link = open(&server.connector(), &target(server.ssh())).await;
    let mut killer = Killer { pid: session_of(&server), killed: false };
    let result = link.exec(&script("echo run; exec sleep 60", true), &mut killer).await;
    assert!(matches!(&result, Err(ExecError::LinkLost(_))), "{result:?}");
    assert!(link.is_closed());
    let (result, _) = exec(&link, "echo again", true).await;
    assert!(matches!(result, Err(ExecError::LinkLost(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_dies_while_sending_runs_nothing() {
    let server = Server::start(&["ed25519"], "");
    let mark = server.path("ran");
    let link = open(&server.connector(), &target(server.ssh())).await;
    // Killed once the node takes the script in, which is long before it has all of it.
    let session = session_of(&server);
    let text =
        format!("touch {}\n{}", mark.display(), "# 0123456789012345678901234567890123456789\n".repeat(2_000_000));
    let mut kept = Kept::default();
    let script = script(&text, true);
    let sending = link.exec(&script, &mut kept);
    let killing = tokio::task::spawn_blocking(move || {
        let taking = || {
            let shells = children(&session);
            shells
                .iter()
                .flat_map(|shell| children(shell))
                .any(|pid| std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "cat\n"))
        };
        wait_for("the node to take the script", taking);
        run("kill", &["-9", &session]);
    });
    let (result, killed) = tokio::join!(sending, killing);
    killed.unwrap();
    assert!(matches!(result, Err(ExecError::LinkLost(_))), "{result:?}");
    assert!(!mark.exists());
}

#[tokio::test]
async fn a_reader_that_gets_half_runs_nothing() {
    let server = Server::start(&["ed25519"], "");
    let mark = server.path("ran");
    let framing = provision::ssh::sudo::Framing::new("a".repeat(32));
    let command = framing.command(provision::ssh::sudo::Way::Plain);
    let mut child =
        Command::new("sh").args(["-c", &command]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    use std::io::Write as _;
    writeln!(child.stdin.take().unwrap(), "{}touch {}", framing.opening(), mark.display()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(97));
    assert!(!mark.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn forty_at_once_to_one_sshd_that_drops_early() {
    let server = Server::start(&["ed25519"], "MaxStartups 3:100:3");
    let connector = server.connector();
    let target = Arc::new(target(server.ssh()));
    let mut all = Vec::new();
    for _ in 0..40 {
        let (connector, target) = (connector.clone(), Arc::clone(&target));
        all.push(tokio::spawn(async move { connector.connect(&target).await.map(|link| link.kex()) }));
    }
    for one in all {
        let kex = one.await.unwrap().unwrap_or_else(|why| panic!("{why:#?}"));
        assert!(kex == "mlkem768x25519-sha256" || kex == "curve25519-sha256", "{kex}");
    }
    assert_eq!(server.whole_log().await.matches("Accepted publickey").count(), 40);
}

#[tokio::test]
async fn what_it_costs_against_ssh() {
    // A user of its own: root's shell may read a long .bashrc here.
    let user = User::make("ct", "/bin/sh");
    let server = Server::start(&["ed25519"], "");
    let known = server.known_hosts(&format!("[127.0.0.1]:{} {}\n", server.port, server.host_key("ed25519")));
    let mut ssh = server.ssh();
    ssh.user = Some(user.name.clone());
    let target = target(ssh);
    let port = server.port.to_string();
    let (id, files) = (server.path("id").display().to_string(), format!("UserKnownHostsFile={}", known.display()));
    let place = format!("{}@127.0.0.1", user.name);
    let theirs_with = |kex: &str| {
        let kex = format!("KexAlgorithms={kex}");
        let options = ["-F", "none", "-p", &port, "-i", &id, "-o", &files, "-o", "IdentityAgent=none", "-o", &kex];
        let started = Instant::now();
        run("ssh", &[&options[..], &[&place, "true"]].concat());
        started.elapsed()
    };
    let (mut ours, mut connected, mut again, mut theirs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..15 {
        let started = Instant::now();
        let link = open(&server.connector(), &target).await;
        connected.push(started.elapsed());
        assert_eq!(exec(&link, "true", false).await.0, Ok(Some(Exit::Status(0))));
        ours.push(started.elapsed());
        let started = Instant::now();
        exec(&link, "true", false).await.0.unwrap();
        again.push(started.elapsed());
        link.close().await;
        theirs.push(theirs_with("curve25519-sha256"));
    }
    let median = |times: &mut Vec<std::time::Duration>| {
        times.sort();
        times[times.len() / 2]
    };
    let (connected, again) = (median(&mut connected), median(&mut again));
    let (ours, theirs) = (median(&mut ours), median(&mut theirs));
    println!("median: connect {connected:?}, connect and exec {ours:?}, second exec {again:?}; ssh {theirs:?}");
    assert!(ours < theirs, "ours {ours:?}, ssh {theirs:?}");
}
