//! The engine over a pretended link: what it does when links die, scripts vanish, nodes babble and people interrupt.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on fails")]

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use provision::event::{Event, LeftOut};
use provision::exec::follow::{Ended, Phase, phase};
use provision::exec::{Context, Deadlines};
use provision::manifest::model::Settings;
use provision::secret::Secret;
use provision::ssh::{Connector, ExecError, Exit, Flow, LinkLost, Output, Script, Target, Transport};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_util::sync::CancellationToken;

/// What the node does with one exec.
#[derive(Clone)]
enum Act {
    /// The start script ends with this status.
    Start(u32),
    /// The event file shows itself from the asked offset up to this length, then the link dies.
    CutAt(usize),
    /// It shows itself up to this length, then the exec ends with status 0.
    EndsAt(usize),
    /// It shows itself to its end; then the exec ends with status 0.
    Whole,
    /// Endless output that means nothing, in lines or without one end of line.
    Babble { lines: bool },
    /// Nothing is ever said.
    Hang,
    /// The link dies before anything is said.
    Dead,
}

struct Node {
    file: String,
    acts: Mutex<VecDeque<Act>>,
    /// What was asked, in order: `start`, `follow OFFSET`, `connect`.
    asked: Mutex<Vec<String>>,
    refuses: Mutex<VecDeque<&'static str>>,
}

struct Wire(Arc<Node>);

impl Transport for Link {
    async fn exec(&self, script: &Script, output: &mut dyn Output) -> Result<Option<Exit>, ExecError> {
        let node = &self.0;
        let follows = script.text.contains("follow_events");
        let offset = if follows {
            let call = script.text.lines().rev().find(|line| line.starts_with("follow_events")).unwrap();
            let word = call.split_whitespace().last().unwrap().trim_matches('\'');
            node.asked.lock().unwrap().push(format!("follow {word}"));
            word.parse::<usize>().unwrap()
        } else {
            node.asked.lock().unwrap().push("start".to_owned());
            0
        };
        let act = node.acts.lock().unwrap().pop_front().unwrap_or(Act::Dead);
        let lost = |why: &str| Err(ExecError::LinkLost(LinkLost { why: why.to_owned() }));
        match act {
            Act::Start(status) => {
                output.stderr(b"why it did not\n");
                Ok(Some(Exit::Status(status)))
            }
            Act::CutAt(length) => {
                // In small pieces, so that lines are cut anywhere.
                for piece in node.file.as_bytes()[offset..length].chunks(7) {
                    if output.stdout(piece) == Flow::Stop {
                        return Ok(None);
                    }
                }
                lost("connection reset")
            }
            Act::Whole | Act::EndsAt(_) => {
                let end = if let Act::EndsAt(end) = act { end.max(offset) } else { node.file.len() };
                for piece in node.file.as_bytes()[offset..end].chunks(7) {
                    if output.stdout(piece) == Flow::Stop {
                        return Ok(None);
                    }
                }
                Ok(Some(Exit::Status(0)))
            }
            Act::Babble { lines } => loop {
                let line = format!("@\t1\t{}\n", "x".repeat(4000));
                let piece = if lines { line.repeat(16).into_bytes() } else { vec![b'x'; 65536] };
                if output.stdout(&piece) == Flow::Stop {
                    return Ok(None);
                }
            },
            Act::Hang => std::future::pending().await,
            Act::Dead => lost("no answer"),
        }
    }

    fn how(&self) -> String {
        "pretended".to_owned()
    }

    fn host_key(&self) -> String {
        "ssh-ed25519 AAAA".to_owned()
    }

    async fn close(self) {}
}

struct Link(Arc<Node>);

impl Connector for Wire {
    type Link = Link;

    async fn connect(&self, _: &Target) -> Result<Link, LeftOut> {
        self.0.asked.lock().unwrap().push("connect".to_owned());
        match self.0.refuses.lock().unwrap().pop_front() {
            None => Ok(Link(Arc::clone(&self.0))),
            Some(kind) => Err(LeftOut {
                kind: kind.to_owned(),
                what: format!("refused: {kind}"),
                because: Vec::new(),
                fix: Vec::new(),
            }),
        }
    }
}

const EVENTS: &str =
    "@\t1\tbegin\t2\n@\t2\tstart\t0\n@\t3\tchanged\t0\t1\n@\t4\tstart\t1\n@\t5\tfine\t1\t1\n@\t6\tend\t0\n";

struct Outcome {
    ended: Ended,
    changed: usize,
    events: Vec<Event>,
    asked: Vec<String>,
}

