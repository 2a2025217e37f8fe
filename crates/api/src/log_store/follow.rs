//! Following the log: readers, their leases, and the groups they get.
//!
//! ```text
//!            released            position          durable
//!   ── gone ────┴── held by the lease ──┴── to come ───┴──►
//! ```
//!
//! A reader gets durable groups in order, each once, with the records that its filter passes. Log
//! is truncated only before the lowest position that a reader holds. A reader that holds back more
//! than its limit is dropped, and its next call says so. It must then read its pages from a page
//! store and follow from their position.

use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use firn_base::{Extents, Lsn, PageId, PageNo};
use firn_format::redo::{Group, GroupBuilder, GroupDamage};

use super::LogError;

/// Which records a reader gets. Records that are not about one page (a dropped space, a watermark)
/// pass every filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageFilter {
    All,
    /// Records about pages in one of these ranges.
    Ranges(Vec<RangeInclusive<PageId>>),
    /// Records about pages whose extents have places in one of these ranges.
    Places {
        extents: Extents,
        ranges: Vec<Range<u32>>,
    },
}

impl PageFilter {
    /// Records about pages whose extents have places in `places`.
    #[must_use]
    pub fn places(extents: Extents, places: Range<u32>) -> PageFilter {
        PageFilter::Places { extents, ranges: std::iter::once(places).collect() }
    }

    /// Whether records about `page` pass.
    #[must_use]
    pub fn takes(&self, page: PageId) -> bool {
        match self {
            PageFilter::All => true,
            PageFilter::Ranges(ranges) => {
                page.page_no == PageNo::NONE || ranges.iter().any(|range| range.contains(&page))
            }
            PageFilter::Places { extents, ranges } => {
                let is_within = |place| ranges.iter().any(|range| range.contains(&place));
                page.page_no == PageNo::NONE || is_within(extents.place(page))
            }
        }
    }

    /// A filter that passes what one of `filters` passes, and more only if they are of different
    /// kinds.
    #[must_use]
    pub fn union<'a>(filters: impl IntoIterator<Item = &'a PageFilter>) -> PageFilter {
        let mut filters = filters.into_iter();
        let Some(mut all) = filters.next().cloned() else { return PageFilter::Ranges(Vec::new()) };
        for filter in filters {
            all = match (all, filter) {
                (PageFilter::Ranges(mut ranges), PageFilter::Ranges(more)) => {
                    ranges.extend_from_slice(more);
                    PageFilter::Ranges(ranges)
                }
                (
                    PageFilter::Places { extents, mut ranges },
                    PageFilter::Places { extents: others, ranges: more },
                ) if extents == *others => {
                    ranges.extend_from_slice(more);
                    PageFilter::Places { extents, ranges }
                }
                _ => return PageFilter::All,
            };
        }
        match all {
            PageFilter::Places { extents, ranges } => {
                let ranges = joined(ranges);
                let all = PageFilter::places(extents, 0..u32::MAX);
                let some = PageFilter::Places { extents, ranges };
                if some == all { PageFilter::All } else { some }
            }
            other => other,
        }
    }
}

/// The same numbers in as few ranges as possible, in order.
fn joined(mut ranges: Vec<Range<u32>>) -> Vec<Range<u32>> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_by_key(|range| range.start);
    ranges.dedup_by(|next, before| {
        let touches = next.start <= before.end;
        if touches {
            before.end = before.end.max(next.end);
        }
        touches
    });
    ranges
}

/// How a reader follows the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowOptions {
    /// The reader's name in listings of leases.
    pub name: String,
    /// A group boundary: the end of the log that the reader already has.
    pub from: Lsn,
    /// Where the stream of groups ends: the first group boundary at or beyond this position.
    /// `None`: it ends when the store is closed.
    pub until: Option<Lsn>,
    /// The records that the reader wants.
    pub pages: PageFilter,
    /// How much log, in bytes before the durable end, is kept for the reader beyond what is kept
    /// anyway. A reader that holds back more is dropped when log is about to be truncated.
    pub hold_limit_bytes: u64,
}

/// The result of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Followed {
    /// Groups that continue where the previous piece ended.
    Piece(LogPiece),
    /// The timeout passed, and nothing more became durable.
    Nothing,
    /// The stream has ended: `until` is reached, or the store was closed.
    End,
}

