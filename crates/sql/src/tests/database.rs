//! A node whose tables have the sizes that a test sets, with tables created by statements.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_api::rows::{
    Cancellation, DatabaseNode, Definitions, Estimate, IndexBuild, IsolationLevel, MetadataLocks,
    NewIndex, RowsError, RowsResult, TableRef, Transaction,
};
use firn_base::disk::SpillDirectory;
use firn_base::{Cts, TableId};
use firn_engine::rows::EngineNode;
use firn_format::key::KeyRange;
use firn_format::value::ValueRef;
use firn_test_node::NodeSupport;
use rustc_hash::FxHashMap;

use crate::bind::{bind_row_expression, query_columns};
use crate::catalog::SessionCatalog;
use crate::catalog::ddl::{self, DdlContext, ExpressionBinder, QueryColumn, RowExpression};
use crate::catalog::model::{CheckModel, TableModel};
use crate::error::Result;
use crate::execute::{Execution, ExecutionContext, ResultSink, run};
use crate::grammar;
use crate::logical::{OutputColumn, PlanContext};
use crate::plan::{PreparedPlan, StatementPlan};
use crate::prepare::plan_statement;
use crate::test_support::{UserVariables, catalog_with_schema, spill_directory};
use crate::types::{Datum, EvaluationContext, SqlMode, SqlType, StatementKind};

/// A node that reports these numbers of rows for its tables.
struct SizedNode {
    inner: EngineNode,
    rows: FxHashMap<&'static str, f64>,
    is_lost: Arc<AtomicBool>,
}

/// A database of one schema, `test`.
pub(super) struct Database {
    pub(super) node: Arc<dyn DatabaseNode>,
    /// Set while the node cannot be reached.
    pub(super) is_lost: Arc<AtomicBool>,
    pub(super) catalog: SessionCatalog,
    pub(super) evaluation: EvaluationContext,
    spill: SpillDirectory,
    _support: NodeSupport,
}

impl Database {
    /// A database with tables of these sizes.
    pub(super) fn new(rows: &[(&'static str, f64)]) -> Database {
        let (support, inner) = NodeSupport::open();
        let is_lost = Arc::new(AtomicBool::new(false));
        let node: Arc<dyn DatabaseNode> = Arc::new(SizedNode {
            inner,
            rows: rows.iter().copied().collect(),
            is_lost: Arc::clone(&is_lost),
        });
        let catalog = catalog_with_schema(&node);
        Database {
            node,
            is_lost,
            catalog,
            evaluation: EvaluationContext::default(),
            spill: spill_directory(&support),
            _support: support,
        }
    }

    pub(super) fn set_mode(&mut self, mode: SqlMode) {
        self.evaluation.sql_mode = mode;
    }

    /// Changes definitions.
    pub(super) fn ddl(&self, text: &str) {
        for text in text.split(';').filter(|text| !text.trim().is_empty()) {
            let statement = grammar::parse(text, grammar::Mode::default()).unwrap().statement;
            let context = DdlContext {
                catalog: &self.catalog,
                clock: &firn_base::clock::SystemClock,
                current_schema: Some("test"),
                evaluation: &self.evaluation,
                account: "root@localhost",
                lock_wait_timeout: Duration::from_secs(5),
                foreign_key_checks: true,
                require_primary_key: false,
                innodb_strict_mode: true,
                restrict_fk_on_non_standard_key: true,
                expressions: self,
                progress: &|_| true,
                changes: &|| Ok(()),
                locks: &self.catalog.shared().node().metadata_locks().open(),
                cancelled: &Arc::default(),
                is_waiting: &AtomicBool::new(false),
            };
            ddl::execute(&context, &statement).unwrap_or_else(|error| panic!("{text}: {error}"));
        }
    }

    pub(super) fn plan(&self, text: &str) -> Result<PreparedPlan> {
        self.plan_with(text, &[])
    }

    /// The context for planning statements.
    pub(super) fn context(&self) -> PlanContext<'_> {
        PlanContext::new(&self.catalog, Some("test"), &self.evaluation)
    }

    /// Plans a statement with parameters of these types.
    pub(super) fn plan_with(&self, text: &str, parameters: &[SqlType]) -> Result<PreparedPlan> {
        let statement = grammar::parse(text, grammar::Mode::default())?.statement;
        let context = PlanContext {
            parameters,
            ..PlanContext::new(&self.catalog, Some("test"), &self.evaluation)
        };
        plan_statement(&statement, &context)
    }

    /// The tree of a statement's plan, or its error.
    pub(super) fn tree(&self, text: &str) -> String {
        match self.plan(text) {
            Ok(plan) => plan.to_string(),
            Err(error) => format!("{}: {}\n", error.code, error.message),
        }
    }

    /// Plans and runs a statement; its rows as text, or its error.
    pub(super) fn run(&mut self, text: &str) -> String {
        match self.try_run(text) {
            Ok(rows) => rows.join("\n"),
            Err(error) => format!("{}: {}", error.code, error.message),
        }
    }

    fn try_run(&mut self, text: &str) -> Result<Vec<String>> {
        let plan = self.plan(text)?;
        self.evaluation.statement_kind = match &plan.statement {
            StatementPlan::Query(_) => StatementKind::Read,
            _ => StatementKind::Write,
        };
        let mut transaction = self.node.begin(IsolationLevel::RepeatableRead).unwrap();
        let cancelled = AtomicBool::new(false);
        let mut session = UserVariables::default();
        let context = ExecutionContext {
            parameters: &[],
            transaction: &mut *transaction,
            node: &*self.node,
            context: &self.evaluation,
            catalog: &self.catalog,
            session: &mut session,
            cancelled: &cancelled,
        };
        let mut execution = Execution::new(&plan, context, Box::default());
        execution.workspace.spill = Some(self.spill.clone());
        let mut sink = Rows { rows: Vec::new(), evaluation: &self.evaluation };
        let outcome = run(&plan, &mut execution, &mut sink);
        let rows = sink.rows;
        drop(execution);
        outcome?;
        transaction.commit().unwrap();
        Ok(rows)
    }
}

struct Rows<'a> {
    rows: Vec<String>,
    evaluation: &'a EvaluationContext,
}

