//! A remote page store for tests: a page service on the other side of a network, driven by a seed.
//!
//! ```text
//!   log ── fetched ──► chunk: records that wait ── applied ──► versions ── durable ──► covered
//!                             lag: as far as a read asks,        kept while held
//!                             and a random bit further
//! ```
//!
//! Each chunk follows the log at its own pace. Replies are late, those of a batch come out of
//! order, and some fail. The service takes no images: it knows only the log. A [`Fault`] breaks one
//! promise on purpose, to show that a suite notices.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

use firn_base::random::{RandomSource, SplitMix};
use firn_base::{Lsn, PageId, SpaceId, task};
use firn_format::page::PageBuf;
use firn_format::redo::{Change, Group, RawRecord, apply};
use parking_lot::{Mutex, MutexGuard};

use super::conformance::PositionLease;
use super::{PageLease, PageRead, PageRequest, PageSink, PageStore, PageStoreError, PageVersion};

/// Returns the bytes of all durable log from a group boundary on; `None` if the log no longer
/// begins there.
pub type ReadLog = Box<dyn Fn(Lsn) -> Option<Vec<u8>> + Send + Sync>;

/// How often a read looks for the log it needs; the pause between two looks follows.
const PATIENCE: usize = 1000;
const PAUSE: Duration = Duration::from_millis(1);

/// A promise that is broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A read of the newest version returns whatever the chunk has.
    ReadBelowAtLeast,
    /// A reply claims that the page is unchanged up to the end of the log.
    ReplyTooNew,
    /// Versions are dropped although a lease holds them.
    LeaseIgnored,
    /// A chunk claims that it needs no log, but has not made that log durable yet.
    CoveredTooEarly,
    /// The last request of a batch is never completed.
    RequestForgotten,
    /// A read at a position returns the newest version.
    AsOfNewest,
}

#[derive(Debug, Clone)]
pub struct SimulatedOptions {
    /// The seed of all random choices.
    pub seed: u64,
    pub chunk_pages: u32,
    /// Whether chunks stay behind the log where no read asks for more.
    pub lags: bool,
    /// The longest delay of a reply; zero: replies come at once.
    pub max_delay: Duration,
    /// How many of a hundred reads fail with an error that can be retried.
    pub unavailable_percent: u64,
    /// How many bytes of log a version is kept for without a lease.
    pub history_bytes: u64,
    /// The promise that is broken.
    pub fault: Option<Fault>,
}

impl SimulatedOptions {
    /// A store that keeps its promises over a network without delay.
    #[must_use]
    pub fn new(seed: u64) -> SimulatedOptions {
        SimulatedOptions {
            seed,
            chunk_pages: 8,
            lags: true,
            max_delay: Duration::ZERO,
            unavailable_percent: 0,
            history_bytes: 0,
            fault: None,
        }
    }
}

pub struct SimulatedPages {
    log: ReadLog,
    options: SimulatedOptions,
    random: SplitMix,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    chunks: HashMap<(SpaceId, u32), Chunk>,
    dropped: HashMap<SpaceId, Lsn>,
    /// All log before this was handed to the chunks.
    fetched: Lsn,
    /// Where the groups of that log end, in order.
    ends: Vec<Lsn>,
    /// Versions that only reads before this position need were lost in a restart.
    lost_before: Lsn,
    leases: Vec<Weak<PositionLease>>,
}

#[derive(Default)]
struct Chunk {
    waiting: VecDeque<Record>,
    applied: Lsn,
    /// What a restart finds.
    durable: Lsn,
    /// Versions that only reads before this position need are gone.
    kept_from: Lsn,
    pages: HashMap<PageId, Vec<Box<PageBuf>>>,
}

struct Record {
    end: Lsn,
    page: PageId,
    kind: u8,
    body: Vec<u8>,
}

