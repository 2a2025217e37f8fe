//! The state of a writer: what was taken from its source, and what the source has heard.
//!
//! ```text
//!   told ≤ durable ≤ proposed ≤ taken ≤ wanted        (log positions; wanted may be behind)
//! ```
//!
//! A writer outlives its term. A leader that no majority answers steps down, and if no other member
//! led meanwhile, it leads again in a later term with the same log: the writer goes on there. It
//! ends once another member leads, or another writer opens.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use firn_api::{LogError, LogSource};
use firn_base::Lsn;
use parking_lot::Mutex;

use super::peers::EntryBytes;
use super::rounds::Rounds;

/// The state of a writer that the driver sees.
pub(super) struct Writing {
    pub(super) rounds: Rounds,
    source: OnceLock<Arc<dyn LogSource>>,
    /// Log that was taken and could not be proposed; belongs to the holder of the turn.
    pending: Mutex<Option<(Lsn, Vec<u8>)>>,
    pending_bytes: AtomicU64,
    wanted: AtomicU64,
    taken: AtomicU64,
    durable: AtomicU64,
    /// How many committers have come since a round was taken, and before the last one was.
    arrived: AtomicU64,
    group_size: AtomicU64,
    /// How far the source has to hear on a task of the store.
    submitted: AtomicU64,
    told: AtomicU64,
    is_closing: AtomicBool,
    /// The source had nothing when it was asked last, and that was while the writer was closed.
    is_empty: AtomicBool,
    /// The source has heard its last word.
    has_ended: AtomicBool,
    /// Its owner is gone; the source hears nothing more.
    is_dropped: AtomicBool,
    failure: OnceLock<LogError>,
}

impl Writing {
    /// A writer whose first group begins at `end`.
    pub(super) fn new(end: Lsn) -> Writing {
        Writing {
            rounds: Rounds::new(),
            source: OnceLock::new(),
            pending: Mutex::new(None),
            pending_bytes: AtomicU64::new(0),
            wanted: AtomicU64::new(0),
            taken: AtomicU64::new(end.0),
            durable: AtomicU64::new(end.0),
            arrived: AtomicU64::new(0),
            group_size: AtomicU64::new(0),
            submitted: AtomicU64::new(0),
            told: AtomicU64::new(0),
            is_closing: AtomicBool::new(false),
            is_empty: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            is_dropped: AtomicBool::new(false),
            failure: OnceLock::new(),
        }
    }

    /// Begins to take from `source`. Nothing was taken or proposed before, so the source has missed
    /// no position.
    pub(super) fn start(&self, source: Arc<dyn LogSource>) {
        assert!(self.source.set(source).is_ok(), "a writer starts once");
    }

    pub(super) fn durable(&self) -> Lsn {
        Lsn(self.durable.load(Ordering::SeqCst))
    }

    pub(super) fn taken(&self) -> Lsn {
        Lsn(self.taken.load(Ordering::SeqCst))
    }

    /// A committer needs the log before `lsn`.
    pub(super) fn arrive(&self, lsn: Lsn) {
        self.arrived.fetch_add(1, Ordering::Relaxed);
        self.want(lsn);
    }

    /// How many committers came for the last round.
    pub(super) fn group_size(&self) -> u64 {
        self.group_size.load(Ordering::Relaxed)
    }

    /// The log before `lsn` is wanted.
    pub(super) fn want(&self, lsn: Lsn) {
        self.wanted.fetch_max(lsn.0, Ordering::SeqCst);
    }

    /// Has the source told when the log before `lsn` is durable.
    pub(super) fn submit(&self, lsn: Lsn) {
        self.submitted.fetch_max(lsn.0, Ordering::SeqCst);
        self.want(lsn);
    }

    /// Whether there is log that somebody waits for, or that was taken and not proposed.
    pub(super) fn wants(&self) -> bool {
        let has_source = self.source.get().is_some();
        let wanted = self.wanted.load(Ordering::SeqCst) > self.taken().0;
        has_source && (wanted || self.pending_bytes() > 0)
    }

    /// The next round takes log that nobody waits for, too.
    pub(super) fn want_all(&self) {
        self.want(Lsn(self.taken().0 + 1));
    }

    pub(super) fn pending_bytes(&self) -> u64 {
        self.pending_bytes.load(Ordering::SeqCst)
    }

