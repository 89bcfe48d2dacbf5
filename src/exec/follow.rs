//! Following a phase on a node: from a byte offset, over as many connections as it takes.
//!
//! The script runs detached, so a lost link loses nothing: we come back and read on from where we were.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::Context;
use crate::event::{Event, Outcome};
use crate::render::{self, NodeEvent};
use crate::ssh::{Connector, ExecError, Exit, Flow, Output, Script, Target, Transport};

/// Cap on what the events of one phase may amount to.
const EVENT_BYTES: u64 = 64 * 1024 * 1024;

/// Cap on one line of it, well above what our script writes.
const LINE_BYTES: usize = 1024 * 1024;

/// How the reason begins when a node could not even keep the script.
pub const NOT_STARTED: &str = "the phase could not be started";

/// How long handing a phase over may take.
const START: Duration = Duration::from_secs(300);

/// How many connections in a row may bring nothing new before following is given up.
const FRUITLESS: u32 = 20;

/// Bytes of a tail from which on its first line may have been cut by the node.
const CUT_TAIL: usize = 16_000;

/// A phase that runs, or is to be started, on a node.
pub struct Phase {
    /// Its folder's name under `runs/` on the node.
    pub id: String,
    /// `node` or `mesh`.
    pub name: String,
    /// The operations' ids, by the index that events name.
    pub operations: Vec<String>,
    /// The script that writes and starts it; `None` when it was found running.
    pub start: Option<Script>,
    /// Whether root is needed to read its events.
    pub root: bool,
}

/// How a phase ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// Every operation is as wanted.
    Well,
    /// An operation failed (its event was sent).
    Failed {
        /// The operation's id.
        at: String,
        /// What went wrong.
        what: String,
    },
    /// It cannot be followed any more; it may still run there.
    Lost(String),
    /// Ctrl-C.
    Interrupted,
}

/// Starts (if need be) and follows a phase to its end, and says how many operations it changed; `on_yield` gets what operations yield, as it comes.
pub async fn phase<C: Connector>(
    connector: &C,
    target: &Target,
    link: &mut Option<C::Link>,
    phase: &Phase,
    context: &Context,
    on_yield: &(dyn Fn(&str, &str) + Send + Sync),
) -> (Ended, usize) {
    let node = target.node.as_str();
    context.say(Event::PhaseStarted {
        node: node.to_owned(),
        phase: phase.name.clone(),
        operations: phase.operations.len(),
        resumed: phase.start.is_none(),
    });
    let mut lines = Lines::new(node, phase, context, on_yield);
    let mut started = phase.start.is_none();
    let (mut fruitless, mut heard) = (0, 0);
    let ended = loop {
        let open = match link.take() {
            Some(open) => open,
            None => match reconnect(connector, target, context).await {
                Ok(open) => open,
                Err(ended) => break ended,
            },
        };
        let step = tokio::select! {
            step = advance(&open, phase, &mut started, &mut lines, context) => step,
            () = context.cancel.cancelled() => Step::Over(Ended::Interrupted),
        };
        match step {
            Step::Over(ended) => {
                *link = Some(open);
                break ended;
            }
            Step::LinkLost(why) => {
                fruitless = if lines.offset > heard { 0 } else { fruitless + 1 };
                heard = lines.offset;
                if fruitless > FRUITLESS {
                    open.close().await;
                    break Ended::Lost(format!("its events cannot be read: {why}"));
                }
                context.say(Event::LinkLost { node: node.to_owned(), why });
                open.close().await;
            }
        }
    };
    if ended != Ended::Interrupted && !matches!(ended, Ended::Lost(_)) {
        context.say(Event::PhaseDone { node: node.to_owned(), phase: phase.name.clone(), ok: ended == Ended::Well });
    }
    (ended, lines.changed)
}

enum Step {
    Over(Ended),
    LinkLost(String),
}

