//! The effect of NULL on conditions: where an outer join is in fact an inner join.
//!
//! ```text
//!   t LEFT JOIN u ON u.x = t.x WHERE u.y > 3      u.y NULL ⇒ not true: an inner join
//! ```

use firn_sql_logical::expression::{CompareOperator, Expression, ExpressionKind, IsTest};

use crate::visit::{SlotSet, for_each_operand};

/// The slots whose NULL makes a condition not true.
#[must_use]
pub(crate) fn rejected(condition: &Expression) -> SlotSet {
    match &condition.kind {
        ExpressionKind::And(list) => {
            let mut all = SlotSet::default();
            list.iter().for_each(|one| all.extend(&rejected(one)));
            all
        }
        ExpressionKind::Or(list) => {
            let mut sides = list.iter().map(rejected);
            let first = sides.next().unwrap_or_default();
            sides.fold(first, |all, side| all.intersection(&side))
        }
        ExpressionKind::Is { operand, test: IsTest::Null, negated: true }
        | ExpressionKind::Is {
            operand, test: IsTest::True | IsTest::False, negated: false, ..
        } => strict(operand),
        _ => strict(condition),
    }
}

/// The slots whose NULL makes an expression NULL.
#[must_use]
pub(crate) fn strict(expression: &Expression) -> SlotSet {
    match &expression.kind {
        ExpressionKind::Slot(slot) => [*slot].into_iter().collect(),
        ExpressionKind::Cast(inner) | ExpressionKind::Not(inner) => strict(inner),
        ExpressionKind::Compare { operator, .. } if *operator == CompareOperator::NullSafeEqual => {
            SlotSet::default()
        }
        ExpressionKind::Compare { .. } | ExpressionKind::Xor(_) | ExpressionKind::Like { .. } => {
            of_operands(expression)
        }
        ExpressionKind::InList { operand, .. } => strict(operand),
        ExpressionKind::Call { function, .. } if function.strict => of_operands(expression),
        _ => SlotSet::default(),
    }
}

fn of_operands(expression: &Expression) -> SlotSet {
    let mut all = SlotSet::default();
    for_each_operand(expression, &mut |operand| all.extend(&strict(operand)));
    all
}
