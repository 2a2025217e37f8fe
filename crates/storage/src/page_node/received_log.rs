//! The log that a page node has received: what its page store reads instead of log files.
//!
//! ```text
//!   log store, elsewhere     ── released ──┬───────────── kept for this node ──────────────┬──►
//!                                          kept_from          indexed          received    durable
//!   in memory                               │ left │ records │ records │ records │
//!                                           └─ read again when asked for
//! ```
//!
//! The log is durable where it comes from, so it is not written a second time here (001 §3.4 has
//! each page server persist it again). Records stay in memory until the pages that they change are
//! durable. A restart gets them once more: the node's lease holds the log from `kept_from` on.
//!
//! Memory is bounded. When it is full, nothing more is received until the page store has released
//! log. If the page store needs old log for longer, because a reader holds an old version, the
//! oldest records are left out, and read again from the log store when they are asked for.
//!
//! Chunks of one node share a stream of log ([`super::shared_reader`]) while they are near its end.
//!
//! Rules:
//!
//! 1. The one mutex is short: it is not held across a call of the log store, of the listener or of
//!    a visitor.
//! 2. One task receives: the own one, or that of the shared stream. A piece can be visited before
//!    the listener hears of it, and counts as indexed after that.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_api::{
    FollowOptions, Followed, LogError, LogFollower, LogPiece, LogStore, PageFilter, Room,
};
use firn_base::event::Event;
use firn_base::task::{TaskHandle, sleep};
use firn_base::{Environment, Lsn, PageId};
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;

use super::records::Records;
use super::shared_reader::{MemberNumber, SharedReader, Taker};
use crate::local::page_log::{PageLog, PageLogListener, RecordVisitor};

/// How much log is asked for at once.
const PIECE_BYTES: usize = 1 << 20;
/// How long the task waits for log before it looks around.
const TICK: Duration = Duration::from_millis(100);
/// How long the task waits for the page store before it leaves the oldest records out of memory.
const STUCK: Duration = Duration::from_millis(100);
/// How often a node that starts asks whether the log knows what its pages include.
const LEARNING: Duration = Duration::from_millis(10);
/// The longest pause between two tries when the log store does not answer.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How a page node follows the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedLogOptions {
    /// The node's name in listings of the log's readers.
    pub name: String,
    /// The pages that the node has. See [`ReceivedLog::narrow`].
    pub pages: PageFilter,
    /// Memory for records, in bytes. The last piece may exceed it.
    pub memory_bytes: usize,
    /// See [`FollowOptions::hold_limit_bytes`].
    pub hold_limit_bytes: u64,
    /// The longest that a read waits for log that has not arrived.
    pub patience: Duration,
    /// Begin where the pages need the log, and not where an earlier life of the node held it for
    /// older versions: members of the log's group that came since then do not have all of that.
    pub only_needed: bool,
}

impl Default for ReceivedLogOptions {
    fn default() -> ReceivedLogOptions {
        ReceivedLogOptions {
            name: "pages".to_owned(),
            pages: PageFilter::All,
            memory_bytes: 256 << 20,
            hold_limit_bytes: 64 << 30,
            patience: Duration::from_secs(10),
            only_needed: false,
        }
    }
}

/// The records of a piece of log.
enum Content {
    Kept(Arc<Records>),
    /// Not in memory; the pages that they change.
    Left(Box<[PageId]>),
}

struct Piece {
    from: Lsn,
    to: Lsn,
    content: Content,
}

impl Piece {
    fn size_bytes(&self) -> usize {
        match &self.content {
            Content::Kept(records) => records.size_bytes(),
            Content::Left(_) => 0,
        }
    }
}

