//! A row, encoded field by field into the connection's output.
//!
//! ```text
//!   text:    | field | field | …         a field: length-encoded text, or 0xfb for NULL
//!   binary:  | 0 | NULL bits, from bit 2 | field | …      a field as its column's type has it
//! ```

use std::sync::Arc;

use crate::channel::Output;
use crate::packet::PayloadWriter;
use crate::value::{ColumnType, Date, DateTime, Time};

use super::column::ColumnKind;
use super::result_set::CursorRows;
use super::{RowFormat, number, temporal};

/// The byte of `NULL` in text rows.
const TEXT_NULL: u8 = 0xfb;

/// A row under construction: call one method for each column, in order, and then [`Row::end`]. A
/// row that is dropped before its end is not sent.
///
/// The method may differ from the column's type: a number in a text column becomes text, an integer
/// in a floating-point column becomes a floating-point number. Bytes are accepted only by columns
/// that the binary protocol sends as bytes.
pub struct Row<'s> {
    output: &'s mut Output,
    kinds: &'s [ColumnKind],
    cursor: Option<&'s mut CursorRows>,
    format: RowFormat,
    /// Index of the next column.
    column: &'s mut usize,
}

impl<'s> Row<'s> {
    #[inline]
    pub(super) fn begin(
        output: &'s mut Output,
        kinds: &'s [ColumnKind],
        format: RowFormat,
        cursor: Option<&'s mut CursorRows>,
        column: &'s mut usize,
    ) -> Row<'s> {
        let buffer = output.begin();
        if format == RowFormat::Binary {
            let header = buffer.len() + 1 + (kinds.len() + 9) / 8;
            // Most rows have few columns, and nine zeros hold the bits of 62.
            match header - buffer.len() {
                length @ ..=9 => buffer.extend_from_slice(&[0; 9][..length]),
                _ => buffer.resize(header, 0),
            }
        }
        *column = 0;
        Row { output, kinds, cursor, format, column }
    }

    /// Continues the row that was begun last.
    #[inline]
    pub(super) fn resume(
        output: &'s mut Output,
        kinds: &'s [ColumnKind],
        format: RowFormat,
        cursor: Option<&'s mut CursorRows>,
        column: &'s mut usize,
    ) -> Row<'s> {
        Row { output, kinds, cursor, format, column }
    }

    /// The next column's properties, and the buffer for its field.
    #[inline]
    fn next(&mut self) -> (ColumnKind, &mut Vec<u8>) {
        let kind = self.kinds[*self.column];
        *self.column += 1;
        (kind, self.output.buffer())
    }

    #[inline]
    pub fn null(&mut self) {
        if self.format == RowFormat::Binary {
            let bit = *self.column + 2;
            let at = self.output.payload_start() + 1 + bit / 8;
            self.output.buffer()[at] |= 1 << (bit % 8);
            *self.column += 1;
            return;
        }
        self.next().1.push(TEXT_NULL);
    }

    /// An integer with sign.
    #[inline]
    pub fn int(&mut self, value: i64) {
        let binary = self.format == RowFormat::Binary;
        let (kind, buffer) = self.next();
        if !(binary && put_binary_integer(buffer, kind.column_type, value as u64, value as f64)) {
            put_text_integer(buffer, kind, itoa::Buffer::new().format(value));
        }
    }

    /// An integer without sign.
    #[inline]
    pub fn uint(&mut self, value: u64) {
        let binary = self.format == RowFormat::Binary;
        let (kind, buffer) = self.next();
        if !(binary && put_binary_integer(buffer, kind.column_type, value, value as f64)) {
            put_text_integer(buffer, kind, itoa::Buffer::new().format(value));
        }
    }

    /// A `FLOAT`. In text rows it has as many digits after the point as its column; if the column
    /// has no fixed number of digits, it has six significant ones.
    pub fn float(&mut self, value: f32) {
        let binary = self.format == RowFormat::Binary;
        let (kind, buffer) = self.next();
        match kind.column_type {
            ColumnType::Float if binary => buffer.put(&value.to_le_bytes()),
            ColumnType::Double if binary => buffer.put(&f64::from(value).to_le_bytes()),
            _ => put_formatted(buffer, |text| number::put_float(text, value, fixed_decimals(kind))),
        }
    }

    /// A `DOUBLE`. In text rows it has as many digits after the point as its column; if the column
    /// has no fixed number of digits, the fewest that identify the number.
    pub fn double(&mut self, value: f64) {
        let binary = self.format == RowFormat::Binary;
        let (kind, buffer) = self.next();
        match kind.column_type {
            ColumnType::Double if binary => buffer.put(&value.to_le_bytes()),
            ColumnType::Float if binary => buffer.put(&(value as f32).to_le_bytes()),
            _ => {
                put_formatted(buffer, |text| number::put_double(text, value, fixed_decimals(kind)))
            }
        }
    }

    /// A decimal number as text.
    #[inline]
    pub fn decimal(&mut self, text: &str) {
        let width = usize::from(self.kinds[*self.column].zerofill_width);
        match width.checked_sub(text.len()) {
            None | Some(0) => self.bytes(text.as_bytes()),
            Some(padding) => self.formatted(|buffer| {
                buffer.resize(buffer.len() + padding, b'0');
                buffer.extend_from_slice(text.as_bytes());
            }),
        }
    }

    pub fn date(&mut self, value: Date) {
        let binary = self.format == RowFormat::Binary;
        let (kind, buffer) = self.next();
        match kind.column_type {
            ColumnType::Date | ColumnType::DateTime | ColumnType::Timestamp if binary => {
                let midnight = DateTime { date: value, ..DateTime::default() };
                temporal::put_binary_date_time(buffer, &midnight);
            }
            _ => put_formatted(buffer, |text| temporal::put_date(text, value)),
        }
    }

    /// A date and time, as text with that many fractional digits (0 to 6).
    pub fn datetime(&mut self, value: DateTime, fsp: u8) {
        let binary = self.format == RowFormat::Binary;
        let (kind, buffer) = self.next();
        match kind.column_type {
            ColumnType::DateTime | ColumnType::Timestamp | ColumnType::Date if binary => {
                temporal::put_binary_date_time(buffer, &value);
            }
            _ => put_formatted(buffer, |text| temporal::put_date_time(text, &value, fsp)),
        }
    }

    /// A length of time, as text with that many fractional digits (0 to 6).
    pub fn time(&mut self, value: Time, fsp: u8) {
        let binary = self.format == RowFormat::Binary;
        let (kind, buffer) = self.next();
        match kind.column_type {
            ColumnType::Time if binary => temporal::put_binary_time(buffer, &value),
            _ => put_formatted(buffer, |text| temporal::put_time(text, &value, fsp)),
        }
    }

    /// Text (in `character_set_results`) or bytes.
    ///
    /// # Panics
    /// If the row is binary and the column's type is a number or a time.
    #[inline]
    pub fn bytes(&mut self, value: &[u8]) {
        self.check_takes_bytes();
        self.next().1.put_length_encoded_bytes(value);
    }

    /// Like [`Row::bytes`] for a long value, which is sent without a copy.
    ///
    /// # Panics
    /// As [`Row::bytes`].
    pub fn shared(&mut self, value: &Arc<Vec<u8>>) {
        // A cursor keeps whole payloads.
        if self.cursor.is_some() {
            return self.bytes(value);
        }
        self.check_takes_bytes();
        self.next().1.put_length_encoded_integer(value.len() as u64);
        self.output.share(value);
    }

    /// Text or bytes that `append` appends to its argument: for values that are formatted directly
    /// into the output.
    ///
    /// # Panics
    /// As [`Row::bytes`].
    #[inline]
    pub fn formatted(&mut self, append: impl FnOnce(&mut Vec<u8>)) {
        self.check_takes_bytes();
        put_formatted(self.next().1, append);
    }

    #[inline]
    fn check_takes_bytes(&self) {
        let column_type = self.kinds[*self.column].column_type;
        assert!(
            self.format == RowFormat::Text || is_length_encoded(column_type),
            "a {column_type:?} cannot be sent as bytes in a binary row"
        );
    }

    /// Completes the row.
    ///
    /// # Panics
    /// If not every column was written.
    #[inline]
    pub fn end(self) {
        assert_eq!(*self.column, self.kinds.len(), "a row has a field for each column");
        match self.cursor {
            Some(cursor) => cursor.push(self.output.payload()),
            None => self.output.commit(),
        }
    }
}

