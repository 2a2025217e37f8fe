//! What concurrent transactions saw and did, recorded while they run and judged afterwards.
//!
//! Each key holds a list; a transaction appends unique elements and reads whole lists. A read of
//! `[4, 2, 9]` thus tells which appends it saw and in which order they were made, so that the order of
//! versions need not be guessed:
//!
//! ```text
//!   session 1   begin ── append(x, 4) ── read y = [] ──────── commit
//!   session 2        begin ── read x = [] ── append(y, 7) ──────────── commit
//!                                  x: session 2 before 1, y: session 1 before 2: write skew
//! ```
//!
//! A range read is recorded as a read of every key of the range, the absent ones as empty lists: a
//! phantom is then an element that such a read missed.
//!
//! The judges are [`History::check`], which needs no help from the system under test, and
//! [`History::check_timestamps`], which believes the timestamps that it reports and checks each read
//! against them exactly.

mod check;
mod timestamps;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use firn_base::Cts;
use parking_lot::Mutex;

pub use check::{Anomaly, Isolation, Rejected};
pub use timestamps::TimestampViolation;

/// What a list is stored under.
pub type Key = u32;
/// A member of a list. No element is appended twice to a key.
pub type Element = u32;
/// A client that runs one transaction after the other.
pub type SessionId = u32;

/// One thing that a transaction did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// It appended `element` to the list of `key`.
    Append {
        /// The list's key.
        key: Key,
        /// The appended element.
        element: Element,
    },
    /// It read the list of `key`.
    Read {
        /// The list's key.
        key: Key,
        /// What it saw.
        list: Vec<Element>,
    },
}

/// How a transaction ended, as far as its client knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The commit was acknowledged.
    Committed,
    /// It certainly did not happen.
    Aborted,
    /// The client was told nothing: it may have happened, or may still happen.
    Unknown,
}

/// One recorded transaction.
#[derive(Debug, Clone)]
pub struct Transaction {
    /// Who ran it.
    pub session: SessionId,
    /// What it did, in order.
    pub operations: Vec<Operation>,
    /// How it ended.
    pub outcome: Outcome,
    /// When it began: its place among all beginnings and ends.
    pub began: u64,
    /// When its client knew how it ended.
    pub ended: u64,
    /// The snapshot that it says it read at.
    pub snapshot: Option<Cts>,
    /// The timestamp that it says it committed at.
    pub committed_at: Option<Cts>,
}

/// Everything that was recorded.
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
    /// A recorder of nothing yet.
    #[must_use]
    pub fn new() -> Recorder {
        Recorder::default()
    }

    /// Call before the transaction is begun.
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

    /// What was recorded so far. Transactions that are still open are missing.
    #[must_use]
    pub fn history(&self) -> History {
        self.recorded.lock().history.clone()
    }
}

/// A transaction that is being recorded. Dropped without a word, it is of unknown outcome, as that of
/// a client whose connection broke.
pub struct Recording {
    recorder: Recorder,
    transaction: Transaction,
}

impl Recording {
    /// Call before the append is asked for: from then on it may happen.
    pub fn append(&mut self, key: Key, element: Element) {
        self.transaction.operations.push(Operation::Append { key, element });
    }

    /// Call with what a read returned; a key that is not there has an empty list.
    pub fn read(&mut self, key: Key, list: &[Element]) {
        self.transaction.operations.push(Operation::Read { key, list: list.to_vec() });
    }

    /// Call with the lists that a range read returned; keys that are not there may be missing.
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

    /// The snapshot that the system says the transaction reads at.
    pub fn reads_at(&mut self, snapshot: Cts) {
        self.transaction.snapshot = Some(snapshot);
    }

    /// The commit was acknowledged, at a timestamp if the system told one.
    pub fn committed(mut self, at: Option<Cts>) {
        self.transaction.outcome = Outcome::Committed;
        self.transaction.committed_at = at;
    }

    /// The transaction certainly did not happen.
    pub fn aborted(mut self) {
        self.transaction.outcome = Outcome::Aborted;
    }

    /// Nobody knows whether it happened.
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
