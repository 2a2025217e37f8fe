//! The indexer: a background task that follows the durable log, maintains the index, and informs
//! the listener.
//!
//! ```text
//!   truncated ≤ told ≤ index end ≤ durable
//! ```
//!
//! A position is indexed before the listener hears of it, so a listener may ask for its records at
//! once. Small commits are collected for [`PAUSE`] unless a thread waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use firn_api::LogError;
use firn_base::event::Event;
use firn_base::{Lsn, PageId, SpaceId};
use firn_format::redo::Group;
use parking_lot::Mutex;

use super::Shared;
use super::index::{PageIndex, PageSummary, Told, from_units};
use super::segment::{Segment, SegmentIndex};
use crate::local::page_log::PageLogListener;

/// How much log is read and indexed at once.
const PIECE_BYTES: usize = 1 << 20;
/// How many groups are indexed, or pages reported, before the task yields its core: committers wait
/// for the core, and a scheduler may leave it with this task for as long as a hundred commits take.
const STRETCH: usize = 32;
/// An indexer that is this far behind keeps the core: on a busy machine, a thread that yields may
/// wait for a very long time.
const HURRY_BYTES: u64 = 1 << 20;
/// How long the indexer waits for more log before it processes a small amount.
const PAUSE: Duration = Duration::from_millis(2);
/// What is not a little.
const BACKLOG_BYTES: u64 = 256 * 1024;

/// Whether the task yields its core between stretches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    Yielding,
    /// All is one stretch.
    Hurried,
}

impl Pace {
    fn stretch(self) -> usize {
        match self {
            Pace::Yielding => STRETCH,
            Pace::Hurried => usize::MAX,
        }
    }

    fn end_stretch(self) {
        if self == Pace::Yielding {
            firn_base::task::yield_now();
        }
    }
}

#[derive(Clone)]
enum Listener {
    None,
    /// Attached, but not yet told what was there before.
    Behind(Arc<dyn PageLogListener>),
    /// Told everything that is indexed.
    Told(Arc<dyn PageLogListener>),
}

/// The indexer's state, shared with the threads that wait for it.
pub(super) struct IndexerState {
    /// The end of the indexed log.
    index_end: AtomicU64,
    /// The end of the log that the listener was told about.
    told: AtomicU64,
    listener: Mutex<Listener>,
    is_idle: AtomicBool,
    is_hurried: AtomicBool,
    wake: Event,
    advanced: Event,
}

impl IndexerState {
    /// The state of an index that ends at `index_end`.
    pub(super) fn new(index_end: Lsn) -> IndexerState {
        IndexerState {
            index_end: AtomicU64::new(index_end.0),
            told: AtomicU64::new(index_end.0),
            listener: Mutex::new(Listener::None),
            is_idle: AtomicBool::new(false),
            is_hurried: AtomicBool::new(false),
            wake: Event::new(),
            advanced: Event::new(),
        }
    }

    /// The end of the indexed log.
    pub(super) fn index_end(&self) -> Lsn {
        Lsn(self.index_end.load(Ordering::Acquire))
    }

    /// The end of the log that is indexed and reported.
    pub(super) fn told(&self) -> Lsn {
        match &*self.listener.lock() {
            Listener::Behind(_) => Lsn(0),
            _ => Lsn(self.told.load(Ordering::SeqCst)),
        }
    }

    /// Moves both ends while the log is being opened and there is no listener.
    pub(super) fn advance(&self, end: Lsn) {
        self.index_end.fetch_max(end.0, Ordering::SeqCst);
        self.told.fetch_max(end.0, Ordering::SeqCst);
    }

    /// Reports that more log is durable. Costs nothing while the indexer is working.
    pub(super) fn notify_durable(&self) {
        if self.is_idle.swap(false, Ordering::SeqCst) {
            self.wake.notify_all();
        }
    }

    /// Releases the listener, once the indexer has ended.
    pub(super) fn forget_listener(&self) {
        let listener = std::mem::replace(&mut *self.listener.lock(), Listener::None);
        // Outside the mutex: it may be the last handle.
        drop(listener);
    }

    pub(super) fn notify_all(&self) {
        self.wake.notify_all();
        self.advanced.notify_all();
    }
}

