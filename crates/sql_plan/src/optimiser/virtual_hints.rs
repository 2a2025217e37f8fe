//! Conditions that save a virtual table work.

use firn_sql_catalog::virtual_table::VirtualTable;
use firn_sql_logical::expression::{CompareOperator, Expression, ExpressionKind, Slot};

use crate::visit::reads;

/// Conditions `column = value` on hinted columns; they are checked again above the table.
#[must_use]
pub(crate) fn hints(
    table: &dyn VirtualTable,
    slots: &[Option<Slot>],
    conditions: &[Expression],
) -> Vec<(u16, Expression)> {
    let own: crate::visit::SlotSet = slots.iter().flatten().copied().collect();
    let mut found = Vec::new();
    for condition in conditions {
        let ExpressionKind::Compare { operator: CompareOperator::Equal, sides, .. } =
            &condition.kind
        else {
            continue;
        };
        let [left, right] = &**sides;
        for (column, value) in [(left, right), (right, left)] {
            let ExpressionKind::Slot(slot) = column.kind else { continue };
            let number = slots.iter().position(|other| *other == Some(slot));
            let Some(number) = number.and_then(|number| u16::try_from(number).ok()) else {
                continue;
            };
            let is_known = reads(value).is_disjoint(&own);
            if is_known && table.hinted_columns().contains(&number) {
                found.push((number, value.clone()));
            }
        }
    }
    found
}
