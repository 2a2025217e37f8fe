//! Transactions that begin at a node that follows, and go on at the node that writes.
//!
//! ```text
//!   node that follows                         node that writes
//!   begin, reads from snapshot S
//!   describe ── isolation, S, what was read ──► take_up: a transaction at S that has read that
//!   end
//! ```
//!
//! The transaction at the first node stays open until the other one has begun: it keeps what S sees
//! readable everywhere.

use std::ops::Bound;

use firn_base::{Cts, IndexId};
use serde::{Deserialize, Serialize};

use super::IsolationLevel;

/// A transaction that has only read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DescribedTransaction {
    pub isolation: IsolationLevel,
    /// The snapshot, if one is open.
    pub snapshot: Option<DescribedSnapshot>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DescribedSnapshot {
    pub at: Cts,
    /// What was read from it. `None`: that is not known, or the client has asked for this very
    /// snapshot; it is never renewed ([`super::Transaction::renew_snapshot`]).
    pub reads: Option<Vec<ReadSpan>>,
}

/// Something that was read. All nodes of a database have the same indexes and keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReadSpan {
    /// A record, whether or not it exists.
    Record(IndexId, Vec<u8>),
    /// All records within these bounds.
    Range(IndexId, Bound<Vec<u8>>, Bound<Vec<u8>>),
}
