//! The content of a redo record: one change of one page.
//!
//! The body's bytes by kind (little endian; the record's header has the kind and the page):
//!
//! ```text
//!    1  Format           u8 page kind
//!    2  TreeInit         u64 index, u8 level, u32 right, bound low, bound high, entries
//!    3  TreeInsert       u16 slot, u16 key length, key, value
//!    4  TreeSetValue     u16 slot, value
//!    5  TreePatchValue   u16 slot, u16 at, bytes
//!    6  TreeRemove       u16 slot
//!    7  TreeTruncate     u16 from slot, u32 right, high
//!    8  TreeAbsorb       u32 right, bound high, entries
//!    9  TreeKill         -
//!   10  WriteBytes       u16 at, bytes
//!   11  AllocationSet    u16 index, u8 state
//!   12  UndoInit         u32 segment, u32 previous
//!   13  UndoLink         u32 next
//!   14  UndoAppend       undo record
//!   15  OverflowInit     u32 next, u64 owner, bytes
//!   16  SpaceDropped     -                                  not about a page; the space is in the header
//!   17  Watermark        u64 transaction id, u64 commit timestamp              not about a page
//!   18  TreeInsertRun    u16 slot, entries
//!
//!   bound: u16 length (0xFFFF: +infinity), bytes            the last field takes what is left
//! ```

use firn_base::{Cts, IndexId, PageId, PageNo, SpaceId, TrxId};

use super::group::{GroupBuilder, RawRecord};
use crate::page::{FieldWrite, PageKind};
use crate::reader::ByteReader;
use crate::space::PageState;
use crate::tree::Entries;

/// One change, borrowed from where its bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change<'a> {
    /// The page becomes an empty page of `kind`. Only for kinds whose empty body has a meaning:
    /// [`PageKind::Free`], [`PageKind::SpaceHeader`], [`PageKind::AllocationMap`] (which then
    /// counts itself as used) and [`PageKind::UndoHeader`].
    Format {
        kind: PageKind,
    },
    /// The page becomes a part of a tree, whatever it was before.
    TreeInit {
        index: IndexId,
        /// The distance from the leaves; 0 for a leaf.
        level: u8,
        low: &'a [u8],
        /// The high fence; `None`: +infinity.
        high: Option<&'a [u8]>,
        /// The right sibling; [`PageNo::NONE`] exactly if `high` is `None`.
        right: PageNo,
        /// The entries, in key order; at least one for an inner node, and its key is `low`.
        entries: Entries<'a>,
    },
    /// Inserts an entry before the one at `slot`.
    TreeInsert {
        /// The position that keeps the keys in order.
        slot: u16,
        key: &'a [u8],
        value: &'a [u8],
    },
    /// Inserts entries into a leaf before the one at `slot`, in key order.
    TreeInsertRun {
        /// The position that keeps the keys in order.
        slot: u16,
        /// The entries, at least one; their common prefix is the page's.
        entries: Entries<'a>,
    },
    /// Replaces the entry's value by one of any length.
    TreeSetValue {
        slot: u16,
        value: &'a [u8],
    },
    /// Replaces some bytes of the entry's value.
    TreePatchValue {
        slot: u16,
        /// Offset within the value.
        at: u16,
        bytes: &'a [u8],
    },
    TreeRemove {
        slot: u16,
    },
    /// The left half of a split: the entries from `from_slot` on are in the new right sibling.
    TreeTruncate {
        /// The first entry that is removed.
        from_slot: u16,
        /// The new high fence, the sibling's low fence.
        high: &'a [u8],
        /// The new right sibling.
        right: PageNo,
    },
    /// The left half of a merge: the page takes over all of its right sibling.
    TreeAbsorb {
        entries: Entries<'a>,
        /// The sibling's high fence.
        high: Option<&'a [u8]>,
        /// The sibling's right sibling.
        right: PageNo,
    },
    /// The right half of a merge: the page is dead. It keeps its fences and its right sibling.
    TreeKill,
    /// Replaces bytes of a [`PageKind::SpaceHeader`] or [`PageKind::UndoHeader`].
    WriteBytes {
        /// Offset in the page, behind the common header.
        at: u16,
        bytes: &'a [u8],
    },
    /// Changes the state of a page of the space.
    AllocationSet {
        /// The page, counted from the first one that the map covers.
        index: u16,
        state: PageState,
    },
    /// The page becomes an empty part of an undo segment's stream, whatever it was before.
    UndoInit {
        segment: u32,
        /// The page before it in the stream, or [`PageNo::NONE`].
        previous: PageNo,
    },
    /// The stream continues in another page.
    UndoLink {
        /// The page after this one.
        next: PageNo,
    },
    /// The stream grows by one undo record.
    UndoAppend {
        record: &'a [u8],
    },
    /// The page becomes a part of a long value, whatever it was before.
    OverflowInit {
        /// The page with the next part, or [`PageNo::NONE`].
        next: PageNo,
        owner: TrxId,
        bytes: &'a [u8],
    },
    /// The record's space was dropped, with all its pages.
    SpaceDropped,
    /// Ids below these limits may have been handed out. After a restart, new ids begin here.
    Watermark {
        /// The first transaction id that was not handed out.
        trx_id_limit: TrxId,
        /// The first commit timestamp that was not handed out.
        cts_limit: Cts,
    },
    /// The first record of a writer of the log: what follows is of this epoch, until a record with
    /// a later one.
    WriterBegins {
        epoch: u64,
    },
}

