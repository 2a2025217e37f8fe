//! From bound queries to plans.
//!
//! ```text
//!   Query ─► block: graph of joins ─► order of joins ─► groups ─► HAVING ─► windows ─► outputs
//!                                                                 ─► DISTINCT ─► ORDER BY ─► LIMIT
//! ```

mod access;
mod changes;
mod delayed_conditions;
mod derived;
mod disjunctions;
mod grouping;
mod join_graph;
mod join_items;
mod join_order;
mod nulls;
mod ranges;
mod selectivity;
mod semijoin;
mod slot_liveness;
mod statement;
mod virtual_hints;

pub use statement::plan_bound;

use firn_sql_logical::expression::{Expression, ExpressionKind, SortKey};
use firn_sql_logical::{Block, Body, PlanContext, Query, Relation, RelationId, RelationSource};
use firn_sql_types::Datum;
use firn_sql_types::error::Result;
use firn_sql_types::watch::{Recursion, nest};

use crate::visit::SlotSet;
use crate::{CommonTable, NodeKind, PlanNode, QueryPlan, SubqueryPlan};
use join_graph::{Fills, JoinGraph};
use join_items::filter;
use join_order::Ordered;

/// Plans what was bound.
pub(crate) struct Optimiser<'a> {
    /// The context for planning the statement.
    pub context: &'a PlanContext<'a>,
    /// The table references of the statement.
    pub relations: Vec<Relation>,
    /// By number of a table reference: how its rows are computed, if it is a query.
    pub planned: Vec<Option<Planned>>,
    /// What is evaluated once; `None` while it is being planned.
    pub common_tables: Vec<Option<CommonTable>>,
    /// By number of a bound common table: its number here, and the expected number of rows.
    pub common_numbers: Vec<(usize, f64)>,
    /// The initial queries of recursive common tables whose steps are not planned yet, the
    /// innermost last.
    pub seeds: Vec<QueryPlan>,
    /// Subqueries in expressions.
    pub subqueries: Vec<SubqueryPlan>,
}

/// How the rows of a query in `FROM` are computed.
pub(crate) enum Planned {
    /// As part of the query around it.
    Query(Box<QueryPlan>),
    /// Its rows are computed once and kept.
    CommonTable {
        number: usize,
        /// The expected number of rows.
        rows: f64,
    },
}

impl Fills for Optimiser<'_> {
    fn fills(&self, relation: RelationId) -> SlotSet {
        let relation = &self.relations[relation.0];
        let row = relation.row_slots.map(|(key, payload)| [key, payload]);
        relation.slots.iter().flatten().copied().chain(row.into_iter().flatten()).collect()
    }

    fn depends(&self, relation: RelationId) -> SlotSet {
        let is_lateral = self.is_lateral(relation);
        match &self.planned[relation.0] {
            Some(Planned::Query(planned)) if is_lateral => {
                crate::visit::outer_slots(planned).into_iter().collect()
            }
            _ => SlotSet::default(),
        }
    }
}

