//! The engine behind the seam through which SQL sees a database node ([`firn_api::rows`]).
//!
//! ```text
//!   EngineNode ──► Dictionary, TransactionSystem
//!     ├─ begin ───────────────► EngineTransaction   a Transaction with the buffers of its writes
//!     │                            └─ scan ───────► EngineScan
//!     └─ change_definitions ──► DefinitionChange    a Ddl
//!   ReplicaNode ([`replica`])                       the same seam over a node that follows the log
//! ```
//!
//! This module decides nothing: it translates errors into those of the seam, and recovers tables
//! from the references that the seam passes round. It refuses a reference to another node's table.

mod buffers;
mod definitions;
mod error;
mod lookup;
mod reading;
pub mod replica;
#[cfg(test)]
mod tests;
mod transaction;

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use firn_api::report::{NodeReport, Reporter};
use firn_api::rows::{
    BuildProgress, Cancellation, DatabaseNode, Definitions, DescribedTransaction, Estimate,
    ExpressionEvaluator, HandedOver, HandedTransaction, IndexBuild, IsolationLevel,
    MetadataContext, MetadataLocks, NewIndex, RowsError, RowsResult, TableRef, Transaction,
};
use firn_base::{Cts, TableId};
use firn_format::definition::{TableDefinition, TableLayout};
use firn_format::key::{CollationKeys, KeyRange};

use crate::dictionary::Dictionary;
use crate::dictionary::index_build::{self, BuildPatience};
use crate::metadata_lock::LockContext;
use crate::table::Table;

pub use transaction::EngineTransaction;

/// A database node in this process.
#[derive(Clone)]
pub struct EngineNode {
    dictionary: Arc<Dictionary>,
    /// Counts for the node; the process knows parts of it that the engine does not.
    reporter: Option<Arc<dyn Reporter>>,
}

impl std::fmt::Debug for EngineNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EngineNode").finish_non_exhaustive()
    }
}

impl EngineNode {
    /// The node whose tables this dictionary knows.
    #[must_use]
    pub fn new(dictionary: Arc<Dictionary>) -> EngineNode {
        EngineNode { dictionary, reporter: None }
    }

    /// The same node, with the figures that this reporter counts.
    #[must_use]
    pub fn with_reporter(self, reporter: Arc<dyn Reporter>) -> EngineNode {
        EngineNode { reporter: Some(reporter), ..self }
    }

    /// The same node, which evaluates the expressions of scans by `evaluator`. The first one holds.
    #[must_use]
    pub fn with_evaluator(self, evaluator: Arc<dyn ExpressionEvaluator>) -> EngineNode {
        self.dictionary.set_evaluator(evaluator);
        self
    }

    #[must_use]
    pub fn dictionary(&self) -> &Arc<Dictionary> {
        &self.dictionary
    }
}

impl firn_api::rows::Table for Table {
    fn definition(&self) -> &TableDefinition {
        Table::definition(self)
    }

    fn layout(&self) -> &TableLayout {
        Table::layout(self)
    }

    fn collations(&self) -> &dyn CollationKeys {
        Table::collations(self)
    }
}

/// The engine's table in a reference.
#[inline]
fn engine_table(table: &TableRef) -> RowsResult<&Table> {
    let any: &dyn Any = &**table;
    any.downcast_ref::<Table>().ok_or_else(foreign_table)
}

/// The engine's locks in a session's context.
fn engine_context(context: Arc<dyn MetadataContext>) -> Option<Arc<LockContext>> {
    let any: Arc<dyn Any + Send + Sync> = context;
    any.downcast().ok()
}

#[cold]
fn foreign_table() -> RowsError {
    RowsError::of_another_node("table")
}

impl DatabaseNode for EngineNode {
    fn begin(&self, isolation: IsolationLevel) -> RowsResult<Box<dyn Transaction>> {
        Ok(Box::new(EngineTransaction::begin(&self.dictionary, isolation)?))
    }

    fn begin_at(
        &self,
        isolation: IsolationLevel,
        snapshot: Cts,
    ) -> RowsResult<Box<dyn Transaction>> {
        Ok(Box::new(EngineTransaction::begin_at(&self.dictionary, isolation, snapshot)?))
    }

    fn take_up(&self, described: &DescribedTransaction) -> RowsResult<Box<dyn Transaction>> {
        Ok(Box::new(EngineTransaction::take_up(&self.dictionary, described)?))
    }

