//! A page of an undo segment's stream, read only.

use firn_base::PageNo;

use super::record::{UndoDamage, UndoRecord, record_length};
use super::{UNDO_HEADER_BYTES, UndoPointer};
use crate::page::{PAGE_SIZE, PageBuf, PageKind};

pub(crate) const SEGMENT: usize = 32;
pub(crate) const PREVIOUS: usize = 36;
pub(crate) const NEXT: usize = 40;
pub(crate) const END: usize = 44;
pub(crate) const LAST_RECORD: usize = 46;

/// A part of a stream of undo records.
#[derive(Debug, Clone, Copy)]
pub struct UndoPage<'a> {
    page: &'a PageBuf,
    /// Everything up to the end of the records.
    written: &'a [u8],
}

impl<'a> UndoPage<'a> {
    /// Reads `page` as a part of a stream; `None` if it is a page of another kind.
    #[must_use]
    pub fn new(page: &'a PageBuf) -> Option<UndoPage<'a>> {
        let end = usize::from(page.get_u16(END));
        if page.kind() != Some(PageKind::Undo) || end < UNDO_HEADER_BYTES {
            return None;
        }
        Some(UndoPage { page, written: page.bytes().get(..end)? })
    }

    /// The segment that the page belongs to.
    #[must_use]
    pub fn segment(&self) -> u32 {
        self.page.get_u32(SEGMENT)
    }

    /// The previous page of the stream. In the first page it may name a page that purge has freed.
    #[must_use]
    pub fn previous(&self) -> PageNo {
        PageNo(self.page.get_u32(PREVIOUS))
    }

    /// The next page of the stream; [`PageNo::NONE`] in the last one.
    #[must_use]
    pub fn next(&self) -> PageNo {
        PageNo(self.page.get_u32(NEXT))
    }

    /// Offset of the next record.
    #[must_use]
    pub fn end(&self) -> u16 {
        self.written.len() as u16
    }

    /// The pointer to the next record.
    #[must_use]
    pub fn end_pointer(&self, flags: u16) -> UndoPointer {
        UndoPointer::new(self.page.page_id().page_no, self.end(), flags)
    }

    /// Bytes that are free for new records.
    #[must_use]
    pub fn free_bytes(&self) -> usize {
        PAGE_SIZE - self.written.len()
    }

    #[must_use]
    pub fn last_record(&self) -> Option<u16> {
        Some(self.page.get_u16(LAST_RECORD)).filter(|&offset| offset != 0)
    }

    /// The bytes of the record at `offset`, header included.
    ///
    /// # Errors
    /// If there is no record at `offset`.
    pub fn record_bytes(&self, offset: usize) -> Result<&'a [u8], UndoDamage> {
        if offset < UNDO_HEADER_BYTES {
            return Err(UndoDamage::Bounds);
        }
        let from = self.written.get(offset..).ok_or(UndoDamage::Bounds)?;
        let length = record_length(from).ok_or(UndoDamage::Bounds)?;
        from.get(..length).ok_or(UndoDamage::Bounds)
    }

    /// The record at `offset`.
    ///
    /// # Errors
    /// If there is no record at `offset`.
    pub fn record_at(&self, offset: u16) -> Result<UndoRecord<'a>, UndoDamage> {
        UndoRecord::parse(self.record_bytes(usize::from(offset))?)
    }

    /// The records, oldest first; ends after the first damaged one.
    #[must_use]
    pub fn records(&self) -> UndoRecords<'a> {
        self.records_from(UNDO_HEADER_BYTES as u16)
    }

    /// The records from `offset` on, oldest first.
    #[must_use]
    pub fn records_from(&self, offset: u16) -> UndoRecords<'a> {
        UndoRecords { page: *self, offset: usize::from(offset) }
    }
}

/// Iterates over the records of a page with their offsets.
#[derive(Debug, Clone)]
pub struct UndoRecords<'a> {
    page: UndoPage<'a>,
    offset: usize,
}

impl<'a> Iterator for UndoRecords<'a> {
    type Item = Result<(u16, UndoRecord<'a>), UndoDamage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.offset >= self.page.written.len() {
            return None;
        }
        let offset = self.offset;
        let record = self.page.record_bytes(offset).and_then(|bytes| {
            self.offset = offset + bytes.len();
            UndoRecord::parse(bytes)
        });
        if record.is_err() {
            self.offset = self.page.written.len();
        }
        Some(record.map(|record| (offset as u16, record)))
    }
}
