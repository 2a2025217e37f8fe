//! Taking the latch of a cached page.
//!
//! ```text
//!   look up the frame ── try the latch ── is it (still) this page's frame? ── guard
//!                             │ busy
//!                             └─ pin, is it this page's frame?, wait for the latch, unpin ── guard
//! ```
//!
//! A thread may hold latches of other pages while it waits here. It pins the frame before it waits,
//! so the latch belongs to its page for the whole wait. Without the pin, the frame could go to a
//! page elsewhere in the latch order of rule 5, and two threads could wait for each other.

use firn_base::PageId;

use crate::frame::{Access, ExclusiveLatch, Frame, SharedLatch};
use crate::guard::{ExclusiveGuard, Miss, SharedGuard};
use crate::pool::BufferPool;
use crate::statistics::Counter;
use crate::sync::{SPINS, spin, yield_now};

impl BufferPool {
    /// Latches a cached page for reading. Waits for a writer.
    ///
    /// # Errors
    /// [`Miss`] if the page is not cached.
    pub fn shared(&self, page: PageId) -> Result<SharedGuard<'_>, Miss> {
        self.shared_for(page, Access::Normal)
    }

    /// As [`BufferPool::shared`]; an access by a scan does not prolong the page's stay in the pool.
    ///
    /// # Errors
    /// [`Miss`] if the page is not cached.
    pub fn shared_for(&self, page: PageId, access: Access) -> Result<SharedGuard<'_>, Miss> {
        loop {
            let (_, frame) = self.frame_of(page).ok_or(Miss(page))?;
            let latch = frame.latch.try_read().or_else(|| self.wait_shared(frame, page));
            if let Some(latch) = latch.filter(|_| frame.caches(page)) {
                self.note_hit(frame, access);
                return Ok(SharedGuard::new(frame, latch));
            }
        }
    }

    /// Latches a cached page for writing. Waits for every holder of its latch.
    ///
    /// # Errors
    /// [`Miss`] if the page is not cached.
    pub fn exclusive(&self, page: PageId) -> Result<ExclusiveGuard<'_>, Miss> {
        let (number, latch) = self.latch_exclusive(page).ok_or(Miss(page))?;
        self.note_hit(self.frame(number), Access::Normal);
        Ok(ExclusiveGuard::new(self, number, page, latch))
    }

    /// Latches a cached page for writing if no thread has it latched, else `None`. Does not block,
    /// so it may be called against the latch order (rule 5).
    ///
    /// # Errors
    /// [`Miss`] if the page is not cached.
    pub fn try_exclusive(&self, page: PageId) -> Result<Option<ExclusiveGuard<'_>>, Miss> {
        let Some((number, latch)) = self.try_latch_exclusive(page)? else { return Ok(None) };
        self.note_hit(self.frame(number), Access::Normal);
        Ok(Some(ExclusiveGuard::new(self, number, page, latch)))
    }

    /// As [`BufferPool::try_exclusive`], for an access that does not count as a use of the page.
    pub(crate) fn try_latch_exclusive(
        &self,
        page: PageId,
    ) -> Result<Option<(u32, ExclusiveLatch<'_>)>, Miss> {
        loop {
            let (number, frame) = self.frame_of(page).ok_or(Miss(page))?;
            let Some(latch) = frame.latch.try_write() else { return Ok(None) };
            if frame.caches(page) {
                return Ok(Some((number, latch)));
            }
        }
    }

    /// The frame that caches `page`, with its exclusive latch; waits for the latch.
    pub(crate) fn latch_exclusive(&self, page: PageId) -> Option<(u32, ExclusiveLatch<'_>)> {
        loop {
            let (number, frame) = self.frame_of(page)?;
            let latch = frame.latch.try_write().or_else(|| self.wait_exclusive(frame, page));
            if let Some(latch) = latch.filter(|_| frame.caches(page)) {
                return Some((number, latch));
            }
        }
    }

    fn note_hit(&self, frame: &Frame, access: Access) {
        frame.touch(access);
        self.counters.count(Counter::Hits);
    }

    #[cold]
    fn wait_shared<'a>(&'a self, frame: &'a Frame, page: PageId) -> Option<SharedLatch<'a>> {
        self.counters.count(Counter::BlockedShared);
        self.pinned(frame, page, || {
            self.spin_for(|| frame.latch.try_read()).unwrap_or_else(|| frame.latch.read())
        })
    }

    #[cold]
    fn wait_exclusive<'a>(&'a self, frame: &'a Frame, page: PageId) -> Option<ExclusiveLatch<'a>> {
        self.counters.count(Counter::BlockedExclusive);
        self.pinned(frame, page, || {
            self.spin_for(|| frame.latch.try_write()).unwrap_or_else(|| frame.latch.write())
        })
    }

    /// Waits while `frame` is pinned for `page`; nothing if it is not this page's frame (rule 3).
    fn pinned<L>(&self, frame: &Frame, page: PageId, wait: impl FnOnce() -> L) -> Option<L> {
        if frame.try_pin() {
            let latch = frame.caches(page).then(wait);
            frame.unpin();
            if latch.is_some() {
                return latch;
            }
        }
        // Marked for eviction. The mark may be stale.
        yield_now();
        None
    }

    fn spin_for<L>(&self, mut attempt: impl FnMut() -> Option<L>) -> Option<L> {
        let mut spins = 0;
        let latch = loop {
            spin();
            spins += 1;
            let latch = attempt();
            if latch.is_some() || spins == SPINS {
                break latch;
            }
        };
        self.counters.add(Counter::Spins, u64::from(spins));
        latch
    }
}

#[cfg(test)]
mod tests;
