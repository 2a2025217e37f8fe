//! The page: 16 KiB with a header that every kind of page shares.
//!
//! ```text
//!   0  u32  checksum     crc32c of bytes 4..16384, set by `seal` when a page leaves memory
//!   4  u16  version      of this layout
//!   6  u8   kind         PageKind
//!   7  u8   flags        of the kind
//!   8  u32  space id
//!  12  u32  page number
//!  16  u64  LSN          end of the last log group that changed the page; 0: never
//!  24  u16  log stream
//!  26  u8×6 reserved     zero
//!  32       body         of the kind
//! ```
//!
//! All numbers are little endian. In memory the checksum is stale, and no code reads it there.

mod field;

use firn_base::{LogStreamId, Lsn, PageId, PageNo, SpaceId};

pub use field::FieldWrite;

pub const PAGE_SIZE: usize = 16 * 1024;
/// Bytes of the header that all kinds share.
pub const PAGE_HEADER_BYTES: usize = 32;
/// The layout that this code writes.
pub const PAGE_VERSION: u16 = 1;

const CHECKSUM: usize = 0;
const VERSION: usize = 4;
const KIND: usize = 6;
const FLAGS: usize = 7;
const SPACE: usize = 8;
const PAGE_NO: usize = 12;
const LSN: usize = 16;
const STREAM: usize = 24;

/// The kind of a page, which decides its body's layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PageKind {
    /// Nothing: never formatted, or freed.
    Free = 0,
    /// Page 0 of a space.
    SpaceHeader = 1,
    /// The states of a run of pages of the space.
    AllocationMap = 2,
    /// A leaf of a B-link tree.
    TreeLeaf = 3,
    /// An inner node of a B-link tree.
    TreeInner = 4,
    /// The header of an undo segment.
    UndoHeader = 5,
    /// A part of an undo segment's stream.
    Undo = 6,
    /// A part of a value that does not fit in its row.
    Overflow = 7,
}

impl PageKind {
    #[must_use]
    pub fn from_u8(number: u8) -> Option<PageKind> {
        Some(match number {
            0 => PageKind::Free,
            1 => PageKind::SpaceHeader,
            2 => PageKind::AllocationMap,
            3 => PageKind::TreeLeaf,
            4 => PageKind::TreeInner,
            5 => PageKind::UndoHeader,
            6 => PageKind::Undo,
            7 => PageKind::Overflow,
            _ => return None,
        })
    }
}

/// Why the bytes are not the requested page.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PageDamage {
    /// The bytes changed after they were written.
    #[error("the checksum is {found:#010x}, but that of the bytes is {expected:#010x}")]
    Checksum {
        /// In the header.
        found: u32,
        /// Computed from the bytes.
        expected: u32,
    },
    /// Another page was written here.
    #[error("found {found} in the place of {expected}")]
    Misplaced {
        /// In the header.
        found: PageId,
        /// The requested page.
        expected: PageId,
    },
    /// A layout that this build does not know.
    #[error("the page has layout {found}, but this build reads layout {PAGE_VERSION} only")]
    Version {
        /// In the header.
        found: u16,
    },
}

/// The bytes of one page.
#[derive(Clone, PartialEq, Eq)]
#[repr(C, align(4096))]
pub struct PageBuf {
    bytes: [u8; PAGE_SIZE],
}

impl std::fmt::Debug for PageBuf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PageBuf({:?} {:?} lsn {})", self.page_id(), self.kind(), self.lsn())
    }
}

impl PageBuf {
    /// All zeros: a free page that was never changed.
    #[must_use]
    pub const fn zeroed() -> PageBuf {
        PageBuf { bytes: [0; PAGE_SIZE] }
    }

    /// All zeros, on the heap.
    #[must_use]
    pub fn boxed() -> Box<PageBuf> {
        Box::new(PageBuf::zeroed())
    }

    #[must_use]
    pub fn bytes(&self) -> &[u8; PAGE_SIZE] {
        &self.bytes
    }

