//! The redo log: appends, waiting for durability, and the work of whoever has the [writer's role](super::role).
//!
//! ```text
//!   who wants                        who writes
//!   a commit that is waited for      its committer, if the role is free; else who has the role, or takes it next
//!   a commit that is handed over     the task `log-writer`, which tells its listener too
//!   room in the buffer, idle log     the task `log-writer`
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use firn_api::{LogError, LogStore};
use firn_base::clock::Clock;
use firn_base::event::Event;
use firn_base::task::TaskHandle;
use firn_base::{Environment, Lsn};
use firn_format::redo::group::MAX_GROUP_BYTES;
use parking_lot::Mutex;

use crate::log::buffer::{Admission, LogBuffer, Placed};
use crate::log::completions::{Completion, Completions};
use crate::log::role::{HeldRole, WriterRole};

/// How the redo log is set up.
#[derive(Debug, Clone, Copy)]
pub struct RedoLogOptions {
    /// Size of the log buffer, a power of two.
    pub buffer_bytes: usize,
    /// The longest that log stays in the buffer when nobody waits for it.
    pub idle_flush_ms: u64,
}

impl Default for RedoLogOptions {
    fn default() -> RedoLogOptions {
        RedoLogOptions { buffer_bytes: 16 << 20, idle_flush_ms: 100 }
    }
}

/// The most that goes to the log store in one call.
const BATCH_BYTES: usize = 4 << 20;
/// Committers wait for those whom the last round has woken, for so many syncs at most. With a round of their own
/// they would wait for two syncs, each sync would serve half of the committers, and what it takes of the processors
/// would be lost to those who are on their way. They sleep meanwhile: the others need their processor.
const GATHERING_SYNCS: u32 = 2;
/// A wait up to this is not worth going to sleep for: nobody is waited for then.
const SHORT_WAIT: Duration = Duration::from_micros(20);
/// How much a sync counts in what syncs take on average: a single slow one is not to slow the next ones down.
const SYNC_WEIGHT: u64 = 8;
/// How long the writer waits before it tries again to find room.
const ROOM_RETRY: Duration = Duration::from_millis(50);

/// The redo log of a node. See the folder's page for the rules.
pub struct RedoLog {
    buffer: LogBuffer,
    store: Arc<dyn LogStore>,
    role: WriterRole,
    completions: Completions,
    /// What is being written; with who has the role.
    batch: Mutex<Vec<u8>>,
    /// The task `log-writer` waits here.
    work: Event,
    stopping: AtomicBool,
    /// Told of every new durable position; the node publishes it in its fabric region.
    on_durable: Box<dyn Fn(Lsn) + Send + Sync>,
    syncs: AtomicU64,
    clock: Arc<dyn Clock>,
    /// How long syncs took lately.
    sync_ns: AtomicU64,
    options: RedoLogOptions,
    task: Mutex<Option<Box<dyn TaskHandle>>>,
}

/// Who asks for room in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// New work: refused when the log is about to run out of room.
    Forward,
    /// Deleting rows: may use a part of what is kept for completion, since it is how a full disk
    /// gets room.
    Freeing,
    /// Commit, rollback, upkeep, and giving up whole tables: uses the room that is kept for them.
    Completion,
}

impl RedoLog {
    /// Starts the log writer over `store`, whose durable end is where the next group goes.
    pub fn start(
        environment: &Environment,
        store: Arc<dyn LogStore>,
        options: RedoLogOptions,
        on_durable: Box<dyn Fn(Lsn) + Send + Sync>,
    ) -> Arc<RedoLog> {
        let end = store.durable_lsn();
        on_durable(end);
        let log = Arc::new(RedoLog {
            buffer: LogBuffer::new(end, options.buffer_bytes),
            store,
            role: WriterRole::new(end),
            completions: Completions::default(),
            batch: Mutex::default(),
            work: Event::new(),
            stopping: AtomicBool::new(false),
            on_durable,
            syncs: AtomicU64::new(0),
            clock: Arc::clone(&environment.clock),
            sync_ns: AtomicU64::new(0),
            options,
            task: Mutex::new(None),
        });
        let writer = Arc::clone(&log);
        let task = environment.spawner.spawn("log-writer", Box::new(move || writer.run()));
        *log.task.lock() = Some(task);
        log
    }