/// Follows the log until it is closed or has failed.
pub(super) fn run(shared: &Shared) {
    let indexer = &shared.indexer;
    loop {
        indexer.is_idle.store(true, Ordering::SeqCst);
        let ticket = indexer.wake.listen();
        if shared.is_stopping() || shared.check_alive().is_err() {
            return;
        }
        let listener = indexer.listener.lock().clone();
        let is_behind = matches!(listener, Listener::Behind(_));
        if !is_behind && indexer.index_end() == Lsn(shared.durable.load(Ordering::SeqCst)) {
            indexer.wake.wait(ticket, None);
            continue;
        }
        indexer.is_idle.store(false, Ordering::SeqCst);
        let done = match listener {
            Listener::Behind(listener) => shared.tell_kept(&listener),
            Listener::Told(listener) => shared.follow_durable(Some(listener.as_ref())),
            Listener::None => shared.follow_durable(None),
        };
        if let Err(error) = done {
            shared.fail_with(error);
            return;
        }
        indexer.advanced.notify_all();
    }
}

impl Shared {
    /// Blocks until everything up to `lsn` is indexed and reported.
    pub(super) fn wait_until_indexed(&self, lsn: Lsn) -> Result<(), LogError> {
        loop {
            let ticket = self.indexer.advanced.listen();
            if self.indexer.told() >= lsn {
                return Ok(());
            }
            self.check_open()?;
            self.indexer.is_hurried.store(true, Ordering::SeqCst);
            self.indexer.wake.notify_all();
            self.indexer.advanced.wait(ticket, None);
        }
    }

    /// See [`crate::local::page_log::PageLog::follow`].
    pub(super) fn follow(&self, listener: Arc<dyn PageLogListener>) {
        let before =
            std::mem::replace(&mut *self.indexer.listener.lock(), Listener::Behind(listener));
        assert!(matches!(before, Listener::None), "a log has one listener");
        self.indexer.wake.notify_all();
    }

    /// Indexes and reports newly durable log, after a pause if it is little.
    fn follow_durable(&self, listener: Option<&dyn PageLogListener>) -> Result<(), LogError> {
        let indexer = &self.indexer;
        let ticket = indexer.wake.listen();
        let is_hurried = indexer.is_hurried.swap(false, Ordering::SeqCst);
        let behind_bytes = self.durable().since(indexer.index_end());
        if !is_hurried && behind_bytes < BACKLOG_BYTES {
            indexer.wake.wait(ticket, Some(PAUSE));
        }
        let is_hurried = is_hurried || behind_bytes > HURRY_BYTES;
        let pace = if is_hurried { Pace::Hurried } else { Pace::Yielding };
        let mut told = Vec::new();
        let start = indexer.index_end();
        let end = self.index_piece(start, PIECE_BYTES, pace, &mut told)?;
        if let Some(listener) = listener {
            for stretch in told.chunks(pace.stretch()) {
                stretch.iter().for_each(|told| tell(listener, *told));
                pace.end_stretch();
            }
            listener.told_up_to(end);
        }
        indexer.told.store(end.0, Ordering::SeqCst);
        if self.find_segment(start)?.end() <= end {
            self.keeper_wake.notify_all();
        }
        Ok(())
    }

    /// Indexes about `limit_bytes` of log from the group boundary `from`, at least one group, and
    /// appends the resulting reports. Returns where the indexed log ended.
    pub(super) fn index_piece(
        &self,
        from: Lsn,
        limit_bytes: usize,
        pace: Pace,
        told: &mut Vec<Told>,
    ) -> Result<Lsn, LogError> {
        let mut bytes = Vec::new();
        let end = self.read_groups(from, limit_bytes, &mut bytes)?;
        let (mut position, mut rest) = (from, bytes.as_slice());
        while !rest.is_empty() {
            let segment = self.find_segment(position)?;
            let taken = index_into(&segment, position, rest, pace, told)?;
            position = position.advance(taken as u64);
            rest = &rest[taken..];
            self.note_passage(&segment, position);
            let watermarks = segment.index.lock().watermarks();
            self.watermarks.lock().raise(watermarks);
            pace.end_stretch();
        }
        self.indexer.index_end.fetch_max(end.0, Ordering::AcqRel);
        Ok(end)
    }

    /// For later segments that a group passes through, records where the next group begins.
    fn note_passage(&self, segment: &Segment, end: Lsn) {
        let mut next = segment.end();
        while next < end {
            let Ok(segment) = self.find_segment(next) else { return };
            if let SegmentIndex::Memory(index) = &mut *segment.index.lock() {
                let index = Arc::make_mut(index);
                index.next_group = index.next_group.or(Some(end));
            }
            next = segment.end();
        }
    }