impl Chunk {
    fn apply_up_to(&mut self, position: Lsn) -> Result<(), PageStoreError> {
        while self.waiting.front().is_some_and(|record| record.end <= position) {
            let Some(record) = self.waiting.pop_front() else { break };
            self.apply(&record)?;
        }
        self.applied = self.applied.max(position);
        Ok(())
    }

    fn apply(&mut self, record: &Record) -> Result<(), PageStoreError> {
        let versions = self.pages.entry(record.page).or_default();
        if versions.last().is_none_or(|last| last.lsn() < record.end) {
            versions.push(versions.last().map_or_else(PageBuf::boxed, Clone::clone));
        }
        let Some(version) = versions.last_mut() else { return Ok(()) };
        let raw = RawRecord { kind: record.kind, page: record.page, body: &record.body };
        let damaged = |reason: String| damaged(record.page, reason);
        let change = Change::decode(&raw).map_err(|damage| damaged(damage.to_string()))?;
        apply(version, record.page, &change).map_err(|error| damaged(error.to_string()))?;
        version.set_lsn(record.end);
        Ok(())
    }

    /// Drops the versions that neither a restart nor a read at or after `position` needs.
    fn keep_from(&mut self, position: Lsn) {
        self.kept_from = self.kept_from.max(position);
        let needed = self.kept_from.min(self.durable);
        for versions in self.pages.values_mut() {
            let base = versions.iter().rposition(|version| version.lsn() <= needed);
            versions.drain(..base.unwrap_or(0));
        }
    }

    fn as_of(&self, page: PageId, position: Lsn) -> Option<&PageBuf> {
        let versions = self.pages.get(&page)?;
        versions.iter().rev().find(|version| version.lsn() <= position).map(|version| &**version)
    }

    /// Loses what is not durable.
    fn restart(&mut self) {
        self.waiting.clear();
        self.applied = self.durable;
        for versions in self.pages.values_mut() {
            versions.retain(|version| version.lsn() <= self.durable);
        }
        self.pages.retain(|_, versions| !versions.is_empty());
    }
}

impl SimulatedPages {
    /// A store that follows `log`.
    #[must_use]
    pub fn new(options: SimulatedOptions, log: ReadLog) -> Arc<SimulatedPages> {
        let random = SplitMix::new(options.seed);
        let state = Mutex::new(State { fetched: Lsn::FIRST, ..State::default() });
        Arc::new(SimulatedPages { log, options, random, state })
    }

    /// Brings some chunk up to date and makes it durable, as page nodes do in the background.
    pub fn work(&self) {
        let mut state = self.state.lock();
        if self.fetch(&mut state).is_err() || state.chunks.is_empty() {
            return;
        }
        let mut keys: Vec<_> = state.chunks.keys().copied().collect();
        keys.sort_unstable();
        let key = keys[self.below(keys.len() as u64) as usize];
        let (fetched, kept_from) = (state.fetched, self.kept_from(&state));
        if let Some(chunk) = state.chunks.get_mut(&key)
            && chunk.apply_up_to(fetched).is_ok()
        {
            chunk.durable = fetched;
            chunk.keep_from(kept_from.min(fetched));
        }
    }

    /// Every page node loses what is not durable, and all leases end.
    pub fn restart(&self) {
        let mut state = self.state.lock();
        let state = &mut *state;
        state.leases.clear();
        state.lost_before = state.fetched;
        // A dropped space is not forgotten: the log that made its pages may be gone.
        state.chunks.retain(|(space, _), _| !state.dropped.contains_key(space));
        state.chunks.values_mut().for_each(Chunk::restart);
        let from = state.chunks.values().map(|chunk| chunk.durable).min();
        state.fetched = from.unwrap_or(state.fetched).max(Lsn::FIRST);
        state.ends.retain(|end| *end <= state.fetched);
    }

    fn below(&self, limit: u64) -> u64 {
        self.random.next_u64() % limit
    }

    fn is_faulty(&self, fault: Fault) -> bool {
        self.options.fault == Some(fault)
    }

