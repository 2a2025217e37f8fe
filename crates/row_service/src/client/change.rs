//! Changes of definitions, and index builds, at a remote node.

use std::sync::Arc;
use std::time::Duration;

use firn_api::rows::{
    BuildProgress, Cancellation, Definitions, IndexBuild, MetadataContext, NewIndex, RowsResult,
};
use firn_base::TableId;
use firn_format::definition::{ColumnDefinition, TableDefinition};
use serde_bytes::Bytes;

use crate::codec::damaged_definition;
use crate::message::{Answer, BuildCall, Call, ChangeCall, Handle, Message, NodeCall};

use super::connection::{Connection, unexpected};
use super::locks::RemoteContext;
use super::outcome_unknown;

/// A change of definitions that has not committed.
pub(super) struct RemoteChange {
    connection: Arc<Connection>,
    handle: Handle,
    cancellation: Option<Arc<Cancellation>>,
    is_open: bool,
}

impl RemoteChange {
    pub(super) fn begin(connection: &Arc<Connection>) -> RowsResult<RemoteChange> {
        let handle = connection.new_handle();
        connection.ask_node(NodeCall::BeginChange { handle }, None)?;
        let connection = Arc::clone(connection);
        Ok(RemoteChange { connection, handle, cancellation: None, is_open: true })
    }

    fn ask(&self, call: ChangeCall<'_>) -> RowsResult<Answer> {
        let call = Call::Change { handle: self.handle, call };
        self.connection.call(call, self.cancellation.as_deref())?.outcome
    }

    fn tell(&self, call: ChangeCall<'_>) -> RowsResult<()> {
        self.ask(call).map(|_| ())
    }
}

impl Definitions for RemoteChange {
    fn set_lock_wait_timeout(&mut self, timeout: Duration) {
        // If the node does not answer, the next call of the change fails.
        let _ = self.ask(ChangeCall::LockWaitTimeout(timeout));
    }

    fn set_cancelled(&mut self, cancellation: &Arc<Cancellation>) {
        self.cancellation = Some(Arc::clone(cancellation));
    }

    fn set_metadata_context(&mut self, context: Arc<dyn MetadataContext>) {
        if let Some(context) = RemoteContext::handle_of(context) {
            let _ = self.ask(ChangeCall::MetadataContext(context));
        }
    }

    fn create_schema(&mut self, name: &str, options: &[u8]) -> RowsResult<()> {
        self.tell(ChangeCall::CreateSchema { name, options: Bytes::new(options) })
    }

    fn alter_schema(&mut self, name: &str, options: &[u8]) -> RowsResult<()> {
        self.tell(ChangeCall::AlterSchema { name, options: Bytes::new(options) })
    }

    fn drop_schema(&mut self, name: &str) -> RowsResult<()> {
        self.tell(ChangeCall::DropSchema { name })
    }

    fn create_table(&mut self, definition: TableDefinition) -> RowsResult<TableId> {
        let definition = definition.encode_draft().map_err(damaged_definition)?;
        match self.ask(ChangeCall::CreateTable { definition: Bytes::new(&definition) })? {
            Answer::TableId(table) => Ok(table),
            other => Err(unexpected(&other)),
        }
    }

    fn drop_table(&mut self, table: TableId) -> RowsResult<()> {
        self.tell(ChangeCall::DropTable { table })
    }

    fn truncate_table(&mut self, table: TableId) -> RowsResult<()> {
        self.tell(ChangeCall::TruncateTable { table })
    }

    fn rename_table(&mut self, table: TableId, schema: &str, name: &str) -> RowsResult<()> {
        self.tell(ChangeCall::RenameTable { table, schema, name })
    }

    fn replace_table(&mut self, table: TableId, schema: &str, name: &str) -> RowsResult<()> {
        self.tell(ChangeCall::ReplaceTable { table, schema, name })
    }

    fn add_column(&mut self, table: TableId, column: ColumnDefinition) -> RowsResult<u16> {
        let column = column.encode().map_err(damaged_definition)?;
        match self.ask(ChangeCall::AddColumn { table, column: Bytes::new(&column) })? {
            Answer::Ordinal(ordinal) => Ok(ordinal),
            other => Err(unexpected(&other)),
        }
    }

    fn drop_column(&mut self, table: TableId, ordinal: u16) -> RowsResult<()> {
        self.tell(ChangeCall::DropColumn { table, ordinal })
    }

    fn lock_definition(&mut self, table: TableId) -> RowsResult<TableDefinition> {
        match self.ask(ChangeCall::LockDefinition { table })? {
            Answer::Bytes(Some(bytes)) => {
                TableDefinition::decode_draft(&bytes).map_err(damaged_definition)
            }
            other => Err(unexpected(&other)),
        }
    }

    fn alter_options(&mut self, definition: TableDefinition) -> RowsResult<()> {
        let definition = definition.encode_draft().map_err(damaged_definition)?;
        self.tell(ChangeCall::AlterOptions { definition: Bytes::new(&definition) })
    }

    fn drop_index(&mut self, table: TableId, name: &str) -> RowsResult<()> {
        self.tell(ChangeCall::DropIndex { table, name })
    }

    fn commit(mut self: Box<Self>) -> RowsResult<()> {
        self.is_open = false;
        self.tell(ChangeCall::Commit).map_err(outcome_unknown)
    }
}

impl Drop for RemoteChange {
    fn drop(&mut self) {
        if self.is_open {
            self.connection.cast(&Message::Close(self.handle));
        }
    }
}

/// An index that is being built.
pub(super) struct RemoteBuild {
    connection: Arc<Connection>,
    handle: Handle,
    cancellation: Option<Arc<Cancellation>>,
    is_filled: bool,
    is_open: bool,
}

impl RemoteBuild {
    pub(super) fn begin(
        connection: &Arc<Connection>,
        table: TableId,
        new: &NewIndex,
        lock_wait_timeout: Duration,
        cancellation: Option<&Arc<Cancellation>>,
    ) -> RowsResult<RemoteBuild> {
        let handle = connection.new_handle();
        let call = NodeCall::BeginIndex { handle, table, new: new.clone(), lock_wait_timeout };
        let is_filled = match connection.ask_node(call, cancellation.map(|one| &**one))? {
            Answer::Flag(is_filled) => is_filled,
            other => return Err(unexpected(&other)),
        };
        let (connection, cancellation) = (Arc::clone(connection), cancellation.cloned());
        Ok(RemoteBuild { connection, handle, cancellation, is_filled, is_open: true })
    }

    fn ask(&self, call: BuildCall) -> RowsResult<Answer> {
        let call = Call::Build { handle: self.handle, call };
        self.connection.call(call, self.cancellation.as_deref())?.outcome
    }
}

impl IndexBuild for RemoteBuild {
    fn step(&mut self) -> RowsResult<BuildProgress> {
        match self.ask(BuildCall::Step)? {
            Answer::Progress(progress, is_filled) => {
                self.is_filled = is_filled;
                Ok(progress)
            }
            other => Err(unexpected(&other)),
        }
    }

    fn is_filled(&self) -> bool {
        self.is_filled
    }

    fn finish(mut self: Box<Self>) -> RowsResult<()> {
        self.is_open = false;
        self.ask(BuildCall::Finish).map(|_| ()).map_err(outcome_unknown)
    }
}

impl Drop for RemoteBuild {
    fn drop(&mut self) {
        if self.is_open {
            self.connection.cast(&Message::Close(self.handle));
        }
    }
}
