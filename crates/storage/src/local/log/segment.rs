//! Segment files: a stretch of the log of fixed length, named by its first LSN in hex.
//!
//! ```text
//!   0              header, one sector, then zeros
//!   4096           block 0 │ block 1 │ … │ block N-1        N a multiple of 8
//!   4096 + 512 N   in a group: entry sectors, E reserved, more if they do not suffice
//!   4096 + 512 (N+E)  footer: the index from page to groups, written when the segment is full
//!
//!   block k holds the log from first + 488 k to first + 488 (k+1)
//!   end = first + 488 N = the next segment's first
//!
//!   header   0  magic "FIRNLOG\0"          32  u64  first LSN
//!            8  u16  version               40  u32  incarnation that made the file
//!           10  u16  log stream            44  u32  reserved, zero
//!           12  u32  blocks (N)            48  u64  transaction id limit  ┐ highest known
//!           16  database id, 16 bytes      56  u64  commit timestamp limit┘ when it was written
//!                                          64  u32  entry sectors (E); 0: version 1, no group
//!                                         508  u32  crc32c of bytes 0..508
//! ```
//!
//! A segment gets its name only after header and blocks are durable, so a named file with a bad
//! header was damaged later. The header is one sector. It is rewritten once, when the segments
//! before it are released, so that their watermarks are not lost.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use firn_api::{LogError, Watermarks};
use firn_base::disk::File;
use firn_base::{Cts, LogStreamId, Lsn, TrxId};
use parking_lot::Mutex;

use super::block::{self, BLOCK_BYTES, BLOCK_DATA_BYTES};
use super::footer::{self, FooterHead, StoredIndex, Summary};
use super::index::PageIndex;
use crate::local::directory::DatabaseId;

/// Where the blocks begin in a segment file.
pub(super) const PAYLOAD_OFFSET: u64 = 4096;
/// Bytes of the header that are used.
pub(super) const HEADER_BYTES: usize = 512;
/// The number of blocks is a multiple of this, so the payload ends at a page boundary of memory.
const BLOCKS_PER_MEMORY_PAGE: u64 = 8;
/// The layout without entry sectors.
const SEGMENT_VERSION: u16 = 1;
/// The layout with entry sectors, which members of a group have.
const GROUP_SEGMENT_VERSION: u16 = 2;
/// Blocks for which one entry sector is reserved: a sector lists up to 19 entries.
const BLOCKS_PER_ENTRY_SECTOR: u32 = 16;
/// Limits of the entry sectors that a segment with too few gets at a time.
const ENTRY_SECTORS_ADDED: (u32, u32) = (8, 512);
/// 16 GiB, so that a position in a segment fits into 32 bits.
const MAX_BLOCKS: u64 = 1 << 25;
const MAGIC: &[u8; 8] = b"FIRNLOG\0";
const SUFFIX: &str = ".log";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    /// The stream that the segment belongs to.
    pub(super) stream: LogStreamId,
    /// Whose stream.
    pub(super) database: DatabaseId,
    /// Blocks of payload.
    pub(super) blocks: u32,
    /// Position of the first payload byte.
    pub(super) first: Lsn,
    /// The opening of the log that made the file.
    pub(super) incarnation: u32,
    /// The highest known watermarks.
    pub(super) watermarks: Watermarks,
    /// Entry sectors that are reserved behind the blocks; without a group none.
    pub(super) entry_sectors: u32,
}