    /// Versions before this position are not held.
    fn kept_from(&self, state: &State) -> Lsn {
        let history = Lsn(state.fetched.0.saturating_sub(self.options.history_bytes));
        if self.is_faulty(Fault::LeaseIgnored) {
            return history;
        }
        let held = state.leases.iter().filter_map(Weak::upgrade).map(|lease| lease.position());
        held.fold(history, Lsn::min)
    }

    /// Waits until the log up to `wanted` is handed to the chunks; `None` if that takes too long.
    fn fetched_up_to(&self, wanted: Lsn) -> Result<Option<MutexGuard<'_, State>>, PageStoreError> {
        for _ in 0..PATIENCE {
            let mut state = self.state.lock();
            self.fetch(&mut state)?;
            if wanted <= state.fetched {
                return Ok(Some(state));
            }
            drop(state);
            task::sleep(PAUSE);
        }
        Ok(None)
    }

    /// Hands the log that became durable to the chunks.
    fn fetch(&self, state: &mut State) -> Result<(), PageStoreError> {
        let from = state.fetched;
        let Some(bytes) = (self.log)(from) else {
            return Err(PageStoreError::StoreDamaged {
                place: "the simulated page store".to_owned(),
                reason: format!("the log no longer begins at {from}"),
            });
        };
        let mut rest = &bytes[..];
        while let Ok(group) = Group::parse(rest) {
            let end = state.fetched.advance(group.length_bytes());
            group.records().filter_map(Result::ok).for_each(|record| self.note(state, end, record));
            state.fetched = end;
            state.ends.push(end);
            rest = &rest[group.length_bytes() as usize..];
        }
        Ok(())
    }

    fn note(&self, state: &mut State, end: Lsn, record: RawRecord<'_>) {
        match Change::decode(&record) {
            Ok(Change::SpaceDropped) => _ = state.dropped.insert(record.page.space, end),
            Ok(change) if change.is_about_a_page() => {
                if state.dropped.contains_key(&record.page.space) {
                    return;
                }
                // No log before this group concerns the chunk.
                let begin = state.fetched;
                let chunk = state.chunks.entry(self.chunk_of(record.page)).or_insert_with(|| {
                    Chunk { applied: begin, durable: begin, ..Chunk::default() }
                });
                if end > chunk.applied {
                    let (kind, body) = (record.kind, record.body.to_vec());
                    chunk.waiting.push_back(Record { end, page: record.page, kind, body });
                }
            }
            _ => {}
        }
    }

    fn chunk_of(&self, page: PageId) -> (SpaceId, u32) {
        (page.space, page.page_no.0 / self.options.chunk_pages)
    }

    fn delay(&self) {
        let most = self.options.max_delay.as_micros() as u64;
        if most > 0 {
            task::sleep(Duration::from_micros(self.below(most)));
        }
    }

    fn reply(
        &self,
        page: PageId,
        version: PageRead,
        into: &mut PageBuf,
    ) -> Result<PageVersion, PageStoreError> {
        if self.below(100) < self.options.unavailable_percent {
            return Err(unavailable(page, "the connection was lost"));
        }
        let wanted = version.position();
        let Some(mut state) = self.fetched_up_to(wanted)? else {
            return Err(unavailable(page, "the log is not durable up to there"));
        };
        let state = &mut *state;
        let (fetched, kept_from) = (state.fetched, self.kept_from(state));
        let dropped = state.dropped.get(&page.space).copied();
        let Some(chunk) = state.chunks.get_mut(&self.chunk_of(page)) else {
            return Err(PageStoreError::Absent(page));
        };
        let is_lazy = self.is_faulty(Fault::ReadBelowAtLeast);
        let most = fetched.0 - wanted.0;
        let ahead = if self.options.lags { self.below(most + 1) } else { most };
        chunk.apply_up_to(if is_lazy { chunk.applied } else { wanted.advance(ahead) })?;
        if self.below(4) == 0 {
            // A restart reads the log from there on.
            let groups = state.ends.partition_point(|end| *end <= chunk.applied);
            let reached = groups.checked_sub(1).map_or(Lsn(0), |last| state.ends[last]);
            chunk.durable = chunk.durable.max(reached);
        }
        chunk.keep_from(kept_from.min(chunk.applied));
        let as_of = match version {
            PageRead::Latest { .. } => chunk.applied,
            PageRead::AsOf(_) if self.is_faulty(Fault::AsOfNewest) => chunk.applied,
            PageRead::AsOf(wanted) if wanted < chunk.kept_from => {
                let kept_from = chunk.kept_from;
                return Err(PageStoreError::TooOld { page, wanted, kept_from });
            }
            PageRead::AsOf(wanted) => wanted,
        };
        let found = chunk.as_of(page, as_of).filter(|_| dropped.is_none_or(|end| as_of < end));
        let found = found.ok_or(PageStoreError::Absent(page))?;
        into.bytes_mut().copy_from_slice(found.bytes());
        let as_of = match version {
            PageRead::Latest { .. } if self.is_faulty(Fault::ReplyTooNew) => fetched,
            PageRead::Latest { .. } => as_of.max(wanted),
            PageRead::AsOf(wanted) => wanted,
        };
        Ok(PageVersion { lsn: into.lsn(), as_of })
    }

    /// The indices of a batch in the order in which replies arrive.
    fn shuffled(&self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for last in (1..count).rev() {
            order.swap(last, self.below(last as u64 + 1) as usize);
        }
        order
    }
}

