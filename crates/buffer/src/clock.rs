//! The order in which eviction examines frames: a hand that goes round. While scans have more than
//! their share of the frames, the pages that they loaded come first, oldest first.

use std::collections::VecDeque;

use firn_base::PageId;

use crate::sync::{AtomicU64, Mutex, Ordering};

/// Scans may keep one part in this many of the frames.
const SCAN_SHARE: usize = 16;

/// The position of the clock's hand, and the pages that scans loaded.
pub(crate) struct Clock {
    hand: AtomicU64,
    scanned: Mutex<VecDeque<(u32, PageId)>>,
    frame_count: usize,
}

impl Clock {
    pub(crate) fn new(frame_count: usize) -> Clock {
        Clock { hand: AtomicU64::new(0), scanned: Mutex::default(), frame_count }
    }

    /// The next frame under the hand.
    pub(crate) fn tick(&self) -> u32 {
        (self.hand.fetch_add(1, Ordering::Relaxed) % self.frame_count as u64) as u32
    }

    /// A scan has loaded `page`.
    pub(crate) fn note_scanned(&self, frame: u32, page: PageId) {
        let mut scanned = self.scanned.lock();
        if scanned.len() == self.frame_count {
            scanned.pop_front();
        }
        scanned.push_back((frame, page));
    }

    /// The oldest page that a scan loaded, while scans have more than their share.
    pub(crate) fn next_scanned(&self) -> Option<(u32, PageId)> {
        let mut scanned = self.scanned.lock();
        if scanned.len() > self.frame_count / SCAN_SHARE { scanned.pop_front() } else { None }
    }
}
