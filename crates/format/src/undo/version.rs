//! The head of every leaf value: the transaction that wrote this version of the record, and the
//! place of the version before (paper 000 §4.2).
//!
//! ```text
//!   0  u64  transaction     8  u64  undo pointer     16  u8  1: deleted     17  payload
//! ```

use firn_base::TrxId;

use super::UndoPointer;

/// Bytes before the payload.
pub const RECORD_VERSION_BYTES: usize = 17;

/// Which version of a record this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordVersion {
    /// Writer of the version; [`TrxId::NONE`]: visible to every reader.
    pub trx: TrxId,
    /// The undo record that leads back to the version before.
    pub undo: UndoPointer,
    /// Whether this version marks the record as deleted.
    pub deleted: bool,
}

impl RecordVersion {
    /// The bytes before the payload.
    #[must_use]
    pub fn encode(&self) -> [u8; RECORD_VERSION_BYTES] {
        let mut bytes = [0; RECORD_VERSION_BYTES];
        bytes[0..8].copy_from_slice(&self.trx.0.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.undo.to_u64().to_le_bytes());
        bytes[16] = u8::from(self.deleted);
        bytes
    }

    /// Splits a leaf's value into version and payload; `None` if it is too short or its deleted
    /// mark is neither 0 nor 1.
    #[must_use]
    #[inline]
    pub fn parse(value: &[u8]) -> Option<(RecordVersion, &[u8])> {
        let (head, payload) = value.split_first_chunk::<RECORD_VERSION_BYTES>()?;
        if head[16] > 1 {
            return None;
        }
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| head[at + i]));
        let version = RecordVersion {
            trx: TrxId(word(0)),
            undo: UndoPointer::from_u64(word(8)),
            deleted: head[16] != 0,
        };
        Some((version, payload))
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use firn_base::PageNo;

    use super::*;
    use crate::annotate::Annotated;

    #[test]
    fn a_record_version_is_laid_out_as_drawn() {
        let version = RecordVersion {
            trx: TrxId(0x0102),
            undo: UndoPointer::new(PageNo(5), 48, UndoPointer::NO_EARLIER_VERSION),
            deleted: true,
        };
        let bytes = version.encode();
        let mut drawing = Annotated::new(&bytes);
        drawing.fields(&[(8, "transaction"), (8, "undo: flags, offset, page"), (1, "deleted")]);
        expect![[r#"
            0      0201000000000000          transaction
            8      0100300005000000          undo: flags, offset, page
            16     01                        deleted
        "#]]
        .assert_eq(&drawing.finish());
        let value = [bytes.as_slice(), b"payload"].concat();
        assert_eq!(RecordVersion::parse(&value), Some((version, b"payload".as_slice())));
        assert_eq!(RecordVersion::parse(&bytes[1..]), None);
    }

    #[test]
    fn a_version_says_deleted_or_not_and_nothing_else() {
        let version = RecordVersion { trx: TrxId(7), undo: UndoPointer::NONE, deleted: true };
        let mut bytes = version.encode();
        assert_eq!(RecordVersion::parse(&bytes), Some((version, &[][..])));
        bytes[16] = 3;
        assert_eq!(RecordVersion::parse(&bytes), None);
    }
}
