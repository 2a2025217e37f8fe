//! The judge that believes nobody: dependencies are inferred from what was read, and cycles among them
//! name the anomaly. The inference and the search are the crate `adya`'s; what is ours is the recording,
//! and the check that every element which was read had been appended by somebody.
//!
//! Transactions that did not certainly commit lend no reads to the dependencies, for nothing is promised
//! of them; the appends of those whose outcome is unknown count as possible.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::time::Duration;

use adya::history::{Interner, Mop, Op, OpType, ReadValue, Scalar};
use adya::{Opts, Valid, Workload};

use super::{Element, History, Key, Operation, Outcome, Transaction};

/// How long, in real time, the search for the shortest cycle of each kind may take. Whether there is a
/// cycle is always decided.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(30);

/// What is claimed of a history. *Session* adds: a session's transactions are ordered as it ran them.
/// *Strong* or *strict* adds: so is everything that ended before something else began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// No dirty write, no aborted, intermediate or circular read (G0, G1a, G1b, G1c).
    ReadCommitted,
    /// Read committed in real time: what was committed before a transaction began is seen by it.
    StrongReadCommitted,
    /// Reads from one snapshot, no lost update; write skew is allowed.
    SnapshotIsolation,
    /// Snapshot isolation under which a session sees its own past.
    SessionSnapshotIsolation,
    /// Snapshot isolation under which everybody sees everybody's past.
    StrongSnapshotIsolation,
    /// As if one after the other.
    Serializable,
    /// As if one after the other, in each session's order.
    SessionSerializable,
    /// As if one after the other, in the order of real time.
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

/// Something that the claimed isolation forbids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anomaly {
    /// Its name in the literature: `G0`, `G1a`, `lost-update`, `G-single-item` (read skew), `G2-item`
    /// (write skew), `G-nonadjacent-item` (long fork), ... , with `-realtime` or `-process` if the order
    /// of time or of a session is a part of it; `unwritten-read` if what was read was never written.
    pub kind: String,
    /// The transactions and why each must precede the next.
    pub explanation: String,
}

/// Why a history was not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rejected {
    /// It is not what was claimed.
    Violated(Vec<Anomaly>),
    /// Nothing can be said, for instance because no transaction depends on another: the workload
    /// is too tame.
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
    /// Checks that the history is what `claimed` allows. Blocks for the time that it takes: about a
    /// second for a hundred thousand transactions.
    ///
    /// # Errors
    /// If it is not, or if it says too little.
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

    /// The history as the checking crate takes it: beginnings and ends in the order of time.
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
