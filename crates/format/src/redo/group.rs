//! Log groups: the records of one mini-transaction, the atomic unit of the log.
//!
//! ```text
//!   group                                   record
//!   0  u32  length    with header, padding  0  u8   kind
//!   4  u16  records                         1  u8   reserved, zero
//!   6  u8   version                         2  u16  body length
//!   7  u8   reserved, zero                  4  u32  space id
//!   8       records, then zeros up to       8  u32  page number (u32::MAX: not about a page)
//!           a multiple of 8                12       body
//! ```
//!
//! A group is in the log whole or not at all: if the durable part of a log ends within a group, a
//! reader takes the group's start as the end. Records of a group are applied in order, and a page
//! is stamped with the group's end.

use firn_base::{Lsn, PageId, PageNo, SpaceId};

/// Bytes of a group before its first record.
pub const GROUP_HEADER_BYTES: usize = 8;
/// Bytes of a record before its body.
pub const RECORD_HEADER_BYTES: usize = 12;
/// Most bytes of a group in the log. A mini-transaction that could exceed it must be split.
pub const MAX_GROUP_BYTES: usize = 128 * 1024;
/// The layout that this code writes.
pub const GROUP_VERSION: u8 = 1;

/// Why bytes are not a log group.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GroupDamage {
    /// The bytes end within the group. At the end of the log this is the place to stop; elsewhere
    /// it is damage.
    #[error("the bytes end within the group")]
    Incomplete,
    /// The header is not one that this code writes.
    #[error("the group's header is not valid: {0}")]
    Header(&'static str),
    /// A record does not lie within the group.
    #[error("record {0} does not lie within its group")]
    Record(u16),
}

/// A record in the log: its page, and bytes that [`super::Change`] decodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawRecord<'a> {
    pub kind: u8,
    /// The page; `page_no` is [`PageNo::NONE`] for a record that is not about one page.
    pub page: PageId,
    /// Encoded body of the change.
    pub body: &'a [u8],
}

/// Collects the records of one mini-transaction. A default builder holds no memory and must be
/// cleared before its first use.
#[derive(Debug, Clone, Default)]
pub struct GroupBuilder {
    bytes: Vec<u8>,
    records: u16,
}

impl GroupBuilder {
    #[must_use]
    pub fn new() -> GroupBuilder {
        let mut group = GroupBuilder::default();
        group.clear();
        group
    }

    /// Empties the group and keeps its memory.
    pub fn clear(&mut self) {
        self.bytes.resize(GROUP_HEADER_BYTES, 0);
        self.records = 0;
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Appends a record whose body `write_body` writes; returns that body.
    ///
    /// # Panics
    /// If the body is longer than 65,535 bytes, which no change of one page needs.
    pub fn push(&mut self, kind: u8, page: PageId, write_body: impl FnOnce(&mut Vec<u8>)) -> &[u8] {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[kind, 0, 0, 0]);
        self.bytes.extend_from_slice(&page.space.0.to_le_bytes());
        self.bytes.extend_from_slice(&page.page_no.0.to_le_bytes());
        write_body(&mut self.bytes);
        let body_start = start + RECORD_HEADER_BYTES;
        let length =
            u16::try_from(self.bytes.len() - body_start).expect("a record's body fits in 64 KiB");
        self.bytes[start + 2..start + 4].copy_from_slice(&length.to_le_bytes());
        self.records += 1;
        &self.bytes[body_start..]
    }

    /// Pads and closes the group; returns its bytes in the log.
    ///
    /// # Panics
    /// If the group is empty or longer than [`MAX_GROUP_BYTES`].
    pub fn finish(&mut self) -> &[u8] {
        assert!(self.records > 0, "a log group has at least one record");
        let padded = self.bytes.len().next_multiple_of(Lsn::ALIGNMENT as usize);
        assert!(padded <= MAX_GROUP_BYTES, "a log group of {padded} bytes is over the limit");
        self.bytes.resize(padded, 0);
        self.bytes[0..4].copy_from_slice(&(padded as u32).to_le_bytes());
        self.bytes[4..6].copy_from_slice(&self.records.to_le_bytes());
        self.bytes[6] = GROUP_VERSION;
        &self.bytes
    }
}

/// A complete group, at some position in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group<'a> {
    records: u16,
    bytes: &'a [u8],
}

impl<'a> Group<'a> {
    /// The group at the start of `bytes`, which may continue after it.
    ///
    /// # Errors
    /// [`GroupDamage::Incomplete`] if the bytes end too early, otherwise the fault in the header.
    pub fn parse(bytes: &'a [u8]) -> Result<Group<'a>, GroupDamage> {
        let header = bytes.get(..GROUP_HEADER_BYTES).ok_or(GroupDamage::Incomplete)?;
        let length = u32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize;
        if header[6] != GROUP_VERSION || header[7] != 0 {
            return Err(GroupDamage::Header("unknown version"));
        }
        if !length.is_multiple_of(Lsn::ALIGNMENT as usize) || length > MAX_GROUP_BYTES {
            return Err(GroupDamage::Header("impossible length"));
        }
        if length < GROUP_HEADER_BYTES + RECORD_HEADER_BYTES {
            return Err(GroupDamage::Header("too short for a record"));
        }
        let bytes = bytes.get(..length).ok_or(GroupDamage::Incomplete)?;
        Ok(Group { records: u16::from_le_bytes([bytes[4], bytes[5]]), bytes })
    }

    /// The bytes that the group takes in the log.
    #[must_use]
    pub fn length_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The records in order; ends after the first damaged one.
    pub fn records(&self) -> Records<'a> {
        Records { bytes: self.bytes, position: GROUP_HEADER_BYTES, next: 0, count: self.records }
    }
}

/// Iterates over the records of a group.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    bytes: &'a [u8],
    position: usize,
    next: u16,
    count: u16,
}

impl<'a> Records<'a> {
    /// Offset of the next record within the group.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    fn parse_next(&self) -> Option<RawRecord<'a>> {
        let rest = self.bytes.get(self.position..)?;
        let header = rest.get(..RECORD_HEADER_BYTES)?;
        let length = usize::from(u16::from_le_bytes([header[2], header[3]]));
        let space = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
        let page_no = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
        let body = rest.get(RECORD_HEADER_BYTES..RECORD_HEADER_BYTES + length)?;
        Some(RawRecord {
            kind: header[0],
            page: PageId::new(SpaceId(space), PageNo(page_no)),
            body,
        })
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<RawRecord<'a>, GroupDamage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next == self.count {
            return None;
        }
        let number = self.next;
        self.next += 1;
        match self.parse_next() {
            Some(record) => {
                self.position += RECORD_HEADER_BYTES + record.body.len();
                Some(Ok(record))
            }
            None => {
                self.next = self.count;
                Some(Err(GroupDamage::Record(number)))
            }
        }
    }
}

#[cfg(test)]
mod tests;
