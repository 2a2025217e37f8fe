//! Memcomparable keys: the bytes of two keys compare as their values do, column by column, so a
//! tree orders, searches and cuts keys without knowing their types.
//!
//! ```text
//!   key of (a INT NULL, b VARCHAR(10) DESC) for (7, 'ab'):
//!   ┌────┬─────────────┬───────────────────────────┐
//!   │ 01 │ 80 00 00 07 │ 9E 9D FF FF               │
//!   └────┴─────────────┴───────────────────────────┘
//!     │    sign flipped   'a' 'b' 00 00, every bit inverted because the part descends
//!     not NULL (only nullable parts have this byte; 00 is NULL and nothing follows)
//! ```
//!
//! Text is stored as its collation's sort key ([`CollationKeys`]); byte strings are stored as they
//! are, with 00 escaped as 00 FF and a final 00 00.
//!
//! ```
//! use firn_format::key::{BinaryCollation, KeyLayout, KeyPart};
//! use firn_format::value::{ColumnType, IntWidth, ValueRef};
//!
//! let part = KeyPart::ascending(0, ColumnType::Int(IntWidth::Two), true);
//! let layout = KeyLayout::new(vec![part.descending()])?;
//! let mut keys = [ValueRef::Null, ValueRef::Int(-3), ValueRef::Int(4)].map(|value| {
//!     let mut key = Vec::new();
//!     layout.encode_parts(&[value], &BinaryCollation, &mut key).unwrap();
//!     key
//! });
//! keys.sort();
//! assert_eq!(keys, [&[0xfe, 0x7f, 0xfb][..], &[0xfe, 0x80, 0x02], &[0xff]]);
//! # Ok::<(), firn_format::key::KeyError>(())
//! ```
//!
//! Invariants, for keys of one [`KeyLayout`]:
//! * `encode(a) < encode(b)` in bytes if and only if `a < b` part by part, NULL being lowest, each
//!   part in its direction;
//! * no part's bytes are a proper prefix of another value's in the same place, so a key can be cut
//!   into its parts, and one key's bytes can follow another's;
//! * decoding never panics, whatever the bytes are.
//!
//! The tree limits the length of keys. `docs/formats/key.md` draws the bytes.

mod collation;
mod decode;
mod encode;
mod escape;
mod range;
mod secondary;
#[cfg(test)]
mod tests;

use crate::value::{ColumnType, ValueError};

pub use collation::{BinaryCollation, CollationKeys};
pub use decode::KeyReader;
pub use range::{KeyRange, prefix_successor};
pub use secondary::{IndexEntry, SecondaryLayout};

/// The order of a key part.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
pub enum Direction {
    /// Smallest first, NULL before all.
    #[default]
    Ascending,
    /// Largest first, NULL after all.
    Descending,
}

/// One column of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPart {
    /// The column's ordinal in the table.
    pub column: u16,
    pub column_type: ColumnType,
    /// Whether the column may be NULL.
    pub nullable: bool,
    pub direction: Direction,
    /// The indexed prefix of a string, in characters of text or in bytes of any other string.
    pub prefix_length: Option<u32>,
}

impl KeyPart {
    /// All of a column, ascending.
    #[must_use]
    pub fn ascending(column: u16, column_type: ColumnType, nullable: bool) -> KeyPart {
        let direction = Direction::Ascending;
        KeyPart { column, column_type, nullable, direction, prefix_length: None }
    }

    /// The same part in descending order.
    #[must_use]
    pub fn descending(self) -> KeyPart {
        KeyPart { direction: Direction::Descending, ..self }
    }

    /// The same with a prefix length.
    #[must_use]
    pub fn prefix(self, length: u32) -> KeyPart {
        KeyPart { prefix_length: Some(length), ..self }
    }
}

/// The parts of a key, in the order in which they are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyLayout {
    parts: Box<[KeyPart]>,
    /// Length of every key, if all parts are fixed and none may be NULL.
    fixed_length: Option<usize>,
}

impl KeyLayout {
    /// Makes the codec of a key with these parts.
    ///
    /// # Errors
    /// [`KeyError::InvalidLayout`] if there is no part, or if a part other than a string has a
    /// prefix length; [`KeyError::Value`] for impossible column types.
    pub fn new(parts: Vec<KeyPart>) -> Result<KeyLayout, KeyError> {
        if parts.is_empty() {
            return Err(KeyError::InvalidLayout("a key without parts"));
        }
        for (number, part) in parts.iter().enumerate() {
            part.column_type.check().map_err(|error| KeyError::Value { part: number, error })?;
            if part.prefix_length.is_some() && part.column_type.fixed_length().is_some() {
                return Err(KeyError::InvalidLayout("a prefix of a column that is no string"));
            }
        }
        let fixed = |part: &KeyPart| part.column_type.fixed_length().filter(|_| !part.nullable);
        let fixed_length = parts.iter().map(fixed).sum();
        Ok(KeyLayout { parts: parts.into(), fixed_length })
    }

    /// The parts, in the order in which they are compared.
    #[must_use]
    pub fn parts(&self) -> &[KeyPart] {
        &self.parts
    }

    /// The length in bytes that every key has, if it is the same for all.
    #[must_use]
    pub fn fixed_length(&self) -> Option<usize> {
        self.fixed_length
    }
}

/// Errors of keys. [`KeyError::Damaged`] and [`ValueError::Corrupt`] report damaged stored bytes;
/// all others are the caller's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The bytes are not a key of the layout.
    #[error("part {part} of a key is damaged")]
    Damaged {
        /// Index of the part.
        part: usize,
    },
    /// NULL for a part that is not nullable.
    #[error("part {part} of the key cannot be NULL")]
    NullInNotNull {
        /// Index of the part.
        part: usize,
    },
    /// The values lack a column of the key, or there are more values than parts.
    #[error("{given} values were given for a key of {parts} parts")]
    WrongValueCount { given: usize, parts: usize },
    /// The parts contradict each other.
    #[error("the key is impossible: {0}")]
    InvalidLayout(&'static str),
    /// A value does not fit its part.
    #[error("part {part} of the key: {error}")]
    Value {
        /// Index of the part.
        part: usize,
        error: ValueError,
    },
}