    /// The next round, if the source has a whole group. Only for the holder of the turn.
    pub(super) fn take(&self, limit_bytes: usize) -> Option<(Lsn, Vec<u8>)> {
        let pending = self.pending.lock().take();
        self.pending_bytes.store(0, Ordering::SeqCst);
        if pending.is_some() {
            return pending;
        }
        let is_closing = self.is_closing();
        let mut bytes = Vec::new();
        let start = self.source.get()?.take(&mut bytes, limit_bytes);
        self.is_empty.store(is_closing && bytes.is_empty(), Ordering::SeqCst);
        // Nothing lies idle: the round that was wanted found nothing to take.
        let _ =
            self.wanted.compare_exchange(start.0 + 1, start.0, Ordering::SeqCst, Ordering::SeqCst);
        if bytes.is_empty() {
            return None;
        }
        self.group_size.store(self.arrived.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        self.taken.store(start.advance(bytes.len() as u64).0, Ordering::SeqCst);
        Some((start, bytes))
    }

    /// Keeps a round that could not be proposed.
    pub(super) fn put_back(&self, start: Lsn, bytes: EntryBytes) {
        let bytes = Arc::try_unwrap(bytes).unwrap_or_else(|shared| (*shared).clone());
        self.pending_bytes.store(bytes.len() as u64, Ordering::SeqCst);
        *self.pending.lock() = Some((start, bytes));
    }

    /// The group has everything before `lsn`. Called with the driver's latch held. The source hears
    /// of it before any waiter does. Returns the rounds whose committers the caller wakes.
    pub(super) fn reach(&self, lsn: Lsn) -> Option<RangeInclusive<u64>> {
        let source = self.source.get().filter(|_| lsn > self.durable())?;
        source.advance(lsn);
        self.durable.store(lsn.0, Ordering::SeqCst);
        self.rounds.reach(lsn)
    }

    /// Whether the task has to tell the source, or to end the writer.
    pub(super) fn has_news(&self) -> bool {
        let told = self.told.load(Ordering::SeqCst);
        self.submitted.load(Ordering::SeqCst) > told || self.is_closing.load(Ordering::SeqCst)
    }

    /// Tells the source what is durable, if anything was submitted since. On a task of the store.
    pub(super) fn tell(&self) {
        let durable = self.durable();
        let Some(source) = self.source.get() else { return };
        if self.has_news()
            && !self.is_dropped.load(Ordering::SeqCst)
            && self.told.swap(durable.0, Ordering::SeqCst) != durable.0
        {
            source.tell(Ok(durable));
        }
    }

    /// Whether a committer has left that was not answered.
    pub(super) fn has_left(&self) -> bool {
        self.source.get().is_some_and(|source| source.left() > Lsn(0))
    }

    /// Answers the committers that have left and whose log is durable; with `error`, the others
    /// too. Not under the driver's latch.
    pub(super) fn answer(&self, error: Option<&LogError>) {
        let Some(source) = self.source.get() else { return };
        if self.is_dropped.load(Ordering::SeqCst) {
            return;
        }
        source.answer(self.durable());
        if let Some(error) = error {
            source.refuse(error);
        }
    }

    /// Why the writer has ended.
    pub(super) fn failure(&self) -> Option<&LogError> {
        self.failure.get()
    }

    /// The owner of the source is gone: it hears nothing more.
    pub(super) fn let_go_of_source(&self) {
        self.is_dropped.store(true, Ordering::SeqCst);
    }

    pub(super) fn end(&self, error: LogError) {
        self.failure.get_or_init(|| error);
    }

    /// Tells the source that the writer has ended. On a task of the store, once.
    pub(super) fn tell_end(&self) {
        let (Some(source), Some(failure)) = (self.source.get(), self.failure.get()) else {
            // It has not started yet.
            return;
        };
        if self.has_ended.swap(true, Ordering::SeqCst) {
            return;
        }
        self.answer(None);
        self.tell();
        if !self.is_dropped.load(Ordering::SeqCst) {
            source.tell(Err(failure));
        }
    }

    /// Whether the source has heard its last word.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::SeqCst)
    }

    /// Makes everything durable that was appended; then the writer ends.
    pub(super) fn close(&self) {
        self.is_closing.store(true, Ordering::SeqCst);
        self.want_all();
    }

    pub(super) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::SeqCst)
    }

    /// Whether everything that the source had is durable.
    pub(super) fn is_drained(&self) -> bool {
        self.is_empty.load(Ordering::SeqCst)
            && self.pending_bytes() == 0
            && self.durable() >= self.taken()
    }
}