    /// Every byte, for the functions that read a page from a disk and for `apply`.
    pub fn bytes_mut(&mut self) -> &mut [u8; PAGE_SIZE] {
        &mut self.bytes
    }

    /// Makes this a page of `kind` with an empty body that was never changed.
    pub fn format(&mut self, page: PageId, kind: PageKind) {
        self.bytes.fill(0);
        self.put_u16(VERSION, PAGE_VERSION);
        self.bytes[KIND] = kind as u8;
        self.put_u32(SPACE, page.space.0);
        self.put_u32(PAGE_NO, page.page_no.0);
    }

    /// The page's kind; `None` for a number that this build does not know.
    #[must_use]
    pub fn kind(&self) -> Option<PageKind> {
        PageKind::from_u8(self.bytes[KIND])
    }

    /// The flags of the kind.
    #[must_use]
    pub fn flags(&self) -> u8 {
        self.bytes[FLAGS]
    }

    /// Sets the flags of the kind.
    pub fn set_flags(&mut self, flags: u8) {
        self.bytes[FLAGS] = flags;
    }

    /// The page id in the header.
    #[must_use]
    pub fn page_id(&self) -> PageId {
        PageId::new(SpaceId(self.get_u32(SPACE)), PageNo(self.get_u32(PAGE_NO)))
    }

    /// The end of the last log group that changed the page.
    #[must_use]
    pub fn lsn(&self) -> Lsn {
        Lsn(self.get_u64(LSN))
    }

    /// Stamps the page; done once per log group, when its position in the log is known.
    pub fn set_lsn(&mut self, lsn: Lsn) {
        self.put_u64(LSN, lsn.0);
    }

    /// The log stream that changes the page.
    #[must_use]
    pub fn log_stream(&self) -> LogStreamId {
        LogStreamId(self.get_u16(STREAM))
    }

    /// Computes the checksum, so that the bytes may leave memory.
    pub fn seal(&mut self) {
        let checksum = self.checksum();
        self.put_u32(CHECKSUM, checksum);
    }

    /// Checks that these bytes were sealed for page `expected`.
    ///
    /// # Errors
    /// The first damage that was found.
    pub fn verify(&self, expected: PageId) -> Result<(), PageDamage> {
        let (found, computed) = (self.get_u32(CHECKSUM), self.checksum());
        if found != computed {
            return Err(PageDamage::Checksum { found, expected: computed });
        }
        if self.get_u16(VERSION) != PAGE_VERSION {
            return Err(PageDamage::Version { found: self.get_u16(VERSION) });
        }
        if self.page_id() != expected {
            return Err(PageDamage::Misplaced { found: self.page_id(), expected });
        }
        Ok(())
    }

    fn checksum(&self) -> u32 {
        crc32c::crc32c(&self.bytes[VERSION..])
    }

    /// The little-endian number at `offset`.
    #[must_use]
    pub fn get_u16(&self, offset: usize) -> u16 {
        u16::from_le_bytes([self.bytes[offset], self.bytes[offset + 1]])
    }

    /// The little-endian number at `offset`.
    #[must_use]
    pub fn get_u32(&self, offset: usize) -> u32 {
        u32::from_le_bytes(self.bytes[offset..offset + 4].try_into().expect("four bytes"))
    }

    /// The little-endian number at `offset`.
    #[must_use]
    pub fn get_u64(&self, offset: usize) -> u64 {
        u64::from_le_bytes(self.bytes[offset..offset + 8].try_into().expect("eight bytes"))
    }

    /// Writes a number at `offset`.
    pub fn put_u16(&mut self, offset: usize, number: u16) {
        self.bytes[offset..offset + 2].copy_from_slice(&number.to_le_bytes());
    }

    /// Writes a number at `offset`.
    pub fn put_u32(&mut self, offset: usize, number: u32) {
        self.bytes[offset..offset + 4].copy_from_slice(&number.to_le_bytes());
    }

    /// Writes a number at `offset`.
    pub fn put_u64(&mut self, offset: usize, number: u64) {
        self.bytes[offset..offset + 8].copy_from_slice(&number.to_le_bytes());
    }
}

#[cfg(test)]
mod tests;