/// The reader's end of the stream. Dropping it returns its lease.
pub trait LogFollower: Send {
    /// The next groups, as they become durable: about `limit_bytes` of log, at least one group.
    /// Blocks for reading, and up to `timeout` if nothing more is durable.
    ///
    /// # Errors
    /// [`LogError::ReaderDropped`], which is the last answer; [`LogError::Unavailable`],
    /// [`LogError::Unreadable`] or [`LogError::Damaged`].
    fn next(&mut self, limit_bytes: usize, timeout: Duration) -> Result<Followed, LogError>;

    /// The end of the last piece. Does not block.
    fn position(&self) -> Lsn;

    /// Goes on from the group boundary `lsn`: the reader has the log before it from elsewhere.
    /// Nothing happens if that is behind the position. Until the next call of
    /// [`LogFollower::next`], the follower only holds its lease. Does not block.
    fn skip_to(&mut self, lsn: Lsn);

    /// Whether the lease is held. Does not block.
    ///
    /// # Errors
    /// [`LogError::ReaderDropped`].
    fn check(&self) -> Result<(), LogError>;

    /// Declares that neither this reader nor a successor will need log before `lsn` again. Does not
    /// block.
    fn release(&mut self, lsn: Lsn);
}

/// Consecutive groups, reduced to the records that a filter passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPiece {
    /// Where the first group begins.
    pub from: Lsn,
    /// Where the last group ends. Groups without a passing record are not listed, but are covered.
    pub to: Lsn,
    /// Whole groups, one after the other.
    bytes: Vec<u8>,
    places: Vec<Place>,
}

/// The positions of a group in the log and in a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    start: Lsn,
    end: Lsn,
    offset: usize,
}

/// A group of a piece.
#[derive(Debug, Clone, Copy)]
pub struct FollowedGroup<'a> {
    /// Where the group begins in the log.
    pub start: Lsn,
    /// Where the group ends; the LSN of the pages that it changes.
    pub end: Lsn,
    /// The records that passed the filter.
    pub group: Group<'a>,
}

impl LogPiece {
    /// The groups in `bytes`, which begin at `from`, reduced by `filter`.
    ///
    /// # Errors
    /// The position of an invalid group, and what is wrong with it.
    pub fn new(
        from: Lsn,
        bytes: Vec<u8>,
        filter: &PageFilter,
    ) -> Result<LogPiece, (Lsn, GroupDamage)> {
        let mut piece = LogPiece { from, to: from, bytes: Vec::new(), places: Vec::new() };
        let mut builder = GroupBuilder::new();
        let mut offset = 0;
        while offset < bytes.len() {
            let start = from.advance(offset as u64);
            let group = Group::parse(&bytes[offset..]).map_err(|damage| (start, damage))?;
            let end = start.advance(group.length_bytes());
            if *filter == PageFilter::All {
                piece.places.push(Place { start, end, offset });
            } else {
                builder.clear();
                for record in group.records() {
                    let record = record.map_err(|damage| (start, damage))?;
                    if filter.takes(record.page) {
                        builder.push(record.kind, record.page, |body| body.extend(record.body));
                    }
                }
                if !builder.is_empty() {
                    piece.places.push(Place { start, end, offset: piece.bytes.len() });
                    piece.bytes.extend_from_slice(builder.finish());
                }
            }
            offset += group.length_bytes() as usize;
            piece.to = end;
        }
        if *filter == PageFilter::All {
            piece.bytes = bytes;
        }
        Ok(piece)
    }

    /// The piece `from..to` of a filter that worked elsewhere: the groups in `bytes`, one after the
    /// other, each with where it begins and ends in the log.
    ///
    /// # Errors
    /// The position of a group that is invalid or out of place.
    pub fn of_groups(
        from: Lsn,
        to: Lsn,
        groups: impl IntoIterator<Item = (Lsn, Lsn)>,
        bytes: Vec<u8>,
    ) -> Result<LogPiece, (Lsn, GroupDamage)> {
        const OUT_OF_PLACE: GroupDamage = GroupDamage::Header("out of place");
        let (mut places, mut offset, mut position) = (Vec::new(), 0, from);
        for (start, end) in groups {
            if start < position || end <= start || end > to {
                return Err((start, OUT_OF_PLACE));
            }
            let rest = bytes.get(offset..).unwrap_or_default();
            let group = Group::parse(rest).map_err(|damage| (start, damage))?;
            places.push(Place { start, end, offset });
            offset += group.length_bytes() as usize;
            position = end;
        }
        if offset != bytes.len() || to < from {
            return Err((position, OUT_OF_PLACE));
        }
        Ok(LogPiece { from, to, bytes, places })
    }

