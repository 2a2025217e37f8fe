//! Undo records. Each holds one change of a transaction, or the transaction's end.
//!
//! ```text
//!   0  u16  length with header    2  u8  kind    3  u8  flags (Update: form of the old payload, 128: deletes)
//!   4  u64  transaction          12  u64  previous record of the transaction      20  by kind:
//!
//!    1  Insert            u64 index, key
//!    2  Update            u64 index, 17 bytes previous version, u16 key length, key, old payload
//!    3  OverflowWritten   u32 space, u32 first page       rollback frees the chain
//!    4  OverflowReplaced  u32 space, u32 first page, u64 owner        purge frees the chain
//!    5  SpaceCreated      u32 space                       rollback drops the space
//!    6  SpaceAbandoned    u32 space                       purge drops the space
//!    7  Committed         u64 commit timestamp
//!    8  RolledBack        -
//!    9  Prepared          identifier that the coordinator knows
//!   10  RollingBack       -        rollback of a prepared transaction has begun
//!   11  InsertRun         u64 index, u16 first length, first key, last key
//! ```

use firn_base::{Cts, IndexId, PageNo, SpaceId, TrxId};

use super::payload::OldPayload;
use super::version::{RECORD_VERSION_BYTES, RecordVersion};
use super::{MAX_UNDO_RECORD_BYTES, UndoPointer};
use crate::reader::ByteReader;

/// Bytes of a record before the part that depends on its kind.
pub const UNDO_RECORD_HEADER_BYTES: usize = 20;

const INSERT: u8 = 1;
const UPDATE: u8 = 2;
const OVERFLOW_WRITTEN: u8 = 3;
const OVERFLOW_REPLACED: u8 = 4;
const SPACE_CREATED: u8 = 5;
const SPACE_ABANDONED: u8 = 6;
const COMMITTED: u8 = 7;
const ROLLED_BACK: u8 = 8;
const PREPARED: u8 = 9;
const ROLLING_BACK: u8 = 10;
const INSERT_RUN: u8 = 11;

/// Flag of an update whose new version marks the record as deleted.
const DELETES: u8 = 128;

/// Why bytes are not an undo record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UndoDamage {
    /// The record is not completely within the bytes.
    #[error("the undo record does not lie within its page")]
    Bounds,
    /// A newer build wrote the record, or it is damaged.
    #[error("undo record of kind {0}, which this build does not know")]
    Kind(u8),
    #[error("the body of an undo record of kind {0} is not valid")]
    Body(u8),
    /// The old payload cannot be restored from the new one.
    #[error("the old payload cannot be restored from the new one")]
    Payload,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndoOperation<'a> {
    /// Inserted a record that did not exist. Rollback removes it.
    Insert {
        index: IndexId,
        key: &'a [u8],
    },
    /// Inserted a run of adjacent records that did not exist. Rollback removes those whose version
    /// points to this undo record.
    InsertRun {
        index: IndexId,
        first: &'a [u8],
        last: &'a [u8],
    },
    /// Wrote a new version of a record, perhaps a deleted one.
    Update {
        index: IndexId,
        key: &'a [u8],
        previous: RecordVersion,
        /// The former payload, relative to the new one.
        payload: OldPayload<'a>,
        /// Whether the new version is deleted. Then purge removes the record from its tree.
        deletes: bool,
    },
    /// Wrote a chain of overflow pages. Rollback frees it.
    OverflowWritten {
        space: SpaceId,
        first_page: PageNo,
    },
    /// Removed a chain of overflow pages from its record. Purge frees it.
    OverflowReplaced {
        space: SpaceId,
        first_page: PageNo,
        /// The transaction that wrote the chain.
        owner: TrxId,
    },
    /// Created a space. Rollback drops it.
    SpaceCreated {
        space: SpaceId,
    },
    /// Abandoned a space. Purge drops it.
    SpaceAbandoned {
        space: SpaceId,
    },
    Committed {
        cts: Cts,
    },
    /// The transaction was rolled back completely.
    RolledBack,
    /// The transaction awaits its coordinator's decision.
    Prepared {
        /// The identifier that the coordinator knows.
        xid: &'a [u8],
    },
    /// The coordinator has decided to roll the prepared transaction back. It can no longer commit,
    /// because some of its changes may already be undone.
    RollingBack,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UndoRecord<'a> {
    pub trx: TrxId,
    /// The record that the same transaction wrote before; [`UndoPointer::NONE`]: this is its first.
    /// Rollback follows these.
    pub previous_in_trx: UndoPointer,
    pub operation: UndoOperation<'a>,
}

