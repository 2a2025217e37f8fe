//! The compute node's end: a remote node behind the traits of [`firn_api::rows`]. See [`crate`] for
//! the rules.
//!
//! ```text
//!   RemoteNode ─► Connection ─► Link
//!     ├─ RemoteTransaction ─► RemoteScan      settings wait for the next call (M1)
//!     ├─ RemoteLocks ─► RemoteContext
//!     ├─ RemoteChange, RemoteBuild
//!     └─ RemoteTable                          one for each version in use (M4)
//! ```

mod change;
mod connection;
mod locks;
mod scan;
mod summary;
mod tables;
mod transaction;

use std::sync::Arc;
use std::time::Duration;

use firn_api::report::NodeReport;
use firn_api::rows::{
    Cancellation, DatabaseNode, Definitions, DescribedTransaction, Estimate, IndexBuild,
    IsolationLevel, MetadataLocks, NewIndex, RowsError, RowsResult, TableRef, Transaction,
};
use firn_base::{Cts, TableId};
use firn_format::key::{CollationKeys, KeyRange};
use serde_bytes::Bytes;

use crate::link::Link;
use crate::message::{Answer, NodeCall};

use change::{RemoteBuild, RemoteChange};
use connection::{Connection, unexpected};
use locks::RemoteLocks;
use tables::version_of;
use transaction::RemoteTransaction;

/// A database node at the other end of a link.
#[derive(Clone)]
pub struct RemoteNode {
    connection: Arc<Connection>,
}

impl std::fmt::Debug for RemoteNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteNode").finish_non_exhaustive()
    }
}

impl RemoteNode {
    /// The node at the other end of `link`. `collations` order text as the node does. Blocks for a
    /// round trip.
    ///
    /// # Errors
    /// If the node does not answer, or speaks another version.
    pub fn over(link: Arc<dyn Link>, collations: Arc<dyn CollationKeys>) -> RowsResult<RemoteNode> {
        let node = RemoteNode { connection: Connection::over(link, collations) };
        node.ask(NodeCall::DefinitionsVersion)?;
        Ok(node)
    }

    fn ask(&self, call: NodeCall<'_>) -> RowsResult<Answer> {
        self.connection.ask_node(call, None)
    }
}

impl DatabaseNode for RemoteNode {
    fn begin(&self, isolation: IsolationLevel) -> RowsResult<Box<dyn Transaction>> {
        Ok(Box::new(RemoteTransaction::begin(&self.connection, isolation, None)))
    }

    fn begin_at(
        &self,
        isolation: IsolationLevel,
        snapshot: Cts,
    ) -> RowsResult<Box<dyn Transaction>> {
        let transaction = RemoteTransaction::begin(&self.connection, isolation, Some(snapshot));
        transaction.tell_now()?;
        Ok(Box::new(transaction))
    }

