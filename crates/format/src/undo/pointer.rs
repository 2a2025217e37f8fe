//! The address of an undo record.

use std::fmt;

use firn_base::{PageId, PageNo};

use crate::space::UNDO_SPACE;

/// An address in the undo space: page number, offset in the page and flags, from the high bits
/// down. Page 0 is the space's header, so zero is not an address.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct UndoPointer(u64);

impl UndoPointer {
    /// Points nowhere.
    pub const NONE: UndoPointer = UndoPointer(0);
    /// Flag: the record did not exist before. A reader that must not see this version sees no
    /// record, and need not read the undo record.
    pub const NO_EARLIER_VERSION: u16 = 1;

    /// The record at `offset` of page `page_no` of the undo space.
    #[must_use]
    pub const fn new(page_no: PageNo, offset: u16, flags: u16) -> UndoPointer {
        UndoPointer((page_no.0 as u64) << 32 | (offset as u64) << 16 | flags as u64)
    }

    #[must_use]
    pub const fn page_id(self) -> PageId {
        PageId::new(UNDO_SPACE, PageNo((self.0 >> 32) as u32))
    }

    /// Offset of the record in the page.
    #[must_use]
    pub const fn offset(self) -> u16 {
        (self.0 >> 16) as u16
    }

    #[must_use]
    pub const fn flags(self) -> u16 {
        self.0 as u16
    }

    #[must_use]
    pub const fn is_none(self) -> bool {
        self.0 >> 16 == 0
    }

    /// Whether the version that carries this pointer has no earlier version.
    #[must_use]
    pub const fn has_no_earlier_version(self) -> bool {
        self.flags() & UndoPointer::NO_EARLIER_VERSION != 0
    }

    /// The pointer as stored in a record.
    #[must_use]
    pub const fn to_u64(self) -> u64 {
        self.0
    }

    /// The inverse of [`UndoPointer::to_u64`].
    #[must_use]
    pub const fn from_u64(word: u64) -> UndoPointer {
        UndoPointer(word)
    }
}

impl fmt::Debug for UndoPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "undo {}+{}/{}", self.0 >> 32, self.offset(), self.flags())
    }
}
