//! Extents: neighbouring pages of a space that lie together, and their places.
//!
//! ```text
//!   space 7   page 0 ‥ 4095 │ 4096 ‥ 8191 │ 8192 ‥        extents of 4,096 pages
//!                  │              │            │
//!                  ▼ place        ▼            ▼
//!   places    0 ───┴──────┼───────┴─────┼──────┴──────┼─────────── u32::MAX
//!               chunk 1   │   chunk 2   │   chunk 3   │   chunk 4
//! ```
//!
//! A place is a number that an extent has for ever, drawn from its identity. What divides places
//! divides pages, and needs no table that grows with them: small spaces cost nothing, and large
//! ones are spread.
//!
//! Places are part of formats: nodes and files say by them which pages they have.

use crate::ids::{PageId, PageNo, SpaceId};

/// How pages are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Extents {
    /// How many neighbouring pages lie together. At least 1.
    pub pages: u32,
}

impl Extents {
    /// Extents of 64 MiB: a scan reads thousands of pages at one node, and a space of a gigabyte is
    /// spread.
    pub const DEFAULT: Extents = Extents { pages: 4_096 };

    /// The place of a page's extent: below [`u32::MAX`], so that a range of places can end there.
    #[must_use]
    pub fn place(self, page: PageId) -> u32 {
        let first = page.page_no.0 / self.pages.max(1);
        let mixed = mix(u64::from(page.space.0) << 32 | u64::from(first));
        ((mixed >> 32) as u32).min(u32::MAX - 1)
    }

    /// A page whose place is within `first..end`, if a search of some length finds one. For
    /// questions about all pages of such a range.
    #[must_use]
    pub fn page_within(self, first: u32, end: u32) -> Option<PageId> {
        let mut pages = (0..1 << 20_u32).map(|space| PageId::new(SpaceId(space), PageNo(0)));
        pages.find(|page| (first..end).contains(&self.place(*page)))
    }
}

/// Spreads numbers evenly; the last step of the generator called SplitMix64.
fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(space: u32, number: u32) -> PageId {
        PageId::new(SpaceId(space), PageNo(number))
    }

    #[test]
    fn places_are_these_for_ever() {
        let extents = Extents { pages: 16 };
        let found = [page(0, 0), page(0, 15), page(0, 16), page(7, 0), page(7, 1600)];
        let places = found.map(|page| extents.place(page));
        assert_eq!(places, PLACES);
        assert_eq!(places[0], places[1], "neighbours lie together");
    }

    const PLACES: [u32; 5] =
        [3_793_791_033, 3_793_791_033, 2_433_363_436, 3_168_421_504, 914_710_468];

    #[test]
    fn extents_are_spread_evenly() {
        let extents = Extents { pages: 8 };
        let mut parts = [0_u32; 16];
        for (space, number) in (0..100).flat_map(|space| (0..100).map(move |at| (space, at))) {
            parts[(extents.place(page(space, number * 8)) >> 28) as usize] += 1;
        }
        let expected = 10_000 / 16;
        assert!(parts.iter().all(|part| part.abs_diff(expected) < expected / 5), "{parts:?}");
    }

    #[test]
    fn a_page_is_found_for_each_part() {
        let width = u32::MAX / 256;
        for part in 0..256 {
            let (first, end) = (part * width, (part + 1) * width);
            let found = Extents::DEFAULT.page_within(first, end).unwrap();
            assert!((first..end).contains(&Extents::DEFAULT.place(found)));
        }
        assert_eq!(Extents::DEFAULT.page_within(5, 5), None);
    }
}