    fn report(&self) -> RowsResult<NodeReport> {
        Ok(self.reporter.as_ref().map_or_else(NodeReport::default, |reporter| reporter.report()))
    }

    fn status_text(&self) -> RowsResult<String> {
        Ok(self.reporter.as_ref().map_or_else(String::new, |reporter| reporter.status_text()))
    }

    fn definitions_version(&self) -> u64 {
        self.dictionary.version()
    }

    fn schemas(&self) -> RowsResult<Vec<Box<str>>> {
        Ok(self.dictionary.schemas())
    }

    fn schema_options(&self, schema: &str) -> RowsResult<Option<Arc<[u8]>>> {
        Ok(self.dictionary.schema_options(schema))
    }

    fn tables_of(&self, schema: &str) -> RowsResult<Option<Vec<TableRef>>> {
        Ok(lookup::tables_of(&self.dictionary, schema))
    }

    fn table_named(&self, schema: &str, name: &str) -> RowsResult<Option<TableRef>> {
        Ok(lookup::table_named(&self.dictionary, schema, name))
    }

    fn table(&self, table: TableId) -> RowsResult<Option<TableRef>> {
        Ok(lookup::table(&self.dictionary, table))
    }

    fn change_definitions(&self) -> RowsResult<Box<dyn Definitions>> {
        Ok(Box::new(definitions::DefinitionChange::new(self.dictionary.ddl()?)))
    }

    fn begin_index(
        &self,
        table: TableId,
        new: &NewIndex,
        lock_wait_timeout: Duration,
        cancelled: Option<&Arc<Cancellation>>,
    ) -> RowsResult<Box<dyn IndexBuild>> {
        let cancelled = cancelled.map(|cancellation| Arc::clone(cancellation.flag()));
        let patience = BuildPatience { lock_wait_timeout, cancelled };
        Ok(Box::new(self.dictionary.begin_index(table, new, patience)?))
    }

    fn metadata_locks(&self) -> Arc<dyn MetadataLocks> {
        Arc::clone(self.dictionary.metadata_locks()) as _
    }

    fn take_auto_increment(&self, table: &TableRef, count: u64) -> RowsResult<u64> {
        Ok(engine_table(table)?.sequences().auto_increment.take(count)?)
    }

    fn pass_auto_increment(&self, table: &TableRef, value: u64) -> RowsResult<()> {
        Ok(engine_table(table)?.sequences().auto_increment.pass(value)?)
    }

    fn next_auto_increment(&self, table: &TableRef) -> RowsResult<u64> {
        lookup::next_auto_increment(table)
    }

    fn estimate(
        &self,
        table: &TableRef,
        index: Option<usize>,
        range: &KeyRange,
    ) -> RowsResult<Estimate> {
        lookup::estimate(&self.dictionary, table, index, range)
    }

    fn hand_over(
        &self,
        handover: u64,
        mut transactions: Vec<HandedTransaction>,
    ) -> RowsResult<HandedOver> {
        // The next writer takes all definitions as old.
        let changed = self.dictionary.newest_definition();
        transactions.retain(|one| one.snapshot.is_none_or(|snapshot| snapshot >= changed));
        Ok(self.dictionary.system().hand_over(handover, transactions)?)
    }

    fn keep_writing(&self) {
        self.dictionary.system().keep_writing();
    }

    fn prepared_transactions(&self) -> RowsResult<Vec<Box<[u8]>>> {
        Ok(self.dictionary.system().prepared_transactions())
    }

    fn set_committing(&self, xid: &[u8]) -> RowsResult<Cts> {
        Ok(self.dictionary.system().set_committing(xid)?)
    }

    fn commit_prepared(&self, xid: &[u8], at: Option<Cts>) -> RowsResult<()> {
        Ok(self.dictionary.system().commit_prepared(xid, at)?)
    }

    fn rollback_prepared(&self, xid: &[u8]) -> RowsResult<()> {
        Ok(self.dictionary.system().rollback_prepared(xid)?)
    }
}

impl IndexBuild for index_build::IndexBuild {
    fn step(&mut self) -> RowsResult<BuildProgress> {
        Ok(index_build::IndexBuild::step(self)?)
    }

    fn is_filled(&self) -> bool {
        index_build::IndexBuild::is_filled(self)
    }

    fn finish(self: Box<Self>) -> RowsResult<()> {
        index_build::IndexBuild::finish(*self)?;
        Ok(())
    }
}
