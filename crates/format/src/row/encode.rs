//! Values to row bytes, and the choice of values that leave a row which would be too long.
//!
//! The longest values leave first, as few as it takes: the order in which InnoDB's `DYNAMIC` format moves
//! columns off the page, and like there nothing of a moved value stays behind.

use smallvec::SmallVec;

use crate::value::{ColumnType, ValueError, ValueRef, fixed};

use super::layout::{Generation, Place, Slot};
use super::{ColumnValue, MAX_INLINE_ROW_BYTES, OverflowReference, RowError, RowLayout};

/// Marks an end offset whose bytes are an [`OverflowReference`].
pub(super) const OVERFLOW_FLAG: u16 = 0x8000;

/// Which values have to be stored out of line so that a row fits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowPlan {
    /// Ordinals of the columns, longest value first. Empty for most rows.
    pub externalise: SmallVec<[u16; 4]>,
    /// Length of the row once they are.
    pub row_bytes: usize,
}

impl RowLayout {
    /// The row of `values`, one for each ordinal. Values of dropped columns are ignored.
    ///
    /// # Errors
    /// [`RowError::TooLarge`] when values have to be stored out of line first; else as
    /// [`RowLayout::encode_into`].
    pub fn encode(&self, values: &[ValueRef<'_>]) -> Result<Vec<u8>, RowError> {
        let mut row = Vec::new();
        self.encode_into(values, &mut row)?;
        Ok(row)
    }

    /// Appends the row of `cells` to `out`. A cell is a [`ValueRef`] or a [`ColumnValue`], one for each
    /// ordinal; those of dropped columns are ignored. After an error, `out` is as it was.
    ///
    /// # Errors
    /// [`RowError::TooLarge`] when the row would be longer than [`MAX_INLINE_ROW_BYTES`];
    /// [`RowError::WrongColumnCount`], [`RowError::NullInNotNull`] and [`RowError::Value`] for cells that
    /// do not fit the columns.
    pub fn encode_into<'a, C>(&self, cells: &[C], out: &mut Vec<u8>) -> Result<(), RowError>
    where
        C: Into<ColumnValue<'a>> + Copy,
    {
        let row_bytes = self.measure(cells)?;
        if row_bytes > MAX_INLINE_ROW_BYTES {
            return Err(RowError::TooLarge { row_bytes });
        }
        let start = out.len();
        out.resize(start + row_bytes, 0);
        let generation = self.current();
        let row = &mut out[start..];
        row[..2].copy_from_slice(&self.version().0.to_be_bytes());
        let mut writer = RowWriter { generation, row, data_end: generation.data_start };
        for (ordinal, (slot, cell)) in generation.slots.iter().zip(cells).enumerate() {
            if let Err(error) = writer.write(slot, (*cell).into()) {
                out.truncate(start);
                return Err(at_column(ordinal, error));
            }
        }
        Ok(())
    }

    /// Chooses the values that have to leave the row of `cells` so that it fits. Cells that already are
    /// references stay what they are.
    ///
    /// # Errors
    /// [`RowError::TooLarge`] when the row is too long even with every value outside that can be, and as
    /// [`RowLayout::encode_into`].
    pub fn plan<'a, C>(&self, cells: &[C]) -> Result<RowPlan, RowError>
    where
        C: Into<ColumnValue<'a>> + Copy,
    {
        let mut row_bytes = self.measure(cells)?;
        let mut externalise = SmallVec::new();
        if row_bytes > MAX_INLINE_ROW_BYTES {
            for (length, ordinal) in self.movable(cells) {
                externalise.push(ordinal);
                row_bytes -= length - OverflowReference::ENCODED_LENGTH;
                if row_bytes <= MAX_INLINE_ROW_BYTES {
                    break;
                }
            }
        }
        if row_bytes > MAX_INLINE_ROW_BYTES {
            return Err(RowError::TooLarge { row_bytes });
        }
        Ok(RowPlan { externalise, row_bytes })
    }

    /// Length of the row of `cells`.
    fn measure<'a, C>(&self, cells: &[C]) -> Result<usize, RowError>
    where
        C: Into<ColumnValue<'a>> + Copy,
    {
        let generation = self.current();
        if cells.len() != generation.slots.len() {
            let columns = generation.slots.len();
            return Err(RowError::WrongColumnCount { given: cells.len(), columns });
        }
        let lengths = generation.slots.iter().zip(cells).map(|(slot, cell)| match slot.place {
            Place::Variable { .. } => variable_length((*cell).into()),
            _ => 0,
        });
        Ok(generation.data_start + lengths.sum::<usize>())
    }

    /// Length and ordinal of every value that is shorter as a reference, longest first.
    fn movable<'a, C>(&self, cells: &[C]) -> Vec<(usize, u16)>
    where
        C: Into<ColumnValue<'a>> + Copy,
    {
        let slots = self.current().slots.iter();
        let mut movable: Vec<(usize, u16)> = (0..)
            .zip(slots.zip(cells))
            .filter(|(_, (slot, _))| matches!(slot.place, Place::Variable { .. }))
            .map(|(ordinal, (_, cell))| (variable_length((*cell).into()), ordinal))
            .filter(|&(length, _)| length > OverflowReference::ENCODED_LENGTH)
            .collect();
        movable.sort_by_key(|&(length, ordinal)| (std::cmp::Reverse(length), ordinal));
        movable
    }
}

fn variable_length(cell: ColumnValue<'_>) -> usize {
    match cell {
        ColumnValue::Inline(ValueRef::Bytes(bytes)) => bytes.len(),
        ColumnValue::Inline(_) => 0,
        ColumnValue::Overflow(_) => OverflowReference::ENCODED_LENGTH,
    }
}

enum WriteError {
    NullInNotNull,
    Value(ValueError),
}

fn at_column(ordinal: usize, error: WriteError) -> RowError {
    match error {
        WriteError::NullInNotNull => RowError::NullInNotNull(ordinal),
        WriteError::Value(error) => RowError::Value { ordinal, error },
    }
}

/// Fills in a zeroed row, column by column in the order of the ordinals.
struct RowWriter<'r> {
    generation: &'r Generation,
    row: &'r mut [u8],
    /// Where the variable part ends so far.
    data_end: usize,
}

