//! The checks that refuse a plan early.

use firn_api::rows::ReadMode;
use firn_sql::expression::{Expression, ExpressionKind};
use firn_sql::functions::Volatility;
use firn_sql::plan::visit;
use firn_sql::plan::{
    Access, NodeKind, PlanNode, PreparedPlan, QueryPlan, RangePlan, ScanPlan, SetOperation,
    StatementPlan, SubqueryPlan,
};
use firn_sql::types::TypeKind;

use super::simple::slot_types;
use super::subquery::add_subqueries;
use crate::expression::needs_session;
use crate::stop_reason::{Result, declined};

/// How deep expressions may nest here. Kernels are made and run recursively, on threads with small
/// stacks.
const MOST_LEVELS: usize = 100;

/// Whether a statement may be run over columns at all.
pub(crate) fn check(plan: &PreparedPlan) -> Result<()> {
    let StatementPlan::Query(query) = &plan.statement else {
        return declined("it is no query");
    };
    let mut found = Found::new(plan);
    found.query(query);
    for table in &plan.common_tables {
        found.query(&table.query);
    }
    if !found.scans {
        return declined("it reads no table");
    }
    if !reads_over_columns(plan, &query.root) && !has_subquery_over_columns(plan) {
        return declined("no part of it is over columns");
    }
    if shows_json(query) {
        return declined("JSON values are no columns");
    }
    if found.acts {
        return declined("an expression acts, or differs from row to row");
    }
    if found.is_tall {
        return declined("an expression nests too deeply for the stack of a worker");
    }
    if found.locks {
        return declined("its reads lock");
    }
    Ok(())
}

/// Whether a table below a node may be read over columns. A mirror of the translation, as far as
/// plans alone tell: types and values may still leave an operator to the row executor.
fn reads_over_columns(plan: &PreparedPlan, node: &PlanNode) -> bool {
    let reads = |node: &PlanNode| reads_over_columns(plan, node);
    match &node.kind {
        NodeKind::Scan(scan) => {
            scan.mode == ReadMode::Consistent
                && scan.row_key.is_none()
                && scan.row_payload.is_none()
                && !looks_up_rows(scan)
                && !scan.conditions.iter().any(needs_session)
        }
        NodeKind::CommonTable { number, .. } => {
            plan.common_tables.get(*number).is_some_and(|table| {
                table.recursive.is_none()
                    && table.outer_slots.is_empty()
                    && reads(&table.query.root)
            })
        }
        NodeKind::Derived { query, lateral: false, .. } => {
            let mut columns = query.columns.iter();
            reads(&query.root) && !columns.any(|column| needs_session(&column.value))
        }
        NodeKind::Filter { input, .. }
        | NodeKind::Compute { input, .. }
        | NodeKind::Distinct { input, .. }
        | NodeKind::Limit { input, count_all: false, .. } => reads(input),
        NodeKind::Sort { input, keys, .. } => {
            reads(input) && !keys.iter().any(|key| needs_session(&key.expression))
        }
        NodeKind::Aggregate { input, groups, aggregates, rollup: None, .. } => {
            let arguments = aggregates.iter().flat_map(|call| &call.arguments);
            let mut values = groups.iter().map(|(_, value)| value).chain(arguments);
            reads(input) && !values.any(needs_session)
        }
        NodeKind::NestedLoop { left, right, .. } | NodeKind::HashJoin { left, right, .. } => {
            reads(left) || reads(right)
        }
        NodeKind::SetOperation { operation: SetOperation::Union, inputs, .. } => {
            inputs.iter().any(|query| reads(&query.root))
        }
        _ => false,
    }
}

/// Whether a scan looks up single rows, each by a unique key.
fn looks_up_rows(scan: &ScanPlan) -> bool {
    let Access::Ranges { index, ranges } = &scan.access else {
        return matches!(scan.access, Access::Point { .. } | Access::Union(_));
    };
    let model = match index {
        Some(number) => scan.table.indexes.iter().find(|index| index.number == *number),
        None => scan.table.primary_key(),
    };
    let Some(index) = model.filter(|index| index.unique) else { return false };
    let is_point = |range: &RangePlan| range.equal.len() == index.parts.len();
    index.parts.iter().all(|part| part.prefix.is_none()) && ranges.iter().any(is_point)
}