impl<'a> From<&'a FieldWrite> for Change<'a> {
    fn from(field: &'a FieldWrite) -> Change<'a> {
        Change::WriteBytes { at: field.at(), bytes: field.bytes() }
    }
}

/// Why a record is not a change that this build knows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeDamage {
    /// Written by a newer build, or damaged.
    #[error("redo record of kind {0}, which this build does not know")]
    Kind(u8),
    /// The body is not one of the kind.
    #[error("the body of a redo record of kind {0} is not valid")]
    Body(u8),
    /// A change of a page without a page, or the reverse.
    #[error("a redo record of kind {0} names {1}, which it cannot change")]
    Page(u8, PageId),
}

const FORMAT: u8 = 1;
const TREE_INIT: u8 = 2;
const TREE_INSERT: u8 = 3;
const TREE_SET_VALUE: u8 = 4;
const TREE_PATCH_VALUE: u8 = 5;
const TREE_REMOVE: u8 = 6;
const TREE_TRUNCATE: u8 = 7;
const TREE_ABSORB: u8 = 8;
const TREE_KILL: u8 = 9;
const WRITE_BYTES: u8 = 10;
const ALLOCATION_SET: u8 = 11;
const UNDO_INIT: u8 = 12;
const UNDO_LINK: u8 = 13;
const UNDO_APPEND: u8 = 14;
const OVERFLOW_INIT: u8 = 15;
const SPACE_DROPPED: u8 = 16;
const WATERMARK: u8 = 17;
const TREE_INSERT_RUN: u8 = 18;
const WRITER_BEGINS: u8 = 19;

const INFINITE: u16 = u16::MAX;

impl<'a> Change<'a> {
    /// Whether a record of this kind sets every byte of its page, so that a page can be built from
    /// it without an earlier image.
    #[must_use]
    pub fn initialises_page(kind: u8) -> bool {
        matches!(kind, FORMAT | TREE_INIT | UNDO_INIT | OVERFLOW_INIT)
    }

    /// The number of the change's kind in a record's header.
    #[must_use]
    pub fn kind(&self) -> u8 {
        match self {
            Change::Format { .. } => FORMAT,
            Change::TreeInit { .. } => TREE_INIT,
            Change::TreeInsert { .. } => TREE_INSERT,
            Change::TreeInsertRun { .. } => TREE_INSERT_RUN,
            Change::TreeSetValue { .. } => TREE_SET_VALUE,
            Change::TreePatchValue { .. } => TREE_PATCH_VALUE,
            Change::TreeRemove { .. } => TREE_REMOVE,
            Change::TreeTruncate { .. } => TREE_TRUNCATE,
            Change::TreeAbsorb { .. } => TREE_ABSORB,
            Change::TreeKill => TREE_KILL,
            Change::WriteBytes { .. } => WRITE_BYTES,
            Change::AllocationSet { .. } => ALLOCATION_SET,
            Change::UndoInit { .. } => UNDO_INIT,
            Change::UndoLink { .. } => UNDO_LINK,
            Change::UndoAppend { .. } => UNDO_APPEND,
            Change::OverflowInit { .. } => OVERFLOW_INIT,
            Change::SpaceDropped => SPACE_DROPPED,
            Change::Watermark { .. } => WATERMARK,
            Change::WriterBegins { .. } => WRITER_BEGINS,
        }
    }

