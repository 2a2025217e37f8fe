//! A change of definitions behind the seam.

use std::sync::Arc;
use std::time::Duration;

use firn_api::rows::{Cancellation, Definitions, MetadataContext, RowsResult};
use firn_base::TableId;
use firn_format::definition::{ColumnDefinition, TableDefinition};

use crate::dictionary::Ddl;

pub(super) struct DefinitionChange {
    ddl: Ddl,
}

impl DefinitionChange {
    pub(super) fn new(ddl: Ddl) -> DefinitionChange {
        DefinitionChange { ddl }
    }
}

impl Definitions for DefinitionChange {
    fn set_lock_wait_timeout(&mut self, timeout: Duration) {
        self.ddl.set_lock_wait_timeout(timeout);
    }

    fn set_cancelled(&mut self, cancellation: &Arc<Cancellation>) {
        self.ddl.set_cancelled(Arc::clone(cancellation.flag()));
    }

    fn set_metadata_context(&mut self, context: Arc<dyn MetadataContext>) {
        if let Some(context) = super::engine_context(context) {
            self.ddl.set_metadata_context(context);
        }
    }

    fn create_schema(&mut self, name: &str, options: &[u8]) -> RowsResult<()> {
        Ok(self.ddl.create_schema(name, options)?)
    }

    fn alter_schema(&mut self, name: &str, options: &[u8]) -> RowsResult<()> {
        Ok(self.ddl.alter_schema(name, options)?)
    }

    fn drop_schema(&mut self, name: &str) -> RowsResult<()> {
        Ok(self.ddl.drop_schema(name)?)
    }

    fn create_table(&mut self, definition: TableDefinition) -> RowsResult<TableId> {
        Ok(self.ddl.create_table(definition)?)
    }

    fn drop_table(&mut self, table: TableId) -> RowsResult<()> {
        Ok(self.ddl.drop_table(table)?)
    }

    fn truncate_table(&mut self, table: TableId) -> RowsResult<()> {
        Ok(self.ddl.truncate_table(table)?)
    }

    fn rename_table(&mut self, table: TableId, schema: &str, name: &str) -> RowsResult<()> {
        Ok(self.ddl.rename_table(table, schema, name)?)
    }

    fn replace_table(&mut self, table: TableId, schema: &str, name: &str) -> RowsResult<()> {
        Ok(self.ddl.replace_table(table, schema, name)?)
    }

    fn add_column(&mut self, table: TableId, column: ColumnDefinition) -> RowsResult<u16> {
        Ok(self.ddl.add_column(table, column)?)
    }

    fn drop_column(&mut self, table: TableId, ordinal: u16) -> RowsResult<()> {
        Ok(self.ddl.drop_column(table, ordinal)?)
    }

    fn lock_definition(&mut self, table: TableId) -> RowsResult<TableDefinition> {
        Ok(self.ddl.lock(table)?.definition().clone())
    }

    fn alter_options(&mut self, definition: TableDefinition) -> RowsResult<()> {
        Ok(self.ddl.alter_options(definition)?)
    }

    fn drop_index(&mut self, table: TableId, name: &str) -> RowsResult<()> {
        Ok(self.ddl.drop_index(table, name)?)
    }

    fn commit(self: Box<Self>) -> RowsResult<()> {
        Ok(self.ddl.commit()?)
    }
}
