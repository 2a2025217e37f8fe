//! Values to key bytes.

use crate::value::{ColumnType, ValueError, ValueRef, fixed};

use super::{CollationKeys, Direction, KeyError, KeyLayout, KeyPart, escape};

/// First byte of a nullable part that is NULL.
pub(super) const NULL_MARK: u8 = 0;
/// First byte of a value other than NULL in a nullable part.
pub(super) const NOT_NULL_MARK: u8 = 1;

impl KeyLayout {
    /// Appends the key of a row to `out`. `row` has a value for each ordinal of the table, of which
    /// only the key's columns are read. A value of a part with a prefix length may already be cut
    /// to that prefix.
    ///
    /// # Errors
    /// [`KeyError::WrongValueCount`], [`KeyError::NullInNotNull`] and [`KeyError::Value`]; `out`
    /// then ends with part of a key.
    pub fn encode_row(
        &self,
        row: &[ValueRef<'_>],
        collations: &dyn CollationKeys,
        out: &mut Vec<u8>,
    ) -> Result<(), KeyError> {
        for (number, part) in self.parts.iter().enumerate() {
            let value = row.get(usize::from(part.column));
            let value = value
                .ok_or(KeyError::WrongValueCount { given: row.len(), parts: self.parts.len() })?;
            part.write(number, *value, collations, out)?;
        }
        Ok(())
    }

    /// Appends the bytes of the first parts of a key, one value for each part in order. With a
    /// value for every part, the result is a whole key.
    ///
    /// # Errors
    /// As [`KeyLayout::encode_row`].
    pub fn encode_parts(
        &self,
        values: &[ValueRef<'_>],
        collations: &dyn CollationKeys,
        out: &mut Vec<u8>,
    ) -> Result<(), KeyError> {
        let (given, parts) = (values.len(), self.parts.len());
        if given > parts {
            return Err(KeyError::WrongValueCount { given, parts });
        }
        for (number, (part, value)) in self.parts.iter().zip(values).enumerate() {
            part.write(number, *value, collations, out)?;
        }
        Ok(())
    }
}

impl KeyPart {
    /// Appends the part's bytes for `value`; `number` is the part's place in the key.
    #[inline]
    pub(super) fn write(
        &self,
        number: usize,
        value: ValueRef<'_>,
        collations: &dyn CollationKeys,
        out: &mut Vec<u8>,
    ) -> Result<(), KeyError> {
        let start = out.len();
        match (value.is_null(), self.nullable) {
            (true, true) => out.push(NULL_MARK),
            (true, false) => return Err(KeyError::NullInNotNull { part: number }),
            (false, nullable) => {
                if nullable {
                    out.push(NOT_NULL_MARK);
                }
                let written = self.write_value(value, collations, out);
                written.map_err(|error| KeyError::Value { part: number, error })?;
            }
        }
        if self.direction == Direction::Descending {
            out[start..].iter_mut().for_each(|byte| *byte = !*byte);
        }
        Ok(())
    }

    #[inline]
    fn write_value(
        &self,
        value: ValueRef<'_>,
        collations: &dyn CollationKeys,
        out: &mut Vec<u8>,
    ) -> Result<(), ValueError> {
        match (self.column_type, value) {
            (ColumnType::Float, ValueRef::Float(number)) => {
                out.extend_from_slice(&ordered_f32(number).to_be_bytes());
            }
            (ColumnType::Double, ValueRef::Double(number)) => {
                out.extend_from_slice(&ordered_f64(number).to_be_bytes());
            }
            (column_type, value) => match (column_type.fixed_length(), value) {
                (Some(length), _) => {
                    let start = out.len();
                    out.resize(start + length, 0);
                    fixed::write(column_type, value, &mut out[start..])?;
                }
                (None, ValueRef::Bytes(bytes)) => self.write_bytes(bytes, collations, out),
                (None, _) => return Err(ValueError::Mismatch(column_type)),
            },
        }
        Ok(())
    }

    fn write_bytes(&self, bytes: &[u8], collations: &dyn CollationKeys, out: &mut Vec<u8>) {
        let Some(collation) = self.column_type.collation() else {
            let length = self.prefix_length.map_or(bytes.len(), |prefix| prefix as usize);
            return escape::write(&bytes[..length.min(bytes.len())], out);
        };
        let length = self.prefix_length.map_or(bytes.len(), |characters| {
            collations.prefix_bytes(collation, bytes, characters).min(bytes.len())
        });
        let start = out.len();
        collations.write_sort_key(collation, &bytes[..length], out);
        escape::finish_in_place(out, start);
    }
}

/// Bits that compare as the numbers do, -0 being 0.
fn ordered_f32(number: f32) -> u32 {
    let bits = if number == 0.0 { 0 } else { number.to_bits() };
    if bits >> 31 == 1 { !bits } else { bits | 1 << 31 }
}

/// The inverse of [`ordered_f32`], but for -0.
pub(super) fn unordered_f32(ordered: u32) -> f32 {
    f32::from_bits(if ordered >> 31 == 1 { ordered & !(1 << 31) } else { !ordered })
}

/// Bits that compare as the numbers do, -0 being 0.
fn ordered_f64(number: f64) -> u64 {
    let bits = if number == 0.0 { 0 } else { number.to_bits() };
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// The inverse of [`ordered_f64`], but for -0.
pub(super) fn unordered_f64(ordered: u64) -> f64 {
    f64::from_bits(if ordered >> 63 == 1 { ordered & !(1 << 63) } else { !ordered })
}
