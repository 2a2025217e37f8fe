//! The redo log: appends to the buffer, waits for durability, and completions of commits.
//!
//! The log store takes the groups out of the buffer, and decides which thread writes and syncs
//! them, and when. A thread that waits for its commit may do that work.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use firn_api::rows::{CommitListener, Confirmation};
use firn_api::{LogError, LogSource, LogWriter, OpenedLog, Room};
use firn_base::Lsn;

use crate::log::buffer::{Admission, LogBuffer, Placed};
use crate::log::completions::{Completion, Completions};
use crate::log::left_commits::LeftCommits;
use crate::log::tail::LogTail;

/// The settings of the redo log.
#[derive(Debug, Clone, Copy)]
pub struct RedoLogOptions {
    /// Size of the log buffer, a power of two.
    pub buffer_bytes: usize,
    /// A session leaves its commit to the log if the last round covered at least this many; `None`:
    /// it always waits.
    pub leave_from: Option<u64>,
}

impl Default for RedoLogOptions {
    fn default() -> RedoLogOptions {
        RedoLogOptions { buffer_bytes: 16 << 20, leave_from: None }
    }
}

/// How long an append waits for room in the buffer before it checks the store again.
const ROOM_WAIT: Duration = Duration::from_millis(100);

/// The redo log of a node. See the folder's page for the rules.
pub struct RedoLog {
    appended: Arc<Appended>,
    writer: Box<dyn LogWriter>,
    options: RedoLogOptions,
}

/// The appended groups, as the store takes them.
struct Appended {
    buffer: LogBuffer,
    /// For replicas that read this node's memory.
    tail: Option<LogTail>,
    completions: Completions,
    left: LeftCommits,
    durable: AtomicU64,
    rounds: AtomicU64,
    /// Called with each durable position, perhaps again with an older one; the node publishes the
    /// highest in its fabric region.
    on_durable: Box<dyn Fn(Lsn) + Send + Sync>,
}

impl LogSource for Appended {
    fn take(&self, into: &mut Vec<u8>, limit_bytes: usize) -> Lsn {
        let before = into.len();
        let start = self.buffer.take(into, limit_bytes);
        if let Some(tail) = &self.tail
            && into.len() > before
        {
            tail.store(start, &into[before..]);
        }
        start
    }

    fn advance(&self, durable: Lsn) {
        self.rounds.fetch_add(1, Ordering::Relaxed);
        // Published first: what this node takes for durable, its peers find durable too.
        (self.on_durable)(durable);
        self.durable.fetch_max(durable.0, Ordering::SeqCst);
    }

    fn tell(&self, outcome: Result<Lsn, &LogError>) {
        match outcome {
            Ok(durable) => {
                self.left.answer(durable);
                self.completions.complete(durable);
            }
            Err(error) => {
                self.left.fail(error);
                self.completions.fail(error);
            }
        }
    }

    fn answer(&self, durable: Lsn) {
        self.left.answer(durable);
    }

    fn refuse(&self, error: &LogError) {
        self.left.fail(error);
    }

    fn left(&self) -> Lsn {
        self.left.last()
    }
}

/// The purpose of a request for room in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// New work. Refused when the log is about to run out of room.
    Forward,
    /// Deleting rows. May use a part of the reserve for completion, because deleting is how a full
    /// disk gets room.
    Freeing,
    /// Commit, rollback, maintenance, and dropping whole tables. Uses the reserve that is kept for
    /// them.
    Completion,
}

impl Purpose {
    fn may_use(self, room: Room) -> bool {
        match self {
            Purpose::Forward => room == Room::Plenty,
            Purpose::Freeing => room != Room::Scarce,
            Purpose::Completion => true,
        }
    }
}

impl RedoLog {
    /// Starts to write a stream: the first group goes to the end of its tail. `on_durable` is
    /// called with each durable position, perhaps again with an older one, and must return quickly.
    pub fn start(
        opened: OpenedLog,
        options: RedoLogOptions,
        on_durable: Box<dyn Fn(Lsn) + Send + Sync>,
    ) -> Arc<RedoLog> {
        RedoLog::start_with_tail(opened, options, None, on_durable)
    }

    /// As [`RedoLog::start`]; what the log store takes is also stored in `tail`, which begins at
    /// the end of the stream.
    pub(crate) fn start_with_tail(
        opened: OpenedLog,
        options: RedoLogOptions,
        tail: Option<LogTail>,
        on_durable: Box<dyn Fn(Lsn) + Send + Sync>,
    ) -> Arc<RedoLog> {
        let end = opened.tail.end;
        on_durable(end);
        let appended = Arc::new(Appended {
            buffer: LogBuffer::new(end, options.buffer_bytes),
            tail,
            completions: Completions::default(),
            left: LeftCommits::default(),
            durable: AtomicU64::new(end.0),
            rounds: AtomicU64::new(0),
            on_durable,
        });
        let writer = opened.start(Arc::clone(&appended) as Arc<dyn LogSource>);
        Arc::new(RedoLog { appended, writer, options })
    }

