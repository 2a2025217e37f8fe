//! The log writer: one task that takes groups from the buffer, gives them to the log store, makes them
//! durable and wakes the committers.
//!
//! While a sync runs, other committers append; the next sync covers them all. That is group commit, and
//! it needs no timer: the slower the disk, the larger the groups.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use firn_api::{LogError, LogStore};
use firn_base::event::Event;
use firn_base::task::TaskHandle;
use firn_base::{Environment, Lsn};
use firn_format::redo::group::MAX_GROUP_BYTES;
use parking_lot::Mutex;

use crate::log::buffer::{Admission, LogBuffer, Placed};
use crate::log::committers::{Committers, Completion};

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
/// How long the writer waits before it tries again to find room.
const ROOM_RETRY: Duration = Duration::from_millis(50);

/// The redo log of a node. See the folder's page for the rules.
pub struct RedoLog {
    buffer: LogBuffer,
    store: Arc<dyn LogStore>,
    committers: Committers,
    durable: AtomicU64,
    /// The highest position that somebody waits for.
    wanted: AtomicU64,
    work: Event,
    stopping: AtomicBool,
    failure: OnceLock<LogError>,
    /// Told of every new durable position; the node publishes it in its fabric region.
    on_durable: Box<dyn Fn(Lsn) + Send + Sync>,
    syncs: AtomicU64,
    options: RedoLogOptions,
    task: Mutex<Option<Box<dyn TaskHandle>>>,
}

/// Who asks for room in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// New work: refused when the log is about to run out of room.
    Forward,
    /// Commit, rollback and upkeep: uses the room that is kept for them.
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
            committers: Committers::new(),
            durable: AtomicU64::new(end.0),
            wanted: AtomicU64::new(0),
            work: Event::new(),
            stopping: AtomicBool::new(false),
            failure: OnceLock::new(),
            on_durable,
            syncs: AtomicU64::new(0),
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
            if let Some(failure) = self.failure.get() {
                return Err(failure.clone());
            }
            if purpose == Purpose::Forward && self.store.is_room_low() {
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
        if self.buffer.used_bytes() > self.options.buffer_bytes as u64 / 4 {
            self.work.notify_all();
        }
        placed
    }

    /// The end of what is durable. Does not block.
    pub fn durable_lsn(&self) -> Lsn {
        Lsn(self.durable.load(Ordering::Acquire))
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

    /// Blocks until everything up to `lsn` is durable.
    ///
    /// # Errors
    /// [`LogError::Failed`]: it may or may not become durable; the node has to stop.
    pub fn wait_durable(&self, lsn: Lsn) -> Result<(), LogError> {
        if self.durable_lsn() >= lsn {
            return Ok(());
        }
        self.want(lsn);
        self.committers
            .event(lsn)
            .wait_until(None, || self.durable_lsn() >= lsn || self.failure.get().is_some());
        self.outcome(lsn)
    }

    /// Calls `completion` once everything up to `lsn` is durable, so that one thread can have many
    /// commits in flight. Does not block; may call at once.
    pub fn when_durable(&self, lsn: Lsn, completion: Completion) {
        self.committers.push(lsn, completion);
        self.want(lsn);
        if self.durable_lsn() >= lsn {
            self.committers.notify(lsn, self.durable_lsn());
        } else if let Some(failure) = self.failure.get() {
            self.committers.fail(failure);
        }
    }

    /// Why the log has failed, if it has.
    pub fn failure(&self) -> Option<&LogError> {
        self.failure.get()
    }

    /// Makes everything durable and ends the writer; whoever comes later is told that the log has failed.
    /// Blocks.
    ///
    /// # Errors
    /// [`LogError::Failed`] if something could not be made durable.
    pub fn close(&self) -> Result<(), LogError> {
        let end = self.end_lsn();
        let flushed = self.wait_durable(end);
        self.stopping.store(true, Ordering::Release);
        self.work.notify_all();
        if let Some(task) = self.task.lock().take() {
            task.join();
        }
        let closed = LogError::Failed {
            place: "this node".to_owned(),
            reason: "the engine is closed".to_owned(),
        };
        self.committers.fail(self.failure.get_or_init(|| closed));
        flushed
    }

    fn outcome(&self, lsn: Lsn) -> Result<(), LogError> {
        match self.failure.get() {
            _ if self.durable_lsn() >= lsn => Ok(()),
            Some(failure) => Err(failure.clone()),
            None => Ok(()),
        }
    }

    fn want(&self, lsn: Lsn) {
        if self.wanted.fetch_max(lsn.0, Ordering::AcqRel) < lsn.0 {
            self.work.notify_all();
        }
    }

    fn run(&self) {
        let limit = BATCH_BYTES.min(self.options.buffer_bytes / 2);
        // A batch ends with the group that reaches the limit.
        let mut batch = Vec::with_capacity(limit + MAX_GROUP_BYTES);
        loop {
            let ticket = self.work.listen();
            batch.clear();
            let start = self.buffer.take(&mut batch, limit);
            if !batch.is_empty() {
                if let Err(error) = self.write_and_sync(start, &batch) {
                    self.fail(error);
                    return;
                }
                continue;
            }
            if self.stopping.load(Ordering::Acquire) {
                return;
            }
            if self.wanted.load(Ordering::Acquire) > self.durable.load(Ordering::Acquire) {
                // Somebody waits for a group that is being copied at this moment.
                firn_base::task::yield_now();
                continue;
            }
            self.work.wait(ticket, Some(Duration::from_millis(self.options.idle_flush_ms)));
        }
    }

    fn write_and_sync(&self, start: Lsn, batch: &[u8]) -> Result<(), LogError> {
        self.write(start, batch)?;
        let before = self.durable_lsn();
        let durable = self.store.sync()?;
        self.syncs.fetch_add(1, Ordering::Relaxed);
        assert!(durable >= start.advance(batch.len() as u64), "a sync covers what was appended");
        self.durable.store(durable.0, Ordering::Release);
        (self.on_durable)(durable);
        self.committers.notify(before, durable);
        Ok(())
    }

    fn write(&self, start: Lsn, batch: &[u8]) -> Result<(), LogError> {
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
                    firn_base::task::sleep(ROOM_RETRY);
                }
                other => return other,
            }
        }
    }

    fn fail(&self, error: LogError) {
        tracing::error!(%error, "the log has failed; nothing more is acknowledged");
        let error = self.failure.get_or_init(|| error);
        self.committers.fail(error);
    }
}