/// One go over one connection: start if not started, then follow.
async fn advance<L: Transport>(
    link: &L,
    phase: &Phase,
    started: &mut bool,
    lines: &mut Lines<'_>,
    context: &Context,
) -> Step {
    if let (false, Some(script)) = (*started, &phase.start) {
        let mut said = Said::default();
        let Ok(result) = tokio::time::timeout(START, link.exec(script, &mut said)).await else {
            let seconds = START.as_secs();
            return Step::Over(Ended::Lost(format!("the phase could not be handed over within {seconds} s")));
        };
        match result {
            Ok(Some(Exit::Status(0))) => *started = true,
            Ok(_) => {
                let said = context.hide(&said.end());
                lines.log(&format!("phase {}: could not be started: {said}", phase.name));
                let what = format!("{NOT_STARTED}: {said}");
                return Step::Over(Ended::Failed { at: format!("phase {}", phase.name), what });
            }
            Err(ExecError::LinkLost(lost)) => return Step::LinkLost(lost.why),
            Err(ExecError::NotRun(why)) => {
                return Step::Over(Ended::Failed { at: format!("phase {}", phase.name), what: why.what });
            }
        }
    }
    let text = render::follow(render::BASE, &phase.id, lines.offset);
    let script = Script { text: Arc::from(text), root: phase.root };
    lines.begin();
    let alive = lines.alive.clone();
    let silence = context.deadlines.silence;
    let result = tokio::select! {
        result = link.exec(&script, lines) => result,
        () = silent(&alive, silence) => {
            return Step::Over(Ended::Lost(format!("nothing was heard of the phase for {} min", silence.as_secs() / 60)));
        }
    };
    match (lines.ended.take(), result) {
        (Some(ended), _) => Step::Over(ended),
        (None, Err(ExecError::LinkLost(lost))) => Step::LinkLost(lost.why),
        (None, Err(ExecError::NotRun(why))) => Step::Over(Ended::Lost(why.what)),
        // The following ended (killed, say) and not the phase: it says of itself when its script is gone.
        (None, Ok(_)) => Step::LinkLost("the reading of its events ended early".to_owned()),
    }
}

/// Ends when nothing was heard for so long.
async fn silent(alive: &Mutex<Instant>, silence: Duration) {
    loop {
        let last = *alive.lock().unwrap_or_else(PoisonError::into_inner);
        if last.elapsed() >= silence {
            return;
        }
        tokio::time::sleep_until(last + silence).await;
    }
}

async fn reconnect<C: Connector>(connector: &C, target: &Target, context: &Context) -> Result<C::Link, Ended> {
    let began = Instant::now();
    let mut pause = Duration::from_millis(200);
    loop {
        let attempt = tokio::select! {
            attempt = connector.connect(target) => attempt,
            () = context.cancel.cancelled() => return Err(Ended::Interrupted),
        };
        match attempt {
            Ok(link) => {
                context.say(Event::Reconnected { node: target.node.clone() });
                return Ok(link);
            }
            // A changed key or a refused login does not get better by asking again.
            Err(why) if why.kind != "unreachable" => return Err(Ended::Lost(why.what)),
            Err(why) if began.elapsed() + pause > context.deadlines.reconnect => {
                let seconds = context.deadlines.reconnect.as_secs();
                return Err(Ended::Lost(format!("the link did not come back within {seconds} s: {}", why.what)));
            }
            Err(_) => {}
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = context.cancel.cancelled() => return Err(Ended::Interrupted),
        }
        pause = (pause * 2).min(Duration::from_secs(5));
    }
}

/// Takes the event file as it comes and turns its lines into events.
struct Lines<'a> {
    node: &'a str,
    phase: &'a Phase,
    context: &'a Context,
    on_yield: &'a (dyn Fn(&str, &str) + Send + Sync),
    /// Bytes of whole lines taken so far: where a reconnect reads on.
    offset: u64,
    partial: Vec<u8>,
    changed: usize,
    running: Option<usize>,
    failed: Option<(String, String)>,
    ended: Option<Ended>,
    alive: Arc<Mutex<Instant>>,
}

impl<'a> Lines<'a> {
    fn new(
        node: &'a str,
        phase: &'a Phase,
        context: &'a Context,
        on_yield: &'a (dyn Fn(&str, &str) + Send + Sync),
    ) -> Self {
        Lines {
            node,
            phase,
            context,
            on_yield,
            offset: 0,
            partial: Vec::new(),
            changed: 0,
            running: None,
            failed: None,
            ended: None,
            alive: Arc::new(Mutex::new(Instant::now())),
        }
    }

    fn begin(&mut self) {
        self.partial.clear();
        self.heard();
    }

