//! Asking the selected nodes and making the plan: the middle of `plan`, `apply` and `status`.

use std::collections::BTreeMap;
use std::sync::Arc;

use indexmap::IndexMap;

use super::session::Session;
use crate::event::LeftOut;
use crate::exec::probe::{Answers, Asker};
use crate::exec::run::{Job, Surveyed, survey};
use crate::exec::{Context, run};
use crate::facts::{self, Facts};
use crate::identity::Identities;
use crate::manifest::model::Node;
use crate::ops::{Question, Seen, ssh_key};
use crate::plan::diff::Wish;
use crate::plan::{NodePlan, Plan};
use crate::ssh::{Connector, SshConnector, Transport as _};
use crate::state::Places;
use crate::steps::{Cluster, trust};

/// What asking all selected nodes gave.
pub struct Planned<C: Connector> {
    /// The plan.
    pub plan: Plan,
    /// The nodes that have something to do.
    pub jobs: Vec<Job<C::Link>>,
    /// Who the nodes are, this run's answers included.
    pub cluster: Cluster,
}

/// Asks the nodes what the wish needs to know.
struct WishAsker {
    wish: Arc<Wish>,
    cluster: Cluster,
    places: Places,
    nodes: BTreeMap<String, Node>,
}

impl Asker for WishAsker {
    fn questions(&self, node: &str, facts: Option<&Facts>, seen: &Seen) -> Vec<Question> {
        self.nodes.get(node).map(|node| self.wish.questions(node, facts, seen, &self.cluster)).unwrap_or_default()
    }

    fn facts_script(&self) -> &str {
        facts::script(facts::Depth::Core)
    }

    fn root(&self) -> bool {
        true
    }

    fn last_facts(&self, node: &str) -> Option<Facts> {
        self.places.read_facts(node)
    }

    fn settled(&self, node: &str, answers: &Answers) -> bool {
        let Some(node) = self.nodes.get(node) else { return false };
        let work = self.wish.work(node, &answers.facts, &answers.seen, &self.cluster);
        work.is_ok_and(|work| work.operations.is_empty() && work.pending.is_empty())
    }
}

/// Asks every selected node and plans it. With `resume`, phases of an earlier run are followed to their end first.
pub async fn plan<C: Connector>(session: &Session, connector: Arc<C>, resume: bool, context: &Context) -> Planned<C> {
    let asker = WishAsker {
        wish: Arc::clone(&session.wish),
        cluster: Cluster { identities: session.identities.clone(), ..Cluster::default() },
        places: session.places.clone(),
        nodes: session.selected.iter().map(|node| (node.name.clone(), node.clone())).collect(),
    };
    let targets = session.selected.iter().map(|node| session.target(node)).collect();
    let mut results = survey(connector, targets, Arc::new(asker), resume, context.clone()).await;
    let cluster = cluster(session, &results);

    let mut left_out = BTreeMap::new();
    let mut nodes: IndexMap<String, NodePlan> = IndexMap::new();
    let mut jobs = Vec::new();
    for node in &session.selected {
        let surveyed = match results.remove(&node.name) {
            Some(Ok(surveyed)) => surveyed,
            Some(Err(why)) => {
                left_out.insert(node.name.clone(), why);
                continue;
            }
            None => continue,
        };
        // A cache for the next time's questions; the run does not depend on it.
        let _ = session.places.write_facts(&node.name, &surveyed.answers.facts);
        match plan_one(session, node, &surveyed, &cluster) {
            Ok((plan, work)) => {
                let changes = !plan.phases.is_empty();
                nodes.insert(node.name.clone(), plan);
                if changes {
                    jobs.push(Job { node: node.clone(), surveyed, work });
                } else if let Some(link) = surveyed.link {
                    link.close().await;
                }
            }
            Err(why) => {
                context.say(crate::event::Event::NodeLeftOut { node: node.name.clone(), why: why.clone() });
                left_out.insert(node.name.clone(), why);
            }
        }
    }
    let plan = Plan {
        provision_plan: 1,
        manifest: session.manifest.clone(),
        cluster: session.wish.manifest.cluster.clone(),
        inputs: session.inputs.clone(),
        left_out,
        nodes,
    };
    Planned { plan, jobs, cluster }
}

