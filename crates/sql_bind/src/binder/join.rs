//! Joins: `ON`, `USING`, `NATURAL`, and the effect of outer joins on their tables.
//!
//! ```text
//!   t JOIN u USING (a)        t.a = u.a; `a` and `*` mean t.a once
//!   t RIGHT JOIN u ON …       u LEFT JOIN t ON …, the columns still t's first
//! ```

use std::sync::Arc;

use firn_sql_catalog::model::same_name;
use firn_sql_grammar::ast::{Join, JoinConstraint, JoinKind as WrittenKind};
use firn_sql_logical::expression::{CompareOperator, Expression};
use firn_sql_logical::{JoinKind, JoinTree};
use firn_sql_types::error::{Result, SqlError};

use super::from::{FromItem, inner};
use super::scope::{Clause, ShownColumn};
use super::{Binder, Names, coerce, expressions, scope};

/// Whether a join fills its left side with NULL where nothing matches.
pub(crate) fn is_right(join: &Join) -> bool {
    join.kind == WrittenKind::Right
}

/// Whether a join fills its right side with NULL where nothing matches.
pub(crate) fn is_left(join: &Join) -> bool {
    join.kind == WrittenKind::Left
}

/// Two parts of `FROM` joined.
pub(crate) fn join(
    binder: &mut Binder<'_>,
    left: FromItem,
    right: FromItem,
    join: &Join,
) -> Result<FromItem> {
    binder.block.hints.straight |= join.kind == WrittenKind::Straight;
    let (is_left, is_right) = (is_left(join), is_right(join));
    let (mut conditions, shown) = constraint(binder, &left, &right, &join.constraint, is_right)?;
    if is_left {
        make_nullable(&mut binder.names, &right.shown);
    }
    if is_right {
        make_nullable(&mut binder.names, &left.shown);
    }
    let (outer, inside) = if is_right { (right, left) } else { (left, right) };
    let mut kept = outer.conditions;
    if is_left || is_right {
        conditions.extend(inside.conditions);
    } else {
        kept.extend(inside.conditions);
    }
    let kind = if is_left || is_right { JoinKind::Left } else { JoinKind::Inner };
    let tree = match (outer.tree, inside.tree) {
        (Some(left), Some(right)) if kind == JoinKind::Inner => {
            Some(inner(left, right, conditions))
        }
        (Some(left), Some(right)) => {
            Some(JoinTree::Join { kind, left: Box::new(left), right: Box::new(right), conditions })
        }
        (left, right) => {
            kept.extend(conditions);
            left.or(right)
        }
    };
    Ok(FromItem { tree, shown, conditions: kept })
}

fn make_nullable(names: &mut Names, shown: &[ShownColumn]) {
    for place in shown {
        names.innermost().tables[place.table].nullable = true;
    }
}

/// The conditions of a join, and the meaning of names after it.
fn constraint(
    binder: &mut Binder<'_>,
    left: &FromItem,
    right: &FromItem,
    constraint: &JoinConstraint,
    is_right: bool,
) -> Result<(Vec<Expression>, Vec<ShownColumn>)> {
    match constraint {
        JoinConstraint::None => Ok((Vec::new(), chained(left, right))),
        JoinConstraint::On(condition) => {
            let shown = chained(left, right);
            let before = std::mem::replace(&mut binder.names.innermost().shown, shown.clone());
            let bound = binder
                .in_clause(Clause::On, |binder| expressions::bind_condition(binder, condition));
            binder.names.innermost().shown = before;
            Ok((bound?, shown))
        }
        JoinConstraint::Using(names) => {
            let names: Vec<Arc<str>> = names.iter().map(|name| name.as_str().into()).collect();
            join_using(binder, left, right, &names, is_right)
        }
        JoinConstraint::Natural => {
            let names = common_names(&mut binder.names, left, right);
            join_using(binder, left, right, &names, is_right)
        }
    }
}

fn common_names(names: &mut Names, left: &FromItem, right: &FromItem) -> Vec<Arc<str>> {
    let scope = names.innermost();
    let of_right =
        |name: &str| right.shown.iter().any(|place| same_name(&scope.column(*place).name, name));
    let names = left.shown.iter().map(|place| scope.column(*place));
    let names = names.filter(|column| !column.invisible && of_right(&column.name));
    names.map(|column| column.name.clone()).collect()
}

fn join_using(
    binder: &mut Binder<'_>,
    left: &FromItem,
    right: &FromItem,
    names: &[Arc<str>],
    is_right: bool,
) -> Result<(Vec<Expression>, Vec<ShownColumn>)> {
    let level = binder.names.scopes.len() - 1;
    let mut conditions = Vec::with_capacity(names.len());
    let mut common = Vec::with_capacity(names.len());
    let mut gone = Vec::with_capacity(names.len() * 2);
    for name in names {
        let one = only(&mut binder.names, &left.shown, name)?;
        let two = only(&mut binder.names, &right.shown, name)?;
        let (a, b) =
            (scope::column_value(binder, level, one)?, scope::column_value(binder, level, two)?);
        conditions.push(coerce::compare(&mut binder.typing, CompareOperator::Equal, a, b)?);
        common.push(if is_right { two } else { one });
        gone.extend([one, two]);
    }
    // The columns of a right join are those of the equivalent left join.
    let (outer, inside) = if is_right { (right, left) } else { (left, right) };
    let rest = outer.shown.iter().chain(&inside.shown).filter(|place| !gone.contains(place));
    let shown = common.into_iter().chain(rest.copied()).collect();
    Ok((conditions, shown))
}

/// The only column with this name.
fn only(names: &mut Names, shown: &[ShownColumn], name: &str) -> Result<ShownColumn> {
    let scope = names.innermost();
    let mut matching = shown.iter().filter(|place| same_name(&scope.column(**place).name, name));
    match (matching.next(), matching.next()) {
        (Some(place), None) => Ok(*place),
        (None, _) => Err(SqlError::unknown_column(name, "from clause")),
        _ => Err(SqlError::new(1052, format!("Column '{name}' in from clause is ambiguous"))),
    }
}

fn chained(left: &FromItem, right: &FromItem) -> Vec<ShownColumn> {
    left.shown.iter().chain(&right.shown).copied().collect()
}
