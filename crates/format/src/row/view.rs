//! Row bytes to values, borrowed from the row. The bytes may be arbitrary.

use crate::value::{ValueRef, fixed};

use super::encode::OVERFLOW_FLAG;
use super::layout::{END_OFFSET_LENGTH, Generation, Place, VERSION_LENGTH};
use super::{ColumnValue, OverflowReference, RowError, RowLayout, RowVersion};

/// A row that is read column by column, at constant cost each.
#[derive(Clone, Copy, Debug)]
pub struct RowView<'a> {
    layout: &'a RowLayout,
    generation: &'a Generation,
    version: RowVersion,
    row: &'a [u8],
}

impl<'a> RowView<'a> {
    /// Reads the row's header. Checks that the row is long enough for its version's fixed part and
    /// ends where its last variable column does; each column is checked when it is read.
    ///
    /// # Errors
    /// [`RowError::Damaged`], and [`RowError::NewerVersion`] for a row of a later definition.
    pub fn parse(layout: &'a RowLayout, row: &'a [u8]) -> Result<RowView<'a>, RowError> {
        let version = row.first_chunk::<VERSION_LENGTH>().ok_or_else(|| damaged(row, "version"))?;
        let version = RowVersion(u16::from_le_bytes(*version));
        let generation = layout.generation(version)?;
        let view = RowView { layout, generation, version, row };
        let variable_bytes = match generation.variable_columns.checked_sub(1) {
            Some(last) => view.end_offset(last)? & !OVERFLOW_FLAG,
            None => 0,
        };
        if row.len() != generation.data_start + usize::from(variable_bytes) {
            return Err(damaged(row, "length"));
        }
        Ok(view)
    }

    /// The version that the row was written under.
    #[must_use]
    pub fn version(&self) -> RowVersion {
        self.version
    }

    /// The column with this ordinal: its value, its default if the row is older than the column, or
    /// the place of its overflow value. A dropped column returns the value that the row still
    /// holds.
    ///
    /// # Errors
    /// [`RowError::NoSuchColumn`], also for a dropped column that the row no longer holds, and
    /// [`RowError::Damaged`] or [`RowError::Value`] for damaged bytes.
    #[inline]
    pub fn column(&self, ordinal: usize) -> Result<ColumnValue<'a>, RowError> {
        let slot = self.generation.slots.get(ordinal).ok_or(RowError::NoSuchColumn(ordinal))?;
        if let Some(bit) = slot.null_bit
            && self.is_null(usize::from(bit))?
        {
            return Ok(ColumnValue::Inline(ValueRef::Null));
        }
        match slot.place {
            Place::Absent => self.absent(ordinal),
            Place::Variable { index } => self.variable(usize::from(index)),
            Place::Fixed { offset, length } => {
                let (start, length) = (usize::from(offset), usize::from(length));
                let bytes = self.row.get(start..start + length);
                fixed::read(slot.column_type, bytes.ok_or_else(|| damaged(self.row, "fixed part"))?)
                    .map(ColumnValue::Inline)
                    .map_err(|error| RowError::Value { ordinal, error })
            }
        }
    }

    /// All columns in the order of their ordinals; dropped ones are NULL.
    pub fn columns(&self) -> impl Iterator<Item = Result<ColumnValue<'a>, RowError>> + use<'a> {
        let view = *self;
        let dropped = |ordinal: usize| view.layout.columns[ordinal].dropped_in.is_some();
        (0..view.layout.columns.len()).map(move |ordinal| {
            if dropped(ordinal) {
                return Ok(ColumnValue::Inline(ValueRef::Null));
            }
            view.column(ordinal)
        })
    }

    /// All references that the row holds, of dropped columns too: the chains to free with the row.
    pub fn overflow_references(
        &self,
    ) -> impl Iterator<Item = Result<OverflowReference, RowError>> + use<'a> {
        let view = *self;
        (0..view.generation.variable_columns).filter_map(move |index| match view.variable(index) {
            Ok(ColumnValue::Overflow(reference)) => Some(Ok(reference)),
            Ok(ColumnValue::Inline(_)) => None,
            Err(error) => Some(Err(error)),
        })
    }

    fn absent(&self, ordinal: usize) -> Result<ColumnValue<'a>, RowError> {
        let column = &self.layout.columns[ordinal];
        if column.added_in <= self.version {
            return Err(RowError::NoSuchColumn(ordinal));
        }
        Ok(ColumnValue::Inline(column.default.as_ref()))
    }

    #[inline]
    fn is_null(&self, bit: usize) -> Result<bool, RowError> {
        let byte = self.row.get(VERSION_LENGTH + bit / 8);
        Ok(byte.ok_or_else(|| damaged(self.row, "null bitmap"))? >> (bit % 8) & 1 == 1)
    }

    #[inline]
    fn end_offset(&self, index: usize) -> Result<u16, RowError> {
        let at = self.generation.offsets_start + index * END_OFFSET_LENGTH;
        let bytes = self.row.get(at..).and_then(|rest| rest.first_chunk());
        Ok(u16::from_le_bytes(*bytes.ok_or_else(|| damaged(self.row, "offset table"))?))
    }

    #[inline]
    fn variable(&self, index: usize) -> Result<ColumnValue<'a>, RowError> {
        let start = match index.checked_sub(1) {
            Some(before) => self.end_offset(before)? & !OVERFLOW_FLAG,
            None => 0,
        };
        let end = self.end_offset(index)?;
        let data = self.row.get(self.generation.data_start..).unwrap_or(&[]);
        let bytes = data.get(usize::from(start)..usize::from(end & !OVERFLOW_FLAG));
        let bytes = bytes.ok_or_else(|| damaged(self.row, "variable column"))?;
        if end & OVERFLOW_FLAG == 0 {
            return Ok(ColumnValue::Inline(ValueRef::Bytes(bytes)));
        }
        let reference = OverflowReference::from_bytes(bytes);
        reference.map(ColumnValue::Overflow).ok_or_else(|| damaged(self.row, "overflow reference"))
    }
}

fn damaged(row: &[u8], part: &'static str) -> RowError {
    RowError::Damaged { length: row.len(), part }
}
