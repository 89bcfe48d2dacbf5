//! Host keys: known, changed, revoked, unknown, and the type that is asked for.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use provision::manifest::model::HostKeys;
use provision::ssh::{AskHostKey, Question, SshConnector, Transport as _};

use crate::server::*;

#[tokio::test]
async fn a_changed_key_stops_before_any_login() {
    let server = Server::start(&["ed25519"], "");
    let other = Server::start(&["ed25519"], "");
    let file = server.known_hosts(&format!("\n[127.0.0.1]:{} {}\n", server.port, other.host_key("ed25519")));
    let mut ssh = server.ssh();
    ssh.host_key.clear();
    for host_keys in [HostKeys::Strict, HostKeys::AcceptNew, HostKeys::Ask] {
        ssh.host_keys = Some(host_keys);
        let why = refused(&server.connector(), &target(ssh.clone())).await;
        assert_eq!(why.kind, "host-key");
        let text = format!("{why:?}");
        assert!(text.contains(&server.fingerprint("ed25519")), "{text}");
        assert!(text.contains(&other.fingerprint("ed25519")), "{text}");
        assert!(text.contains(&format!("{}:2", file.display())), "{text}");
    }
    // The node's own file and the manifest count before, and are checked the same way.
    let mut by_nodes = target(ssh.clone());
    by_nodes.known = vec![other.host_key("ed25519")];
    assert!(refused(&server.connector(), &by_nodes).await.because.join("\n").contains(".nodes"));
    by_nodes.known = vec!["ssh-ed25519 broken".to_owned()];
    assert!(refused(&server.connector(), &by_nodes).await.what.contains("cannot be read"));
    ssh.host_key = vec![other.fingerprint("ed25519")];
    by_nodes = target(ssh.clone());
    by_nodes.known = vec![server.host_key("ed25519")];
    assert!(refused(&server.connector(), &by_nodes).await.because.join("\n").contains("the manifest"));
    assert_eq!(server.logins_tried().await, 0, "{}", server.log());
    // The log shows logins at all: the right key gets one.
    ssh.host_key = vec![server.fingerprint("ed25519")];
    let link = open(&server.connector(), &target(ssh)).await;
    assert_eq!(link.host_key(), server.host_key("ed25519"));
    link.close().await;
    assert!(server.logins_tried().await > 0);
}

#[tokio::test]
async fn the_known_type_is_asked_for() {
    let server = Server::start(&["ed25519", "rsa", "ecdsa"], "");
    let mut ssh = server.ssh();
    for kind in ["rsa", "ecdsa", "ed25519"] {
        ssh.host_key = vec![server.host_key(kind)];
        let link = open(&server.connector(), &target(ssh.clone())).await;
        assert_eq!(link.host_key(), server.host_key(kind));
        // A fingerprint does not tell the type: all are looked at, before any login.
        ssh.host_key = vec![server.fingerprint(kind)];
        let link = open(&server.connector(), &target(ssh.clone())).await;
        assert_eq!(link.host_key(), server.host_key(kind));
    }
    ssh.host_key.clear();
    server.known_hosts(&format!("[127.0.0.1]:{} {}\n", server.port, server.host_key("rsa")));
    assert_eq!(open(&server.connector(), &target(ssh.clone())).await.host_key(), server.host_key("rsa"));
    ssh.host_key = vec![format!("SHA256:{}", "A".repeat(43))];
    let tried = server.logins_tried().await;
    assert_eq!(refused(&server.connector(), &target(ssh)).await.kind, "host-key");
    assert_eq!(server.logins_tried().await, tried);
}

