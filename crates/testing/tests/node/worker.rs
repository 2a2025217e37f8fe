//! A thread that runs its transactions one after the other and reports acknowledgements.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use firn_api::LogError;
use firn_api::rows::{CommitListener, Confirmation, RowsResult};
use firn_engine::lock::LockError;
use firn_engine::log::Completion;
use firn_engine::transaction::{IsolationLevel, Transaction};
use firn_engine::{Engine, EngineError};
use firn_testing::random::Random;

use crate::mirror::Trees;
use crate::plan::{Plan, Shape};

/// A worker's report on a transaction, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    /// The commit was acknowledged.
    Acknowledged,
    /// The transaction is certainly prepared.
    Prepared,
    /// The worker is about to end the prepared transaction.
    Ending,
    /// Something happened that must not happen.
    Wrong,
}

/// Receives a worker's reports: thread, sequence number, report.
pub(crate) type Report = Arc<dyn Fn(u32, u64, Said) + Send + Sync>;

/// The most commits of a worker that are not durable yet.
const IN_FLIGHT: u64 = 16;

/// A worker of one node.
pub(crate) struct Worker<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) trees: Trees,
    pub(crate) shape: &'a Shape,
    pub(crate) thread: u32,
    pub(crate) random: &'a Random,
    pub(crate) report: Report,
    /// Set to end the worker soon.
    pub(crate) stop: &'a AtomicBool,
    /// The longest pause between two transactions.
    pub(crate) pace: Duration,
    /// The longest wait for a lock.
    pub(crate) lock_wait: Duration,
    /// Whether the storage may refuse to read or leave a commit unconfirmed, which ends the worker.
    pub(crate) is_storage_bad: bool,
}

/// The name under which a transaction is prepared.
pub(crate) fn xid(thread: u32, sequence: u64) -> Vec<u8> {
    format!("{thread}-{sequence}").into_bytes()
}

/// The inverse of [`xid`].
pub(crate) fn parse_xid(xid: &[u8]) -> Option<(u32, u64)> {
    let (thread, sequence) = std::str::from_utf8(xid).ok()?.split_once('-')?;
    Some((thread.parse().ok()?, sequence.parse().ok()?))
}

/// Ends the transactions that earlier lives left prepared.
pub(crate) fn end_prepared(
    engine: &Engine,
    random: &Random,
    report: &Report,
) -> Result<(), EngineError> {
    for xid in engine.system().prepared_transactions() {
        let (thread, sequence) = parse_xid(&xid).expect("one of ours");
        report(thread, sequence, Said::Ending);
        if random.chance(0.5) {
            engine.system().commit_prepared(&xid, None)?;
            report(thread, sequence, Said::Acknowledged);
        } else {
            engine.system().rollback_prepared(&xid)?;
        }
    }
    Ok(())
}

