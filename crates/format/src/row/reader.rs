//! Readers of one column in many rows. The part of the column's placement that all rows share is
//! looked up once.

use crate::value::decimal::ShortDecimal;
use crate::value::{ColumnType, ValueRef, fixed};

use super::encode::OVERFLOW_FLAG;
use super::layout::{END_OFFSET_LENGTH, Place, RowLayout, Slot, VERSION_LENGTH};

/// Reads one column of rows of the layout's own version.
///
/// Returns `None` in every case other than a plain value within the row: rows of other versions,
/// out-of-line values, and damage. [`super::RowView`] handles those.
#[derive(Clone, Copy, Debug)]
pub struct ColumnReader {
    slot: Slot,
    presence: Presence,
    /// Offset of the column's end offset, for a variable column.
    end_at: usize,
    /// Where the variable part begins.
    data_start: usize,
}

/// The place where a row records whether a column has a value.
#[derive(Clone, Copy, Debug)]
struct Presence {
    version: [u8; VERSION_LENGTH],
    /// The byte of the column's null bit, and the bit.
    null: Option<(usize, u8)>,
}

impl Presence {
    /// `None` if the row has another version or is too short.
    #[inline]
    fn is_null(&self, row: &[u8]) -> Option<bool> {
        if *row.first_chunk::<VERSION_LENGTH>()? != self.version {
            return None;
        }
        match self.null {
            Some((byte, bit)) => Some(row.get(byte)? & bit != 0),
            None => Some(false),
        }
    }
}

impl RowLayout {
    fn presence(&self, slot: Slot) -> Presence {
        let null = slot.null_bit.map(|bit| (VERSION_LENGTH + usize::from(bit / 8), 1 << (bit % 8)));
        Presence { version: self.version().0.to_le_bytes(), null }
    }

    /// A reader of the column with this ordinal; `None` if rows of the layout's version lack it.
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
        let presence = self.presence(slot);
        Some(ColumnReader { slot, presence, end_at, data_start: generation.data_start })
    }
}

/// Reads a column of numbers: integers, short decimals, dates. It reads many rows at a time, with
/// the same steps for each.
#[derive(Clone, Copy, Debug)]
pub struct NumberReader {
    presence: Presence,
    offset: usize,
    length: usize,
    form: Form,
}

/// The meaning of a stored word.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// The number, with this added.
    Biased(u64),
    /// The number, shifted left by this many bits.
    Shifted(u32),
    Decimal(ShortDecimal),
}

/// A column's word in a row.
enum Word {
    Null,
    Number(u64),
    /// The row has another version or is too short.
    Unknown,
}

impl RowLayout {
    /// A reader of the column with this ordinal; `None` if it does not hold numbers, or if rows of
    /// the layout's version lack it.
    #[must_use]
    pub fn number_reader(&self, ordinal: usize) -> Option<NumberReader> {
        let slot = *self.current().slots.get(ordinal)?;
        let Place::Fixed { offset, length } = slot.place else { return None };
        let form = match slot.column_type {
            ColumnType::Int(width) => Form::Biased(1 << (width.bits() - 1)),
            ColumnType::UInt(_) | ColumnType::Date => Form::Shifted(0),
            ColumnType::DateTime { fsp: 0 } => Form::Shifted(fixed::DATETIME_MICROSECOND_BITS),
            ColumnType::Decimal(decimal_type) => Form::Decimal(ShortDecimal::new(decimal_type)?),
            _ => return None,
        };
        let (offset, length) = (usize::from(offset), usize::from(length));
        Some(NumberReader { presence: self.presence(slot), offset, length, form })
    }
}

impl NumberReader {
    /// Passes the numbers of the rows to `take`: `None` for NULL; an unsigned number as the signed
    /// one with the same bits. Returns the number of rows that were read: it stops before a row
    /// that only [`super::RowView`] can read.
    #[inline]
    pub fn read_all(&self, rows: &[&[u8]], take: impl FnMut(Option<i64>)) -> usize {
        match self.form {
            Form::Biased(bias) => {
                self.read_words(rows, take, |word| Some(word.wrapping_sub(bias) as i64))
            }
            Form::Shifted(bits) => self.read_words(rows, take, |word| Some((word << bits) as i64)),
            Form::Decimal(decimal) => self.read_words(rows, take, |word| decimal.read(word)),
        }
    }

    #[inline]
    fn read_words(
        &self,
        rows: &[&[u8]],
        mut take: impl FnMut(Option<i64>),
        number: impl Fn(u64) -> Option<i64>,
    ) -> usize {
        for (count, row) in rows.iter().enumerate() {
            match self.word(row) {
                Word::Null => take(None),
                Word::Number(word) => match number(word) {
                    Some(number) => take(Some(number)),
                    None => return count,
                },
                Word::Unknown => return count,
            }
        }
        rows.len()
    }

    #[inline]
    fn word(&self, row: &[u8]) -> Word {
        match self.presence.is_null(row) {
            Some(false) => {}
            Some(true) => return Word::Null,
            None => return Word::Unknown,
        }
        let bytes = row.get(self.offset..).unwrap_or_default();
        // Shifts out the bytes after the column.
        match bytes.first_chunk() {
            Some(word) => Word::Number(u64::from_be_bytes(*word) >> (u64::BITS - self.bits())),
            None => {
                bytes.get(..self.length).map_or(Word::Unknown, |it| Word::Number(fixed::get(it)))
            }
        }
    }

    fn bits(&self) -> u32 {
        self.length as u32 * u8::BITS
    }
}

impl ColumnReader {
    /// The column's value in `row`; see the type's page for `None`.
    #[must_use]
    #[inline]
    pub fn read<'a>(&self, row: &'a [u8]) -> Option<ValueRef<'a>> {
        if self.presence.is_null(row)? {
            return Some(ValueRef::Null);
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
