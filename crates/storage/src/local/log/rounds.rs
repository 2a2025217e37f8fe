//! Rounds: the holder of the [writer's role](super::role) takes log from its source, writes it and
//! syncs it.
//!
//! ```text
//!   what is wanted                  which thread leads the rounds
//!   a commit with a waiting thread  that thread if the role is free; else its holder, now or next
//!   a commit that was handed over   the task `log-writer`, which also informs the source
//!   room in the buffer, idle log    the task `log-writer`
//! ```
//!
//! Rules, cited by number:
//!
//! 1. Only the role's holder takes from the source, appends to the files and moves `durable`. The
//!    role is not a latch: it is held across writes and syncs, no thread spins for it, and a thread
//!    waits for it on an event, with nothing latched.
//! 2. After a failed sync, or when a holder dies with groups in its hands, nothing more is written
//!    and nothing more is acknowledged. A writer of a newer epoch ends this one in the same way.
//! 3. Committers whose groups are durable are woken when the role was returned, or when the next
//!    round was written and its sync is about to begin, so that the disk does not wait for them.
//!    One waiter of the next round is woken when the role is returned. A holder works until its own
//!    group is durable, not longer. A new round waits for the committers that the previous round
//!    woke, but for at most two syncs.
//! 4. A committer that has left is answered by the thread that led its round, once it has returned
//!    the role or the next round's disk has begun, and by those that have waited for the round. If
//!    nobody leads the next round, whoever returns the role asks the task for it.
//! 5. The task `log-writer` informs the source, if possible while the disk works on the next round;
//!    a committer that has, or had, the role never does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use firn_api::{LogEpoch, LogError, LogSource, LogWriter, Room};
use firn_base::clock::Clock;
use firn_base::event::Event;
use firn_base::task::TaskHandle;
use firn_base::{Environment, Lsn};
use firn_format::redo::group::MAX_GROUP_BYTES;
use parking_lot::Mutex;

use super::role::{HeldRole, WriterRole};

/// The most that a round takes.
const ROUND_BYTES: usize = 4 << 20;
/// Committers wait for those that the last round woke, for at most this many syncs. With a round of
/// their own they would wait for two syncs, each sync would serve half of the committers, and its
/// processor time would be lost to those on their way. They sleep meanwhile: the others need their
/// processor.
const GATHERING_SYNCS: u32 = 2;
/// A wait up to this length is not worth sleeping for: the round then does not wait.
const SHORT_WAIT: Duration = Duration::from_micros(20);
/// The weight of one sync in the average duration of syncs: one slow sync must not slow the next
/// ones down.
const SYNC_WEIGHT: u64 = 8;
/// How long the holder waits before it tries again to find room.
const ROOM_RETRY: Duration = Duration::from_millis(50);

/// The files to which rounds are written.
pub(super) trait RoundFiles: Send + Sync {
    /// Writes whole groups that begin at `start`, the end of the previous write. Blocks for the
    /// write.
    ///
    /// # Errors
    /// [`LogError::NoRoom`] (nothing was taken), [`LogError::Fenced`] or [`LogError::Failed`].
    fn append(&self, epoch: LogEpoch, start: Lsn, groups: &[u8]) -> Result<(), LogError>;

    /// Announces that a sync follows soon and that its caller has other work first: the disk may
    /// begin. Does not wait.
    fn begin_sync(&self);

    /// Makes all appended log durable and returns its end. Blocks for the sync.
    ///
    /// # Errors
    /// [`LogError::Failed`]; the stream is then unusable.
    fn sync(&self) -> Result<Lsn, LogError>;

    /// See [`LogWriter::room`].
    fn room(&self) -> Room;
}

/// The state that the committers and the task `log-writer` share.
struct Rounds {
    files: Arc<dyn RoundFiles>,
    source: Arc<dyn LogSource>,
    epoch: LogEpoch,
    role: WriterRole,
    /// The log being written; belongs to the role's holder.
    batch: Mutex<Vec<u8>>,
    /// The task `log-writer` waits here.
    work: Event,
    /// How far the task has to make log durable, and inform the source.
    wanted: AtomicU64,
    /// The position that the source was told.
    told: AtomicU64,
    stopping: AtomicBool,
    /// The writer was dropped: log that was not taken is lost.
    abandoned: AtomicBool,
    clock: Arc<dyn Clock>,
    /// Average duration of recent syncs.
    sync_ns: AtomicU64,
    idle_flush: Duration,
}

/// The writer of a local stream.
pub(super) struct RoundWriter {
    rounds: Arc<Rounds>,
    task: Mutex<Option<Box<dyn TaskHandle>>>,
}

