//! Asking and changing many nodes: the survey, and the run of a plan.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::follow::{self, Ended, Phase};
use super::probe::{self, Answers, Asker};
use super::{Context, Deadlines};
use crate::event::{Event, LeftOut};
use crate::manifest::model::Node;
use crate::ops::Reaction;
use crate::plan::diff::{Differing, MESH_PHASE, NODE_PHASE, Wish, Work};
use crate::render::{self, OpScript, PhaseScript};
use crate::shell::Shell;
use crate::ssh::{Connector, Script, Target, Transport};
use crate::steps::{Cluster, When};

/// A node that answered.
pub struct Surveyed<L> {
    /// What it said.
    pub answers: Answers,
    /// The host key it proved to hold.
    pub host_key: String,
    /// The open connection, unless nothing more was wanted of the node.
    pub link: Option<L>,
    /// Where it is.
    pub target: Target,
}

/// Asks all nodes at once, at most `max_parallel` at a time; a phase of an earlier run that still runs on a node is
/// followed to its end first when `resume` is set.
pub async fn survey<C: Connector>(
    connector: Arc<C>,
    targets: Vec<Target>,
    asker: Arc<dyn Asker>,
    resume: bool,
    context: Context,
) -> BTreeMap<String, Result<Surveyed<C::Link>, LeftOut>> {
    let permits = Arc::new(Semaphore::new(context.max_parallel.max(1)));
    let mut tasks = JoinSet::new();
    for target in targets {
        let (connector, asker, context, permits) =
            (Arc::clone(&connector), Arc::clone(&asker), context.clone(), Arc::clone(&permits));
        tasks.spawn(async move {
            let _permit = permits.acquire_owned().await;
            let node = target.node.clone();
            let result = tokio::select! {
                result = survey_one(&*connector, target, &*asker, resume, &context) => result,
                () = context.cancel.cancelled() => Err(interrupted()),
            };
            // An interrupt is said once for all, not for each node.
            if let Err(why) = result.as_ref()
                && !context.cancel.is_cancelled()
            {
                context.say(Event::NodeLeftOut { node: node.clone(), why: why.clone() });
            }
            (node, result)
        });
    }
    let mut results = BTreeMap::new();
    while let Some(joined) = tasks.join_next().await {
        if let Ok((node, result)) = joined {
            results.insert(node, result);
        }
    }
    results
}

fn interrupted() -> LeftOut {
    LeftOut {
        kind: "interrupted".to_owned(),
        what: "not asked: interrupted".to_owned(),
        because: Vec::new(),
        fix: vec!["run it again".to_owned()],
    }
}

async fn survey_one<C: Connector>(
    connector: &C,
    target: Target,
    asker: &dyn Asker,
    resume: bool,
    context: &Context,
) -> Result<Surveyed<C::Link>, LeftOut> {
    let open = connector.connect(&target).await?;
    context.say(Event::Connected { node: target.node.clone(), how: open.how() });
    let mut link = Some(open);
    let mut followed: BTreeSet<String> = BTreeSet::new();
    loop {
        let Some(open) = link.take() else {
            link = Some(connector.connect(&target).await?);
            continue;
        };
        let answers = probe::ask(&open, &target, asker, context).await?;
        let running = if resume { answers.facts.running_runs.yes().cloned().unwrap_or_default() } else { Vec::new() };
        let Some(id) = running.into_iter().next().map(|run| run.id) else {
            let host_key = open.host_key();
            let link = if asker.settled(&target.node, &answers) {
                open.close().await;
                None
            } else {
                Some(open)
            };
            return Ok(Surveyed { answers, host_key, link, target });
        };
        if !followed.insert(id.clone()) {
            return Err(LeftOut {
                kind: "probe".to_owned(),
                what: format!("it says that {id} still runs there, and that it has ended"),
                because: Vec::new(),
                fix: vec!["log in there and look at /var/lib/provision/runs".to_owned()],
            });
        }
        link = Some(open);
        let name = id.rsplit('.').next().unwrap_or(NODE_PHASE).to_owned();
        let phase = Phase { id, name, operations: Vec::new(), start: None, root: target.becomes_root() };
        let (ended, _) = follow::phase(connector, &target, &mut link, &phase, context, &|_, _| {}).await;
        match ended {
            // Whether it ended well is for the next look to say: what is not as wanted is planned again.
            Ended::Well | Ended::Failed { .. } => {}
            Ended::Interrupted => return Err(interrupted()),
            Ended::Lost(why) => {
                return Err(LeftOut {
                    kind: "unreachable".to_owned(),
                    what: format!("an earlier run is still at work there and cannot be followed: {why}"),
                    because: Vec::new(),
                    fix: vec!["run it again later; nothing was started twice".to_owned()],
                });
            }
        }
    }
}

