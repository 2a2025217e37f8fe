//! Evaluation without a transaction: expressions of definitions, evaluated over one row, and those
//! of an engine with its own rows.
//!
//! ```text
//!   row (by ordinal) ──► frame (by slot) ──► expression ──► value
//! ```
//!
//! Such expressions contain no subqueries and no variables, so nothing asks for the transaction or
//! the session; such a request is refused.

use crate::execute::Evaluate;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use firn_api::rows::{
    Awaited, Cancellation, DetachedLocks, IsolationLevel, Prepared, ReadMode, RowsError,
    RowsResult, Savepoint, Scan, ScanOptions, TableRef, Transaction,
};
use firn_base::{Cts, TableId};
use firn_format::row::OverflowReference;
use firn_format::value::ValueRef;

use crate::catalog::session::NoSessionTables;
use crate::catalog::{SessionCatalog, SessionTables};
use crate::error::{Result, SqlError};
use crate::expression::{Expression, Slot};
use crate::plan::{NodeKind, PlanNode, PreparedPlan, QueryPlan, StatementPlan, Validity};
use crate::types::{Datum, EvaluationContext, SqlType};

use super::{Execution, ExecutionContext, SessionState};

/// Evaluates expressions over rows that the caller puts in a frame, on any thread: without
/// transaction, session or subqueries.
pub struct RowEvaluator {
    catalog: Arc<SessionCatalog>,
    plan: PreparedPlan,
    parameters: Arc<[Datum]>,
}

impl RowEvaluator {
    /// An evaluator for the expressions of a statement.
    #[must_use]
    pub fn new(execution: &Execution<'_>) -> RowEvaluator {
        let catalog = SessionCatalog::new(Arc::clone(execution.data.catalog.shared()), u64::MAX);
        RowEvaluator {
            catalog: Arc::new(catalog),
            plan: blank_plan(execution.plan.frame_slots),
            parameters: execution.frame.parameters.into(),
        }
    }

    /// Lends a frame to `work`, which fills slots and evaluates.
    ///
    /// # Errors
    /// What `work` answers.
    pub fn with_frame<T>(
        &self,
        evaluation: &EvaluationContext,
        work: impl FnOnce(&mut Execution<'_>) -> Result<T>,
    ) -> Result<T> {
        let cancelled = AtomicBool::new(false);
        let (mut transaction, mut session) = (NoTransaction, NoSession);
        let context = ExecutionContext {
            parameters: &self.parameters,
            transaction: &mut transaction,
            node: &**self.catalog.shared().node(),
            context: evaluation,
            catalog: &self.catalog,
            session: &mut session,
            cancelled: &cancelled,
        };
        work(&mut Execution::new(&self.plan, context, Box::default()))
    }
}

/// An expression over slots that stand for the columns of one row.
pub struct DetachedExpression {
    expression: Expression,
    /// Which column goes to which slot.
    columns: Vec<(u16, Slot)>,
    evaluator: RowEvaluator,
}

impl DetachedExpression {
    /// An expression that reads the slots of `columns`, in a frame of `slots`.
    #[must_use]
    pub fn new(
        catalog: Arc<SessionCatalog>,
        expression: Expression,
        columns: Vec<(u16, Slot)>,
        slots: u32,
    ) -> DetachedExpression {
        let (plan, parameters) = (blank_plan(slots), Arc::from([]));
        let evaluator = RowEvaluator { catalog, plan, parameters };
        DetachedExpression { expression, columns, evaluator }
    }

    /// The type of its values.
    #[must_use]
    pub fn ty(&self) -> &SqlType {
        &self.expression.ty
    }

    /// Its value over a row that has a value for each ordinal.
    ///
    /// # Errors
    /// Errors of the evaluation.
    pub fn evaluate(&self, row: &[Datum], evaluation: &EvaluationContext) -> Result<Datum> {
        self.evaluator.with_frame(evaluation, |execution| {
            for (ordinal, slot) in &self.columns {
                if let Some(value) = row.get(usize::from(*ordinal)) {
                    execution.frame.set(*slot, value.clone());
                }
            }
            self.expression.evaluate(execution)
        })
    }
}

/// A plan that does nothing, for a separate frame.
fn blank_plan(frame_slots: u32) -> PreparedPlan {
    let root = PlanNode { kind: NodeKind::OneRow, rows: 1.0, cost: 0.0 };
    PreparedPlan {
        statement: StatementPlan::Query(QueryPlan { root, columns: Vec::new() }),
        frame_slots,
        parameters: Vec::new(),
        common_tables: Vec::new(),
        subqueries: Vec::new(),
        validity: Validity::at(0),
        conditions: Vec::new(),
        writes_parents: true,
        cost: 0.0,
        executor: None,
        is_cacheable: false,
        premises: Vec::new(),
        is_repeatable: false,
        needs: Vec::new(),
        tables: Vec::new(),
        locks: Vec::new(),
        max_execution_time_ms: None,
    }
}

/// The session of a definition: there is none.
struct NoSession;

impl SessionState for NoSession {
    fn user_variable(&self, _name: &str) -> Result<Datum> {
        Ok(Datum::Null)
    }

