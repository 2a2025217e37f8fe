//! Open transactions that the node hands over to the one that writes next: what that node must know
//! besides the log.
//!
//! ```text
//!   undo log (in the log)     changes, and a marker of this handover
//!   HandedTransaction         snapshot, locks, where its undo log ends
//!   HandedOver                all of them, and the commits that the oldest snapshot does not see
//!   HandedSession             what else goes on of their sessions, and of those without one
//! ```

use std::ops::Bound;

use firn_base::{Cts, IndexId, TableId, TrxId};
use serde::{Deserialize, Serialize};

use super::{DetachedLocks, IsolationLevel, MetadataLock, Savepoint, Transaction};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedTransaction {
    /// The number by which its session asks for it.
    pub session: u64,
    pub isolation: IsolationLevel,
    /// `None` until the first write or lock.
    pub writer: Option<HandedWriter>,
    /// The snapshot, if one is open.
    pub snapshot: Option<Cts>,
    /// The locks on rows, ranges and tables that its undo log does not show.
    pub row_locks: Vec<HandedLock>,
    /// The locks on definitions.
    pub table_locks: Vec<(TableId, MetadataLock)>,
}

impl HandedTransaction {
    /// The number of one that no session asks for: it has the oldest snapshot of the nodes that
    /// follow, and keeps that readable until their transactions have moved. No connection has it.
    pub const OF_FOLLOWERS: u64 = 0;
}

/// The part of a transaction that writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedWriter {
    pub trx: TrxId,
    /// Its last change in the undo log; as [`super::Savepoint`], which keeps its meaning.
    pub last: u64,
    /// Changes in the undo log.
    pub records: u64,
}

/// A granted lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedLock {
    pub target: HandedTarget,
    pub is_exclusive: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum HandedTarget {
    Key(IndexId, Vec<u8>),
    Range(IndexId, Bound<Vec<u8>>, Bound<Vec<u8>>),
    Table(TableId),
}

/// What the next writer must know of the one before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedOver {
    /// Chosen by the node that hands over: no two handovers of a log have the same one.
    pub number: u64,
    pub transactions: Vec<HandedTransaction>,
    /// Every commit that some snapshot above does not see.
    pub commits: Vec<(TrxId, Cts)>,
}

impl HandedOver {
    /// The oldest snapshot that goes on.
    #[must_use]
    pub fn oldest_snapshot(&self) -> Option<Cts> {
        self.transactions.iter().filter_map(|transaction| transaction.snapshot).min()
    }
}

/// What goes on of a session besides the transaction of its database node, which it may have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedSession {
    /// See [`HandedTransaction::session`].
    pub session: u64,
    /// Whether its transaction only reads.
    pub read_only: bool,
    /// By name, oldest first.
    pub savepoints: Vec<(String, Savepoint)>,
    /// Locks, temporary tables and what else ends with a server, as compute nodes write it down.
    pub belongings: Option<Vec<u8>>,
}

/// All that a compute node and its database node hand over.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedSessions {
    pub sessions: Vec<HandedSession>,
    pub node: HandedOver,
}

/// A transaction that goes on here, for the session that asks for it.
pub struct TakenOver {
    /// See [`HandedTransaction::session`].
    pub session: u64,
    pub transaction: Box<dyn Transaction>,
    pub table_locks: DetachedLocks,
}
