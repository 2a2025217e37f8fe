//! Aggregates: the query they belong to, their types, and the effect of grouping on other columns.
//!
//! ```text
//!   SELECT a, SUM(b) FROM t GROUP BY a       groups [slot a], aggregates [SUM(b) → slot 2]
//!   SELECT id, n, COUNT(*) FROM t GROUP BY id    n depends on id, the key: ANY_VALUE(n) → n's slot
//! ```
//!
//! A column that is grouped by, or functionally depends on the groups, keeps its slot: the
//! aggregate puts the group's value there. Expressions and subqueries above it therefore stay
//! unchanged.

use std::sync::Arc;

use firn_sql_functions::{AggregateFunction, ResolveContext, resolve_aggregate};
use firn_sql_grammar::ast::{Arguments, Expr, Function, Value};
use firn_sql_logical::expression::equivalence::{same_expression, same_list};
use firn_sql_logical::expression::visit::{SlotSet, reads_of};
use firn_sql_logical::expression::{AggregateCall, Expression, ExpressionKind, Slot, SortKey};
use firn_sql_types::error::{ErrorKind, Result, SqlError};
use firn_sql_types::{Datum, SqlType, TypeKind};

use super::function::json_truth;
use super::mean;
use super::scope::Clause;
use super::{
    Binder, Frame, Names, Typing, coerce, display, expression_builders, expressions, literal,
    parameter,
};

/// The aggregate with a name in capital letters.
#[must_use]
pub(crate) fn named(name: &str) -> Option<AggregateFunction> {
    Some(match name {
        "COUNT" => AggregateFunction::Count,
        "SUM" => AggregateFunction::Sum,
        "AVG" => AggregateFunction::Average,
        "MIN" => AggregateFunction::Min,
        "MAX" => AggregateFunction::Max,
        "BIT_AND" => AggregateFunction::BitAnd,
        "BIT_OR" => AggregateFunction::BitOr,
        "BIT_XOR" => AggregateFunction::BitXor,
        "GROUP_CONCAT" => AggregateFunction::GroupConcat,
        "STD" | "STDDEV" | "STDDEV_POP" => AggregateFunction::StandardDeviation,
        "STDDEV_SAMP" => AggregateFunction::SampleStandardDeviation,
        "VARIANCE" | "VAR_POP" => AggregateFunction::Variance,
        "VAR_SAMP" => AggregateFunction::SampleVariance,
        "JSON_ARRAYAGG" => AggregateFunction::JsonArray,
        "JSON_OBJECTAGG" => AggregateFunction::JsonObject,
        _ => return None,
    })
}

/// A call of an aggregate, as the slot of its result.
pub(crate) fn aggregate(
    binder: &mut Binder<'_>,
    of: AggregateFunction,
    function: &Function,
) -> Result<Expression> {
    let level = aggregate_scope(&binder.names)?;
    binder.names.scopes[level].in_aggregate = true;
    let call = binder.in_clause(Clause::FieldList, |binder| aggregate_call(binder, of, function));
    binder.names.scopes[level].in_aggregate = false;
    let call = call?;
    let level = scope_of_arguments(&binder.names, &binder.typing.frame, &call, level);
    if !binder.names.scopes[level].allows_aggregates {
        return Err(misplaced());
    }
    Ok(keep_aggregate(binder, level, call))
}

/// The scope whose aggregates may be used here.
fn aggregate_scope(names: &Names) -> Result<usize> {
    let last = names.scopes.len().checked_sub(1);
    let level = last.filter(|level| !names.scopes[*level].in_aggregate);
    level.ok_or_else(misplaced)
}

/// An aggregate whose arguments read only an outer query belongs to that query.
fn scope_of_arguments(names: &Names, frame: &Frame, call: &AggregateCall, level: usize) -> usize {
    let read = reads_of(&call.arguments);
    if read.is_empty() || reads_scope(names, frame, &read, level) {
        return level;
    }
    let outer = (0..level).rev().find(|outer| {
        names.scopes[*outer].allows_aggregates && reads_scope(names, frame, &read, *outer)
    });
    outer.unwrap_or(level)
}