/// Whether the binary protocol sends values of this type as bytes after their length.
#[inline]
fn is_length_encoded(column_type: ColumnType) -> bool {
    use ColumnType::*;
    !matches!(
        column_type,
        Tiny | Short
            | Int24
            | Long
            | LongLong
            | Year
            | Float
            | Double
            | Date
            | DateTime
            | Timestamp
            | Time
            | Null
    )
}

/// Appends a number in the form of its column's type; false if that type is not a number.
#[inline]
fn put_binary_integer(
    buffer: &mut Vec<u8>,
    column_type: ColumnType,
    bits: u64,
    as_double: f64,
) -> bool {
    let bytes = bits.to_le_bytes();
    match column_type {
        ColumnType::LongLong => buffer.put(&bytes),
        ColumnType::Long | ColumnType::Int24 => buffer.put(&bytes[..4]),
        ColumnType::Short | ColumnType::Year => buffer.put(&bytes[..2]),
        ColumnType::Tiny => buffer.put(&bytes[..1]),
        ColumnType::Double => buffer.put(&as_double.to_le_bytes()),
        ColumnType::Float => buffer.put(&(as_double as f32).to_le_bytes()),
        _ => return false,
    }
    true
}

#[inline]
fn put_text_integer(buffer: &mut Vec<u8>, kind: ColumnKind, digits: &str) {
    let padding = usize::from(kind.zerofill_width).saturating_sub(digits.len());
    buffer.put_length_encoded_integer((padding + digits.len()) as u64);
    buffer.resize(buffer.len() + padding, b'0');
    buffer.put(digits.as_bytes());
}

/// Digits after the point of a number in a column of floating-point numbers.
fn fixed_decimals(kind: ColumnKind) -> u8 {
    match kind.column_type {
        ColumnType::Float | ColumnType::Double => kind.decimals,
        _ => number::NOT_FIXED,
    }
}

/// Calls `append` and puts the length of the bytes that it appends before them, in one byte.
fn put_formatted(buffer: &mut Vec<u8>, append: impl FnOnce(&mut Vec<u8>)) {
    let at = buffer.len();
    buffer.push(0);
    append(buffer);
    let length = buffer.len() - at - 1;
    if length <= 0xfa {
        buffer[at] = length as u8;
        return;
    }
    let mut prefix = Vec::with_capacity(9);
    prefix.put_length_encoded_integer(length as u64);
    buffer.splice(at..=at, prefix);
}
