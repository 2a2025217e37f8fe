//! The names of a plan's slots: the columns that they hold.

use rustc_hash::FxHashMap;

use crate::visit::{for_each_expression, for_each_input};
use crate::{NodeKind, PlanNode, PreparedPlan, QueryPlan, StatementPlan, SubqueryPlan};
use firn_sql_logical::expression::visit::for_each_operand;
use firn_sql_logical::expression::{Expression, ExpressionKind, Slot, Subquery};

use super::expression::text;

#[derive(Debug)]
pub(super) struct Names<'p> {
    by_slot: FxHashMap<Slot, String>,
    subqueries: &'p [SubqueryPlan],
}

impl<'p> Names<'p> {
    /// The names of a plan's slots.
    pub(super) fn of(plan: &'p PreparedPlan) -> Names<'p> {
        let mut names = Names { by_slot: FxHashMap::default(), subqueries: &plan.subqueries };
        for table in &plan.common_tables {
            names.add_query(&table.query);
            table.recursive.iter().for_each(|step| names.add_query(step));
        }
        match &plan.statement {
            StatementPlan::Query(query) => names.add_query(query),
            StatementPlan::Insert(insert) => {
                names.add_query(&insert.source);
                names.add_row(&insert.table, &insert.old_row, "");
                names.add_row(&insert.table, &insert.new_row, "new.");
            }
            StatementPlan::Update(update) => names.add(&update.source),
            StatementPlan::Delete(delete) => names.add(&delete.source),
        }
        names
    }

    pub(super) fn name(&self, slot: Slot) -> String {
        self.by_slot.get(&slot).cloned().unwrap_or_else(|| format!("#{}", slot.0))
    }

    fn add_row(
        &mut self,
        table: &firn_sql_catalog::model::TableModel,
        row: &[(u16, Slot)],
        prefix: &str,
    ) {
        for (ordinal, slot) in row {
            let column = table.by_ordinal(*ordinal).map_or("?", |column| &*column.name);
            self.by_slot.insert(*slot, format!("{prefix}{column}"));
        }
    }

    fn add_query(&mut self, query: &QueryPlan) {
        self.add(&query.root);
        query.columns.iter().for_each(|column| self.add_subqueries(&column.value));
    }

    fn add(&mut self, node: &PlanNode) {
        for_each_input(node, &mut |input| self.add(input));
        for_each_expression(node, &mut |expression| self.add_subqueries(expression));
        match &node.kind {
            NodeKind::Scan(scan) => {
                for (ordinal, slot) in &scan.slots {
                    let column =
                        scan.table.by_ordinal(*ordinal).map_or("?", |column| &*column.name);
                    self.by_slot.insert(*slot, format!("{}.{column}", scan.alias));
                }
            }
            NodeKind::Virtual { table, slots, .. } => {
                for (number, slot) in slots {
                    let column = table.columns().get(usize::from(*number));
                    let column = column.map_or("?", |column| column.name);
                    self.by_slot.insert(*slot, format!("{}.{column}", table.name()));
                }
            }
            NodeKind::Derived { query, slots, .. } => {
                for (slot, column) in slots.iter().zip(&query.columns) {
                    if let Some(slot) = slot {
                        self.by_slot.insert(*slot, column.name.to_string());
                    }
                }
            }
            NodeKind::Aggregate { groups, aggregates, .. } => {
                for (slot, value) in groups {
                    let name = text(value, self);
                    self.by_slot.entry(*slot).or_insert(name);
                }
                for call in aggregates {
                    let name = super::expression::aggregate(call, self);
                    self.by_slot.entry(call.output).or_insert(name);
                }
            }
            NodeKind::Compute { outputs, .. } => {
                for (slot, value) in outputs {
                    let name = text(value, self);
                    self.by_slot.insert(*slot, name);
                }
            }
            _ => {}
        }
    }

    fn add_subqueries(&mut self, expression: &Expression) {
        if let ExpressionKind::Subquery(subquery) = &expression.kind {
            let subqueries = self.subqueries;
            self.add_query(&subqueries[subquery.number].query);
        }
        for_each_operand(expression, &mut |operand| self.add_subqueries(operand));
    }
}

/// The subqueries in an expression, only the outermost ones.
pub(super) fn subqueries_of<'a>(expression: &'a Expression, into: &mut Vec<&'a Subquery>) {
    if let ExpressionKind::Subquery(subquery) = &expression.kind {
        into.push(subquery);
    }
    for_each_operand(expression, &mut |operand| subqueries_of(operand, into));
}
