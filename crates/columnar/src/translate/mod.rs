//! Plans of the SQL layer to operators over batches.
//!
//! ```text
//!   Scan            TableScan                NestedLoop   hash join, or lookups row by row
//!   Filter, Compute Stage, or a feed's work  HashJoin     the library's
//!   Aggregate       Stage ─► HashAggregate   Sort, Limit  the library's
//!   what has no operator here                a feed of the row executor's rows
//! ```
//!
//! A relation's columns hold slots. Each node is asked for the slots that are read above it, and
//! returns those that it fills.

mod aggregate;
mod check;
mod join;
mod scan;
mod simple;
mod sort;
mod subquery;

use firn_sql::execute::Evaluate;
use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion_physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion_physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use firn_sql::execute::vectorised::RowSource;
use firn_sql::execute::{Execution, ResultSink};
use firn_sql::expression::{Expression, Slot};
use firn_sql::plan::visit::{self, SlotSet};
use firn_sql::plan::{NodeKind, PlanNode, PreparedPlan, QueryPlan};
use firn_sql::types::SqlType;
use rustc_hash::FxHashMap;

use crate::expression::{Compiler, Kernel};
use crate::operator::{Output, Stage};
use crate::plan_execution::drive;
use crate::resources::Resources;
use crate::scope::Scope;
use crate::session_sources::{Feed, FeedLeaf, Inbox, Source, Work};
use crate::stop_reason::{Result, Stop, declined};
use crate::value::{Field, Physical};

pub(crate) use check::check;

/// How groups are gathered and joins are executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// By hash tables in memory.
    Memory,
    /// By sorts, which spill to disk.
    Disk,
}

/// The translated rows of a node.
pub(crate) struct Relation {
    pub(crate) plan: Arc<dyn ExecutionPlan>,
    pub(crate) fields: Vec<Field>,
    /// Expected number of rows.
    pub(crate) rows: f64,
}

/// How the columns of a result's batches become its values.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// They are the result's columns.
    Columns(Vec<Physical>),
    /// They are slots, from which the session evaluates the result's columns.
    Slots(Vec<(Slot, Physical)>),
}

impl Answer {
    /// Passes a row's values to the client.
    pub(crate) fn pass_row(
        &self,
        query: &QueryPlan,
        batch: &RecordBatch,
        row: usize,
        execution: &mut Execution<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        match self {
            Answer::Columns(layouts) => {
                for (number, (layout, column)) in layouts.iter().zip(&query.columns).enumerate() {
                    sink.datum(&layout.datum(&**batch.column(number), row), &column.value.ty)?;
                }
            }
            Answer::Slots(slots) => {
                for (number, (slot, layout)) in slots.iter().enumerate() {
                    execution.put(*slot, layout.datum(&**batch.column(number), row));
                }
                for column in &query.columns {
                    let value = column.value.evaluate(execution)?;
                    sink.datum(&value, &column.value.ty)?;
                }
            }
        }
        Ok(())
    }
}

/// Takes batches of an answer; false when it wants no more.
pub(crate) type AnswerTaker<'t, 'x> =
    dyn FnMut(&mut Execution<'x>, &Answer, RecordBatch) -> Result<bool> + 't;

/// Answers a query in batches. Returns whether evaluation left warnings with the engine's threads.
pub(crate) fn answer<'x>(
    resources: &Resources,
    way: Way,
    plan: &PreparedPlan,
    query: &QueryPlan,
    execution: &mut Execution<'x>,
    take: &mut AnswerTaker<'_, 'x>,
) -> Result<bool> {
    let scope = Scope::new(execution);
    let mut translator = Translator::new(resources, way, plan, &scope, execution);
    let (relation, answer) = translator.query(query)?;
    if translator.scans == 0 {
        let why = translator.why_rows.unwrap_or_default();
        return declined(format!("no part of it is over columns: {why}"));
    }
    translator.drive(relation.plan, &mut |execution, batch| take(execution, &answer, batch))?;
    Ok(scope.has_warned())
}

pub(crate) struct Translator<'p, 'e, 'x> {
    pub(crate) resources: &'e Resources,
    pub(crate) way: Way,
    pub(crate) plan: &'p PreparedPlan,
    pub(crate) scope: Arc<Scope>,
    pub(crate) execution: &'e mut Execution<'x>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) feeds: Vec<Feed<'p>>,
    /// How many tables are read over columns.
    pub(crate) scans: usize,
    /// Slots that the plan does not know, made for columns that only a join reads.
    pub(crate) next_slot: u32,
    /// Whether an operator above may rely on the order of the rows: plans have no sort if an index
    /// provides the order.
    pub(crate) ordered: bool,
    /// Why the row executor has to run the first node that it runs.
    pub(crate) why_rows: Option<String>,
    /// Common tables that have been evaluated.
    pub(crate) common: FxHashMap<usize, Arc<Vec<RecordBatch>>>,
}