    /// Room for one group of at most `bytes`. May block, so call it before any latch is taken (rule 1).
    ///
    /// # Errors
    /// [`LogError::NoRoom`] for [`Purpose::Forward`] when the log store is about to run out of room;
    /// [`LogError::Failed`] after a failed sync.
    pub fn admit(&self, bytes: usize, purpose: Purpose) -> Result<Admission<'_>, LogError> {
        loop {
            if let Some(failure) = self.role.failure() {
                return Err(failure.clone());
            }
            let is_refused = match purpose {
                Purpose::Forward => self.store.is_room_low(),
                Purpose::Freeing => self.store.is_room_scarce(),
                Purpose::Completion => false,
            };
            if is_refused {
                return Err(LogError::NoRoom {
                    place: "the log directory".to_owned(),
                    reason: "no room for another log segment".to_owned(),
                });
            }
            if let Some(admission) = self.buffer.try_admit(bytes) {
                return Ok(admission);
            }
            self.work.notify_all();
            self.buffer.wait_for_room(bytes, Duration::from_millis(100));
        }
    }

    /// Appends a finished group. Does not block.
    pub fn append(&self, admission: Admission<'_>, group: &[u8]) -> Placed {
        let placed = self.buffer.append(admission, group);
        if self.is_buffer_filling() {
            self.work.notify_all();
        }
        placed
    }

    /// The end of what is durable. Does not block.
    pub fn durable_lsn(&self) -> Lsn {
        self.role.durable()
    }

    /// Beyond every group that was appended so far. Does not block.
    pub fn end_lsn(&self) -> Lsn {
        self.buffer.reserved_lsn()
    }

    /// What the buffer and the batch that is being written take in memory, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        (self.options.buffer_bytes + BATCH_BYTES.min(self.options.buffer_bytes / 2)) as u64
    }

    /// How many syncs there were.
    pub fn sync_count(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }

    /// Blocks until everything up to `lsn` is durable; writes and syncs it if nobody else is at it.
    ///
    /// # Errors
    /// [`LogError::Failed`]: it may or may not become durable; the node has to stop.
    pub fn wait_durable(&self, lsn: Lsn) -> Result<(), LogError> {
        self.role.wait_durable(lsn, self.patience(), |role| self.lead(role, lsn));
        match self.role.failure() {
            Some(failure) if self.durable_lsn() < lsn => Err(failure.clone()),
            _ => Ok(()),
        }
    }

    /// Has the listener of `completion` told once everything up to `lsn` is durable, so that one thread can have many
    /// commits in flight. Does not block; may tell it at once.
    pub fn when_durable(&self, lsn: Lsn, completion: Completion) {
        self.completions.push(lsn, completion);
        if self.durable_lsn() >= lsn {
            self.completions.complete(self.durable_lsn());
        } else if let Some(failure) = self.role.failure() {
            self.completions.fail(failure);
        } else {
            self.work.notify_all();
        }
    }

    /// Why the log has failed, if it has.
    pub fn failure(&self) -> Option<&LogError> {
        self.role.failure()
    }

    /// Makes everything durable and ends the writer; whoever comes later is told that the log has failed.
    /// Blocks.
    ///
    /// # Errors
    /// [`LogError::Failed`] if something could not be made durable.
    pub fn close(&self) -> Result<(), LogError> {
        let end = self.end_lsn();
        let flushed = self.wait_durable(end);
        self.stopping.store(true, Ordering::SeqCst);
        self.work.notify_all();
        if let Some(task) = self.task.lock().take() {
            task.join();
        }
        flushed
    }

    fn is_buffer_filling(&self) -> bool {
        self.buffer.used_bytes() > self.options.buffer_bytes as u64 / 4
    }

    /// Works for a committer until what it waits for is durable, and passes the role on.
    fn lead(&self, mut role: HeldRole<'_>, lsn: Lsn) {
        while self.durable_lsn() < lsn {
            match self.write_round(&mut role, |role| role.tell_covered()) {
                Ok(Round::Written) => {}
                // Its group, or one before it, is being copied at this moment.
                Ok(Round::Nothing) => firn_base::task::yield_now(),
                Err(error) => return self.fail(role, error),
            }
        }
        drop(role);
        self.call_task_if_wanted();
    }

    /// How long a committer waits for those whom the last round has woken.
    fn patience(&self) -> Duration {
        let patience = Duration::from_nanos(self.sync_ns.load(Ordering::Relaxed)) * GATHERING_SYNCS;
        if patience > SHORT_WAIT { patience } else { Duration::ZERO }
    }

    /// To be called after the role was given back: the task may have found it taken.
    fn call_task_if_wanted(&self) {
        if self.completions.is_pending() || self.is_task_wanted() {
            self.work.notify_all();
        }
    }

    /// Whether there is something to write that no committer waits for.
    fn is_task_wanted(&self) -> bool {
        self.completions.wanted_lsn() > self.durable_lsn()
            || self.is_buffer_filling()
            || self.stopping.load(Ordering::SeqCst)
    }

    /// What the task `log-writer` does.
    fn run(&self) {
        let patience = Duration::from_millis(self.options.idle_flush_ms);
        let mut has_lain_idle = false;
        loop {
            let ticket = self.work.listen();
            self.completions.complete(self.durable_lsn());
            if let Some(failure) = self.role.failure() {
                return self.completions.fail(failure);
            }
            let is_wanted = has_lain_idle || self.is_task_wanted();
            let role = if is_wanted { self.role.try_take() } else { None };
            let turn = role.map(|role| self.task_turn(role));
            has_lain_idle = match turn {
                Some(Turn::Again) => false,
                // Who has the role says so when it gives it back and there is work for this task.
                Some(Turn::Idle) | None => !self.work.wait(ticket, Some(patience)),
            };
        }
    }

    /// The task's rounds, as many as are wanted without a pause. Completions of one are called while the disk is at work
    /// on the next one.
    fn task_turn(&self, mut role: HeldRole<'_>) -> Turn {
        let tell = |role: &mut HeldRole<'_>| {
            role.tell_covered();
            self.completions.complete(self.durable_lsn());
        };
        loop {
            let is_stopping = self.stopping.load(Ordering::SeqCst);
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
        self.completions.complete(self.durable_lsn());
        if !self.is_task_wanted() {
            return Turn::Idle;
        }
        // A group that is waited for is being copied at this moment.
        firn_base::task::yield_now();
        Turn::Again
    }

    /// Writes and syncs what is in the buffer, up to the first hole; `tell` tells those whom the round before covers, once
    /// the disk has begun. Blocks for I/O.
    fn write_round(
        &self,
        role: &mut HeldRole<'_>,
        tell: impl FnOnce(&mut HeldRole<'_>),
    ) -> Result<Round, LogError> {
        let limit = BATCH_BYTES.min(self.options.buffer_bytes / 2);
        let mut batch = std::mem::take(&mut *self.batch.lock());
        batch.clear();
        // A batch ends with the group that reaches the limit.
        batch.reserve(limit + MAX_GROUP_BYTES);
        let start = self.buffer.take(&mut batch, limit);
        let round = if batch.is_empty() {
            Round::Nothing
        } else {
            let end = start.advance(batch.len() as u64);
            let has_to_tell = role.has_to_tell() || self.completions.is_due(self.durable_lsn());
            role.begin_round(end);
            self.write(start, &batch, has_to_tell.then_some(|| tell(role)))?;
            self.sync(end)?;
            role.end_round();
            (self.on_durable)(self.durable_lsn());
            Round::Written
        };
        *self.batch.lock() = batch;
        Ok(round)
    }

    fn sync(&self, end: Lsn) -> Result<(), LogError> {
        let began = self.clock.monotonic();
        let durable = self.store.sync()?;
        let took = self.clock.monotonic().saturating_sub(began);
        let before = self.sync_ns.load(Ordering::Relaxed);
        let took = took.as_nanos().min(1 << 40) as u64;
        let average = (before * (SYNC_WEIGHT - 1) + took) / SYNC_WEIGHT;
        self.sync_ns.store(average, Ordering::Relaxed);
        self.syncs.fetch_add(1, Ordering::Relaxed);
        assert!(durable >= end, "a sync covers what was appended");
        Ok(())
    }

    /// Writes, and then calls `tell`, while the disk begins; before, if it is full and this may take long.
    fn write(
        &self,
        start: Lsn,
        batch: &[u8],
        mut tell: Option<impl FnOnce()>,
    ) -> Result<(), LogError> {
        let mut told = false;
        loop {
            match self.store.append(start, batch) {
                Err(LogError::NoRoom { place, reason }) => {
                    if self.stopping.load(Ordering::Acquire) {
                        return Err(LogError::NoRoom { place, reason });
                    }
                    if !told {
                        tracing::warn!(%place, %reason, "the log waits for disk space");
                        told = true;
                    }
                    if let Some(tell) = tell.take() {
                        tell();
                    }
                    firn_base::task::sleep(ROOM_RETRY);
                }
                Ok(()) => {
                    if let Some(tell) = tell {
                        self.store.begin_sync();
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
    /// There is no whole group at the buffer's start.
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
