//! Page 0 of a space.

use firn_base::{PageNo, TableId};

use crate::page::{FieldWrite, PAGE_SIZE, PageBuf, PageKind};

/// The layout of spaces that this code writes.
pub const SPACE_LAYOUT_VERSION: u32 = 1;

const VERSION: usize = 32;
const PURPOSE: usize = 36;
const PAGE_COUNT: usize = 40;
const ALLOCATION_HINT: usize = 44;
const TABLE: usize = 48;
const OWNER: usize = 64;

/// The use of a space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SpacePurpose {
    Dictionary = 1,
    Undo = 2,
    /// A table with its indexes.
    Table = 3,
}

impl SpacePurpose {
    #[must_use]
    pub fn from_u8(number: u8) -> Option<SpacePurpose> {
        Some(match number {
            1 => SpacePurpose::Dictionary,
            2 => SpacePurpose::Undo,
            3 => SpacePurpose::Table,
            _ => return None,
        })
    }
}

/// The fields of a space's header page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpaceHeader {
    pub purpose: SpacePurpose,
    /// All pages that were ever in use have a number below this one.
    pub page_count: u32,
    /// Where the search for a free page starts; only a hint.
    pub allocation_hint: PageNo,
    /// The table that owns the space, if the space belongs to a table.
    pub table: TableId,
}

impl SpaceHeader {
    /// Where the result of [`SpaceHeader::encode`] belongs in the page.
    pub const ENCODED_AT: u16 = VERSION as u16;
    /// Length of the result of [`SpaceHeader::encode`].
    pub const ENCODED_BYTES: usize = OWNER - VERSION;
    /// Where the area of the space's owner begins, such as the dictionary's list of trees.
    pub const OWNER_AREA_AT: u16 = OWNER as u16;
    /// Length of the owner's area.
    pub const OWNER_AREA_BYTES: usize = PAGE_SIZE - OWNER;

    /// Reads the header; `None` if the page is not a space header of this layout.
    #[must_use]
    pub fn read(page: &PageBuf) -> Option<SpaceHeader> {
        if page.kind() != Some(PageKind::SpaceHeader)
            || page.get_u32(VERSION) != SPACE_LAYOUT_VERSION
        {
            return None;
        }
        Some(SpaceHeader {
            purpose: SpacePurpose::from_u8(page.bytes()[PURPOSE])?,
            page_count: page.get_u32(PAGE_COUNT),
            allocation_hint: PageNo(page.get_u32(ALLOCATION_HINT)),
            table: TableId(page.get_u64(TABLE)),
        })
    }

    /// The bytes of all fields. After formatting the page, write them at
    /// [`SpaceHeader::ENCODED_AT`].
    #[must_use]
    pub fn encode(&self) -> [u8; SpaceHeader::ENCODED_BYTES] {
        let mut bytes = [0; SpaceHeader::ENCODED_BYTES];
        let mut put = |at: usize, field: &[u8]| {
            bytes[at - VERSION..at - VERSION + field.len()].copy_from_slice(field);
        };
        put(VERSION, &SPACE_LAYOUT_VERSION.to_le_bytes());
        put(PURPOSE, &[self.purpose as u8]);
        put(PAGE_COUNT, &self.page_count.to_le_bytes());
        put(ALLOCATION_HINT, &self.allocation_hint.0.to_le_bytes());
        put(TABLE, &self.table.0.to_le_bytes());
        bytes
    }

    #[must_use]
    pub fn write_page_count(page_count: u32) -> FieldWrite {
        FieldWrite::u32(PAGE_COUNT, page_count)
    }
}
