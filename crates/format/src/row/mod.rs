//! The row codec: the values of one row as bytes, and back without an allocation.
//!
//! ```text
//!  0         2             2+N           2+N+F              +2V
//!  ┌─────────┬─────────────┬─────────────┬──────────────────┬──────────────────────┐
//!  │ version │ null bitmap │ fixed part  │ V end offsets    │ variable part        │
//!  │ u16     │ N bytes     │ F bytes     │ u16 each         │ to the end           │
//!  └─────────┴─────────────┴─────────────┴──────────────────┴──────────────────────┘
//! ```
//!
//! A fixed-width column has an offset that depends on the row's version alone, whether it is NULL
//! or not. A variable column ends at its end offset, counted from the start of the variable part,
//! and begins where the one before it ends. The top bit of an end offset marks an
//! [`OverflowReference`] to the chain of pages that hold the value.
//!
//! **Columns are never renumbered.** A column's *ordinal* is its place in the table's list of all
//! columns that rows may still hold, dropped ones included. Adding or dropping a column makes a new
//! [`RowVersion`] and leaves rows unchanged: a row carries the version that it was written under, a
//! [`RowLayout`] knows the placement of every version, and a row that is older than a column
//! returns the column's default.
//!
//! ```
//! use firn_format::row::{RowColumn, RowLayout, RowVersion, RowView};
//! use firn_format::value::{ColumnType, IntWidth, ValueRef};
//!
//! let id = RowColumn::new(ColumnType::Int(IntWidth::Four), false);
//! let image = RowColumn::new(ColumnType::Blob { max_bytes: 65_535 }, true);
//! let layout = RowLayout::new(RowVersion(0), vec![id, image])?;
//! let row = layout.encode(&[ValueRef::Int(7), ValueRef::Bytes(b"snow")])?;
//! let view = RowView::parse(&layout, &row)?;
//! assert_eq!(view.column(1)?.inline(), Some(ValueRef::Bytes(b"snow")));
//! # Ok::<(), firn_format::row::RowError>(())
//! ```
//!
//! Invariants:
//! * a row is at most [`MAX_ROW_BYTES`] long; the longest values move out of it
//!   ([`RowLayout::plan`]);
//! * reading never panics and never reads outside the row, whatever its bytes are;
//! * the same cells under the same layout give the same bytes (dropped and NULL columns are
//!   zeroed).
//!
//! `docs/formats/row.md` draws the bytes.

mod encode;
mod layout;
mod reader;
#[cfg(test)]
pub(crate) mod tests;
mod view;

use firn_base::PageNo;

use crate::tree::MAX_ENTRY_BYTES;
use crate::undo::RECORD_VERSION_BYTES;
use crate::value::{ValueError, ValueRef};

pub use encode::RowPlan;
pub use layout::{RowColumn, RowLayout, RowVersion};
pub use reader::{ColumnReader, NumberReader};
pub use view::RowView;

/// The longest row: the room of a tree entry beside the version of its record. Beside a key, a row
/// must be shorter; see [`RowLayout::plan`].
pub const MAX_ROW_BYTES: usize = MAX_ENTRY_BYTES - RECORD_VERSION_BYTES;
/// How long a row may be before long values leave it.
pub const COMFORTABLE_ROW_BYTES: usize = 4000;
/// A value of at most this length moves out of a row only if the row does not fit a page otherwise,
/// because it takes a whole page outside.
pub const SHORT_VALUE_BYTES: usize = 1024;

/// The place of a value that is stored outside its row, in a chain of pages of the table's space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct OverflowReference {
    /// The chain's first page.
    pub first_page: PageNo,
    /// The value's length in bytes.
    pub length: u64,
}

impl OverflowReference {
    /// Bytes that a reference takes in a row.
    pub const ENCODED_LENGTH: usize = 12;

    fn to_bytes(self) -> [u8; Self::ENCODED_LENGTH] {
        let mut bytes = [0; Self::ENCODED_LENGTH];
        bytes[..4].copy_from_slice(&self.first_page.0.to_le_bytes());
        bytes[4..].copy_from_slice(&self.length.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<OverflowReference> {
        let (first_page, length) = bytes.split_first_chunk()?;
        Some(OverflowReference {
            first_page: PageNo(u32::from_le_bytes(*first_page)),
            length: u64::from_le_bytes(length.try_into().ok()?),
        })
    }
}

/// A row's content for a column: the value, or where it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ColumnValue<'a> {
    Inline(ValueRef<'a>),
    /// The value is in a chain of overflow pages.
    Overflow(OverflowReference),
}

impl<'a> ColumnValue<'a> {
    /// The value, unless it is stored out of line.
    #[must_use]
    pub fn inline(self) -> Option<ValueRef<'a>> {
        match self {
            ColumnValue::Inline(value) => Some(value),
            ColumnValue::Overflow(_) => None,
        }
    }
}

impl<'a> From<ValueRef<'a>> for ColumnValue<'a> {
    fn from(value: ValueRef<'a>) -> ColumnValue<'a> {
        ColumnValue::Inline(value)
    }
}

/// Errors of rows. [`RowError::is_corruption`] distinguishes damage from misuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
    /// The row ends before its parts do, or parts of it overlap.
    #[error("a row of {length} bytes is damaged: {part}")]
    Damaged {
        /// Length of the row in bytes.
        length: usize,
        /// The part that is wrong.
        part: &'static str,
    },
    /// The row was written under a later definition of the table. Read it again under a layout of
    /// the current definition.
    #[error("the row has version {row:?}, but the layout ends at version {layout:?}")]
    NewerVersion { row: RowVersion, layout: RowVersion },
    /// There is no column with this ordinal, or it has been dropped.
    #[error("there is no column {0}")]
    NoSuchColumn(usize),
    /// The number of values is not the number of columns.
    #[error("{given} values for {columns} columns")]
    WrongColumnCount { given: usize, columns: usize },
    /// NULL was given to, or is the only default of, a column that is not nullable.
    #[error("column {0} cannot be NULL")]
    NullInNotNull(usize),
    /// The row would be longer than [`MAX_ROW_BYTES`].
    #[error("a row of {row_bytes} bytes is too large")]
    TooLarge {
        /// The length that the row would have.
        row_bytes: usize,
    },
    /// The columns or their versions contradict each other.
    #[error("the columns of the table contradict each other: {0}")]
    InvalidLayout(&'static str),
    /// A value does not fit its column.
    #[error("column {ordinal}: {error}")]
    Value { ordinal: usize, error: ValueError },
}

impl RowError {
    /// Whether stored bytes are at fault, and not the caller.
    #[must_use]
    pub fn is_corruption(&self) -> bool {
        matches!(
            self,
            RowError::Damaged { .. } | RowError::Value { error: ValueError::Corrupt(_), .. }
        )
    }
}
