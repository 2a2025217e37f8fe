//! The bytes of the page map's files: a header and batches, see `docs/formats/pages.md`.
//!
//! ```text
//!   header, one sector              batch, padded with zeros to whole sectors
//!     0  u8×8 "FIRNPMAP"              0  u32  0x424d5046 ("FPMB")
//!     8  u32  layout, 1               4  u32  crc32c of bytes 8..length
//!    12  u32  page size               8  u32  length without padding
//!    16  u64  generation             12  u32  BatchKind
//!    24  u8×16 database              16  u64  generation of the file
//!    40       zeros                  24  u64  number of the batch in the file, from 0
//!   508  u32  crc32c of 0..508       32  u64  applied LSN
//!   put                              40  u64  horizon LSN
//!     0  u32  space id               48  u32  puts
//!     4  u32  page number            52  u32  drops
//!     8  u64  LSN                    56       puts, then drops
//!    16  u64  since LSN
//!    24  u32  slot                  drop
//!    28  u32  1: first version        0  u32  space id
//!                                     4  u32  zero
//!                                     8  u64  end LSN of the group that drops the space
//! ```
//!
//! All numbers are little endian.

use firn_base::disk::SECTOR_BYTES;
use firn_base::{Lsn, PageId, PageNo, SpaceId};
use firn_format::page::PAGE_SIZE;

use super::super::directory::DatabaseId;
use super::slots::SlotNo;
use super::version::Version;

pub(super) const HEADER_BYTES: usize = SECTOR_BYTES;
/// Bytes of a batch before its first put.
pub(super) const BATCH_HEADER_BYTES: usize = 56;
/// The most puts and drops that one batch carries.
pub(super) const MAX_BATCH_ENTRIES: usize = 8192;

const MAGIC: &[u8; 8] = b"FIRNPMAP";
const LAYOUT: u32 = 1;
const BATCH_MAGIC: u32 = u32::from_le_bytes(*b"FPMB");
const PUT_BYTES: usize = 32;
const DROP_BYTES: usize = 16;
const MAX_BATCH_BYTES: usize = BATCH_HEADER_BYTES + MAX_BATCH_ENTRIES * PUT_BYTES;
const FIRST_VERSION: u32 = 1;

/// What a batch is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BatchKind {
    /// A part of the whole map; more parts follow.
    SnapshotPart = 1,
    /// The last part of the whole map.
    SnapshotEnd = 2,
    /// What changed after the whole map was written.
    Change = 3,
}

/// What a batch adds to the map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Batch {
    pub(super) kind: BatchKind,
    /// Everything that ends here or before is in the map's images.
    pub(super) applied: Lsn,
    /// Versions that no read at or after this position needs are gone.
    pub(super) horizon: Lsn,
    /// New images.
    pub(super) puts: Vec<(PageId, Version)>,
    /// Dropped spaces with the ends of the groups that dropped them.
    pub(super) drops: Vec<(SpaceId, Lsn)>,
}

/// The place of a batch: file and number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BatchPosition {
    /// The file's generation.
    pub(super) generation: u64,
    /// The batch's number in the file.
    pub(super) number: u64,
}

/// Writes the header of a file.
pub(super) fn encode_header(database: DatabaseId, generation: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&LAYOUT.to_le_bytes());
    bytes.extend_from_slice(&(PAGE_SIZE as u32).to_le_bytes());
    bytes.extend_from_slice(&generation.to_le_bytes());
    bytes.extend_from_slice(&database.0);
    bytes.resize(HEADER_BYTES - 4, 0);
    let checksum = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Checks the header of a file that should be of this generation.
pub(super) fn check_header(
    bytes: &[u8; HEADER_BYTES],
    database: DatabaseId,
    generation: u64,
) -> Result<(), String> {
    let checked = &bytes[..HEADER_BYTES - 4];
    if !bytes.starts_with(MAGIC) {
        return Err("this is not the header of a page map".to_owned());
    }
    if read_u32(bytes, HEADER_BYTES - 4) != Some(crc32c::crc32c(checked)) {
        return Err("the header's checksum is wrong".to_owned());
    }
    let layout = read_u32(bytes, 8);
    if layout != Some(LAYOUT) {
        return Err(format!("layout {layout:?} is not the layout {LAYOUT} that this build reads"));
    }
    if read_u32(bytes, 12) != Some(PAGE_SIZE as u32) {
        return Err(format!("the pages are not of {PAGE_SIZE} bytes"));
    }
    if read_u64(bytes, 16) != Some(generation) {
        return Err("the file does not have the generation that its name says".to_owned());
    }
    if bytes[24..40] != database.0 {
        return Err(format!("the file does not belong to database {database}"));
    }
    Ok(())
}

impl Batch {
    /// Appends the batch, padded to whole sectors.
    ///
    /// # Panics
    /// If it has more than [`MAX_BATCH_ENTRIES`].
    pub(super) fn encode(&self, at: BatchPosition, into: &mut Vec<u8>) {
        assert!(self.puts.len() + self.drops.len() <= MAX_BATCH_ENTRIES, "the batch is too long");
        let start = into.len();
        let length =
            BATCH_HEADER_BYTES + self.puts.len() * PUT_BYTES + self.drops.len() * DROP_BYTES;
        for word in [BATCH_MAGIC, 0, length as u32, self.kind as u32] {
            into.extend_from_slice(&word.to_le_bytes());
        }
        for word in [at.generation, at.number, self.applied.0, self.horizon.0] {
            into.extend_from_slice(&word.to_le_bytes());
        }
        into.extend_from_slice(&(self.puts.len() as u32).to_le_bytes());
        into.extend_from_slice(&(self.drops.len() as u32).to_le_bytes());
        self.puts.iter().for_each(|(page, version)| encode_put(*page, version, into));
        self.drops.iter().for_each(|(space, end)| encode_drop(*space, *end, into));
        let checksum = crc32c::crc32c(&into[start + 8..]);
        into[start + 4..start + 8].copy_from_slice(&checksum.to_le_bytes());
        into.resize(start + length.next_multiple_of(SECTOR_BYTES), 0);
    }

