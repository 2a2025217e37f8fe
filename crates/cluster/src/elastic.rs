//! Replicas that start and leave by themselves: looks at those of a pool of machines, and has the
//! pool do what [`firn_control::elastic`] decides.
//!
//! ```text
//!     control's catalog ──┐
//!     replicas' states  ──┼─► Scaler ─► Elastic ─► ReplicaPool: start, drain, kill
//!     the pool's own    ──┘                    └─► control: remove the node
//! ```
//!
//! A pool is where processes can be started: this machine, or a platform that runs containers. It
//! names its replicas `elastic-1`, `elastic-2` and so on, which is how they are known in the
//! catalog. The scaler stores nothing: after a restart, it goes on from what the pool and the
//! catalog have.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use firn_base::network::{NodeId, Role};
use firn_control::elastic::{
    Condition, Elastic, ElasticCommand, ElasticDecision, ElasticSettings, ReplicaLoad, ReplicaSeen,
};
use firn_control::{Catalog, Proposal};

use crate::layout::NodeEntry;
use crate::message::{LoadStatus, NodeStatus};
use crate::survey::{SurveyedNode, Surveyor};

/// The names of a pool's replicas begin with this; their numbers follow.
const NAME: &str = "elastic-";

/// Where replicas are started and stopped. No call waits for a replica.
pub trait ReplicaPool {
    /// The replicas of the pool, by number, with what is known of their processes.
    fn replicas(&mut self) -> BTreeMap<u32, PoolProcess>;

    /// Starts the process of a replica, which joins the cluster by itself. One that cannot be
    /// started is among the replicas, and has ended.
    fn start(&mut self, number: u32);

    /// Asks the process to end in order: it takes no more statements, and those that run have until
    /// the pool's limit.
    fn drain(&mut self, number: u32);

    /// Ends the process at once.
    fn kill(&mut self, number: u32);

    /// Removes the files of a replica whose process has ended, and that the cluster does not know
    /// any more.
    fn forget(&mut self, number: u32);
}

/// A process of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolProcess {
    Runs,
    /// It was asked to end.
    Leaves,
    HasEnded,
}

/// The name of a pool's replica.
#[must_use]
pub fn replica_name(number: u32) -> String {
    format!("{NAME}{number}")
}

/// The number in the name of a pool's replica.
#[must_use]
pub fn replica_number(name: &str) -> Option<u32> {
    let number = name.strip_prefix(NAME)?.parse().ok()?;
    (replica_name(number) == name).then_some(number)
}

/// Has a pool run as many replicas as are wanted.
pub struct Scaler<P> {
    surveyor: Surveyor,
    elastic: Elastic,
    pool: P,
    /// What each replica told of its work last.
    before: BTreeMap<NodeId, LoadStatus>,
    /// Replicas that have answered.
    have_answered: BTreeSet<u32>,
    /// What was done last, for people.
    last: String,
    /// Why nothing can be done now.
    obstacle: Option<String>,
}

impl<P: ReplicaPool> Scaler<P> {
    /// `surveyor` asks the cluster whose replicas these are.
    #[must_use]
    pub fn new(surveyor: Surveyor, settings: ElasticSettings, pool: P) -> Scaler<P> {
        Scaler {
            surveyor,
            elastic: Elastic::new(settings),
            pool,
            before: BTreeMap::new(),
            have_answered: BTreeSet::new(),
            last: String::new(),
            obstacle: None,
        }
    }

    /// Looks once, and has done what that says; call it at a steady rate. `now` never goes back.
    /// Returns what was done, for people. Blocks until the nodes have answered, or their time is
    /// over.
    pub fn turn(&mut self, now: Duration) -> Option<String> {
        let is_asked = |node: &NodeEntry| {
            replica_number(&node.name).is_some() || node.roles.has(Role::Database)
        };
        let survey = self.surveyor.look_at(is_asked);
        let catalog = match survey.control {
            Ok(control) => control.catalog,
            // What the catalog has is part of what is to be known, and nothing could be removed.
            Err(reason) => {
                self.obstacle = Some(format!("control does not answer: {reason}"));
                return None;
            }
        };
        self.obstacle = None;
        if let Some(is_paused) = is_paused(&survey.nodes) {
            self.elastic.set_paused(is_paused);
        }
        let numbers = survey.nodes.iter().filter_map(|one| {
            Some((replica_number(&one.node.name)?, (one.node.number, one.status.as_ref().ok())))
        });
        let told: BTreeMap<u32, (NodeId, Option<&NodeStatus>)> = numbers.collect();
        let seen = self.see(&told);
        let decision = self.elastic.observe(now, &seen)?;
        let node = |number| told.get(&number).map(|(node, _)| *node);
        Some(self.carry_out(decision, &catalog, node))
    }

