//! The index of a segment in memory: for each page the groups that change it. Used while the
//! segment has no footer.
//!
//! ```text
//!   pages                                       entries (start, previous)
//!   1:7 → first 0, last end 96, last entry 2    0: (0, -)   1: (12, -)   2: (60, 0) ─┐
//!   1:9 → first 12, …, last entry 1             ▲────────────────────────────────────┘
//! ```
//!
//! Positions are in units of 8 bytes from the segment's first LSN. A group belongs to the segment
//! in which it begins, even if it continues in the next one.

use firn_api::Watermarks;
use firn_base::{Lsn, PageId, PageNo, SpaceId};
use firn_format::redo::{Change, Group};
use rustc_hash::FxHashMap;

use super::segment::Segment;

const NO_ENTRY: u32 = u32::MAX;

/// A message to a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// The group or groups between the two positions change the page.
    Page(PageId, Lsn, Lsn),
    /// The group that ends there drops the space.
    Dropped(SpaceId, Lsn),
}

/// Where a page is changed, in units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageSummary {
    pub(super) page: u64,
    /// Start of the first group.
    pub(super) first: u32,
    /// End of the last group.
    pub(super) end: u32,
}

#[derive(Debug, Clone, Copy)]
struct PageEntry {
    first: u32,
    end: u32,
    last_entry: u32,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    start: u32,
    previous: u32,
}

/// The index of one segment.
#[derive(Debug, Clone, Default)]
pub(super) struct PageIndex {
    pages: FxHashMap<u64, PageEntry>,
    entries: Vec<Entry>,
    /// Dropped spaces with the ends of their groups, in units.
    pub(super) dropped: Vec<(SpaceId, u32)>,
    /// Where the first group that begins in the segment begins.
    pub(super) first_group: Option<Lsn>,
    /// Where the first group that is not indexed here begins; known once a group begins in the
    /// segment or passes through it.
    pub(super) next_group: Option<Lsn>,
    /// The highest watermarks in the segment.
    pub(super) watermarks: Watermarks,
}

/// A position in units of the segment.
pub(super) fn to_units(segment_first: Lsn, lsn: Lsn) -> u32 {
    u32::try_from(lsn.since(segment_first) / Lsn::ALIGNMENT).expect("segments are below 32 GiB")
}

/// The inverse of [`to_units`].
pub(super) fn from_units(segment_first: Lsn, units: u32) -> Lsn {
    segment_first.advance(u64::from(units) * Lsn::ALIGNMENT)
}

impl PageIndex {
    /// Adds the group that begins at `start`, and reports each of its changes once.
    ///
    /// # Errors
    /// Why the group is invalid; the index is useless then.
    pub(super) fn add_group(
        &mut self,
        segment: &Segment,
        start: Lsn,
        group: &Group<'_>,
        told: &mut Vec<Told>,
    ) -> Result<(), String> {
        let end = start.advance(group.length_bytes());
        let units = (to_units(segment.first, start), to_units(segment.first, end));
        for record in group.records() {
            let record = record.map_err(|damage| damage.to_string())?;
            if record.page.page_no != PageNo::NONE {
                if self.add_page(record.page.to_u64(), units) {
                    told.push(Told::Page(record.page, start, end));
                }
                continue;
            }
            match Change::decode(&record).map_err(|damage| damage.to_string())? {
                Change::SpaceDropped => {
                    self.dropped.push((record.page.space, units.1));
                    told.push(Told::Dropped(record.page.space, end));
                }
                Change::Watermark { trx_id_limit, cts_limit } => {
                    self.watermarks.raise(Watermarks { trx_id_limit, cts_limit });
                }
                _ => {}
            }
        }
        self.first_group = self.first_group.or(Some(start));
        self.next_group = Some(end);
        Ok(())
    }

    /// False if the group was already noted for this page.
    fn add_page(&mut self, page: u64, (start, end): (u32, u32)) -> bool {
        let number = self.entries.len() as u32;
        let new = PageEntry { first: start, end, last_entry: NO_ENTRY };
        let entry = self.pages.entry(page).or_insert(new);
        if entry.last_entry != NO_ENTRY && self.entries[entry.last_entry as usize].start == start {
            return false;
        }
        self.entries.push(Entry { start, previous: entry.last_entry });
        entry.last_entry = number;
        entry.end = end;
        true
    }

    pub(super) fn size_bytes(&self) -> usize {
        self.pages.capacity() * size_of::<(u64, PageEntry)>()
            + self.entries.capacity() * size_of::<Entry>()
    }

    /// The starts of the groups that change the page, in units and in order.
    pub(super) fn starts(&self, page: u64) -> Vec<u32> {
        let mut starts = Vec::new();
        let mut number = self.pages.get(&page).map_or(NO_ENTRY, |entry| entry.last_entry);
        while number != NO_ENTRY {
            let entry = self.entries[number as usize];
            starts.push(entry.start);
            number = entry.previous;
        }
        starts.reverse();
        starts
    }

    /// All pages, sorted.
    pub(super) fn summaries(&self) -> Vec<PageSummary> {
        let summary = |(&page, entry): (&u64, &PageEntry)| PageSummary {
            page,
            first: entry.first,
            end: entry.end,
        };
        let mut summaries: Vec<_> = self.pages.iter().map(summary).collect();
        summaries.sort_unstable_by_key(|summary| summary.page);
        summaries
    }
}
