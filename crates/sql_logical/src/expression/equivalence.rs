//! Whether two bound expressions are the same, for `GROUP BY` and `ORDER BY`.

use std::sync::Arc;

use super::{Expression, ExpressionKind};

/// Whether two expressions have the same form, so that they have the same value in the same row.
/// Subqueries and assignments are the same only as themselves.
#[must_use]
pub fn same_expression(one: &Expression, other: &Expression) -> bool {
    use ExpressionKind as K;
    match (&one.kind, &other.kind) {
        (K::Literal(a), K::Literal(b)) => a == b && one.ty.kind == other.ty.kind,
        (K::Parameter(a), K::Parameter(b)) => a == b,
        (K::Slot(a), K::Slot(b)) => a == b,
        (K::Call { function: f, arguments: a }, K::Call { function: g, arguments: b }) => {
            std::ptr::eq(*f, *g) && same_list(a, b)
        }
        (K::Cast(a), K::Cast(b)) => one.ty.kind == other.ty.kind && same_expression(a, b),
        (
            K::Compare { operator: f, kind: k, sides: a },
            K::Compare { operator: g, kind: l, sides: b },
        ) => f == g && k == l && same_list(&a[..], &b[..]),
        (K::And(a), K::And(b)) | (K::Or(a), K::Or(b)) => same_list(a, b),
        (K::Coalesce(a), K::Coalesce(b)) | (K::Row(a), K::Row(b)) => same_list(a, b),
        (K::Xor(a), K::Xor(b)) => same_list(&a[..], &b[..]),
        (K::Not(a), K::Not(b)) => same_expression(a, b),
        (K::Is { operand: a, test: t, negated: n }, K::Is { operand: b, test: u, negated: m }) => {
            t == u && n == m && same_expression(a, b)
        }
        (
            K::InList { operand: a, list: x, kind: k, negated: n },
            K::InList { operand: b, list: y, kind: l, negated: m },
        ) => k == l && n == m && same_expression(a, b) && same_list(x, y),
        (
            K::Like { text: a, pattern: x, collation: c, escape: e, negated: n },
            K::Like { text: b, pattern: y, collation: d, escape: f, negated: m },
        ) => c == d && e == f && n == m && same_expression(a, b) && same_expression(x, y),
        (K::Case { branches: a, otherwise: x }, K::Case { branches: b, otherwise: y }) => {
            same_branches(a, b) && same_option(x.as_deref(), y.as_deref())
        }
        (K::Subquery(a), K::Subquery(b)) => Arc::ptr_eq(a, b),
        (K::UserVariable(a), K::UserVariable(b)) => a == b,
        (K::SystemVariable { name: a, global: g }, K::SystemVariable { name: b, global: h }) => {
            a == b && g == h
        }
        _ => false,
    }
}

/// Whether two lists hold the same expressions in the same order.
#[must_use]
pub fn same_list(one: &[Expression], other: &[Expression]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(a, b)| same_expression(a, b))
}

fn same_branches(one: &[(Expression, Expression)], other: &[(Expression, Expression)]) -> bool {
    one.len() == other.len()
        && one
            .iter()
            .zip(other)
            .all(|((a, x), (b, y))| same_expression(a, b) && same_expression(x, y))
}

fn same_option(one: Option<&Expression>, other: Option<&Expression>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => same_expression(one, other),
        (one, other) => one.is_none() && other.is_none(),
    }
}
