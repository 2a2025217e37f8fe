//! The check that trusts no timestamp: it infers dependencies from the reads, and a cycle among
//! them identifies the anomaly. The crate `adya` does the inference and the search. This module
//! translates the history, and checks that every element that was read was also appended.
//!
//! Reads of transactions that did not certainly commit are left out, because no isolation level
//! promises anything for them. Appends of transactions with unknown outcome count as possible.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::time::Duration;

use adya::history::{Interner, Mop, Op, OpType, ReadValue, Scalar};
use adya::{Opts, Valid, Workload};

use super::{Element, History, Key, Operation, Outcome, Transaction};

/// Real time for the search for the shortest cycle of each kind. Whether there is a cycle is
/// decided in any case.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(30);

/// The isolation that a history is expected to have. *Session* adds that a session's transactions
/// are ordered as it ran them. *Strong* or *strict* adds that a transaction that ended before
/// another began is ordered before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// No dirty write, no aborted, intermediate or circular read (G0, G1a, G1b, G1c).
    ReadCommitted,
    /// Read committed in real time: a transaction sees everything that was committed before it
    /// began.
    StrongReadCommitted,
    /// Reads from one snapshot, no lost update; write skew is allowed.
    SnapshotIsolation,
    /// Snapshot isolation in which a session sees its own past.
    SessionSnapshotIsolation,
    /// Snapshot isolation in which every session sees the past of all sessions.
    StrongSnapshotIsolation,
    /// Equivalent to running the transactions one after the other.
    Serializable,
    /// Serializable, in the order of each session.
    SessionSerializable,
    /// Serializable, in the order of real time.
    StrictSerializable,
}

impl Isolation {
    fn model(self) -> &'static str {
        match self {
            Isolation::ReadCommitted => "read-committed",
            Isolation::StrongReadCommitted => "strong-read-committed",
            Isolation::SnapshotIsolation => "snapshot-isolation",
            Isolation::SessionSnapshotIsolation => "strong-session-snapshot-isolation",
            Isolation::StrongSnapshotIsolation => "strong-snapshot-isolation",
            Isolation::Serializable => "serializable",
            Isolation::SessionSerializable => "strong-session-serializable",
            Isolation::StrictSerializable => "strict-serializable",
        }
    }
}

/// A pattern that the expected isolation forbids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anomaly {
    /// The name in the literature: `G0`, `G1a`, `lost-update`, `G-single-item` (read skew),
    /// `G2-item` (write skew), `G-nonadjacent-item` (long fork), ... , with `-realtime` or
    /// `-process` if the order of time or of a session is a part of the cycle; `unwritten-read` if
    /// an element was read that was never written.
    pub kind: String,
    /// The transactions, and why each must come before the next.
    pub explanation: String,
}

/// Why a history was not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rejected {
    Violated(Vec<Anomaly>),
    /// No conclusion is possible, for instance because no transaction depends on another: the
    /// workload has too few conflicts.
    Undecided(Vec<Anomaly>),
}

impl Rejected {
    /// The anomalies' names, sorted.
    #[must_use]
    pub fn kinds(&self) -> Vec<&str> {
        let (Rejected::Violated(anomalies) | Rejected::Undecided(anomalies)) = self;
        let mut kinds: Vec<&str> = anomalies.iter().map(|anomaly| anomaly.kind.as_str()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (verdict, anomalies) = match self {
            Rejected::Violated(anomalies) => ("the claimed isolation is violated", anomalies),
            Rejected::Undecided(anomalies) => ("nothing can be said", anomalies),
        };
        write!(f, "{verdict}")?;
        anomalies.iter().try_for_each(|one| write!(f, "\n{}: {}", one.kind, one.explanation))
    }
}

impl std::error::Error for Rejected {}

impl History {
    /// Checks that the history satisfies `claimed`. Blocks for about a second for a hundred
    /// thousand transactions.
    ///
    /// # Errors
    /// If it does not, or if it allows no conclusion.
    pub fn check(&self, claimed: Isolation) -> Result<(), Rejected> {
        let unwritten = self.unwritten_reads();
        if !unwritten.is_empty() {
            return Err(Rejected::Violated(unwritten));
        }
        let models = vec![claimed.model().to_owned()];
        let options = Opts { models, timeout: SEARCH_TIMEOUT, ..Opts::default() };
        let report = adya::check(&self.to_operations(), Workload::ListAppend, &options);
        let anomalies = report.anomalies.into_values().flatten();
        let anomalies = anomalies
            .map(|found| Anomaly { kind: found.kind, explanation: found.explanation })
            .collect();
        match report.valid {
            Valid::True => Ok(()),
            Valid::False => Err(Rejected::Violated(anomalies)),
            Valid::Unknown => Err(Rejected::Undecided(anomalies)),
        }
    }

    fn unwritten_reads(&self) -> Vec<Anomaly> {
        let written: HashSet<(Key, Element)> = self
            .transactions
            .iter()
            .flat_map(|transaction| &transaction.operations)
            .filter_map(|operation| match operation {
                Operation::Append { key, element } => Some((*key, *element)),
                Operation::Read { .. } => None,
            })
            .collect();
        let mut anomalies = Vec::new();
        for transaction in &self.transactions {
            for operation in &transaction.operations {
                let Operation::Read { key, list } = operation else { continue };
                if list.iter().any(|element| !written.contains(&(*key, *element))) {
                    anomalies.push(Anomaly {
                        kind: "unwritten-read".to_owned(),
                        explanation: format!(
                            "session {} read key {key} as {list:?}, of which nobody appended some",
                            transaction.session
                        ),
                    });
                }
            }
        }
        anomalies
    }

    /// The history in the form of the crate `adya`: beginnings and ends in the order of time.
    fn to_operations(&self) -> adya::History {
        let mut events = BTreeMap::new();
        for transaction in &self.transactions {
            events.insert(transaction.began, (transaction, OpType::Invoke));
            events.insert(transaction.ended, (transaction, ending(transaction.outcome)));
        }
        let mut interner = Interner::default();
        let operations = events.into_values().enumerate().map(|(index, (transaction, kind))| Op {
            index: index as u64,
            kind,
            process: Some(i64::from(transaction.session)),
            value: micro_operations(transaction, kind, &mut interner),
            time: None,
        });
        let operations = operations.collect();
        adya::History::from_ops(operations, interner)
    }
}

fn ending(outcome: Outcome) -> OpType {
    match outcome {
        Outcome::Committed => OpType::Ok,
        Outcome::Aborted => OpType::Fail,
        Outcome::Unknown => OpType::Info,
    }
}

fn micro_operations(transaction: &Transaction, kind: OpType, interner: &mut Interner) -> Vec<Mop> {
    let mut id = |number: u32| interner.intern(Scalar::Int(i64::from(number)));
    let operations = transaction.operations.iter();
    operations
        .map(|operation| match operation {
            Operation::Append { key, element } => {
                Mop::Append { key: id(*key), value: id(*element) }
            }
            Operation::Read { key, list } if kind == OpType::Ok => {
                let list = list.iter().map(|element| id(*element)).collect();
                Mop::Read { key: id(*key), value: ReadValue::List(list) }
            }
            Operation::Read { key, .. } => Mop::Read { key: id(*key), value: ReadValue::Nil },
        })
        .collect()
}