struct State {
    /// Pieces that follow each other, oldest first.
    pieces: VecDeque<Piece>,
    /// The number of the first piece; later ones count up.
    first_number: u64,
    /// The pieces that change each page, oldest first.
    by_page: FxHashMap<PageId, VecDeque<u64>>,
    kept_from: Lsn,
    indexed: Lsn,
    memory_bytes: usize,
    /// Why no more log will come.
    failure: Option<LogError>,
    /// The follower, until the page store begins to listen.
    follower: Option<Box<dyn LogFollower>>,
}

/// Where the log comes from.
pub enum LogSource {
    /// A stream for this log alone.
    Own(Arc<dyn LogStore>),
    /// The stream of all chunks of a node.
    Shared(Arc<SharedReader>),
}

struct Shared {
    store: Arc<dyn LogStore>,
    /// The stream of all chunks, if there are others. The lock is a leaf.
    reader: RwLock<Option<Arc<SharedReader>>>,
    options: ReceivedLogOptions,
    /// The pages that the node has now.
    pages: RwLock<PageFilter>,
    /// The pages have become fewer since the log joined the stream of all chunks.
    has_narrowed: AtomicBool,
    state: Mutex<State>,
    /// Notified when more is indexed, and when no more will be.
    advanced: Event,
    /// Notified when log was released, and at the end.
    released: Event,
    is_full: AtomicBool,
    is_closing: AtomicBool,
}

/// What a page node knows of its log at a moment.
#[derive(Debug, Clone)]
pub struct ReceivedLogStatus {
    /// The start of the log that is kept for the node.
    pub kept_from: Lsn,
    /// The end of what has been received.
    pub indexed: Lsn,
    /// The end of the durable log, as far as is known here.
    pub durable: Lsn,
    /// Memory of the records, in bytes.
    pub memory_bytes: usize,
    /// Why no more log will come, if that is so.
    pub failure: Option<LogError>,
}

/// The log of a page node. See the module's page.
pub struct ReceivedLog {
    environment: Environment,
    shared: Arc<Shared>,
    task: Mutex<Option<Box<dyn TaskHandle>>>,
}

impl ReceivedLog {
    /// Registers the node as a reader of the log, from the oldest log that is kept there, or from
    /// where its pages need it: `needed`, if there are pages. Nothing is received before
    /// [`PageLog::follow`]. Blocks like a read of the log.
    ///
    /// # Errors
    /// Those of [`LogStore::follow`].
    pub fn open(
        environment: &Environment,
        source: LogSource,
        options: ReceivedLogOptions,
        needed: Option<Lsn>,
    ) -> Result<Arc<ReceivedLog>, LogError> {
        let (store, reader) = match source {
            LogSource::Own(store) => (store, None),
            LogSource::Shared(reader) => (Arc::clone(reader.store()), Some(reader)),
        };
        let follower = register(store.as_ref(), &options, needed)?;
        let from = follower.position();
        let state = State {
            pieces: VecDeque::new(),
            first_number: 0,
            by_page: FxHashMap::default(),
            kept_from: from,
            indexed: from,
            memory_bytes: 0,
            failure: None,
            follower: Some(follower),
        };
        let shared = Shared {
            store,
            reader: RwLock::new(reader),
            pages: RwLock::new(options.pages.clone()),
            has_narrowed: AtomicBool::new(false),
            options,
            state: Mutex::new(state),
            advanced: Event::new(),
            released: Event::new(),
            is_full: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
        };
        Ok(Arc::new(ReceivedLog {
            environment: environment.clone(),
            shared: Arc::new(shared),
            task: Mutex::new(None),
        }))
    }

    /// Stops receiving and returns the lease. Blocks until the task has ended.
    pub fn close(&self) {
        self.shared.is_closing.store(true, Ordering::Release);
        self.shared.wake_everybody();
        let task = self.task.lock().take();
        if task.is_some_and(|task| !task.join()) {
            tracing::error!("the task that receives log ended with a panic");
        }
    }

    /// From now on there are other chunks: the log comes from the stream of all, which reads the
    /// same store, as soon as that is near.
    pub(super) fn share(&self, reader: &Arc<SharedReader>) {
        *self.shared.reader.write() = Some(Arc::clone(reader));
    }

