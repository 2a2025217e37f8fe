//! Values to row bytes, and the choice of the values to move out of a row that is too long.
//!
//! The longest values move first, as few as possible: the order in which InnoDB's `DYNAMIC` format
//! moves columns off the page. As in InnoDB, no part of a moved value stays in the row. Long values
//! move until the row is comfortable; short values move only until the row fits at all.

use smallvec::SmallVec;

use crate::value::{ColumnType, ValueError, ValueRef, fixed};

use super::layout::{END_OFFSET_LENGTH, Generation, Place, Slot, VERSION_LENGTH};
use super::{
    COMFORTABLE_ROW_BYTES, ColumnValue, MAX_ROW_BYTES, OverflowReference, RowError, RowLayout,
    SHORT_VALUE_BYTES,
};

/// Marks an end offset whose bytes are an [`OverflowReference`].
pub(super) const OVERFLOW_FLAG: u16 = 0x8000;

/// The values to store out of line so that a row fits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowPlan {
    /// Ordinals of the columns, longest value first. Empty for most rows.
    pub externalise: SmallVec<[u16; 4]>,
    /// Length of the row after these values have moved.
    pub row_bytes: usize,
}

impl RowLayout {
    /// Encodes a row of one value for each ordinal. Values of dropped columns are ignored.
    ///
    /// # Errors
    /// [`RowError::TooLarge`] if values must be stored out of line first; otherwise as
    /// [`RowLayout::encode_into`].
    pub fn encode(&self, values: &[ValueRef<'_>]) -> Result<Vec<u8>, RowError> {
        let mut row = Vec::with_capacity(self.inline_length(values)?);
        self.write_cells(values, &mut row)?;
        Ok(row)
    }

    /// Appends the row of `cells` to `out`. A cell is a [`ValueRef`] or a [`ColumnValue`], one for
    /// each ordinal; cells of dropped columns are ignored. After an error, `out` is as it was.
    ///
    /// # Errors
    /// [`RowError::TooLarge`] when the row would be longer than [`MAX_ROW_BYTES`];
    /// [`RowError::WrongColumnCount`], [`RowError::NullInNotNull`] and [`RowError::Value`] for
    /// cells that do not fit the columns.
    pub fn encode_into<'a, C>(&self, cells: &[C], out: &mut Vec<u8>) -> Result<(), RowError>
    where
        C: Into<ColumnValue<'a>> + Copy,
    {
        out.reserve(self.inline_length(cells)?);
        self.write_cells(cells, out)
    }

    /// Length of the row of `cells`, if it is not too long.
    fn inline_length<'a, C>(&self, cells: &[C]) -> Result<usize, RowError>
    where
        C: Into<ColumnValue<'a>> + Copy,
    {
        match self.measure(cells)? {
            row_bytes if row_bytes > MAX_ROW_BYTES => Err(RowError::TooLarge { row_bytes }),
            row_bytes => Ok(row_bytes),
        }
    }

    /// Appends the row of `cells`, which is not too long, or nothing.
    fn write_cells<'a, C>(&self, cells: &[C], out: &mut Vec<u8>) -> Result<(), RowError>
    where
        C: Into<ColumnValue<'a>> + Copy,
    {
        let (start, generation) = (out.len(), self.current());
        out.extend_from_slice(&self.version().0.to_le_bytes());
        out.resize(start + generation.data_start, 0);
        let mut writer = RowWriter { generation, start, out };
        for (ordinal, (slot, cell)) in generation.slots.iter().zip(cells).enumerate() {
            if let Err(error) = writer.write(slot, (*cell).into()) {
                out.truncate(start);
                return Err(at_column(ordinal, error));
            }
        }
        Ok(())
    }

    /// Chooses the values to move out of the row of `cells`. Long ones move until the row takes at
    /// most [`COMFORTABLE_ROW_BYTES`]. Values of [`SHORT_VALUE_BYTES`] or less move until it takes
    /// at most [`MAX_ROW_BYTES`] and at most `max_row_bytes`, the room that a tree entry has beside
    /// the row's key. Cells that already are references stay.
    ///
    /// # Errors
    /// [`RowError::TooLarge`] if the row is too long with every possible value moved, and as
    /// [`RowLayout::encode_into`].
    pub fn plan<'a, C>(&self, cells: &[C], max_row_bytes: usize) -> Result<RowPlan, RowError>
    where
        C: Into<ColumnValue<'a>> + Copy,
    {
        let max_row_bytes = max_row_bytes.min(MAX_ROW_BYTES);
        let comfortable_bytes = max_row_bytes.min(COMFORTABLE_ROW_BYTES);
        let mut row_bytes = self.measure(cells)?;
        let mut externalise = SmallVec::new();
        if row_bytes > comfortable_bytes {
            for (length, ordinal) in self.movable(cells) {
                let is_short = length <= SHORT_VALUE_BYTES;
                if row_bytes <= if is_short { max_row_bytes } else { comfortable_bytes } {
                    break;
                }
                externalise.push(ordinal);
                row_bytes -= length - OverflowReference::ENCODED_LENGTH;
            }
        }
        if row_bytes > max_row_bytes {
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

/// Fills a row whose fixed parts are zeroed, column by column in the order of the ordinals.
struct RowWriter<'r> {
    generation: &'r Generation,
    /// Where the row begins in `out`.
    start: usize,
    out: &'r mut Vec<u8>,
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
            Place::Fixed { offset, length } => {
                let at = self.start + usize::from(offset);
                let out = &mut self.out[at..at + usize::from(length)];
                write_fixed(slot.column_type, cell, out).map_err(WriteError::Value)
            }
            Place::Variable { index } => {
                self.write_variable(usize::from(index), slot.column_type, cell)
            }
        }
    }

    fn set_null(&mut self, slot: &Slot) -> Result<(), WriteError> {
        let bit = usize::from(slot.null_bit.ok_or(WriteError::NullInNotNull)?);
        self.out[self.start + VERSION_LENGTH + bit / 8] |= 1 << (bit % 8);
        Ok(())
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
                self.out.extend_from_slice(bytes);
                0
            }
            ColumnValue::Overflow(reference) => {
                self.out.extend_from_slice(&reference.to_bytes());
                OVERFLOW_FLAG
            }
            ColumnValue::Inline(_) => {
                return Err(WriteError::Value(ValueError::Mismatch(column_type)));
            }
        };
        let end = self.out.len() - self.start - self.generation.data_start;
        let at = self.start + self.generation.offsets_start + index * END_OFFSET_LENGTH;
        self.out[at..at + END_OFFSET_LENGTH].copy_from_slice(&(end as u16 | flag).to_le_bytes());
        Ok(())
    }
}

#[inline]
fn write_fixed(
    column_type: ColumnType,
    cell: ColumnValue<'_>,
    out: &mut [u8],
) -> Result<(), ValueError> {
    match cell {
        ColumnValue::Inline(ValueRef::Null) => Ok(()),
        ColumnValue::Inline(value) => fixed::write(column_type, value, out),
        ColumnValue::Overflow(_) => Err(ValueError::Mismatch(column_type)),
    }
}