impl Rows<'_> {
    fn push(&mut self, datum: &Datum, ty: &SqlType) {
        let text = match datum {
            Datum::Null => "NULL".to_owned(),
            datum => {
                let wanted = SqlType::varchar(u32::MAX, self.evaluation.connection_collation);
                let text = crate::types::cast::cast(datum, ty, &wanted, self.evaluation).unwrap();
                String::from_utf8_lossy(text.as_bytes().unwrap_or_default()).into_owned()
            }
        };
        let row = self.rows.last_mut().unwrap();
        if !row.is_empty() {
            row.push(' ');
        }
        row.push_str(&text);
    }
}

impl ResultSink for Rows<'_> {
    fn columns(&mut self, _columns: &[OutputColumn]) -> Result<()> {
        Ok(())
    }

    fn begin_row(&mut self) -> Result<()> {
        self.rows.push(String::new());
        Ok(())
    }

    fn stored(&mut self, value: ValueRef<'_>, ty: &SqlType) -> Result<()> {
        let datum = crate::execute::values::datum(value, ty, self.evaluation)?;
        self.push(&datum, ty);
        Ok(())
    }

    fn datum(&mut self, value: &Datum, ty: &SqlType) -> Result<()> {
        self.push(value, ty);
        Ok(())
    }

    fn end_row(&mut self) -> Result<()> {
        Ok(())
    }
}

struct Bound {
    ty: SqlType,
    columns: Vec<u16>,
}

impl RowExpression for Bound {
    fn ty(&self) -> &SqlType {
        &self.ty
    }

    fn volatile_function(&self) -> Option<&'static str> {
        None
    }

    fn columns(&self) -> &[u16] {
        &self.columns
    }

    fn evaluate(&self, _row: &[Datum], _evaluation: &EvaluationContext) -> Result<Datum> {
        Ok(Datum::Null)
    }
}

impl ExpressionBinder for Database {
    fn bind(&self, table: &Arc<TableModel>, text: &str) -> Result<Box<dyn RowExpression>> {
        let context = PlanContext::new(&self.catalog, Some("test"), &self.evaluation);
        let bound = bind_row_expression(table, text, &context)?;
        let columns = bound.columns.iter().map(|(ordinal, _)| *ordinal).collect();
        Ok(Box::new(Bound { ty: bound.expression.ty, columns }))
    }

