//! Which of several filters has a page.

use std::ops::Range;

use firn_api::PageFilter;
use firn_base::{Extents, PageId};

/// Filters that have no page in common, numbered in their order.
#[derive(Debug)]
pub(super) enum Routes {
    /// All filters are ranges of places of these extents. With the filter of each range, in order.
    Places {
        extents: Extents,
        ranges: Vec<(Range<u32>, usize)>,
    },
    Any(Vec<PageFilter>),
}

impl Default for Routes {
    fn default() -> Routes {
        Routes::Any(Vec::new())
    }
}

impl Routes {
    pub(super) fn new<'a>(filters: impl Iterator<Item = &'a PageFilter> + Clone) -> Routes {
        places(filters.clone()).unwrap_or_else(|| Routes::Any(filters.cloned().collect()))
    }

    /// The filter that has the page.
    pub(super) fn find(&self, page: PageId) -> Option<usize> {
        match self {
            Routes::Places { extents, ranges } => {
                let place = extents.place(page);
                let behind = ranges.partition_point(|(range, _)| range.start <= place);
                let (range, filter) = ranges.get(behind.checked_sub(1)?)?;
                range.contains(&place).then_some(*filter)
            }
            Routes::Any(filters) => filters.iter().position(|filter| filter.takes(page)),
        }
    }
}

/// `None` if the filters are not all ranges of places of the same extents.
fn places<'a>(filters: impl Iterator<Item = &'a PageFilter>) -> Option<Routes> {
    let (mut all, mut ranges) = (None, Vec::new());
    for (number, filter) in filters.enumerate() {
        let PageFilter::Places { extents, ranges: some } = filter else { return None };
        if *all.get_or_insert(*extents) != *extents {
            return None;
        }
        ranges.extend(some.iter().map(|range| (range.clone(), number)));
    }
    ranges.sort_by_key(|(range, _)| range.start);
    Some(Routes::Places { extents: all?, ranges })
}

#[cfg(test)]
mod tests {
    use firn_base::{PageNo, SpaceId};

    use super::*;

    #[test]
    fn a_page_is_found_where_a_filter_takes_it() {
        let extents = Extents { pages: 2 };
        let quarter = u32::MAX / 4;
        let part = |ranges: &[Range<u32>]| PageFilter::Places { extents, ranges: ranges.to_vec() };
        let by_place = [
            part(&[quarter..2 * quarter, 3 * quarter..u32::MAX]),
            PageFilter::places(extents, 0..quarter),
        ];
        let page = |space, number| PageId::new(SpaceId(space), PageNo(number));
        let by_page = [1, 2].map(|space| PageFilter::Ranges(vec![page(space, 0)..=page(space, 9)]));
        for filters in [by_place, by_page] {
            let routes = Routes::new(filters.iter());
            let pages = (0..4).flat_map(|space| (0..20).map(move |number| page(space, number)));
            let found: Vec<_> = pages
                .map(|page| {
                    let expected = filters.iter().position(|filter| filter.takes(page));
                    assert_eq!(routes.find(page), expected, "{page} in {routes:?}");
                    expected
                })
                .collect();
            assert!([None, Some(0), Some(1)].iter().all(|filter| found.contains(filter)));
        }
        assert_eq!(Routes::default().find(page(0, 0)), None);
    }
}
