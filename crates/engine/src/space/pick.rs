//! Reserves free pages in memory, so that an allocation map is latched only briefly.
//!
//! All splits in a space meet at its allocation map. If each split kept the map latched while it
//! moves half a page's entries, splits would be serial, as under one latch for the whole tree. So a
//! split picks its page first, with nothing held, and marks it in the map as its last change:
//!
//! ```text
//!   pick        map latched shared; a free page is found and set aside, the map is pinned
//!   …           the picked page is created and filled; no other thread can pick it
//!   take        map latched exclusively; the page is marked as used, in the same mini-transaction
//! ```
//!
//! Rules:
//!
//! 1. A search for a free page skips the reserved ones, under the mutex of the list.
//! 2. A page is reserved from before it is made until after its mini-transaction has committed. If
//!    that does not happen, the page stays free: the reservation exists in memory only.
//! 3. The pinned map cannot be missing when it is latched, so [`Spaces::take`] may follow changes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use firn_base::{PageId, PageNo, SpaceId};
use firn_buffer::PagePin;
use firn_format::redo::Change;
use firn_format::space::{AllocationMap, PageState, map_page_of};

use crate::error::EngineError;
use crate::mini_transaction::MiniTransaction;
use crate::space::{MapPart, SpaceState, Spaces};

/// A free page that is reserved for the caller (rule 2).
#[must_use]
pub struct PickedPage<'s> {
    state: Arc<SpaceState>,
    page_no: PageNo,
    map: PagePin<'s>,
    is_taken: bool,
}

impl PickedPage<'_> {
    #[must_use]
    pub fn page_no(&self) -> PageNo {
        self.page_no
    }
}

impl Drop for PickedPage<'_> {
    fn drop(&mut self) {
        self.state.picked.lock().retain(|picked| *picked != self.page_no);
        if !self.is_taken {
            self.state.hint.fetch_min(self.page_no.0, Ordering::Relaxed);
        }
    }
}

impl Spaces {
    /// Reserves a free page of `space`. May block; call it with nothing latched.
    ///
    /// # Errors
    /// If the space does not exist or is full, or an error of the page store or the log.
    pub fn pick(&self, space: SpaceId) -> Result<PickedPage<'_>, EngineError> {
        self.prepare(space)?;
        let state = self.pages.run(|| self.state(space))?;
        for MapPart { map, first, from } in state.map_parts(space) {
            let map = self.pages.pool.load(map)?;
            if let Some(index) = self.pick_from(&state, map.id(), first, from)? {
                let page_no = PageNo(first + u32::from(index));
                return Ok(PickedPage { state, page_no, map, is_taken: false });
            }
        }
        state.wants_map.store(true, Ordering::Release);
        Err(EngineError::Invalid(format!("space {space} has no free page")))
    }

    fn pick_from(
        &self,
        state: &SpaceState,
        map: PageId,
        first: u32,
        from: u16,
    ) -> Result<Option<u16>, EngineError> {
        self.pages.run(|| {
            let guard = self.pages.pool.shared(map)?;
            let Some(map) = AllocationMap::new(&guard) else { return Ok(None) };
            let mut picked = state.picked.lock();
            let found = find_free(&map, first, from, &picked);
            if let Some(index) = found {
                let page_no = first + u32::from(index);
                picked.push(PageNo(page_no));
                state.hint.store(page_no + 1, Ordering::Relaxed);
            }
            Ok(found)
        })
    }

    /// Marks a picked page as used within `mtr`. Call it after the other changes, as the last latch
    /// of the mini-transaction, because all splits in the space need the map. Waits for the map's
    /// latch.
    ///
    /// # Panics
    /// If the page was taken before.
    pub fn take(&self, mtr: &mut MiniTransaction<'_>, picked: &mut PickedPage<'_>) {
        assert!(!picked.is_taken, "a picked page is taken once");
        let held = mtr.exclusive(picked.map.id()).expect("a pinned map is cached (rule 3)");
        let index = map_page_of(picked.page_no).1;
        mtr.change(held, &Change::AllocationSet { index, state: PageState::Used });
        picked.is_taken = true;
        self.note_taken(mtr, held, &picked.state);
    }
}

/// The first page from `from` on that is free and not reserved (rule 1).
pub(super) fn find_free(
    map: &AllocationMap<'_>,
    first: u32,
    from: u16,
    picked: &[PageNo],
) -> Option<u16> {
    let mut from = from;
    loop {
        let index = map.find_free(from)?;
        if !picked.contains(&PageNo(first + u32::from(index))) {
            return Some(index);
        }
        from = index + 1;
    }
}

#[cfg(test)]
mod tests;