    fn bind_check(
        &self,
        table: &Arc<TableModel>,
        check: &CheckModel,
    ) -> Result<Box<dyn RowExpression>> {
        self.bind(table, &check.text)
    }

    fn is_updatable(&self, _: &crate::grammar::ast::Query, _: &str) -> Result<bool> {
        Ok(true)
    }

    fn query_columns(
        &self,
        query: &crate::grammar::ast::Query,
        schema: &str,
    ) -> Result<Vec<QueryColumn>> {
        let context = PlanContext::new(&self.catalog, Some(schema), &self.evaluation);
        let columns = query_columns(query, &context)?;
        let columns = columns.into_iter().map(|column| QueryColumn {
            name: column.name.to_string(),
            ty: column.value.ty,
            width: None,
            origin: None,
        });
        Ok(columns.collect())
    }
}

impl SizedNode {
    fn reach(&self) -> RowsResult<()> {
        match self.is_lost.load(Ordering::Relaxed) {
            true => Err(RowsError::Unavailable { reason: "lost".into() }),
            false => Ok(()),
        }
    }
}

impl DatabaseNode for SizedNode {
    fn begin(&self, isolation: IsolationLevel) -> RowsResult<Box<dyn Transaction>> {
        self.inner.begin(isolation)
    }

    fn begin_at(
        &self,
        isolation: IsolationLevel,
        snapshot: Cts,
    ) -> RowsResult<Box<dyn Transaction>> {
        self.inner.begin_at(isolation, snapshot)
    }

    fn definitions_version(&self) -> u64 {
        self.inner.definitions_version()
    }

    fn schemas(&self) -> RowsResult<Vec<Box<str>>> {
        self.reach()?;
        self.inner.schemas()
    }

    fn schema_options(&self, schema: &str) -> RowsResult<Option<Arc<[u8]>>> {
        self.reach()?;
        self.inner.schema_options(schema)
    }

    fn tables_of(&self, schema: &str) -> RowsResult<Option<Vec<TableRef>>> {
        self.reach()?;
        self.inner.tables_of(schema)
    }

    fn table_named(&self, schema: &str, name: &str) -> RowsResult<Option<TableRef>> {
        self.reach()?;
        self.inner.table_named(schema, name)
    }

    fn table(&self, table: TableId) -> RowsResult<Option<TableRef>> {
        self.reach()?;
        self.inner.table(table)
    }

    fn change_definitions(&self) -> RowsResult<Box<dyn Definitions>> {
        self.inner.change_definitions()
    }

    fn begin_index(
        &self,
        table: TableId,
        new: &NewIndex,
        lock_wait_timeout: Duration,
        cancelled: Option<&Arc<Cancellation>>,
    ) -> RowsResult<Box<dyn IndexBuild>> {
        self.inner.begin_index(table, new, lock_wait_timeout, cancelled)
    }

    fn metadata_locks(&self) -> Arc<dyn MetadataLocks> {
        self.inner.metadata_locks()
    }

    fn take_auto_increment(&self, table: &TableRef, count: u64) -> RowsResult<u64> {
        self.inner.take_auto_increment(table, count)
    }

    fn pass_auto_increment(&self, table: &TableRef, value: u64) -> RowsResult<()> {
        self.inner.pass_auto_increment(table, value)
    }

    fn next_auto_increment(&self, table: &TableRef) -> RowsResult<u64> {
        self.inner.next_auto_increment(table)
    }

    fn estimate(
        &self,
        table: &TableRef,
        _index: Option<usize>,
        _range: &KeyRange,
    ) -> RowsResult<Estimate> {
        let entries = self.rows.get(table.definition().name.as_str()).copied().unwrap_or(1000.0);
        Ok(Estimate { entries, leaves: (entries / 100.0).ceil(), is_exact: true })
    }

    fn prepared_transactions(&self) -> RowsResult<Vec<Box<[u8]>>> {
        self.reach()?;
        self.inner.prepared_transactions()
    }

    fn set_committing(&self, xid: &[u8]) -> RowsResult<Cts> {
        self.inner.set_committing(xid)
    }

    fn commit_prepared(&self, xid: &[u8], at: Option<Cts>) -> RowsResult<()> {
        self.inner.commit_prepared(xid, at)
    }

    fn rollback_prepared(&self, xid: &[u8]) -> RowsResult<()> {
        self.inner.rollback_prepared(xid)
    }
}