    /// The node has only these of its pages from now on. The stream of all chunks brings no log
    /// about others any more. The node's own stream does.
    pub(super) fn narrow(&self, pages: &PageFilter) {
        *self.shared.pages.write() = pages.clone();
        self.shared.has_narrowed.store(true, Ordering::SeqCst);
        self.shared.released.notify_all();
    }

    /// Blocks until log up to `lsn` is indexed or no more will come, for `timeout` at most; returns
    /// whether that is so.
    pub(super) fn wait_for(&self, lsn: Lsn, timeout: Duration) -> bool {
        let shared = &self.shared;
        let is_over = || {
            let state = shared.state.lock();
            state.indexed >= lsn || state.failure.is_some() || shared.is_closing()
        };
        shared.advanced.wait_until(Some(timeout), is_over)
    }

    /// The log's state. Does not block.
    #[must_use]
    pub fn status(&self) -> ReceivedLogStatus {
        let durable = self.durable_lsn();
        let state = self.shared.state.lock();
        ReceivedLogStatus {
            kept_from: state.kept_from,
            indexed: state.indexed,
            durable,
            memory_bytes: state.memory_bytes,
            failure: state.failure.clone(),
        }
    }
}

impl Drop for ReceivedLog {
    fn drop(&mut self) {
        self.close();
    }
}

/// Takes a lease on everything that can be had: log before that may still be in files, but belongs
/// to nobody.
fn register(
    store: &dyn LogStore,
    options: &ReceivedLogOptions,
    needed: Option<Lsn>,
) -> Result<Box<dyn LogFollower>, LogError> {
    let held = store.kept_for(&options.name).max(Lsn::FIRST);
    // Too few members may have said what they keep: others may have what the pages need.
    let mut from = match needed {
        Some(needed) if options.only_needed => needed,
        Some(needed) => held.min(needed),
        None => held,
    };
    loop {
        let followed = store.follow(FollowOptions {
            name: options.name.clone(),
            from,
            until: None,
            pages: options.pages.clone(),
            hold_limit_bytes: options.hold_limit_bytes,
        });
        match followed {
            Err(LogError::OutOfRange { from: kept_from, .. }) if kept_from > from => {
                // What the pages need may be at other members than those that were asked first.
                from = match needed {
                    Some(needed) if from < needed => kept_from.min(needed),
                    _ => kept_from,
                };
            }
            other => return other,
        }
    }
}

impl State {
    fn number_after_last(&self) -> u64 {
        self.first_number + self.pieces.len() as u64
    }

    fn add(&mut self, from: Lsn, to: Lsn, records: &Arc<Records>) {
        let number = self.number_after_last();
        for page in records.pages() {
            self.by_page.entry(page).or_default().push_back(number);
        }
        self.memory_bytes += records.size_bytes();
        self.pieces.push_back(Piece { from, to, content: Content::Kept(Arc::clone(records)) });
    }

    /// Forgets pieces that end at or before `lsn`.
    fn release(&mut self, lsn: Lsn) {
        while let Some(piece) = self.pieces.pop_front_if(|piece| piece.to <= lsn) {
            self.memory_bytes -= piece.size_bytes();
            match &piece.content {
                Content::Kept(records) => records.pages().for_each(|page| self.forget(page)),
                Content::Left(pages) => pages.iter().for_each(|page| self.forget(*page)),
            }
            self.first_number += 1;
            self.kept_from = piece.to;
        }
    }

    /// The oldest piece does not count for `page` any more.
    fn forget(&mut self, page: PageId) {
        let Some(numbers) = self.by_page.get_mut(&page) else { return };
        numbers.pop_front_if(|number| *number <= self.first_number);
        if numbers.is_empty() {
            self.by_page.remove(&page);
        }
    }

