//! The footer of a full segment: its index, so that a restart does not have to read the log.
//!
//! ```text
//!   head, 512 bytes, where the payload ends   64  u32  bytes of the summary
//!     0  magic "FIRNIDX\0"                    68  u32  bytes of the lists
//!     8  u16  version                         72  u32  crc32c of the summary
//!    10  u16  reserved, zero                  76  u32  crc32c of the lists
//!    12  u32  incarnation of the last block  508  u32  crc32c of bytes 0..508
//!    16  u64  first LSN of the segment
//!    24  u64  where the first group begins   summary, behind the head
//!             (all ones: none begins here)     per page, sorted:  page, less the one before
//!    32  u64  where the next segment's first                      start of the first group
//!             group begins                                        end of the last, less that start
//!    40  u64  transaction id limit                                bytes of the page's list
//!    48  u64  commit timestamp limit           per dropped space: space, end of the group
//!    56  u32  pages
//!    60  u32  dropped spaces                 lists, behind the summary
//!                                              per page: starts of its groups but the first,
//!                                              each less the one before
//! ```
//!
//! Numbers in the summary and the lists are variable-length (7 bits a byte, lowest first);
//! positions are in units of 8 bytes from the segment's first LSN. The head is written after the
//! rest is durable. A head left by an earlier use of the file names another first LSN.

use firn_api::Watermarks;
use firn_base::{Cts, Lsn, SpaceId, TrxId};

use super::index::{PageIndex, PageSummary};

/// Bytes of a footer before its summary.
pub(super) const HEAD_BYTES: usize = 512;
const MAGIC: &[u8; 8] = b"FIRNIDX\0";
const FOOTER_VERSION: u16 = 1;
const NO_GROUP: u64 = u64::MAX;

/// The contents of a footer, without its lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FooterHead {
    /// Of the segment's last block.
    pub(super) incarnation: u32,
    /// The segment's first LSN.
    pub(super) first: Lsn,
    /// Where the first group that begins in the segment begins.
    pub(super) first_group: Option<Lsn>,
    /// Where the next group after the segment's groups begins.
    pub(super) next_group: Lsn,
    /// The highest watermarks in the segment.
    pub(super) watermarks: Watermarks,
    pages: u32,
    dropped: u32,
    summary_bytes: u32,
    lists_bytes: u32,
    summary_checksum: u32,
    lists_checksum: u32,
}

impl FooterHead {
    pub(super) fn summary_bytes(&self) -> usize {
        self.summary_bytes as usize
    }

    /// Bytes after the head.
    pub(super) fn body_bytes(&self) -> usize {
        self.summary_bytes as usize + self.lists_bytes as usize
    }

    /// The sector to write.
    pub(super) fn encode(&self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[0..8].copy_from_slice(MAGIC);
        bytes[8..10].copy_from_slice(&FOOTER_VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.incarnation.to_le_bytes());
        let first_group = self.first_group.map_or(NO_GROUP, |lsn| lsn.0);
        let words = [
            self.first.0,
            first_group,
            self.next_group.0,
            self.watermarks.trx_id_limit.0,
            self.watermarks.cts_limit.0,
        ];
        for (place, word) in bytes[16..56].chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let counts = [
            self.pages,
            self.dropped,
            self.summary_bytes,
            self.lists_bytes,
            self.summary_checksum,
            self.lists_checksum,
        ];
        for (place, count) in bytes[56..80].chunks_exact_mut(4).zip(counts) {
            place.copy_from_slice(&count.to_le_bytes());
        }
        let checksum = crc32c::crc32c(&bytes[..508]);
        bytes[508..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The head in these bytes; `None` if they are not the footer of the segment that begins at
    /// `first`.
    pub(super) fn decode(bytes: &[u8; HEAD_BYTES], first: Lsn) -> Option<FooterHead> {
        let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        let is_ours = bytes[0..8] == MAGIC[..]
            && half(508) == crc32c::crc32c(&bytes[..508])
            && half(8) == u32::from(FOOTER_VERSION)
            && word(16) == first.0;
        is_ours.then(|| FooterHead {
            incarnation: half(12),
            first,
            first_group: (word(24) != NO_GROUP).then_some(Lsn(word(24))),
            next_group: Lsn(word(32)),
            watermarks: Watermarks { trx_id_limit: TrxId(word(40)), cts_limit: Cts(word(48)) },
            pages: half(56),
            dropped: half(60),
            summary_bytes: half(64),
            lists_bytes: half(68),
            summary_checksum: half(72),
            lists_checksum: half(76),
        })
    }
}

/// A footer without its lists, decoded.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Summary {
    /// All pages, sorted.
    pub(super) pages: Vec<PageSummary>,
    /// For each page, the offset of its list in the lists.
    list_offsets: Vec<u32>,
    /// Dropped spaces with the ends of their groups, in units.
    pub(super) dropped: Vec<(SpaceId, u32)>,
}

impl Summary {
    /// Decodes the bytes after the head. `None` if they are damaged.
    pub(super) fn decode(head: &FooterHead, bytes: &[u8]) -> Option<Summary> {
        if crc32c::crc32c(bytes) != head.summary_checksum {
            return None;
        }
        let mut input = bytes;
        // An entry has four numbers of at least one byte each; a larger count is not believed.
        let count = (head.pages as usize).min(bytes.len() / 4);
        let (mut pages, mut list_offsets) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let (mut page, mut list_offset) = (0u64, 0u32);
        for _ in 0..head.pages {
            page = page.checked_add(take_number(&mut input)?)?;
            let first = take_u32(&mut input)?;
            let end = first.checked_add(take_u32(&mut input)?)?;
            pages.push(PageSummary { page, first, end });
            list_offsets.push(list_offset);
            list_offset = list_offset.checked_add(take_u32(&mut input)?)?;
        }
        let mut dropped = Vec::new();
        for _ in 0..head.dropped {
            dropped.push((SpaceId(take_u32(&mut input)?), take_u32(&mut input)?));
        }
        let is_whole = input.is_empty() && list_offset == head.lists_bytes;
        is_whole.then_some(Summary { pages, list_offsets, dropped })
    }
}

/// A whole footer, decoded as far as look-ups of a page need.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StoredIndex {
    summary: Summary,
    lists: Vec<u8>,
}

