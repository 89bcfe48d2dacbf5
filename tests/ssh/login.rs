//! Logging in: keys, passphrases, agent, passwords, and how failures are told.

use std::process::{Child, Command, Stdio};

use provision::ssh::{SshConnector, SshOptions, Transport as _};

use crate::server::*;

struct Agent {
    child: Child,
    socket: std::path::PathBuf,
}

impl Agent {
    fn start(server: &Server) -> Agent {
        let socket = server.path("agent");
        let child = Command::new("ssh-agent")
            .args(["-D", "-a", socket.to_str().unwrap()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_for("the agent's socket", || socket.exists());
        Agent { child, socket }
    }

    fn add(&self, key: &std::path::Path) {
        let added = Command::new("ssh-add").arg("-q").arg(key).env("SSH_AUTH_SOCK", &self.socket).status().unwrap();
        assert!(added.success());
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn authorize(server: &Server, key: &str) {
    std::fs::copy(server.path(&format!("{key}.pub")), server.path("authorized")).unwrap();
}

#[tokio::test]
async fn keys_of_every_type_and_their_formats() {
    let server = Server::start(&["ed25519"], "");
    for (name, kind) in [("rsa", "rsa"), ("ec", "ecdsa"), ("ed", "ed25519")] {
        make_key(&server.path(name), kind, "");
        authorize(&server, name);
        let mut ssh = server.ssh();
        ssh.identity = vec![name.to_owned()];
        open(&server.connector(), &target(ssh)).await;
    }
    let pem = server.path("pem");
    run("ssh-keygen", &["-q", "-t", "rsa", "-m", "PEM", "-N", "", "-f", pem.to_str().unwrap()]);
    authorize(&server, "pem");
    let mut ssh = server.ssh();
    ssh.identity = vec!["pem".to_owned()];
    open(&server.connector(), &target(ssh)).await;
}

#[tokio::test]
async fn a_key_with_a_passphrase() {
    let server = Server::start(&["ed25519"], "");
    make_key(&server.path("locked"), "ed25519", "open sesame");
    authorize(&server, "locked");
    let mut ssh = server.ssh();
    ssh.identity = vec!["locked".to_owned()];
    let mut target = target(ssh);
    let why = refused(&server.connector(), &target).await;
    assert!(why.because.contains(&"key locked: is encrypted and no passphrase is given".to_owned()), "{why:?}");
    assert!(why.fix.join(" ").contains("ssh-add"));
    target.passphrase = secret("wrong");
    let why = refused(&server.connector(), &target).await;
    assert!(why.because.contains(&"key locked: the passphrase is wrong".to_owned()), "{why:?}");
    assert!(!format!("{why:?}").contains("\"wrong\""));
    target.passphrase = secret("open sesame");
    open(&server.connector(), &target).await;
}

#[tokio::test]
async fn the_agent_is_asked_for_the_named_key_only() {
    let server = Server::start(&["ed25519"], "MaxAuthTries 2");
    let agent = Agent::start(&server);
    for number in 0..4 {
        let other = server.path(&format!("other{number}"));
        make_key(&other, "ed25519", "");
        agent.add(&other);
    }
    make_key(&server.path("right"), "rsa", "");
    authorize(&server, "right");
    agent.add(&server.path("right"));
    let connector = SshConnector::new(SshOptions { agent: Some(agent.socket.clone()), ..server.options() });
    // The private half is only in the agent: the .pub file names it.
    std::fs::remove_file(server.path("right")).unwrap();
    let mut ssh = server.ssh();
    ssh.identity = vec!["right".to_owned()];
    open(&connector, &target(ssh.clone())).await;
    // Without a name all keys are tried, and this server ends that after two.
    ssh.identity.clear();
    let why = refused(&connector, &target(ssh)).await;
    assert!(why.because.join("\n").contains("the server ended the login"), "{why:#?}");
    assert!(why.fix[0].contains("ssh: identity"), "{why:#?}");
}

#[tokio::test]
async fn a_wrong_key_lists_every_method_and_is_tried_once() {
    let server = Server::start(&["ed25519"], "");
    make_key(&server.path("wrong"), "ed25519", "");
    std::fs::write(server.path("broken"), "no key").unwrap();
    let mut ssh = server.ssh();
    ssh.identity = ["wrong", "absent", "broken"].map(str::to_owned).to_vec();
    let why = refused(&server.connector(), &target(ssh)).await;
    assert_eq!(why.kind, "auth");
    let starts = [
        "agent: not running (SSH_AUTH_SOCK is not set)",
        "key wrong: refused by the server",
        "key absent: no such file",
        "key broken: is no key file that can be read",
        "password: none given",
    ];
    for start in starts {
        assert!(why.because.iter().any(|line| line.starts_with(start)), "{start}: {why:#?}");
    }
    let log = server.whole_log().await;
    assert_eq!(log.matches("Failed publickey").count(), 1, "{log}");
}

#[tokio::test]
async fn password_and_keyboard_interactive() {
    let user = User::make("pw", "/bin/sh");
    for (word, more) in
        [("password", "PasswordAuthentication yes"), ("keyboard-interactive/pam", "KbdInteractiveAuthentication yes")]
    {
        let server = Server::start(&["ed25519"], more);
        let mut ssh = server.ssh();
        ssh.user = Some(user.name.clone());
        ssh.identity.clear();
        let mut target = target(ssh);
        target.password = secret(PASSWORD);
        let link = open(&server.connector(), &target).await;
        assert_eq!(exec(&link, "id -un", false).await.1.text(), format!("{}\n", user.name));
        server.logged(&format!("Accepted {word}"), 1);
        target.password = secret("Wrong-Canary");
        let why = refused(&server.connector(), &target).await;
        assert_eq!(why.kind, "auth");
        assert!(!format!("{why:?}").contains("Canary"), "{why:?}");
        link.close().await;
        let log = server.whole_log().await;
        let failed = format!("Failed {}", word.split('/').next().unwrap());
        assert_eq!(log.matches(&failed).count(), 1, "{log}");
    }
}