    /// Leaves the oldest records out of memory until `limit_bytes` are left.
    fn leave_oldest(&mut self, limit_bytes: usize) {
        for piece in &mut self.pieces {
            if self.memory_bytes <= limit_bytes {
                return;
            }
            if let Content::Kept(records) = &piece.content {
                self.memory_bytes -= records.size_bytes();
                piece.content = Content::Left(records.pages().collect());
            }
        }
    }

    /// The stretches between `from` and `to` that change `page`, with their records if they are in
    /// memory.
    fn stretches(&self, page: PageId, from: Lsn, to: Lsn) -> Vec<(Lsn, Lsn, Option<Arc<Records>>)> {
        let numbers = self.by_page.get(&page).into_iter().flatten();
        let pieces = numbers.map(|number| &self.pieces[(number - self.first_number) as usize]);
        let within = pieces.filter(|piece| piece.to > from && piece.from < to);
        let stretch = |piece: &Piece| match &piece.content {
            Content::Kept(records) => (piece.from, piece.to, Some(Arc::clone(records))),
            Content::Left(_) => (piece.from, piece.to, None),
        };
        within.map(stretch).collect()
    }
}

impl Shared {
    fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    fn wake_everybody(&self) {
        self.released.notify_all();
        self.advanced.notify_all();
    }

    fn fail(&self, error: LogError) {
        if !self.is_closing() {
            tracing::error!(%error, "no more log is received");
        }
        self.state.lock().failure = Some(error);
        self.wake_everybody();
    }

    /// Receives until the log ends or is closed (rule 2).
    fn receive(
        self: &Arc<Self>,
        mut follower: Box<dyn LogFollower>,
        listener: &Arc<dyn PageLogListener>,
    ) {
        let mut trouble = Trouble::default();
        while !self.is_closing() {
            follower.release(self.state.lock().kept_from);
            if !self.wait_for_memory() {
                continue;
            }
            if let Some(joined) = self.join(listener) {
                trouble.end();
                match self.follow_with_others(&joined, &mut *follower) {
                    Ok(()) => continue,
                    Err(error) => return self.fail(error),
                }
            }
            match follower.next(PIECE_BYTES, TICK) {
                Ok(Followed::Piece(piece)) => {
                    trouble.end();
                    match Records::of(&piece) {
                        Ok(records) => self.take(piece.from, piece.to, records, &**listener),
                        Err(error) => return self.fail(error),
                    }
                }
                Ok(Followed::Nothing) => trouble.end(),
                Ok(Followed::End) => {
                    let reason = "it was closed where it is kept".to_owned();
                    return self.fail(LogError::Unavailable { reason });
                }
                Err(error @ (LogError::Unavailable { .. } | LogError::Unreadable { .. })) => {
                    let pause = trouble.note(&error);
                    self.released.wait_until(Some(pause), || self.is_closing());
                }
                Err(error) => return self.fail(error),
            }
        }
    }

    /// Waits while memory is full. False if it still is, and the lease should be looked at.
    fn wait_for_memory(&self) -> bool {
        let kept_from = {
            let state = self.state.lock();
            let is_full = state.memory_bytes >= self.options.memory_bytes;
            self.is_full.store(is_full, Ordering::Release);
            if !is_full {
                return true;
            }
            state.kept_from
        };
        let has_moved = || self.state.lock().kept_from > kept_from;
        if !self.released.wait_until(Some(STUCK), || self.is_closing() || has_moved()) {
            self.state.lock().leave_oldest(self.options.memory_bytes / 2);
        }
        false
    }