/// A node with something to do.
pub struct Job<L> {
    /// The node as wanted.
    pub node: Node,
    /// As surveyed.
    pub surveyed: Surveyed<L>,
    /// What differs.
    pub work: Work,
}

/// What belongs to the run as a whole.
#[derive(Debug, Clone)]
pub struct RunInfo {
    /// The run's ID.
    pub id: String,
    /// Who runs it: `user@host`.
    pub by: String,
    /// Hash of the manifest, for the journals.
    pub manifest: String,
}

/// The public keys that nodes make in this run, as they become known.
#[derive(Default)]
struct Keys {
    /// Nodes whose key is still awaited.
    awaited: BTreeSet<String>,
    /// Node to its new public key.
    made: BTreeMap<String, String>,
}

/// Runs every job; gives the public keys that were made. Everything else is told in events.
pub async fn run<C: Connector>(
    connector: Arc<C>,
    wish: Arc<Wish>,
    jobs: Vec<Job<C::Link>>,
    cluster: Cluster,
    info: RunInfo,
    context: Context,
) -> BTreeMap<String, String> {
    let awaited: BTreeSet<String> =
        jobs.iter().map(|job| job.node.name.clone()).filter(|name| cluster.coming.contains(name)).collect();
    let (keys, _) = watch::channel(Keys { awaited, made: BTreeMap::new() });
    let keys = Arc::new(keys);
    let permits = Arc::new(Semaphore::new(context.max_parallel.max(1)));
    let shared = Arc::new(Shared { connector, wish, cluster, info, context, keys: Arc::clone(&keys), permits });
    let mut tasks = JoinSet::new();
    for job in jobs {
        let shared = Arc::clone(&shared);
        tasks.spawn(async move {
            let name = job.node.name.clone();
            shared.node(job).await;
            // Whatever happened, nobody waits for this node any longer.
            shared.keys.send_modify(|keys| {
                keys.awaited.remove(&name);
            });
        });
    }
    while tasks.join_next().await.is_some() {}
    keys.borrow().made.clone()
}

struct Shared<C: Connector> {
    connector: Arc<C>,
    wish: Arc<Wish>,
    cluster: Cluster,
    info: RunInfo,
    context: Context,
    keys: Arc<watch::Sender<Keys>>,
    permits: Arc<Semaphore>,
}

impl<C: Connector> Shared<C> {
    async fn node(&self, job: Job<C::Link>) {
        let name = job.node.name.clone();
        let Surveyed { answers, link, target, .. } = job.surveyed;
        let mut link = link;
        if link.is_none() {
            // Closed because the node itself needed nothing. If this fails, following tries again and says why.
            link = self.connector.connect(&target).await.ok();
        }
        let mut result = Ok(());
        let (mut changed, mut missing) = (0, Vec::new());
        for phase in [NODE_PHASE, MESH_PHASE] {
            if self.context.cancel.is_cancelled() {
                result = Err(Ended::Interrupted);
                break;
            }
            let scripts = match phase {
                NODE_PHASE => {
                    let pending = job.work.pending.clone();
                    (scripts(&job.work.phase(NODE_PHASE), &self.context.deadlines), pending)
                }
                _ if job.work.phase(MESH_PHASE).is_empty() => continue,
                _ => match self.mesh(&job.node, &answers).await {
                    Ok(scripts) => {
                        missing = self.never_made(&name);
                        (scripts, Vec::new())
                    }
                    Err(ended) => {
                        result = Err(ended);
                        break;
                    }
                },
            };
            if scripts.0.is_empty() && scripts.1.is_empty() {
                continue;
            }
            let _permit = self.permits.acquire().await;
            let (ended, count) = self.phase(&name, phase, scripts, &target, &mut link).await;
            changed += count;
            if ended != Ended::Well {
                result = Err(ended);
                break;
            }
        }
        if let Some(link) = link {
            link.close().await;
        }
        let node = name;
        self.context.say(match result {
            Ok(()) => Event::NodeDone { node, changed, missing },
            Err(Ended::Failed { at, what }) => {
                let log = format!("see {node}.log in the run's folder; mend the cause and run apply again");
                let mut fix = vec![log];
                if what.starts_with(follow::NOT_STARTED) {
                    fix.insert(0, format!("see whether there is room: df -h {} on {node}", render::BASE));
                }
                Event::NodeFailed { node, at, what, fix }
            }
            Err(Ended::Lost(what)) => Event::NodeFailed {
                node,
                at: "link".to_owned(),
                what,
                fix: vec!["when the node answers again run apply: it follows what still runs there".to_owned()],
            },
            Err(Ended::Well | Ended::Interrupted) => return,
        });
    }

