//! Whole statements: their parts in the order in which they were bound, then the statement itself.

use firn_sql_logical::expression::{Expression, Slot, SortKey};
use firn_sql_logical::{
    Block, Body, BoundBody, BoundInsert, BoundStatement, Part, PlanContext, Query, RelationSource,
};
use firn_sql_types::SqlType;
use firn_sql_types::error::Result;

use super::slot_liveness::{finish, finish_query};
use super::{Optimiser, Planned};
use crate::validity::Validity;
use crate::visit::{SlotSet, add_reads, outer_slots};
use crate::{
    CommonTable, InsertPlan, NodeKind, OutputColumn, PlanNode, PreparedPlan, QueryPlan,
    StatementPlan, SubqueryPlan, WriteTarget,
};

/// The assumed growth of a recursive common table over its initial rows.
const RECURSIVE_GROWTH: f64 = 10.0;

/// Plans what was bound.
///
/// # Errors
/// 1235 for unsupported features, and errors of [`firn_sql_types::watch::Watch`].
pub fn plan_bound(bound: BoundStatement, context: &PlanContext<'_>) -> Result<PreparedPlan> {
    let validity = Validity::of(&bound);
    let mut optimiser = Optimiser::new(context, bound.relations);
    let planned = optimiser.plan_statement(bound.parts, bound.body).inspect_err(|_| {
        context.needs_of_refused.replace(bound.needs.clone());
    })?;
    let common_tables: Vec<CommonTable> = optimiser.common_tables.into_iter().flatten().collect();
    let cost = cost_of(&planned, &common_tables);
    Ok(PreparedPlan {
        statement: planned,
        frame_slots: u32::try_from(bound.slots).unwrap_or(u32::MAX),
        parameters: context.parameters.to_vec(),
        common_tables,
        subqueries: optimiser.subqueries,
        validity,
        writes_parents: bound.writes_parents,
        executor: context.executor.get(),
        cost,
        is_cacheable: bound.is_cacheable,
        premises: bound.premises,
        is_repeatable: bound.is_repeatable,
        needs: bound.needs,
        tables: bound.tables,
        locks: bound.locks,
        max_execution_time_ms: bound.max_execution_time_ms,
        conditions: context.conditions.take(),
    })
}