impl<'a> Optimiser<'a> {
    /// An optimiser of a statement with these table references.
    pub(crate) fn new(context: &'a PlanContext<'a>, relations: Vec<Relation>) -> Optimiser<'a> {
        Optimiser {
            context,
            planned: relations.iter().map(|_| None).collect(),
            relations,
            common_tables: Vec::new(),
            common_numbers: Vec::new(),
            seeds: Vec::new(),
            subqueries: Vec::new(),
        }
    }

    /// Whether a table reference may read tables to its left.
    pub(crate) fn is_lateral(&self, relation: RelationId) -> bool {
        match &self.relations[relation.0].source {
            RelationSource::Derived { lateral, .. } => *lateral,
            RelationSource::JsonTable(_) => true,
            _ => false,
        }
    }

    /// Plans a query.
    ///
    /// # Errors
    /// 1235 for unsupported features.
    pub(crate) fn plan_query(&mut self, query: Query) -> Result<QueryPlan> {
        nest(Recursion::Bind)?;
        self.context.watch.step()?;
        let limit = self.limit_value(&query);
        let Ordered { mut node, ordered } = match query.body {
            Body::Select(block) => self.plan_block(*block, &query.order, limit)?,
            Body::Values { rows, slots } => {
                let count = rows.len() as f64;
                let kind = NodeKind::Values { rows, slots };
                Ordered { node: PlanNode { kind, rows: count, cost: count }, ordered: false }
            }
            Body::SetOperation { operation, all, inputs, slots } => {
                let inputs = inputs.into_iter().map(|input| self.plan_query(input));
                let inputs = inputs.collect::<Result<Vec<_>>>()?;
                let rows = inputs.iter().map(|input| input.root.rows).sum();
                let cost: f64 = inputs.iter().map(|input| input.root.cost).sum();
                let kind = NodeKind::SetOperation { operation, all, inputs, slots };
                Ordered { node: PlanNode { kind, rows, cost: cost + rows }, ordered: false }
            }
        };
        if !query.order.is_empty() && !ordered {
            node = sort(node, query.order, top(&query.limit, &query.offset));
        }
        if query.limit.is_some() || query.offset.is_some() || query.count_all {
            node = limited(node, query.offset, query.limit, query.count_all, limit);
        }
        Ok(QueryPlan { root: node, columns: query.columns })
    }

    /// How many rows will be read, if it is known.
    fn limit_value(&self, query: &Query) -> Option<f64> {
        let value = |expression: &Expression| {
            let datum = match &expression.kind {
                ExpressionKind::Literal(datum) => datum,
                ExpressionKind::Parameter(number) => {
                    self.context.parameter_values.get(*number as usize)?
                }
                _ => return None,
            };
            match datum {
                Datum::Int(number) => Some(*number as f64),
                Datum::UInt(number) => Some(*number as f64),
                _ => None,
            }
        };
        let limit = query.limit.as_ref()?;
        let limit = value(limit).unwrap_or(10.0);
        Some(limit + query.offset.as_ref().and_then(value).unwrap_or(0.0))
    }

    /// Plans a block up to its `ORDER BY`; returns whether the plan already has that order.
    fn plan_block(
        &mut self,
        block: Block,
        order: &[SortKey],
        limit: Option<f64>,
    ) -> Result<Ordered> {
        let Block { from, conditions, grouping, having, windows, computed, distinct, straight } =
            block;
        let mut graph = match &from {
            Some(tree) => {
                self.plan_derived(tree, &conditions)?;
                let graph = JoinGraph::new(tree, &conditions, &*self);
                if straight { graph } else { self.turn_semijoins(graph)? }
            }
            None => JoinGraph::default().with_conditions(conditions),
        };
        let is_plain = windows.is_empty() && distinct.is_none();
        let mut ordered;
        let mut node;
        match grouping {
            None => {
                let order = if is_plain { order } else { &[] };
                let limit = limit.filter(|_| having.is_empty());
                let found = self.plan_ordered(&graph, order, straight, limit)?;
                (node, ordered) = (found.node, found.ordered);
            }
            Some(grouping) => {
                let found = self.plan_groups(&mut graph, grouping, order, straight)?;
                (node, ordered) = (found.node, found.ordered && is_plain);
            }
        }
        node = filter(node, having);
        for window in windows {
            node = grouping::window(node, window);
            ordered = false;
        }
        node = computed_node(node, computed);
        if let Some(slots) = distinct {
            let (rows, cost) = (node.rows, node.cost + node.rows);
            let kind = NodeKind::Distinct { input: Box::new(node), slots, keep: Vec::new() };
            node = PlanNode { kind, rows, cost };
            ordered = false;
        }
        Ok(Ordered { node, ordered: ordered && !order.is_empty() })
    }
}

fn computed_node(
    input: PlanNode,
    outputs: Vec<(firn_sql_logical::expression::Slot, Expression)>,
) -> PlanNode {
    if outputs.is_empty() {
        return input;
    }
    let (rows, cost) = (input.rows, input.cost);
    PlanNode { kind: NodeKind::Compute { input: Box::new(input), outputs }, rows, cost }
}

/// `LIMIT` plus `OFFSET`, where a sort can make use of it.
fn top(limit: &Option<Expression>, offset: &Option<Expression>) -> Option<Expression> {
    let limit = limit.as_ref()?;
    match offset {
        None => Some(limit.clone()),
        Some(offset) => {
            let (ExpressionKind::Literal(one), ExpressionKind::Literal(two)) =
                (&limit.kind, &offset.kind)
            else {
                return None;
            };
            let sum = literal_count(one)?.checked_add(literal_count(two)?)?;
            Some(Expression {
                kind: ExpressionKind::Literal(Datum::UInt(sum)),
                ty: limit.ty.clone(),
            })
        }
    }
}

fn literal_count(datum: &Datum) -> Option<u64> {
    match datum {
        Datum::Int(number) => u64::try_from(*number).ok(),
        Datum::UInt(number) => Some(*number),
        _ => None,
    }
}

#[must_use]
pub(crate) fn sort(input: PlanNode, keys: Vec<SortKey>, limit: Option<Expression>) -> PlanNode {
    let rows = input.rows;
    let cost = input.cost + rows * (rows + 1.0).log2().max(1.0) * 0.15;
    let kind = NodeKind::Sort { input: Box::new(input), keys, keep: Vec::new(), limit };
    PlanNode { kind, rows, cost }
}

fn limited(
    input: PlanNode,
    offset: Option<Expression>,
    count: Option<Expression>,
    count_all: bool,
    limit: Option<f64>,
) -> PlanNode {
    let rows = limit.map_or(input.rows, |limit| input.rows.min(limit));
    let streams = !matches!(input.kind, NodeKind::Sort { .. } | NodeKind::Aggregate { .. });
    let share =
        if streams && !count_all { (rows / input.rows.max(1.0)).clamp(0.0, 1.0) } else { 1.0 };
    let cost = (input.cost * share).max(1.0);
    PlanNode {
        kind: NodeKind::Limit { input: Box::new(input), offset, count, count_all },
        rows,
        cost,
    }
}
