//! Joins taken apart into items that can be joined in any order.
//!
//! ```text
//!   (t JOIN u ON t.a = u.a) LEFT JOIN v ON v.b = u.b WHERE t.c = 5
//!
//!   items       t    u    LEFT{v ON v.b = u.b}, after u
//!   conditions  t.c = 5
//!   equalities  {t.a, u.a}
//! ```
//!
//! The inner joins of a level make one graph with their conditions. An outer, semi or anti join is
//! an item of its left side's graph, which may come anywhere after what its `ON` reads; its right
//! side is a separate graph. Columns that must be equal form a class: each later column is compared
//! with one that is already there.

use std::cell::OnceCell;
use std::rc::Rc;

use firn_sql_logical::expression::equivalence::same_expression;
use firn_sql_logical::expression::volatility::is_row_dependent;
use firn_sql_logical::expression::{CompareOperator, Expression, ExpressionKind, Slot};
use firn_sql_logical::{JoinTree, RelationId};
use firn_sql_types::{ComparisonKind, SqlType};

use super::disjunctions::Disjunction;
use super::nulls::rejected;
use crate::JoinKind;
use crate::comparisons::is_transitive;
use crate::visit::{SlotSet, reads, reads_of};

/// Items and conditions of one level of inner joins.
#[derive(Debug, Default, Clone)]
pub(crate) struct JoinGraph {
    /// The two sides of a join.
    pub items: Vec<Item>,
    /// The conditions, without the equalities of classes.
    pub conditions: Vec<Expression>,
    /// Columns that must be equal.
    pub classes: Vec<EqualityClass>,
    pub fills: SlotSet,
}

#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub kind: ItemKind,
    pub fills: SlotSet,
    /// The slots it reads but does not fill.
    pub depends: SlotSet,
    /// The cost of its right side.
    pub prices: Rc<Prices>,
}

/// Rows and cost of an item's right side, which do not depend on what comes before it. Copies of
/// the item share them; otherwise a join inside a join would be priced again for each path to the
/// outer one.
#[derive(Debug, Default)]
pub(crate) struct Prices {
    /// Opened for a row of the left side.
    pub nested: OnceCell<(f64, f64)>,
    /// Read once by itself.
    pub alone: OnceCell<(f64, f64)>,
}

#[derive(Debug, Clone)]
pub(crate) enum ItemKind {
    /// A table reference.
    Relation(RelationId),
    /// The right side of an outer, semi or anti join.
    Join {
        /// Which rows come out.
        kind: JoinKind,
        right: JoinGraph,
        on: Vec<Expression>,
    },
    /// The distinct values of a semi join's right side.
    Distinct { right: JoinGraph, slots: Vec<(Slot, SqlType)> },
}

/// Columns that must be equal, and possibly equal to a value known earlier.
#[derive(Debug, Clone)]
pub(crate) struct EqualityClass {
    /// The columns.
    pub members: Vec<(Slot, SqlType)>,
    pub kind: ComparisonKind,
    /// The value that they are equal to.
    pub constant: Option<Expression>,
}

/// The slots that relations fill.
pub(crate) trait Fills {
    /// The slots of a relation.
    fn fills(&self, relation: RelationId) -> SlotSet;
    /// The slots that a relation reads itself (`LATERAL`).
    fn depends(&self, relation: RelationId) -> SlotSet;
}

impl JoinGraph {
    /// Takes joins apart. `conditions` are those of `WHERE`.
    #[must_use]
    pub(crate) fn new(
        tree: &JoinTree,
        conditions: &[Expression],
        relations: &dyn Fills,
    ) -> JoinGraph {
        let mut rejecting = SlotSet::default();
        conditions.iter().for_each(|one| rejecting.extend(&rejected(one)));
        let mut graph = JoinGraph::default();
        graph.take_apart(tree, &rejecting, relations);
        conditions.iter().for_each(|one| graph.add_condition(one.clone()));
        graph.find_classes();
        graph
    }

    /// The graph with more conditions.
    #[must_use]
    pub(crate) fn with_conditions(&self, more: impl IntoIterator<Item = Expression>) -> JoinGraph {
        let mut graph = self.clone();
        more.into_iter().for_each(|condition| graph.add_condition(condition));
        graph.find_classes();
        graph
    }

    /// Whether anything in the graph reads one of these slots.
    #[must_use]
    pub(crate) fn reads_any(&self, slots: &SlotSet) -> bool {
        let constants = self.classes.iter().filter_map(|class| class.constant.as_ref());
        self.items.iter().any(|item| !item.depends.is_disjoint(slots))
            || self.conditions.iter().chain(constants).any(|one| !reads(one).is_disjoint(slots))
    }