    /// What became of the replicas that the pool or the catalog has.
    fn see(&mut self, told: &BTreeMap<u32, (NodeId, Option<&NodeStatus>)>) -> Vec<ReplicaSeen> {
        let processes = self.pool.replicas();
        let numbers: BTreeSet<u32> = processes.keys().chain(told.keys()).copied().collect();
        self.have_answered.retain(|number| numbers.contains(number));
        let mut loads = BTreeMap::new();
        let seen = numbers.into_iter().map(|number| {
            let condition = match (processes.get(&number), told.get(&number)) {
                (None | Some(PoolProcess::HasEnded), _) => Condition::Ended,
                (Some(PoolProcess::Leaves), _) => Condition::Leaving,
                (Some(PoolProcess::Runs), Some((node, Some(status)))) => {
                    self.have_answered.insert(number);
                    match status.replica.as_ref().filter(|replica| replica.is_open) {
                        Some(replica) => {
                            loads.insert(*node, replica.load);
                            let before = self.before.get(node);
                            Condition::Serving(
                                before.and_then(|before| between(*before, replica.load)),
                            )
                        }
                        None if status.is_paused => Condition::Serving(None),
                        None => Condition::Opening,
                    }
                }
                (Some(PoolProcess::Runs), _) if self.have_answered.contains(&number) => {
                    Condition::Silent
                }
                (Some(PoolProcess::Runs), _) => Condition::Opening,
            };
            if condition == Condition::Ended {
                self.have_answered.remove(&number);
            }
            ReplicaSeen { number, condition }
        });
        let seen = seen.collect();
        self.before = loads;
        seen
    }

    /// Does what was decided; returns what that is, for people.
    fn carry_out(
        &mut self,
        ElasticDecision { command, reason }: ElasticDecision,
        catalog: &Catalog,
        node: impl Fn(u32) -> Option<NodeId>,
    ) -> String {
        let (what, number) = match command {
            ElasticCommand::Start(number) => {
                self.pool.start(number);
                ("starts", number)
            }
            ElasticCommand::Drain(number) => {
                self.pool.drain(number);
                ("leaves", number)
            }
            ElasticCommand::Kill(number) => {
                self.pool.kill(number);
                ("is killed", number)
            }
            ElasticCommand::Forget(number) => {
                let known = node(number).filter(|node| catalog.nodes().contains_key(node));
                let removed = known.map(|node| self.surveyor.propose(Proposal::Remove { node }));
                // If it was not removed, it is still among those that have ended.
                if let Some(Err(error)) = removed {
                    self.obstacle = Some(format!("a replica cannot be removed: {error}"));
                    return self.done("is not removed", number, &error.to_string());
                }
                self.pool.forget(number);
                ("is removed", number)
            }
        };
        self.done(what, number, &reason)
    }

    fn done(&mut self, what: &str, number: u32, reason: &str) -> String {
        let name = replica_name(number);
        tracing::info!(replica = name, what, reason, "the replicas change");
        self.last = format!("{name} {what}: {reason}");
        self.last.clone()
    }

    /// How many replicas there are and why, in one line.
    #[must_use]
    pub fn summary(&self, now: Duration) -> String {
        let last = match self.last.as_str() {
            "" => String::new(),
            last => format!("; last: {last}"),
        };
        let obstacle = self.obstacle.as_ref().map(|what| format!("; {what}")).unwrap_or_default();
        format!("{}{last}{obstacle}", self.elastic.summary(now))
    }

    /// The pool, to end its processes.
    pub fn into_pool(self) -> P {
        self.pool
    }
}

/// Whether the node that leads is paused, if one that leads has answered.
fn is_paused(nodes: &[SurveyedNode]) -> Option<bool> {
    let told = nodes.iter().filter_map(|one| one.status.as_ref().ok());
    let leads = |status: &&NodeStatus| status.log.as_ref().is_some_and(|log| log.leads.is_some());
    told.filter(leads).map(|status| status.is_paused).reduce(|one, other| one && other)
}

/// What a replica has done from one look to the next. `None`: it was not measured in between, or
/// has begun again.
fn between(before: LoadStatus, after: LoadStatus) -> Option<ReplicaLoad> {
    let time_us = after.at_us.checked_sub(before.at_us).filter(|time| *time > 0)?;
    let processor_us = after.processor_us.checked_sub(before.processor_us)?;
    let available_us = time_us.saturating_mul(u64::from(after.processors.max(1)));
    let permille = u128::from(processor_us) * 1000 / u128::from(available_us);
    Some(ReplicaLoad {
        processor_permille: permille.min(1000) as u32,
        reads: after.reads.checked_sub(before.reads)?,
        read_us: after.read_us.checked_sub(before.read_us)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_numbers() {
        assert_eq!(replica_number(&replica_name(12)), Some(12));
        for other in ["elastic-", "elastic-x", "elastic-012", "elastic-+1", "replica-1"] {
            assert_eq!(replica_number(other), None, "{other}");
        }
    }

    #[test]
    fn a_load_is_what_was_done_between_two_looks() {
        let before =
            LoadStatus { at_us: 100, processor_us: 50, processors: 4, reads: 10, read_us: 1000 };
        let after =
            LoadStatus { at_us: 1100, processor_us: 2050, processors: 4, reads: 30, read_us: 1600 };
        let load = ReplicaLoad { processor_permille: 500, reads: 20, read_us: 600 };
        assert_eq!(between(before, after), Some(load));
        assert_eq!(between(after, after), None, "no time has passed");
        assert_eq!(
            between(after, LoadStatus { at_us: 2000, ..before }),
            None,
            "it has begun again"
        );
    }
}
