//! The checks that refuse a plan early.

use firn_sql::expression::{Expression, ExpressionKind};
use firn_sql::functions::Volatility;
use firn_sql::plan::visit;
use firn_sql::plan::{NodeKind, PlanNode, PreparedPlan, QueryPlan, StatementPlan};

use super::subquery::add_subqueries;
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
                self.locks |= scan.mode != firn_api::rows::ReadMode::Consistent;
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
