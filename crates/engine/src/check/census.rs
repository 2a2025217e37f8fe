//! Used pages of a space, as their users and as the allocation maps have them.

use firn_base::{PageId, PageNo, SpaceId};
use firn_format::space::{
    AllocationMap, HEADER_PAGE, PAGES_PER_MAP, PageState, SpaceHeader, map_page_of,
};
use rustc_hash::FxHashSet;

use super::Checker;

/// The pages of a space that have a user.
pub(super) struct Census {
    pub(super) space: SpaceId,
    used: FxHashSet<PageNo>,
}

impl Census {
    pub(super) fn new(space: SpaceId) -> Census {
        Census { space, used: FxHashSet::default() }
    }

    /// Counts a page. False if it was counted before.
    pub(super) fn add(&mut self, page: PageNo) -> bool {
        self.used.insert(page)
    }

    pub(super) fn has(&self, page: PageNo) -> bool {
        self.used.contains(&page)
    }

    fn page(&self, page: PageNo) -> PageId {
        PageId::new(self.space, page)
    }
}

impl Checker<'_> {
    /// Checks the header page. `None` if there is none.
    pub(super) fn check_header(&mut self, census: &mut Census) -> Option<SpaceHeader> {
        self.report.spaces += 1;
        let page = census.page(HEADER_PAGE);
        self.visit(census, page, |page| {
            SpaceHeader::read(page).ok_or_else(|| "it is not a space header".to_owned())
        })
    }

    /// Compares the allocation maps with the census, after all users were counted.
    pub(super) fn check_maps(&mut self, census: &mut Census, header: &SpaceHeader) {
        let firsts: Vec<PageNo> =
            (0..header.page_count).step_by(PAGES_PER_MAP as usize).map(PageNo).collect();
        // Each map page is also a used page.
        let maps: Vec<_> = firsts.iter().map(|first| census.page(map_page_of(*first).0)).collect();
        for (first, page) in firsts.into_iter().zip(maps) {
            let states = self.visit(census, page, |page| {
                let map = AllocationMap::new(page).ok_or("it is not an allocation map")?;
                if !map.is_consistent() {
                    return Err("the counts of the map do not match its pages".to_owned());
                }
                let state = |index| map.state(index).unwrap_or(PageState::Free);
                Ok((0..PAGES_PER_MAP as u16).map(state).collect::<Vec<_>>())
            });
            for (number, state) in (first.0..).zip(states.unwrap_or_default()) {
                self.compare(census, PageNo(number), state);
            }
        }
        if let Some(beyond) = census.used.iter().find(|page| page.0 >= header.page_count) {
            self.problem(census.page(*beyond), "the page is beyond the end of its space");
        }
    }

    fn compare(&mut self, census: &Census, page: PageNo, state: PageState) {
        let is_used = state == PageState::Used;
        self.report.pages_used += u64::from(is_used);
        match (is_used, census.has(page)) {
            (false, true) => {
                let what = format!("the page is used, and the allocation map says {state:?}");
                self.problem(census.page(page), what);
            }
            (true, false) => self.report.leaked_pages += 1,
            _ => {}
        }
    }
}