#[tokio::test]
async fn hashed_and_revoked_entries_of_known_hosts() {
    let server = Server::start(&["ed25519"], "");
    let mut ssh = server.ssh();
    ssh.host_key.clear();
    let line = format!("[127.0.0.1]:{} {}\n", server.port, server.host_key("ed25519"));
    let file = server.known_hosts(&line);
    run("ssh-keygen", &["-q", "-H", "-f", file.to_str().unwrap()]);
    let hashed = std::fs::read_to_string(&file).unwrap();
    assert!(hashed.starts_with("|1|"), "{hashed}");
    open(&server.connector(), &target(ssh.clone())).await;
    let mut pinned = ssh.clone();
    pinned.host_key = vec![server.host_key("ed25519")];
    let tried = server.logins_tried().await;
    server.known_hosts(&format!("{hashed}@revoked * {}\n", server.host_key("ed25519")));
    let why = refused(&server.connector(), &target(ssh.clone())).await;
    assert!(why.what.contains("revoked") && why.because.join(" ").contains("known_hosts:2"), "{why:?}");
    let why = refused(&server.connector(), &target(pinned)).await;
    assert!(why.what.contains("revoked"), "a revocation counts beside a pin too: {why:?}");
    server.known_hosts(&format!("@cert-authority * {}\n", server.host_key("ed25519")));
    let why = refused(&server.connector(), &target(ssh)).await;
    assert!(why.what.contains("not known"), "{why:?}");
    assert_eq!(server.logins_tried().await, tried);
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_no_empty_file() {
    let server = Server::start(&["ed25519"], "");
    let mut ssh = server.ssh();
    ssh.host_key.clear();
    ssh.host_keys = Some(HostKeys::AcceptNew);
    std::fs::create_dir_all(server.path("home/.ssh/known_hosts")).unwrap();
    let why = refused(&server.connector(), &target(ssh)).await;
    assert!(why.kind == "host-key" && why.what.contains("known_hosts cannot be read"), "{why:?}");
    assert_eq!(server.logins_tried().await, 0);
}

#[tokio::test]
async fn an_unknown_key_is_refused_with_the_line_to_add() {
    let server = Server::start(&["ed25519"], "");
    let mut ssh = server.ssh();
    ssh.host_key.clear();
    let why = refused(&server.connector(), &target(ssh.clone())).await;
    assert!(why.because.join(" ").contains(&server.fingerprint("ed25519")), "{why:?}");
    let line = format!("[127.0.0.1]:{} {}", server.port, server.host_key("ed25519"));
    let fix = why.fix.iter().find(|fix| fix.contains(&line)).expect("the line to add");
    // Doing what it says helps.
    server.known_hosts(&fix[fix.find(&line).unwrap()..]);
    open(&server.connector(), &target(ssh)).await;
}

#[tokio::test]
async fn a_new_key_is_taken_and_told_and_then_held_to() {
    let server = Server::start(&["ed25519"], "");
    let mut ssh = server.ssh();
    ssh.host_key.clear();
    ssh.host_keys = Some(HostKeys::AcceptNew);
    let connector = server.connector();
    open(&connector, &target(ssh.clone())).await;
    open(&connector, &target(ssh)).await;
    assert_eq!(connector.accepted(), [("n1".to_owned(), server.host_key("ed25519"))]);
    assert!(!server.path("home/.ssh/known_hosts").exists(), "nothing is written");
}

struct Person {
    answer: bool,
    inside: AtomicUsize,
    asked: Mutex<Vec<Question>>,
}

impl AskHostKey for Person {
    fn ask(&self, question: &Question) -> bool {
        assert_eq!(self.inside.fetch_add(1, Ordering::SeqCst), 0, "two questions at once");
        self.asked.lock().unwrap().push(question.clone());
        std::thread::sleep(std::time::Duration::from_millis(30));
        self.inside.fetch_sub(1, Ordering::SeqCst);
        self.answer
    }
}

#[tokio::test]
async fn a_person_is_asked_one_question_at_a_time() {
    let server = Server::start(&["ed25519"], "");
    let mut ssh = server.ssh();
    ssh.host_key.clear();
    for answer in [true, false] {
        let person = Arc::new(Person { answer, inside: AtomicUsize::new(0), asked: Mutex::default() });
        let connector = SshConnector::new(provision::ssh::SshOptions {
            host_keys: HostKeys::Ask,
            ask: Some(person.clone()),
            ..server.options()
        });
        let (mut first, mut second) = (target(ssh.clone()), target(ssh.clone()));
        first.node = "a".to_owned();
        second.node = "b".to_owned();
        use provision::ssh::Connector as _;
        let (a, b, again) =
            tokio::join!(connector.connect(&first), connector.connect(&second), connector.connect(&second));
        assert_eq!((a.is_ok(), b.is_ok(), again.is_ok()), (answer, answer, answer));
        let asked = person.asked.lock().unwrap().clone();
        assert_eq!(asked[0].fingerprint, server.fingerprint("ed25519"));
        if answer {
            assert_eq!(asked.len(), 2, "the second connection to b is not asked about again: {asked:?}");
            assert_eq!(connector.accepted().len(), 2);
        }
    }
}
