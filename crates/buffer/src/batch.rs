//! Loading many pages with one call of the page store.
//!
//! ```text
//!   pages ── not cached and not being read ──► lead each load ── one read_many ──► land one by one
//!        └─ another thread reads them ──────► its load
//! ```
//!
//! All frames are taken before the first load begins, or none, so no thread waits for a load whose
//! leader waits for room.

use firn_api::{PageRequest, PageSink, PageStoreError, PageVersion};
use firn_base::{Lsn, PageId};
use firn_format::page::PageBuf;

use crate::frame::Access;
use crate::guard::PagePin;
use crate::load::Leader;
use crate::pending_loads::{Landing, Outcome};
use crate::pool::BufferPool;

/// The most pages that one call reads.
const MAX_BATCH_PAGES: usize = 32;
/// One batch takes at most one part in this many of the frames.
const BATCH_SHARE: usize = 8;

/// A call in progress, and its results so far.
struct Batch<'a> {
    pool: &'a BufferPool,
    requests: Vec<PageRequest>,
    leaders: Vec<Leader<'a>>,
    pins: Vec<PagePin<'a>>,
    /// Pages that must be read again, and the lowest version to read.
    again: Vec<(usize, Lsn)>,
    error: Option<PageStoreError>,
}

/// The result of a batch of loads.
pub(crate) struct Loaded<'a> {
    /// The pages that were read; they stay cached until these are dropped.
    pub(crate) pins: Vec<PagePin<'a>>,
    /// The first error.
    pub(crate) error: Option<PageStoreError>,
}

impl BufferPool {
    /// The most pages of one call.
    pub(crate) fn batch_pages(&self) -> usize {
        (self.frame_count() / BATCH_SHARE).clamp(1, MAX_BATCH_PAGES)
    }

    /// Loads several pages. All stay cached until the pins are dropped. Blocks; called with no
    /// guard held.
    ///
    /// # Errors
    /// The first error; the other pages may or may not be cached.
    ///
    /// # Panics
    /// If more than a quarter of the pool is requested: the pins could fill it.
    pub fn load_many(&self, pages: &[PageId]) -> Result<Vec<PagePin<'_>>, PageStoreError> {
        assert!(pages.len() <= self.frame_count() / 4, "too many pages to pin at once");
        let mut kept = Vec::with_capacity(pages.len());
        for batch in pages.chunks(self.batch_pages()) {
            let loaded = self.load_missing(batch, Access::Normal);
            if let Some(error) = loaded.error {
                return Err(error);
            }
            kept.extend(loaded.pins);
        }
        // A page that was not read here was cached, or another thread reads it.
        pages.iter().map(|&page| self.load(page)).collect()
    }

    /// Reads, with one call, those of `pages` that are not cached and that no thread is reading; at
    /// most [`BufferPool::batch_pages`]. Blocks; called with no guard held.
    pub(crate) fn load_missing(&self, pages: &[PageId], access: Access) -> Loaded<'_> {
        let missing: Vec<PageId> =
            pages.iter().copied().filter(|&page| !self.contains(page)).collect();
        let mut frames = self.take_frames(missing.len());
        let mut batch = Batch {
            pool: self,
            requests: Vec::new(),
            leaders: Vec::with_capacity(missing.len()),
            pins: Vec::new(),
            again: Vec::new(),
            error: None,
        };
        for page in missing {
            let is_cached = || self.translation.lookup(page).is_some();
            if self.flights.lead(page, is_cached) {
                let frame = frames.pop().expect("there is a frame for each page");
                batch.leaders.push(Leader::new(self, page, frame, access));
            }
        }
        frames.into_iter().for_each(|frame| self.free.push(frame));
        batch.fly();
        Loaded { pins: batch.pins, error: batch.error }
    }
}

impl Batch<'_> {
    /// Reads until every load has landed.
    fn fly(&mut self) {
        let mut wanted = vec![Lsn(0); self.leaders.len()];
        while !self.leaders.is_empty() {
            let leaders = self.leaders.iter().zip(&wanted);
            self.requests = leaders.map(|(leader, wanted)| leader.request(*wanted)).collect();
            self.pool.counters.reads_began(self.requests.len());
            let requests = self.requests.clone();
            self.pool.store.read_many(&requests, self);

            let mut again = std::mem::take(&mut self.again);
            again.sort_unstable();
            wanted = again.iter().map(|(_, newer)| *newer).collect();
            let leaders = std::mem::take(&mut self.leaders).into_iter().enumerate();
            let is_again = |index| again.iter().any(|(wanted, _)| *wanted == index);
            let leaders = leaders.filter(|(index, _)| is_again(*index));
            self.leaders = leaders.map(|(_, leader)| leader).collect();
        }
    }
}

impl PageSink for Batch<'_> {
    fn page_mut(&mut self, index: usize) -> &mut PageBuf {
        self.leaders[index].page_mut()
    }

    fn complete(&mut self, index: usize, reply: Result<PageVersion, PageStoreError>) {
        let PageRequest { page, version } = self.requests[index];
        match self.leaders[index].land(version, reply) {
            Landing::Landed(Outcome::Cached(number)) => {
                self.pins.push(PagePin::adopt(self.pool.frame(number), page));
            }
            Landing::Landed(Outcome::Failed(error)) => _ = self.error.get_or_insert(error),
            Landing::Landed(Outcome::Again) => {}
            Landing::ReadAgain(newer) => self.again.push((index, newer)),
        }
    }
}

#[cfg(test)]
mod tests;
