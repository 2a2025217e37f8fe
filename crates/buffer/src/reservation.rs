//! New pages. Frames are reserved first, with nothing held, so that creating a page inside a
//! mini-transaction neither waits nor fails (rule 4).

use std::fmt;

use firn_base::{Lsn, PageId};

use crate::frame::{Access, Install, OwnedFrame};
use crate::guard::ExclusiveGuard;
use crate::pool::BufferPool;

/// Frames reserved for new pages. Unused frames are returned when it is dropped.
#[must_use]
pub struct FrameReservation<'a> {
    pool: &'a BufferPool,
    frames: Vec<OwnedFrame>,
    count: usize,
}

impl FrameReservation<'_> {
    /// How many pages can still be created.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.frames.len()
    }
}

impl fmt::Debug for FrameReservation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameReservation").field("remaining", &self.remaining()).finish()
    }
}

impl Drop for FrameReservation<'_> {
    fn drop(&mut self) {
        for frame in self.frames.drain(..) {
            self.pool.free.push(frame);
        }
        self.pool.reserved.give_back(self.count);
    }
}

impl BufferPool {
    /// Reserves `count` frames. Blocks for room; called with no guard held, and not by a thread
    /// that has a reservation or a [`crate::Turn`].
    ///
    /// # Panics
    /// If more than a quarter of the pool is requested.
    pub fn reserve(&self, count: usize) -> FrameReservation<'_> {
        assert!(count <= self.frame_count() / 4, "too many frames to reserve at once");
        self.reserved.take(count);
        FrameReservation { pool: self, frames: self.take_frames(count), count }
    }

    /// Begins the life of a page: zeroed, latched exclusively, cached. If an earlier life of the
    /// page is still cached, its frame is used; the call waits for readers that came by an old
    /// pointer, as for any latch. If the guard is released without
    /// [`ExclusiveGuard::mark_changed`], the page is dropped again. No I/O.
    ///
    /// # Panics
    /// If the reservation is exhausted or belongs to another pool.
    pub fn create<'a>(
        &'a self,
        reservation: &mut FrameReservation<'a>,
        page: PageId,
    ) -> ExclusiveGuard<'a> {
        assert!(std::ptr::eq(reservation.pool, self), "the reservation is of another pool");
        loop {
            if let Some((number, latch)) = self.latch_exclusive(page) {
                return ExclusiveGuard::created(self, number, page, latch);
            }
            let frame = reservation.frames.pop().expect("a frame is reserved for each new page");
            match self.enter_new(frame, page) {
                Ok(guard) => return guard,
                Err(frame) => reservation.frames.push(frame),
            }
        }
    }

    /// Enters `page` in an owned frame; returns the frame if the page is cached by now.
    fn enter_new(&self, frame: OwnedFrame, page: PageId) -> Result<ExclusiveGuard<'_>, OwnedFrame> {
        let OwnedFrame { number, mut slot } = frame;
        slot.set_lsn(Lsn(0));
        self.flights.supersede(page, || {
            if self.translation.lookup(page).is_some() {
                return Err(OwnedFrame { number, slot });
            }
            let install = Install { page, stored_lsn: Lsn(0), pins: 0, access: Access::Normal };
            let latch = self.frame(number).install(slot, &install);
            // Entries are made only under the mutex of the page's flight (rule 6), and there was
            // none.
            let entered = self.translation.insert(page, number);
            assert!(entered.is_ok(), "{page} was cached while it was created");
            self.tell_created(page);
            Ok(ExclusiveGuard::created(self, number, page, latch))
        })
    }
}

#[cfg(test)]
mod tests;