impl SegmentHeader {
    /// The sector to write.
    pub(super) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..8].copy_from_slice(MAGIC);
        let version = if self.entry_sectors == 0 { SEGMENT_VERSION } else { GROUP_SEGMENT_VERSION };
        bytes[8..10].copy_from_slice(&version.to_le_bytes());
        bytes[10..12].copy_from_slice(&self.stream.0.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.blocks.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.database.0);
        bytes[32..40].copy_from_slice(&self.first.0.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.incarnation.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.watermarks.trx_id_limit.0.to_le_bytes());
        bytes[56..64].copy_from_slice(&self.watermarks.cts_limit.0.to_le_bytes());
        bytes[64..68].copy_from_slice(&self.entry_sectors.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes[..508]);
        bytes[508..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Bytes of the file up to the footer's place.
    pub(super) fn file_bytes(&self) -> u64 {
        payload_end_offset(self.blocks) + u64::from(self.entry_sectors) * BLOCK_BYTES as u64
    }

    /// Decodes and checks the header in these bytes.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<SegmentHeader, String> {
        if bytes[0..8] != MAGIC[..] {
            return Err("the header is not that of a log segment".to_owned());
        }
        if crc32c::crc32c(&bytes[..508]) != (read_u64(bytes, 504) >> 32) as u32 {
            return Err("the header's checksum does not fit its bytes".to_owned());
        }
        let version = u16::from_le_bytes([bytes[8], bytes[9]]);
        if ![SEGMENT_VERSION, GROUP_SEGMENT_VERSION].contains(&version) {
            return Err(format!(
                "segment version {version}, this build reads {SEGMENT_VERSION} and {GROUP_SEGMENT_VERSION}"
            ));
        }
        let word = read_u64(bytes, 8);
        let header = SegmentHeader {
            stream: LogStreamId((word >> 16) as u16),
            blocks: (word >> 32) as u32,
            database: DatabaseId(bytes[16..32].try_into().expect("16 bytes")),
            first: Lsn(read_u64(bytes, 32)),
            incarnation: read_u64(bytes, 40) as u32,
            watermarks: Watermarks {
                trx_id_limit: TrxId(read_u64(bytes, 48)),
                cts_limit: Cts(read_u64(bytes, 56)),
            },
            entry_sectors: read_u64(bytes, 64) as u32,
        };
        let payload = u64::from(header.blocks) * BLOCK_DATA_BYTES as u64;
        let is_possible = (1..=MAX_BLOCKS).contains(&u64::from(header.blocks))
            && (header.entry_sectors > 0) == (version == GROUP_SEGMENT_VERSION)
            && header.entry_sectors <= header.blocks;
        if !is_possible || header.first.0.checked_add(payload).is_none() {
            return Err("the header's extent is not possible".to_owned());
        }
        Ok(header)
    }
}

fn read_u64(bytes: &[u8; HEADER_BYTES], offset: usize) -> u64 {
    u64::from_le_bytes(bytes[offset..offset + 8].try_into().expect("eight bytes"))
}

/// How many blocks a segment file of about `size_bytes` has.
pub(super) fn blocks_in(size_bytes: u64) -> u32 {
    let blocks = size_bytes.saturating_sub(PAYLOAD_OFFSET) / BLOCK_BYTES as u64;
    let blocks = blocks / BLOCKS_PER_MEMORY_PAGE * BLOCKS_PER_MEMORY_PAGE;
    blocks.clamp(BLOCKS_PER_MEMORY_PAGE, MAX_BLOCKS) as u32
}

/// How many entry sectors a segment of a group reserves, for `blocks` blocks of payload.
pub(super) fn entry_sectors_in(blocks: u32) -> u32 {
    (blocks / BLOCKS_PER_ENTRY_SECTOR).max(1)
}

/// Where the payload of a segment file ends: without a group, its footer begins there.
pub(super) fn payload_end_offset(blocks: u32) -> u64 {
    PAYLOAD_OFFSET + u64::from(blocks) * BLOCK_BYTES as u64
}

/// The name of the segment that begins at `first`.
pub(super) fn file_name(first: Lsn) -> String {
    format!("{:016x}{SUFFIX}", first.0)
}

/// The first LSN in a segment's file name; `None` if it is not one.
pub(super) fn parse_file_name(path: &Path) -> Option<Lsn> {
    let name = path.file_name()?.to_str()?;
    let first = u64::from_str_radix(name.strip_suffix(SUFFIX)?, 16).ok()?;
    (name == file_name(Lsn(first))).then_some(Lsn(first))
}

