//! Adding one item of a graph to those already bound: its conditions, its access paths, its node.
//!
//! ```text
//!   bound {t}, item u, conditions u.a = t.a, u.b > 5
//!     nested   Scan u by index a = t.a, filter u.b > 5      once for each row of t
//!     hash     Scan u, filter u.b > 5; key u.a = t.a         once
//! ```

use std::cell::OnceCell;
use std::sync::Arc;

use firn_api::rows::Direction;

use firn_sql_logical::expression::{CompareOperator, Expression, ExpressionKind, Slot, SortKey};
use firn_sql_logical::{Relation, RelationId, RelationSource};
use firn_sql_types::ComparisonKind;
use firn_sql_types::error::Result;

use super::access::{Candidate, Wanted};
use super::delayed_conditions::{Sieve, take_late};
use super::join_graph::{Item, ItemKind, JoinGraph, Prices};
use super::selectivity::share_of_all;
use super::{Optimiser, Planned};
use crate::comparisons::as_hash_key;
use crate::visit::{SlotSet, reads};
use crate::{Access, JoinKind, NodeKind, PlanNode, ScanPlan};

/// Inserting a row into a hash table.
const BUILD: f64 = 1.2;
/// Looking a row up in a hash table.
const PROBE: f64 = 0.4;

/// Conditions that can be checked once an item is there.
#[derive(Debug, Default)]
pub(crate) struct Applicable {
    /// Those that read nothing else of the graph.
    pub own: Vec<Expression>,
    /// Those that join it with the bound items.
    pub joining: Vec<Expression>,
}

/// How an item is joined with the bound ones.
#[derive(Debug, Clone)]
pub(crate) enum Method {
    /// Once for each row.
    Nested {
        /// The access path, if the item is a table.
        candidate: Option<Arc<Candidate>>,
    },
    /// By a hash table.
    Hash,
}

/// A way of adding an item, with its price.
#[derive(Debug, Clone)]
pub(crate) struct Priced {
    pub method: Method,
    /// Cost and rows of the whole, for `left` rows of the bound items.
    pub cost: f64,
    /// Rows that come out.
    pub rows: f64,
    /// Whether the order is kept: that of the left side, or the requested one if this item comes
    /// first.
    pub ordered: bool,
}

/// The state before an item is added.
#[derive(Debug, Clone)]
pub(crate) struct Bound {
    /// Slots of the graph that are filled.
    pub slots: SlotSet,
    /// Rows so far; one if nothing is bound.
    pub rows: f64,
    /// Cost so far.
    pub cost: f64,
    /// Whether nothing is there yet.
    pub is_first: bool,
}

impl JoinGraph {
    /// The conditions that become applicable with an item.
    #[must_use]
    pub(crate) fn applicable(&self, item: &Item, bound: &SlotSet) -> Applicable {
        let mut found = Applicable::default();
        let mut with = bound.clone();
        with.extend(&item.fills);
        let mut all = Vec::new();
        self.classes.iter().for_each(|class| class.conditions_for(&item.fills, bound, &mut all));
        for condition in &self.conditions {
            let read = reads(condition).intersection(&self.fills);
            let is_new = !read.is_subset(bound) || read.is_empty() && bound.is_empty();
            if is_new && read.is_subset(&with) {
                all.push(condition.clone());
            }
        }
        for condition in all {
            match reads(&condition).is_disjoint(bound) {
                true => found.own.push(condition),
                false => found.joining.push(condition),
            }
        }
        found
    }
}

/// The two sides of an equality as keys of the left and of the right side of a join.
#[must_use]
pub(crate) fn hash_key(
    condition: &Expression,
    left: &SlotSet,
    right: &SlotSet,
) -> Option<(Expression, Expression, bool)> {
    let ExpressionKind::Compare { operator, kind, sides } = &condition.kind else { return None };
    let null_safe = match operator {
        CompareOperator::Equal => false,
        CompareOperator::NullSafeEqual => true,
        _ => return None,
    };
    let [one, two] = &**sides;
    // A text beside a document is a JSON string. As a key it would be read as a document.
    if *kind == ComparisonKind::Json && one.ty.kind != two.ty.kind {
        return None;
    }
    let (read_one, read_two) = (reads(one), reads(two));
    let is_left = |read: &SlotSet| !read.is_disjoint(left) && read.is_disjoint(right);
    let is_right = |read: &SlotSet| !read.is_disjoint(right) && read.is_disjoint(left);
    let (one_key, two_key) =
        (|| as_hash_key(one.clone(), kind, &two.ty), || as_hash_key(two.clone(), kind, &one.ty));
    if is_left(&read_one) && is_right(&read_two) {
        Some((one_key(), two_key(), null_safe))
    } else if is_left(&read_two) && is_right(&read_one) {
        Some((two_key(), one_key(), null_safe))
    } else {
        None
    }
}