impl Optimiser<'_> {
    fn plan_statement(&mut self, parts: Vec<Part>, body: BoundBody) -> Result<StatementPlan> {
        parts.into_iter().try_for_each(|part| self.plan_part(part))?;
        Ok(match body {
            BoundBody::Query(query) => StatementPlan::Query(self.plan_finished(query)?),
            BoundBody::Expressions(values) => StatementPlan::Query(one_row_of(values)),
            BoundBody::Insert(insert) => StatementPlan::Insert(self.plan_insert(insert)?),
            BoundBody::Update(update) => StatementPlan::Update(self.plan_update(update)?),
            BoundBody::Delete(delete) => StatementPlan::Delete(self.plan_delete(delete)?),
        })
    }

    fn plan_part(&mut self, part: Part) -> Result<()> {
        match part {
            Part::Subquery(query) => {
                let query = self.plan_finished(query)?;
                let outer_slots = outer_slots(&query);
                self.subqueries.push(SubqueryPlan { query, outer_slots });
            }
            Part::Relation(relation) => {
                let source = &mut self.relations[relation.0].source;
                let RelationSource::Derived { query, .. } = source else { return Ok(()) };
                let Some(query) = query.take() else { return Ok(()) };
                let planned = self.plan_finished(*query)?;
                self.planned[relation.0] = Some(Planned::Query(Box::new(planned)));
            }
            Part::CommonTable(query) => {
                let query = self.plan_finished(query)?;
                let rows = query.root.rows;
                let number = self.add_common_table(query);
                self.common_numbers.push((number, rows));
            }
            Part::Seed(query) => {
                let seed = self.plan_finished(query)?;
                self.common_tables.push(None);
                self.common_numbers
                    .push((self.common_tables.len() - 1, seed.root.rows * RECURSIVE_GROWTH));
                self.seeds.push(seed);
            }
            Part::Step { number, query, limit, distinct, types } => {
                let step = self.plan_finished(query)?;
                let Some(seed) = self.seeds.pop() else { return Ok(()) };
                let (number, _) = self.common_numbers[number];
                self.common_tables[number] =
                    Some(recursive_table(seed, step, limit, distinct, types));
            }
        }
        Ok(())
    }

    /// Plans a query and finishes the plan.
    fn plan_finished(&mut self, query: Query) -> Result<QueryPlan> {
        let mut plan = self.plan_query(query)?;
        finish_query(&mut plan);
        Ok(plan)
    }

    /// Makes a query one that is evaluated once; returns its number.
    pub(crate) fn add_common_table(&mut self, query: QueryPlan) -> usize {
        let types = query.columns.iter().map(|column| column.value.ty.clone()).collect();
        let outer_slots = outer_slots(&query);
        self.common_tables.push(Some(CommonTable {
            query,
            recursive: None,
            limit: None,
            distinct: false,
            types,
            outer_slots,
        }));
        self.common_tables.len() - 1
    }

    fn plan_insert(&mut self, insert: BoundInsert) -> Result<InsertPlan> {
        let width = match insert.columns.len() {
            // Rows without values consist of defaults.
            0 => insert.source.columns.len(),
            width => width,
        };
        let mut source = self.plan_finished(insert.source)?;
        if let Some(kept) = insert.kept {
            let (rows, cost) = (source.root.rows, source.root.cost);
            let number = self.add_common_table(source);
            let kind = NodeKind::CommonTable { number, slots: kept.slots };
            source = QueryPlan { root: PlanNode { kind, rows, cost }, columns: kept.columns };
            finish_query(&mut source);
        }
        source.columns.truncate(width);
        Ok(InsertPlan {
            table: insert.table,
            columns: insert.columns,
            source,
            duplicates: insert.duplicates,
            ignore: insert.ignore,
            new_row: insert.new_row,
            old_row: insert.old_row,
            generated: insert.generated,
            checks: insert.checks,
            defaults: insert.defaults,
        })
    }

    /// Plans the rows that a statement writes.
    pub(crate) fn plan_source(
        &mut self,
        block: Block,
        order: Vec<SortKey>,
        limit: Option<Expression>,
        targets: &[WriteTarget],
    ) -> Result<PlanNode> {
        let query = Query {
            body: Body::Select(Box::new(block)),
            columns: Vec::new(),
            order,
            offset: None,
            limit,
            count_all: false,
        };
        let mut source = self.plan_query(query)?.root;
        let mut needed = SlotSet::default();
        for target in targets {
            needed.insert(target.row_key);
            needed.insert(target.row_payload);
            target.row.iter().for_each(|(_, slot)| needed.insert(*slot));
            let values = target.assignments.iter().filter_map(|one| one.value.as_ref());
            values.for_each(|value| add_reads(value, &mut needed));
            target.checks.iter().for_each(|check| add_reads(&check.condition, &mut needed));
        }
        finish(&mut source, &needed);
        Ok(source)
    }
}

fn recursive_table(
    seed: QueryPlan,
    step: QueryPlan,
    limit: Option<(Expression, Option<Expression>)>,
    distinct: bool,
    types: Vec<SqlType>,
) -> CommonTable {
    let mut slots: Vec<Slot> = outer_slots(&seed);
    slots.extend(outer_slots(&step));
    slots.sort_unstable();
    slots.dedup();
    CommonTable { query: seed, recursive: Some(step), limit, distinct, types, outer_slots: slots }
}

fn one_row_of(values: Vec<Expression>) -> QueryPlan {
    let columns = values.into_iter().map(|value| OutputColumn {
        value,
        name: "".into(),
        origin: None,
        display: None,
    });
    let root = PlanNode { kind: NodeKind::OneRow, rows: 1.0, cost: 0.0 };
    QueryPlan { root, columns: columns.collect() }
}

fn cost_of(statement: &StatementPlan, common_tables: &[CommonTable]) -> f64 {
    let own = match statement {
        StatementPlan::Query(query) => query.root.cost,
        StatementPlan::Insert(insert) => insert.source.root.cost,
        StatementPlan::Update(update) => update.source.cost,
        StatementPlan::Delete(delete) => delete.source.cost,
    };
    own + common_tables.iter().map(|table| table.query.root.cost).sum::<f64>()
}
