//! The reads and writes of concurrent transactions, recorded while they run and checked afterwards.
//!
//! Each key holds a list. A transaction appends unique elements and reads whole lists. So a read of
//! `[4, 2, 9]` tells which appends it saw and in which order they were made, and the order of
//! versions is known:
//!
//! ```text
//!   session 1   begin ── append(x, 4) ── read y = [] ──────── commit
//!   session 2        begin ── read x = [] ── append(y, 7) ──────────── commit
//!                                  x: session 2 before 1, y: session 1 before 2: write skew
//! ```
//!
//! A range read is recorded as a read of every key of the range, with empty lists for absent keys.
//! A phantom is then an element that such a read missed.
//!
//! There are two checks. [`History::check`] needs no help of the system under test.
//! [`History::check_timestamps`] trusts the timestamps that the system reports, and checks each
//! read exactly.

mod check;
mod timestamps;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use firn_base::Cts;
use parking_lot::Mutex;

pub use check::{Anomaly, Isolation, Rejected};
pub use timestamps::TimestampViolation;

/// Key of a list.
pub type Key = u32;
/// A member of a list. No element is appended twice to a key.
pub type Element = u32;
/// A client that runs one transaction after the other.
pub type SessionId = u32;

/// An operation of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Appended `element` to the list of `key`.
    Append { key: Key, element: Element },
    /// Read the list of `key`.
    Read {
        key: Key,
        /// The list that was read.
        list: Vec<Element>,
    },
}

/// How a transaction ended, as far as its client knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The commit was acknowledged.
    Committed,
    /// The transaction certainly did not happen.
    Aborted,
    /// The client got no answer: the commit may have happened, or may still happen.
    Unknown,
}

#[derive(Debug, Clone)]
pub struct Transaction {
    pub session: SessionId,
    /// The operations in order.
    pub operations: Vec<Operation>,
    pub outcome: Outcome,
    /// When it began: its position among all beginnings and ends.
    pub began: u64,
    /// When its client knew the outcome.
    pub ended: u64,
    /// The reported snapshot.
    pub snapshot: Option<Cts>,
    /// The reported commit timestamp.
    pub committed_at: Option<Cts>,
}

/// All recorded transactions.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// The transactions, in the order of their ends.
    pub transactions: Vec<Transaction>,
}

#[derive(Default)]
struct Recorded {
    history: History,
    time: u64,
    open_sessions: BTreeSet<SessionId>,
}

impl Recorded {
    fn tick(&mut self) -> u64 {
        self.time += 1;
        self.time
    }
}

/// Records transactions of any number of sessions. Clones record into the same history.
#[derive(Clone, Default)]
pub struct Recorder {
    recorded: Arc<Mutex<Recorded>>,
}

impl Recorder {
    /// A recorder with an empty history.
    #[must_use]
    pub fn new() -> Recorder {
        Recorder::default()
    }

    /// Begins the record of a transaction. Call it before the transaction begins.
    ///
    /// # Panics
    /// If the session has another transaction open.
    #[must_use]
    pub fn begin(&self, session: SessionId) -> Recording {
        let mut recorded = self.recorded.lock();
        assert!(recorded.open_sessions.insert(session), "session {session} has one open");
        let began = recorded.tick();
        let transaction = Transaction {
            session,
            operations: Vec::new(),
            outcome: Outcome::Unknown,
            began,
            ended: began,
            snapshot: None,
            committed_at: None,
        };
        Recording { recorder: self.clone(), transaction }
    }

    /// The transactions that were recorded so far, without open ones.
    #[must_use]
    pub fn history(&self) -> History {
        self.recorded.lock().history.clone()
    }
}

/// A transaction that is being recorded. If it is dropped without an outcome, the outcome is
/// unknown, as for a client whose connection broke.
pub struct Recording {
    recorder: Recorder,
    transaction: Transaction,
}

impl Recording {
    /// Records an append. Call it before the append is sent, because from then on it may happen.
    pub fn append(&mut self, key: Key, element: Element) {
        self.transaction.operations.push(Operation::Append { key, element });
    }

    /// Records the result of a read; a key that does not exist has an empty list.
    pub fn read(&mut self, key: Key, list: &[Element]) {
        self.transaction.operations.push(Operation::Read { key, list: list.to_vec() });
    }

    /// Records the lists that a range read returned; keys without a list may be missing.
    ///
    /// # Panics
    /// If a returned key lies outside of `keys`.
    pub fn read_range(&mut self, keys: RangeInclusive<Key>, found: &[(Key, Vec<Element>)]) {
        assert!(found.iter().all(|(key, _)| keys.contains(key)), "a key from outside of the range");
        for key in keys {
            let list = found.iter().find(|(found, _)| *found == key);
            self.read(key, list.map_or(&[], |(_, list)| list));
        }
    }

    /// Records the snapshot that the system reports.
    pub fn reads_at(&mut self, snapshot: Cts) {
        self.transaction.snapshot = Some(snapshot);
    }

    /// Records an acknowledged commit, with its timestamp if the system reports one.
    pub fn committed(mut self, at: Option<Cts>) {
        self.transaction.outcome = Outcome::Committed;
        self.transaction.committed_at = at;
    }

    /// Records that the transaction certainly did not happen.
    pub fn aborted(mut self) {
        self.transaction.outcome = Outcome::Aborted;
    }

    /// Records that the outcome of the commit is unknown.
    pub fn unknown(self) {
        drop(self);
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let mut recorded = self.recorder.recorded.lock();
        let mut transaction = self.transaction.clone();
        transaction.ended = recorded.tick();
        recorded.open_sessions.remove(&transaction.session);
        recorded.history.transactions.push(transaction);
    }
}

#[cfg(test)]
mod tests;
