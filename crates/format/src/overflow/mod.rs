//! Overflow pages: the linked parts of a value that is too long for its row.
//!
//! ```text
//!   page header │ u32 next page, u32::MAX: none │ u16 length │ u16 zero │ u64 owner │ bytes of the part
//!   0           32                              36           38         40          48
//! ```
//!
//! A chain is written once and never changed: an update writes a new chain, and purge frees the old
//! one when no snapshot can see it. The owner is the transaction that wrote the chain. When a chain
//! is freed a second time, for instance after a crash, the owner shows whether the page has another
//! use by now.

use firn_base::{PageNo, TrxId};

use crate::page::{PAGE_SIZE, PageBuf, PageKind};

pub(crate) const NEXT: usize = 32;
pub(crate) const LENGTH: usize = 36;
pub(crate) const OWNER: usize = 40;
pub(crate) const HEADER_BYTES: usize = 48;

/// The most bytes of a value that a page holds.
pub const PART_BYTES: usize = PAGE_SIZE - HEADER_BYTES;

/// One part of a long value, read only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverflowPage<'a> {
    /// The page with the next part; [`PageNo::NONE`]: this is the last.
    pub next: PageNo,
    /// The transaction that wrote the chain.
    pub owner: TrxId,
    pub bytes: &'a [u8],
}

impl<'a> OverflowPage<'a> {
    /// Reads `page` as a part of a long value; `None` if it is a page of another kind.
    #[must_use]
    pub fn new(page: &'a PageBuf) -> Option<OverflowPage<'a>> {
        if page.kind() != Some(PageKind::Overflow) {
            return None;
        }
        let length = usize::from(page.get_u16(LENGTH));
        let bytes = page.bytes().get(HEADER_BYTES..HEADER_BYTES + length)?;
        let owner = TrxId(page.get_u64(OWNER));
        Some(OverflowPage { next: PageNo(page.get_u32(NEXT)), owner, bytes })
    }
}

#[cfg(test)]
mod tests;
