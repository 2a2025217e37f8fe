//! The records of a stretch of log, findable by page.
//!
//! ```text
//!   bytes    body │ body │ body │ …
//!   places   (page 3, group 8..40) (page 3, group 96..120) (page 7, group 8..40) …   sorted
//! ```

use std::borrow::Cow;
use std::ops::Range;

use firn_api::{LogError, LogPiece};
use firn_base::{Lsn, PageId, PageNo, SpaceId};
use firn_format::redo::{Change, RawRecord};

use crate::local::page_log::RecordVisitor;

/// A record, and the group that it is in.
#[derive(Debug, Clone, Copy)]
struct Place {
    page: PageId,
    start: Lsn,
    end: Lsn,
    kind: u8,
    offset: u32,
    length: u32,
}

/// What one piece of log says about pages.
#[derive(Debug, Default)]
pub(super) struct Records {
    bytes: Vec<u8>,
    /// Sorted by page; the records of one page are in the log's order.
    places: Vec<Place>,
    /// Dropped spaces, with the end of the group that drops each.
    dropped: Vec<(SpaceId, Lsn)>,
}

impl Records {
    /// The records of `piece`.
    ///
    /// # Errors
    /// [`LogError::Damaged`] if a record is invalid.
    pub(super) fn of(piece: &LogPiece) -> Result<Records, LogError> {
        let mut records = Records::default();
        for group in piece.groups() {
            for record in group.group.records() {
                let record = record.map_err(|damage| damaged(group.start, &damage))?;
                records.add(group.start, group.end, &record)?;
            }
        }
        Ok(records.in_order())
    }

    /// The records of `piece` for each of several chunks: those about its pages, in groups that
    /// begin at or behind its position. `find` has the numbers of the chunks that have a page.
    ///
    /// # Errors
    /// [`LogError::Damaged`] if a record is invalid.
    pub(super) fn split<'r>(
        piece: &LogPiece,
        positions: &[Lsn],
        find: impl Fn(PageId) -> Cow<'r, [usize]>,
    ) -> Result<Vec<Records>, LogError> {
        let mut parts: Vec<Records> = positions.iter().map(|_| Records::default()).collect();
        let all: Vec<usize> = (0..positions.len()).collect();
        // Neighbours are often about the same page.
        let mut last: Option<(PageId, Cow<'r, [usize]>)> = None;
        for group in piece.groups() {
            for record in group.group.records() {
                let record = record.map_err(|damage| damaged(group.start, &damage))?;
                let page = record.page;
                let wanted = if page.page_no == PageNo::NONE {
                    &*all
                } else {
                    if last.as_ref().is_none_or(|(same, _)| *same != page) {
                        last = Some((page, find(page)));
                    }
                    last.as_ref().map_or(&[][..], |(_, found)| found)
                };
                for number in wanted.iter().filter(|number| positions[**number] <= group.start) {
                    parts[*number].add(group.start, group.end, &record)?;
                }
            }
        }
        Ok(parts.into_iter().map(Records::in_order).collect())
    }

    fn in_order(mut self) -> Records {
        // A stable sort keeps the log's order within a page.
        self.places.sort_by_key(|place| place.page);
        self.bytes.shrink_to_fit();
        self.places.shrink_to_fit();
        self
    }

    fn add(&mut self, start: Lsn, end: Lsn, record: &RawRecord<'_>) -> Result<(), LogError> {
        if record.page.page_no == PageNo::NONE {
            let change = Change::decode(record).map_err(|damage| damaged(start, &damage))?;
            if matches!(change, Change::SpaceDropped) {
                self.dropped.push((record.page.space, end));
            }
            return Ok(());
        }
        let (offset, length) = (self.bytes.len() as u32, record.body.len() as u32);
        self.bytes.extend_from_slice(record.body);
        self.places.push(Place {
            page: record.page,
            start,
            end,
            kind: record.kind,
            offset,
            length,
        });
        Ok(())
    }

    pub(super) fn size_bytes(&self) -> usize {
        self.bytes.capacity() + self.places.capacity() * size_of::<Place>()
    }

    /// Each changed page once for each group that changes it: page, start and end of the group.
    pub(super) fn changes(&self) -> impl Iterator<Item = (PageId, Lsn, Lsn)> {
        let same = |a: &Place, b: &Place| a.page == b.page && a.start == b.start;
        self.places.chunk_by(same).map(|chunk| (chunk[0].page, chunk[0].start, chunk[0].end))
    }

    /// The changed pages, sorted.
    pub(super) fn pages(&self) -> impl Iterator<Item = PageId> {
        self.places.chunk_by(|a, b| a.page == b.page).map(|chunk| chunk[0].page)
    }

    /// See [`Records`].
    pub(super) fn dropped(&self) -> &[(SpaceId, Lsn)] {
        &self.dropped
    }

    /// Calls `visit` for the records about `page` in groups that lie within `range`, in order.
    ///
    /// # Errors
    /// The error of `visit`.
    pub(super) fn visit(
        &self,
        page: PageId,
        range: &Range<Lsn>,
        visit: &mut RecordVisitor<'_>,
    ) -> Result<(), LogError> {
        let first = self.places.partition_point(|place| place.page < page);
        let about = self.places[first..].iter().take_while(|place| place.page == page);
        for place in about.filter(|place| range.start <= place.start && place.end <= range.end) {
            let body = place.offset as usize..(place.offset + place.length) as usize;
            let record = RawRecord { kind: place.kind, page, body: &self.bytes[body] };
            visit(place.start, place.end, record)?;
        }
        Ok(())
    }
}

fn damaged(at: Lsn, what: &dyn std::fmt::Display) -> LogError {
    LogError::Damaged { at: format!("log position {at}"), what: what.to_string() }
}