impl<'p, 'e, 'x> Translator<'p, 'e, 'x> {
    fn new(
        resources: &'e Resources,
        way: Way,
        plan: &'p PreparedPlan,
        scope: &Arc<Scope>,
        execution: &'e mut Execution<'x>,
    ) -> Translator<'p, 'e, 'x> {
        Translator {
            resources,
            way,
            plan,
            scope: Arc::clone(scope),
            execution,
            inbox: Arc::default(),
            feeds: Vec::new(),
            scans: 0,
            next_slot: plan.frame_slots,
            ordered: true,
            why_rows: None,
            common: FxHashMap::default(),
        }
    }

    /// Runs the translated plan.
    fn drive(
        mut self,
        plan: Arc<dyn ExecutionPlan>,
        take: &mut crate::plan_execution::Taker<'_, 'x>,
    ) -> Result<()> {
        let plan = single(plan);
        let Translator { resources, inbox, scope, execution, .. } = self;
        drive(resources, plan, &mut self.feeds, &inbox, &scope, execution, take)
    }

    /// A query with its columns computed.
    fn query(&mut self, query: &'p QueryPlan) -> Result<(Relation, Answer)> {
        let columns: Vec<&Expression> = query.columns.iter().map(|column| &column.value).collect();
        let needed = visit::reads_of(columns.iter().copied());
        let relation = self.node(&query.root, &needed)?;
        self.answer_subqueries(columns.iter().copied())?;
        match self.project(&relation.fields, &columns) {
            Ok(outputs) => {
                let layouts = outputs.iter().map(Output::physical).collect();
                let plan = Arc::new(Stage::new(relation.plan, Vec::new(), outputs));
                let relation = Relation { plan, fields: Vec::new(), rows: relation.rows };
                Ok((relation, Answer::Columns(layouts)))
            }
            Err(Stop::Declined(_)) => {
                let slot = |field: &Field| (field.slot, field.physical);
                let slots = relation.fields.iter().map(slot).collect();
                Ok((relation, Answer::Slots(slots)))
            }
            Err(stop) => Err(stop),
        }
    }

    fn project(&mut self, fields: &[Field], columns: &[&Expression]) -> Result<Vec<Output>> {
        let mut compiler = self.compiler(fields);
        columns.iter().map(|column| compiler.compile(column).map(Output::Value)).collect()
    }

    pub(crate) fn compiler<'c>(&'c mut self, fields: &'c [Field]) -> Compiler<'c, 'c, 'x> {
        Compiler { fields, scope: &self.scope, execution: self.execution }
    }

    /// A node's rows: from operators over batches if possible, otherwise from a feed.
    pub(crate) fn node(&mut self, node: &'p PlanNode, needed: &SlotSet) -> Result<Relation> {
        let (feeds, scans, ordered) = (self.feeds.len(), self.scans, self.ordered);
        self.ordered = match &node.kind {
            NodeKind::Sort { .. } | NodeKind::Distinct { .. } => false,
            NodeKind::Aggregate { groups, sorted, .. } => ordered && *sorted && !groups.is_empty(),
            NodeKind::Limit { .. } => true,
            _ => ordered,
        };
        let done = self.vectorised(node, needed);
        self.ordered = ordered;
        match done {
            Err(Stop::Declined(why)) => {
                self.why_rows.get_or_insert(why);
                self.feeds.truncate(feeds);
                self.scans = scans;
                self.rows_of(node, needed)
            }
            done => done,
        }
    }

    /// Translates a node whose order does not matter.
    pub(crate) fn unordered(&mut self, node: &'p PlanNode, needed: &SlotSet) -> Result<Relation> {
        let ordered = std::mem::replace(&mut self.ordered, false);
        let done = self.node(node, needed);
        self.ordered = ordered;
        done
    }

    fn vectorised(&mut self, node: &'p PlanNode, needed: &SlotSet) -> Result<Relation> {
        match &node.kind {
            NodeKind::OneRow => Ok(simple::one_row()),
            NodeKind::Scan(scan) => self.scan(scan, node.rows, needed),
            NodeKind::CommonTable { number, slots } => self.common_table(*number, slots, needed),
            NodeKind::Derived { query, slots, lateral: false } => {
                self.derived(query, slots, needed)
            }
            NodeKind::Filter { input, conditions } => self.filter(input, conditions, node, needed),
            NodeKind::Compute { input, outputs } => self.compute(input, outputs, needed),
            NodeKind::NestedLoop { left, right, join, conditions, right_slots } => {
                let sides = join::Sides { left, right, join: *join, conditions, right_slots };
                self.nested_loop(&sides, node.rows, needed)
            }
            NodeKind::HashJoin { left, right, join, keys, null_safe, conditions, right_slots } => {
                let sides = join::Sides { left, right, join: *join, conditions, right_slots };
                self.hash_join(&sides, keys, null_safe, node.rows, needed)
            }
            NodeKind::Aggregate { input, groups, aggregates, rollup: None, .. } => {
                self.aggregate(input, groups, aggregates, node.rows, needed)
            }
            NodeKind::Sort { input, keys, keep, limit } => {
                self.sort(input, keys, keep, limit.as_ref(), node.rows, needed)
            }
            NodeKind::Limit { input, offset, count, count_all: false } => {
                self.limit(input, offset.as_ref(), count.as_ref(), node.rows, needed)
            }
            NodeKind::Distinct { input, slots, .. } => {
                self.distinct(input, slots, node.rows, needed)
            }
            NodeKind::SetOperation { operation, all, inputs, slots } => {
                self.union(*operation, *all, inputs, slots, node.rows)
            }
            _ => declined("an operator works on rows"),
        }
    }

    /// A node's rows from the row executor's operators.
    fn rows_of(&mut self, node: &'p PlanNode, needed: &SlotSet) -> Result<Relation> {
        let (types, mut fills) = (simple::slot_types(node), SlotSet::default());
        visit::add_fills(node, &mut fills);
        let mut fields = Vec::new();
        for slot in fills.intersection(needed).iter() {
            let Some(ty) = types.get(&slot) else { return declined("a slot has no known type") };
            fields.push(Field::new(slot, ty)?);
        }
        let rows = RowSource::new(node, self.execution);
        let filled = fills.iter().collect();
        let source = Source::Rows { rows, is_open: false, filled, saved: Vec::new() };
        let plan = self.feed(&fields, source, None);
        Ok(Relation { plan, fields, rows: node.rows })
    }

    fn feed(
        &mut self,
        fields: &[Field],
        source: Source<'p>,
        input: Option<Arc<dyn ExecutionPlan>>,
    ) -> Arc<dyn ExecutionPlan> {
        let (feed, leaf) = Feed::new(self.feeds.len(), fields, source, input, &self.inbox);
        self.feeds.push(feed);
        Arc::new(leaf)
    }

    /// Work of the session over each row of a relation.
    pub(crate) fn session_work(
        &mut self,
        input: Relation,
        fields: Vec<Field>,
        work: Work<'p>,
        rows: f64,
    ) -> Relation {
        let source = Source::Work {
            fields: input.fields,
            pending: VecDeque::new(),
            has_ended: false,
            permits: FeedLeaf::permits(),
            work,
        };
        let plan = self.feed(&fields, source, Some(single(input.plan)));
        Relation { plan, fields, rows }
    }

    /// All batches of a query's result.
    fn collect(&mut self, query: &'p QueryPlan) -> Result<(Vec<RecordBatch>, Vec<Physical>)> {
        // A run waits for the readers of its scope, so it needs a separate scope.
        let scope = Scope::new(self.execution);
        let mut inner =
            Translator::new(self.resources, self.way, self.plan, &scope, self.execution);
        inner.next_slot = self.next_slot;
        inner.common.clone_from(&self.common);
        let (relation, answer) = inner.query(query)?;
        let Answer::Columns(layouts) = answer else {
            return declined("a common table's columns need the session");
        };
        let scans = inner.scans;
        let (mut batches, mut held) = (Vec::new(), self.scope.memory.reservation());
        inner.drive(relation.plan, &mut |_, batch| {
            held.require(batch.get_array_memory_size())?;
            batches.push(batch);
            Ok(true)
        })?;
        if scope.has_warned() {
            return declined("it warns");
        }
        self.scans += scans;
        Ok((batches, layouts))
    }
}

/// A plan of one partition.
pub(crate) fn single(plan: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    if plan.output_partitioning().partition_count() == 1 {
        return plan;
    }
    Arc::new(CoalescePartitionsExec::new(plan))
}

/// The fields of a relation that are read above, as outputs of a stage.
pub(crate) fn kept(fields: &[Field], needed: &SlotSet) -> (Vec<Field>, Vec<Output>) {
    let mut kept = (Vec::new(), Vec::new());
    for (number, field) in fields.iter().enumerate() {
        if needed.contains(field.slot) {
            kept.0.push(field.clone());
            kept.1.push(Output::Value(Kernel::Column(number, field.physical)));
        }
    }
    kept
}

pub(crate) type SlotTypes = FxHashMap<Slot, SqlType>;