/// Whether the result has a column, read as a table has it, for which batches have none.
fn shows_json(query: &QueryPlan) -> bool {
    let types = slot_types(&query.root);
    let is_json = |slot| types.get(&slot).is_some_and(|ty| ty.kind == TypeKind::Json);
    visit::reads_of(query.columns.iter().map(|column| &column.value)).iter().any(is_json)
}

/// Whether a subquery with one result for all rows may be evaluated over columns.
fn has_subquery_over_columns(plan: &PreparedPlan) -> bool {
    let is_constant = |subquery: &&SubqueryPlan| subquery.outer_slots.is_empty();
    let mut constant = plan.subqueries.iter().filter(is_constant);
    constant.any(|subquery| reads_over_columns(plan, &subquery.query.root))
}

struct Found<'p> {
    plan: &'p PreparedPlan,
    scans: bool,
    acts: bool,
    locks: bool,
    is_tall: bool,
}

impl<'p> Found<'p> {
    fn new(plan: &'p PreparedPlan) -> Found<'p> {
        Found { plan, scans: false, acts: false, locks: false, is_tall: false }
    }

    fn query(&mut self, query: &QueryPlan) {
        query.columns.iter().for_each(|column| self.expression(&column.value));
        self.node(&query.root);
    }

    fn expression(&mut self, expression: &Expression) {
        let (plan, mut subqueries) = (self.plan, Vec::new());
        add_subqueries(expression, &mut subqueries);
        let acts = |one: &Expression| match &one.kind {
            ExpressionKind::AssignVariable { .. } => true,
            ExpressionKind::Call { function, arguments } => match function.volatility {
                Volatility::Row => true,
                Volatility::Session => !arguments.is_empty(),
                Volatility::Pure | Volatility::Statement => false,
            },
            _ => false,
        };
        self.acts |= visit::any(expression, &acts);
        self.is_tall |= visit::is_taller(expression, MOST_LEVELS);
        subqueries
            .into_iter()
            .for_each(|subquery| self.query(&plan.subqueries[subquery.number].query));
    }

    fn node(&mut self, node: &PlanNode) {
        match &node.kind {
            NodeKind::Scan(scan) => {
                self.scans = true;
                self.locks |= scan.mode != ReadMode::Consistent;
                scan.conditions.iter().for_each(|one| self.expression(one));
            }
            NodeKind::Filter { conditions, .. } | NodeKind::NestedLoop { conditions, .. } => {
                conditions.iter().for_each(|one| self.expression(one));
            }
            NodeKind::HashJoin { conditions, keys, .. } => {
                conditions.iter().for_each(|one| self.expression(one));
                keys.iter().for_each(|(one, other)| {
                    self.expression(one);
                    self.expression(other);
                });
            }
            NodeKind::Compute { outputs, .. } => {
                outputs.iter().for_each(|(_, value)| self.expression(value));
            }
            NodeKind::Aggregate { groups, aggregates, .. } => {
                groups.iter().for_each(|(_, value)| self.expression(value));
                for call in aggregates {
                    call.arguments.iter().for_each(|value| self.expression(value));
                }
            }
            NodeKind::Sort { keys, .. } => {
                keys.iter().for_each(|key| self.expression(&key.expression));
            }
            NodeKind::Window(window) => {
                window.partition.iter().for_each(|value| self.expression(value));
                window.order.iter().for_each(|key| self.expression(&key.expression));
                for call in &window.calls {
                    call.arguments.iter().for_each(|value| self.expression(value));
                }
            }
            NodeKind::Values { rows, .. } => {
                rows.iter().flatten().for_each(|value| self.expression(value));
            }
            NodeKind::Derived { query, .. } => {
                query.columns.iter().for_each(|column| self.expression(&column.value));
            }
            NodeKind::SetOperation { inputs, .. } => {
                for query in inputs {
                    query.columns.iter().for_each(|column| self.expression(&column.value));
                }
            }
            _ => {}
        }
        visit::for_each_input(node, &mut |input| self.node(input));
    }
}