    /// The groups that are listed, one after the other.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// As [`LogPiece::bytes`], without a copy.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Takes groups off the front: about `limit_bytes` of log, at least one group. What is left
    /// begins where they end, and may be empty.
    #[must_use]
    pub fn split_front(&mut self, limit_bytes: u64) -> LogPiece {
        let limit = self.from.0.saturating_add(limit_bytes);
        let fitting = self.places.partition_point(|place| place.end.0 <= limit).max(1);
        let rest = LogPiece { from: self.to, to: self.to, bytes: Vec::new(), places: Vec::new() };
        if fitting >= self.places.len() {
            return std::mem::replace(self, rest);
        }
        let (at, offset) = (self.places[fitting - 1].end, self.places[fitting].offset);
        let mut places = self.places.split_off(fitting);
        places.iter_mut().for_each(|place| place.offset -= offset);
        let rest = LogPiece { from: at, to: self.to, bytes: self.bytes.split_off(offset), places };
        self.to = at;
        std::mem::replace(self, rest)
    }

    /// The groups that have passing records, in order.
    ///
    /// # Panics
    /// Never: the groups were checked when the piece was made.
    pub fn groups(&self) -> impl Iterator<Item = FollowedGroup<'_>> {
        self.places.iter().map(|place| FollowedGroup {
            start: place.start,
            end: place.end,
            group: Group::parse(&self.bytes[place.offset..]).expect("a group that was checked"),
        })
    }
}

#[cfg(test)]
mod tests {
    use firn_base::SpaceId;

    use super::*;

    fn page(space: u32, number: u32) -> PageId {
        PageId::new(SpaceId(space), PageNo(number))
    }

    fn group(pages: &[PageId]) -> Vec<u8> {
        let mut builder = GroupBuilder::new();
        for page in pages {
            builder.push(1, *page, |body| body.push(page.page_no.0 as u8));
        }
        builder.finish().to_vec()
    }

