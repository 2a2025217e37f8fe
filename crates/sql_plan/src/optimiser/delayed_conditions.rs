//! Moves conditions with subqueries after semi and anti joins, where they are then evaluated for
//! fewer rows.
//!
//! ```text
//!   ps.qty > (SELECT SUM(…) WHERE … = ps.part)
//!   AND  ps.part IN (SELECT id FROM part WHERE name LIKE 'forest%')
//!
//!   as written   Semi(Scan ps, filter qty > (…); part)     a sum for each row of ps
//!   late         Filter(Semi(Scan ps; part), qty > (…))    a sum for each row with such a part
//! ```
//!
//! A semi or anti join passes rows of its left side on unchanged, so conditions on them may be
//! evaluated before or after it. The one with the better ratio of rejected rows to cost goes first
//! (the rank of Hellerstein and Stonebraker's predicate migration).

use firn_api::rows::ReadMode;

use firn_sql_logical::expression::volatility::is_row_dependent;
use firn_sql_logical::expression::{Expression, ExpressionKind};

use super::selectivity::share_of_all;
use crate::visit;
use crate::{JoinKind, NodeKind, PlanNode, SubqueryPlan};

/// The effect of a condition or a join on each row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sieve {
    /// The share of the rows that pass.
    pub share: f64,
    /// The cost for one row.
    pub cost: f64,
}

impl Sieve {
    fn rank(self) -> f64 {
        (1.0 - self.share) / self.cost.max(f64::MIN_POSITIVE)
    }

    /// A condition with subqueries that are evaluated for each row; `None` for others.
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

/// Removes from a join's left side the conditions that should be evaluated after the join.
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
        // The conditions of a locking read decide what it locks.
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
        *node = std::mem::replace(input, super::join_items::one_row());
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

/// Calls `work` for the subqueries of an expression, but not for those within them.
fn for_each_subquery(expression: &Expression, work: &mut impl FnMut(&crate::Subquery)) {
    if let ExpressionKind::Subquery(subquery) = &expression.kind {
        work(subquery);
    }
    visit::for_each_operand(expression, &mut |operand| for_each_subquery(operand, work));
}