impl Optimiser<'_> {
    /// The ways of adding an item, priced.
    ///
    /// # Errors
    /// Errors of planning a subquery.
    pub(crate) fn price(
        &mut self,
        graph: &JoinGraph,
        item: &Item,
        bound: &Bound,
        order: &[SortKey],
    ) -> Result<Vec<Priced>> {
        self.context.watch.steps(1 + graph.conditions.len())?;
        let applicable = graph.applicable(item, &bound.slots);
        match &item.kind {
            ItemKind::Relation(relation) => {
                self.price_relation(graph, (*relation, item), &applicable, bound, order)
            }
            ItemKind::Distinct { right, .. } => {
                let (rows, alone) = self.price_once(&item.prices.alone, || right.clone())?;
                let share: f64 = applicable.joining.iter().map(share_of_all).product();
                let alone = alone + rows * 2.0;
                let method =
                    if bound.is_first { Method::Nested { candidate: None } } else { Method::Hash };
                let cost = bound.cost + alone + bound.rows * PROBE;
                Ok(vec![Priced { method, cost, rows: bound.rows * rows * share, ordered: false }])
            }
            ItemKind::Join { kind, right, on } => {
                let mut priced = self.price_join(*kind, (right, &item.prices), on, bound)?;
                let conditions = applicable.own.iter().chain(&applicable.joining);
                let share: f64 = conditions.map(share_of_all).product();
                priced.iter_mut().for_each(|priced| priced.rows *= share);
                Ok(priced)
            }
        }
    }

    fn price_relation(
        &mut self,
        graph: &JoinGraph,
        (relation, item): (RelationId, &Item),
        applicable: &Applicable,
        bound: &Bound,
        order: &[SortKey],
    ) -> Result<Vec<Priced>> {
        let mut all = applicable.own.clone();
        all.extend(applicable.joining.iter().cloned());
        let order = if bound.is_first { order } else { &[] };
        // One item's order is that of the join only if no key is left to be compared after it.
        let is_whole = graph.items.len() == 1
            || order.iter().all(|key| {
                matches!(key.expression.kind, ExpressionKind::Slot(slot) if item.fills.contains(slot))
            });
        let mut found: Vec<Priced> = self
            .ways(relation, &all, order)
            .into_iter()
            .map(|candidate| Priced {
                cost: bound.cost + bound.rows.max(1.0) * candidate.cost,
                rows: bound.rows * candidate.rows,
                ordered: !bound.is_first || candidate.ordered && is_whole,
                method: Method::Nested { candidate: Some(Arc::new(candidate)) },
            })
            .collect();
        let is_lateral = !item.depends.is_empty();
        if bound.is_first || is_lateral {
            return Ok(found);
        }
        let least = found.iter().map(|priced| priced.rows).fold(f64::INFINITY, f64::min);
        let keys =
            applicable.joining.iter().filter_map(|one| hash_key(one, &bound.slots, &item.fills));
        if keys.count() > 0 || self.is_costly(relation) {
            let alone = self.ways(relation, &applicable.own, &[]);
            let alone = alone.iter().min_by(|one, two| one.cost.total_cmp(&two.cost));
            let (cost, rows) = alone.map_or((1.0, 1.0), |way| (way.cost, way.rows));
            let cost = bound.cost + cost + rows * BUILD + bound.rows * PROBE + least * 0.1;
            found.push(Priced { method: Method::Hash, cost, rows: least, ordered: false });
        }
        Ok(found)
    }

    fn price_join(
        &mut self,
        kind: JoinKind,
        (right, prices): (&JoinGraph, &Prices),
        on: &[Expression],
        bound: &Bound,
    ) -> Result<Vec<Priced>> {
        let (nested_rows, nested_cost) =
            self.price_once(&prices.nested, || nested_graph(right, on))?;
        let rows = joined_rows(kind, bound.rows, nested_rows);
        let mut found = vec![Priced {
            method: Method::Nested { candidate: None },
            cost: bound.cost + bound.rows.max(1.0) * probing(kind, nested_rows, nested_cost),
            rows,
            // In front of everything else, it gives the following items no order.
            ordered: !bound.is_first,
        }];
        if hash_parts(right, on, &bound.slots).is_some() {
            let (alone_rows, alone_cost) =
                self.price_once(&prices.alone, || hash_graph(right, on))?;
            let cost = bound.cost + alone_cost + alone_rows * BUILD + bound.rows * PROBE;
            found.push(Priced { method: Method::Hash, cost, rows, ordered: false });
        }
        Ok(found)
    }

    /// Rows and cost of a graph that is priced for many paths; computed at the first call.
    fn price_once(
        &mut self,
        known: &OnceCell<(f64, f64)>,
        graph: impl FnOnce() -> JoinGraph,
    ) -> Result<(f64, f64)> {
        if let Some(price) = known.get() {
            return Ok(*price);
        }
        let price = self.price_graph(&graph())?;
        Ok(*known.get_or_init(|| price))
    }

    /// The access paths to a relation's rows.
    pub(crate) fn ways(
        &mut self,
        id: RelationId,
        conditions: &[Expression],
        order: &[SortKey],
    ) -> Vec<Candidate> {
        let parameters = self.context.parameter_values;
        let estimator = super::selectivity::Estimator { parameters };
        let relation = &self.relations[id.0];
        if let RelationSource::Table(table) = &relation.source {
            let wanted = Wanted {
                table,
                slots: &relation.slots,
                conditions,
                hints: &relation.hints,
                locking: relation.mode != firn_api::rows::ReadMode::Consistent,
                whole_row: relation.row_slots.is_some(),
                order,
                estimator: &estimator,
            };
            return wanted.candidates();
        }
        let (rows, cost) = match (&relation.source, &self.planned[id.0]) {
            (RelationSource::CommonTable(number), _) => {
                let (_, rows) = self.common_numbers[*number];
                (rows, rows)
            }
            (_, Some(Planned::CommonTable { rows, .. })) => (*rows, *rows),
            (_, Some(Planned::Query(planned))) => (planned.root.rows, planned.root.cost),
            _ => (1000.0, 1000.0),
        };
        let share: f64 = conditions.iter().map(share_of_all).product();
        vec![Candidate {
            access: Access::Full { index: None },
            direction: Direction::Forward,
            covered: false,
            examined: rows,
            rows: rows * share,
            cost,
            consumed: Vec::new(),
            ordered: false,
            single: false,
        }]
    }

    /// Whether an item is a stored table.
    pub(crate) fn is_table_item(&self, item: &Item) -> bool {
        matches!(item.kind, ItemKind::Relation(relation) if self.is_table(relation))
    }

    /// Whether a relation's rows are computed again each time it is opened.
    fn is_costly(&self, relation: RelationId) -> bool {
        let source = &self.relations[relation.0].source;
        let is_once = matches!(self.planned[relation.0], Some(Planned::CommonTable { .. }));
        match source {
            RelationSource::Virtual(_) => true,
            RelationSource::Derived { .. } | RelationSource::JsonTable(_) => !is_once,
            RelationSource::Table(_) | RelationSource::CommonTable(_) => false,
        }
    }

    fn is_table(&self, relation: RelationId) -> bool {
        matches!(self.relations[relation.0].source, RelationSource::Table(_))
    }

    /// The plan of the bound items joined with an item.
    ///
    /// # Errors
    /// Errors of planning a subquery.
    pub(crate) fn join_item(
        &mut self,
        graph: &JoinGraph,
        item: &Item,
        left: Option<PlanNode>,
        bound: &SlotSet,
        priced: &Priced,
    ) -> Result<PlanNode> {
        let applicable = graph.applicable(item, bound);
        match (&item.kind, &priced.method) {
            (ItemKind::Relation(relation), Method::Nested { candidate }) => {
                let mut conditions = applicable.own;
                conditions.extend(applicable.joining);
                let right = self.relation_node(*relation, conditions, candidate.as_deref());
                Ok(match left {
                    None => right,
                    Some(left) => nested_loop(left, right, JoinKind::Inner, priced),
                })
            }
            (ItemKind::Relation(relation), Method::Hash) => {
                let ways = self.ways(*relation, &applicable.own, &[]);
                let best = ways.into_iter().min_by(|one, two| one.cost.total_cmp(&two.cost));
                let right = self.relation_node(*relation, applicable.own, best.as_ref());
                let (keys, rest) = keys_of(applicable.joining, bound, &item.fills);
                Ok(hash_join(left, right, JoinKind::Inner, keys, rest, priced))
            }
            (ItemKind::Distinct { right, slots }, _) => {
                let right = self.distinct_node(right, slots)?;
                let right = filter(right, applicable.own);
                let Some(left) = left else { return Ok(right) };
                let (keys, rest) = keys_of(applicable.joining, bound, &item.fills);
                Ok(hash_join(Some(left), right, JoinKind::Inner, keys, rest, priced))
            }
            (ItemKind::Join { kind, right, on }, method) => {
                let node = self.join_unit(*kind, right, on, left, bound, method, priced)?;
                let mut after = applicable.own;
                after.extend(applicable.joining);
                Ok(filter(node, after))
            }
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn join_unit(
        &mut self,
        kind: JoinKind,
        right: &JoinGraph,
        on: &[Expression],
        left: Option<PlanNode>,
        bound: &SlotSet,
        method: &Method,
        priced: &Priced,
    ) -> Result<PlanNode> {
        let mut left = left.unwrap_or_else(one_row);
        let late = match kind {
            JoinKind::Semi | JoinKind::Anti => {
                let rows = left.rows.max(1.0);
                let cost = (priced.cost - left.cost).max(0.0) / rows;
                take_late(
                    &mut left,
                    Sieve { share: (priced.rows / rows).min(1.0), cost },
                    &self.subqueries,
                )
            }
            JoinKind::Inner | JoinKind::Left => Vec::new(),
        };
        let joined = if let Method::Hash = method
            && let Some((keys, rest)) = hash_parts(right, on, bound)
        {
            let right = self.plan_graph(&hash_graph(right, on), &[], false)?;
            hash_join(Some(left), right, kind, keys, rest, priced)
        } else {
            let right = self.plan_graph(&nested_graph(right, on), &[], false)?;
            nested_loop(left, right, kind, priced)
        };
        let rows = joined.rows;
        Ok(PlanNode { rows, ..filter(joined, late) })
    }

    /// The node that returns a relation's rows.
    pub(crate) fn relation_node(
        &mut self,
        id: RelationId,
        conditions: Vec<Expression>,
        candidate: Option<&Candidate>,
    ) -> PlanNode {
        let (rows, cost) = candidate.map_or((1000.0, 1000.0), |one| (one.rows, one.cost));
        let lateral = self.is_lateral(id);
        let relation = &self.relations[id.0];
        let kind = match &relation.source {
            RelationSource::Table(_) => {
                let scan = scan_plan(relation, conditions, candidate);
                return PlanNode { kind: NodeKind::Scan(Box::new(scan)), rows, cost };
            }
            RelationSource::Virtual(table) => NodeKind::Virtual {
                table: table.clone(),
                slots: numbered(&relation.slots),
                hints: super::virtual_hints::hints(&**table, &relation.slots, &conditions),
            },
            RelationSource::CommonTable(number) => {
                let (number, _) = self.common_numbers[*number];
                NodeKind::CommonTable { number, slots: numbered(&relation.slots) }
            }
            RelationSource::Derived { .. } | RelationSource::JsonTable(_) => {
                match self.planned[id.0].take() {
                    Some(Planned::Query(query)) => {
                        let mut slots = relation.slots.clone();
                        slots.resize(query.columns.len(), None);
                        NodeKind::Derived { query, slots, lateral }
                    }
                    Some(Planned::CommonTable { number, rows }) => {
                        self.planned[id.0] = Some(Planned::CommonTable { number, rows });
                        NodeKind::CommonTable { number, slots: numbered(&relation.slots) }
                    }
                    None => NodeKind::Empty,
                }
            }
        };
        filter(PlanNode { kind, rows, cost }, conditions)
    }
}

fn scan_plan(
    relation: &Relation,
    conditions: Vec<Expression>,
    candidate: Option<&Candidate>,
) -> ScanPlan {
    let RelationSource::Table(table) = &relation.source else {
        unreachable!("only tables are scanned");
    };
    let consumed = candidate.map_or(&[][..], |candidate| &candidate.consumed);
    let numbered_conditions = conditions.into_iter().enumerate();
    let rest = numbered_conditions.filter(|(number, _)| !consumed.contains(number));
    ScanPlan {
        table: table.clone(),
        alias: relation.alias.clone(),
        access: candidate.map_or(Access::Full { index: None }, |one| one.access.clone()),
        direction: candidate.map_or(Direction::Forward, |one| one.direction),
        mode: relation.mode,
        slots: numbered(&relation.slots),
        conditions: rest.map(|(_, condition)| condition).collect(),
        row_key: relation.row_slots.map(|(key, _)| key),
        row_payload: relation.row_slots.map(|(_, payload)| payload),
        covered: candidate.is_some_and(|one| one.covered),
    }
}

fn numbered(slots: &[Option<Slot>]) -> Vec<(u16, Slot)> {
    slots.iter().zip(0_u16..).filter_map(|(slot, number)| Some((number, (*slot)?))).collect()
}

/// Splits conditions into their conjuncts.
#[must_use]
pub(crate) fn conjuncts(conditions: &[Expression]) -> Vec<Expression> {
    let mut found = Vec::with_capacity(conditions.len());
    for condition in conditions {
        match &condition.kind {
            ExpressionKind::And(list) => found.extend(conjuncts(list)),
            _ => found.push(condition.clone()),
        }
    }
    found
}

/// One row without columns.
#[must_use]
pub(crate) fn one_row() -> PlanNode {
    PlanNode { kind: NodeKind::OneRow, rows: 1.0, cost: 0.0 }
}

/// The rows for which all conditions are true.
#[must_use]
pub(crate) fn filter(input: PlanNode, conditions: Vec<Expression>) -> PlanNode {
    if conditions.is_empty() {
        return input;
    }
    let share: f64 = conditions.iter().map(share_of_all).product();
    let (rows, cost) = (input.rows * share, input.cost);
    PlanNode { kind: NodeKind::Filter { input: Box::new(input), conditions }, rows, cost }
}

fn nested_loop(left: PlanNode, right: PlanNode, join: JoinKind, priced: &Priced) -> PlanNode {
    let kind = NodeKind::NestedLoop {
        left: Box::new(left),
        right: Box::new(right),
        join,
        conditions: Vec::new(),
        right_slots: Vec::new(),
    };
    PlanNode { kind, rows: priced.rows, cost: priced.cost }
}

fn hash_join(
    left: Option<PlanNode>,
    right: PlanNode,
    join: JoinKind,
    keys: Vec<(Expression, Expression, bool)>,
    conditions: Vec<Expression>,
    priced: &Priced,
) -> PlanNode {
    let kind = NodeKind::HashJoin {
        left: Box::new(left.unwrap_or_else(one_row)),
        right: Box::new(right),
        join,
        null_safe: keys.iter().map(|(_, _, null_safe)| *null_safe).collect(),
        keys: keys.into_iter().map(|(left, right, _)| (left, right)).collect(),
        conditions,
        right_slots: Vec::new(),
    };
    PlanNode { kind, rows: priced.rows, cost: priced.cost }
}

fn joined_rows(kind: JoinKind, left: f64, right: f64) -> f64 {
    match kind {
        JoinKind::Inner => left * right,
        JoinKind::Left => left * right.max(1.0),
        JoinKind::Semi => left * right.min(1.0),
        JoinKind::Anti => left * (1.0 - right.min(0.9)),
    }
}

/// The cost of a look at the right side: semi and anti joins stop at the first match.
fn probing(kind: JoinKind, rows: f64, cost: f64) -> f64 {
    match kind {
        JoinKind::Semi | JoinKind::Anti if rows > 1.0 => cost / rows.sqrt(),
        _ => cost,
    }
}

/// A right side that is opened for each row of the left.
fn nested_graph(right: &JoinGraph, on: &[Expression]) -> JoinGraph {
    right.with_conditions(on.iter().cloned())
}

/// A right side that is read once, by itself.
fn hash_graph(right: &JoinGraph, on: &[Expression]) -> JoinGraph {
    let outer = right.fills.clone();
    let local = conjuncts(on).into_iter().filter(|one| {
        let read = reads(one);
        !read.is_empty() && read.is_subset(&outer)
    });
    right.with_conditions(local)
}

/// Pairs of keys (left, right, whether NULL equals NULL), and the remaining conditions.
type HashParts = (Vec<(Expression, Expression, bool)>, Vec<Expression>);

/// Splits conditions into keys of a hash join and the rest.
fn keys_of(conditions: Vec<Expression>, bound: &SlotSet, right: &SlotSet) -> HashParts {
    let (mut keys, mut rest) = (Vec::new(), Vec::new());
    for condition in conditions {
        match hash_key(&condition, bound, right) {
            Some(key) => keys.push(key),
            None => rest.push(condition),
        }
    }
    (keys, rest)
}

/// What a hash table of a join's right side needs; `None` if it is useless.
fn hash_parts(right: &JoinGraph, on: &[Expression], bound: &SlotSet) -> Option<HashParts> {
    if right.reads_any(bound) {
        return None;
    }
    let (mut keys, mut rest) = (Vec::new(), Vec::new());
    for condition in conjuncts(on) {
        let read = reads(&condition);
        match hash_key(&condition, bound, &right.fills) {
            Some(key) => keys.push(key),
            None if !read.is_empty() && read.is_subset(&right.fills) => {}
            None => rest.push(condition),
        }
    }
    (!keys.is_empty()).then_some((keys, rest))
}
