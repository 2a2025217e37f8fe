//! A log store for tests whose log is in copies elsewhere, driven by a seed: members, messages to
//! them, majorities.
//!
//! ```text
//!   writer ── round ──► member: arrived ──► synced ── acknowledgement ──► writer
//!             each of these takes a random time; rounds overtake each other
//!
//!   rounds      1   2   3   4   5
//!   member a    ■   ■       ■              durable: up to the end of 2. Round 4 has a majority,
//!   member b    ■   ■       ■   ■          but round 3 has none yet.
//!   member c        ■   ■
//! ```
//!
//! * A member *promises* an epoch to a writer that opens, and takes nothing older from then on. It
//!   *accepts* an epoch when it takes the opened log of that epoch's writer, in place of its own.
//! * A writer opens with the promises of a majority. Of these members it takes those with the
//!   highest accepted epoch, and all rounds that any of them has, up to the first gap. A majority
//!   accepts this log before the writer begins.
//! * A round is durable once a majority has synced it, and each round before it. Two majorities
//!   share a member, so a later writer finds every durable round.
//!
//! Messages to a member that is lost are sent again for as long as the writer lives. When a process
//! loses power, its messages may still arrive. A [`Fault`] breaks one promise on purpose, to show
//! that a suite notices.
//!
//! The members are state behind a mutex, and have no task: the writers, and the nodes that open the
//! log, deliver the messages that are due. The mutex is never held across a wait.

mod cluster;
mod member;
mod opening;
mod options;
mod reading;
mod writer;

use std::sync::Arc;

use firn_api::{FollowOptions, LogError, LogFollower, LogStore, OpenedLog, WriterEpoch};
use firn_base::{Environment, Lsn};
use firn_storage::follower::{FollowedLog, Follower};

use cluster::Cluster;
use opening::Opening;
use reading::Reading;

pub use options::{Fault, QuorumOptions};

/// The members, which outlive the processes that use them. Clones are the same members.
#[derive(Clone)]
pub struct QuorumMembers {
    cluster: Arc<Cluster>,
}

impl QuorumMembers {
    /// Members with an empty log.
    #[must_use]
    pub fn new(options: QuorumOptions) -> QuorumMembers {
        QuorumMembers { cluster: Arc::new(Cluster::new(options)) }
    }

    /// The log, as the process with this environment sees it. `node` is its name; processes with
    /// different names can be cut off and chosen as the leader one by one.
    #[must_use]
    pub fn log(&self, environment: &Environment, node: &str) -> QuorumLog {
        let reading = Arc::new(Reading::new(&self.cluster));
        QuorumLog { environment: environment.clone(), node: node.into(), reading }
    }

    /// Random members stop to answer, so that only a majority goes on.
    pub fn lose_minority(&self) {
        self.cluster.lock().lose(false);
    }

    /// Random members stop to answer, so that only a minority goes on.
    pub fn lose_majority(&self) {
        self.cluster.lock().lose(true);
    }

    /// The process of this name reaches no member.
    pub fn isolate(&self, node: &str) {
        self.cluster.lock().isolated.insert(node.to_owned());
    }

    /// The members take no more log.
    pub fn hold_back(&self) {
        self.cluster.lock().is_held_back = true;
    }

    /// The members take log only from the process of this name.
    pub fn lead_at(&self, leader: &str) {
        self.cluster.lock().leader = Some(leader.to_owned());
    }

    /// Ends all of these.
    pub fn heal(&self) {
        self.cluster.lock().heal();
    }

    /// Processes have lost power: each of their messages is lost now or still arrives.
    pub fn lose_senders(&self) {
        self.cluster.lock().lose_messages();
    }

    /// Only readers still need log before `lsn`.
    pub fn let_go(&self, lsn: Lsn) {
        self.cluster.truncate(lsn);
    }
}

/// The log, as one process sees it.
#[derive(Clone)]
pub struct QuorumLog {
    environment: Environment,
    node: Arc<str>,
    reading: Arc<Reading>,
}

impl LogStore for QuorumLog {
    fn open(&self, epoch: WriterEpoch) -> Result<OpenedLog, LogError> {
        let (cluster, node) = (self.reading.cluster(), &self.node);
        let opening = Opening::decide(cluster, node, epoch)?;
        let (tail, base) = opening.settle()?;
        let (environment, cluster) = (self.environment.clone(), Arc::clone(cluster));
        let node = Arc::clone(node);
        Ok(OpenedLog::new(tail, move |source| {
            Box::new(writer::QuorumWriter::start(
                &environment,
                &cluster,
                (node, tail, base),
                source,
            ))
        }))
    }

    fn durable_lsn(&self) -> Lsn {
        self.reading.cluster().durable()
    }

    fn truncated_lsn(&self) -> Lsn {
        self.reading.cluster().lock().floor
    }

    fn read(&self, from: Lsn, limit_bytes: usize, into: &mut Vec<u8>) -> Result<Lsn, LogError> {
        self.reading.read(from, limit_bytes, into)
    }

    fn follow(&self, options: FollowOptions) -> Result<Box<dyn LogFollower>, LogError> {
        Ok(Box::new(Follower::new(Arc::clone(&self.reading), options)?))
    }
}