impl StoredIndex {
    /// Decodes the bytes after the head. `None` if they are damaged.
    pub(super) fn decode(head: &FooterHead, mut body: Vec<u8>) -> Option<StoredIndex> {
        let lists = body.split_off(head.summary_bytes().min(body.len()));
        if lists.len() != head.lists_bytes as usize || crc32c::crc32c(&lists) != head.lists_checksum
        {
            return None;
        }
        Some(StoredIndex { summary: Summary::decode(head, &body)?, lists })
    }

    pub(super) fn size_bytes(&self) -> usize {
        let per_page = size_of::<PageSummary>() + size_of::<u32>();
        self.summary.pages.len() * per_page + self.lists.len() + size_of::<StoredIndex>()
    }

    /// The starts of the groups that change the page, in units and in order. `None` if the list is
    /// damaged.
    pub(super) fn starts(&self, page: u64) -> Option<Vec<u32>> {
        let pages = &self.summary.pages;
        let Ok(number) = pages.binary_search_by_key(&page, |summary| summary.page) else {
            return Some(Vec::new());
        };
        let offset = |number: usize| self.summary.list_offsets.get(number).map(|at| *at as usize);
        let end = offset(number + 1).unwrap_or(self.lists.len());
        let mut list = self.lists.get(offset(number)?..end)?;
        let mut start = pages[number].first;
        let mut starts = vec![start];
        while !list.is_empty() {
            start = start.checked_add(take_u32(&mut list)?)?;
            starts.push(start);
        }
        Some(starts)
    }
}

/// The head and the bytes after it for a full segment.
///
/// # Panics
/// If the segment's groups are not indexed up to its end.
pub(super) fn encode(index: &PageIndex, first: Lsn, incarnation: u32) -> (FooterHead, Vec<u8>) {
    let (mut summary, mut lists) = (Vec::new(), Vec::new());
    let pages = index.summaries();
    let mut page_before = 0;
    for page in &pages {
        let list_start = lists.len();
        let starts = index.starts(page.page);
        for pair in starts.windows(2) {
            put_number(&mut lists, u64::from(pair[1] - pair[0]));
        }
        put_number(&mut summary, page.page - page_before);
        put_number(&mut summary, u64::from(page.first));
        put_number(&mut summary, u64::from(page.end - page.first));
        put_number(&mut summary, (lists.len() - list_start) as u64);
        page_before = page.page;
    }
    for (space, end) in &index.dropped {
        put_number(&mut summary, u64::from(space.0));
        put_number(&mut summary, u64::from(*end));
    }
    let head = FooterHead {
        incarnation,
        first,
        first_group: index.first_group,
        next_group: index.next_group.expect("a full segment is indexed"),
        watermarks: index.watermarks,
        pages: pages.len() as u32,
        dropped: index.dropped.len() as u32,
        summary_bytes: summary.len() as u32,
        lists_bytes: lists.len() as u32,
        summary_checksum: crc32c::crc32c(&summary),
        lists_checksum: crc32c::crc32c(&lists),
    };
    summary.extend_from_slice(&lists);
    (head, summary)
}

fn put_number(into: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        into.push(number as u8 | 0x80);
        number >>= 7;
    }
    into.push(number as u8);
}

fn take_number(input: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = input.split_first()?;
        *input = rest;
        let bits = u64::from(byte & 0x7f);
        if shift == 63 && bits > 1 {
            return None;
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn take_u32(input: &mut &[u8]) -> Option<u32> {
    u32::try_from(take_number(input)?).ok()
}

#[cfg(test)]
mod tests;