    fn pages_of(piece: &LogPiece) -> Vec<(Lsn, Vec<PageId>)> {
        let pages = |group: FollowedGroup<'_>| {
            let records = group.group.records().map(|record| record.expect("good").page);
            (group.end, records.collect())
        };
        piece.groups().map(pages).collect()
    }

    #[test]
    fn a_filter_takes_its_pages_and_what_is_about_no_page() {
        let dropped = PageId::new(SpaceId(9), PageNo::NONE);
        let groups =
            [group(&[page(1, 1), page(1, 5)]), group(&[page(2, 1)]), group(&[page(2, 2), dropped])];
        let ends: Vec<Lsn> = groups
            .iter()
            .scan(Lsn::FIRST, |end, group| {
                *end = end.advance(group.len() as u64);
                Some(*end)
            })
            .collect();
        let all = LogPiece::new(Lsn::FIRST, groups.concat(), &PageFilter::All).unwrap();
        assert_eq!((all.from, all.to), (Lsn::FIRST, ends[2]));
        assert_eq!(pages_of(&all).len(), 3);
        let filter = PageFilter::Ranges(vec![page(1, 4)..=page(1, 9), page(3, 0)..=page(3, 1)]);
        let some = LogPiece::new(Lsn::FIRST, groups.concat(), &filter).unwrap();
        assert_eq!((some.from, some.to), (Lsn::FIRST, ends[2]));
        assert_eq!(pages_of(&some), [(ends[0], vec![page(1, 5)]), (ends[2], vec![dropped])]);
    }

    #[test]
    fn each_page_is_in_one_part_of_all_places() {
        let extents = Extents { pages: 4 };
        let middle = u32::MAX / 2;
        let part = |first, end| PageFilter::places(extents, first..end);
        let (lower, upper) = (part(0, middle), part(middle, u32::MAX));
        let pages = (1..9).flat_map(|space| (0..99).map(move |number| page(space, number)));
        let taken: Vec<bool> = pages
            .map(|page| {
                assert_ne!(lower.takes(page), upper.takes(page), "{page}");
                lower.takes(page)
            })
            .collect();
        assert!(taken.contains(&true) && taken.contains(&false));
        let dropped = PageId::new(SpaceId(9), PageNo::NONE);
        assert!(lower.takes(dropped) && upper.takes(dropped), "it is about no page");
    }

    #[test]
    fn a_union_passes_what_one_of_its_filters_passes() {
        let extents = Extents { pages: 4 };
        let places =
            |ranges: &[Range<u32>]| PageFilter::Places { extents, ranges: ranges.to_vec() };
        let place = |places| PageFilter::places(extents, places);
        let (low, next, high) = (place(0..7), place(7..9), place(20..u32::MAX));
        assert_eq!(PageFilter::union([&high, &low]), places(&[0..7, 20..u32::MAX]));
        assert_eq!(PageFilter::union([&next, &high, &low]), places(&[0..9, 20..u32::MAX]));
        assert_eq!(PageFilter::union([&high, &low, &place(5..30)]), PageFilter::All);
        let ranges = |space| PageFilter::Ranges(vec![page(space, 1)..=page(space, 9)]);
        let both = PageFilter::union([&ranges(1), &ranges(2)]);
        assert!(both.takes(page(1, 5)) && both.takes(page(2, 9)) && !both.takes(page(3, 5)));
        let others = PageFilter::Places { extents: Extents { pages: 8 }, ranges: Vec::new() };
        for other in [others, ranges(1), PageFilter::All] {
            assert_eq!(PageFilter::union([&low, &other]), PageFilter::All);
        }
        assert_eq!(PageFilter::union([]), PageFilter::Ranges(Vec::new()));
    }

    /// A piece of four groups, of which a filter takes two, and the ends of the four.
    fn two_of_four() -> (LogPiece, Vec<Lsn>) {
        let groups = [1, 2, 1, 2].map(|space| group(&[page(space, 1)]));
        let end = |number: usize| groups[..=number].iter().map(Vec::len).sum::<usize>() as u64;
        let ends = (0..4).map(|number| Lsn::FIRST.advance(end(number))).collect();
        let filter = PageFilter::Ranges(vec![page(2, 0)..=page(2, 9)]);
        (LogPiece::new(Lsn::FIRST, groups.concat(), &filter).unwrap(), ends)
    }

    #[test]
    fn a_piece_is_put_together_again() {
        let (piece, _) = two_of_four();
        let places: Vec<_> = piece.groups().map(|group| (group.start, group.end)).collect();
        let (from, to, bytes) = (piece.from, piece.to, piece.bytes().to_vec());
        let again = LogPiece::of_groups(from, to, places.clone(), bytes.clone());
        assert_eq!(again.unwrap(), piece);
        let (first, second) = (places[0], places[1]);
        let backwards = (first.1, first.0);
        for wrong in [
            vec![second, first],
            vec![backwards, second],
            vec![first],
            vec![first, second, (to, to.advance(8))],
            vec![first, (second.0, to.advance(8))],
        ] {
            let refused = LogPiece::of_groups(from, to, wrong.clone(), bytes.clone());
            assert!(refused.is_err(), "{wrong:?}");
        }
        assert!(LogPiece::of_groups(to, from, [], Vec::new()).is_err());
    }

    #[test]
    fn a_piece_is_taken_in_parts_that_follow_each_other() {
        let (piece, ends) = two_of_four();
        for (limit, parts) in [(0, vec![ends[1], ends[3]]), (1_000, vec![ends[3]])] {
            let mut rest = piece.clone();
            let mut found = Vec::new();
            for to in parts {
                let from = rest.from;
                let part = rest.split_front(limit);
                assert_eq!((part.from, part.to, rest.from), (from, to, to));
                found.extend(pages_of(&part));
            }
            assert_eq!((rest.from, rest.to), (piece.to, piece.to));
            assert_eq!(found, pages_of(&piece));
        }
    }

    #[test]
    fn a_damaged_group_is_named() {
        let mut bytes = group(&[page(1, 1)]);
        let second = bytes.len();
        bytes.extend(group(&[page(1, 2)]));
        bytes[second + 6] = 77;
        for filter in [PageFilter::All, PageFilter::Ranges(Vec::new())] {
            let (at, _) = LogPiece::new(Lsn::FIRST, bytes.clone(), &filter).unwrap_err();
            assert_eq!(at, Lsn::FIRST.advance(second as u64));
        }
    }
}
