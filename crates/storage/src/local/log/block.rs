//! Log blocks: the log's payload, cut into sectors that are each written completely or not at all.
//!
//! ```text
//!   0  u32  crc32c of bytes 4..512
//!   4  u16  data length            488, or less in the block where the log ends
//!   6  u16  first group            offset in the data of the first group's start; 0xffff: none
//!   8  u64  LSN of the first data byte
//!  16  u32  incarnation            which opening of the log wrote the block
//!  20  u32  durable distance       how far before the data's end the durable log ended when
//!                                  the block was written; 0xffff_ffff: unknown
//!  24       data, then zeros up to 512
//! ```
//!
//! All numbers are little endian. A group header never crosses a block boundary: both groups and
//! block data are multiples of 8 bytes.

use firn_base::Lsn;
use firn_base::disk::SECTOR_BYTES;

/// Bytes of a block in the file.
pub(super) const BLOCK_BYTES: usize = SECTOR_BYTES;
/// Bytes of a block before its data.
pub(super) const BLOCK_HEADER_BYTES: usize = 24;
/// Bytes of the log in a full block.
pub(super) const BLOCK_DATA_BYTES: usize = BLOCK_BYTES - BLOCK_HEADER_BYTES;

const NO_GROUP: u16 = u16::MAX;
const UNKNOWN_DISTANCE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockHeader {
    /// Position of the first data byte.
    pub(super) lsn: Lsn,
    /// Bytes of data.
    pub(super) length: u16,
    /// Offset in the data where the first group begins.
    pub(super) first_group: Option<u16>,
    /// The opening of the log that wrote the block.
    pub(super) incarnation: u32,
    /// The position known to be durable when the block was written; zero if unknown.
    pub(super) durable: Lsn,
}

impl BlockHeader {
    /// The position after the data.
    pub(super) fn end(&self) -> Lsn {
        self.lsn.advance(u64::from(self.length))
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Block<'a> {
    /// What it says of itself.
    pub(super) header: BlockHeader,
    /// The log bytes in it.
    pub(super) data: &'a [u8],
}

/// Writes header and checksum around the data that is already in `block`, and zeros after it.
pub(super) fn seal(block: &mut [u8], header: &BlockHeader) {
    assert_eq!(block.len(), BLOCK_BYTES);
    let distance = header.end().0.saturating_sub(header.durable.0);
    let distance = u32::try_from(distance).unwrap_or(UNKNOWN_DISTANCE);
    block[4..6].copy_from_slice(&header.length.to_le_bytes());
    block[6..8].copy_from_slice(&header.first_group.unwrap_or(NO_GROUP).to_le_bytes());
    block[8..16].copy_from_slice(&header.lsn.0.to_le_bytes());
    block[16..20].copy_from_slice(&header.incarnation.to_le_bytes());
    block[20..24].copy_from_slice(&distance.to_le_bytes());
    let checksum = crc32c::crc32c(&block[4..]);
    block[0..4].copy_from_slice(&checksum.to_le_bytes());
}

/// Decodes and checks the block in these bytes.
///
/// # Errors
/// What is wrong with it.
pub(super) fn open(bytes: &[u8]) -> Result<Block<'_>, &'static str> {
    let bytes: &[u8; BLOCK_BYTES] = bytes.try_into().map_err(|_| "the block is cut off")?;
    if crc32c::crc32c(&bytes[4..]) != get_u32(bytes, 0) {
        return Err("the block's checksum does not fit its bytes");
    }
    let length = u16::from_le_bytes([bytes[4], bytes[5]]);
    if usize::from(length) > BLOCK_DATA_BYTES {
        return Err("the block's length is not possible");
    }
    let first_group = match u16::from_le_bytes([bytes[6], bytes[7]]) {
        NO_GROUP => None,
        offset if offset < length && offset % 8 == 0 => Some(offset),
        _ => return Err("the block's first group lies outside of its data"),
    };
    let lsn = Lsn(u64::from(get_u32(bytes, 8)) | u64::from(get_u32(bytes, 12)) << 32);
    let end = lsn.0.checked_add(u64::from(length)).ok_or("the block's position is not possible")?;
    let durable = match get_u32(bytes, 20) {
        UNKNOWN_DISTANCE => Lsn(0),
        distance => Lsn(end.saturating_sub(u64::from(distance))),
    };
    let incarnation = get_u32(bytes, 16);
    let data = &bytes[BLOCK_HEADER_BYTES..BLOCK_HEADER_BYTES + usize::from(length)];
    Ok(Block { header: BlockHeader { lsn, length, first_group, incarnation, durable }, data })
}

fn get_u32(bytes: &[u8; BLOCK_BYTES], offset: usize) -> u32 {
    u32::from_le_bytes([bytes[offset], bytes[offset + 1], bytes[offset + 2], bytes[offset + 3]])
}

#[cfg(test)]
mod tests;
