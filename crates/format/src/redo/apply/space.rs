//! Allocation maps: states, and the counts that follow from them.

use firn_base::PageId;

use super::{ApplyError, reformat};
use crate::page::{PageBuf, PageKind};
use crate::space::{MAP_BYTES, PageState, RETIRED, STATES, USED, map_page_of};

/// An empty map, in which only the space's own pages are used: the map, and the header before the
/// first map.
pub(super) fn init(page: &mut PageBuf, id: PageId) {
    reformat(page, id, PageKind::AllocationMap);
    let (_, own) = map_page_of(id.page_no);
    let first_map = id.page_no.0 == u32::from(own);
    for index in if first_map { 0..own + 1 } else { own..own + 1 } {
        put_state(page, index.into(), PageState::Used);
    }
    page.put_u32(USED, if first_map { u32::from(own) + 1 } else { 1 });
}

pub(super) fn set_state(
    page: &mut PageBuf,
    index: usize,
    state: PageState,
) -> Result<(), ApplyError> {
    let id = page.page_id();
    let Some(&byte) = page.bytes()[STATES..].get(index / 4) else {
        return Err(ApplyError::Mismatch { page: id, what: "the map does not cover the page" });
    };
    let Some(old) = PageState::from_u8(byte >> (index % 4 * 2) & 3) else {
        return Err(ApplyError::Damaged { page: id, what: "page state" });
    };
    put_state(page, index, state);
    count(page, old, u32::wrapping_sub);
    count(page, state, u32::wrapping_add);
    Ok(())
}

fn put_state(page: &mut PageBuf, index: usize, state: PageState) {
    debug_assert!(index / 4 < MAP_BYTES);
    let byte = &mut page.bytes_mut()[STATES + index / 4];
    let shift = index % 4 * 2;
    *byte = *byte & !(3 << shift) | (state as u8) << shift;
}

fn count(page: &mut PageBuf, state: PageState, change: fn(u32, u32) -> u32) {
    let field = match state {
        PageState::Free => return,
        PageState::Used => USED,
        PageState::Retired => RETIRED,
    };
    let number = change(page.get_u32(field), 1);
    page.put_u32(field, number);
}