    /// Adds a condition, split into its conjuncts.
    pub(crate) fn add_condition(&mut self, condition: Expression) {
        match condition.kind {
            ExpressionKind::And(list) => list.into_iter().for_each(|one| self.add_condition(one)),
            _ => self.conditions.push(condition),
        }
    }

    fn take_apart(&mut self, tree: &JoinTree, rejecting: &SlotSet, relations: &dyn Fills) {
        match tree {
            JoinTree::Relation(relation) => {
                let fills = relations.fills(*relation);
                let depends = relations.depends(*relation);
                let kind = ItemKind::Relation(*relation);
                self.push(Item { kind, fills, depends, prices: Rc::default() });
            }
            JoinTree::Join { kind, left, right, conditions } => {
                let is_inner = *kind == JoinKind::Inner
                    || *kind == JoinKind::Left
                        && !fills_of(right, relations).is_disjoint(rejecting);
                if is_inner {
                    let mut rejecting = rejecting.clone();
                    conditions.iter().for_each(|one| rejecting.extend(&rejected(one)));
                    self.take_apart(left, &rejecting, relations);
                    self.take_apart(right, &rejecting, relations);
                    conditions.iter().for_each(|one| self.add_condition(one.clone()));
                } else {
                    self.take_apart(left, rejecting, relations);
                    self.push_join(*kind, right, conditions, relations);
                }
            }
        }
    }

    fn push_join(
        &mut self,
        kind: JoinKind,
        right: &JoinTree,
        on: &[Expression],
        relations: &dyn Fills,
    ) {
        let mut rejecting = SlotSet::default();
        on.iter().for_each(|one| rejecting.extend(&rejected(one)));
        let mut graph = JoinGraph::default();
        graph.take_apart(right, &rejecting, relations);
        graph.find_classes();
        let mut depends = reads_of(on);
        depends.extend(&reads_of(&graph.conditions));
        graph.items.iter().for_each(|item| depends.extend(&item.depends));
        let depends = depends.difference(&graph.fills);
        let fills = graph.fills.clone();
        self.push(Item {
            kind: ItemKind::Join { kind, right: graph, on: on.to_vec() },
            fills,
            depends,
            prices: Rc::default(),
        });
    }

    fn push(&mut self, item: Item) {
        self.fills.extend(&item.fills);
        self.items.push(item);
    }

    /// Adds what disjunctions over several relations imply for one relation, and what all their
    /// branches have in common.
    fn split_disjunctions(&mut self) {
        for condition in std::mem::take(&mut self.conditions) {
            let is_of_several = |one: &Expression| {
                let slots = reads(one).intersection(&self.fills);
                !self.items.iter().any(|item| slots.is_subset(&item.fills))
            };
            let disjunction = match condition.kind {
                ExpressionKind::Or(_) if is_of_several(&condition) => Disjunction::of(&condition),
                _ => None,
            };
            let Some(mut disjunction) = disjunction else {
                self.conditions.push(condition);
                continue;
            };
            let common = disjunction.take_common(is_of_several);
            let relations = self.items.iter().filter_map(|item| match item.kind {
                ItemKind::Relation(_) => disjunction.implied(&item.fills),
                _ => None,
            });
            let implied: Vec<_> = relations.collect();
            self.conditions.extend(common);
            for one in disjunction.into_condition().into_iter().chain(implied) {
                // A graph that gets more conditions has already been through this.
                if !self.conditions.iter().any(|other| same_expression(&one, other)) {
                    self.conditions.push(one);
                }
            }
        }
    }

    /// Moves equalities of columns from conditions into classes.
    pub(crate) fn find_classes(&mut self) {
        self.split_disjunctions();
        let inner = self.inner_fills();
        let mut rest = Vec::with_capacity(self.conditions.len());
        for condition in std::mem::take(&mut self.conditions) {
            match Equality::of(&condition, &inner, &self.fills) {
                Some(equality) => self.add_equality(equality, condition, &mut rest),
                None => rest.push(condition),
            }
        }
        self.conditions = rest;
        self.release_small_classes();
    }

    fn inner_fills(&self) -> SlotSet {
        let mut fills = SlotSet::default();
        for item in &self.items {
            if let ItemKind::Relation(_) | ItemKind::Distinct { .. } = item.kind {
                fills.extend(&item.fills);
            }
        }
        fills
    }

