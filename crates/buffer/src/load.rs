//! Loading pages. Everything here may wait and is called with no guard held (rule 4).

use firn_api::{PageRead, PageRequest, PageStoreError, PageVersion};
use firn_base::{Lsn, PageId};
use firn_format::page::PageBuf;

use crate::frame::{Access, Install, OwnedFrame};
use crate::guard::PagePin;
use crate::pending_loads::{Boarding, Landing, Outcome};
use crate::pool::BufferPool;
use crate::statistics::Counter;
use crate::sync::yield_now;

/// How a page is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LoadOptions {
    /// How long to keep it.
    pub access: Access,
    /// The loaded version includes every log group that ends at or before this position. A cached
    /// page counts as the newest version.
    pub at_least: Lsn,
}

impl BufferPool {
    /// Loads a page, unless it is cached. It stays cached until the pin is dropped. Blocks for I/O
    /// and for room; called with no guard held.
    ///
    /// # Errors
    /// The page store's error. It is not remembered: the next call tries again.
    pub fn load(&self, page: PageId) -> Result<PagePin<'_>, PageStoreError> {
        self.load_with(page, LoadOptions::default())
    }

    /// As [`BufferPool::load`].
    ///
    /// # Errors
    /// As [`BufferPool::load`].
    pub fn load_with(
        &self,
        page: PageId,
        options: LoadOptions,
    ) -> Result<PagePin<'_>, PageStoreError> {
        loop {
            if let Some(pin) = self.pin_cached(page) {
                return Ok(pin);
            }
            let is_cached = || self.translation.lookup(page).is_some();
            let outcome = match self.flights.board(page, options.at_least, is_cached) {
                Boarding::Lead => {
                    Leader::new(self, page, self.take_frame(), options.access).fly(options.at_least)
                }
                Boarding::Join(flight) => {
                    self.counters.count(Counter::LoadsJoined);
                    flight.wait()
                }
                // Marked for eviction. The mark may be stale.
                Boarding::Cached => {
                    yield_now();
                    Outcome::Again
                }
            };
            match outcome {
                Outcome::Cached(number) => return Ok(PagePin::adopt(self.frame(number), page)),
                Outcome::Failed(error) => return Err(error),
                Outcome::Again => {}
            }
        }
    }

    /// Announces that these pages will be needed soon; they are read in the background. Errors
    /// appear when the page is loaded; what does not fit the queue is dropped. Does not block.
    pub fn prefetch(&self, pages: &[PageId]) {
        self.prefetch_for(pages, Access::Normal);
    }

    /// As [`BufferPool::prefetch`], for a scan if `access` says so.
    pub fn prefetch_for(&self, pages: &[PageId], access: Access) {
        if self.is_prefetching() {
            let missing = pages.iter().copied().filter(|&page| !self.contains(page));
            self.signals.queue_prefetch(missing.map(|page| (page, access)));
        }
    }

    /// Pins a page that is cached.
    pub(crate) fn pin_cached(&self, page: PageId) -> Option<PagePin<'_>> {
        let (_, frame) = self.frame_of(page)?;
        if !frame.try_pin() {
            return None;
        }
        let pin = PagePin::adopt(frame, page);
        frame.caches(page).then_some(pin)
    }
}

/// The thread that reads a page for all threads that want it. If it is dropped before the load has
/// landed (the store panicked), it tells its joiners.
pub(crate) struct Leader<'a> {
    pool: &'a BufferPool,
    page: PageId,
    frame: Option<OwnedFrame>,
    access: Access,
    has_landed: bool,
}