    /// Room for one group of at most `bytes`. May block, so call it before any latch is taken (rule
    /// 1).
    ///
    /// # Errors
    /// [`LogError::NoRoom`] when the log store is about to run out of room, and
    /// [`LogError::Unavailable`] when it does not answer, except for [`Purpose::Completion`], which
    /// waits. If the writer has ended, the error that ended it.
    pub fn admit(&self, bytes: usize, purpose: Purpose) -> Result<Admission<'_>, LogError> {
        loop {
            match self.writer.room() {
                Ok(room) if !purpose.may_use(room) => return Err(no_room()),
                Ok(_) => {}
                Err(error) if error.ends_writer() || purpose != Purpose::Completion => {
                    return Err(error);
                }
                Err(_) => {}
            }
            if let Some(admission) = self.appended.buffer.try_admit(bytes) {
                return Ok(admission);
            }
            self.writer.submit(self.end_lsn());
            self.appended.buffer.wait_for_room(bytes, ROOM_WAIT);
        }
    }

    /// Appends a finished group. Does not block.
    pub fn append(&self, admission: Admission<'_>, group: &[u8]) -> Placed {
        let placed = self.appended.buffer.append(admission, group);
        if self.appended.buffer.used_bytes() > self.options.buffer_bytes as u64 / 4 {
            self.writer.submit(placed.end);
        }
        placed
    }

    /// The end of the durable log. Does not block.
    pub fn durable_lsn(&self) -> Lsn {
        Lsn(self.appended.durable.load(Ordering::SeqCst))
    }

    /// One past every group that was appended so far. Does not block.
    pub fn end_lsn(&self) -> Lsn {
        self.appended.buffer.reserved_lsn()
    }

    /// The size of the buffer in bytes, with the ring for replicas.
    pub fn memory_bytes(&self) -> u64 {
        let tail = self.appended.tail.as_ref().map_or(0, LogTail::memory_bytes);
        self.options.buffer_bytes as u64 + tail
    }

    /// The number of rounds that have become durable. Over a local disk, the number of syncs.
    pub fn round_count(&self) -> u64 {
        self.appended.rounds.load(Ordering::Relaxed)
    }

    /// Blocks until the log is durable up to `lsn`. The caller may write and sync for the store
    /// meanwhile.
    ///
    /// # Errors
    /// [`LogError::Unavailable`]: the log up to `lsn` may still become durable. Any other error
    /// ended the writer: the log up to `lsn` may or may not be durable, and the node must stop.
    pub fn wait_durable(&self, lsn: Lsn) -> Result<(), LogError> {
        if self.durable_lsn() >= lsn {
            return Ok(());
        }
        self.writer.wait_durable(lsn)
    }

    /// As [`RedoLog::wait_durable`], for a commit that ends at `lsn`. If many commits share a round
    /// and another thread leads it, the commit is left: `listener` gets its outcome.
    ///
    /// # Errors
    /// As [`RedoLog::wait_durable`]; the listener is not called then.
    pub fn wait_or_leave(
        &self,
        lsn: Lsn,
        listener: &Arc<dyn CommitListener>,
    ) -> Result<Confirmation, LogError> {
        let leave_from = self.options.leave_from.unwrap_or(u64::MAX);
        if self.writer.group_size() < leave_from || self.durable_lsn() >= lsn {
            return self.wait_durable(lsn).map(|()| Confirmation::Durable);
        }
        let left = &self.appended.left;
        // Before the look at the log, so that a round that ends from here on finds it (rule 6).
        left.push(lsn, listener);
        let waited = self.writer.wait_or_leave(lsn);
        if matches!(waited, Ok(false)) {
            return Ok(Confirmation::Left);
        }
        let is_own = left.withdraw(lsn, listener);
        if waited.is_ok() {
            left.answer(self.durable_lsn());
        }
        match is_own {
            true => waited.map(|_| Confirmation::Durable),
            false => Ok(Confirmation::Left),
        }
    }

    /// Calls `completion` when the log is durable up to `lsn`, so that one thread can have many
    /// commits in flight. Does not block; may call it at once.
    pub fn when_durable(&self, lsn: Lsn, completion: Completion) {
        let completions = &self.appended.completions;
        // Pushed first, so that a round that ends from here on finds it.
        completions.push(lsn, completion);
        if self.durable_lsn() >= lsn {
            completions.complete(self.durable_lsn());
        } else if let Some(failure) = self.writer.failure() {
            completions.fail(&failure);
        } else {
            self.writer.submit(lsn);
        }
    }

    /// The error that ended the writer, if it has ended.
    pub fn failure(&self) -> Option<LogError> {
        self.writer.failure()
    }

    /// Makes everything durable and ends the writer; later calls return an error. Blocks.
    ///
    /// # Errors
    /// [`LogError::Failed`] if a part of the log could not be made durable.
    pub fn close(&self) -> Result<(), LogError> {
        let flushed = self.wait_durable(self.end_lsn());
        self.writer.close();
        flushed
    }
}

fn no_room() -> LogError {
    LogError::NoRoom {
        place: "log store".to_owned(),
        reason: "what is left is kept for commits and rollbacks".to_owned(),
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
