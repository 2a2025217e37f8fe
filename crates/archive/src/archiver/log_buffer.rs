//! Log that was taken and not sent: whole groups, the pages that they change, and the moments.

use std::collections::{BTreeSet, VecDeque};

use firn_api::{LogPiece, Watermarks};
use firn_base::{Lsn, PageId, PageNo, SpaceId};
use firn_format::redo::Change;
use firn_storage::local::DatabaseId;

use crate::format::{LogHead, LogObject, Mark};

/// Groups that follow each other, and what is known of them.
#[derive(Debug)]
pub(super) struct LogBuffer {
    pub(super) from: Lsn,
    pub(super) to: Lsn,
    groups: Vec<u8>,
    pages: BTreeSet<PageId>,
    dropped: BTreeSet<SpaceId>,
    marks: Vec<Mark>,
    watermarks: Watermarks,
}

impl LogBuffer {
    /// No groups; the next one begins at `at`.
    pub(super) fn new(at: Lsn, watermarks: Watermarks) -> LogBuffer {
        LogBuffer {
            from: at,
            to: at,
            groups: Vec::new(),
            pages: BTreeSet::new(),
            dropped: BTreeSet::new(),
            marks: Vec::new(),
            watermarks,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.from == self.to
    }

    pub(super) fn size_bytes(&self) -> usize {
        self.groups.len()
    }

    pub(super) fn watermarks(&self) -> Watermarks {
        self.watermarks
    }

    /// The log behind the buffer has ids up to these.
    pub(super) fn raise(&mut self, watermarks: Watermarks) {
        self.watermarks.raise(watermarks);
    }

    pub(super) fn pages(&self) -> &BTreeSet<PageId> {
        &self.pages
    }

    pub(super) fn dropped(&self) -> &BTreeSet<SpaceId> {
        &self.dropped
    }

    /// Adds groups that begin where the buffer ends.
    ///
    /// # Errors
    /// What is wrong with a record.
    pub(super) fn take(&mut self, piece: &LogPiece) -> Result<(), String> {
        debug_assert_eq!(piece.from, self.to, "groups follow each other");
        for group in piece.groups() {
            self.watermarks.raise_by_group(&group.group)?;
            for record in group.group.records() {
                let record = record.map_err(|damage| damage.to_string())?;
                if record.page.page_no != PageNo::NONE {
                    self.pages.insert(record.page);
                } else if let Ok(Change::SpaceDropped) = Change::decode(&record) {
                    self.dropped.insert(record.page.space);
                }
            }
        }
        self.groups.extend_from_slice(piece.bytes());
        self.to = piece.to;
        Ok(())
    }

    /// Moves the marks at or before the buffer's end into it.
    pub(super) fn take_marks(&mut self, marks: &mut VecDeque<Mark>) {
        while let Some(mark) = marks.front().copied().filter(|mark| mark.lsn <= self.to) {
            marks.pop_front();
            if mark.lsn >= self.from {
                self.marks.push(mark);
            }
        }
    }

    /// The time of the last mark.
    pub(super) fn time_ms(&self) -> Option<u64> {
        self.marks.last().map(|mark| mark.time_ms)
    }

    /// Appends a buffer that begins where this one ends.
    pub(super) fn append(&mut self, next: &LogBuffer) {
        debug_assert_eq!(next.from, self.to, "groups follow each other");
        self.to = next.to;
        self.groups.extend_from_slice(&next.groups);
        self.pages.extend(&next.pages);
        self.dropped.extend(&next.dropped);
        self.marks.extend(&next.marks);
        self.watermarks.raise(next.watermarks);
    }

    /// The buffer as an object.
    pub(super) fn object(&self, database: DatabaseId) -> LogObject {
        let mut head = LogHead::new(database, self.from, self.to, self.watermarks);
        head.marks.clone_from(&self.marks);
        head.pages = self.pages.iter().copied().collect();
        head.dropped = self.dropped.iter().copied().collect();
        LogObject { head, groups: self.groups.clone() }
    }
}
