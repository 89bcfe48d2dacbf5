//! Ways to a node: `ssh -G`, jump hosts, and all the ways that end before sshd.

use std::net::TcpListener;

use provision::manifest::model::{HostKeys, Jump};
use provision::ssh::{Connector as _, Transport as _};

use crate::server::*;

/// A jump host and a node, each with its own key for login and for itself.
fn behind() -> (Server, Server, provision::ssh::Target) {
    let (jump, node) = (Server::start(&["ed25519"], ""), Server::start(&["ed25519"], ""));
    let mut ssh = node.ssh();
    ssh.jump = vec![Jump {
        host: "127.0.0.1".to_owned(),
        port: Some(jump.port),
        user: Some("root".to_owned()),
        identity: vec![jump.path("id").display().to_string()],
        host_key: vec![jump.host_key("ed25519")],
    }];
    let target = target(ssh);
    (jump, node, target)
}

fn change(target: &mut provision::ssh::Target, change: impl FnOnce(&mut provision::manifest::model::Ssh)) {
    let mut settings = (*target.ssh).clone();
    change(&mut settings.ssh);
    target.ssh = std::sync::Arc::new(settings);
}

#[tokio::test]
async fn nodes_share_one_connection_to_their_jump_host() {
    let (jump, node, target) = behind();
    let connector = node.connector();
    let (a, b) = tokio::join!(connector.connect(&target), connector.connect(&target));
    let (a, b) = (a.map_err(|why| format!("{why:?}")).unwrap(), b.map_err(|why| format!("{why:?}")).unwrap());
    assert_eq!(exec(&a, "echo a", true).await.1.text(), "a\n");
    assert_eq!(exec(&b, "echo b", true).await.1.text(), "b\n");
    assert_eq!(a.host_key(), node.host_key("ed25519"));
    jump.logged("Accepted publickey", 1);
    node.logged("Accepted publickey", 2);
}

#[tokio::test]
async fn a_jump_host_is_checked_like_a_node() {
    let (jump, node, mut target) = behind();
    change(&mut target, |ssh| ssh.jump[0].host_key = vec![node.host_key("ed25519")]);
    let why = refused(&node.connector(), &target).await;
    assert!(why.kind == "host-key" && why.what.contains("jump host"), "{why:?}");
    assert_eq!((jump.logins_tried().await, node.logins_tried().await), (0, 0));
    // Its refusal is final for all nodes behind it.
    change(&mut target, |ssh| {
        ssh.jump[0].host_key = vec![jump.host_key("ed25519")];
        ssh.jump[0].identity = vec![node.path("id").display().to_string()];
    });
    let connector = node.connector();
    for _ in 0..3 {
        assert_eq!(refused(&connector, &target).await.kind, "auth");
    }
    assert_eq!(jump.whole_log().await.matches("Failed publickey").count(), 1);
    assert_eq!(node.logins_tried().await, 0);
}

#[tokio::test]
async fn a_dead_end_behind_the_jump_host_and_two_jump_hosts() {
    let (jump, node, mut target) = behind();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    change(&mut target, |ssh| ssh.port = Some(closed));
    let why = refused(&node.connector(), &target).await;
    assert!(why.kind == "unreachable" && why.what.contains("through the jump host"), "{why:?}");
    let before = jump.log().len();
    change(&mut target, |ssh| ssh.jump.push(ssh.jump[0].clone()));
    let why = refused(&node.connector(), &target).await;
    assert!(why.kind == "unreachable" && why.because.join(" ").contains("one jump host"), "{why:?}");
    assert_eq!(jump.log().len(), before, "nothing is contacted");
}

#[tokio::test]
async fn the_ssh_configuration_fills_what_the_manifest_leaves_open() {
    let (jump, node, mut target) = behind();
    let folder = node.folder.path().display().to_string();
    std::fs::write(
        node.path("ssh_config"),
        format!(
            "Host far\n HostName 127.0.0.1\n Port {}\n User root\n IdentityFile {folder}/i%%d\n ProxyJump near\n \
             UserKnownHostsFile {folder}/known_%p\n StrictHostKeyChecking no\nHost near\n HostName 127.0.0.1\n Port {}\n \
             User root\n IdentityFile {}/id\n UserKnownHostsFile {folder}/known_jump\n",
            node.port,
            jump.port,
            jump.folder.path().display(),
        ),
    )
    .unwrap();
    std::fs::copy(node.path("id"), node.path("i%d")).unwrap();
    let line = |server: &Server| format!("[127.0.0.1]:{} {}\n", server.port, server.host_key("ed25519"));
    std::fs::write(node.path(&format!("known_{}", node.port)), line(&node)).unwrap();
    std::fs::write(node.path("known_jump"), line(&jump)).unwrap();
    target.address = "far".to_owned();
    target.address_given = false;
    change(&mut target, |ssh| *ssh = provision::manifest::model::Ssh::default());
    let connector = node.connector();
    let link = open(&connector, &target).await;
    assert_eq!(link.host_key(), node.host_key("ed25519"));
    jump.logged("Accepted publickey", 1);
    assert!(connector.notes().join("\n").contains("StrictHostKeyChecking no"), "{:?}", connector.notes());
    // It is really ignored: an unknown host is not let in.
    std::fs::remove_file(node.path(&format!("known_{}", node.port))).unwrap();
    assert_eq!(refused(&node.connector(), &target).await.kind, "host-key");
    // The manifest counts first.
    change(&mut target, |ssh| ssh.user = Some("nobody-here".to_owned()));
    change(&mut target, |ssh| ssh.host_keys = Some(HostKeys::AcceptNew));
    let why = refused(&node.connector(), &target).await;
    assert!(why.kind == "auth" && why.what.contains("nobody-here"), "{why:?}");
    std::fs::write(node.path("ssh_config"), "Host far\n ProxyCommand nc %h %p\n").unwrap();
    assert!(refused(&node.connector(), &target).await.what.contains("ProxyCommand"));
    std::fs::write(node.path("ssh_config"), "Nonsense here\n").unwrap();
    let why = refused(&node.connector(), &target).await;
    assert!(why.because.join(" ").to_lowercase().contains("nonsense"), "{why:?}");
}