    /// Gets the log from the stream of all chunks from now on, if that is near.
    fn join(self: &Arc<Self>, listener: &Arc<dyn PageLogListener>) -> Option<Joined> {
        let reader = self.reader.read().clone()?;
        let (log, listener) = (Arc::clone(self), Arc::clone(listener));
        let part = Arc::new(SharedPart { log, listener, has_parted: AtomicBool::new(false) });
        let taker = Arc::clone(&part) as Arc<dyn Taker>;
        self.has_narrowed.store(false, Ordering::SeqCst);
        let pages = self.pages.read().clone();
        let number = reader.join(&pages, self.options.hold_limit_bytes, &taker)?;
        Some(Joined { reader, number, part })
    }

    /// Moves the lease while log comes from the stream of all chunks. Returns when it does not any
    /// more; then `follower` goes on where that has ended.
    fn follow_with_others(
        &self,
        joined: &Joined,
        follower: &mut dyn LogFollower,
    ) -> Result<(), LogError> {
        loop {
            let is_over = || {
                let has_narrowed = self.has_narrowed.load(Ordering::SeqCst);
                self.is_closing() || joined.part.has_parted() || has_narrowed
            };
            let is_over = self.released.wait_until(Some(TICK), is_over);
            let checked = follower.check();
            if is_over || checked.is_err() {
                joined.reader.leave(joined.number);
            }
            let (indexed, kept_from) = {
                let state = self.state.lock();
                (state.indexed, state.kept_from)
            };
            follower.skip_to(indexed);
            follower.release(kept_from);
            if is_over || checked.is_err() {
                return checked;
            }
        }
    }

    fn take(&self, from: Lsn, to: Lsn, records: Records, listener: &dyn PageLogListener) {
        let records = Arc::new(records);
        self.state.lock().add(from, to, &records);
        records.changes().for_each(|(page, start, end)| listener.page_changed(page, start, end));
        records.dropped().iter().for_each(|(space, end)| listener.space_dropped(*space, *end));
        listener.told_up_to(to);
        self.state.lock().indexed = to;
        self.advanced.notify_all();
    }

    fn is_over_memory(&self) -> bool {
        self.state.lock().memory_bytes >= self.options.memory_bytes
    }

    /// Reads records that were left out of memory. They may go beyond `to`.
    fn read_again(&self, from: Lsn, to: Lsn) -> Result<Vec<Records>, LogError> {
        let (mut position, mut all) = (from, Vec::new());
        while position < to {
            let mut bytes = Vec::new();
            let limit = usize::try_from(to.since(position)).unwrap_or(usize::MAX);
            let end = self.store.read(position, limit, &mut bytes)?;
            let pages = self.pages.read().clone();
            let piece = LogPiece::new(position, bytes, &pages);
            let piece = piece.map_err(|(at, damage)| LogError::Damaged {
                at: format!("log position {at}"),
                what: damage.to_string(),
            })?;
            all.push(Records::of(&piece)?);
            position = end;
        }
        Ok(all)
    }
}

/// A received log that gets its log from the stream of all chunks.
struct Joined {
    reader: Arc<SharedReader>,
    number: MemberNumber,
    part: Arc<SharedPart>,
}

/// What the stream of all chunks gives log to.
struct SharedPart {
    log: Arc<Shared>,
    listener: Arc<dyn PageLogListener>,
    has_parted: AtomicBool,
}

impl SharedPart {
    fn has_parted(&self) -> bool {
        self.has_parted.load(Ordering::Acquire)
    }
}

impl Taker for SharedPart {
    fn position(&self) -> Lsn {
        self.log.state.lock().indexed
    }

    fn take(&self, to: Lsn, records: Records) -> bool {
        let from = self.position();
        self.log.take(from, to, records, &*self.listener);
        let has_room = !self.log.is_over_memory();
        if !has_room {
            self.part();
        }
        has_room
    }

    fn part(&self) {
        self.has_parted.store(true, Ordering::Release);
        self.log.released.notify_all();
    }
}

/// Tells once that the log store does not answer, and once that it does again.
#[derive(Default)]
struct Trouble {
    tries: u32,
}