    fn take_up(&self, described: &DescribedTransaction) -> RowsResult<Box<dyn Transaction>> {
        let transaction = RemoteTransaction::take_up(&self.connection, described);
        transaction.tell_now()?;
        Ok(Box::new(transaction))
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn report(&self) -> RowsResult<NodeReport> {
        match self.ask(NodeCall::Report)? {
            Answer::Report(report) => Ok(*report),
            other => Err(unexpected(&other)),
        }
    }

    fn status_text(&self) -> RowsResult<String> {
        match self.ask(NodeCall::StatusText)? {
            Answer::StatusText(text) => Ok(text),
            other => Err(unexpected(&other)),
        }
    }

    fn definitions_version(&self) -> u64 {
        self.connection.definitions_version()
    }

    fn schemas(&self) -> RowsResult<Vec<Box<str>>> {
        match self.ask(NodeCall::Schemas)? {
            Answer::Texts(names) => Ok(names.into_iter().map(String::into).collect()),
            other => Err(unexpected(&other)),
        }
    }

    fn schema_options(&self, schema: &str) -> RowsResult<Option<Arc<[u8]>>> {
        match self.ask(NodeCall::SchemaOptions { schema })? {
            Answer::Bytes(options) => Ok(options.map(|bytes| bytes.into_vec().into())),
            other => Err(unexpected(&other)),
        }
    }

    fn tables_of(&self, schema: &str) -> RowsResult<Option<Vec<TableRef>>> {
        match self.ask(NodeCall::TablesOf { schema })? {
            Answer::Tables(tables) => tables
                .map(|tables| {
                    let tables = tables.into_iter();
                    tables.map(|table| self.connection.receive(table)).collect()
                })
                .transpose(),
            other => Err(unexpected(&other)),
        }
    }

    fn table_named(&self, schema: &str, name: &str) -> RowsResult<Option<TableRef>> {
        let known = self.connection.tables.named(schema, name);
        let version = known.as_ref().map(|table| table.version());
        let call = NodeCall::TableNamed { schema, name, known: version };
        self.connection.table_in(self.ask(call)?)
    }

    fn table(&self, table: TableId) -> RowsResult<Option<TableRef>> {
        let known = self.connection.tables.newest(table);
        let version = known.as_ref().map(|table| table.version().version);
        self.connection.table_in(self.ask(NodeCall::Table { table, known: version })?)
    }

    fn change_definitions(&self) -> RowsResult<Box<dyn Definitions>> {
        Ok(Box::new(RemoteChange::begin(&self.connection)?))
    }

    fn begin_index(
        &self,
        table: TableId,
        new: &NewIndex,
        lock_wait_timeout: Duration,
        cancelled: Option<&Arc<Cancellation>>,
    ) -> RowsResult<Box<dyn IndexBuild>> {
        let connection = &self.connection;
        Ok(Box::new(RemoteBuild::begin(connection, table, new, lock_wait_timeout, cancelled)?))
    }

    fn metadata_locks(&self) -> Arc<dyn MetadataLocks> {
        Arc::new(RemoteLocks::of(&self.connection))
    }

    fn take_auto_increment(&self, table: &TableRef, count: u64) -> RowsResult<u64> {
        let call = NodeCall::TakeAutoIncrement { table: version_of(table)?, count };
        self.connection.number_in(self.ask(call)?)
    }

    fn pass_auto_increment(&self, table: &TableRef, value: u64) -> RowsResult<()> {
        let call = NodeCall::PassAutoIncrement { table: version_of(table)?, value };
        self.ask(call).map(|_| ())
    }

    fn next_auto_increment(&self, table: &TableRef) -> RowsResult<u64> {
        let call = NodeCall::NextAutoIncrement { table: version_of(table)? };
        self.connection.number_in(self.ask(call)?)
    }

    fn estimate(
        &self,
        table: &TableRef,
        index: Option<usize>,
        range: &KeyRange,
    ) -> RowsResult<Estimate> {
        let call = NodeCall::Estimate { table: version_of(table)?, index, range: range.clone() };
        match self.ask(call)? {
            Answer::Estimate(estimate) => Ok(estimate),
            other => Err(unexpected(&other)),
        }
    }

    fn prepared_transactions(&self) -> RowsResult<Vec<Box<[u8]>>> {
        match self.ask(NodeCall::PreparedTransactions)? {
            Answer::Identifiers(xids) => {
                Ok(xids.into_iter().map(|xid| xid.into_vec().into()).collect())
            }
            other => Err(unexpected(&other)),
        }
    }

    fn set_committing(&self, xid: &[u8]) -> RowsResult<Cts> {
        match self.ask(NodeCall::SetCommitting { xid: Bytes::new(xid) })? {
            Answer::Lowest(lowest) => Ok(lowest),
            other => Err(unexpected(&other)),
        }
    }

    fn commit_prepared(&self, xid: &[u8], at: Option<Cts>) -> RowsResult<()> {
        let call = NodeCall::CommitPrepared { xid: Bytes::new(xid), at };
        self.ask(call).map(|_| ()).map_err(outcome_unknown)
    }

    fn rollback_prepared(&self, xid: &[u8]) -> RowsResult<()> {
        let call = NodeCall::RollbackPrepared { xid: Bytes::new(xid) };
        self.ask(call).map(|_| ()).map_err(outcome_unknown)
    }
}

/// What a lost reply means for a call that may have made something durable (M6).
fn outcome_unknown(error: RowsError) -> RowsError {
    match error {
        RowsError::Unavailable { reason } => RowsError::OutcomeUnknown { reason },
        other => other,
    }
}
