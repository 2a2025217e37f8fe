//! The space kept free in the page files and the page map, so that log can be applied however full
//! the disk is. Applied log can be released, and its files take new log. Commits, rollbacks and the
//! end of the process therefore never wait until the disk has room.
//!
//! ```text
//!   slots of the page files │ stored images │ pending new pages │ reserve          │
//!                                                               │ half  │ quarter  │
//!                                              free slots reach │ Low   │ Scarce   │
//! ```
//!
//! A page with a stored image needs a free slot only for a moment: its new image frees the old
//! slot. A new page takes one for good, so work that creates pages is refused in time.

use std::time::Duration;

use firn_api::Room;
use firn_format::page::PAGE_SIZE;

/// Decides when page files grow for the reserve, and how much room is left.
#[derive(Debug)]
pub(super) struct Reserve {
    /// Slots kept free beyond those that pending pages will take.
    slots: u32,
    /// How long the store does not ask a disk that was full.
    retry_delay: Duration,
    retry_at: Duration,
}

impl Reserve {
    pub(super) fn new(reserve_bytes: u64, retry_delay: Duration) -> Reserve {
        let slots = u32::try_from(reserve_bytes / PAGE_SIZE as u64).unwrap_or(u32::MAX);
        Reserve { slots, retry_delay, retry_at: Duration::ZERO }
    }

    /// Slots that the page files lack, with `free` free slots and `new_pages` pending pages; 0
    /// while the disk is not asked.
    pub(super) fn missing(&self, now: Duration, free: u32, new_pages: usize) -> u32 {
        let wanted = self.slots.saturating_add(u32::try_from(new_pages).unwrap_or(u32::MAX));
        if now < self.retry_at { 0 } else { wanted.saturating_sub(free) }
    }

    /// Notes that the disk was full.
    pub(super) fn note_refusal(&mut self, now: Duration) {
        self.retry_at = now + self.retry_delay;
    }

    /// How much room is left. `kept_share`: how much of its own reserve the map has, from 0 to 1.
    pub(super) fn room(&self, free: u32, new_pages: usize, kept_share: f64) -> Room {
        let spare = u64::from(free).saturating_sub(new_pages as u64);
        let slots = u64::from(self.slots);
        if spare >= slots / 2 && kept_share >= 0.5 {
            Room::Plenty
        } else if spare >= slots / 4 && kept_share >= 0.25 {
            Room::Low
        } else {
            Room::Scarce
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_refused_in_two_steps_as_the_reserve_shrinks() {
        let reserve = Reserve::new(16 * PAGE_SIZE as u64, Duration::from_secs(1));
        assert_eq!(reserve.room(8, 0, 1.0), Room::Plenty);
        assert_eq!(reserve.room(8, 1, 1.0), Room::Low);
        assert_eq!(reserve.room(3, 0, 1.0), Room::Scarce);
        assert_eq!(reserve.room(0, 9, 1.0), Room::Scarce);
        assert_eq!(reserve.room(20, 0, 0.4), Room::Low);
        assert_eq!(reserve.room(20, 0, 0.2), Room::Scarce);
    }

    #[test]
    fn a_disk_that_refused_is_left_alone_for_a_while() {
        let mut reserve = Reserve::new(16 * PAGE_SIZE as u64, Duration::from_secs(1));
        let second = Duration::from_secs(1);
        assert_eq!(reserve.missing(second, 10, 4), 10);
        assert_eq!(reserve.missing(second, 20, 4), 0);
        reserve.note_refusal(second);
        assert_eq!(reserve.missing(second * 3 / 2, 10, 4), 0);
        assert_eq!(reserve.missing(second * 2, 10, 4), 10);
    }
}