impl RowWriter<'_> {
    #[inline]
    fn write(&mut self, slot: &Slot, cell: ColumnValue<'_>) -> Result<(), WriteError> {
        if let Place::Absent = slot.place {
            return Ok(());
        }
        if let ColumnValue::Inline(ValueRef::Null) = cell {
            self.set_null(slot)?;
        }
        match slot.place {
            Place::Absent => Ok(()),
            Place::Fixed { offset } => self.write_fixed(usize::from(offset), slot, cell),
            Place::Variable { index } => {
                self.write_variable(usize::from(index), slot.column_type, cell)
            }
        }
    }

    fn set_null(&mut self, slot: &Slot) -> Result<(), WriteError> {
        let bit = usize::from(slot.null_bit.ok_or(WriteError::NullInNotNull)?);
        self.row[super::layout::VERSION_LENGTH + bit / 8] |= 1 << (bit % 8);
        Ok(())
    }

    #[inline]
    fn write_fixed(
        &mut self,
        offset: usize,
        slot: &Slot,
        cell: ColumnValue<'_>,
    ) -> Result<(), WriteError> {
        let column_type = slot.column_type;
        match cell {
            ColumnValue::Inline(ValueRef::Null) => Ok(()),
            ColumnValue::Inline(value) => {
                let length = column_type.fixed_length().unwrap_or(0);
                let out = &mut self.row[offset..offset + length];
                fixed::write(column_type, value, out).map_err(WriteError::Value)
            }
            ColumnValue::Overflow(_) => Err(WriteError::Value(ValueError::Mismatch(column_type))),
        }
    }

    #[inline]
    fn write_variable(
        &mut self,
        index: usize,
        column_type: ColumnType,
        cell: ColumnValue<'_>,
    ) -> Result<(), WriteError> {
        let flag = match cell {
            ColumnValue::Inline(ValueRef::Null) => 0,
            ColumnValue::Inline(ValueRef::Bytes(bytes)) => {
                self.append(bytes);
                0
            }
            ColumnValue::Overflow(reference) => {
                self.append(&reference.to_bytes());
                OVERFLOW_FLAG
            }
            ColumnValue::Inline(_) => {
                return Err(WriteError::Value(ValueError::Mismatch(column_type)));
            }
        };
        let end = (self.data_end - self.generation.data_start) as u16 | flag;
        let at = self.generation.offsets_start + index * super::layout::END_OFFSET_LENGTH;
        self.row[at..at + 2].copy_from_slice(&end.to_be_bytes());
        Ok(())
    }

    #[inline]
    fn append(&mut self, bytes: &[u8]) {
        self.row[self.data_end..self.data_end + bytes.len()].copy_from_slice(bytes);
        self.data_end += bytes.len();
    }
}
