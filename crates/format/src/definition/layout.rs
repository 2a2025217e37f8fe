//! The codecs of a table definition.

use firn_base::IndexId;

use crate::key::{KeyLayout, KeyPart, SecondaryLayout};
use crate::row::{RowColumn, RowLayout};

use super::{
    ColumnDefinition, DefinitionError, IndexDefinition, IndexKind, IndexPart, TableDefinition,
};

/// The codecs of a table: its rows, the keys of the clustered index, and the entries of the others.
///
/// ```text
///   row values ──clustered.encode_row──► primary key ─┬─► clustered tree: key → row.encode(values)
///        └──────secondary[i].entry(values, ·)─────────┴─► secondary tree: entry.key → entry.value
/// ```
#[derive(Debug)]
pub struct TableLayout {
    /// Rows, the values of the clustered index.
    pub row: RowLayout,
    /// Keys of the clustered index.
    pub clustered: KeyLayout,
    /// The secondary indexes, in the order of the definition.
    pub secondary: Vec<(IndexId, SecondaryLayout)>,
}

impl TableDefinition {
    /// Builds the table's codecs. Allocates, so call it once for a definition.
    ///
    /// # Errors
    /// [`DefinitionError::Contradiction`], and the errors of [`RowLayout::new`] and
    /// [`KeyLayout::new`].
    pub fn layout(&self) -> Result<TableLayout, DefinitionError> {
        self.check()?;
        let row = RowLayout::new(self.row_version, self.columns.iter().map(row_column).collect())?;
        let clustered = self.clustered_index();
        let clustered = clustered.ok_or(DefinitionError::Contradiction("no clustered index"))?;
        let clustered = self.key_layout(clustered)?;
        let secondary = self.indexes.iter().filter(|index| index.kind != IndexKind::Clustered);
        let secondary = secondary
            .map(|index| {
                let unique = index.kind == IndexKind::Unique;
                let layout = SecondaryLayout::new(self.key_layout(index)?, unique, &clustered);
                Ok((index.index_id, layout))
            })
            .collect::<Result<_, DefinitionError>>()?;
        Ok(TableLayout { row, clustered, secondary })
    }

    /// The codec of keys that are one whole column, ascending: they sort as the column's values do.
    /// `None` if there is no such column.
    #[must_use]
    pub fn column_key(&self, ordinal: u16) -> Option<KeyLayout> {
        let column = self.columns.get(usize::from(ordinal))?;
        let part = KeyPart::ascending(ordinal, column.column_type, column.nullable);
        KeyLayout::new(vec![part]).ok()
    }

    fn key_layout(&self, index: &IndexDefinition) -> Result<KeyLayout, DefinitionError> {
        let parts = index.parts.iter().map(|part| self.key_part(part));
        Ok(KeyLayout::new(parts.collect::<Result<_, _>>()?)?)
    }

    fn key_part(&self, part: &IndexPart) -> Result<KeyPart, DefinitionError> {
        let column = self.columns.get(usize::from(part.column));
        let column = column.ok_or(DefinitionError::Contradiction("an index over no column"))?;
        Ok(KeyPart {
            column: part.column,
            column_type: column.column_type,
            nullable: column.nullable,
            direction: part.direction,
            prefix_length: part.prefix_length,
        })
    }
}

fn row_column(column: &ColumnDefinition) -> RowColumn {
    RowColumn {
        column_type: column.column_type,
        nullable: column.nullable,
        added_in: column.added_in,
        dropped_in: column.dropped_in,
        default: column.instant_default.clone(),
    }
}
