//! Conditions with subqueries behind semi and anti joins, where that has them evaluated for fewer rows.
//!
//! ```text
//!   ps.qty > (SELECT SUM(…) WHERE … = ps.part)  AND  ps.part IN (SELECT id FROM part WHERE name LIKE 'forest%')
//!
//!   as written   Semi(Scan ps, filter qty > (…); part)     a sum for each row of ps
//!   late         Filter(Semi(Scan ps; part), qty > (…))    a sum for each row of which the part is one of these
//! ```
//!
//! A semi or anti join lets rows of its left side through as they are, so conditions on them may be asked before or
//! behind it. The one goes first that turns away more rows for its cost (the rank of Hellerstein and Stonebraker's
//! predicate migration).

use firn_api::rows::ReadMode;

use crate::expression::volatility::is_row_dependent;
use crate::expression::{Expression, ExpressionKind};

use super::selectivity::share_of_all;
use super::visit;
use super::{JoinKind, NodeKind, PlanNode, SubqueryPlan};

/// What a condition or a join does for each row that it is given.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sieve {
    /// The share of the rows that it lets through.
    pub share: f64,
    /// What it costs for one row.
    pub cost: f64,
}

impl Sieve {
    fn rank(self) -> f64 {
        (1.0 - self.share) / self.cost.max(f64::MIN_POSITIVE)
    }

    /// A condition with subqueries that are asked for each row; `None` for others.
    fn of(condition: &Expression, subqueries: &[SubqueryPlan]) -> Option<Sieve> {
        let mut cost = 0.0;
        for_each_subquery(condition, &mut |subquery| {
            let plan = &subqueries[subquery.number];
            if !plan.outer_slots.is_empty() {
                cost += plan.query.root.cost;
            }
        });
        (cost > 0.0).then(|| Sieve { share: share_of_all(condition), cost })
    }
}

/// Takes those conditions out of a join's left side that are to be asked behind the join.
pub(crate) fn take_late(
    left: &mut PlanNode,
    join: Sieve,
    subqueries: &[SubqueryPlan],
) -> Vec<Expression> {
    let mut taken = Vec::new();
    take(left, join, subqueries, &mut taken);
    taken
}

fn take(
    node: &mut PlanNode,
    join: Sieve,
    subqueries: &[SubqueryPlan],
    taken: &mut Vec<Expression>,
) {
    let before = taken.len();
    match &mut node.kind {
        // What a locking read has asked decides what it locks.
        NodeKind::Scan(scan) if scan.mode == ReadMode::Consistent => {
            take_from(&mut scan.conditions, join, subqueries, taken);
        }
        NodeKind::Filter { input, conditions } => {
            take_from(conditions, join, subqueries, taken);
            take(input, join, subqueries, taken);
        }
        NodeKind::NestedLoop { left, right, join: JoinKind::Inner, .. }
        | NodeKind::HashJoin { left, right, join: JoinKind::Inner, .. } => {
            take(left, join, subqueries, taken);
            take(right, join, subqueries, taken);
        }
        _ => {}
    }
    let share: f64 = taken[before..].iter().map(share_of_all).product();
    node.rows /= share.max(f64::MIN_POSITIVE);
    if let NodeKind::Filter { input, conditions } = &mut node.kind
        && conditions.is_empty()
    {
        *node = std::mem::replace(input, super::items::one_row());
    }
}

fn take_from(
    conditions: &mut Vec<Expression>,
    join: Sieve,
    subqueries: &[SubqueryPlan],
    taken: &mut Vec<Expression>,
) {
    let is_late = |condition: &mut Expression| {
        let sieve = Sieve::of(condition, subqueries).filter(|_| !is_row_dependent(condition));
        sieve.is_some_and(|sieve| sieve.rank() < join.rank())
    };
    taken.extend(conditions.extract_if(.., is_late));
}

/// Calls `work` for the subqueries of an expression, not for those within them.
fn for_each_subquery(expression: &Expression, work: &mut impl FnMut(&super::Subquery)) {
    if let ExpressionKind::Subquery(subquery) = &expression.kind {
        work(subquery);
    }
    visit::for_each_operand(expression, &mut |operand| for_each_subquery(operand, work));
}
