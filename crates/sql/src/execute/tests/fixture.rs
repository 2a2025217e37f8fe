//! A node with tables, and shortcuts to plans.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use firn_api::rows::{DatabaseNode, Direction, IsolationLevel, ReadMode, Transaction, WaitPolicy};
use firn_base::disk::SpillDirectory;
use firn_format::definition::{ColumnDefinition, IndexDefinition, IndexKind, TableDefinition};
use firn_format::value::{CollationId, ColumnType, IntWidth, ValueRef};
use firn_test_node::NodeSupport;

use crate::catalog::SessionCatalog;
use crate::catalog::model::{DefaultValue, TableModel};
use crate::catalog::options::{ColumnOptions, TableOptions, encode_default};
use crate::error::{Condition, Result};
use crate::execute::{
    Execution, ExecutionContext, Limits, MemoryBudget, Outcome, ResultSink, Scratch, run,
};
use crate::expression::{CompareOperator, Expression, ExpressionKind, Slot};
use crate::logical::OutputColumn;
use crate::plan::{
    Access, NodeKind, PlanNode, PreparedPlan, QueryPlan, ScanPlan, StatementPlan, Validity,
};
use crate::test_support::{UserVariables, catalog_with_schema, spill_directory};
use crate::types::{Datum, EvaluationContext, SqlType, StatementKind, comparison_kind};

/// The collation `utf8mb4_0900_ai_ci`.
pub(super) const AI_CI: CollationId = CollationId(255);

/// A node, and a session's state.
pub(super) struct Database {
    pub(super) node: Arc<dyn DatabaseNode>,
    pub(super) catalog: SessionCatalog,
    pub(super) limits: Limits,
    pub(super) memory_bytes: u64,
    pub(super) context: EvaluationContext,
    spill: SpillDirectory,
    _support: NodeSupport,
}

/// A sink that keeps rows.
#[derive(Default)]
pub(super) struct Rows {
    pub(super) rows: Vec<Vec<Datum>>,
    /// Values that arrived as they are stored.
    pub(super) stored: usize,
}

impl ResultSink for Rows {
    fn columns(&mut self, _columns: &[OutputColumn]) -> Result<()> {
        Ok(())
    }

    fn begin_row(&mut self) -> Result<()> {
        self.rows.push(Vec::new());
        Ok(())
    }

    fn stored(&mut self, value: ValueRef<'_>, ty: &SqlType) -> Result<()> {
        self.stored += 1;
        let datum = crate::execute::values::datum(value, ty, &EvaluationContext::default())?;
        self.rows.last_mut().unwrap().push(datum);
        Ok(())
    }

    fn datum(&mut self, value: &Datum, _ty: &SqlType) -> Result<()> {
        self.rows.last_mut().unwrap().push(value.clone());
        Ok(())
    }

    fn end_row(&mut self) -> Result<()> {
        Ok(())
    }
}

pub(super) struct NewTable {
    definition: TableDefinition,
    pub(super) options: TableOptions,
}

impl NewTable {
    pub(super) fn new(name: &str) -> NewTable {
        let definition = TableDefinition::new("test", name);
        NewTable { definition, options: TableOptions::default() }
    }

    pub(super) fn column(self, name: &str, column_type: ColumnType, nullable: bool) -> NewTable {
        self.column_with(name, column_type, nullable, &ColumnOptions::default())
    }

    pub(super) fn column_with(
        mut self,
        name: &str,
        column_type: ColumnType,
        nullable: bool,
        options: &ColumnOptions,
    ) -> NewTable {
        let mut column = ColumnDefinition::new(name, column_type, nullable);
        column.options = options.encode();
        if nullable {
            column.default = encode_default(&DefaultValue::Null);
        }
        self.definition.columns.push(column);
        self
    }

    pub(super) fn index(mut self, name: &str, kind: IndexKind, columns: &[u16]) -> NewTable {
        self.definition.indexes.push(IndexDefinition::new(name, kind, columns));
        self
    }
}

pub(super) fn int() -> ColumnType {
    ColumnType::Int(IntWidth::Four)
}

pub(super) fn varchar() -> ColumnType {
    ColumnType::Varchar { max_chars: 100, collation: AI_CI }
}

impl Database {
    pub(super) fn new() -> Database {
        let (support, node) = NodeSupport::open();
        let node: Arc<dyn DatabaseNode> = Arc::new(node);
        let catalog = catalog_with_schema(&node);
        Database {
            node,
            catalog,
            limits: Limits::default(),
            memory_bytes: 64 << 20,
            context: EvaluationContext::default(),
            spill: spill_directory(&support),
            _support: support,
        }
    }

    pub(super) fn create(&self, new: NewTable) -> Arc<TableModel> {
        let mut definition = new.definition;
        definition.options = new.options.encode();
        let name = definition.name.clone();
        let mut change = self.node.change_definitions().unwrap();
        change.create_table(definition).unwrap();
        change.commit().unwrap();
        self.catalog.table("test", &name).unwrap()
    }

