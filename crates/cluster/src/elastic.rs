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
//! numbers its replicas from 1 and says how they are called ([`ReplicaNames`]), which is how they
//! are known in the catalog. The scaler stores nothing: after a restart, it goes on from what the
//! pool and the catalog have.

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

/// Where replicas are started and stopped. No call waits for a replica; one may wait for the
/// platform, up to a limit.
pub trait ReplicaPool {
    /// How the replicas are called.
    fn names(&self) -> ReplicaNames;

    /// The replicas of the pool, by number, with what is known of their processes.
    ///
    /// # Errors
    /// If that is not known now. Then no replica is taken for ended.
    fn replicas(&mut self) -> Result<BTreeMap<u32, PoolProcess>, PoolError>;

    /// Starts the process of a replica, which joins the cluster by itself.
    ///
    /// # Errors
    /// If the pool does not take it. One that was taken and cannot be started is among the
    /// replicas, and has ended.
    fn start(&mut self, number: u32) -> Result<(), PoolError>;

    /// Asks the process to end in order: it takes no more statements, and those that run have until
    /// the pool's limit.
    ///
    /// # Errors
    /// If it was not asked.
    fn drain(&mut self, number: u32) -> Result<(), PoolError>;

    /// Ends the process at once. A pool may start it again by itself.
    ///
    /// # Errors
    /// If it may still run.
    fn kill(&mut self, number: u32) -> Result<(), PoolError>;

    /// Removes the files of a replica whose process has ended, and that the cluster does not know
    /// any more.
    fn forget(&mut self, number: u32);
}

/// Why a pool did not do something, for people. It is tried again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PoolError(pub String);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolProcess {
    Runs,
    /// It was asked to end.
    Leaves,
    HasEnded,
}

/// How the replicas of a pool are called: a prefix, a hyphen, and a number without zeros in front.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaNames {
    prefix: String,
    /// In the name of replica 1.
    first: u32,
}

impl ReplicaNames {
    /// Names such as `prefix-first` for replica 1, and so on.
    #[must_use]
    pub fn new(prefix: &str, first: u32) -> ReplicaNames {
        ReplicaNames { prefix: prefix.to_owned(), first }
    }

    /// The name of a replica. `number` is at least 1.
    #[must_use]
    pub fn name(&self, number: u32) -> String {
        format!("{}-{}", self.prefix, number - 1 + self.first)
    }

    /// The number of the replica that is called so.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u32> {
        let own: u32 = name.strip_prefix(&self.prefix)?.strip_prefix('-')?.parse().ok()?;
        let number = own.checked_sub(self.first)?.checked_add(1)?;
        (self.name(number) == name).then_some(number)
    }
}

/// Has a pool run as many replicas as are wanted.
pub struct Scaler<P> {
    surveyor: Surveyor,
    elastic: Elastic,
    names: ReplicaNames,
    pool: P,
    /// What each replica told of its work last.
    before: BTreeMap<NodeId, LoadStatus>,
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
            names: pool.names(),
            pool,
            before: BTreeMap::new(),
            have_answered: BTreeSet::new(),
            last: String::new(),
            obstacle: None,
        }
    }

    /// Looks once, and has done what that says; call it at a steady rate. `now` never goes back.
    /// Returns what was done, for people. Blocks until the nodes and the pool have answered, or
    /// their time is over.
    pub fn turn(&mut self, now: Duration) -> Option<String> {
        let is_asked = |node: &NodeEntry| {
            self.names.number(&node.name).is_some() || node.roles.has(Role::Database)
        };
        let survey = self.surveyor.look_at(is_asked);
        let catalog = match survey.control {
            Ok(control) => control.catalog,
            // Without the catalog, the replicas are not known, and nothing can be removed.
            Err(reason) => {
                self.obstacle = Some(format!("control does not answer: {reason}"));
                return None;
            }
        };
        let processes = match self.pool.replicas() {
            Ok(processes) => processes,
            Err(error) => {
                self.obstacle = Some(error.to_string());
                return None;
            }
        };
        self.obstacle = None;
        if let Some(is_paused) = is_paused(&survey.nodes) {
            self.elastic.set_paused(is_paused);
        }
        let numbers = survey.nodes.iter().filter_map(|one| {
            Some((self.names.number(&one.node.name)?, (one.node.number, one.status.as_ref().ok())))
        });
        let told: BTreeMap<u32, (NodeId, Option<&NodeStatus>)> = numbers.collect();
        let seen = self.see(&processes, &told);
        let decision = self.elastic.observe(now, &seen)?;
        let node = |number| told.get(&number).map(|(node, _)| *node);
        self.carry_out(decision, &catalog, node)
    }

    /// What became of the replicas that the pool or the catalog has.
    fn see(
        &mut self,
        processes: &BTreeMap<u32, PoolProcess>,
        told: &BTreeMap<u32, (NodeId, Option<&NodeStatus>)>,
    ) -> Vec<ReplicaSeen> {
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

    /// Does what was decided; returns what that is, for people, if it was possible.
    fn carry_out(
        &mut self,
        ElasticDecision { command, reason }: ElasticDecision,
        catalog: &Catalog,
        node: impl Fn(u32) -> Option<NodeId>,
    ) -> Option<String> {
        let (what, otherwise, number, outcome) = match command {
            ElasticCommand::Start(number) => {
                ("starts", "is not started", number, self.pool.start(number))
            }
            ElasticCommand::Drain(number) => {
                ("leaves", "is not asked to leave", number, self.pool.drain(number))
            }
            ElasticCommand::Kill(number) => {
                ("is killed", "is not killed", number, self.pool.kill(number))
            }
            ElasticCommand::Forget(number) => {
                let known = node(number).filter(|node| catalog.nodes().contains_key(node));
                ("is removed", "is not removed", number, self.forget(number, known))
            }
        };
        let name = self.names.name(number);
        match outcome {
            Ok(()) => {
                tracing::info!(replica = name, what, reason, "the replicas change");
                self.last = format!("{name} {what}: {reason}");
                Some(self.last.clone())
            }
            Err(error) => {
                self.obstacle = Some(format!("{name} {otherwise}: {error}"));
                None
            }
        }
    }

    /// Removes a replica from the cluster, if that knows it, and then its files. One that was not
    /// removed is still among those that have ended.
    fn forget(&mut self, number: u32, known: Option<NodeId>) -> Result<(), PoolError> {
        if let Some(node) = known {
            let removed = self.surveyor.propose(Proposal::Remove { node });
            removed.map_err(|error| PoolError(error.to_string()))?;
        }
        self.pool.forget(number);
        Ok(())
    }

    /// Why the last look could do nothing, or not all that was decided.
    #[must_use]
    pub fn obstacle(&self) -> Option<&str> {
        self.obstacle.as_deref()
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
        let names = ReplicaNames::new("elastic", 1);
        assert_eq!(names.name(12), "elastic-12");
        assert_eq!(names.number("elastic-12"), Some(12));
        let wrong =
            ["elastic-", "elastic-0", "elastic-x", "elastic-012", "elastic-+1", "replica-1"];
        for other in wrong {
            assert_eq!(names.number(other), None, "{other}");
        }
        let ordinals = ReplicaNames::new("firn-replica", 0);
        assert_eq!(ordinals.name(1), "firn-replica-0");
        assert_eq!(ordinals.number("firn-replica-0"), Some(1));
        assert_eq!(ordinals.number("firn-replica-4294967295"), None);
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
