//! The check that trusts the timestamps: under snapshot isolation, a read of `key` at snapshot `s`
//! returns exactly the appends of the transactions with `cts <= s`, in the order of their
//! timestamps, followed by the transaction's own appends.
//!
//! ```text
//!   cts            3          5                    8
//!   list of x    [4]      [4, 2]   snapshot 7   [4, 2, 9]
//!                                  reads [4, 2], nothing else
//! ```
//!
//! Unlike inference from reads, it also finds a wrong read that some other order of commits would
//! explain. It checks that:
//!
//! * every read of a committed transaction with a reported snapshot is correct;
//! * of two transactions that both append to a key, one commits before the other's snapshot ("first
//!   committer wins");
//! * no two transactions commit at one timestamp, and none at or before its own snapshot;
//! * a snapshot covers every commit that was acknowledged before its transaction began.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use firn_base::Cts;

use super::{Element, History, Key, Operation, Outcome, Transaction};

/// A contradiction between timestamps and reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimestampViolation {
    /// A read returned something other than its snapshot contains.
    WrongRead {
        key: Key,
        snapshot: Cts,
        /// The list at the snapshot.
        expected: Vec<Element>,
        /// The list that was read.
        found: Vec<Element>,
    },
    /// Both transactions appended to the key, and neither had the other in its snapshot.
    ConcurrentWrites {
        key: Key,
        /// The timestamp of the earlier one.
        first: Cts,
        /// The timestamp of the later one.
        second: Cts,
    },
    /// Two writing transactions have this timestamp.
    SharedTimestamp(Cts),
    /// A writing transaction committed at or before its own snapshot.
    CommitBeforeSnapshot { snapshot: Cts, committed_at: Cts },
    /// A transaction's snapshot misses a commit that was acknowledged before it began.
    StaleSnapshot {
        snapshot: Cts,
        /// The latest commit that had been acknowledged.
        acknowledged: Cts,
    },
}

impl fmt::Display for TimestampViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for TimestampViolation {}

type Versions = BTreeMap<Key, BTreeMap<Cts, Vec<Element>>>;

impl History {
    /// Checks snapshot isolation in real time against the reported timestamps. Transactions without
    /// timestamps are ignored.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn check_timestamps(&self) -> Result<(), TimestampViolation> {
        let versions = self.versions()?;
        let doubtful = self.doubtful_elements();
        for transaction in self.committed() {
            let Some(snapshot) = transaction.snapshot else { continue };
            if let Some(committed_at) = transaction.committed_at {
                check_order(transaction, snapshot, committed_at)?;
            }
            check_reads(transaction, snapshot, &versions, &doubtful)?;
            if let Some(committed_at) = transaction.committed_at {
                check_writes(transaction, snapshot, committed_at, &versions)?;
            }
        }
        self.check_real_time()
    }

    fn committed(&self) -> impl Iterator<Item = &Transaction> {
        self.transactions.iter().filter(|transaction| transaction.outcome == Outcome::Committed)
    }

    /// For every key, what each commit appended to it.
    fn versions(&self) -> Result<Versions, TimestampViolation> {
        let mut versions = Versions::new();
        let mut used = HashSet::new();
        for transaction in self.committed() {
            let Some(cts) = transaction.committed_at else { continue };
            let mut writes = false;
            for (key, element) in appends(transaction) {
                writes = true;
                versions.entry(key).or_default().entry(cts).or_default().push(element);
            }
            if writes && !used.insert(cts) {
                return Err(TimestampViolation::SharedTimestamp(cts));
            }
        }
        Ok(versions)
    }

    /// Elements of transactions with unknown outcome, which may appear at any time.
    fn doubtful_elements(&self) -> HashSet<(Key, Element)> {
        let doubtful = self.transactions.iter().filter(|transaction| match transaction.outcome {
            Outcome::Committed => transaction.committed_at.is_none(),
            Outcome::Aborted => false,
            Outcome::Unknown => true,
        });
        doubtful.flat_map(appends).collect()
    }

    fn check_real_time(&self) -> Result<(), TimestampViolation> {
        let mut events: Vec<(u64, bool, Cts)> = Vec::new();
        for transaction in self.committed() {
            let ended = transaction.committed_at.map(|cts| (transaction.ended, true, cts));
            let began = transaction.snapshot.map(|snapshot| (transaction.began, false, snapshot));
            events.extend(ended.into_iter().chain(began));
        }
        events.sort_unstable();
        let mut acknowledged = Cts(0);
        for (_, is_end, cts) in events {
            if is_end {
                acknowledged = acknowledged.max(cts);
            } else if cts < acknowledged {
                return Err(TimestampViolation::StaleSnapshot { snapshot: cts, acknowledged });
            }
        }
        Ok(())
    }
}

fn appends(transaction: &Transaction) -> impl Iterator<Item = (Key, Element)> {
    transaction.operations.iter().filter_map(|operation| match operation {
        Operation::Append { key, element } => Some((*key, *element)),
        Operation::Read { .. } => None,
    })
}

fn check_order(
    transaction: &Transaction,
    snapshot: Cts,
    committed_at: Cts,
) -> Result<(), TimestampViolation> {
    if committed_at <= snapshot && appends(transaction).next().is_some() {
        return Err(TimestampViolation::CommitBeforeSnapshot { snapshot, committed_at });
    }
    Ok(())
}

fn check_reads(
    transaction: &Transaction,
    snapshot: Cts,
    versions: &Versions,
    doubtful: &HashSet<(Key, Element)>,
) -> Result<(), TimestampViolation> {
    let mut own: BTreeMap<Key, Vec<Element>> = BTreeMap::new();
    for operation in &transaction.operations {
        match operation {
            Operation::Append { key, element } => own.entry(*key).or_default().push(*element),
            Operation::Read { key, list } => {
                let seen =
                    versions.get(key).into_iter().flat_map(|commits| commits.range(..=snapshot));
                let mut expected: Vec<Element> = seen.flat_map(|(_, list)| list.clone()).collect();
                expected.extend(own.get(key).into_iter().flatten());
                let certain = list.iter().filter(|element| !doubtful.contains(&(*key, **element)));
                if !certain.eq(&expected) {
                    let (key, found) = (*key, list.clone());
                    return Err(TimestampViolation::WrongRead { key, snapshot, expected, found });
                }
            }
        }
    }
    Ok(())
}

fn check_writes(
    transaction: &Transaction,
    snapshot: Cts,
    committed_at: Cts,
    versions: &Versions,
) -> Result<(), TimestampViolation> {
    for (key, _) in appends(transaction) {
        let between =
            (std::ops::Bound::Excluded(snapshot), std::ops::Bound::Excluded(committed_at));
        if let Some((first, _)) = versions[&key].range(between).next() {
            let (first, second) = (*first, committed_at);
            return Err(TimestampViolation::ConcurrentWrites { key, first, second });
        }
    }
    Ok(())
}
