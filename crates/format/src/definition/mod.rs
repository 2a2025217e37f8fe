//! The parts of a table, as the engine's dictionary stores them: columns, indexes, the roots of
//! their trees. Properties that only SQL needs are carried as opaque bytes.
//!
//! ```text
//!   TableDefinition ──encode──► dictionary tree ──decode──► TableDefinition ──layout──► TableLayout
//!                                                                                 rows, keys, entries
//! ```
//!
//! Invariants, which [`TableDefinition::check`] checks and every decoded definition satisfies:
//! * exactly one index is clustered; its columns cannot be NULL;
//! * index parts name existing columns that are not dropped;
//! * a column keeps its ordinal (its place in [`TableDefinition::columns`]) until the table is
//!   rebuilt.
//!
//! `docs/formats/definition.md` draws the bytes.

mod codec;
mod layout;
#[cfg(test)]
mod tests;

use firn_base::{IndexId, PageNo, SpaceId, TableId};

use crate::key::{Direction, KeyError};
use crate::row::{RowError, RowVersion};
use crate::value::{ColumnType, Value, ValueError};

pub use layout::TableLayout;

#[derive(Clone, Debug, PartialEq)]
pub struct TableDefinition {
    /// The table's identity, which a rename keeps.
    pub table_id: TableId,
    /// The space that holds all its pages.
    pub space: SpaceId,
    /// The schema (MySQL's "database") of the table.
    pub schema_name: String,
    pub name: String,
    /// Counts all changes to the definition.
    pub schema_version: u64,
    /// Counts the changes that affect the content of rows. New rows have this version.
    pub row_version: RowVersion,
    /// By ordinal. Dropped columns stay until the table is rebuilt.
    pub columns: Vec<ColumnDefinition>,
    pub indexes: Vec<IndexDefinition>,
    /// Belongs to the SQL layer: default collation, comment, visible order of the columns.
    pub options: Vec<u8>,
}

impl TableDefinition {
    /// A table without columns. It gets its identity and its space when it is created.
    #[must_use]
    pub fn new(schema_name: impl Into<String>, name: impl Into<String>) -> TableDefinition {
        TableDefinition {
            table_id: TableId(0),
            space: SpaceId(0),
            schema_name: schema_name.into(),
            name: name.into(),
            schema_version: 0,
            row_version: RowVersion(0),
            columns: Vec::new(),
            indexes: Vec::new(),
            options: Vec::new(),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDefinition {
    pub name: String,
    pub column_type: ColumnType,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// Whether the engine added the column, such as the row id of a table without a primary key.
    pub hidden: bool,
    /// The first row version that holds it.
    pub added_in: RowVersion,
    /// The first row version that no longer holds it.
    pub dropped_in: Option<RowVersion>,
    /// Its value in rows that are older than the column.
    pub instant_default: Value,
    /// The value that an `INSERT` stores if it omits the column, in the SQL layer's encoding.
    pub default: Option<Vec<u8>>,
    /// Belongs to the SQL layer: member names of an enum, comment, generation expression.
    pub options: Vec<u8>,
}

impl ColumnDefinition {
    /// A visible column without a default, there from the beginning.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        column_type: ColumnType,
        nullable: bool,
    ) -> ColumnDefinition {
        ColumnDefinition {
            name: name.into(),
            column_type,
            nullable,
            hidden: false,
            added_in: RowVersion(0),
            dropped_in: None,
            instant_default: Value::Null,
            default: None,
            options: Vec::new(),
        }
    }
}

/// The purpose of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IndexKind {
    /// Holds the rows.
    Clustered,
    /// Refuses equal values, except for NULL.
    Unique,
    /// Any other index.
    Secondary,
}

/// Whether an index can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IndexState {
    /// It is being filled: writes go to it, reads do not.
    Building,
    /// It has an entry for every row.
    Ready,
}

/// A column of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct IndexPart {
    pub column: u16,
    pub direction: Direction,
    /// If only a prefix is indexed: its length, in characters of text or in bytes of other strings.
    pub prefix_length: Option<u32>,
}

impl IndexPart {
    /// All of a column, ascending.
    #[must_use]
    pub fn ascending(column: u16) -> IndexPart {
        IndexPart { column, direction: Direction::Ascending, prefix_length: None }
    }
}

/// An index of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexDefinition {
    pub index_id: IndexId,
    /// `PRIMARY` for a primary key.
    pub name: String,
    pub kind: IndexKind,
    /// Whether it can be read.
    pub state: IndexState,
    /// The root of its tree, which never moves; [`PageNo::NONE`] before the tree exists.
    pub root_page: PageNo,
    pub parts: Vec<IndexPart>,
    /// Belongs to the SQL layer: visibility, comment.
    pub options: Vec<u8>,
}

impl IndexDefinition {
    /// An index over whole columns, ascending, that can be read once its table is created.
    #[must_use]
    pub fn new(name: impl Into<String>, kind: IndexKind, columns: &[u16]) -> IndexDefinition {
        IndexDefinition {
            index_id: IndexId(0),
            name: name.into(),
            kind,
            state: IndexState::Ready,
            root_page: PageNo::NONE,
            parts: columns.iter().copied().map(IndexPart::ascending).collect(),
            options: Vec::new(),
        }
    }
}

/// Why a definition, or its stored bytes, are invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    /// The bytes end early or hold something impossible, `at` bytes from their start.
    #[error("a stored table definition is damaged at byte {at}: {what}")]
    Damaged {
        /// Offset of the damage.
        at: usize,
        /// The field or element that could not be read.
        what: &'static str,
    },
    /// The bytes were written by a later version of Firn.
    #[error("a stored table definition has format {0}, which this build does not know")]
    UnknownFormat(u8),
    /// The parts of the definition contradict each other.
    #[error("the table definition contradicts itself: {0}")]
    Contradiction(&'static str),
    /// There are more columns, parts or bytes than the format can hold.
    #[error("too many for a table definition: {0}")]
    TooMany(&'static str),
    /// A column type is impossible.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// The columns do not form a row.
    #[error(transparent)]
    Row(#[from] RowError),
    /// The parts of an index do not form a key.
    #[error(transparent)]
    Key(#[from] KeyError),
}

impl TableDefinition {
    /// The index that holds the rows.
    #[must_use]
    pub fn clustered_index(&self) -> Option<&IndexDefinition> {
        self.indexes.iter().find(|index| index.kind == IndexKind::Clustered)
    }

    /// Refuses a definition that breaks an invariant of this module.
    ///
    /// # Errors
    /// [`DefinitionError::Contradiction`].
    pub fn check(&self) -> Result<(), DefinitionError> {
        let clustered = |index: &&IndexDefinition| index.kind == IndexKind::Clustered;
        if self.indexes.iter().filter(clustered).count() != 1 {
            return Err(DefinitionError::Contradiction("not exactly one clustered index"));
        }
        self.indexes.iter().try_for_each(|index| self.check_index(index))
    }

    fn check_index(&self, index: &IndexDefinition) -> Result<(), DefinitionError> {
        if index.parts.is_empty() {
            return Err(DefinitionError::Contradiction("an index without columns"));
        }
        for part in &index.parts {
            let column = self.columns.get(usize::from(part.column));
            let column = column.filter(|column| column.dropped_in.is_none());
            let column = column.ok_or(DefinitionError::Contradiction("an index over no column"))?;
            if index.kind == IndexKind::Clustered && column.nullable {
                return Err(DefinitionError::Contradiction("a primary key that may be NULL"));
            }
        }
        Ok(())
    }
}