    fn heard(&self) {
        *self.alive.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn op(&self, index: usize) -> String {
        self.phase.operations.get(index).cloned().unwrap_or_else(|| format!("operation {}", index + 1))
    }

    fn current(&self) -> String {
        self.running.map_or_else(|| format!("phase {}", self.phase.name), |index| self.op(index))
    }

    /// Appends to the node's log in the run folder.
    fn log(&self, text: &str) {
        let _ = self.context.logs.send((self.node.to_owned(), format!("{text}\n")));
    }

    fn line(&mut self, line: &str) {
        let Some(event) = render::parse_event_line(line) else { return };
        let node = self.node.to_owned();
        match event {
            NodeEvent::Begin { operations } => {
                self.log(&format!("phase {}: begin, {operations} operations", self.phase.name));
            }
            NodeEvent::Gone => {
                self.ended = Some(Ended::Failed {
                    at: self.current(),
                    what: "the phase's script is gone without an end (killed, or the node was restarted)".to_owned(),
                });
            }
            NodeEvent::Start { op } => {
                self.running = Some(op);
                self.context.say(Event::OpStarted { node, op: self.op(op) });
            }
            NodeEvent::Fine { op, millis } => self.done(op, Outcome::Fine, millis),
            NodeEvent::Changed { op, millis } => {
                self.changed += 1;
                self.done(op, Outcome::Changed, millis);
            }
            NodeEvent::Yield { op, answer, .. } => (self.on_yield)(&self.op(op), &answer),
            NodeEvent::Reacted { reaction, millis } => {
                self.running = None;
                self.log(&format!("{reaction}: done, {millis} ms"));
            }
            NodeEvent::Failed { op, what, during, status, tail } => {
                let op = match (op, what) {
                    (Some(op), _) => self.op(op),
                    (None, Some(reaction)) => reaction.to_string(),
                    (None, None) => format!("phase {}", self.phase.name),
                };
                let tail = whole_lines(tail);
                let tail: Vec<String> = tail.iter().map(|line| self.context.hide(line)).collect();
                let what = failure(&during, status, &tail);
                self.log(&format!("{op}: failed: {what}\n{}", tail.join("\n")));
                self.failed = Some((op.clone(), what));
                self.context.say(Event::OpFailed { node, op, during, status, tail });
            }
            NodeEvent::End { status } => {
                self.log(&format!("phase {}: end, status {status}", self.phase.name));
                self.ended = Some(match (status, self.failed.take()) {
                    (0, None) => Ended::Well,
                    (_, Some((at, what))) => Ended::Failed { at, what },
                    (status, None) => {
                        Ended::Failed { at: self.current(), what: format!("the phase ended with status {status}") }
                    }
                });
            }
        }
    }
}

impl Lines<'_> {
    fn done(&self, op: usize, outcome: Outcome, millis: u64) {
        let (node, op) = (self.node.to_owned(), self.op(op));
        let how = if outcome == Outcome::Changed { "changed" } else { "already as wanted" };
        self.log(&format!("{op}: {how}, {millis} ms"));
        self.context.say(Event::OpDone { node, op, outcome, millis });
    }
}

/// The lines of a tail without the first one where that may have been cut: half a secret would not be recognised.
fn whole_lines(mut tail: Vec<String>) -> Vec<String> {
    let bytes: usize = tail.iter().map(|line| line.len() + 1).sum();
    if bytes >= CUT_TAIL && !tail.is_empty() {
        tail.remove(0);
    }
    tail
}

fn failure(during: &str, status: i32, tail: &[String]) -> String {
    let last = tail.iter().rev().find(|line| !line.trim().is_empty());
    let reason = last.map_or_else(String::new, |line| format!(": {}", line.trim()));
    match during {
        "observe" => format!("it ran, but what was wanted is still not there{reason}"),
        "deadline" => format!("it did not end within its deadline and was stopped{reason}"),
        _ => format!("exit status {status}{reason}"),
    }
}

impl Output for Lines<'_> {
    fn stdout(&mut self, bytes: &[u8]) -> Flow {
        self.heard();
        self.partial.extend_from_slice(bytes);
        while let Some(end) = self.partial.iter().position(|byte| *byte == b'\n') {
            let rest = self.partial.split_off(end + 1);
            let line = std::mem::replace(&mut self.partial, rest);
            self.offset += line.len() as u64;
            let text = String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(&line)).into_owned();
            self.line(&text);
            if self.ended.is_some() {
                return Flow::Stop;
            }
        }
        if self.partial.len() > LINE_BYTES || self.offset > EVENT_BYTES {
            self.ended = Some(Ended::Failed {
                at: self.current(),
                what: "it wrote endless events and is not believed".to_owned(),
            });
            return Flow::Stop;
        }
        Flow::Continue
    }

    fn stderr(&mut self, _bytes: &[u8]) -> Flow {
        Flow::Continue
    }
}

/// Keeps the beginning of what a short script says.
#[derive(Default)]
struct Said(Vec<u8>);

impl Said {
    /// Its last lines: what a tool says comes before what our script makes of it.
    fn end(&self) -> String {
        let text = String::from_utf8_lossy(&self.0);
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        match lines.get(lines.len().saturating_sub(3)..).unwrap_or_default() {
            [] => "it said nothing".to_owned(),
            end => end.join("; "),
        }
    }
}

impl Output for Said {
    fn stdout(&mut self, bytes: &[u8]) -> Flow {
        let room = 16_384_usize.saturating_sub(self.0.len());
        self.0.extend(bytes.iter().take(room));
        Flow::Continue
    }

    fn stderr(&mut self, bytes: &[u8]) -> Flow {
        self.stdout(bytes)
    }
}
