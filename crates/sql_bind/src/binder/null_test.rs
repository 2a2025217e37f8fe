//! `IS NULL` conditions with a special meaning.
//!
//! ```text
//!   WHERE date_column IS NULL     NOT NULL dates: date_column = '0000-00-00'
//!   WHERE id IS NULL              AUTO_INCREMENT, under sql_auto_is_null: id = LAST_INSERT_ID()
//! ```
//!
//! Both serve programs that cannot write a zero date or `LAST_INSERT_ID()`. They apply to whole
//! conditions of a `WHERE` on table columns; the second one only if the `WHERE` has no other
//! condition.

use firn_format::value::{Date, DateTime};

use firn_sql_grammar::ast::{Arguments, Expr, TruthTest};
use firn_sql_logical::expression::{self, CompareOperator, Expression, ExpressionKind, IsTest};
use firn_sql_types::error::Result;
use firn_sql_types::{ComparisonKind, Datum, SqlType, TypeKind};

use super::scope::{ColumnSource, ScopeTable};
use super::{Binder, Frame, Names, coerce, expression_builders, expressions};

/// `date IS NULL`, if it also finds zero dates.
pub(super) fn zero_date_test(binder: &mut Binder<'_>, expr: &Expr) -> Result<Option<Expression>> {
    let Some(operand) = tested(expr) else { return Ok(None) };
    let bound = expressions::bind(binder, operand)?;
    let Some((table, column)) = column_of(&binder.names, &binder.typing.frame, &bound) else {
        return Ok(None);
    };
    let zero = match bound.ty.kind {
        TypeKind::Date => Datum::from(Date::default()),
        TypeKind::DateTime { .. } => Datum::from(DateTime::default()),
        _ => return Ok(None),
    };
    let model = table.model.as_ref().and_then(|model| model.columns.get(column));
    if model.is_none_or(|column| column.ty.nullable) {
        return Ok(None);
    }
    let may_be_null = table.nullable;
    let zero = expression_builders::literal(zero, bound.ty.clone());
    let is_zero = Expression {
        kind: ExpressionKind::Compare {
            operator: CompareOperator::Equal,
            kind: ComparisonKind::DateTime,
            sides: Box::new([bound.clone(), zero]),
        },
        ty: SqlType::boolean().with_nullable(may_be_null),
    };
    Ok(Some(match may_be_null {
        true => expression::or(vec![is_zero, expression_builders::is(bound, IsTest::Null, false)]),
        false => is_zero,
    }))
}

/// `id IS NULL` as the whole `WHERE`, if it may mean the row that was inserted last.
pub(super) fn last_insert_test(binder: &mut Binder<'_>, expr: &Expr) -> Result<Option<Expression>> {
    let Some(operand) = tested(expr) else { return Ok(None) };
    let bound = expressions::bind(binder, operand)?;
    let is_generated =
        column_of(&binder.names, &binder.typing.frame, &bound).is_some_and(|(table, column)| {
            let model = table.model.as_ref().and_then(|model| model.columns.get(column));
            // For a column of an outer join, the test asks for its NULLs.
            !table.nullable && model.is_some_and(|column| column.auto_increment)
        });
    if !is_generated {
        return Ok(None);
    }
    let name = "sql_auto_is_null".into();
    let ty = binder.typing.context.variables.system("sql_auto_is_null", false)?;
    let setting = ExpressionKind::SystemVariable { name, global: false };
    let is_on =
        expression_builders::condition(&mut binder.typing, Expression { kind: setting, ty })?;
    let [one, two] = [
        expression_builders::call(&mut binder.typing, "LAST_INSERT_ID", vec![])?,
        expression_builders::call(&mut binder.typing, "LAST_INSERT_ID", vec![])?,
    ];
    let is_there = coerce::compare(
        &mut binder.typing,
        CompareOperator::Greater,
        one,
        expression_builders::integer(0),
    )?;
    let is_last = coerce::compare(&mut binder.typing, CompareOperator::Equal, bound, two)?;
    Ok(Some(expression::and(vec![is_on, is_there, is_last])))
}

/// The table of the innermost scope that a column belongs to, and the column's place in it.
fn column_of<'b>(
    names: &'b Names,
    frame: &'b Frame,
    bound: &Expression,
) -> Option<(&'b ScopeTable, usize)> {
    let ExpressionKind::Slot(slot) = bound.kind else { return None };
    names.scopes.last()?.tables.iter().find_map(|table| {
        let place = table.columns.iter().position(|column| match column.source {
            ColumnSource::Relation(relation, number) => {
                frame.relation(relation).slots.get(usize::from(number)) == Some(&Some(slot))
            }
            ColumnSource::Expression(_) => false,
        });
        place.map(|place| (table, place))
    })
}

/// The name tested by `IS NULL` or `ISNULL()`.
fn tested(expr: &Expr) -> Option<&Expr> {
    let is_name =
        |operand: &&Expr| matches!(operand, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
    operand_of(expr).filter(is_name)
}

fn operand_of(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::Is { expr, test: TruthTest::Null, negated: false } => Some(expr),
        Expr::Function(function)
            if function.schema.is_none() && function.name.eq_ignore_ascii_case("isnull") =>
        {
            match &function.arguments {
                Arguments::List(list) => match list.as_slice() {
                    [operand] => Some(operand),
                    _ => None,
                },
                Arguments::Wildcard => None,
            }
        }
        _ => None,
    }
}
