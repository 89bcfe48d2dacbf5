//! Asking one node: one exec, a second one only where the answers raise new questions.

use std::sync::Arc;

use crate::event::LeftOut;
use crate::facts::{self, Facts};
use crate::ops::{Question, Seen};
use crate::render::{self, Frames};
use crate::ssh::{ExecError, Flow, Output, Script, Target, Transport};

use super::{Context, nonce};

/// Cap on what one probe may write; a node that writes more is not believed.
const PROBE_BYTES: usize = 64 * 1024 * 1024;

/// What a node said.
#[derive(Debug, Clone)]
pub struct Answers {
    /// What it is.
    pub facts: Facts,
    /// What the operations asked.
    pub seen: Seen,
}

/// What to ask a node, as far as is known of it so far.
pub trait Asker: Send + Sync {
    /// The questions of all operations for this node.
    fn questions(&self, node: &str, facts: Option<&Facts>, seen: &Seen) -> Vec<Question>;
    /// The facts questions.
    fn facts_script(&self) -> &str;
    /// Whether the answers need root, where the manifest lets us become root.
    fn root(&self) -> bool;
    /// What was known of the node before.
    fn last_facts(&self, node: &str) -> Option<Facts>;
    /// Whether a node that answered so needs nothing more, as far as can be told before all have answered: its
    /// connection is then closed at once, so that a big cluster costs no more open connections than are worked on.
    fn settled(&self, _node: &str, _answers: &Answers) -> bool {
        false
    }
}

/// Asks a node everything.
///
/// # Errors
/// Why the node is left out: no root, no answer in time, nonsense.
pub async fn ask<L: Transport>(
    link: &L,
    target: &Target,
    asker: &dyn Asker,
    context: &Context,
) -> Result<Answers, LeftOut> {
    let node = target.node.as_str();
    let root = asker.root() && target.becomes_root();
    let last = asker.last_facts(node);
    let first = asker.questions(node, last.as_ref(), &Seen::default());
    let frames = exec(link, asker.facts_script(), &first, root, context).await?;
    let (facts, problems) = facts::parse(node, &frames.facts);
    if frames.facts.is_empty() {
        return Err(nonsense("it answered without any facts", problems));
    }
    let mut seen = frames.seen;
    let more: Vec<Question> = asker
        .questions(node, Some(&facts), &seen)
        .into_iter()
        .filter(|question| !first.contains(question))
        .filter(|question| question.salted() || seen.answer(&question.kind, &question.key).is_none())
        .collect();
    if !more.is_empty() {
        let frames = exec(link, "", &more, root, context).await?;
        for (kind, answers) in frames.seen.0 {
            seen.0.entry(kind).or_default().extend(answers);
        }
    }
    Ok(Answers { facts, seen })
}

async fn exec<L: Transport>(
    link: &L,
    facts_script: &str,
    questions: &[Question],
    root: bool,
    context: &Context,
) -> Result<Frames, LeftOut> {
    let nonce = nonce();
    let text = render::probe(facts_script, questions, &nonce);
    let script = Script { text: Arc::from(text), root };
    let mut output = Collected::default();
    let deadline = context.deadlines.probe;
    let ended = tokio::time::timeout(deadline, link.exec(&script, &mut output)).await;
    match ended {
        Err(_) => {
            let seconds = deadline.as_secs();
            let asked = last_frame(&output.stdout, &nonce).map_or_else(
                || "it wrote nothing".to_owned(),
                |frame| format!("it hung after the question about {frame}"),
            );
            Err(LeftOut {
                kind: "probe".to_owned(),
                what: format!("the probe did not end within {seconds} s"),
                because: vec![asked],
                fix: vec!["look for a mount or a service that hangs there, then run it again".to_owned()],
            })
        }
        Ok(Err(ExecError::NotRun(why))) => Err(why),
        Ok(Err(ExecError::LinkLost(lost))) => Err(LeftOut {
            kind: "probe".to_owned(),
            what: format!("the link was lost while it was asked: {}", lost.why),
            because: Vec::new(),
            fix: vec!["run it again".to_owned()],
        }),
        Ok(Ok(_)) if output.too_much => Err(nonsense("it answered with endless output", Vec::new())),
        Ok(Ok(_)) => render::parse_frames(&output.stdout, &nonce).map_err(|error| {
            let stderr = String::from_utf8_lossy(&output.stderr);
            let mut because = vec![error.to_string()];
            because.extend(stderr.lines().take(20).map(str::to_owned));
            nonsense("its answer to the probe makes no sense", because)
        }),
    }
}

fn nonsense(what: &str, because: Vec<String>) -> LeftOut {
    LeftOut {
        kind: "probe".to_owned(),
        what: what.to_owned(),
        because,
        fix: vec!["log in there and see whether a login script or a broken shell writes to standard output".to_owned()],
    }
}

/// The last question a probe that hung was at.
fn last_frame(output: &[u8], nonce: &str) -> Option<String> {
    let text = String::from_utf8_lossy(output);
    let (_, frame) = text.rsplit_once(&format!("@@{nonce} "))?;
    frame.lines().next().map(str::to_owned)
}

#[derive(Default)]
struct Collected {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    too_much: bool,
}

impl Output for Collected {
    fn stdout(&mut self, bytes: &[u8]) -> Flow {
        if self.stdout.len() + bytes.len() > PROBE_BYTES {
            self.too_much = true;
            return Flow::Stop;
        }
        self.stdout.extend_from_slice(bytes);
        Flow::Continue
    }

    fn stderr(&mut self, bytes: &[u8]) -> Flow {
        let room = (64 * 1024_usize).saturating_sub(self.stderr.len());
        self.stderr.extend(bytes.iter().take(room));
        Flow::Continue
    }
}