impl Trouble {
    /// Returns how long to wait before the next try.
    fn note(&mut self, error: &LogError) -> Duration {
        if self.tries == 0 {
            tracing::warn!(%error, "log cannot be received; trying again");
        }
        self.tries = (self.tries + 1).min(16);
        (TICK / 8 * (1 << self.tries.min(8))).min(LONGEST_PAUSE)
    }

    fn end(&mut self) {
        if std::mem::take(&mut self.tries) > 0 {
            tracing::info!("log is received again");
        }
    }
}

impl PageLog for ReceivedLog {
    fn indexed_lsn(&self) -> Lsn {
        self.shared.state.lock().indexed
    }

    fn durable_lsn(&self) -> Lsn {
        self.shared.store.durable_lsn()
    }

    fn kept_from(&self) -> Lsn {
        self.shared.state.lock().kept_from
    }

    /// Waits for [`ReceivedLogOptions::patience`] at most: a member of a group that has started may
    /// not have heard yet what is durable.
    fn learn_durable(&self, lsn: Lsn) -> Result<(), LogError> {
        let shared = &self.shared;
        let is_known = || self.durable_lsn() >= lsn;
        let tries = shared.options.patience.as_millis() / LEARNING.as_millis();
        for _ in 0..tries {
            if is_known() {
                return Ok(());
            }
            sleep(LEARNING);
        }
        let known = self.durable_lsn();
        let reason = format!(
            "pages of {} include log up to {lsn}, and the log knows {known} to be durable",
            shared.options.name
        );
        if is_known() { Ok(()) } else { Err(LogError::Unavailable { reason }) }
    }

    /// Waits for [`ReceivedLogOptions::patience`] at most.
    fn wait_until_indexed(&self, lsn: Lsn) -> Result<(), LogError> {
        let shared = &self.shared;
        let mut outcome = None;
        let is_over = || {
            let state = shared.state.lock();
            if state.indexed >= lsn {
                outcome = Some(Ok(()));
            } else if let Some(failure) = &state.failure {
                outcome = Some(Err(failure.clone()));
            }
            outcome.is_some() || shared.is_closing()
        };
        shared.advanced.wait_until(Some(shared.options.patience), is_over);
        outcome.unwrap_or_else(|| {
            let reason = format!("log up to {lsn} has not arrived at {}", shared.options.name);
            Err(LogError::Unavailable { reason })
        })
    }

    fn visit_records(
        &self,
        page: PageId,
        from: Lsn,
        to: Lsn,
        visit: &mut RecordVisitor<'_>,
    ) -> Result<(), LogError> {
        let stretches = {
            let state = self.shared.state.lock();
            if from < state.kept_from {
                let (from, to, position) = (state.kept_from, state.indexed, from);
                return Err(LogError::OutOfRange { position, from, to });
            }
            state.stretches(page, from, to)
        };
        for (start, end, records) in stretches {
            let range = from.max(start)..to.min(end);
            match records {
                Some(records) => records.visit(page, &range, visit)?,
                None => {
                    let again = self.shared.read_again(start, end)?;
                    again.iter().try_for_each(|records| records.visit(page, &range, visit))?;
                }
            }
        }
        Ok(())
    }

    fn release_before(&self, lsn: Lsn) {
        self.shared.state.lock().release(lsn);
        self.shared.released.notify_all();
    }

    fn waits_for_room(&self) -> bool {
        self.shared.is_full.load(Ordering::Acquire)
    }

    /// A full disk of one page node is not the writer's concern: the node falls behind.
    fn tell_page_room(&self, _: Room) {}

    fn follow(&self, listener: Arc<dyn PageLogListener>) {
        let follower = self.shared.state.lock().follower.take();
        let follower = follower.expect("a log has one listener");
        let shared = Arc::clone(&self.shared);
        let body = Box::new(move || shared.receive(follower, &listener));
        *self.task.lock() = Some(self.environment.spawner.spawn("firn-page-log", body));
    }
}
