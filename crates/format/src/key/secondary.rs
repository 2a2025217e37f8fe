//! Entries of secondary indexes.
//!
//! ```text
//!                                     key                        value
//!   unique, no part is NULL           parts                      primary key
//!   unique, some part is NULL         parts ‖ primary key        empty
//!   not unique                        parts ‖ primary key        empty
//! ```
//!
//! So the tree itself refuses a second entry for the same unique values, while rows with a NULL
//! among them never collide. The primary key is the key of the clustered index. Parts terminate
//! themselves, so it can be cut out of an entry's key without a stored length.

use crate::value::ValueRef;

use super::{CollationKeys, KeyError, KeyLayout};

/// One entry of a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexEntry {
    /// The bytes by which the entry is found.
    pub key: Vec<u8>,
    pub value: Vec<u8>,
}

/// A secondary index, as far as its entries are concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecondaryLayout {
    key: KeyLayout,
    unique: bool,
    /// Length of every primary key, if it is the same for all.
    primary_key_length: Option<usize>,
}

impl SecondaryLayout {
    /// An index with the parts of `key` over a table that is clustered by `primary_key`.
    #[must_use]
    pub fn new(key: KeyLayout, unique: bool, primary_key: &KeyLayout) -> SecondaryLayout {
        SecondaryLayout { key, unique, primary_key_length: primary_key.fixed_length() }
    }

    /// The index's own parts, without the primary key.
    #[must_use]
    pub fn key(&self) -> &KeyLayout {
        &self.key
    }

    /// Whether two rows with the same values, none of them NULL, are refused.
    #[must_use]
    pub fn is_unique(&self) -> bool {
        self.unique
    }

    /// The entry of a row. `row` has a value for each ordinal; no indexed part of a value is out of
    /// line. `primary_key` is the row's key in the clustered index.
    ///
    /// # Errors
    /// As [`KeyLayout::encode_row`].
    pub fn entry(
        &self,
        row: &[ValueRef<'_>],
        primary_key: &[u8],
        collations: &dyn CollationKeys,
    ) -> Result<IndexEntry, KeyError> {
        let mut entry = IndexEntry::default();
        self.write_entry(row, primary_key, collations, &mut entry)?;
        Ok(entry)
    }

    /// Like [`SecondaryLayout::entry`], into buffers that the caller reuses.
    ///
    /// # Errors
    /// As [`KeyLayout::encode_row`].
    pub fn write_entry(
        &self,
        row: &[ValueRef<'_>],
        primary_key: &[u8],
        collations: &dyn CollationKeys,
        entry: &mut IndexEntry,
    ) -> Result<(), KeyError> {
        entry.key.clear();
        entry.value.clear();
        self.key.encode_row(row, collations, &mut entry.key)?;
        if self.is_unique_row(row) {
            entry.value.extend_from_slice(primary_key);
        } else {
            entry.key.extend_from_slice(primary_key);
        }
        Ok(())
    }

    /// The primary key in an entry.
    ///
    /// # Errors
    /// [`KeyError::Damaged`].
    pub fn primary_key<'e>(&self, key: &'e [u8], value: &'e [u8]) -> Result<&'e [u8], KeyError> {
        if self.unique && !value.is_empty() {
            return Ok(value);
        }
        let parts = self.key.parts().len();
        let damaged = KeyError::Damaged { part: parts };
        let start = match self.primary_key_length {
            Some(length) => key.len().checked_sub(length).ok_or(damaged)?,
            None => self.key.parts_length(key, parts)?,
        };
        key.get(start..).filter(|primary_key| !primary_key.is_empty()).ok_or(damaged)
    }

    /// Whether the row's indexed values alone are unique.
    fn is_unique_row(&self, row: &[ValueRef<'_>]) -> bool {
        let is_null = |column: u16| row.get(usize::from(column)).is_none_or(ValueRef::is_null);
        self.unique && !self.key.parts().iter().any(|part| is_null(part.column))
    }
}