fn run(file: &str, acts: &[Act], refuses: &[&'static str], resumed: bool) -> Outcome {
    run_with(file, acts, refuses, resumed, |_| ())
}

fn run_with(
    file: &str,
    acts: &[Act],
    refuses: &[&'static str],
    resumed: bool,
    with: impl FnOnce(&CancellationToken),
) -> Outcome {
    let node = Arc::new(Node {
        file: file.to_owned(),
        acts: Mutex::new(acts.iter().cloned().collect()),
        asked: Mutex::default(),
        refuses: Mutex::new(refuses.iter().copied().collect()),
    });
    let (events, receiver) = unbounded_channel();
    let (logs, _kept) = unbounded_channel();
    let cancel = CancellationToken::new();
    with(&cancel);
    let deadlines =
        Deadlines { reconnect: Duration::from_secs(20), silence: Duration::from_secs(60), ..Deadlines::default() };
    let secrets: Arc<[Secret]> = Arc::new([Secret::new("hunter2-canary".to_owned())]);
    let context = Context { events, logs, cancel, deadlines, max_parallel: 1, secrets };
    let job = Phase {
        id: "R.node".to_owned(),
        name: "node".to_owned(),
        operations: vec!["file /a".to_owned(), "file /b".to_owned()],
        start: (!resumed).then(|| Script { text: Arc::from("start"), root: true }),
        root: true,
    };
    let target = Target {
        node: "n1".to_owned(),
        address: "192.0.2.1".to_owned(),
        address_given: true,
        ssh: Arc::new(Settings::default()),
        known: Vec::new(),
        passphrase: None,
        password: None,
        become_password: None,
    };
    let wire = Wire(Arc::clone(&node));
    let mut link = Some(Link(Arc::clone(&node)));
    // Time stands still but for the waits, so that deadlines of minutes take none.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let (ended, changed) = runtime.block_on(phase(&wire, &target, &mut link, &job, &context, &|_, _| ()));
    drop(context);
    let asked = node.asked.lock().unwrap().clone();
    Outcome { ended, changed, events: drain(receiver), asked }
}

fn drain(mut receiver: UnboundedReceiver<Event>) -> Vec<Event> {
    std::iter::from_fn(|| receiver.try_recv().ok()).collect()
}

fn counts(outcome: &Outcome) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for event in &outcome.events {
        let name = match event {
            Event::OpStarted { .. } => "started",
            Event::OpDone { .. } => "done",
            Event::LinkLost { .. } => "lost",
            Event::Reconnected { .. } => "back",
            Event::PhaseDone { .. } => "phase done",
            _ => continue,
        };
        *counts.entry(name).or_insert(0) += 1;
    }
    counts
}

#[test]
fn an_undisturbed_phase_is_started_and_followed_once() {
    let outcome = run(EVENTS, &[Act::Start(0), Act::Whole], &[], false);
    assert_eq!(outcome.ended, Ended::Well);
    assert_eq!(outcome.changed, 1);
    assert_eq!(outcome.asked, ["start", "follow 0"]);
    assert_eq!(counts(&outcome), BTreeMap::from([("started", 2), ("done", 2), ("phase done", 1)]));
}

/// Wherever the link is cut, each event is told once, and following goes on behind the last whole line.
#[test]
fn a_cut_at_every_byte_tells_everything_once() {
    let end = EVENTS.rfind("@\t6").unwrap();
    for cut in 0..end {
        let outcome = run(EVENTS, &[Act::Start(0), Act::CutAt(cut), Act::Whole], &[], false);
        assert_eq!(outcome.ended, Ended::Well, "cut at {cut}");
        let counts = counts(&outcome);
        assert_eq!((counts["started"], counts["done"], counts["lost"], counts["back"]), (2, 2, 1, 1), "cut at {cut}");
        let whole = EVENTS.get(..cut).unwrap().rfind('\n').map_or(0, |at| at + 1);
        assert_eq!(outcome.asked, ["start", "follow 0", "connect", &format!("follow {whole}")], "cut at {cut}");
    }
}

#[test]
fn a_start_whose_end_was_not_heard_is_sent_again() {
    let outcome = run(EVENTS, &[Act::Dead, Act::Start(0), Act::Whole], &[], false);
    assert_eq!(outcome.ended, Ended::Well);
    assert_eq!(outcome.asked, ["start", "connect", "start", "follow 0"]);
}

#[test]
fn a_start_that_fails_fails_the_phase_with_its_reason() {
    let outcome = run(EVENTS, &[Act::Start(1)], &[], false);
    let Ended::Failed { what, .. } = outcome.ended else { panic!("{:?}", outcome.ended) };
    assert!(what.contains("why it did not"), "{what}");
    assert_eq!(outcome.asked, ["start"]);
}

#[test]
fn a_phase_that_was_found_running_is_only_followed() {
    let outcome = run(EVENTS, &[Act::Whole], &[], true);
    assert_eq!(outcome.ended, Ended::Well);
    assert_eq!(outcome.asked, ["follow 0"]);
}

#[test]
fn a_script_that_is_gone_without_an_end_is_a_failure_at_its_operation() {
    let file = "@\t1\tbegin\t2\n@\t2\tstart\t1\n@\t3\tgone\n";
    let outcome = run(file, &[Act::Start(0), Act::Whole], &[], false);
    let Ended::Failed { at, what } = outcome.ended else { panic!("{:?}", outcome.ended) };
    assert_eq!(at, "file /b");
    assert!(what.contains("gone without an end"), "{what}");
}

#[test]
fn following_that_ends_early_is_no_end_of_the_phase() {
    // The first exec shows a part and ends with status 0, as a reader that was killed; the second shows the rest.
    let outcome = run(EVENTS, &[Act::Start(0), Act::EndsAt(20), Act::Whole], &[], false);
    assert_eq!(outcome.ended, Ended::Well);
    assert_eq!(counts(&outcome)["lost"], 1);
    // When it never brings anything, following is given up and nothing is said to have failed.
    let acts: Vec<Act> = std::iter::once(Act::Start(0)).chain(vec![Act::EndsAt(0); 100]).collect();
    let outcome = run(EVENTS, &acts, &[], false);
    assert!(matches!(outcome.ended, Ended::Lost(ref what) if what.contains("cannot be read")), "{:?}", outcome.ended);
}

#[test]
fn a_start_that_hangs_is_given_up() {
    let outcome = run(EVENTS, &[Act::Hang], &[], false);
    assert!(matches!(outcome.ended, Ended::Lost(ref what) if what.contains("handed over within 300 s")));
}

/// A tail is cut by the node at a byte, so its first line may begin inside a secret.
#[test]
fn a_line_that_may_have_been_cut_is_dropped() {
    use base64::Engine as _;
    let cut = format!("nter2-canary {}\nfailed\n", "x".repeat(16_400));
    let tail = base64::engine::general_purpose::STANDARD.encode(cut);
    let file = format!("@\t1\tbegin\t2\n@\t2\tstart\t0\n@\t3\tfailed\t0\tmend\t7\t{tail}\n@\t4\tend\t1\n");
    let outcome = run(&file, &[Act::Start(0), Act::Whole], &[], false);
    assert!(!format!("{:?}", outcome.events).contains("canary"));
    assert_eq!(outcome.ended, Ended::Failed { at: "file /a".to_owned(), what: "exit status 7: failed".to_owned() });
}

#[test]
fn a_link_that_stays_away_is_given_up_in_time_and_refusals_at_once() {
    let outcome = run(EVENTS, &[Act::Start(0), Act::Dead], &["unreachable"; 100], false);
    let Ended::Lost(what) = outcome.ended else { panic!("{:?}", outcome.ended) };
    assert!(what.contains("did not come back within 20 s"), "{what}");

    let outcome = run(EVENTS, &[Act::Start(0), Act::Dead], &["unreachable", "host-key"], false);
    assert_eq!(outcome.ended, Ended::Lost("refused: host-key".to_owned()));
    assert_eq!(outcome.asked, ["start", "follow 0", "connect", "connect"]);
}

#[test]
fn silence_and_babble_end() {
    let outcome = run(EVENTS, &[Act::Start(0), Act::Hang], &[], false);
    assert!(matches!(outcome.ended, Ended::Lost(ref what) if what.contains("nothing was heard")));
    for lines in [false, true] {
        let outcome = run(EVENTS, &[Act::Start(0), Act::Babble { lines }], &[], false);
        assert!(matches!(outcome.ended, Ended::Failed { ref what, .. } if what.contains("endless")));
    }
}

#[test]
fn an_interrupt_ends_the_following_and_nothing_else() {
    let outcome = run_with(EVENTS, &[Act::Start(0), Act::Hang], &[], false, CancellationToken::cancel);
    assert_eq!(outcome.ended, Ended::Interrupted);
    assert!(!counts(&outcome).contains_key("phase done"));
}

#[test]
fn a_secret_that_a_failing_command_printed_is_hidden() {
    use base64::Engine as _;
    let tail = base64::engine::general_purpose::STANDARD.encode("token=hunter2-canary\nfailed\n");
    let file = format!("@\t1\tbegin\t2\n@\t2\tstart\t0\n@\t3\tfailed\t0\tmend\t7\t{tail}\n@\t4\tend\t1\n");
    let outcome = run(&file, &[Act::Start(0), Act::Whole], &[], false);
    assert_eq!(outcome.ended, Ended::Failed { at: "file /a".to_owned(), what: "exit status 7: failed".to_owned() });
    let text = format!("{:?}", outcome.events);
    assert!(text.contains("token=***") && !text.contains("canary"), "{text}");
}

#[test]
fn no_end_and_no_line_of_a_secret_is_left_standing() {
    let (events, _events) = unbounded_channel();
    let (logs, _logs) = unbounded_channel();
    let secrets = ["abcd", "abcd-longer", "x", "line one\nline two\n"].map(|text| Secret::new(text.to_owned()));
    let context = Context {
        events,
        logs,
        cancel: CancellationToken::new(),
        deadlines: Deadlines::default(),
        max_parallel: 1,
        secrets: Arc::from(secrets),
    };
    assert_eq!(context.hide("abcd-longer abcd x"), "*** *** x");
    assert_eq!(context.hide("says line two"), "says ***");
}