    /// Whether the change is of one page; otherwise its record has no page number.
    #[must_use]
    pub fn is_about_a_page(&self) -> bool {
        !matches!(
            self,
            Change::SpaceDropped | Change::Watermark { .. } | Change::WriterBegins { .. }
        )
    }

    /// Appends the change's record to `group`.
    ///
    /// # Panics
    /// If the change needs a page and `page` is [`no_page`], or the reverse.
    pub fn encode(&self, page: PageId, group: &mut GroupBuilder) {
        assert_eq!(self.is_about_a_page(), page.page_no != PageNo::NONE, "{page} in a record");
        group.push(self.kind(), page, |body| self.write_body(body));
    }

    fn write_body(&self, body: &mut Vec<u8>) {
        match *self {
            Change::Format { kind } => body.push(kind as u8),
            Change::TreeInit { index, level, low, high, right, entries } => {
                body.extend_from_slice(&index.0.to_le_bytes());
                body.push(level);
                body.extend_from_slice(&right.0.to_le_bytes());
                write_bound(body, Some(low));
                write_bound(body, high);
                body.extend_from_slice(entries.encoded());
            }
            Change::TreeInsert { slot, key, value } => {
                body.extend_from_slice(&slot.to_le_bytes());
                write_bound(body, Some(key));
                body.extend_from_slice(value);
            }
            Change::TreeInsertRun { slot, entries } => {
                body.extend_from_slice(&slot.to_le_bytes());
                body.extend_from_slice(entries.encoded());
            }
            Change::TreeSetValue { slot, value } => {
                body.extend_from_slice(&slot.to_le_bytes());
                body.extend_from_slice(value);
            }
            Change::TreePatchValue { slot, at, bytes } => {
                body.extend_from_slice(&slot.to_le_bytes());
                body.extend_from_slice(&at.to_le_bytes());
                body.extend_from_slice(bytes);
            }
            Change::TreeRemove { slot } => body.extend_from_slice(&slot.to_le_bytes()),
            Change::TreeTruncate { from_slot, high, right } => {
                body.extend_from_slice(&from_slot.to_le_bytes());
                body.extend_from_slice(&right.0.to_le_bytes());
                body.extend_from_slice(high);
            }
            Change::TreeAbsorb { entries, high, right } => {
                body.extend_from_slice(&right.0.to_le_bytes());
                write_bound(body, high);
                body.extend_from_slice(entries.encoded());
            }
            Change::TreeKill | Change::SpaceDropped => {}
            _ => self.write_other_body(body),
        }
    }

    fn write_other_body(&self, body: &mut Vec<u8>) {
        match *self {
            Change::WriteBytes { at, bytes } => {
                body.extend_from_slice(&at.to_le_bytes());
                body.extend_from_slice(bytes);
            }
            Change::AllocationSet { index, state } => {
                body.extend_from_slice(&index.to_le_bytes());
                body.push(state as u8);
            }
            Change::UndoInit { segment, previous } => {
                body.extend_from_slice(&segment.to_le_bytes());
                body.extend_from_slice(&previous.0.to_le_bytes());
            }
            Change::UndoLink { next } => body.extend_from_slice(&next.0.to_le_bytes()),
            Change::UndoAppend { record } => body.extend_from_slice(record),
            Change::OverflowInit { next, owner, bytes } => {
                body.extend_from_slice(&next.0.to_le_bytes());
                body.extend_from_slice(&owner.0.to_le_bytes());
                body.extend_from_slice(bytes);
            }
            Change::Watermark { trx_id_limit, cts_limit } => {
                body.extend_from_slice(&trx_id_limit.0.to_le_bytes());
                body.extend_from_slice(&cts_limit.0.to_le_bytes());
            }
            Change::WriterBegins { epoch } => body.extend_from_slice(&epoch.to_le_bytes()),
            _ => unreachable!("tree changes were written before"),
        }
    }

