//! Random transactions over lists. They run against any implementation of [`Session`] and are
//! recorded for the checks of [`crate::history`].
//!
//! ```text
//!   let workload = Workload::new(WorkloadOptions::default(), random);
//!   let recorder = Recorder::new();
//!   // in each of some tasks, with a session of its own:
//!   workload.run(&mut session, session_id, 100, &recorder);
//!   recorder.history().check(Isolation::StrongSnapshotIsolation)?;
//! ```

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use firn_base::Cts;
use parking_lot::Mutex;

use crate::history::{Element, Key, Outcome, Recorder, Recording, SessionId};
use crate::random::Random;

/// Why a call of a [`Session`] failed. The transaction has ended in each case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The transaction certainly did not happen: a conflict, a deadlock, a time limit.
    Aborted,
    /// Unknown: the connection broke during the commit.
    Unknown,
}

/// A client of the system under test that runs one transaction after the other.
pub trait Session {
    /// Begins a transaction; returns its snapshot if the system reports it.
    ///
    /// # Errors
    /// As for all calls: the transaction has ended, and no rollback is needed.
    fn begin(&mut self) -> Result<Option<Cts>, Refused>;

    /// The list of `key`; empty if there is none.
    ///
    /// # Errors
    /// The transaction is over.
    fn read(&mut self, key: Key) -> Result<Vec<Element>, Refused>;

    /// The lists of the keys in a range, read by one scan; keys without a list may be missing.
    ///
    /// # Errors
    /// The transaction is over.
    fn read_range(
        &mut self,
        keys: RangeInclusive<Key>,
    ) -> Result<Vec<(Key, Vec<Element>)>, Refused>;

    /// Appends to the list of `key`, which it creates if it does not exist.
    ///
    /// # Errors
    /// The transaction is over.
    fn append(&mut self, key: Key, element: Element) -> Result<(), Refused>;

    /// Commits; returns the commit timestamp if the system reports it and the transaction wrote.
    ///
    /// # Errors
    /// The transaction is over.
    fn commit(&mut self) -> Result<Option<Cts>, Refused>;

    fn rollback(&mut self);
}

/// The shape of the transactions.
#[derive(Debug, Clone)]
pub struct WorkloadOptions {
    /// Number of keys in use at a time. Few keys cause many conflicts.
    pub keys: u32,
    /// Number of operations in a transaction.
    pub operations: RangeInclusive<u64>,
    /// The share of operations that read one key.
    pub read_share: f64,
    /// The share of operations that read a range.
    pub range_share: f64,
    /// The share of transactions that roll back at their end.
    pub rollback_share: f64,
    /// After this many appends, new keys replace all keys, so that lists stay short and there are
    /// always keys without a list.
    pub appends_per_generation: u32,
}

impl Default for WorkloadOptions {
    fn default() -> WorkloadOptions {
        WorkloadOptions {
            keys: 5,
            operations: 1..=6,
            read_share: 0.4,
            range_share: 0.1,
            rollback_share: 0.05,
            appends_per_generation: 100,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Append(Key, Element),
    Read(Key),
    ReadRange(RangeInclusive<Key>),
}

/// A source of transactions. Clones share the sequence of elements.
#[derive(Clone)]
pub struct Workload {
    options: Arc<WorkloadOptions>,
    random: Arc<Mutex<Random>>,
    next_element: Arc<AtomicU32>,
}

impl Workload {
    /// Transactions with the given shape, drawn from `random`.
    #[must_use]
    pub fn new(options: WorkloadOptions, random: Random) -> Workload {
        Workload {
            options: Arc::new(options),
            random: Arc::new(Mutex::new(random)),
            next_element: Arc::new(AtomicU32::new(1)),
        }
    }

    /// Runs `count` transactions of `session` one after the other; returns how many were committed.
    pub fn run(
        &self,
        session: &mut dyn Session,
        id: SessionId,
        count: usize,
        recorder: &Recorder,
    ) -> usize {
        let outcomes = (0..count).map(|_| self.run_one(session, id, recorder));
        outcomes.filter(|outcome| *outcome == Outcome::Committed).count()
    }

    pub fn run_one(
        &self,
        session: &mut dyn Session,
        id: SessionId,
        recorder: &Recorder,
    ) -> Outcome {
        let (steps, rolls_back) = self.draw();
        let mut recording = recorder.begin(id);
        match attempt(session, &steps, rolls_back, &mut recording) {
            Ok(None) => {
                recording.aborted();
                Outcome::Aborted
            }
            Ok(Some(committed_at)) => {
                recording.committed(committed_at);
                Outcome::Committed
            }
            Err(Refused::Aborted) => {
                recording.aborted();
                Outcome::Aborted
            }
            Err(Refused::Unknown) => {
                recording.unknown();
                Outcome::Unknown
            }
        }
    }

    /// Reads every key that was ever used, in one transaction, so that every append is observed.
    pub fn read_everything(
        &self,
        session: &mut dyn Session,
        id: SessionId,
        recorder: &Recorder,
    ) -> Outcome {
        let last = self.first_key(self.next_element.load(Ordering::SeqCst)) + self.options.keys - 1;
        let steps = [Step::ReadRange(0..=last)];
        let mut recording = recorder.begin(id);
        match attempt(session, &steps, false, &mut recording) {
            Ok(Some(at)) => {
                recording.committed(at);
                Outcome::Committed
            }
            _ => {
                recording.aborted();
                Outcome::Aborted
            }
        }
    }

    fn first_key(&self, element: Element) -> Key {
        element / self.options.appends_per_generation * self.options.keys
    }

    fn draw(&self) -> (Vec<Step>, bool) {
        let random = self.random.lock();
        let options = &self.options;
        let count = random.between(*options.operations.start(), *options.operations.end());
        let steps = (0..count).map(|_| self.draw_step(&random)).collect();
        (steps, random.chance(options.rollback_share))
    }

    fn draw_step(&self, random: &Random) -> Step {
        let options = &self.options;
        let first = self.first_key(self.next_element.load(Ordering::SeqCst));
        let key = first + random.below(u64::from(options.keys)) as u32;
        if random.chance(options.read_share) {
            return Step::Read(key);
        }
        if random.chance(options.range_share / (1.0 - options.read_share)) {
            let last = first + options.keys - 1;
            return Step::ReadRange(key..=random.between(u64::from(key), u64::from(last)) as u32);
        }
        Step::Append(key, self.next_element.fetch_add(1, Ordering::SeqCst))
    }
}

/// The result of the commit; `None` if the transaction was rolled back as planned.
fn attempt(
    session: &mut dyn Session,
    steps: &[Step],
    rolls_back: bool,
    recording: &mut Recording,
) -> Result<Option<Option<Cts>>, Refused> {
    if let Some(snapshot) = session.begin()? {
        recording.reads_at(snapshot);
    }
    for step in steps {
        match step {
            Step::Append(key, element) => {
                recording.append(*key, *element);
                session.append(*key, *element)?;
            }
            Step::Read(key) => recording.read(*key, &session.read(*key)?),
            Step::ReadRange(keys) => {
                recording.read_range(keys.clone(), &session.read_range(keys.clone())?);
            }
        }
    }
    if rolls_back {
        session.rollback();
        return Ok(None);
    }
    Ok(Some(session.commit()?))
}

#[cfg(test)]
mod tests;
