//! Tables: rows of values over a clustered tree, its secondary trees and chains of overflow pages.
//!
//! ```text
//!   values ──► clustered tree  primary key → row        every tree is versioned by itself
//!     ├──────► secondary tree  parts ‖ primary key → –  (crate::transaction), so an entry is visible
//!     ├──────► unique tree     parts → primary key      exactly if its row is
//!     └──────► overflow chain  long values, page by page
//! ```
//!
//! A [`Table`] is one version of a table's definition with everything that is derived from it. It
//! never changes; [`crate::dictionary::Dictionary`] replaces it. The rules there say how long a
//! caller may use it.
//!
//! Rules, cited by number:
//!
//! 1. The clustered tree is written first, then the secondary trees in the order of the definition.
//! 2. A row operation that fails has no effect: it rolls back to the savepoint that it took first.
//! 3. A row is read with a lock before it is updated or deleted, so that the entries that are
//!    removed are those of the replaced row.
//! 4. The log group that begins a chain of overflow pages also records it in the undo log. After
//!    every group the chain can be walked to its end. So a crash leaks no page.
//! 5. Entries of an index that is being built may be missing; entries of a ready index never are.

mod buffers;
pub mod overflow;
pub mod read;
pub mod scan;
#[cfg(test)]
mod tests;
pub mod write;

use std::sync::Arc;

use firn_base::{Cts, IndexId, PageId, SpaceId, TableId};
use firn_format::definition::{
    IndexDefinition, IndexKind, IndexState, TableDefinition, TableLayout,
};
use firn_format::key::{CollationKeys, SecondaryLayout};
use firn_format::row::{RowError, RowView};

use crate::error::EngineError;
use crate::sequence::TableSequences;

pub use buffers::{RowBuffer, WriteBuffers};
pub use scan::{ScanOptions, ScanRow, TableScan};

/// One version of a table's definition, prepared for use.
pub struct Table {
    definition: TableDefinition,
    layout: TableLayout,
    clustered: IndexId,
    secondary: Box<[SecondaryIndex]>,
    /// The hidden column, which the engine fills.
    row_id_column: Option<usize>,
    collations: Arc<dyn CollationKeys>,
    sequences: Arc<TableSequences>,
    visible_from: Cts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecondaryIndex {
    /// The root page of its tree.
    pub id: IndexId,
    /// Whether reads may use it.
    pub state: IndexState,
    /// Snapshots before this do not see all of its entries.
    pub ready_from: Cts,
    /// Its position in the definition's list of indexes.
    pub number: usize,
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table").field("definition", &self.definition).finish_non_exhaustive()
    }
}

impl Table {
    /// Derives everything that row operations need from a definition.
    ///
    /// # Errors
    /// [`EngineError::Definition`] if the definition contradicts itself.
    pub(crate) fn new(
        definition: TableDefinition,
        collations: Arc<dyn CollationKeys>,
        sequences: Arc<TableSequences>,
        visible_from: Cts,
    ) -> Result<Table, EngineError> {
        let layout = definition.layout()?;
        let clustered = definition.clustered_index().map_or(IndexId(0), |index| index.index_id);
        let secondary = (0..).zip(&definition.indexes);
        let secondary = secondary.filter(|(_, index)| index.kind != IndexKind::Clustered);
        let secondary = secondary
            .map(|(number, index)| SecondaryIndex {
                id: index.index_id,
                state: index.state,
                ready_from: Cts(0),
                number,
            })
            .collect();
        let is_row_id = |column: &firn_format::definition::ColumnDefinition| {
            column.hidden && column.name == ROW_ID_COLUMN
        };
        let row_id_column = definition.columns.iter().position(is_row_id);
        Ok(Table {
            definition,
            layout,
            clustered,
            secondary,
            row_id_column,
            collations,
            sequences,
            visible_from,
        })
    }

