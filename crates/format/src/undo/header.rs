//! The header page of an undo segment. After the page is formatted, its fields are written one by
//! one.

use firn_base::{PageNo, TrxId};

use super::UndoPointer;
use crate::page::{FieldWrite, PageBuf, PageKind};

const SEGMENT: usize = 32;
const STATE: usize = 36;
const FIRST_PAGE: usize = 40;
const LAST_PAGE: usize = 44;
const TRX: usize = 48;
const FIRST_RECORD: usize = 56;
const PURGED: usize = 64;
const END: usize = 72;

/// The state of a segment's transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SegmentState {
    /// No transaction uses the segment.
    Idle = 0,
    /// The transaction is running, or being rolled back.
    Active = 1,
    /// The transaction is prepared: its coordinator decides.
    Prepared = 2,
}

impl SegmentState {
    #[must_use]
    pub fn from_u8(number: u8) -> Option<SegmentState> {
        Some(match number {
            0 => SegmentState::Idle,
            1 => SegmentState::Active,
            2 => SegmentState::Prepared,
            _ => return None,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UndoSegmentHeader {
    pub segment: u32,
    pub state: SegmentState,
    /// The oldest page of the stream.
    pub first_page: PageNo,
    /// The page to which records are appended.
    pub last_page: PageNo,
    /// The bound transaction; [`TrxId::NONE`] if none.
    pub trx: TrxId,
    /// The first record of the bound transaction.
    pub first_record: UndoPointer,
    /// Everything before this record has been purged.
    pub purged: UndoPointer,
}

impl UndoSegmentHeader {
    /// Where the result of [`UndoSegmentHeader::encode`] belongs in the page.
    pub const ENCODED_AT: u16 = SEGMENT as u16;
    /// Length of the result of [`UndoSegmentHeader::encode`].
    pub const ENCODED_BYTES: usize = END - SEGMENT;

    /// Reads the header; `None` if the page is of another kind.
    #[must_use]
    pub fn read(page: &PageBuf) -> Option<UndoSegmentHeader> {
        if page.kind() != Some(PageKind::UndoHeader) {
            return None;
        }
        Some(UndoSegmentHeader {
            segment: page.get_u32(SEGMENT),
            state: SegmentState::from_u8(page.bytes()[STATE])?,
            first_page: PageNo(page.get_u32(FIRST_PAGE)),
            last_page: PageNo(page.get_u32(LAST_PAGE)),
            trx: TrxId(page.get_u64(TRX)),
            first_record: UndoPointer::from_u64(page.get_u64(FIRST_RECORD)),
            purged: UndoPointer::from_u64(page.get_u64(PURGED)),
        })
    }

    /// The bytes of all fields.
    #[must_use]
    pub fn encode(&self) -> [u8; UndoSegmentHeader::ENCODED_BYTES] {
        let mut bytes = [0; UndoSegmentHeader::ENCODED_BYTES];
        let mut put = |at: usize, field: &[u8]| {
            bytes[at - SEGMENT..at - SEGMENT + field.len()].copy_from_slice(field);
        };
        put(SEGMENT, &self.segment.to_le_bytes());
        put(STATE, &[self.state as u8]);
        put(FIRST_PAGE, &self.first_page.0.to_le_bytes());
        put(LAST_PAGE, &self.last_page.0.to_le_bytes());
        put(TRX, &self.trx.0.to_le_bytes());
        put(FIRST_RECORD, &self.first_record.to_u64().to_le_bytes());
        put(PURGED, &self.purged.to_u64().to_le_bytes());
        bytes
    }

    #[must_use]
    pub fn write_first_page(page_no: PageNo) -> FieldWrite {
        FieldWrite::u32(FIRST_PAGE, page_no.0)
    }

    #[must_use]
    pub fn write_last_page(page_no: PageNo) -> FieldWrite {
        FieldWrite::u32(LAST_PAGE, page_no.0)
    }

    #[must_use]
    pub fn write_purged(record: UndoPointer) -> FieldWrite {
        FieldWrite::u64(PURGED, record.to_u64())
    }
}
