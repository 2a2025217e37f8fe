//! Semi joins that begin with the subquery: its distinct values, joined as a table.
//!
//! ```text
//!   t ⋉ u ON t.id = u.t     big t, few u:   Distinct(u.t) ⋈ t ON t.id = u.t     t by its key
//! ```

use std::rc::Rc;

use firn_sql_logical::expression::{CompareOperator, Expression, ExpressionKind, Slot};
use firn_sql_types::SqlType;
use firn_sql_types::error::Result;

use super::Optimiser;
use super::join_graph::{Item, ItemKind, JoinGraph};
use super::join_items::conjuncts;
use crate::visit::{SlotSet, reads};
use crate::{JoinKind, NodeKind, PlanNode};

impl Optimiser<'_> {
    /// The graph in which semi joins are replaced by joins with distinct values where that is
    /// cheaper.
    ///
    /// # Errors
    /// Errors of planning a subquery.
    pub(crate) fn turn_semijoins(&mut self, mut graph: JoinGraph) -> Result<JoinGraph> {
        let is_semi =
            |item: &Item| matches!(item.kind, ItemKind::Join { kind: JoinKind::Semi, .. });
        let mut known_cost = None;
        for number in 0..graph.items.len() {
            if !is_semi(&graph.items[number]) {
                continue;
            }
            let Some(turned) = turned(&graph, number) else { continue };
            let cost = match known_cost {
                Some(cost) => cost,
                None => self.price_graph(&graph)?.1,
            };
            let (_, turned_cost) = self.price_graph(&turned)?;
            if turned_cost < cost {
                graph = turned;
            }
            known_cost = Some(cost.min(turned_cost));
        }
        Ok(graph)
    }

    /// The distinct values of a graph's columns.
    ///
    /// # Errors
    /// Errors of planning a subquery.
    pub(crate) fn distinct_node(
        &mut self,
        right: &JoinGraph,
        slots: &[(Slot, SqlType)],
    ) -> Result<PlanNode> {
        let input = self.plan_graph(right, &[], false)?;
        let (rows, cost) = (input.rows, input.cost + input.rows);
        let kind =
            NodeKind::Distinct { input: Box::new(input), slots: slots.to_vec(), keep: Vec::new() };
        Ok(PlanNode { kind, rows, cost })
    }
}

/// The graph with one semi join replaced, if it has only equalities with columns.
fn turned(graph: &JoinGraph, number: usize) -> Option<JoinGraph> {
    let ItemKind::Join { right, on, .. } = &graph.items[number].kind else { return None };
    if right.reads_any(&graph.fills.difference(&right.fills)) {
        return None;
    }
    let (mut inside, mut across, mut slots) = (Vec::new(), Vec::new(), Vec::new());
    for condition in conjuncts(on) {
        let read = reads(&condition);
        if !read.is_empty() && read.is_subset(&right.fills) {
            inside.push(condition);
            continue;
        }
        slots.push(right_column(&condition, &right.fills)?);
        across.push(condition);
    }
    if slots.is_empty() {
        return None;
    }
    let right = right.with_conditions(inside);
    let fills: SlotSet = slots.iter().map(|(slot, _)| *slot).collect();
    let mut turned = graph.clone();
    turned.items[number] = Item {
        kind: ItemKind::Distinct { right, slots },
        fills,
        depends: SlotSet::default(),
        prices: Rc::default(),
    };
    Some(turned.with_conditions(across))
}

/// The bare column of the right side in an equality with something outside.
fn right_column(condition: &Expression, right: &SlotSet) -> Option<(Slot, SqlType)> {
    let ExpressionKind::Compare { operator: CompareOperator::Equal, sides, .. } = &condition.kind
    else {
        return None;
    };
    let [one, two] = &**sides;
    let column = |side: &Expression, other: &Expression| match side.kind {
        ExpressionKind::Slot(slot) if right.contains(slot) && reads(other).is_disjoint(right) => {
            Some((slot, side.ty.clone()))
        }
        _ => None,
    };
    column(one, two).or_else(|| column(two, one))
}
