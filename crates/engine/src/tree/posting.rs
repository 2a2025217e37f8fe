//! Which threads are posting which separators.
//!
//! Between the two halves of a split, all descents reach the new page by its link. If each of them
//! posted the separator, all would latch the new page and its parent, at the busiest place of the
//! tree, and all but one would find it posted. So a thread first claims the page that it posts for,
//! and others leave it to that thread:
//!
//! ```text
//!   begin(P3) ─► posting ── post ── drop       meanwhile: begin(P3) ─► none, the page is claimed
//! ```
//!
//! The claim is a hint. A thread that fails to post releases its claim all the same, and the next
//! descent by the link tries again. A page whose slot in the table is claimed for another page is
//! posted by every thread.

use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use firn_base::PageId;

const PLACES: usize = 64;
const NOBODY: u64 = 0;

/// Slots for pages whose separators are being posted.
#[derive(Debug)]
pub(super) struct Postings {
    places: Box<[CachePadded<AtomicU64>]>,
}

/// The right of this thread to post a separator, until it is dropped. The default has no slot in
/// the table.
#[derive(Debug, Default)]
#[must_use]
pub(super) struct Posting<'a> {
    place: Option<&'a AtomicU64>,
}

impl Default for Postings {
    fn default() -> Postings {
        Postings { places: (0..PLACES).map(|_| CachePadded::default()).collect() }
    }
}

impl Postings {
    /// Claims the posting of `child`'s separator; `None` if another thread has claimed it.
    pub(super) fn begin(&self, child: PageId) -> Option<Posting<'_>> {
        // Page 0 of space 0 is not a tree page, so no child is zero.
        let word = child.to_u64();
        let place = &*self.places[child.page_no.0 as usize % PLACES];
        match place.compare_exchange(NOBODY, word, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Some(Posting { place: Some(place) }),
            Err(other) if other == word => None,
            Err(_) => Some(Posting::default()),
        }
    }
}

impl Drop for Posting<'_> {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            place.store(NOBODY, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use firn_base::{PageNo, SpaceId};

    use super::*;

    #[test]
    fn one_thread_posts_for_a_page_at_a_time() {
        let postings = Postings::default();
        let page = |number| PageId::new(SpaceId(1), PageNo(number));
        let first = postings.begin(page(3));
        assert!(first.is_some());
        assert!(postings.begin(page(3)).is_none());
        let other = postings.begin(page(3 + PLACES as u32));
        assert!(other.is_some(), "a page without a place is posted by everybody");
        drop(other);
        assert!(postings.begin(page(3)).is_none(), "who has no place takes none away");
        drop(first);
        assert!(postings.begin(page(3)).is_some());
    }
}
