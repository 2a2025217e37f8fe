//! One column out of many rows: what of its place is the same in all of them is looked up once.

use crate::value::{ValueRef, fixed};

use super::encode::OVERFLOW_FLAG;
use super::layout::{END_OFFSET_LENGTH, Place, RowLayout, Slot, VERSION_LENGTH};

/// Reads a column of rows of a layout's own version.
///
/// It answers `None` wherever there is more to say than a value that stands in the row: for rows of other
/// versions, values that are out of line, and damage. [`super::RowView`] says it then.
#[derive(Clone, Copy, Debug)]
pub struct ColumnReader {
    slot: Slot,
    version: [u8; VERSION_LENGTH],
    /// Where the column's end offset stands, for a variable column.
    end_at: usize,
    /// Where the variable part begins.
    data_start: usize,
}

impl RowLayout {
    /// A reader of the column with this ordinal; `None` if rows of the layout's version do not have it.
    #[must_use]
    pub fn column_reader(&self, ordinal: usize) -> Option<ColumnReader> {
        let generation = self.current();
        let slot = *generation.slots.get(ordinal)?;
        let end_at = match slot.place {
            Place::Absent => return None,
            Place::Fixed { .. } => 0,
            Place::Variable { index } => {
                generation.offsets_start + usize::from(index) * END_OFFSET_LENGTH
            }
        };
        let version = self.version().0.to_le_bytes();
        Some(ColumnReader { slot, version, end_at, data_start: generation.data_start })
    }
}

impl ColumnReader {
    /// The column's value in `row`; see the type's page for `None`.
    #[must_use]
    #[inline]
    pub fn read<'a>(&self, row: &'a [u8]) -> Option<ValueRef<'a>> {
        if *row.first_chunk::<VERSION_LENGTH>()? != self.version {
            return None;
        }
        if let Some(bit) = self.slot.null_bit {
            let byte = row.get(VERSION_LENGTH + usize::from(bit / 8))?;
            if byte >> (bit % 8) & 1 == 1 {
                return Some(ValueRef::Null);
            }
        }
        match self.slot.place {
            Place::Fixed { offset, length } => {
                let bytes = row.get(usize::from(offset)..)?.get(..usize::from(length))?;
                fixed::read(self.slot.column_type, bytes).ok()
            }
            Place::Variable { index } => self.variable(index > 0, row).map(ValueRef::Bytes),
            Place::Absent => None,
        }
    }

    #[inline]
    fn variable<'a>(&self, has_one_before: bool, row: &'a [u8]) -> Option<&'a [u8]> {
        let end = end_offset(row, self.end_at)?;
        let start = match has_one_before {
            true => end_offset(row, self.end_at - END_OFFSET_LENGTH)? & !OVERFLOW_FLAG,
            false => 0,
        };
        if end & OVERFLOW_FLAG != 0 {
            return None;
        }
        row.get(self.data_start..)?.get(usize::from(start)..usize::from(end))
    }
}

#[inline]
fn end_offset(row: &[u8], at: usize) -> Option<u16> {
    row.get(at..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
}
