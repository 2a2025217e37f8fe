//! Making room: a clock with a small reference count, the free frames, and what happens when no
//! page can be evicted.
//!
//! ```text
//!   frame under the hand
//!     pinned or latched ........................... stays
//!     wanted since (count 1..3) ................... count − 1, stays
//!     lsn ≤ what the page store has ............... dropped
//!     lsn ≤ durable, the store is elsewhere ....... dropped
//!     lsn ≤ durable, the store takes the image .... dropped
//!     lsn ≤ durable, the store has no room ........ stays; after some more frames wait_for_room()
//!     lsn > durable ............................... stays; after some more frames wait for the log
//! ```
//!
//! A page enters with count 1, or 0 if a scan loaded it. Every access except a scan's adds one, up
//! to 3. Scans have a sixteenth of the frames to themselves, in the order in which they loaded the
//! pages. While they have more, the oldest of these pages that no other operation wanted is evicted
//! before the hand moves. A scan therefore neither displaces other pages nor makes them look old.
//! Rules 3, 4 and 8.

use std::time::Duration;

use firn_api::Offer;
use firn_base::{Lsn, PageId};
use firn_format::page::PageBuf;

use crate::frame::{Frame, OwnedFrame};
use crate::memory::slots::PageSlot;
use crate::pool::BufferPool;
use crate::statistics::Counter;
use crate::sync::Ticket;

/// Rounds of the clock after which every evictable page is gone.
const ROUNDS: usize = 5;
/// How many frames the clock still passes after the first dirty page that it cannot evict yet. A
/// clean page may be near, but passing millions of dirty ones would take longer than the wait.
const LOOK_AHEAD: usize = 4096;
/// How long to wait for the log, a pin or a latch before the clock makes another round.
const PAUSE: Duration = Duration::from_millis(1);

/// Why a round of the clock found nothing.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Blocked {
    store_full: bool,
    wait_for_log: Option<Lsn>,
}

impl Blocked {
    fn is_set(self) -> bool {
        self.store_full || self.wait_for_log.is_some()
    }
}

/// What may be evicted, as known when the round began.
struct Round {
    /// Whether the page store can return every page as the pool shows it, without being handed
    /// images.
    all_clean: bool,
    durable: Lsn,
    blocked: Blocked,
}

impl BufferPool {
    /// A frame for a page. May wait; called with nothing held.
    pub(crate) fn take_frame(&self) -> OwnedFrame {
        loop {
            let ticket = self.free.freed.listen();
            match self.try_take_frame() {
                Ok(frame) => return frame,
                Err(blocked) => self.wait_for_room(blocked, ticket),
            }
        }
    }

    /// `count` frames. May wait, and holds none while waiting: two callers could otherwise wait for
    /// each other.
    pub(crate) fn take_frames(&self, count: usize) -> Vec<OwnedFrame> {
        loop {
            let mut frames = Vec::with_capacity(count);
            let blocked = loop {
                if frames.len() == count {
                    return frames;
                }
                match self.try_take_frame() {
                    Ok(frame) => frames.push(frame),
                    Err(blocked) => break blocked,
                }
            };
            frames.into_iter().for_each(|frame| self.free.push(frame));
            // Only now: a caller that its own frames woke would never wait. One that others freed
            // meanwhile is found after the pause.
            let ticket = self.free.freed.listen();
            self.wait_for_room(blocked, ticket);
        }
    }

    pub(crate) fn try_take_frame(&self) -> Result<OwnedFrame, Blocked> {
        let (frame, is_low) = self.free.pop();
        if is_low {
            self.signals.stock_is_low.notify_all();
        }
        frame.map_or_else(|| self.evict_one(), Ok)
    }

    /// Evicts until the stock of free frames is full; waits at most once.
    pub(crate) fn restock(&self) {
        while !self.free.is_stocked() {
            let ticket = self.free.freed.listen();
            match self.evict_one() {
                Ok(frame) => self.free.push(frame),
                Err(blocked) => return self.wait_for_room(blocked, ticket),
            }
        }
    }

    fn wait_for_room(&self, blocked: Blocked, before: Ticket) {
        self.counters.count(Counter::EvictionWaits);
        if blocked.store_full {
            if let Some(images) = &self.local_images {
                images.wait_for_room();
            }
            return;
        }
        if let (Some(lsn), Some(request)) = (blocked.wait_for_log, &self.request_durable) {
            request(lsn);
        }
        self.free.freed.wait(before, Some(PAUSE));
    }