impl RoundWriter {
    /// Starts the task. The first round begins at `end`. Log that no thread waits for is written
    /// after `idle_flush`.
    pub(super) fn start(
        environment: &Environment,
        files: Arc<dyn RoundFiles>,
        (epoch, end): (LogEpoch, Lsn),
        source: Arc<dyn LogSource>,
        idle_flush: Duration,
    ) -> RoundWriter {
        let rounds = Arc::new(Rounds {
            files,
            source,
            epoch,
            role: WriterRole::new(end),
            batch: Mutex::default(),
            work: Event::new(),
            wanted: AtomicU64::new(0),
            told: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            abandoned: AtomicBool::new(false),
            clock: Arc::clone(&environment.clock),
            sync_ns: AtomicU64::new(0),
            idle_flush,
        });
        let own = Arc::clone(&rounds);
        let task = environment.spawner.spawn("log-writer", Box::new(move || own.run()));
        RoundWriter { rounds, task: Mutex::new(Some(task)) }
    }
}

impl LogWriter for RoundWriter {
    fn submit(&self, lsn: Lsn) {
        self.rounds.wanted.fetch_max(lsn.0, Ordering::SeqCst);
        self.rounds.work.notify_all();
    }

    fn wait_durable(&self, lsn: Lsn) -> Result<(), LogError> {
        let rounds = &*self.rounds;
        rounds.role.wait_durable(lsn, rounds.patience(), |role| rounds.lead(role, lsn));
        match rounds.role.failure() {
            Some(failure) if rounds.role.durable() < lsn => Err(failure.clone()),
            _ => Ok(()),
        }
    }

    fn group_size(&self) -> u64 {
        self.rounds.role.covered()
    }

    fn wait_or_leave(&self, lsn: Lsn) -> Result<bool, LogError> {
        let rounds = &*self.rounds;
        let patience = rounds.patience();
        if patience.is_zero() {
            return self.wait_durable(lsn).map(|()| true);
        }
        if !rounds.role.wait_or_leave(lsn, patience, |role| rounds.lead(role, lsn)) {
            return Ok(false);
        }
        match rounds.role.failure() {
            Some(failure) if rounds.role.durable() < lsn => Err(failure.clone()),
            _ => Ok(true),
        }
    }

    fn room(&self) -> Result<Room, LogError> {
        match self.rounds.role.failure() {
            Some(failure) => Err(failure.clone()),
            None => Ok(self.rounds.files.room()),
        }
    }

    fn failure(&self) -> Option<LogError> {
        self.rounds.role.failure().cloned()
    }

    fn close(&self) {
        self.rounds.stopping.store(true, Ordering::SeqCst);
        self.rounds.work.notify_all();
        let task = self.task.lock().take();
        if let Some(task) = task {
            task.join();
        }
    }
}

impl Drop for RoundWriter {
    /// Does not wait for the task, which may itself drop the writer: a listener that it calls may
    /// own the engine.
    fn drop(&mut self) {
        self.rounds.abandoned.store(true, Ordering::SeqCst);
        self.rounds.work.notify_all();
    }
}