fn reads_scope(names: &Names, frame: &Frame, read: &SlotSet, level: usize) -> bool {
    let tables = &names.scopes[level].tables;
    let mut columns = tables.iter().flat_map(|table| &table.columns);
    columns.any(|column| match &column.source {
        super::scope::ColumnSource::Relation(relation, number) => {
            let slots = &frame.relation(*relation).slots;
            let slot = slots.get(usize::from(*number)).copied().flatten();
            slot.is_some_and(|slot| read.contains(slot))
        }
        super::scope::ColumnSource::Expression(value) => !reads_of([value]).is_disjoint(read),
    })
}

fn keep_aggregate(binder: &mut Binder<'_>, level: usize, mut call: AggregateCall) -> Expression {
    let shown = call.ty.clone();
    mean::widen(&mut call);
    let present =
        binder.names.scopes[level].aggregates.iter().find(|other| same_call(other, &call));
    if let Some(present) = present {
        return mean::shown(expression_builders::slot(present.output, present.ty.clone()), shown);
    }
    let output = binder.typing.frame.new_slot(None);
    let ty = call.ty.clone();
    let display = display::of_aggregate(&binder.typing, call.function, &call.arguments, &ty);
    binder.typing.displays.set_slot(output, display);
    binder.names.scopes[level].aggregates.push(AggregateCall { output, ..call });
    mean::shown(expression_builders::slot(output, ty), shown)
}

/// A call of an aggregate whose result has no slot yet.
pub(crate) fn aggregate_call(
    binder: &mut Binder<'_>,
    of: AggregateFunction,
    function: &Function,
) -> Result<AggregateCall> {
    let mut call = AggregateCall {
        function: of,
        arguments: Vec::new(),
        distinct: function.distinct,
        order: Vec::new(),
        separator: Arc::from(&b","[..]),
        output: Slot(0),
        ty: SqlType::bigint(),
    };
    match &function.arguments {
        Arguments::List(list) => {
            for (at, expr) in list.iter().enumerate() {
                let bound = expressions::bind_single(binder, expr)?;
                call.arguments.push(match (of, at) {
                    (AggregateFunction::JsonArray, 0) | (AggregateFunction::JsonObject, 1) => {
                        json_truth(bound, expr)
                    }
                    _ if of.takes_numbers() => literal::as_number(binder.typing.context, bound),
                    _ => bound,
                });
            }
        }
        Arguments::Wildcard if of == AggregateFunction::Count => {
            call.function = AggregateFunction::CountRows;
        }
        Arguments::Wildcard => {
            return Err(SqlError::not_supported("this argument of an aggregate"));
        }
    }
    aggregate_clauses(binder, function, &mut call)?;
    if of.takes_numbers() {
        let arguments = std::mem::take(&mut call.arguments).into_iter();
        let number = SqlType::double();
        call.arguments =
            arguments.map(|one| parameter::inferred(binder.typing.context, one, &number)).collect();
    }
    if call.distinct && matches!(of, AggregateFunction::Sum | AggregateFunction::Average) {
        let arguments = std::mem::take(&mut call.arguments).into_iter();
        let stored = arguments.map(|one| number_as_stored(&mut binder.typing, one));
        call.arguments = stored.collect::<Result<_>>()?;
    }
    if matches!(
        of,
        AggregateFunction::BitAnd | AggregateFunction::BitOr | AggregateFunction::BitXor
    ) {
        let arguments = std::mem::take(&mut call.arguments).into_iter();
        let bytes = arguments.map(|one| combined_bytes(&mut binder.typing, one));
        call.arguments = bytes.collect::<Result<_>>()?;
    }
    type_aggregate(&mut binder.typing, &mut call)?;
    Ok(call)
}

