//! Subqueries in `FROM` that stay separate queries: conditions pushed into them, and whether they
//! run as part of the query around them or once by themselves.
//!
//! ```text
//!   SELECT * FROM (SELECT a, COUNT(*) c FROM t GROUP BY a) d WHERE d.a = 5 AND d.c > 1
//!     below the groups  t.a = 5        behind them  COUNT(*) > 1
//! ```

use firn_sql_logical::expression::volatility::{has_subquery, is_row_dependent};
use firn_sql_logical::expression::{Expression, ExpressionKind, Slot};
use firn_sql_logical::json_table::JsonTable;
use firn_sql_logical::{Block, Body, JoinTree, Query, RelationId, RelationSource};
use firn_sql_types::error::Result;

use super::join_graph::Fills;
use super::{Optimiser, Planned};
use crate::visit::{for_each_operand_mut, reads};
use crate::{JoinKind, NodeKind, PlanNode, QueryPlan};

/// Expected rows of a document.
const ROWS_OF_DOCUMENT: f64 = 10.0;

impl Optimiser<'_> {
    /// Plans the subqueries of a `FROM`, with the conditions that they can apply themselves.
    ///
    /// # Errors
    /// Errors of planning them.
    pub(crate) fn plan_derived(
        &mut self,
        tree: &JoinTree,
        conditions: &[Expression],
    ) -> Result<()> {
        let is_alone = matches!(tree, JoinTree::Relation(_));
        self.plan_derived_in(tree, conditions, is_alone)
    }

    fn plan_derived_in(
        &mut self,
        tree: &JoinTree,
        conditions: &[Expression],
        is_alone: bool,
    ) -> Result<()> {
        match tree {
            JoinTree::Relation(relation) => self.plan_relation(*relation, conditions, is_alone),
            JoinTree::Join { kind: JoinKind::Inner, left, right, conditions: on } => {
                let mut all = conditions.to_vec();
                all.extend(on.iter().cloned());
                self.plan_derived_in(left, &all, false)?;
                self.plan_derived_in(right, &all, false)
            }
            JoinTree::Join { left, right, conditions: on, .. } => {
                self.plan_derived_in(left, conditions, false)?;
                self.plan_derived_in(right, on, false)
            }
        }
    }

    fn plan_relation(
        &mut self,
        relation: RelationId,
        conditions: &[Expression],
        is_alone: bool,
    ) -> Result<()> {
        let fills = self.fills(relation);
        let of_relation = &mut self.relations[relation.0];
        let slots = of_relation.slots.clone();
        let (mut query, lateral) = match &mut of_relation.source {
            RelationSource::Derived { query, lateral } => match query.take() {
                Some(query) => (query, *lateral),
                None => return Ok(()),
            },
            RelationSource::JsonTable(table) => {
                let planned = table.take().map(|table| Planned::Query(Box::new(json_rows(*table))));
                self.planned[relation.0] = planned.or(self.planned[relation.0].take());
                return Ok(());
            }
            _ => return Ok(()),
        };
        for condition in super::join_items::conjuncts(conditions) {
            let read = reads(&condition);
            let is_local = !read.is_empty() && read.is_subset(&fills);
            if is_local && !is_row_dependent(&condition) && !has_subquery(&condition) {
                push_down(&mut query, &condition, &slots);
            }
        }
        let mut plan = self.plan_query(*query)?;
        let planned = if lateral || is_alone {
            Planned::Query(Box::new(plan))
        } else {
            let rows = plan.root.rows;
            super::slot_liveness::finish_query(&mut plan);
            Planned::CommonTable { number: self.add_common_table(plan), rows }
        };
        self.planned[relation.0] = Some(planned);
        Ok(())
    }
}

/// The rows of a document.
fn json_rows(table: JsonTable) -> QueryPlan {
    let JsonTable { document, level, slots, columns } = table;
    let kind = NodeKind::JsonTable { document, level: Box::new(level), slots };
    QueryPlan { root: PlanNode { kind, rows: ROWS_OF_DOCUMENT, cost: ROWS_OF_DOCUMENT }, columns }
}

/// Adds a condition on a query's columns to the query itself, where it has the same meaning there.
fn push_down(query: &mut Query, condition: &Expression, slots: &[Option<Slot>]) {
    if query.limit.is_some() || query.offset.is_some() {
        return;
    }
    let mut pushed = condition.clone();
    let columns: Vec<(Slot, Expression)> = slots
        .iter()
        .zip(&query.columns)
        .filter_map(|(slot, column)| Some(((*slot)?, column.value.clone())))
        .collect();
    substitute(&mut pushed, &columns);
    if has_subquery(&pushed) || is_row_dependent(&pushed) {
        return;
    }
    match &mut query.body {
        Body::Select(block) => push_into_block(block, pushed),
        Body::SetOperation { inputs, slots: outputs, .. } => {
            let outputs: Vec<Option<Slot>> = outputs.iter().map(|(slot, _)| Some(*slot)).collect();
            inputs.iter_mut().for_each(|input| push_down(input, &pushed, &outputs));
        }
        Body::Values { .. } => {}
    }
}

fn push_into_block(block: &mut Block, mut condition: Expression) {
    substitute(&mut condition, &block.computed);
    if !block.windows.is_empty() || has_subquery(&condition) || is_row_dependent(&condition) {
        return;
    }
    let Some(grouping) = &block.grouping else {
        block.conditions.push(condition);
        return;
    };
    let groups = grouping.groups.iter().map(|(slot, _)| *slot).collect();
    if grouping.rollup.is_none() && reads(&condition).is_subset(&groups) {
        substitute(&mut condition, &grouping.groups);
        block.conditions.push(condition);
    } else {
        block.having.push(condition);
    }
}

fn substitute(expression: &mut Expression, by: &[(Slot, Expression)]) {
    if let ExpressionKind::Slot(slot) = expression.kind {
        if let Some((_, value)) = by.iter().find(|(other, _)| *other == slot) {
            expression.clone_from(value);
        }
        return;
    }
    for_each_operand_mut(expression, &mut |operand| substitute(operand, by));
}