    /// The peers that were to make a key in this run, and are done without one.
    fn never_made(&self, node: &str) -> Vec<String> {
        let keys = self.keys.borrow();
        let others = self.cluster.coming.iter().filter(|name| name.as_str() != node);
        others.filter(|name| !keys.made.contains_key(*name)).cloned().collect()
    }

    /// Waits for the peers' keys and makes the operations that needed them.
    async fn mesh(&self, node: &Node, answers: &Answers) -> Result<Vec<OpScript>, Ended> {
        let mut receiver = self.keys.subscribe();
        let mut cluster = self.cluster.clone();
        {
            let ready = tokio::select! {
                ready = receiver.wait_for(|keys| keys.awaited.is_empty()) => ready,
                () = self.context.cancel.cancelled() => return Err(Ended::Interrupted),
            };
            if let Ok(keys) = ready {
                for (name, key) in &keys.made {
                    cluster.identities.entry(name.clone()).or_default().trust_key = Some(key.clone());
                }
            }
        }
        cluster.coming.clear();
        match self.wish.work(node, &answers.facts, &answers.seen, &cluster) {
            Ok(work) => {
                let mesh: Vec<&Differing> =
                    work.operations.iter().filter(|differing| differing.when == When::Mesh).collect();
                Ok(scripts(&mesh, &self.context.deadlines))
            }
            Err(why) => Err(Ended::Failed { at: "trust".to_owned(), what: why.what }),
        }
    }

    async fn phase(
        &self,
        node: &str,
        phase: &str,
        (operations, pending): (Vec<OpScript>, Vec<Reaction>),
        target: &Target,
        link: &mut Option<C::Link>,
    ) -> (Ended, usize) {
        let id = format!("{}.{phase}", self.info.id);
        let ids = operations.iter().map(|operation| operation.id.clone()).collect();
        let rendered = render::phase(&PhaseScript {
            base: render::BASE,
            id: &id,
            run: &self.info.id,
            phase,
            by: &self.info.by,
            manifest: &self.info.manifest,
            operations,
            pending,
        });
        let root = target.becomes_root();
        let text = render::start(render::BASE, &id, &rendered);
        let start = Some(Script { text: Arc::from(text), root });
        let job = Phase { id, name: phase.to_owned(), operations: ids, start, root };
        let on_yield = |_op: &str, text: &str| {
            // Only what the typed parser lets through reaches another node.
            if let Ok(key) = crate::ops::public_key::PublicKey::parse(text) {
                self.keys.send_modify(|keys| {
                    keys.awaited.remove(node);
                    keys.made.insert(node.to_owned(), key.to_string());
                });
            }
        };
        follow::phase(&*self.connector, target, link, &job, &self.context, &on_yield).await
    }
}

fn scripts(differing: &[&Differing], deadlines: &Deadlines) -> Vec<OpScript> {
    let script = |differing: &&Differing| {
        let mut script = OpScript::of(&*differing.op);
        if let Some(deadline) = deadlines.steps.get(differing.step) {
            script.deadline = u32::try_from(deadline.as_secs()).unwrap_or(u32::MAX);
        }
        script
    };
    differing.iter().map(script).collect()
}

/// The script of one phase as it would run, for showing.
pub fn phase_script(phase: &str, operations: &[&Differing], pending: Vec<Reaction>, deadlines: &Deadlines) -> Shell {
    render::phase(&PhaseScript {
        base: render::BASE,
        id: &format!("RUN.{phase}"),
        run: "RUN",
        phase,
        by: "WHO",
        manifest: "HASH",
        operations: scripts(operations, deadlines),
        pending,
    })
}