/// An open segment file.
pub(super) struct Segment {
    /// Position of the first payload byte.
    pub(super) first: Lsn,
    /// Blocks of payload.
    pub(super) blocks: u32,
    /// The file's path, until it is released.
    pub(super) path: PathBuf,
    pub(super) file: Arc<dyn File>,
    /// The index from pages to the groups that begin here.
    pub(super) index: Mutex<SegmentIndex>,
    /// Entry sectors that the file has from the start.
    pub(super) reserved_sectors: u32,
    /// Entry sectors with entries.
    used_sectors: AtomicU32,
}

/// Where the index of a segment is.
#[derive(Clone)]
pub(super) enum SegmentIndex {
    /// In memory, and possibly also in the file.
    Memory(Arc<PageIndex>),
    /// In the file's footer, which has this head.
    Footer(FooterHead),
}

impl SegmentIndex {
    /// Where the first group that begins in the segment begins.
    pub(super) fn first_group(&self) -> Option<Lsn> {
        match self {
            SegmentIndex::Memory(index) => index.first_group,
            SegmentIndex::Footer(head) => head.first_group,
        }
    }

    pub(super) fn size_bytes(&self) -> usize {
        match self {
            SegmentIndex::Memory(index) => index.size_bytes(),
            SegmentIndex::Footer(_) => 0,
        }
    }

    /// The highest watermarks in the segment.
    pub(super) fn watermarks(&self) -> Watermarks {
        match self {
            SegmentIndex::Memory(index) => index.watermarks,
            SegmentIndex::Footer(head) => head.watermarks,
        }
    }
}

impl Segment {
    /// A segment without an index.
    pub(super) fn new(header: &SegmentHeader, path: PathBuf, file: Arc<dyn File>) -> Segment {
        let index = Mutex::new(SegmentIndex::Memory(Arc::default()));
        Segment {
            first: header.first,
            blocks: header.blocks,
            path,
            file,
            index,
            reserved_sectors: header.entry_sectors,
            used_sectors: AtomicU32::new(0),
        }
    }

    /// How many entry sectors have entries.
    pub(super) fn used_sectors(&self) -> u32 {
        self.used_sectors.load(Ordering::Acquire)
    }

    /// Declares how many entry sectors have entries.
    pub(super) fn set_used_sectors(&self, sectors: u32) {
        self.used_sectors.store(sectors, Ordering::Release);
    }

    /// How many entry sectors the file has room for once `used` have entries. Follows from `used`,
    /// because the footer is behind them.
    pub(super) fn sectors_for(&self, used: u32) -> u32 {
        let (least, most) = ENTRY_SECTORS_ADDED;
        let step = self.reserved_sectors.clamp(least, most);
        let missing = used.saturating_sub(self.reserved_sectors);
        self.reserved_sectors + missing.next_multiple_of(step)
    }

    /// The file offset of an entry sector.
    pub(super) fn sector_offset(&self, number: u32) -> u64 {
        payload_end_offset(self.blocks) + u64::from(number) * BLOCK_BYTES as u64
    }

    /// The file offset of the footer, which is written once all entry sectors are.
    fn footer_offset(&self) -> u64 {
        self.sector_offset(self.sectors_for(self.used_sectors()))
    }

    /// The position after the last payload byte: where the next segment begins.
    pub(super) fn end(&self) -> Lsn {
        self.first.advance(u64::from(self.blocks) * BLOCK_DATA_BYTES as u64)
    }

    /// The file offset of the block that holds `lsn`.
    pub(super) fn offset_of(&self, lsn: Lsn) -> u64 {
        PAYLOAD_OFFSET + lsn.since(self.first) / BLOCK_DATA_BYTES as u64 * BLOCK_BYTES as u64
    }