impl Worker<'_> {
    /// Works until it is told to stop or the node fails. Reports a failure that should not have
    /// happened.
    pub(crate) fn run(&self) {
        let in_flight = Arc::new(AtomicU64::new(0));
        let mut next = match self.first() {
            Ok(next) => next,
            Err(error) => return self.complain(0, &error),
        };
        while !self.stop.load(Ordering::Acquire) {
            self.pause();
            match self.attempt(next, &in_flight) {
                Ok(true) => next += 1,
                Ok(false) => {}
                Err(error) if is_passing(&error) => {
                    firn_base::task::sleep(Duration::from_micros(self.random.between(1, 2_000)))
                }
                Err(error) => return self.complain(next, &error),
            }
        }
    }

    fn pause(&self) {
        if !self.pace.is_zero() {
            let most_us = self.pace.as_micros() as u64;
            firn_base::task::sleep(Duration::from_micros(self.random.below(most_us)));
        }
    }

    fn complain(&self, sequence: u64, error: &EngineError) {
        let is_storage = matches!(
            error,
            EngineError::Log(_) | EngineError::OutcomeUnknown(_) | EngineError::Page(_)
        );
        let is_end = error.is_fatal();
        let is_expected = is_end || (is_storage && self.is_storage_bad);
        if !is_expected {
            println!("thread {} at {sequence}: {error:?}", self.thread);
            (self.report)(self.thread, sequence, Said::Wrong);
        }
    }

    fn first(&self) -> Result<u64, EngineError> {
        let mut trx = self.engine.begin(IsolationLevel::RepeatableRead)?;
        let last = self.trees.sequence(&mut trx, self.thread)?;
        trx.commit()?;
        Ok(last + 1)
    }

    fn begin(&self) -> Result<Transaction, EngineError> {
        let level = *self.random.pick(&[
            IsolationLevel::ReadCommitted,
            IsolationLevel::RepeatableRead,
            IsolationLevel::RepeatableRead,
            IsolationLevel::Serializable,
        ]);
        let mut trx = self.engine.begin(level)?;
        trx.set_lock_wait_timeout(self.lock_wait);
        Ok(trx)
    }

    /// Runs the next transaction and ends it in one of the possible ways; true if it is committed.
    fn attempt(&self, sequence: u64, in_flight: &Arc<AtomicU64>) -> Result<bool, EngineError> {
        if self.random.chance(0.1) {
            self.give_up(sequence)?;
        }
        let plan = Plan::draw(self.shape, self.thread, sequence);
        let mut trx = self.begin()?;
        if let Err(error) = self.trees.carry_out(&mut trx, &plan) {
            trx.rollback()?;
            return Err(error);
        }
        if self.random.chance(0.04) {
            return self.in_two_phases(trx, sequence);
        }
        let may_have_more = in_flight.load(Ordering::Acquire) < IN_FLIGHT;
        if self.random.chance(0.3) && may_have_more {
            return self.without_waiting(trx, sequence, in_flight);
        }
        if self.random.chance(0.5) && may_have_more {
            return self.perhaps_leaving(trx, sequence, in_flight);
        }
        trx.commit()?;
        (self.report)(self.thread, sequence, Said::Acknowledged);
        Ok(true)
    }

    fn give_up(&self, sequence: u64) -> Result<(), EngineError> {
        let plan = Plan::draw_from(self.shape, self.thread, sequence + 1_000_000, self.random);
        let mut trx = self.begin()?;
        let done = self.trees.carry_out(&mut trx, &plan);
        if self.random.chance(0.5) {
            trx.rollback()?;
        } else {
            drop(trx);
        }
        done
    }

    fn without_waiting(
        &self,
        trx: Transaction,
        sequence: u64,
        in_flight: &Arc<AtomicU64>,
    ) -> Result<bool, EngineError> {
        in_flight.fetch_add(1, Ordering::AcqRel);
        let (report, thread, in_flight) =
            (Arc::clone(&self.report), self.thread, Arc::clone(in_flight));
        let listener = move |sequence, outcome: Result<(), LogError>| {
            in_flight.fetch_sub(1, Ordering::AcqRel);
            if outcome.is_ok() {
                report(thread, sequence, Said::Acknowledged);
            }
        };
        trx.commit_then(Completion::new(Arc::new(listener), sequence))?;
        Ok(true)
    }

    /// Commits, and leaves the commit to the log if the node's options allow that.
    fn perhaps_leaving(
        &self,
        trx: Transaction,
        sequence: u64,
        in_flight: &Arc<AtomicU64>,
    ) -> Result<bool, EngineError> {
        in_flight.fetch_add(1, Ordering::AcqRel);
        let left = Arc::new(Left {
            report: Arc::clone(&self.report),
            thread: self.thread,
            sequence,
            in_flight: Arc::clone(in_flight),
        });
        let listener = Arc::clone(&left) as Arc<dyn CommitListener>;
        match trx.commit_or_leave(&listener) {
            Ok(Confirmation::Left) => Ok(true),
            Ok(Confirmation::Durable) => {
                left.commit_ended(Ok(()));
                Ok(true)
            }
            Err(error) => {
                in_flight.fetch_sub(1, Ordering::AcqRel);
                Err(error)
            }
        }
    }

    fn in_two_phases(&self, trx: Transaction, sequence: u64) -> Result<bool, EngineError> {
        let xid = xid(self.thread, sequence);
        trx.prepare(&xid, None)?;
        (self.report)(self.thread, sequence, Said::Prepared);
        firn_base::task::sleep(Duration::from_micros(self.random.between(0, 20_000)));
        (self.report)(self.thread, sequence, Said::Ending);
        if self.random.chance(0.3) {
            self.engine.system().rollback_prepared(&xid)?;
            return Ok(false);
        }
        self.engine.system().commit_prepared(&xid, None)?;
        (self.report)(self.thread, sequence, Said::Acknowledged);
        Ok(true)
    }
}

/// A commit that was left.
struct Left {
    report: Report,
    thread: u32,
    sequence: u64,
    in_flight: Arc<AtomicU64>,
}

impl CommitListener for Left {
    fn commit_ended(&self, outcome: RowsResult<()>) {
        self.in_flight.fetch_sub(1, Ordering::AcqRel);
        if outcome.is_ok() {
            (self.report)(self.thread, self.sequence, Said::Acknowledged);
        }
    }
}

/// Whether another attempt may succeed.
pub(crate) fn is_passing(error: &EngineError) -> bool {
    error.is_retryable()
        || matches!(
            error,
            EngineError::Log(LogError::NoRoom { .. }) | EngineError::Lock(LockError::Cancelled)
        )
}
