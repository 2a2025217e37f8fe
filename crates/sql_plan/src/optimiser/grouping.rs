//! Groups, aggregates and windows.

use firn_sql_functions::AggregateFunction;
use firn_sql_logical::expression::{Expression, ExpressionKind, IsTest, SortKey};
use firn_sql_logical::{Grouping, Window};
use firn_sql_types::error::Result;
use firn_sql_types::{Datum, SqlType};

use super::Optimiser;
use super::join_graph::{ItemKind, JoinGraph};
use super::join_order::Ordered;
use crate::{NodeKind, PlanNode, WindowPlan};

impl Optimiser<'_> {
    /// Plans a graph with the groups over it. Groups are streamed if an index of the only table
    /// returns their order: an aggregate writes into the slots of its groups, so only an input that
    /// fills all its slots again for each row may be streamed.
    ///
    /// # Errors
    /// Errors of planning a subquery.
    pub(crate) fn plan_groups(
        &mut self,
        graph: &mut JoinGraph,
        grouping: Grouping,
        order: &[SortKey],
        straight: bool,
    ) -> Result<Ordered> {
        if let Some(node) = self.plan_end_of_index(graph, &grouping)? {
            return Ok(aggregate(node, grouping, false, 1.0));
        }
        let wanted = group_order(&grouping, order);
        let is_single =
            matches!(graph.items.as_slice(), [item] if matches!(item.kind, ItemKind::Relation(_)));
        let wanted = if is_single { wanted } else { Vec::new() };
        let found = self.plan_ordered(graph, &wanted, straight, None)?;
        let streams = found.ordered && matches!(found.node.kind, NodeKind::Scan(_));
        let is_ordered = streams && begins_with(&wanted, order) && grouping.rollup.is_none();
        let groups = match grouping.groups.len() {
            0 => 1.0,
            _ => found.node.rows.sqrt().max(1.0).min(found.node.rows.max(1.0)),
        };
        let answer = aggregate(found.node, grouping, streams, groups);
        Ok(Ordered { ordered: is_ordered, ..answer })
    }

    /// `MIN(a)` and `MAX(a)` alone: the first row of an index on `a`.
    fn plan_end_of_index(
        &mut self,
        graph: &JoinGraph,
        grouping: &Grouping,
    ) -> Result<Option<PlanNode>> {
        let [call] = grouping.aggregates.as_slice() else { return Ok(None) };
        let descending = match call.function {
            AggregateFunction::Min => false,
            AggregateFunction::Max => true,
            _ => return Ok(None),
        };
        let [argument] = call.arguments.as_slice() else { return Ok(None) };
        let is_table = matches!(graph.items.as_slice(), [item] if self.is_table_item(item));
        let is_alone = grouping.groups.is_empty() && is_table;
        if !is_alone || !matches!(argument.kind, ExpressionKind::Slot(_)) {
            return Ok(None);
        }
        let mut wanted = graph.clone();
        if argument.ty.nullable {
            wanted = wanted.with_conditions([is_not_null(argument.clone())]);
        }
        let order = [SortKey { expression: argument.clone(), descending }];
        let found = self.plan_ordered(&wanted, &order, false, Some(1.0))?;
        if !found.ordered {
            return Ok(None);
        }
        let one = Expression {
            kind: ExpressionKind::Literal(Datum::UInt(1)),
            ty: SqlType::bigint_unsigned(),
        };
        let cost = (found.node.cost / found.node.rows.max(1.0)).max(1.0);
        let kind = NodeKind::Limit {
            input: Box::new(found.node),
            offset: None,
            count: Some(one),
            count_all: false,
        };
        Ok(Some(PlanNode { kind, rows: 1.0, cost }))
    }
}

fn is_not_null(operand: Expression) -> Expression {
    let kind = ExpressionKind::Is { operand: Box::new(operand), test: IsTest::Null, negated: true };
    Expression { kind, ty: SqlType::boolean().not_null() }
}

/// Groups as the order of an index may return them: directions as `ORDER BY` wants them.
fn group_order(grouping: &Grouping, order: &[SortKey]) -> Vec<SortKey> {
    let numbered = grouping.groups.iter().enumerate();
    let keys = numbered.map(|(number, (_, value))| {
        let wanted = order.get(number).filter(|key| {
            firn_sql_logical::expression::equivalence::same_expression(&key.expression, value)
                && grouping.rollup.is_none()
        });
        SortKey { expression: value.clone(), descending: wanted.is_some_and(|key| key.descending) }
    });
    keys.collect()
}

fn begins_with(given: &[SortKey], wanted: &[SortKey]) -> bool {
    wanted.len() <= given.len()
        && wanted.iter().zip(given).all(|(one, two)| {
            one.descending == two.descending
                && firn_sql_logical::expression::equivalence::same_expression(
                    &one.expression,
                    &two.expression,
                )
        })
}

fn aggregate(input: PlanNode, grouping: Grouping, sorted: bool, rows: f64) -> Ordered {
    let cost = input.cost + input.rows * if sorted { 0.2 } else { 0.6 };
    let kind = NodeKind::Aggregate {
        input: Box::new(input),
        groups: grouping.groups,
        aggregates: grouping.aggregates,
        sorted,
        rollup: grouping.rollup,
    };
    Ordered { node: PlanNode { kind, rows, cost }, ordered: false }
}

/// Window functions over rows.
#[must_use]
pub(crate) fn window(input: PlanNode, window: Window) -> PlanNode {
    let rows = input.rows;
    let cost = input.cost + rows * (rows + 1.0).log2().max(1.0) * 0.2;
    let Window { partition, order, frame, calls } = window;
    let plan = WindowPlan { input, partition, order, frame, calls, keep: Vec::new() };
    PlanNode { kind: NodeKind::Window(Box::new(plan)), rows, cost }
}
