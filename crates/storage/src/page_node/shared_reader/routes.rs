//! Which of several filters have a page.

use std::borrow::Cow;
use std::ops::Range;

use firn_api::PageFilter;
use firn_base::{Extents, PageId};

/// Filters, numbered in their order. Most pages pass one of them. While a chunk is cut in two, the
/// pages of its upper part pass two.
#[derive(Debug)]
pub(super) enum Routes {
    /// All filters are ranges of places of these extents: stretches in order, without overlap, each
    /// with the filters that have all of it.
    Places {
        extents: Extents,
        stretches: Vec<(Range<u32>, Vec<usize>)>,
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

    /// The filters that have the page.
    pub(super) fn find(&self, page: PageId) -> Cow<'_, [usize]> {
        match self {
            Routes::Places { extents, stretches } => {
                let place = extents.place(page);
                let behind = stretches.partition_point(|(range, _)| range.start <= place);
                let found = behind.checked_sub(1).map(|at| &stretches[at]);
                let found = found.filter(|(range, _)| range.contains(&place));
                Cow::Borrowed(found.map_or(&[], |(_, filters)| filters))
            }
            Routes::Any(filters) => {
                let taking = filters.iter().enumerate().filter(|(_, filter)| filter.takes(page));
                Cow::Owned(taking.map(|(number, _)| number).collect())
            }
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
    Some(Routes::Places { extents: all?, stretches: stretches(&ranges) })
}

/// Cuts ranges where one of them begins or ends.
fn stretches(ranges: &[(Range<u32>, usize)]) -> Vec<(Range<u32>, Vec<usize>)> {
    let mut bounds: Vec<u32> =
        ranges.iter().flat_map(|(range, _)| [range.start, range.end]).collect();
    bounds.sort_unstable();
    bounds.dedup();
    let between = bounds.windows(2).map(|two| {
        let having = ranges.iter().filter(|(range, _)| range.contains(&two[0]));
        (two[0]..two[1], having.map(|(_, number)| *number).collect::<Vec<_>>())
    });
    between.filter(|(_, filters)| !filters.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use firn_base::{PageNo, SpaceId};

    use super::*;

    fn page(space: u32, number: u32) -> PageId {
        PageId::new(SpaceId(space), PageNo(number))
    }

    #[test]
    fn a_page_is_found_where_filters_take_it() {
        let extents = Extents { pages: 2 };
        let quarter = u32::MAX / 4;
        let part = |ranges: &[Range<u32>]| PageFilter::Places { extents, ranges: ranges.to_vec() };
        let by_place = vec![
            part(&[quarter..2 * quarter, 3 * quarter..u32::MAX]),
            PageFilter::places(extents, 0..quarter),
        ];
        let cut = vec![
            PageFilter::places(extents, 0..2 * quarter),
            PageFilter::places(extents, quarter..2 * quarter),
            PageFilter::places(extents, 3 * quarter..u32::MAX),
        ];
        let by_page: Vec<_> = [1, 2]
            .map(|space| PageFilter::Ranges(vec![page(space, 0)..=page(space, 9)]))
            .into_iter()
            .collect();
        let whole_and_part = vec![PageFilter::All, PageFilter::places(extents, 0..quarter)];
        for filters in [by_place, cut, by_page, whole_and_part] {
            let routes = Routes::new(filters.iter());
            let pages = (0..4).flat_map(|space| (0..20).map(move |number| page(space, number)));
            let mut most = 0;
            for page in pages {
                let taking = filters.iter().enumerate().filter(|(_, filter)| filter.takes(page));
                let expected: Vec<usize> = taking.map(|(number, _)| number).collect();
                assert_eq!(*routes.find(page), *expected, "{page} in {routes:?}");
                most = most.max(expected.len());
            }
            assert!(most > 0);
        }
        assert!(Routes::default().find(page(0, 0)).is_empty());
    }
}