#[tokio::test]
async fn ends_before_sshd_are_told_apart() {
    let server = Server::start(&["ed25519"], "");
    let connector = server.connector();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut at = target(server.ssh());
    change(&mut at, |ssh| ssh.port = Some(closed));
    let why = refused(&connector, &at).await;
    assert_eq!(why.what, format!("no answer on 127.0.0.1 port {closed}: connection refused"));
    at.address = "no-such-name.invalid".to_owned();
    assert!(refused(&connector, &at).await.what.contains("has no address"));
    let page = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut web = target(server.ssh());
    change(&mut web, |ssh| ssh.port = Some(page.local_addr().unwrap().port()));
    let once = std::thread::spawn(move || {
        use std::io::Write as _;
        let (mut stream, _) = page.accept().unwrap();
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n");
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    let why = refused(&connector, &web).await;
    once.join().unwrap();
    assert!(why.what.contains("speaks no SSH") && why.because[0].contains("HTTP/1.1 400"), "{why:?}");
    // One that never says a word, and one that speaks another protocol.
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut at = target(server.ssh());
    change(&mut at, |ssh| ssh.port = Some(mute.local_addr().unwrap().port()));
    let impatient = provision::ssh::SshConnector::new(provision::ssh::SshOptions {
        connect_timeout: std::time::Duration::from_millis(300),
        ..server.options()
    });
    assert!(refused(&impatient, &at).await.what.contains("silence"));
    let rude = TcpListener::bind("127.0.0.1:0").unwrap();
    change(&mut at, |ssh| ssh.port = Some(rude.local_addr().unwrap().port()));
    let answering = std::thread::spawn(move || {
        for _ in 0..provision::ssh::pacing::ATTEMPTS {
            use std::io::Write as _;
            let (mut stream, _) = rude.accept().unwrap();
            let _ = stream.write_all(b"Exceeded \x1b[31mMaxStartups\r\n");
            let _ = stream.shutdown(std::net::Shutdown::Write);
            // Read to the end, so that no reset throws away what was written.
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        }
    });
    let why = refused(&connector, &at).await;
    answering.join().unwrap();
    let text = format!("{}\n{}", why.what, why.because.join("\n"));
    assert!(text.contains("MaxStartups") && !text.contains('\u{1b}'), "{text}");
}

#[tokio::test]
async fn the_key_exchange_can_be_chosen() {
    let server = Server::start(&["ed25519"], "");
    let mut ssh = server.ssh();
    ssh.kex = vec!["curve25519-sha256@libssh.org".to_owned()];
    assert_eq!(open(&server.connector(), &target(ssh.clone())).await.kex(), "curve25519-sha256@libssh.org");
    ssh.kex = vec!["diffie-hellman-group1-sha1".to_owned()];
    let why = refused(&server.connector(), &target(ssh.clone())).await;
    assert!(why.because[0].contains("no common Kex algorithm"), "{why:?}");
    ssh.kex = vec!["made-up".to_owned()];
    assert!(refused(&server.connector(), &target(ssh)).await.because[0].contains("made-up"));
}

#[tokio::test]
async fn a_host_asked_about_after_others_gets_the_answer_it_would_get_alone() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (file, more) = (home.join("config"), home.join("more"));
    let local = provision::ssh::config::Local { home, user: "me" };
    std::fs::write(&more, "Port 2222\nIdentityFile ~/.ssh/one\n").unwrap();
    let other = home.join("other");
    std::fs::write(&other, "Host n2\n Port 2223\n").unwrap();
    for text in [
        String::new(),
        "Host *\n User admin\n IdentityFile ~/.ssh/id_%%\n StrictHostKeyChecking no\n".to_owned(),
        format!("Include {}\n", more.display()),
        format!("Include {}\n", other.display()),
        "Host n1\n User one\n".to_owned(),
        "Host *\n HostName %h.lan\n".to_owned(),
        "Match host n2\n ProxyJump near\n".to_owned(),
        "UserKnownHostsFile /keys/%h\n".to_owned(),
        "ProxyCommand nc %h %p\n".to_owned(),
    ] {
        std::fs::write(&file, &text).unwrap();
        let shared = provision::ssh::config::Asker::new(Some(file.clone()));
        for alias in ["n1", "n2", "n3.lan", "N4", "10.0.0.5"] {
            let alone = provision::ssh::config::Asker::new(Some(file.clone()));
            let expected = alone.ask(alias, None, None, local).await.unwrap();
            assert_eq!(shared.ask(alias, None, None, local).await.unwrap(), expected, "{alias}: {text}");
        }
    }
}
