//! Allocation maps.

use firn_base::PageNo;

use crate::page::{PAGE_SIZE, PageBuf, PageKind};

pub(crate) const USED: usize = 32;
pub(crate) const RETIRED: usize = 36;
pub(crate) const STATES: usize = 64;
pub(crate) const MAP_BYTES: usize = PAGE_SIZE - STATES;

/// The number of pages that an allocation map covers.
pub const PAGES_PER_MAP: u32 = MAP_BYTES as u32 * 4;

/// Whether a page of a space is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PageState {
    /// Not in use.
    Free = 0,
    /// Part of a tree, a stream or a long value, or of the space's own bookkeeping.
    Used = 1,
    /// No longer reachable, but an operation that found it earlier may still read it. Free after a
    /// restart.
    Retired = 2,
}

impl PageState {
    #[must_use]
    pub fn from_u8(number: u8) -> Option<PageState> {
        Some(match number {
            0 => PageState::Free,
            1 => PageState::Used,
            2 => PageState::Retired,
            _ => return None,
        })
    }
}

/// The allocation map that has the state of `page_no`, and the index of `page_no` in it.
#[must_use]
pub const fn map_page_of(page_no: PageNo) -> (PageNo, u16) {
    let first = page_no.0 - page_no.0 % PAGES_PER_MAP;
    (PageNo(first + 1), (page_no.0 - first) as u16)
}

/// An allocation map, read only.
#[derive(Debug, Clone, Copy)]
pub struct AllocationMap<'a> {
    page: &'a PageBuf,
    states: &'a [u8],
}

impl<'a> AllocationMap<'a> {
    /// Views `page` as an allocation map; `None` if it is a page of another kind.
    #[must_use]
    pub fn new(page: &'a PageBuf) -> Option<AllocationMap<'a>> {
        (page.kind() == Some(PageKind::AllocationMap))
            .then(|| AllocationMap { page, states: &page.bytes()[STATES..] })
    }

    /// The first page that the map covers.
    #[must_use]
    pub fn first_page(&self) -> PageNo {
        let own = self.page.page_id().page_no.0;
        PageNo(own - own % PAGES_PER_MAP)
    }

    /// The state of the page at `index`; `None` past the end, or for undefined bits.
    #[must_use]
    pub fn state(&self, index: u16) -> Option<PageState> {
        let byte = self.states.get(usize::from(index / 4))?;
        PageState::from_u8(byte >> (index % 4 * 2) & 3)
    }

    /// The first page from `from` on that is free.
    #[must_use]
    pub fn find_free(&self, from: u16) -> Option<u16> {
        self.find(PageState::Free, from)
    }

    /// The first page from `from` on in this state.
    #[must_use]
    pub fn find(&self, state: PageState, from: u16) -> Option<u16> {
        let bytes = self.states.iter().enumerate().skip(usize::from(from / 4));
        for (number, &byte) in bytes {
            if state == PageState::Free && byte & 0b0101_0101 == 0b0101_0101 {
                continue;
            }
            let first = (number * 4) as u16;
            let found = (first..first + 4)
                .find(|&index| index >= from && byte >> (index % 4 * 2) & 3 == state as u8);
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// The number of used pages, including the map itself.
    #[must_use]
    pub fn used_count(&self) -> u32 {
        self.page.get_u32(USED)
    }

    /// The number of retired pages.
    #[must_use]
    pub fn retired_count(&self) -> u32 {
        self.page.get_u32(RETIRED)
    }

    /// The number of free pages.
    #[must_use]
    pub fn free_count(&self) -> u32 {
        PAGES_PER_MAP.saturating_sub(self.used_count()).saturating_sub(self.retired_count())
    }

    /// Whether the counts match the states, and every state is defined.
    #[must_use]
    pub fn is_consistent(&self) -> bool {
        let count = |state| {
            let found = (0..PAGES_PER_MAP as u16).filter(|&index| self.state(index) == Some(state));
            found.count() as u32
        };
        count(PageState::Used) == self.used_count()
            && count(PageState::Retired) == self.retired_count()
            && count(PageState::Free) == self.free_count()
    }
}