fn unavailable(page: PageId, reason: &str) -> PageStoreError {
    let place = "the simulated page store".to_owned();
    PageStoreError::Unavailable { page, place, reason: reason.to_owned() }
}

fn damaged(page: PageId, reason: String) -> PageStoreError {
    PageStoreError::Damaged { page, place: "the simulated page store".to_owned(), reason }
}

impl PageStore for SimulatedPages {
    fn read(
        &self,
        page: PageId,
        version: PageRead,
        into: &mut PageBuf,
    ) -> Result<PageVersion, PageStoreError> {
        self.delay();
        self.reply(page, version, into)
    }

    fn read_many(&self, requests: &[PageRequest], sink: &mut dyn PageSink) {
        for (arrived, index) in self.shuffled(requests.len()).into_iter().enumerate() {
            if arrived + 1 == requests.len() && self.is_faulty(Fault::RequestForgotten) {
                return;
            }
            self.delay();
            let PageRequest { page, version } = requests[index];
            let reply = self.reply(page, version, sink.page_mut(index));
            sink.complete(index, reply);
        }
    }

    fn hold(&self, _: &str, position: Lsn) -> Result<Arc<dyn PageLease>, PageStoreError> {
        let mut state = self.state.lock();
        let kept_from = state.chunks.values().map(|chunk| chunk.kept_from).max();
        let kept_from = kept_from.unwrap_or_default().max(state.lost_before);
        if position < kept_from {
            return Err(PageStoreError::NotKept { position, kept_from });
        }
        let lease = Arc::new(PositionLease::new(position));
        state.leases.retain(|lease| lease.strong_count() > 0);
        state.leases.push(Arc::downgrade(&lease));
        Ok(lease)
    }

    fn applied_lsn(&self, page: PageId) -> Lsn {
        let state = self.state.lock();
        let chunk = state.chunks.get(&self.chunk_of(page));
        if self.is_faulty(Fault::CoveredTooEarly) {
            return chunk.map_or(Lsn(0), |chunk| chunk.applied);
        }
        chunk.map_or(Lsn(0), |chunk| chunk.durable)
    }

    fn spaces(&self) -> Vec<SpaceId> {
        let state = self.state.lock();
        let mut spaces: Vec<SpaceId> = state.chunks.keys().map(|(space, _)| *space).collect();
        spaces.retain(|space| !state.dropped.contains_key(space));
        spaces.sort_unstable();
        spaces.dedup();
        spaces
    }
}

#[cfg(test)]
mod tests;