fn plan_one<L>(
    session: &Session,
    node: &Node,
    surveyed: &Surveyed<L>,
    cluster: &Cluster,
) -> Result<(NodePlan, crate::plan::diff::Work), LeftOut> {
    let facts = &surveyed.answers.facts;
    if facts.uid.yes().is_some_and(|user| *user != 0) && !surveyed.target.becomes_root() {
        return Err(LeftOut {
            kind: "root".to_owned(),
            what: "the login user is not root and may not become root".to_owned(),
            because: vec!["the manifest says `become: none`".to_owned()],
            fix: vec!["write `become: sudo` under ssh, or log in as root".to_owned()],
        });
    }
    let work = session.wish.work(node, facts, &surveyed.answers.seen, cluster)?;
    let plan = work.plan(facts, surveyed.host_key.clone(), &surveyed.answers.seen);
    Ok((plan, work))
}

/// `NAME.nodes` with this run's answers over it, and whose keys are still to be made.
fn cluster<L>(session: &Session, results: &BTreeMap<String, Result<Surveyed<L>, LeftOut>>) -> Cluster {
    let mut cluster = Cluster { identities: session.identities.clone(), ..Cluster::default() };
    for node in &session.selected {
        let Some(Ok(surveyed)) = results.get(&node.name) else { continue };
        let identity = cluster.identities.entry(node.name.clone()).or_default();
        let Answers { facts, seen } = &surveyed.answers;
        identity.confirm(facts);
        // The key it proved to hold counts even where its files name others.
        if !identity.host_keys.contains(&surveyed.host_key) {
            identity.host_keys.push(surveyed.host_key.clone());
            identity.host_keys.sort();
        }
        if let Some(wish) = &node.settings.trust {
            identity.trust_key = ssh_key::public_key_of(seen, &wish.user).map(|key| key.to_string());
            if identity.trust_key.is_none() && trust::makes_key(node) {
                cluster.coming.insert(node.name.clone());
            }
        }
    }
    cluster
}

/// What `NAME.nodes` becomes after a run: nodes that were reached, with the keys they made; an entry that says nothing new
/// keeps the run that confirmed it.
pub fn confirmed(
    before: &Identities,
    cluster: &Cluster,
    made: &BTreeMap<String, String>,
    reached: &[String],
    run: &str,
) -> Identities {
    let mut identities = before.clone();
    for name in reached {
        let Some(identity) = cluster.identities.get(name) else { continue };
        let mut identity = identity.clone();
        if let Some(key) = made.get(name) {
            identity.trust_key = Some(key.clone());
        }
        let old = before.get(name);
        identity.confirmed_by = old.and_then(|old| old.confirmed_by.clone());
        if old != Some(&identity) {
            identity.confirmed_by = Some(run.to_owned());
            identities.insert(name.clone(), identity);
        }
    }
    identities
}

/// Runs the jobs of a plan.
pub async fn execute<C: Connector>(
    session: &Session,
    connector: Arc<C>,
    planned_jobs: Vec<Job<C::Link>>,
    cluster: &Cluster,
    info: run::RunInfo,
    context: &Context,
) -> BTreeMap<String, String> {
    run::run(connector, Arc::clone(&session.wish), planned_jobs, cluster.clone(), info, context.clone()).await
}

/// Host keys that were accepted on the way (`ask`, `accept-new`) are kept at once, whatever comes after.
pub fn keep_accepted(session: &Session, client: &SshConnector) {
    let accepted: BTreeMap<String, String> = client.accepted().into_iter().collect();
    if accepted.is_empty() {
        return;
    }
    let kept = session.places.change_nodes(|identities| {
        for (node, key) in accepted {
            let keys = &mut identities.entry(node).or_default().host_keys;
            if !keys.contains(&key) {
                keys.push(key);
                keys.sort();
            }
        }
    });
    if let Err(error) = kept {
        crate::ui::output::say(&format!("warning: the accepted host keys were not kept: {error}\n"));
    }
}