impl<'a> Leader<'a> {
    /// Leads a load that was begun with [`crate::pending_loads::Flights`], into `frame`.
    pub(crate) fn new(
        pool: &'a BufferPool,
        page: PageId,
        frame: OwnedFrame,
        access: Access,
    ) -> Leader<'a> {
        Leader { pool, page, frame: Some(frame), access, has_landed: false }
    }

    fn fly(mut self, mut at_least: Lsn) -> Outcome {
        loop {
            let request = self.request(at_least);
            self.pool.counters.reads_began(1);
            let reply = self.pool.store.read(request.page, request.version, self.page_mut());
            match self.land(request.version, reply) {
                Landing::Landed(outcome) => return outcome,
                Landing::ReadAgain(newer) => at_least = newer,
            }
        }
    }

    /// The read to make now, at least as new as `at_least`.
    pub(crate) fn request(&self, at_least: Lsn) -> PageRequest {
        let at_least = at_least.max(self.pool.flights.newest_dropped(self.page));
        PageRequest { page: self.page, version: self.pool.read_point.version(at_least) }
    }

    /// The page's bytes, until the load has landed.
    pub(crate) fn page_mut(&mut self) -> &mut PageBuf {
        &mut self.frame.as_mut().expect("a leader has a frame until it lands").slot
    }

    /// Puts the page read for `version` in place, unless it must be read again.
    pub(crate) fn land(
        &mut self,
        version: PageRead,
        reply: Result<PageVersion, PageStoreError>,
    ) -> Landing {
        self.pool.counters.read_ended();
        let page = self.page;
        let was_read = reply.is_ok();
        let reply = reply.and_then(|reply| check(page, version, reply, self.page_mut()));
        let reply = reply.and_then(|reply| self.pool.check_log_has(page, reply));
        let is_too_old = matches!(reply, Err(PageStoreError::TooOld { .. }));
        if is_too_old && self.pool.read_point.has_passed(version) {
            return Landing::ReadAgain(version.position());
        }
        self.pool.read_point.wait_until_shown(version);
        let as_of = reply.as_ref().map_or(version.position(), |reply| reply.as_of);
        let (pool, frame, access) = (self.pool, &mut self.frame, self.access);
        let landing = pool.flights.land(page, as_of, |joiners| match reply {
            Ok(_) => {
                let OwnedFrame { number, slot } = frame.take().expect("a leader has a frame");
                let install = Install { page, stored_lsn: slot.lsn(), pins: 1 + joiners, access };
                drop(pool.frame(number).install(slot, &install));
                let entered = pool.translation.insert(page, number);
                assert!(entered.is_ok(), "{page} was cached while it was loaded");
                Outcome::Cached(number)
            }
            Err(error) => {
                pool.counters.count(Counter::LoadsFailed);
                Outcome::Failed(error)
            }
        });
        self.has_landed = matches!(landing, Landing::Landed(_));
        match &landing {
            Landing::Landed(Outcome::Cached(number)) if access == Access::Scan => {
                pool.clock.note_scanned(*number, page);
            }
            Landing::Landed(Outcome::Cached(_)) => {}
            _ if was_read => pool.tell_released(page, None),
            _ => {}
        }
        landing
    }
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        if let Some(frame) = self.frame.take() {
            self.pool.free.push(frame);
        }
        if !self.has_landed {
            let abandoned = PageStoreError::Io {
                place: self.page.to_string(),
                reason: "its reader gave up".to_owned(),
            };
            self.pool.flights.land(self.page, Lsn::MAX, |_| Outcome::Failed(abandoned));
        }
    }
}

impl BufferPool {
    /// Whether all changes of the page are in the log of this node.
    fn check_log_has(
        &self,
        page: PageId,
        reply: PageVersion,
    ) -> Result<PageVersion, PageStoreError> {
        match self.log_end.as_ref().map(|end| end()) {
            Some(end) if reply.lsn > end => {
                Err(PageStoreError::AheadOfLog { page, lsn: reply.lsn, end })
            }
            _ => Ok(reply),
        }
    }
}

/// Whether the reply matches the request.
fn check(
    page: PageId,
    version: PageRead,
    reply: PageVersion,
    found: &PageBuf,
) -> Result<PageVersion, PageStoreError> {
    let reason = if found.page_id() != page {
        format!("{} came instead", found.page_id())
    } else if found.lsn() != reply.lsn || reply.as_of < version.position() {
        format!("{reply:?} came for {version:?}, with a page as of {}", found.lsn())
    } else {
        return Ok(reply);
    };
    Err(PageStoreError::Damaged { page, place: "the page store".to_owned(), reason })
}

#[cfg(test)]
mod tests;
