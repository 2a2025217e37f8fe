//! The local log: a log stream in segment files of one directory.
//!
//! ```text
//!   DIR/log/0000000000000008.log     full: released, or kept with its footer       ┐
//!   DIR/log/0000000003d0fe08.log     current: blocks up to `written`, then zeros   │ without a gap
//!   DIR/log/0000000007a1fc08.log     ahead: made in the background, empty          ┘
//!   DIR/log/3.spare                  released, will be a segment again
//!
//!   truncated ≤ indexed ≤ durable ≤ written < end of the last segment file
//! ```
//!
//! The formats are drawn in [`block`], [`segment`] and `docs/formats/log.md`.
//!
//! Invariants on disk, on which opening the log relies:
//!
//! * D1. A segment file gets its name only after its header and its zeros are durable, and the name
//!   of a segment is durable before that of the next one is made. Names are removed oldest first,
//!   each durably before the next.
//! * D2. Nothing is written into a segment before the previous one is durable as a whole.
//! * D3. The last byte of a segment is not written before the next segment's name is durable. So a
//!   log that fills its last file has lost the next one.
//! * D4. Incarnations never decrease along the log. Opening the log takes an incarnation that no
//!   block has. So does every writer that opens the stream, except for the first one of a process:
//!   the incarnation is the writer's epoch. The block in which the log ends is made durable with
//!   the new incarnation before anything else is written.
//! * D5. A block that names `d` as durable was written after a sync that covers `d`.
//!
//! The log of a group's member has entries beside its blocks, and more invariants: [`group`].
//!
//! Latch rules:
//!
//! 1. Every mutex here is short: none is held across I/O, a wait, or a call of the listener.
//! 2. No two of them are held at once.
//! 3. An appender holds the writer token, which is not a mutex: a second appender waits for it on
//!    an event.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use firn_api::{
    FollowOptions, LogEpoch, LogError, LogFollower, LogStore, OpenedLog, Room, Watermarks,
    WriterEpoch,
};
use firn_base::event::Event;
use firn_base::task::TaskHandle;
use firn_base::{LogStreamId, Lsn, PageId};
use firn_consensus::{Base, Saved, Vote, Write};
use firn_format::redo::GroupDamage;
use parking_lot::Mutex;

use super::directory::{LocalDirectory, OpenError};
use super::page_log::{PageLog, PageLogListener, RecordVisitor};
use crate::follower::{FollowedLog, Follower};
use crate::leases::{LeaseStatus, Leases};

mod block;
mod footer;
mod group;
mod index;
mod indexer;
mod keeper;
mod lookup;
mod reader;
mod recovery;
mod role;
mod rounds;
mod segment;
mod segments;
mod writer;

use group::Membership;
use indexer::IndexerState;
use keeper::KeeperState;
use lookup::IndexCache;
use rounds::{RoundFiles, RoundWriter};
use segments::Segments;
use writer::{PublishedTail, Writer};

/// How the log uses its directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogOptions {
    /// The stream that the directory holds.
    pub stream: LogStreamId,
    /// Size of a segment file in bytes, without its footer. Existing segments keep their size.
    pub segment_size_bytes: u64,
    /// Empty segments kept ready; at least 2, so that a full disk is noticed while one is left.
    pub segments_ahead: usize,
    /// Released files kept for reuse; others are deleted.
    pub spare_limit: usize,
    /// Memory for the indexes of full segments that were read from their footers.
    pub index_cache_bytes: usize,
    /// The longest time that log stays with the engine when no thread waits for it.
    pub idle_flush_ms: u64,
}

impl Default for LogOptions {
    fn default() -> LogOptions {
        LogOptions {
            stream: LogStreamId(0),
            segment_size_bytes: 64 << 20,
            segments_ahead: 2,
            spare_limit: 4,
            index_cache_bytes: 64 << 20,
            idle_flush_ms: 100,
        }
    }
}

/// The log's memory, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogMemory {
    /// Indexes of segments without a footer: those being written, and those whose footer is due.
    pub open_index_bytes: u64,
    /// Cached indexes of full segments.
    pub index_cache_bytes: u64,
    /// The longest round so far; its buffer stays in memory.
    pub round_bytes: u64,
}

