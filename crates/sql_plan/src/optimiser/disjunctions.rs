//! What a disjunction over several tables implies for each of them, and what all its branches have
//! in common.
//!
//! ```text
//!   (j AND a1 AND b1) OR (j AND a2 AND b2)  j joins a and b, a1 and a2 read a, b1 and b2 read b
//!
//!   j                                       is in all branches, so it may choose how to join
//!   (a1 AND b1) OR (a2 AND b2)              what is left
//!   a1 OR a2                                follows for a alone; filters its rows before the join
//!   b1 OR b2                                the same for b
//! ```
//!
//! This is valid where a condition only has to be true or not: NULL and false are treated alike.

use firn_sql_logical::expression::equivalence::same_expression;
use firn_sql_logical::expression::volatility::{has_subquery, is_row_dependent};
use firn_sql_logical::expression::{Expression, ExpressionKind, and, or};

use super::join_items::conjuncts;
use crate::visit::{SlotSet, reads};

/// A disjunction; each branch is a list of conjuncts.
pub(super) struct Disjunction {
    branches: Vec<Vec<Expression>>,
}

impl Disjunction {
    /// `None` for another condition.
    pub(super) fn of(condition: &Expression) -> Option<Disjunction> {
        let ExpressionKind::Or(branches) = &condition.kind else { return None };
        let branches = branches.iter().map(|branch| conjuncts(std::slice::from_ref(branch)));
        Some(Disjunction { branches: branches.collect() })
    }

    /// Removes the conjuncts that all branches have in common, as far as they are wanted.
    pub(super) fn take_common(
        &mut self,
        is_wanted: impl Fn(&Expression) -> bool,
    ) -> Vec<Expression> {
        let is_in = |branch: &[Expression], one: &Expression| {
            branch.iter().any(|other| same_expression(one, other))
        };
        let Some((first, others)) = self.branches.split_first() else { return Vec::new() };
        let is_common = |one: &&Expression| {
            is_movable(one) && is_wanted(one) && others.iter().all(|branch| is_in(branch, one))
        };
        let common: Vec<_> = first.iter().filter(is_common).cloned().collect();
        for branch in &mut self.branches {
            branch.retain(|one| !is_in(&common, one));
        }
        common
    }

    /// What it implies for rows of which only these slots are known.
    pub(super) fn implied(&self, known: &SlotSet) -> Option<Expression> {
        let is_known = |one: &&Expression| {
            let slots = reads(one);
            is_movable(one) && !slots.is_empty() && slots.is_subset(known)
        };
        let branches = self.branches.iter().map(|branch| {
            let known: Vec<_> = branch.iter().filter(is_known).cloned().collect();
            (!known.is_empty()).then(|| and(known))
        });
        branches.collect::<Option<Vec<_>>>().map(or)
    }

    /// The condition that is left; `None` if it is always true.
    pub(super) fn into_condition(self) -> Option<Expression> {
        if self.branches.iter().any(Vec::is_empty) {
            return None;
        }
        Some(or(self.branches.into_iter().map(and).collect()))
    }
}

/// Whether it may be evaluated at another time, and once more.
fn is_movable(expression: &Expression) -> bool {
    !is_row_dependent(expression) && !has_subquery(expression)
}