/// Length of the record at the start of `bytes`, header included; `None` if there is no record.
#[must_use]
pub fn record_length(bytes: &[u8]) -> Option<usize> {
    let length = usize::from(u16::from_le_bytes(*bytes.first_chunk()?));
    (UNDO_RECORD_HEADER_BYTES..=bytes.len()).contains(&length).then_some(length)
}

impl<'a> UndoRecord<'a> {
    /// Appends the record's bytes.
    ///
    /// # Panics
    /// If the record would be longer than [`MAX_UNDO_RECORD_BYTES`]. Key and payload of an entry
    /// never are.
    pub fn encode(&self, into: &mut Vec<u8>) {
        let start = into.len();
        let (kind, flags) = self.operation.kind_and_flags();
        into.extend_from_slice(&[0, 0, kind, flags]);
        into.extend_from_slice(&self.trx.0.to_le_bytes());
        into.extend_from_slice(&self.previous_in_trx.to_u64().to_le_bytes());
        self.operation.write_body(into);
        let length = into.len() - start;
        assert!(length <= MAX_UNDO_RECORD_BYTES, "an undo record of {length} bytes");
        into[start..start + 2].copy_from_slice(&(length as u16).to_le_bytes());
    }

    /// Takes apart exactly one record.
    ///
    /// # Errors
    /// Why the bytes are none.
    pub fn parse(bytes: &'a [u8]) -> Result<UndoRecord<'a>, UndoDamage> {
        if record_length(bytes) != Some(bytes.len()) {
            return Err(UndoDamage::Bounds);
        }
        let kind = bytes[2];
        if !(INSERT..=INSERT_RUN).contains(&kind) {
            return Err(UndoDamage::Kind(kind));
        }
        let mut reader = ByteReader::new(&bytes[3..]);
        UndoRecord::read(kind, &mut reader)
            .filter(|_| reader.is_empty())
            .ok_or(UndoDamage::Body(kind))
    }

    fn read(kind: u8, reader: &mut ByteReader<'a>) -> Option<UndoRecord<'a>> {
        let flags = reader.u8()?;
        if flags != 0 && kind != UPDATE {
            return None;
        }
        Some(UndoRecord {
            trx: TrxId(reader.u64()?),
            previous_in_trx: UndoPointer::from_u64(reader.u64()?),
            operation: UndoOperation::read(kind, flags, reader)?,
        })
    }
}

impl<'a> UndoOperation<'a> {
    fn kind_and_flags(&self) -> (u8, u8) {
        match *self {
            UndoOperation::Insert { .. } => (INSERT, 0),
            UndoOperation::Update { payload, deletes, .. } => {
                (UPDATE, payload.form() | if deletes { DELETES } else { 0 })
            }
            UndoOperation::OverflowWritten { .. } => (OVERFLOW_WRITTEN, 0),
            UndoOperation::OverflowReplaced { .. } => (OVERFLOW_REPLACED, 0),
            UndoOperation::SpaceCreated { .. } => (SPACE_CREATED, 0),
            UndoOperation::SpaceAbandoned { .. } => (SPACE_ABANDONED, 0),
            UndoOperation::Committed { .. } => (COMMITTED, 0),
            UndoOperation::RolledBack => (ROLLED_BACK, 0),
            UndoOperation::Prepared { .. } => (PREPARED, 0),
            UndoOperation::RollingBack => (ROLLING_BACK, 0),
            UndoOperation::InsertRun { .. } => (INSERT_RUN, 0),
        }
    }

    fn write_body(&self, into: &mut Vec<u8>) {
        match *self {
            UndoOperation::Insert { index, key } => {
                into.extend_from_slice(&index.0.to_le_bytes());
                into.extend_from_slice(key);
            }
            UndoOperation::InsertRun { index, first, last } => {
                let first_length = u16::try_from(first.len()).expect("a key fits in a page");
                into.extend_from_slice(&index.0.to_le_bytes());
                into.extend_from_slice(&first_length.to_le_bytes());
                into.extend_from_slice(first);
                into.extend_from_slice(last);
            }
            UndoOperation::Update { index, key, previous, payload, .. } => {
                let key_length = u16::try_from(key.len()).expect("a key fits in a page");
                into.extend_from_slice(&index.0.to_le_bytes());
                into.extend_from_slice(&previous.encode());
                into.extend_from_slice(&key_length.to_le_bytes());
                into.extend_from_slice(key);
                payload.write(into);
            }
            UndoOperation::OverflowWritten { space, first_page } => {
                into.extend_from_slice(&space.0.to_le_bytes());
                into.extend_from_slice(&first_page.0.to_le_bytes());
            }
            UndoOperation::OverflowReplaced { space, first_page, owner } => {
                into.extend_from_slice(&space.0.to_le_bytes());
                into.extend_from_slice(&first_page.0.to_le_bytes());
                into.extend_from_slice(&owner.0.to_le_bytes());
            }
            UndoOperation::SpaceCreated { space } | UndoOperation::SpaceAbandoned { space } => {
                into.extend_from_slice(&space.0.to_le_bytes());
            }
            UndoOperation::Committed { cts } => into.extend_from_slice(&cts.0.to_le_bytes()),
            UndoOperation::RolledBack | UndoOperation::RollingBack => {}
            UndoOperation::Prepared { xid } => into.extend_from_slice(xid),
        }
    }

    fn read(kind: u8, flags: u8, reader: &mut ByteReader<'a>) -> Option<UndoOperation<'a>> {
        let mut chain = || Some((SpaceId(reader.u32()?), PageNo(reader.u32()?)));
        Some(match kind {
            OVERFLOW_WRITTEN => {
                let (space, first_page) = chain()?;
                UndoOperation::OverflowWritten { space, first_page }
            }
            OVERFLOW_REPLACED => {
                let (space, first_page) = chain()?;
                UndoOperation::OverflowReplaced { space, first_page, owner: TrxId(reader.u64()?) }
            }
            INSERT => {
                let index = IndexId(reader.u64()?);
                UndoOperation::Insert { index, key: reader.take_all() }
            }
            INSERT_RUN => {
                let (index, first_length) = (IndexId(reader.u64()?), usize::from(reader.u16()?));
                let first = reader.take(first_length)?;
                UndoOperation::InsertRun { index, first, last: reader.take_all() }
            }
            UPDATE => {
                let index = IndexId(reader.u64()?);
                let version = reader.array::<RECORD_VERSION_BYTES>()?;
                let (previous, _) = RecordVersion::parse(&version)?;
                let key_length = usize::from(reader.u16()?);
                let key = reader.take(key_length)?;
                let payload = OldPayload::parse(flags & !DELETES, reader.take_all())?;
                let deletes = flags & DELETES != 0;
                UndoOperation::Update { index, key, previous, payload, deletes }
            }
            SPACE_CREATED => UndoOperation::SpaceCreated { space: SpaceId(reader.u32()?) },
            SPACE_ABANDONED => UndoOperation::SpaceAbandoned { space: SpaceId(reader.u32()?) },
            COMMITTED => UndoOperation::Committed { cts: Cts(reader.u64()?) },
            ROLLED_BACK => UndoOperation::RolledBack,
            ROLLING_BACK => UndoOperation::RollingBack,
            PREPARED => UndoOperation::Prepared { xid: reader.take_all() },
            _ => return None,
        })
    }
}