    /// Reports everything in the index to a new listener.
    fn tell_kept(&self, listener: &Arc<dyn PageLogListener>) -> Result<(), LogError> {
        let end = self.indexer.index_end();
        let segments = self.segments.lock().begun();
        for segment in segments {
            let told = match self.summarise(&segment) {
                // Released meanwhile, and its file reused.
                Err(_) if segment.end() <= self.truncated() => continue,
                told => told?,
            };
            told.iter().for_each(|told| tell(listener.as_ref(), *told));
        }
        listener.told_up_to(end);
        *self.indexer.listener.lock() = Listener::Told(listener.clone());
        Ok(())
    }

    /// The whole segment as reports to a new listener: first the pages, then the dropped spaces.
    fn summarise(&self, segment: &Arc<Segment>) -> Result<Vec<Told>, LogError> {
        loop {
            let index = segment.index.lock().clone();
            match index {
                SegmentIndex::Memory(index) => {
                    return Ok(summarised(segment.first, &index.summaries(), &index.dropped));
                }
                SegmentIndex::Footer(head) => match segment.read_summary(&head) {
                    Some(summary) => {
                        return Ok(summarised(segment.first, &summary.pages, &summary.dropped));
                    }
                    None => self.rebuild_index(segment)?,
                },
            }
        }
    }

    /// Reads the log of a segment whose footer is damaged, and continues with an index in memory.
    pub(super) fn rebuild_index(&self, segment: &Segment) -> Result<(), LogError> {
        let SegmentIndex::Footer(head) = *segment.index.lock() else { return Ok(()) };
        tracing::warn!(file = %segment.path.display(), "the footer is damaged; the index is built again");
        let mut rebuilt = PageIndex::default();
        rebuilt.next_group = Some(head.next_group);
        let mut position = head.first_group.unwrap_or(head.next_group);
        while position < head.next_group {
            let mut bytes = Vec::new();
            let end = self.read_groups(position, PIECE_BYTES, &mut bytes)?;
            let limit = head.next_group.since(position).min(bytes.len() as u64) as usize;
            let (bytes, pace) = (&bytes[..limit], Pace::Hurried);
            add_groups(&mut rebuilt, segment, position, bytes, pace, &mut Vec::new())?;
            position = end;
        }
        *segment.index.lock() = SegmentIndex::Memory(Arc::new(rebuilt));
        Ok(())
    }
}

fn tell(listener: &dyn PageLogListener, told: Told) {
    match told {
        Told::Page(page, start, end) => listener.page_changed(page, start, end),
        Told::Dropped(space, end) => listener.space_dropped(space, end),
    }
}

fn summarised(first: Lsn, pages: &[PageSummary], dropped: &[(SpaceId, u32)]) -> Vec<Told> {
    let page = |page: &PageSummary| {
        let id = PageId::from_u64(page.page);
        Told::Page(id, from_units(first, page.first), from_units(first, page.end))
    };
    let dropped = dropped.iter().map(|(space, end)| Told::Dropped(*space, from_units(first, *end)));
    pages.iter().map(page).chain(dropped).collect()
}

/// Indexes a stretch of the groups at the start of `bytes` that begin in `segment`; returns the
/// stretch's length.
fn index_into(
    segment: &Segment,
    start: Lsn,
    bytes: &[u8],
    pace: Pace,
    told: &mut Vec<Told>,
) -> Result<usize, LogError> {
    let SegmentIndex::Memory(index) = &mut *segment.index.lock() else {
        return Err(segment.damaged(start, "the log goes on in a segment that has its footer"));
    };
    add_groups(Arc::make_mut(index), segment, start, bytes, pace, told)
}

fn add_groups(
    index: &mut PageIndex,
    segment: &Segment,
    start: Lsn,
    bytes: &[u8],
    pace: Pace,
    told: &mut Vec<Told>,
) -> Result<usize, LogError> {
    let (mut taken, mut groups) = (0, 0);
    while taken < bytes.len()
        && groups < pace.stretch()
        && segment.contains(start.advance(taken as u64))
    {
        let position = start.advance(taken as u64);
        let damaged =
            |what| segment.damaged(position, format!("at log position {position}: {what}"));
        let group = Group::parse(&bytes[taken..]).map_err(|damage| damaged(damage.to_string()))?;
        index.add_group(segment, position, &group, told).map_err(damaged)?;
        taken += group.length_bytes() as usize;
        groups += 1;
    }
    Ok(taken)
}

#[cfg(test)]
mod tests;