    /// Decodes a record of the log.
    ///
    /// # Errors
    /// Why it is not a change; no later record may be applied.
    pub fn decode(record: &RawRecord<'a>) -> Result<Change<'a>, ChangeDamage> {
        if !(FORMAT..=WRITER_BEGINS).contains(&record.kind) {
            return Err(ChangeDamage::Kind(record.kind));
        }
        let mut body = ByteReader::new(record.body);
        let change = read_body(record.kind, &mut body)
            .filter(|_| body.is_empty())
            .ok_or(ChangeDamage::Body(record.kind))?;
        if change.is_about_a_page() == (record.page.page_no == PageNo::NONE) {
            return Err(ChangeDamage::Page(record.kind, record.page));
        }
        Ok(change)
    }
}

/// The page id in a record that concerns a space but none of its pages.
#[must_use]
pub fn no_page(space: SpaceId) -> PageId {
    PageId::new(space, PageNo::NONE)
}

fn write_bound(body: &mut Vec<u8>, bound: Option<&[u8]>) {
    let length = bound.map_or(INFINITE, |bytes| {
        u16::try_from(bytes.len())
            .ok()
            .filter(|&length| length != INFINITE)
            .expect("a key fits in a page")
    });
    body.extend_from_slice(&length.to_le_bytes());
    body.extend_from_slice(bound.unwrap_or_default());
}

fn read_bound<'a>(body: &mut ByteReader<'a>) -> Option<Option<&'a [u8]>> {
    match body.u16()? {
        INFINITE => Some(None),
        length => Some(Some(body.take(usize::from(length))?)),
    }
}

fn read_page_no(body: &mut ByteReader<'_>) -> Option<PageNo> {
    body.u32().map(PageNo)
}

fn read_body<'a>(kind: u8, body: &mut ByteReader<'a>) -> Option<Change<'a>> {
    Some(match kind {
        FORMAT => Change::Format { kind: PageKind::from_u8(body.u8()?)? },
        TREE_INIT => {
            let (index, level) = (IndexId(body.u64()?), body.u8()?);
            let right = read_page_no(body)?;
            let (low, high) = (read_bound(body)??, read_bound(body)?);
            let entries = Entries::parse(body.take_all())?;
            Change::TreeInit { index, level, low, high, right, entries }
        }
        TREE_INSERT => {
            let (slot, key) = (body.u16()?, read_bound(body)??);
            Change::TreeInsert { slot, key, value: body.take_all() }
        }
        TREE_INSERT_RUN => {
            let (slot, entries) = (body.u16()?, Entries::parse(body.take_all())?);
            Change::TreeInsertRun { slot, entries }
        }
        TREE_SET_VALUE => Change::TreeSetValue { slot: body.u16()?, value: body.take_all() },
        TREE_PATCH_VALUE => {
            let (slot, at) = (body.u16()?, body.u16()?);
            Change::TreePatchValue { slot, at, bytes: body.take_all() }
        }
        TREE_REMOVE => Change::TreeRemove { slot: body.u16()? },
        TREE_TRUNCATE => {
            let (from_slot, right) = (body.u16()?, read_page_no(body)?);
            Change::TreeTruncate { from_slot, high: body.take_all(), right }
        }
        TREE_ABSORB => {
            let (right, high) = (read_page_no(body)?, read_bound(body)?);
            Change::TreeAbsorb { entries: Entries::parse(body.take_all())?, high, right }
        }
        TREE_KILL => Change::TreeKill,
        _ => return read_other_body(kind, body),
    })
}

fn read_other_body<'a>(kind: u8, body: &mut ByteReader<'a>) -> Option<Change<'a>> {
    Some(match kind {
        WRITE_BYTES => Change::WriteBytes { at: body.u16()?, bytes: body.take_all() },
        ALLOCATION_SET => {
            let (index, state) = (body.u16()?, PageState::from_u8(body.u8()?)?);
            Change::AllocationSet { index, state }
        }
        UNDO_INIT => Change::UndoInit { segment: body.u32()?, previous: read_page_no(body)? },
        UNDO_LINK => Change::UndoLink { next: read_page_no(body)? },
        UNDO_APPEND => Change::UndoAppend { record: body.take_all() },
        OVERFLOW_INIT => Change::OverflowInit {
            next: read_page_no(body)?,
            owner: TrxId(body.u64()?),
            bytes: body.take_all(),
        },
        SPACE_DROPPED => Change::SpaceDropped,
        WATERMARK => {
            Change::Watermark { trx_id_limit: TrxId(body.u64()?), cts_limit: Cts(body.u64()?) }
        }
        WRITER_BEGINS => Change::WriterBegins { epoch: body.u64()? },
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