    /// Decodes the batch at the start of `bytes`, if it is complete and belongs here.
    pub(super) fn decode(bytes: &[u8], at: BatchPosition) -> Result<Batch, &'static str> {
        let length = encoded_length(bytes, at)?;
        let bytes = bytes.get(..length).ok_or("the file ends within the batch")?;
        if read_u32(bytes, 4) != Some(crc32c::crc32c(&bytes[8..])) {
            return Err("the batch's checksum is wrong");
        }
        let mut fields = Fields { bytes, position: 32 };
        let (applied, horizon) = (Lsn(fields.u64()?), Lsn(fields.u64()?));
        let (puts, drops) = (fields.u32()?, fields.u32()?);
        let puts = (0..puts).map(|_| fields.put()).collect::<Result<_, _>>()?;
        let drops = (0..drops).map(|_| fields.dropped()).collect::<Result<_, _>>()?;
        let kind = batch_kind(read_u32(bytes, 12)).ok_or("the batch is of an unknown kind")?;
        if fields.position != length {
            return Err("the batch's length does not fit what is in it");
        }
        Ok(Batch { kind, applied, horizon, puts, drops })
    }
}

/// The unpadded length of the batch whose header begins `bytes`, if a batch that belongs to the
/// file and is not before `at` can begin here.
pub(super) fn encoded_length(bytes: &[u8], at: BatchPosition) -> Result<usize, &'static str> {
    if read_u32(bytes, 0) != Some(BATCH_MAGIC) {
        return Err("no batch begins here");
    }
    if read_u64(bytes, 16) != Some(at.generation) || read_u64(bytes, 24) != Some(at.number) {
        return Err("a batch of another file or place stands here");
    }
    let length = read_u32(bytes, 8).unwrap_or(0) as usize;
    if !(BATCH_HEADER_BYTES..=MAX_BATCH_BYTES).contains(&length) {
        return Err("the batch's length is impossible");
    }
    Ok(length)
}

/// The number that the batch at the start of `bytes` claims, if it claims to belong to this file.
pub(super) fn claimed_number(bytes: &[u8], generation: u64) -> Option<u64> {
    let is_batch = read_u32(bytes, 0)? == BATCH_MAGIC && read_u64(bytes, 16)? == generation;
    is_batch.then(|| read_u64(bytes, 24))?
}

fn batch_kind(number: Option<u32>) -> Option<BatchKind> {
    Some(match number? {
        1 => BatchKind::SnapshotPart,
        2 => BatchKind::SnapshotEnd,
        3 => BatchKind::Change,
        _ => return None,
    })
}

fn encode_put(page: PageId, version: &Version, into: &mut Vec<u8>) {
    into.extend_from_slice(&page.space.0.to_le_bytes());
    into.extend_from_slice(&page.page_no.0.to_le_bytes());
    into.extend_from_slice(&version.lsn.0.to_le_bytes());
    into.extend_from_slice(&version.since.0.to_le_bytes());
    into.extend_from_slice(&version.slot.0.to_le_bytes());
    let flags = if version.is_first { FIRST_VERSION } else { 0 };
    into.extend_from_slice(&flags.to_le_bytes());
}

fn encode_drop(space: SpaceId, end: Lsn, into: &mut Vec<u8>) {
    into.extend_from_slice(&space.0.to_le_bytes());
    into.extend_from_slice(&0u32.to_le_bytes());
    into.extend_from_slice(&end.0.to_le_bytes());
}

struct Fields<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl Fields<'_> {
    fn u32(&mut self) -> Result<u32, &'static str> {
        let number = read_u32(self.bytes, self.position).ok_or("the batch ends too early")?;
        self.position += 4;
        Ok(number)
    }

    fn u64(&mut self) -> Result<u64, &'static str> {
        let number = read_u64(self.bytes, self.position).ok_or("the batch ends too early")?;
        self.position += 8;
        Ok(number)
    }

    fn put(&mut self) -> Result<(PageId, Version), &'static str> {
        let page = PageId::new(SpaceId(self.u32()?), PageNo(self.u32()?));
        let (lsn, since) = (Lsn(self.u64()?), Lsn(self.u64()?));
        let (slot, flags) = (SlotNo(self.u32()?), self.u32()?);
        Ok((page, Version { lsn, since, slot, is_first: flags & FIRST_VERSION != 0 }))
    }

    fn dropped(&mut self) -> Result<(SpaceId, Lsn), &'static str> {
        let space = SpaceId(self.u32()?);
        self.u32()?;
        Ok((space, Lsn(self.u64()?)))
    }
}

fn read_u32(bytes: &[u8], position: usize) -> Option<u32> {
    bytes.get(position..)?.first_chunk().map(|field| u32::from_le_bytes(*field))
}

fn read_u64(bytes: &[u8], position: usize) -> Option<u64> {
    bytes.get(position..)?.first_chunk().map(|field| u64::from_le_bytes(*field))
}

#[cfg(test)]
mod tests;
