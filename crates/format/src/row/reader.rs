//! One column out of many rows: what of its place is the same in all of them is looked up once.

use crate::value::decimal::ShortDecimal;
use crate::value::{ColumnType, ValueRef, fixed};

use super::encode::OVERFLOW_FLAG;
use super::layout::{END_OFFSET_LENGTH, Place, RowLayout, Slot, VERSION_LENGTH};

/// Reads a column of rows of a layout's own version.
///
/// It answers `None` wherever there is more to say than a value that stands in the row: for rows of other
/// versions, values that are out of line, and damage. [`super::RowView`] says it then.
#[derive(Clone, Copy, Debug)]
pub struct ColumnReader {
    slot: Slot,
    presence: Presence,
    /// Where the column's end offset stands, for a variable column.
    end_at: usize,
    /// Where the variable part begins.
    data_start: usize,
}

/// Where a row of a version says whether it has a value in a column.
#[derive(Clone, Copy, Debug)]
struct Presence {
    version: [u8; VERSION_LENGTH],
    /// The byte of the column's null bit, and the bit.
    null: Option<(usize, u8)>,
}

impl Presence {
    /// `None` for rows of other versions, and such as are too short.
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
        let presence = self.presence(slot);
        Some(ColumnReader { slot, presence, end_at, data_start: generation.data_start })
    }
}

/// Reads a column of numbers: integers, decimals of few digits, dates. Of many rows at a time, as the same steps are
/// taken for all.
#[derive(Clone, Copy, Debug)]
pub struct NumberReader {
    presence: Presence,
    offset: usize,
    length: usize,
    form: Form,
}

/// What a stored word says.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// The number, with this added.
    Biased(u64),
    /// The number, which is to have so many zero bits behind it.
    Shifted(u32),
    Decimal(ShortDecimal),
}

/// A column's word in a row.
enum Word {
    Null,
    Number(u64),
    /// The row is of another version, or too short.
    Unknown,
}

impl RowLayout {
    /// A reader of the column with this ordinal, if it is one of numbers; `None` too if rows of the layout's
    /// version do not have it.
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
    /// Hands the numbers of the rows to `take`, `None` for NULL; an unsigned one as the signed one with the same bits.
    /// Returns how many rows it has read: it stops before one that only [`super::RowView`] can read.
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
        // What stands behind the column is shifted out.
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