    pub(super) fn begin(&self) -> Box<dyn Transaction> {
        self.node.begin(IsolationLevel::RepeatableRead).unwrap()
    }

    /// Runs a plan in a transaction.
    pub(super) fn run_in(
        &mut self,
        transaction: &mut dyn Transaction,
        plan: &PreparedPlan,
        parameters: &[Datum],
        sink: &mut Rows,
    ) -> Result<Outcome> {
        self.context.statement_kind = match &plan.statement {
            StatementPlan::Query(_) => StatementKind::Read,
            _ => StatementKind::Write,
        };
        let cancelled = AtomicBool::new(false);
        let mut session = UserVariables::default();
        let scratch =
            Scratch { memory: MemoryBudget::new(self.memory_bytes), ..Scratch::default() };
        let context = ExecutionContext {
            parameters,
            transaction,
            node: &*self.node,
            context: &self.context,
            catalog: &self.catalog,
            session: &mut session,
            cancelled: &cancelled,
        };
        let mut execution = Execution::new(plan, context, Box::new(scratch));
        execution.limits = self.limits.clone();
        execution.workspace.spill = Some(self.spill.clone());
        let outcome = run(plan, &mut execution, sink);
        let scratch = execution.into_scratch();
        assert_eq!(scratch.memory.used_bytes(), 0, "all memory is given back");
        outcome
    }

    /// Runs a plan in its own transaction.
    pub(super) fn run(&mut self, plan: &PreparedPlan) -> Result<Outcome> {
        let mut transaction = self.begin();
        let outcome = self.run_in(&mut *transaction, plan, &[], &mut Rows::default());
        transaction.commit().unwrap();
        outcome
    }

    pub(super) fn rows(&mut self, query: QueryPlan) -> Result<Vec<Vec<Datum>>> {
        let plan = prepared(StatementPlan::Query(query));
        let mut sink = Rows::default();
        let mut transaction = self.begin();
        self.run_in(&mut *transaction, &plan, &[], &mut sink)?;
        transaction.commit().unwrap();
        Ok(sink.rows)
    }

    /// All rows of a table in the order of its primary key, as text.
    pub(super) fn dump(&mut self, table: &Arc<TableModel>) -> Vec<String> {
        let rows = self.rows(select_all(table)).unwrap();
        rows.iter().map(|row| shown(row)).collect()
    }

    /// The warnings and errors that were left.
    pub(super) fn warnings(&self) -> Vec<(u16, String)> {
        let shown = |condition: Condition| (condition.code, condition.message);
        self.context.take_conditions().into_iter().map(shown).collect()
    }
}

/// A row as text.
pub(super) fn shown(row: &[Datum]) -> String {
    let value = |datum: &Datum| match datum {
        Datum::Null => "NULL".to_owned(),
        Datum::Int(number) => number.to_string(),
        Datum::UInt(number) => number.to_string(),
        Datum::Double(number) => number.to_string(),
        Datum::Decimal(number) => number.to_string(),
        Datum::Text(text) => text.to_str_lossy().into_owned(),
        Datum::Json(document) => document.to_text(),
        other => format!("{other:?}"),
    };
    row.iter().map(value).collect::<Vec<_>>().join(" ")
}

/// A plan with room for a hundred slots.
pub(super) fn prepared(statement: StatementPlan) -> PreparedPlan {
    PreparedPlan {
        statement,
        frame_slots: 100,
        parameters: Vec::new(),
        common_tables: Vec::new(),
        subqueries: Vec::new(),
        validity: Validity::at(0),
        conditions: Vec::new(),
        writes_parents: true,
        executor: None,
        cost: 0.0,
        needs: Vec::new(),
        tables: Vec::new(),
        locks: Vec::new(),
        max_execution_time_ms: None,
        is_cacheable: true,
        premises: Vec::new(),
        is_repeatable: true,
    }
}

pub(super) fn node(kind: NodeKind) -> PlanNode {
    PlanNode { kind, rows: 1.0, cost: 1.0 }
}

pub(super) fn slot(number: u32, ty: &SqlType) -> Expression {
    Expression { kind: ExpressionKind::Slot(Slot(number)), ty: ty.clone() }
}

pub(super) fn int_slot(number: u32) -> Expression {
    slot(number, &SqlType::bigint())
}

pub(super) fn literal(value: impl Into<i64>) -> Expression {
    Expression { kind: ExpressionKind::Literal(Datum::Int(value.into())), ty: SqlType::bigint() }
}

pub(super) fn null() -> Expression {
    Expression { kind: ExpressionKind::Literal(Datum::Null), ty: SqlType::null() }
}