/// An argument of `BIT_AND`, `BIT_OR` and `BIT_XOR`. NULL that is not written as such is a text of
/// no bytes; longer texts of bytes than a group keeps are refused.
fn combined_bytes(typing: &mut Typing<'_>, argument: Expression) -> Result<Expression> {
    const MOST_BYTES: u32 = 511;
    if argument.ty.kind == TypeKind::Null && !matches!(argument.kind, ExpressionKind::Literal(_)) {
        return Ok(coerce::cast_to(typing, argument, SqlType::varbinary(0)));
    }
    let length = display::display(typing, &argument).length;
    match argument.ty.kind.is_binary() && length > MOST_BYTES {
        true => Err(SqlError::new(
            3514,
            "Bitwise aggregate functions cannot accept arguments longer than 511 bytes; \
             consider using the SUBSTRING() function",
        )),
        false => Ok(argument),
    }
}

/// A value whose distinct numbers are summed: a text is stored as a double first.
fn number_as_stored(typing: &mut Typing<'_>, value: Expression) -> Result<Expression> {
    match value.ty.kind.is_string() {
        true => expression_builders::call(typing, "STORED NUMBER", vec![value]),
        false => Ok(value),
    }
}

fn aggregate_clauses(
    binder: &mut Binder<'_>,
    function: &Function,
    call: &mut AggregateCall,
) -> Result<()> {
    for key in &function.order_by {
        let expression = match positional(&key.expr) {
            Some(place) => {
                let argument = call.arguments.get(place.wrapping_sub(1)).cloned();
                argument.ok_or_else(|| unknown_position(place, "order clause"))?
            }
            None => expressions::bind_single(binder, &key.expr)?,
        };
        call.order.push(SortKey { expression, descending: key.ascending == Some(false) });
    }
    if let Some(separator) = &function.separator {
        call.separator = Arc::from(separator.as_bytes());
    }
    match function.returning {
        Some(_) => Err(SqlError::not_supported("this clause of an aggregate")),
        None => Ok(()),
    }
}

fn type_aggregate(typing: &mut Typing<'_>, call: &mut AggregateCall) -> Result<()> {
    let wanted = match call.function {
        AggregateFunction::CountRows => 0..=0,
        AggregateFunction::Count if call.distinct => 1..=usize::MAX,
        AggregateFunction::GroupConcat => 1..=usize::MAX,
        AggregateFunction::JsonObject => 2..=2,
        _ => 1..=1,
    };
    if !wanted.contains(&call.arguments.len()) {
        return Err(SqlError::syntax(")", 1));
    }
    let types: Vec<SqlType> = call.arguments.iter().map(|one| one.ty.clone()).collect();
    let constants: Vec<Option<Datum>> =
        call.arguments.iter().map(expression_builders::constant_of).collect();
    let signature = {
        let evaluation = typing.context.evaluation;
        let context = ResolveContext {
            sql_mode: evaluation.sql_mode,
            connection_collation: evaluation.connection_collation,
            div_precision_increment: evaluation.div_precision_increment,
            constants: &constants,
        };
        resolve_aggregate(call.function, &types, &context)?
    };
    let arguments = std::mem::take(&mut call.arguments).into_iter();
    let wanted = signature.arguments.into_iter();
    call.arguments =
        arguments.zip(wanted).map(|(one, ty)| coerce::cast_to(typing, one, ty)).collect();
    call.ty = signature.result;
    Ok(())
}

fn misplaced() -> SqlError {
    let message = "Invalid use of group function";
    SqlError::of_kind(ErrorKind::MisplacedAggregate, 1111, message)
}

/// `ORDER BY 2`
pub(crate) fn positional(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Value(Value::Number(text)) => text.parse().ok(),
        _ => None,
    }
}

/// Error 1054 for a position.
pub(crate) fn unknown_position(place: usize, clause: &str) -> SqlError {
    SqlError::unknown_column(&place.to_string(), clause)
}

fn same_call(one: &AggregateCall, other: &AggregateCall) -> bool {
    let same_order = one.order.len() == other.order.len()
        && one.order.iter().zip(&other.order).all(|(a, b)| {
            a.descending == b.descending && same_expression(&a.expression, &b.expression)
        });
    one.function == other.function
        && one.distinct == other.distinct
        && one.separator == other.separator
        && same_order
        && same_list(&one.arguments, &other.arguments)
}
