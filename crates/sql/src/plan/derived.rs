//! Subqueries in `FROM` that stay queries of their own: what is asked of them from outside, and whether
//! they run as part of the query around them or once by themselves.
//!
//! ```text
//!   SELECT * FROM (SELECT a, COUNT(*) c FROM t GROUP BY a) d WHERE d.a = 5 AND d.c > 1
//!     below the groups  t.a = 5        behind them  COUNT(*) > 1
//! ```

use crate::bind::logical::{Block, Body, JoinTree, Query, RelationId, RelationSource};
use crate::error::Result;
use crate::expression::{Expression, ExpressionKind, Slot};

use super::optimiser::Optimiser;
use super::pool::Fills;
use super::visit::{for_each_operand_mut, outer_slots, reads};
use super::volatility::{has_subquery, is_row_dependent};
use super::{CommonTable, JoinKind};

impl Optimiser<'_, '_> {
    /// Plans the subqueries of a `FROM`, with the conditions that they can fulfil themselves.
    ///
    /// # Errors
    /// What planning them answers.
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
        let fills = self.binder.fills(relation);
        let of_relation = &mut self.binder.relations[relation.0];
        let slots = of_relation.slots.clone();
        let RelationSource::Derived { query, lateral, .. } = &mut of_relation.source else {
            return Ok(());
        };
        let lateral = *lateral;
        let Some(mut query) = query.take() else { return Ok(()) };
        for condition in super::items::conjuncts(conditions) {
            let read = reads(&condition);
            let is_local = !read.is_empty() && read.is_subset(&fills);
            if is_local && !is_row_dependent(&condition) && !has_subquery(&condition) {
                push_down(&mut query, &condition, &slots);
            }
        }
        let plan = self.plan_query(*query)?;
        let source = if lateral || is_alone {
            RelationSource::Derived { query: None, planned: Some(Box::new(plan)), lateral }
        } else {
            let rows = plan.root.rows;
            let types = plan.columns.iter().map(|column| column.value.ty.clone()).collect();
            let outer_slots = outer_slots(&plan);
            let mut table = CommonTable {
                query: plan,
                recursive: None,
                limit: None,
                distinct: false,
                types,
                outer_slots,
            };
            super::finish::finish_query(&mut table.query);
            self.binder.common_tables.push(Some(table));
            let number = self.binder.common_tables.len() - 1;
            RelationSource::CommonTable { number, rows }
        };
        self.binder.relations[relation.0].source = source;
        Ok(())
    }
}

/// Adds a condition on a query's columns to the query itself, where it means the same there.
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