    /// Turns the clock until a page is evicted; an error after several rounds without one.
    fn evict_one(&self) -> Result<OwnedFrame, Blocked> {
        let mut round = Round {
            all_clean: self.read_point.is_applied(),
            durable: (self.durable)(),
            blocked: Blocked::default(),
        };
        while let Some((number, page)) = self.clock.next_scanned() {
            let frame = self.frame(number);
            if frame.caches(page)
                && frame.is_cold()
                && let Some(frame) = self.try_evict(number, &mut round)
            {
                return Ok(frame);
            }
        }
        let mut frames_left = ROUNDS * self.frame_count();
        while frames_left > 0 {
            if let Some(frame) = self.try_evict(self.clock.tick(), &mut round) {
                return Ok(frame);
            }
            let limit = if round.blocked.is_set() { LOOK_AHEAD } else { usize::MAX };
            frames_left = (frames_left - 1).min(limit);
        }
        Err(round.blocked)
    }

    fn try_evict(&self, number: u32, round: &mut Round) -> Option<OwnedFrame> {
        let frame = self.frame(number);
        if !frame.looks_evictable() || !frame.grow_cold() || !self.may_go(frame, round) {
            return None;
        }
        let mut latch = frame.latch.try_write()?;
        if !frame.try_claim() {
            return None;
        }
        if let Some(page) = frame.page() {
            let content = latch.as_deref().expect("a cached page has its bytes");
            if !self.store_has(page, frame, content, round) {
                frame.unclaim();
                return None;
            }
            self.flights.note_dropped(page, frame.lsn());
            self.forget(number, page, Some(content));
        }
        Some(OwnedFrame { number, slot: latch.take().expect("a claimed frame has its slot") })
    }

    /// Ensures that the page store can return the page; false if that is not possible now.
    fn store_has(&self, page: PageId, frame: &Frame, content: &PageBuf, round: &mut Round) -> bool {
        if !self.may_go(frame, round) {
            return false;
        }
        let images = match &self.local_images {
            Some(images) if !round.is_clean(frame) && !self.store.is_covered(page, frame.lsn()) => {
                images
            }
            _ => {
                self.counters.count(Counter::EvictionsClean);
                return true;
            }
        };
        match images.offer(content) {
            Offer::Taken => self.counters.count(Counter::EvictionsOffered),
            Offer::NotNeeded => self.counters.count(Counter::EvictionsClean),
            Offer::Full => {
                self.counters.count(Counter::OffersFull);
                round.blocked.store_full = true;
                return false;
            }
        }
        true
    }

    /// Whether the page is clean, or its log is durable and the store has had room so far or needs
    /// none.
    fn may_go(&self, frame: &Frame, round: &mut Round) -> bool {
        if round.is_clean(frame) {
            return true;
        }
        let lsn = frame.lsn();
        if lsn > round.durable {
            round.blocked.wait_for_log = round.blocked.wait_for_log.max(Some(lsn));
            return false;
        }
        let is_covered = |page| self.store.is_covered(page, lsn);
        !round.blocked.store_full || frame.page().is_some_and(is_covered)
    }

    /// Drops a page whose latch is held, whether or not the page store has it. If another thread
    /// has pinned the frame, the clock takes it later; until then it caches nothing.
    pub(crate) fn drop_page(&self, number: u32, page: PageId, latch: &mut Option<PageSlot>) {
        self.forget(number, page, None);
        if self.frame(number).try_claim() {
            let slot = latch.take().expect("a claimed frame has its slot");
            self.free.push(OwnedFrame { number, slot });
        }
    }

    /// The page is no longer cached. If it may come back, the flights already know its version
    /// (rule 8).
    fn forget(&self, number: u32, page: PageId, image: Option<&PageBuf>) {
        self.frame(number).forget_page();
        self.translation.remove(page, number);
        self.tell_released(page, image);
    }
}

impl Round {
    fn is_clean(&self, frame: &Frame) -> bool {
        self.all_clean || frame.lsn() <= frame.stored_lsn()
    }
}

#[cfg(test)]
mod tests;