    /// Takes the first snapshots of indexes over that were ready under the former definition.
    pub(crate) fn take_ready_from(&mut self, before: &Table) {
        for index in &mut self.secondary {
            let old = before.secondary.iter().find(|old| old.id == index.id);
            let old = old.filter(|old| old.state == IndexState::Ready);
            index.ready_from = old.map_or(Cts::MAX, |old| old.ready_from);
        }
    }

    /// Refuses older snapshots: the rows are newer than them.
    pub(crate) fn refuse_older_snapshots(&mut self) {
        self.visible_from = Cts::MAX;
    }

    /// Sets the first snapshot of everything that becomes readable with this definition.
    pub(crate) fn set_first_snapshot(&mut self, first: Cts) {
        if self.visible_from == Cts::MAX {
            self.visible_from = first;
        }
        let ready = self.secondary.iter_mut().filter(|index| index.state == IndexState::Ready);
        for index in ready.filter(|index| index.ready_from == Cts::MAX) {
            index.ready_from = first;
        }
    }

    #[must_use]
    pub fn definition(&self) -> &TableDefinition {
        &self.definition
    }

    #[must_use]
    pub fn layout(&self) -> &TableLayout {
        &self.layout
    }

    #[must_use]
    pub fn id(&self) -> TableId {
        self.definition.table_id
    }

    #[must_use]
    pub fn space(&self) -> SpaceId {
        self.definition.space
    }

    #[must_use]
    pub fn clustered(&self) -> IndexId {
        self.clustered
    }

    /// The secondary indexes, in the order of the definition.
    #[must_use]
    pub fn secondary(&self) -> &[SecondaryIndex] {
        &self.secondary
    }

    #[must_use]
    pub fn secondary_definition(&self, index: &SecondaryIndex) -> &IndexDefinition {
        &self.definition.indexes[index.number]
    }

    #[must_use]
    pub fn collations(&self) -> &dyn CollationKeys {
        &*self.collations
    }

    /// The table's counters for `AUTO_INCREMENT` values and row ids.
    #[must_use]
    pub fn sequences(&self) -> &Arc<TableSequences> {
        &self.sequences
    }

    /// Older snapshots do not see the table, or the rows since it was truncated.
    #[must_use]
    pub fn visible_from(&self) -> Cts {
        self.visible_from
    }

    /// A view of a row, which reads columns from its payload one by one without a copy.
    ///
    /// # Errors
    /// If the payload is not a row of this table.
    #[inline]
    pub fn view<'a>(&'a self, payload: &'a [u8]) -> Result<RowView<'a>, EngineError> {
        RowView::parse(&self.layout.row, payload).map_err(|error| self.row_error(error))
    }

    /// The secondary indexes, each with its codec.
    pub(crate) fn secondary_with_layout(
        &self,
    ) -> impl Iterator<Item = (&SecondaryIndex, &SecondaryLayout)> {
        self.secondary.iter().zip(self.layout.secondary.iter().map(|(_, layout)| layout))
    }

    pub(crate) fn find_secondary(
        &self,
        id: IndexId,
    ) -> Result<(&SecondaryIndex, &SecondaryLayout), EngineError> {
        let found = self.secondary_with_layout().find(|(index, _)| index.id == id);
        found.ok_or(EngineError::NoSuchTree(id))
    }

    /// Reports a row error as damage if stored bytes are at fault.
    pub(crate) fn row_error(&self, error: RowError) -> EngineError {
        if error.is_corruption() {
            return self.damaged(&error);
        }
        error.into()
    }

    /// The error for invalid stored bytes.
    pub(crate) fn damaged(&self, what: &dyn std::fmt::Display) -> EngineError {
        let page = PageId::from_u64(self.clustered.0);
        EngineError::Corrupt { page, what: format!("table {}: {what}", self.definition.name) }
    }
}

/// The hidden column of a table without a primary key.
pub const ROW_ID_COLUMN: &str = "DB_ROW_ID";
/// The index over the hidden column.
pub const ROW_ID_INDEX: &str = "GEN_CLUST_INDEX";