/// The state that the log's callers and its background tasks share.
struct Shared {
    directory: Arc<LocalDirectory>,
    folder: PathBuf,
    options: LogOptions,
    /// The highest incarnation of any block: the epoch of the last writer, if there was one in this
    /// process.
    incarnation: AtomicU32,
    segments: Mutex<Segments>,
    /// Notified when a segment was added or room ran out.
    room: Event,
    keeper: Mutex<KeeperState>,
    /// Whether the keeper currently cannot make segments.
    is_stuck: AtomicBool,
    keeper_wake: Event,
    /// The end that a waiting appender needs, beyond the usual segments ahead.
    wanted_end: AtomicU64,
    writer: Mutex<Option<Box<Writer>>>,
    writer_back: Event,
    tail: Mutex<PublishedTail>,
    longest_round: AtomicU64,
    /// The highest watermarks of the kept log and of everything before it.
    watermarks: Mutex<Watermarks>,
    durable: AtomicU64,
    /// Notified when more log is durable, and when no more will be.
    advanced: Event,
    truncated: AtomicU64,
    leases: Leases,
    indexer: IndexerState,
    index_cache: IndexCache,
    /// The page store's last report: a [`Room`] as a number.
    page_room: AtomicU8,
    /// In the log of a group's member. `durable` is then what is durable in the group.
    group: Option<Membership>,
    failed: OnceLock<LogError>,
    stopping: AtomicBool,
}

impl Shared {
    fn durable(&self) -> Lsn {
        Lsn(self.durable.load(Ordering::Acquire))
    }

    /// The end of the log that was synced here.
    fn synced(&self) -> Lsn {
        self.group.as_ref().map_or_else(|| self.durable(), Membership::synced)
    }

    fn truncated(&self) -> Lsn {
        Lsn(self.truncated.load(Ordering::Acquire))
    }