    fn add_equality(
        &mut self,
        equality: Equality,
        condition: Expression,
        rest: &mut Vec<Expression>,
    ) {
        // A column equals itself unless it is NULL: that still has to be checked.
        if matches!(&equality.right, Side::Column(slot, _) if *slot == equality.left.0) {
            rest.push(condition);
            return;
        }
        let kind = equality.kind;
        let class = |graph: &JoinGraph, slot: Slot| {
            let holds =
                |class: &EqualityClass| class.members.iter().any(|(member, _)| *member == slot);
            graph.classes.iter().position(|class| class.kind == kind && holds(class))
        };
        let first = class(self, equality.left.0).unwrap_or_else(|| {
            let members = vec![equality.left.clone()];
            self.classes.push(EqualityClass { members, kind, constant: None });
            self.classes.len() - 1
        });
        match equality.right {
            Side::Column(slot, ty) => match class(self, slot) {
                Some(second) if second != first => self.unite(first, second, rest),
                Some(_) => {}
                None => self.classes[first].members.push((slot, ty)),
            },
            Side::Known(value) => match &self.classes[first].constant {
                None => self.classes[first].constant = Some(value),
                Some(known) if same_expression(known, &value) => {}
                Some(_) => rest.push(condition),
            },
        }
    }

    fn unite(&mut self, first: usize, second: usize, rest: &mut Vec<Expression>) {
        let (keep, gone) = (first.min(second), first.max(second));
        let class = self.classes.remove(gone);
        let into = &mut self.classes[keep];
        into.members.extend(class.members);
        match (&into.constant, class.constant) {
            (None, constant) => into.constant = constant,
            (Some(one), Some(other)) if !same_expression(one, &other) => {
                let (slot, ty) = into.members[0].clone();
                rest.push(equal(slot, ty, other, &into.kind));
            }
            _ => {}
        }
    }

    /// A class of one column and one value becomes an ordinary condition.
    fn release_small_classes(&mut self) {
        for class in std::mem::take(&mut self.classes) {
            match (&class.members[..], &class.constant) {
                ([(slot, ty)], Some(constant)) => {
                    let condition = equal(*slot, ty.clone(), constant.clone(), &class.kind);
                    self.conditions.push(condition);
                }
                ([_], None) => {}
                _ => self.classes.push(class),
            }
        }
    }
}

/// The slots that a tree's relations fill.
#[must_use]
pub(crate) fn fills_of(tree: &JoinTree, relations: &dyn Fills) -> SlotSet {
    let mut fills = SlotSet::default();
    tree.for_each_relation(&mut |relation| fills.extend(&relations.fills(relation)));
    fills
}

impl EqualityClass {
    /// The conditions by which the class joins what `item` fills with what is already `bound`.
    pub(crate) fn conditions_for(
        &self,
        item: &SlotSet,
        bound: &SlotSet,
        into: &mut Vec<Expression>,
    ) {
        let mut known = self.constant.clone();
        if known.is_none() {
            let there = self.members.iter().find(|(slot, _)| bound.contains(*slot));
            known = there.map(|(slot, ty)| column(*slot, ty.clone()));
        }
        for (slot, ty) in self.members.iter().filter(|(slot, _)| item.contains(*slot)) {
            match &known {
                Some(known) => into.push(equal(*slot, ty.clone(), known.clone(), &self.kind)),
                None => known = Some(column(*slot, ty.clone())),
            }
        }
    }
}

fn column(slot: Slot, ty: SqlType) -> Expression {
    Expression { kind: ExpressionKind::Slot(slot), ty }
}

fn equal(slot: Slot, ty: SqlType, other: Expression, kind: &ComparisonKind) -> Expression {
    let nullable = ty.nullable || other.ty.nullable;
    Expression {
        kind: ExpressionKind::Compare {
            operator: CompareOperator::Equal,
            kind: *kind,
            sides: Box::new([column(slot, ty), other]),
        },
        ty: SqlType::boolean().with_nullable(nullable),
    }
}

/// `column = column` or `column = known value`.
struct Equality {
    left: (Slot, SqlType),
    right: Side,
    kind: ComparisonKind,
}

enum Side {
    Column(Slot, SqlType),
    Known(Expression),
}

impl Equality {
    fn of(condition: &Expression, inner: &SlotSet, all: &SlotSet) -> Option<Equality> {
        let ExpressionKind::Compare { operator: CompareOperator::Equal, kind, sides } =
            &condition.kind
        else {
            return None;
        };
        let own = |side: &Expression| match side.kind {
            ExpressionKind::Slot(slot) if inner.contains(slot) => Some((slot, side.ty.clone())),
            _ => None,
        };
        let [left, right] = &**sides;
        if !is_transitive(&left.ty, kind, &right.ty) {
            return None;
        }
        let (left, right) = match (own(left), own(right)) {
            (Some(one), Some((slot, ty))) => (one, Side::Column(slot, ty)),
            (Some(one), None) => (one, Side::Known(right.clone())),
            (None, Some(one)) => (one, Side::Known(left.clone())),
            (None, None) => return None,
        };
        if let Side::Known(value) = &right
            && (!reads(value).is_disjoint(all) || is_row_dependent(value))
        {
            return None;
        }
        Some(Equality { left, right, kind: *kind })
    }
}
