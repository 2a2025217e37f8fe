//! Reads of single rows, by primary key or by the values of a unique index, and of out-of-line
//! values.

use std::ops::Range;

use firn_format::key::KeyLayout;
use firn_format::row::{ColumnValue, OverflowReference};
use firn_format::value::ValueRef;

use crate::error::EngineError;
use crate::table::{RowBuffer, SecondaryIndex, Table, overflow};
use crate::transaction::{ReadMode, ReadTransaction, RecordReader};

impl Table {
    /// Appends the bytes of a primary key to `key`. `values` are the values of its columns, in key
    /// order. With fewer values, the result is the common prefix of all keys that begin with these
    /// values.
    ///
    /// # Errors
    /// [`EngineError::Key`].
    pub fn primary_key(
        &self,
        values: &[ValueRef<'_>],
        key: &mut Vec<u8>,
    ) -> Result<(), EngineError> {
        Ok(self.layout.clustered.encode_parts(values, self.collations(), key)?)
    }

    /// Reads the row with this primary key into `payload`, for [`Table::view`]. False if the row
    /// does not exist. Blocks for locks and I/O.
    ///
    /// # Errors
    /// As [`RecordReader::get`].
    #[inline]
    pub fn get(
        &self,
        trx: &mut impl RecordReader,
        key: &[u8],
        mode: ReadMode,
        payload: &mut Vec<u8>,
    ) -> Result<bool, EngineError> {
        trx.get(self.clustered, key, mode, payload)
    }

    /// Reads the row that has these values in a unique index; none of them is NULL. False if the
    /// row does not exist. Blocks for locks and I/O.
    ///
    /// # Errors
    /// As [`RecordReader::get`], and [`EngineError::TableChanged`] if the transaction's snapshot is
    /// older than the index.
    pub fn get_by_unique(
        &self,
        trx: &mut impl RecordReader,
        index: &SecondaryIndex,
        values: &[ValueRef<'_>],
        mode: ReadMode,
        row: &mut RowBuffer,
    ) -> Result<bool, EngineError> {
        let (_, layout) = self.find_secondary(index.id)?;
        let mut entry = Vec::with_capacity(64);
        layout.key().encode_parts(values, self.collations(), &mut entry)?;
        self.get_by_entry(trx, index, &entry, mode, row)
    }

    /// Reads the row of an index entry, for example the entry that [`EngineError::DuplicateKey`]
    /// names. False if the row does not exist. Blocks for locks and I/O.
    ///
    /// # Errors
    /// As [`Table::get_by_unique`].
    pub fn get_by_entry(
        &self,
        trx: &mut impl RecordReader,
        index: &SecondaryIndex,
        entry: &[u8],
        mode: ReadMode,
        row: &mut RowBuffer,
    ) -> Result<bool, EngineError> {
        let (_, layout) = self.find_secondary(index.id)?;
        self.check_ready(trx, index, mode)?;
        if !trx.get(index.id, entry, mode, &mut row.payload)? {
            return Ok(false);
        }
        let primary_key = layout.primary_key(entry, &row.payload);
        let primary_key = primary_key.map_err(|error| self.damaged(&error))?;
        row.key.clear();
        row.key.extend_from_slice(primary_key);
        self.get(trx, &row.key, mode, &mut row.payload)
    }

    /// Refuses an index if the transaction's snapshot does not see all of its entries.
    pub(crate) fn check_ready(
        &self,
        trx: &mut impl RecordReader,
        index: &SecondaryIndex,
        mode: ReadMode,
    ) -> Result<(), EngineError> {
        if index.state != firn_format::definition::IndexState::Ready {
            return Err(EngineError::NoSuchTree(index.id));
        }
        if !trx.locks(mode) && index.ready_from.0 > 0 {
            let trx = trx.snapshot_reader();
            trx.ensure_snapshot();
            if trx.snapshot().is_some_and(|snapshot| snapshot < index.ready_from) {
                return Err(EngineError::TableChanged(self.id()));
            }
        }
        Ok(())
    }

    /// The value of a cell. Reads an out-of-line value into `buffer`, and then blocks for I/O.
    ///
    /// # Errors
    /// If the chain of pages is damaged or cannot be read.
    pub fn value<'a>(
        &self,
        trx: &ReadTransaction,
        cell: ColumnValue<'a>,
        buffer: &'a mut Vec<u8>,
    ) -> Result<ValueRef<'a>, EngineError> {
        match cell {
            ColumnValue::Inline(value) => Ok(value),
            ColumnValue::Overflow(reference) => {
                buffer.clear();
                self.read_part(trx, reference, 0..u64::MAX, buffer)?;
                Ok(ValueRef::Bytes(buffer))
            }
        }
    }

    /// Appends the bytes of an out-of-line value in `range` to `into`. The snapshot that sees the
    /// row must still be open, or the row locked. Blocks for I/O.
    ///
    /// # Errors
    /// If the chain of pages is damaged or cannot be read.
    pub fn read_part(
        &self,
        trx: &ReadTransaction,
        reference: OverflowReference,
        range: Range<u64>,
        into: &mut Vec<u8>,
    ) -> Result<(), EngineError> {
        overflow::read(trx.versions().pages(), self.space(), reference, range, into)
    }

    /// The layout of a secondary index's own key, or of the primary key for `None`.
    ///
    /// # Errors
    /// [`EngineError::NoSuchTree`] if the table does not have this index.
    pub fn key_layout(&self, index: Option<&SecondaryIndex>) -> Result<&KeyLayout, EngineError> {
        match index {
            None => Ok(&self.layout.clustered),
            Some(index) => Ok(self.find_secondary(index.id)?.1.key()),
        }
    }
}