pub(super) fn text(value: &str) -> Expression {
    let ty = SqlType::varchar(value.len() as u32, AI_CI);
    Expression { kind: ExpressionKind::Literal(Datum::text(value)), ty }
}

pub(super) fn default() -> Expression {
    Expression { kind: ExpressionKind::Unresolved("DEFAULT".into()), ty: SqlType::null() }
}

pub(super) fn call(function: &str, arguments: Vec<Expression>) -> Expression {
    let function = crate::functions::find(function).unwrap();
    let types: Vec<SqlType> = arguments.iter().map(|argument| argument.ty.clone()).collect();
    let context = crate::functions::ResolveContext {
        sql_mode: crate::types::SqlMode::DEFAULT,
        connection_collation: AI_CI,
        div_precision_increment: 4,
        constants: &[],
    };
    let signature = (function.resolve)(&types, &context).unwrap();
    let arguments = arguments.into_iter().zip(&signature.arguments).map(|(argument, wanted)| {
        match argument.ty.kind == wanted.kind {
            true => argument,
            false => {
                Expression { kind: ExpressionKind::Cast(Box::new(argument)), ty: wanted.clone() }
            }
        }
    });
    let kind = ExpressionKind::Call { function, arguments: arguments.collect() };
    Expression { kind, ty: signature.result }
}

pub(super) fn compare(
    left: Expression,
    operator: CompareOperator,
    right: Expression,
) -> Expression {
    let kind = comparison_kind(&left.ty, &right.ty, "=").unwrap();
    let cast = |side: Expression| {
        let ty = kind.operand_type(&side.ty);
        match ty.kind == side.ty.kind {
            true => side,
            false => Expression { kind: ExpressionKind::Cast(Box::new(side)), ty },
        }
    };
    let sides = Box::new([cast(left), cast(right)]);
    let kind = ExpressionKind::Compare { operator, kind, sides };
    Expression { kind, ty: SqlType::boolean() }
}

pub(super) fn column_type(table: &TableModel, ordinal: u16) -> SqlType {
    table.by_ordinal(ordinal).unwrap().ty.clone()
}

/// All columns of a table, from slot `first` on.
pub(super) fn slots_of(table: &TableModel, first: u32) -> Vec<(u16, Slot)> {
    let ordinals = 0..table.columns.len() as u16;
    ordinals.map(|ordinal| (ordinal, Slot(first + u32::from(ordinal)))).collect()
}

/// A scan of all of a table, its columns from slot `first` on.
pub(super) fn scan_plan(table: &Arc<TableModel>, first: u32) -> ScanPlan {
    ScanPlan {
        table: Arc::clone(table),
        alias: Arc::clone(&table.name),
        access: Access::Full { index: None },
        direction: Direction::Forward,
        mode: ReadMode::Consistent,
        slots: slots_of(table, first),
        conditions: Vec::new(),
        row_key: None,
        row_payload: None,
        covered: false,
    }
}

pub(super) fn scan(plan: ScanPlan) -> PlanNode {
    node(NodeKind::Scan(Box::new(plan)))
}

/// A scan for a statement that writes: key and bytes go to slots 90 and 91.
pub(super) fn write_scan(table: &Arc<TableModel>, conditions: Vec<Expression>) -> PlanNode {
    scan(ScanPlan {
        mode: ReadMode::Update(WaitPolicy::Wait),
        row_key: Some(Slot(90)),
        row_payload: Some(Slot(91)),
        conditions,
        ..scan_plan(table, 0)
    })
}

pub(super) fn output(value: Expression) -> OutputColumn {
    OutputColumn { value, name: "c".into(), origin: None, display: None }
}

pub(super) fn query(root: PlanNode, columns: Vec<Expression>) -> QueryPlan {
    QueryPlan { root, columns: columns.into_iter().map(output).collect() }
}

/// The columns of a table as expressions, from slot `first` on.
pub(super) fn columns_of(table: &TableModel, first: u32) -> Vec<Expression> {
    let slots = slots_of(table, first);
    slots.iter().map(|(ordinal, at)| slot(at.0, &column_type(table, *ordinal))).collect()
}

pub(super) fn select_all(table: &Arc<TableModel>) -> QueryPlan {
    query(scan(scan_plan(table, 0)), columns_of(table, 0))
}

/// Literal rows in slots from `first` on.
pub(super) fn values(rows: Vec<Vec<Expression>>, first: u32) -> PlanNode {
    let width = rows.first().map_or(0, Vec::len) as u32;
    node(NodeKind::Values { rows, slots: (first..first + width).map(Slot).collect() })
}

/// Rows of integers, `None` being NULL, in slots from `first` on.
pub(super) fn int_rows(rows: &[Vec<Option<i64>>], first: u32) -> PlanNode {
    let value = |number: &Option<i64>| number.map_or_else(null, literal);
    values(rows.iter().map(|row| row.iter().map(value).collect()).collect(), first)
}