impl Rounds {
    /// Works for a committer until its group is durable, and passes the role on.
    fn lead(&self, mut role: HeldRole<'_>, lsn: Lsn) {
        while self.role.durable() < lsn {
            let tell = |role: &mut HeldRole<'_>| {
                role.tell_covered();
                self.source.answer(self.role.durable());
            };
            match self.write_round(&mut role, tell) {
                Ok(Round::Written) => {}
                // Its group, or one before it, is being copied at this moment.
                Ok(Round::Nothing) => firn_base::task::yield_now(),
                Err(error) => return self.fail(role, error),
            }
        }
        drop(role);
        self.pass_on_left();
        // After the role was returned: the task may have found it taken.
        if self.has_to_tell_source() {
            self.work.notify_all();
        }
        self.source.answer(self.role.durable());
    }

    /// After the role was returned: asks the task for the commits that were left behind the last
    /// round, if no thread has stayed to lead the next one.
    fn pass_on_left(&self) {
        let left = self.source.left();
        if self.role.is_forsaken(left) {
            self.wanted.fetch_max(left.0, Ordering::SeqCst);
            self.work.notify_all();
        }
    }

    /// How long a committer waits for those that the last round woke.
    fn patience(&self) -> Duration {
        let patience = Duration::from_nanos(self.sync_ns.load(Ordering::Relaxed)) * GATHERING_SYNCS;
        if patience > SHORT_WAIT { patience } else { Duration::ZERO }
    }

    /// Whether the source has not heard yet that all submitted log is durable.
    fn has_to_tell_source(&self) -> bool {
        self.wanted.load(Ordering::SeqCst) > self.told.load(Ordering::SeqCst)
            || self.stopping.load(Ordering::SeqCst)
    }

    /// Whether there is something to write that no committer waits for.
    fn is_task_wanted(&self) -> bool {
        self.wanted.load(Ordering::SeqCst) > self.role.durable().0
            || self.stopping.load(Ordering::SeqCst)
    }

    fn tell_source(&self) {
        let durable = self.role.durable();
        self.told.store(durable.0, Ordering::SeqCst);
        self.source.tell(Ok(durable));
    }

    /// What the task `log-writer` does.
    fn run(&self) {
        let mut has_lain_idle = false;
        loop {
            let ticket = self.work.listen();
            if self.abandoned.load(Ordering::SeqCst) {
                return;
            }
            self.tell_source();
            if let Some(failure) = self.role.failure() {
                return self.source.tell(Err(failure));
            }
            let is_wanted = has_lain_idle || self.is_task_wanted();
            let role = if is_wanted { self.role.try_take() } else { None };
            let turn = role.map(|role| self.task_turn(role));
            has_lain_idle = match turn {
                Some(Turn::Again) => false,
                // The role's holder notifies when it returns the role and this task has work.
                Some(Turn::Idle) | None => !self.work.wait(ticket, Some(self.idle_flush)),
            };
        }
    }

    /// The task's rounds, as many as are wanted without a pause. The source is told of one while
    /// the disk works on the next one.
    fn task_turn(&self, mut role: HeldRole<'_>) -> Turn {
        loop {
            let is_stopping = self.stopping.load(Ordering::SeqCst);
            let tell = |role: &mut HeldRole<'_>| {
                role.tell_covered();
                self.tell_source();
            };
            match self.write_round(&mut role, tell) {
                Ok(Round::Written) if self.is_task_wanted() => {}
                Ok(Round::Nothing) if is_stopping => {
                    role.fail(LogError::Failed {
                        place: "this node".to_owned(),
                        reason: "the engine is closed".to_owned(),
                    });
                    return Turn::Again;
                }
                Ok(_) => break,
                Err(error) => {
                    self.fail(role, error);
                    return Turn::Again;
                }
            }
        }
        drop(role);
        self.pass_on_left();
        self.tell_source();
        if !self.is_task_wanted() {
            return Turn::Idle;
        }
        // A group that a thread waits for is being copied at this moment.
        firn_base::task::yield_now();
        Turn::Again
    }

    /// Writes and syncs the source's log. If the previous round has to be reported, `tell` is
    /// called once the disk has begun. Blocks for I/O.
    fn write_round(
        &self,
        role: &mut HeldRole<'_>,
        tell: impl FnOnce(&mut HeldRole<'_>),
    ) -> Result<Round, LogError> {
        let mut batch = std::mem::take(&mut *self.batch.lock());
        batch.clear();
        // A round ends with the group that reaches the limit.
        batch.reserve(ROUND_BYTES + MAX_GROUP_BYTES);
        let start = self.source.take(&mut batch, ROUND_BYTES);
        let round = if batch.is_empty() {
            Round::Nothing
        } else {
            let end = start.advance(batch.len() as u64);
            let has_to_tell = role.has_to_tell();
            role.begin_round(end);
            self.write(start, &batch, has_to_tell.then_some(|| tell(role)))?;
            self.sync(end)?;
            self.source.advance(end);
            role.end_round();
            Round::Written
        };
        *self.batch.lock() = batch;
        Ok(round)
    }

    fn sync(&self, end: Lsn) -> Result<(), LogError> {
        let began = self.clock.monotonic();
        let durable = self.files.sync()?;
        let took = self.clock.monotonic().saturating_sub(began);
        let before = self.sync_ns.load(Ordering::Relaxed);
        let took = took.as_nanos().min(1 << 40) as u64;
        let average = (before * (SYNC_WEIGHT - 1) + took) / SYNC_WEIGHT;
        self.sync_ns.store(average, Ordering::Relaxed);
        assert!(durable >= end, "a sync covers what was appended");
        Ok(())
    }

    /// Writes, and then calls `tell` while the disk begins. If the disk is full and this may take
    /// long, calls `tell` first.
    fn write(
        &self,
        start: Lsn,
        batch: &[u8],
        mut tell: Option<impl FnOnce()>,
    ) -> Result<(), LogError> {
        let mut was_reported = false;
        loop {
            match self.files.append(self.epoch, start, batch) {
                Err(LogError::NoRoom { place, reason }) => {
                    if self.stopping.load(Ordering::Acquire)
                        || self.abandoned.load(Ordering::Acquire)
                    {
                        return Err(LogError::NoRoom { place, reason });
                    }
                    if !was_reported {
                        tracing::warn!(%place, %reason, "the log waits for disk space");
                        was_reported = true;
                    }
                    if let Some(tell) = tell.take() {
                        tell();
                    }
                    firn_base::task::sleep(ROOM_RETRY);
                }
                Ok(()) => {
                    if let Some(tell) = tell {
                        self.files.begin_sync();
                        tell();
                    }
                    return Ok(());
                }
                other => return other,
            }
        }
    }

    fn fail(&self, role: HeldRole<'_>, error: LogError) {
        tracing::error!(%error, "the log has failed; nothing more is acknowledged");
        role.fail(error);
        self.work.notify_all();
    }
}

/// What a round came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Round {
    Written,
    /// There is no whole group at the source's start.
    Nothing,
}

/// What the task does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Again,
    Idle,
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