    /// The first position in the block that holds `lsn`.
    pub(super) fn block_start(&self, lsn: Lsn) -> Lsn {
        Lsn(lsn.0 - lsn.since(self.first) % BLOCK_DATA_BYTES as u64)
    }

    /// Whether a group that begins at `lsn` belongs to this segment.
    pub(super) fn contains(&self, lsn: Lsn) -> bool {
        self.first <= lsn && lsn < self.end()
    }

    /// Goes on with the index in the footer, if there is a valid one. Blocks for I/O.
    pub(super) fn load_footer(&self) {
        if let Some(head) = self.read_footer_head() {
            *self.index.lock() = SegmentIndex::Footer(head);
        }
    }

    /// Reads the head of the footer; `None` if there is no valid one. Blocks for I/O.
    pub(super) fn read_footer_head(&self) -> Option<FooterHead> {
        let mut bytes = [0; footer::HEAD_BYTES];
        self.file.read_at(&mut bytes, self.footer_offset()).ok()?;
        FooterHead::decode(&bytes, self.first).filter(|head| head.next_group >= self.end())
    }

    /// Reads the summary for a new listener. `None` if it is damaged. Blocks for I/O.
    pub(super) fn read_summary(&self, head: &FooterHead) -> Option<Summary> {
        Summary::decode(head, &self.read_footer(head, head.summary_bytes())?)
    }

    /// Reads the whole footer. `None` if it is damaged. Blocks for I/O.
    pub(super) fn read_index(&self, head: &FooterHead) -> Option<StoredIndex> {
        StoredIndex::decode(head, self.read_footer(head, head.body_bytes())?)
    }

    fn read_footer(&self, head: &FooterHead, length: usize) -> Option<Vec<u8>> {
        let offset = self.footer_offset() + footer::HEAD_BYTES as u64;
        let room = self.file.length().ok()?.checked_sub(offset)?;
        let length = (head.body_bytes() as u64 <= room).then_some(length)?;
        let mut bytes = vec![0; length];
        self.file.read_at(&mut bytes, offset).ok()?;
        Some(bytes)
    }

    /// Writes the footer of a full segment whose groups are all indexed, unless it has one. Blocks
    /// for I/O.
    pub(super) fn write_footer(&self) -> io::Result<()> {
        let incarnation = self.last_incarnation()?;
        let SegmentIndex::Memory(index) = self.index.lock().clone() else { return Ok(()) };
        let (head, body) = footer::encode(&index, self.first, incarnation);
        let offset = self.footer_offset();
        self.file.allocate(offset + (footer::HEAD_BYTES + body.len()) as u64)?;
        self.file.write_at(&body, offset + footer::HEAD_BYTES as u64)?;
        self.file.sync_data()?;
        self.file.write_at(&head.encode(), offset)?;
        self.file.sync_data()?;
        *self.index.lock() = SegmentIndex::Footer(head);
        Ok(())
    }

    fn last_incarnation(&self) -> io::Result<u32> {
        let mut bytes = [0; BLOCK_BYTES];
        self.file.read_at(&mut bytes, payload_end_offset(self.blocks) - BLOCK_BYTES as u64)?;
        let block = block::open(&bytes).map_err(io::Error::other)?;
        Ok(block.header.incarnation)
    }

    /// The error for a block that holds `lsn` and that the disk cannot read.
    pub(super) fn unreadable(&self, lsn: Lsn, error: &io::Error) -> LogError {
        LogError::Unreadable {
            at: place(&self.path, self.offset_of(lsn)),
            reason: error.to_string(),
        }
    }

    /// The error for bad bytes in the block that holds `lsn`.
    pub(super) fn damaged(&self, lsn: Lsn, what: impl Into<String>) -> LogError {
        LogError::Damaged { at: place(&self.path, self.offset_of(lsn)), what: what.into() }
    }
}

/// How errors name a byte of a file.
pub(super) fn place(path: &Path, offset: u64) -> String {
    format!("byte {offset} of {}", path.display())
}

#[cfg(test)]
mod tests;
