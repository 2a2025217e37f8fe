//! A node that follows the log, behind the seam that SQL sees a database node through.
//!
//! ```text
//!   ReplicaNode ──► Replica                        follows the log
//!     ├─ begin, begin_at ──► ReplicaTransaction    a ReadTransaction: consistent reads
//!     └─ what writes ──────► NotLeader
//! ```
//!
//! What would write, lock rows or hand out numbers is refused with [`RowsError::NotLeader`], which
//! MySQL numbers 1836. Reads of all isolation levels are reads from a snapshot (paper 001 §2.1).
//!
//! Metadata locks are granted here among this node's own sessions. They do not hold up the node
//! that writes, and need not: a statement keeps the definitions that it has begun with, and what
//! they name stays readable for as long as its snapshot is open (rule 3 of [`crate::replica`]).

mod freshness;
mod transaction;

use std::sync::Arc;
use std::time::Duration;

use firn_api::report::{LogReport, NodeReport};
use firn_api::rows::{
    Cancellation, DatabaseNode, Definitions, Estimate, ExpressionEvaluator, Freshness, IndexBuild,
    IsolationLevel, MetadataLocks, NewIndex, RowsError, RowsResult, TableRef, Transaction,
};
use firn_base::{Cts, TableId};
use firn_format::key::KeyRange;

use crate::dictionary::DictionaryReader;
use crate::replica::Replica;

use super::lookup;

pub use transaction::ReplicaTransaction;

/// A node of this process that follows another one's log.
#[derive(Clone)]
pub struct ReplicaNode {
    replica: Arc<Replica>,
    snapshot_timeout: Duration,
}

impl std::fmt::Debug for ReplicaNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReplicaNode").finish_non_exhaustive()
    }
}

impl ReplicaNode {
    /// The node over a replica. A snapshot that was decided elsewhere is waited for as long as
    /// `snapshot_timeout`.
    #[must_use]
    pub fn new(replica: Arc<Replica>, snapshot_timeout: Duration) -> ReplicaNode {
        ReplicaNode { replica, snapshot_timeout }
    }

    /// The same node, which evaluates the expressions of scans by `evaluator`. The first one holds.
    #[must_use]
    pub fn with_evaluator(self, evaluator: Arc<dyn ExpressionEvaluator>) -> ReplicaNode {
        self.dictionary().set_evaluator(evaluator);
        self
    }

    #[must_use]
    pub fn replica(&self) -> &Arc<Replica> {
        &self.replica
    }

    fn dictionary(&self) -> &Arc<DictionaryReader> {
        self.replica.dictionary()
    }
}

/// The answer to what only the node that writes can do.
#[cold]
fn not_leader<T>() -> RowsResult<T> {
    Err(RowsError::NotLeader { hint: None })
}

impl DatabaseNode for ReplicaNode {
    fn begin(&self, isolation: IsolationLevel) -> RowsResult<Box<dyn Transaction>> {
        let transaction = ReplicaTransaction::begin(self.dictionary(), isolation)?;
        Ok(Box::new(transaction.with_changes_by_page(self.replica.by_page())))
    }

    /// Waits until the log is applied so far.
    fn begin_at(
        &self,
        isolation: IsolationLevel,
        snapshot: Cts,
    ) -> RowsResult<Box<dyn Transaction>> {
        if !self.replica.wait_until_visible(snapshot, self.snapshot_timeout) {
            let reason = match self.replica.failure() {
                Some(failure) => failure.to_string(),
                None => format!("the replica has not come to {snapshot} in time"),
            };
            return Err(RowsError::Unavailable { reason: reason.into() });
        }
        Ok(Box::new(ReplicaTransaction::begin_at(self.dictionary(), isolation, snapshot)?))
    }

    /// The log ends where this node has applied it; other parts are not counted.
    fn report(&self) -> RowsResult<NodeReport> {
        let applied = self.replica.applied_lsn();
        let log = LogReport { end: applied, durable: applied, ..LogReport::default() };
        Ok(NodeReport { log, ..NodeReport::default() })
    }

    fn definitions_version(&self) -> u64 {
        self.dictionary().version()
    }

    fn schemas(&self) -> RowsResult<Vec<Box<str>>> {
        Ok(self.dictionary().schemas())
    }

    fn schema_options(&self, schema: &str) -> RowsResult<Option<Arc<[u8]>>> {
        Ok(self.dictionary().schema_options(schema))
    }

    fn tables_of(&self, schema: &str) -> RowsResult<Option<Vec<TableRef>>> {
        Ok(lookup::tables_of(self.dictionary(), schema))
    }

    fn table_named(&self, schema: &str, name: &str) -> RowsResult<Option<TableRef>> {
        Ok(lookup::table_named(self.dictionary(), schema, name))
    }

    fn table(&self, table: TableId) -> RowsResult<Option<TableRef>> {
        Ok(lookup::table(self.dictionary(), table))
    }

    fn change_definitions(&self) -> RowsResult<Box<dyn Definitions>> {
        not_leader()
    }

    fn begin_index(
        &self,
        _table: TableId,
        _new: &NewIndex,
        _lock_wait_timeout: Duration,
        _cancelled: Option<&Arc<Cancellation>>,
    ) -> RowsResult<Box<dyn IndexBuild>> {
        not_leader()
    }

    fn freshness(&self) -> Option<Arc<dyn Freshness>> {
        Some(Arc::new(self.clone()))
    }

    fn metadata_locks(&self) -> Arc<dyn MetadataLocks> {
        Arc::clone(self.dictionary().metadata_locks()) as _
    }

    fn take_auto_increment(&self, _table: &TableRef, _count: u64) -> RowsResult<u64> {
        not_leader()
    }

    fn pass_auto_increment(&self, _table: &TableRef, _value: u64) -> RowsResult<()> {
        not_leader()
    }

    /// Numbers that the node that writes has reserved and not handed out yet are passed over.
    fn next_auto_increment(&self, table: &TableRef) -> RowsResult<u64> {
        lookup::next_auto_increment(table)
    }

    fn estimate(
        &self,
        table: &TableRef,
        index: Option<usize>,
        range: &KeyRange,
    ) -> RowsResult<Estimate> {
        lookup::estimate(self.dictionary(), table, index, range)
    }

    fn prepared_transactions(&self) -> RowsResult<Vec<Box<[u8]>>> {
        not_leader()
    }

    fn set_committing(&self, _xid: &[u8]) -> RowsResult<Cts> {
        not_leader()
    }

    fn commit_prepared(&self, _xid: &[u8], _at: Option<Cts>) -> RowsResult<()> {
        not_leader()
    }

    fn rollback_prepared(&self, _xid: &[u8]) -> RowsResult<()> {
        not_leader()
    }
}