    /// Fails once the log has failed.
    fn check_alive(&self) -> Result<(), LogError> {
        self.failed.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Fails once the log has failed or is closed.
    fn check_open(&self) -> Result<(), LogError> {
        self.check_alive()?;
        if self.is_stopping() {
            let place = self.folder.display().to_string();
            return Err(LogError::Failed { place, reason: "the log is closed".to_owned() });
        }
        Ok(())
    }

    /// Marks the log as failed for good; the first reason counts.
    fn fail(&self, place: &std::path::Path, reason: impl std::fmt::Display) -> LogError {
        let place = place.display().to_string();
        self.fail_with(LogError::Failed { place, reason: reason.to_string() })
    }

    fn fail_with(&self, error: LogError) -> LogError {
        let error = self.failed.get_or_init(|| error);
        tracing::error!(%error, "the log failed");
        self.wake_everybody();
        error.clone()
    }

    /// The room that the page store has left.
    fn page_room(&self) -> Room {
        let told = self.page_room.load(Ordering::Relaxed);
        [Room::Plenty, Room::Low]
            .into_iter()
            .find(|room| *room as u8 == told)
            .unwrap_or(Room::Scarce)
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    fn wake_everybody(&self) {
        self.room.notify_all();
        self.advanced.notify_all();
        self.writer_back.notify_all();
        self.keeper_wake.notify_all();
        self.indexer.notify_all();
    }
}

/// A log stream in a local directory.
pub struct LocalLog {
    shared: Arc<Shared>,
    tasks: Mutex<Vec<Box<dyn TaskHandle>>>,
}

impl LocalLog {
    /// Opens the log of a directory, or makes an empty one if it is new, and starts the log's
    /// background tasks. Cuts off everything after the last whole group of the log. Blocks for I/O.
    ///
    /// # Errors
    /// [`OpenError::Io`], or [`LogError::Damaged`] if log that was once durable is missing at the
    /// end or in the middle: nothing is ever skipped.
    pub fn open(
        directory: &Arc<LocalDirectory>,
        options: LogOptions,
    ) -> Result<Arc<LocalLog>, OpenError> {
        LocalLog::open_from(directory, options, Lsn::FIRST)
    }

    /// Like [`LocalLog::open`], for a database whose log begins later than that of others because
    /// its first pages come from elsewhere: a new log begins at `origin`. Blocks for I/O.
    ///
    /// # Errors
    /// As there.
    pub fn open_from(
        directory: &Arc<LocalDirectory>,
        options: LogOptions,
        origin: Lsn,
    ) -> Result<Arc<LocalLog>, OpenError> {
        Ok(LocalLog::start(recovery::open(directory, options, origin)?))
    }

    /// Appends groups that another database has made, and makes them durable. The log must have no
    /// other writer. Returns where the log ends. Blocks for I/O.
    ///
    /// # Errors
    /// As a writer of the stream.
    pub fn import(&self, groups: &[u8]) -> Result<Lsn, LogError> {
        let tail = self.shared.open_writer(WriterEpoch::Next)?;
        let end = tail.end.advance(groups.len() as u64);
        self.shared.wait_for_room(end)?;
        RoundFiles::append(&*self.shared, tail.epoch, tail.end, groups)?;
        self.shared.sync_written()
    }

    fn start(shared: Shared) -> Arc<LocalLog> {
        let log = LocalLog { shared: Arc::new(shared), tasks: Mutex::new(Vec::new()) };
        log.spawn("log-keeper", keeper::run);
        log.spawn("log-indexer", indexer::run);
        Arc::new(log)
    }

    /// Opens the log of a group's member, with what is saved of it. In a new directory, makes a log
    /// that begins at `founding`. Blocks for I/O.
    ///
    /// # Errors
    /// As [`LocalLog::open`], and if the directory is that of a node alone.
    pub(crate) fn open_member(
        directory: &Arc<LocalDirectory>,
        options: LogOptions,
        founding: Option<(Base, Watermarks)>,
    ) -> Result<(Arc<LocalLog>, Saved), OpenError> {
        let (shared, saved) = group::open_member(directory, options, founding)?;
        Ok((LocalLog::start(shared), saved))
    }

    /// Carries out all of a member's write but its restart.
    pub(crate) fn write_entries(&self, write: &Write, bytes: &[u8]) -> Result<(), LogError> {
        self.shared.write_entries(write, bytes)
    }

    /// Makes a member's writes durable.
    pub(crate) fn sync_entries(&self) -> Result<(), LogError> {
        self.shared.sync_entries()
    }

    /// Appends the log bytes `from..to`, durable or not.
    pub(crate) fn read_written(
        &self,
        from: Lsn,
        to: Lsn,
        into: &mut Vec<u8>,
    ) -> Result<(), LogError> {
        if from < self.shared.truncated() || from > to {
            return Err(self.shared.out_of_range(from));
        }
        self.shared.read_bytes(from, to, into)
    }

    /// Log before `lsn` is durable in the group.
    pub(crate) fn set_durable(&self, lsn: Lsn) {
        self.shared.set_durable(lsn);
    }

    /// Releases a member's log before `lsn`; returns where the kept log begins.
    pub(crate) fn release_entries(&self, lsn: Lsn) -> Lsn {
        self.shared.release_entries(lsn)
    }

    /// Throws a member's log away, durably: the directory has to be opened again. False: the log
    /// begins at `base` and is empty already.
    pub(crate) fn begin_restart(&self, vote: Option<Vote>, base: &Base) -> Result<bool, LogError> {
        self.shared.begin_restart(vote, base)
    }

    /// The highest watermarks in the durable log and before it. Blocks until that log is indexed.
    ///
    /// # Errors
    /// If the log has failed.
    pub fn watermarks_of_durable(&self) -> Result<Watermarks, LogError> {
        self.shared.wait_until_indexed(self.shared.durable())?;
        Ok(*self.shared.watermarks.lock())
    }

    /// Log that is not here had these watermarks. The next restart makes that durable.
    pub(crate) fn raise_watermarks(&self, watermarks: Watermarks) {
        self.shared.watermarks.lock().raise(watermarks);
    }

    /// Ends the log for good, because another one cannot be opened in its place.
    pub(crate) fn fail(&self, error: LogError) -> LogError {
        self.shared.fail_with(error)
    }

    /// How much room is left.
    pub(crate) fn room(&self) -> Result<Room, LogError> {
        self.shared.check_alive()?;
        Ok(RoundFiles::room(&*self.shared))
    }

    fn spawn(&self, name: &str, body: fn(&Shared)) {
        let shared = self.shared.clone();
        let spawner = &self.shared.directory.environment().spawner;
        let task = spawner.spawn(name, Box::new(move || body(&shared)));
        self.tasks.lock().push(task);
    }

    /// The end of the appended log. Right after opening: the end of the log.
    #[must_use]
    pub fn end_lsn(&self) -> Lsn {
        self.shared.tail.lock().written
    }

    /// The end of the durable log, as both [`LogStore`] and [`PageLog`] report it. Does not block.
    #[must_use]
    pub fn durable_lsn(&self) -> Lsn {
        self.shared.durable()
    }

    /// The readers that hold the log, beside the page store.
    #[must_use]
    pub fn readers(&self) -> Vec<LeaseStatus> {
        self.shared.leases.list()
    }

    /// The log's memory. Does not block.
    #[must_use]
    pub fn memory(&self) -> LogMemory {
        let begun = self.shared.segments.lock().begun();
        let open = begun.iter().map(|segment| segment.index.lock().size_bytes());
        LogMemory {
            open_index_bytes: open.sum::<usize>() as u64,
            index_cache_bytes: self.shared.index_cache.size_bytes() as u64,
            round_bytes: self.shared.longest_round.load(Ordering::Relaxed),
        }
    }

    /// Stops the background tasks, waits for them, and releases the listener, which often owns the
    /// log in turn. Reads still work; a writer fails.
    pub fn close(&self) {
        self.shared.stopping.store(true, Ordering::Release);
        self.shared.wake_everybody();
        let tasks = std::mem::take(&mut *self.tasks.lock());
        for task in tasks {
            task.join();
        }
        self.shared.indexer.forget_listener();
    }
}

impl Drop for LocalLog {
    /// Ends the tasks, so that none works in the directory after its lock is released.
    fn drop(&mut self) {
        self.close();
    }
}

impl LogStore for LocalLog {
    fn open(&self, epoch: WriterEpoch) -> Result<OpenedLog, LogError> {
        let tail = self.shared.open_writer(epoch)?;
        let files = Arc::clone(&self.shared);
        Ok(OpenedLog::new(tail, move |source| {
            let environment = files.directory.environment().clone();
            let idle_flush = Duration::from_millis(files.options.idle_flush_ms);
            let place = (tail.epoch, tail.end);
            Box::new(RoundWriter::start(&environment, files, place, source, idle_flush))
        }))
    }

    fn durable_lsn(&self) -> Lsn {
        self.shared.durable()
    }

    fn truncated_lsn(&self) -> Lsn {
        self.shared.truncated()
    }

    fn read(&self, from: Lsn, limit_bytes: usize, into: &mut Vec<u8>) -> Result<Lsn, LogError> {
        self.shared.read_groups(from, limit_bytes, into)
    }

    fn follow(&self, options: FollowOptions) -> Result<Box<dyn LogFollower>, LogError> {
        Ok(Box::new(Follower::new(Arc::clone(&self.shared), options)?))
    }
}

impl FollowedLog for Shared {
    fn durable(&self) -> Lsn {
        self.durable()
    }

    fn advanced(&self) -> &Event {
        &self.advanced
    }

    fn is_closed(&self) -> Result<bool, LogError> {
        self.check_alive().map(|()| self.is_stopping())
    }

    fn leases(&self) -> &Leases {
        &self.leases
    }

    fn read(&self, from: Lsn, limit_bytes: usize, into: &mut Vec<u8>) -> Result<Lsn, LogError> {
        self.read_groups(from, limit_bytes, into)
    }

    fn damaged(&self, at: Lsn, damage: &GroupDamage) -> LogError {
        self.damaged_group(at, damage)
    }
}

impl RoundFiles for Shared {
    fn append(&self, epoch: LogEpoch, start: Lsn, groups: &[u8]) -> Result<(), LogError> {
        self.longest_round.fetch_max(groups.len() as u64, Ordering::Relaxed);
        self.append_groups(epoch, start, groups)
    }

    fn begin_sync(&self) {
        self.begin_write_back();
    }

    fn sync(&self) -> Result<Lsn, LogError> {
        self.sync_written()
    }

    fn room(&self) -> Room {
        self.room_left().max(self.page_room())
    }
}

impl PageLog for LocalLog {
    fn indexed_lsn(&self) -> Lsn {
        self.shared.indexer.told()
    }

    fn durable_lsn(&self) -> Lsn {
        self.shared.durable()
    }

    fn kept_from(&self) -> Lsn {
        self.shared.truncated()
    }

    fn wait_until_indexed(&self, lsn: Lsn) -> Result<(), LogError> {
        self.shared.wait_until_indexed(lsn)
    }

    fn visit_records(
        &self,
        page: PageId,
        from: Lsn,
        to: Lsn,
        visit: &mut RecordVisitor<'_>,
    ) -> Result<(), LogError> {
        self.shared.visit_records(page, from, to, visit)
    }

    fn release_before(&self, lsn: Lsn) {
        self.shared.release_before(lsn);
    }

    fn waits_for_room(&self) -> bool {
        self.shared.room_left() != Room::Plenty
    }

    fn tell_page_room(&self, room: Room) {
        self.shared.page_room.store(room as u8, Ordering::Relaxed);
    }

    fn learn_durable(&self, lsn: Lsn) -> Result<(), LogError> {
        if self.shared.group.is_some() {
            self.shared.set_durable(lsn);
        }
        Ok(())
    }

    fn follow(&self, listener: Arc<dyn PageLogListener>) {
        if let Some(group) = &self.shared.group {
            group.hold_for_pages();
        }
        self.shared.follow(listener);
    }
}

#[cfg(test)]
mod tests;
