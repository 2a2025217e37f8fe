//! Key bytes to parts and, where possible, to values: always for fixed-width parts (a float's -0
//! has become 0), and for strings unless they were cut to a prefix or replaced by a collation's
//! sort key.

use smallvec::SmallVec;

use crate::value::{ColumnType, Value, ValueRef, fixed};

use super::encode::{NOT_NULL_MARK, NULL_MARK, unordered_f32, unordered_f64};
use super::{CollationKeys, Direction, KeyError, KeyLayout, KeyPart, escape};

/// Reads the parts of a key one after the other. The bytes may be anything.
#[derive(Clone, Debug)]
pub struct KeyReader<'a> {
    parts: &'a [KeyPart],
    number: usize,
    rest: &'a [u8],
}

impl KeyLayout {
    /// Reads `key`, which may be followed by other bytes.
    #[must_use]
    pub fn reader<'a>(&'a self, key: &'a [u8]) -> KeyReader<'a> {
        KeyReader { parts: &self.parts, number: 0, rest: key }
    }

    /// Bytes of the first `parts` parts of `key`. For all parts, this is the length of the key.
    ///
    /// # Errors
    /// [`KeyError::Damaged`].
    pub fn parts_length(&self, key: &[u8], parts: usize) -> Result<usize, KeyError> {
        if let Some(length) = self.fixed_length
            && parts == self.parts.len()
        {
            let part = parts - 1;
            return if key.len() >= length { Ok(length) } else { Err(KeyError::Damaged { part }) };
        }
        let mut reader = self.reader(key);
        for _ in 0..parts {
            reader.skip_part()?;
        }
        Ok(key.len() - reader.rest().len())
    }

    /// The values of all parts, `None` for one that cannot be read back.
    ///
    /// # Errors
    /// [`KeyError::Damaged`] and [`KeyError::Value`] for damaged bytes.
    pub fn decode(
        &self,
        key: &[u8],
        collations: &dyn CollationKeys,
    ) -> Result<Vec<Option<Value>>, KeyError> {
        let mut reader = self.reader(key);
        self.parts.iter().map(|_| reader.next_value(collations)).collect()
    }

    /// Whether the column of this part can be read back from a key.
    #[must_use]
    pub fn is_invertible(&self, part: usize, collations: &dyn CollationKeys) -> bool {
        self.parts.get(part).is_some_and(|part| part.is_invertible(collations))
    }
}

impl<'a> KeyReader<'a> {
    /// The bytes after the parts that have been read.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Skips a part and returns its bytes.
    ///
    /// # Errors
    /// [`KeyError::Damaged`], also when there is no further part.
    pub fn skip_part(&mut self) -> Result<&'a [u8], KeyError> {
        let damaged = KeyError::Damaged { part: self.number };
        let part = self.parts.get(self.number).ok_or(damaged)?;
        let length = part.length(self.rest).ok_or(damaged)?;
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(damaged)?;
        self.rest = rest;
        self.number += 1;
        Ok(bytes)
    }

    /// The value of the next part, or `None` if it cannot be read back. Allocates for strings and
    /// decimals only.
    ///
    /// # Errors
    /// [`KeyError::Damaged`], also if there is no further part, and [`KeyError::Value`] for damaged
    /// bytes.
    pub fn next_value(
        &mut self,
        collations: &dyn CollationKeys,
    ) -> Result<Option<Value>, KeyError> {
        let number = self.number;
        let bytes = self.skip_part()?;
        let part = &self.parts[number];
        if part.nullable && bytes.len() == 1 {
            return Ok(Some(Value::Null));
        }
        if !part.is_invertible(collations) {
            return Ok(None);
        }
        part.read(number, &bytes[usize::from(part.nullable)..]).map(Some)
    }
}

impl KeyPart {
    /// All bits of an inverted byte, none of any other.
    fn inversion(&self) -> u8 {
        match self.direction {
            Direction::Ascending => 0,
            Direction::Descending => 0xff,
        }
    }

    fn is_invertible(&self, collations: &dyn CollationKeys) -> bool {
        self.prefix_length.is_none()
            && self.column_type.collation().is_none_or(|id| collations.sort_key_is_text(id))
    }

    /// Bytes that the part takes at the head of `bytes`.
    #[inline]
    fn length(&self, bytes: &[u8]) -> Option<usize> {
        let mark_length = usize::from(self.nullable);
        if self.nullable {
            match bytes.first()? ^ self.inversion() {
                NULL_MARK => return Some(mark_length),
                NOT_NULL_MARK => {}
                _ => return None,
            }
        }
        let length = match self.column_type.fixed_length() {
            Some(length) => length,
            None => escape::length(&bytes[mark_length..], self.inversion())?,
        };
        Some(mark_length + length)
    }

    /// The value of a part from its bytes without a NULL mark.
    fn read(&self, part: usize, bytes: &[u8]) -> Result<Value, KeyError> {
        let inversion = self.inversion();
        if self.column_type.fixed_length().is_none() {
            return Ok(Value::Bytes(escape::read(bytes, inversion).into()));
        }
        let plain: SmallVec<[u8; 32]> = bytes.iter().map(|byte| byte ^ inversion).collect();
        let value = match self.column_type {
            ColumnType::Float => ValueRef::Float(unordered_f32(fixed::get(&plain) as u32)),
            ColumnType::Double => ValueRef::Double(unordered_f64(fixed::get(&plain))),
            column_type => {
                fixed::read(column_type, &plain).map_err(|error| KeyError::Value { part, error })?
            }
        };
        Ok(value.to_value())
    }
}