    fn set_user_variable(&mut self, _name: &str, _value: Datum, _ty: &SqlType) {}

    fn system_variable(&self, name: &str, _global: bool) -> Result<Datum> {
        Err(SqlError::new(1193, format!("Unknown system variable '{name}'")))
    }

    fn tables(&self) -> &dyn SessionTables {
        &NoSessionTables
    }
}

/// The transaction of a definition: there is none.
struct NoTransaction;

fn refused<T>() -> RowsResult<T> {
    let message = "an expression of a definition cannot read tables".to_owned();
    Err(RowsError::Other { code: 1235, message })
}

impl Transaction for NoTransaction {
    fn isolation(&self) -> IsolationLevel {
        IsolationLevel::ReadCommitted
    }

    fn id(&self) -> Option<u64> {
        None
    }

    fn snapshot(&self) -> Option<Cts> {
        None
    }

    fn set_lock_wait_timeout(&mut self, _timeout: Duration) {}

    fn set_first_updater_wins(&mut self, _refuses: bool) {}

    fn set_cancelled(&mut self, _cancellation: &Arc<Cancellation>) {}

    fn check_table(&mut self, _table: &TableRef) -> RowsResult<Vec<String>> {
        refused()
    }

    fn must_see(&mut self, _awaited: Option<Awaited>) {}

    fn open_snapshot(&mut self) {}

    fn end_statement(&mut self) {}

    fn table_for_read(&mut self, _table: TableId) -> RowsResult<TableRef> {
        refused()
    }

    fn table_for_write(&mut self, _table: TableId) -> RowsResult<TableRef> {
        refused()
    }

    fn get(
        &mut self,
        _table: &TableRef,
        _key: &[u8],
        _mode: ReadMode,
        _payload: &mut Vec<u8>,
    ) -> RowsResult<bool> {
        refused()
    }

    fn get_by_entry(
        &mut self,
        _table: &TableRef,
        _index: usize,
        _entry: &[u8],
        _mode: ReadMode,
        _primary_key: &mut Vec<u8>,
        _payload: &mut Vec<u8>,
    ) -> RowsResult<bool> {
        refused()
    }

    fn scan(&mut self, _table: &TableRef, _options: &ScanOptions) -> RowsResult<Box<dyn Scan>> {
        refused()
    }

    fn unlock(&mut self, _table: &TableRef, _key: &[u8]) {}

    fn read_overflow(
        &self,
        _table: &TableRef,
        _reference: OverflowReference,
        _range: Range<u64>,
        _into: &mut Vec<u8>,
    ) -> RowsResult<()> {
        refused()
    }

    fn insert(&mut self, _table: &TableRef, _row: &[ValueRef<'_>]) -> RowsResult<()> {
        refused()
    }

    fn insert_rows(&mut self, _table: &TableRef, _values: &[ValueRef<'_>]) -> RowsResult<()> {
        refused()
    }

    fn update(
        &mut self,
        _table: &TableRef,
        _key: &[u8],
        _payload: &[u8],
        _changes: &[(usize, ValueRef<'_>)],
    ) -> RowsResult<()> {
        refused()
    }

    fn delete(&mut self, _table: &TableRef, _key: &[u8], _payload: &[u8]) -> RowsResult<()> {
        refused()
    }

    fn savepoint(&self) -> Savepoint {
        Savepoint(0)
    }

    fn rollback_to(&mut self, _savepoint: Savepoint) -> RowsResult<()> {
        Ok(())
    }

    fn commit(self: Box<Self>) -> RowsResult<()> {
        Ok(())
    }

    fn rollback(self: Box<Self>) -> RowsResult<()> {
        Ok(())
    }

    fn prepare(self: Box<Self>, _xid: &[u8], _locks: DetachedLocks) -> RowsResult<Prepared> {
        refused()
    }
}
