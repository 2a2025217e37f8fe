//! Constants, evaluated when the statement is planned.

use std::cell::RefCell;

use firn_sql_collation::{self as collation, LikePattern};
use firn_sql_functions::{Call, Function, Volatility};
use firn_sql_types::error::{Condition, Result};
use firn_sql_types::temporal::delimiter::is_of_delimiter;
use firn_sql_types::{ComparisonKind, Datum, EvaluationContext, cast};

use super::{CompareOperator, Expression, ExpressionKind, IsTest, visit};

/// The longest text that a constant may become: a plan keeps its constants, and may itself be
/// cached.
const MAX_TEXT_BYTES: usize = 64 << 10;

/// Folds a call of a pure function, or a cast, over literals into its value; returns any other
/// expression unchanged. Anything that fails or warns is left for the execution, and so are calls
/// that return bytes: a literal of bytes is a number beside numbers. `conditions` are those of
/// planning.
#[must_use]
pub fn fold(
    expression: Expression,
    context: &EvaluationContext,
    conditions: &RefCell<Vec<Condition>>,
) -> Expression {
    let value = match &expression.kind {
        ExpressionKind::Call { function, arguments }
            if function.volatility == Volatility::Pure && !expression.ty.kind.is_binary() =>
        {
            let Some(values) = literals(arguments) else { return expression };
            let is_null_unread = function.strict && !function.reads_before_null;
            if is_null_unread && values.iter().any(Datum::is_null) {
                Ok(Datum::Null)
            } else {
                let types: Vec<_> = arguments.iter().map(|one| &one.ty).collect();
                quietly(context, conditions, |context| {
                    let call = Call { context, arguments: &types, result: &expression.ty };
                    (function.evaluate)(&values, &call)
                })
            }
        }
        ExpressionKind::Cast(inner) => match &inner.kind {
            ExpressionKind::Literal(datum) if is_short(datum) => {
                quietly(context, conditions, |context| {
                    cast::cast(datum, &inner.ty, &expression.ty, context)
                })
            }
            _ => return expression,
        },
        _ => return expression,
    };
    match value {
        Ok(value) => {
            let ty = expression.ty.with_nullable(value.is_null());
            Expression { kind: ExpressionKind::Literal(value), ty }
        }
        Err(_) => expression,
    }
}

/// The value of calls, casts and choices over literals, whatever they warn of; `None` for anything
/// else, and for what fails.
#[must_use]
pub fn constant_value(expression: &Expression, context: &EvaluationContext) -> Option<Datum> {
    match &expression.kind {
        ExpressionKind::Literal(datum) if is_short(datum) => Some(datum.clone()),
        _ if is_constant(expression) => value_under(expression, &quiet(context)).ok().flatten(),
        _ => None,
    }
}

/// What the evaluation of such a constant warns of.
///
/// # Errors
/// Those of the evaluation.
pub fn warnings_of_constant(
    expression: &Expression,
    context: &EvaluationContext,
) -> Result<Vec<Condition>> {
    let is_worked_out = matches!(
        expression.kind,
        ExpressionKind::Call { .. }
            | ExpressionKind::Cast(_)
            | ExpressionKind::Case { .. }
            | ExpressionKind::And(_)
    );
    if !is_worked_out || !is_constant(expression) {
        return Ok(Vec::new());
    }
    let quiet = quiet(context);
    Ok(match value_under(expression, &quiet)? {
        Some(_) => quiet.take_conditions(),
        None => Vec::new(),
    })
}

/// Whether [`value_under`] knows all parts of an expression.
fn is_constant(expression: &Expression) -> bool {
    !visit::any(expression, &|one| match &one.kind {
        ExpressionKind::Literal(datum) => !is_short(datum),
        ExpressionKind::Call { function, .. } => !is_worked_out(function),
        ExpressionKind::Cast(_)
        | ExpressionKind::Case { .. }
        | ExpressionKind::Coalesce(_)
        | ExpressionKind::Compare { .. }
        | ExpressionKind::InList { .. }
        | ExpressionKind::Like { .. }
        | ExpressionKind::Is { .. }
        | ExpressionKind::Not(_)
        | ExpressionKind::Xor(_)
        | ExpressionKind::And(_)
        | ExpressionKind::Or(_) => false,
        _ => true,
    })
}

/// Whether a call of a function over constants is one. What stands for an argument that is no
/// document fails in execution, and here.
fn is_worked_out(function: &Function) -> bool {
    function.volatility == Volatility::Pure || function.name.ends_with("NO DOCUMENT")
}

/// The value of a constant expression; `None` for any other.
fn value_under(expression: &Expression, context: &EvaluationContext) -> Result<Option<Datum>> {
    let all = |list: &[Expression]| -> Result<Option<Vec<Datum>>> {
        list.iter().map(|one| value_under(one, context)).collect()
    };
    Ok(match &expression.kind {
        ExpressionKind::Literal(datum) if is_short(datum) => Some(datum.clone()),
        ExpressionKind::Call { function, arguments } if is_worked_out(function) => {
            let Some(values) = all(arguments)? else { return Ok(None) };
            let types: Vec<_> = arguments.iter().map(|one| &one.ty).collect();
            let call = Call { context, arguments: &types, result: &expression.ty };
            Some((function.evaluate)(&values, &call)?)
        }
        ExpressionKind::Cast(inner) => match value_under(inner, context)? {
            Some(value) => Some(cast::cast(&value, &inner.ty, &expression.ty, context)?),
            None => None,
        },
        ExpressionKind::Case { branches, otherwise } => {
            for (condition, value) in branches {
                match value_under(condition, context)? {
                    None => return Ok(None),
                    Some(Datum::Null) => {}
                    Some(value) if is_zero(&value) => {}
                    Some(_) => return value_under(value, context),
                }
            }
            match otherwise {
                Some(value) => return value_under(value, context),
                None => Some(Datum::Null),
            }
        }
        ExpressionKind::Coalesce(list) => all(list)?
            .map(|values| values.into_iter().find(|value| !value.is_null()).unwrap_or_default()),
        ExpressionKind::Not(operand) => value_under(operand, context)?.map(|value| match value {
            Datum::Null => Datum::Null,
            value => Datum::from_bool(Some(is_zero(&value))),
        }),
        ExpressionKind::Xor(sides) => all(&sides[..])?.map(|values| match &values[..] {
            [left, right] if !left.is_null() && !right.is_null() => {
                Datum::from_bool(Some(is_zero(left) != is_zero(right)))
            }
            _ => Datum::Null,
        }),
        ExpressionKind::And(operands) => return decided(operands, false, context),
        ExpressionKind::Or(operands) => return decided(operands, true, context),
        ExpressionKind::Is { operand, test, negated } => {
            value_under(operand, context)?.map(|value| {
                let holds = match test {
                    IsTest::Null => value.is_null(),
                    IsTest::True => !value.is_null() && !is_zero(&value),
                    IsTest::False => !value.is_null() && is_zero(&value),
                };
                Datum::from_bool(Some(holds != *negated))
            })
        }
        ExpressionKind::Compare { operator, kind, sides } => {
            all(&sides[..])?.map(|values| compared(*operator, *kind, &values[0], &values[1]))
        }
        ExpressionKind::InList { operand, list, kind, negated } => {
            let (sought, items) = (value_under(operand, context)?, all(list)?);
            sought.zip(items).map(|(sought, items)| {
                let equal = |item| compared(CompareOperator::Equal, *kind, &sought, item);
                let found: Vec<Datum> = items.iter().map(equal).collect();
                match () {
                    () if found.contains(&Datum::TRUE) => Datum::from_bool(Some(!negated)),
                    () if found.contains(&Datum::Null) => Datum::Null,
                    () => Datum::from_bool(Some(*negated)),
                }
            })
        }
        ExpressionKind::Like { text, pattern, collation, escape, negated } => {
            let values = (value_under(text, context)?, value_under(pattern, context)?);
            let (Some(text), Some(pattern)) = values else { return Ok(None) };
            let (Datum::Text(text), Datum::Text(pattern)) = (text, pattern) else {
                return Ok(Some(Datum::Null));
            };
            let pattern = LikePattern::new(collation::get(*collation), &pattern, *escape);
            Some(Datum::from_bool(Some(pattern.matches(&text) != *negated)))
        }
        _ => None,
    })
}

/// `AND`, or `OR` if `decides`: the first operand with this truth value decides.
fn decided(
    operands: &[Expression],
    decides: bool,
    context: &EvaluationContext,
) -> Result<Option<Datum>> {
    let mut truth = Datum::from_bool(Some(!decides));
    for operand in operands {
        match value_under(operand, context)? {
            None => return Ok(None),
            Some(Datum::Null) => truth = Datum::Null,
            Some(value) if is_zero(&value) != decides => {
                return Ok(Some(Datum::from_bool(Some(decides))));
            }
            Some(_) => {}
        }
    }
    Ok(Some(truth))
}

/// `one operator other`; a row has no value here.
fn compared(operator: CompareOperator, kind: ComparisonKind, one: &Datum, other: &Datum) -> Datum {
    let truth = match operator {
        CompareOperator::NullSafeEqual if one.is_null() || other.is_null() => {
            Some(one.is_null() && other.is_null())
        }
        _ => kind.compare(one, other).map(|ordering| operator.holds(ordering)),
    };
    Datum::from_bool(truth)
}

fn is_zero(value: &Datum) -> bool {
    match value {
        Datum::Int(number) => *number == 0,
        Datum::UInt(number) => *number == 0,
        Datum::Double(number) => *number == 0.0,
        Datum::Decimal(number) => number.is_zero(),
        _ => false,
    }
}

/// Runs `evaluate` so that its warnings do not become the statement's; a warning counts as a
/// failure. One of a delimiter does not: the value is a constant, and `conditions` has the warning.
fn quietly<E>(
    context: &EvaluationContext,
    conditions: &RefCell<Vec<Condition>>,
    evaluate: impl FnOnce(&EvaluationContext) -> std::result::Result<Datum, E>,
) -> std::result::Result<Datum, Option<E>> {
    let quiet = quiet(context);
    let value = evaluate(&quiet).map_err(Some)?;
    if quiet.warning_count() > 0 {
        let told = quiet.take_conditions();
        if !told.iter().all(is_of_delimiter) {
            return Err(None);
        }
        conditions.borrow_mut().extend(told);
    }
    Ok(value)
}

/// The context of the session and the statement, with a separate list of conditions.
#[allow(clippy::field_reassign_with_default)] // some fields are private to its module
fn quiet(context: &EvaluationContext) -> EvaluationContext {
    let mut quiet = EvaluationContext::default();
    quiet.sql_mode = context.sql_mode;
    quiet.time_zone = context.time_zone.clone();
    quiet.statement_time_us = context.statement_time_us;
    quiet.div_precision_increment = context.div_precision_increment;
    // A longer text causes a warning here, so it is evaluated at execution.
    quiet.max_allowed_packet_bytes = context.max_allowed_packet_bytes.min(MAX_TEXT_BYTES as u64);
    quiet.connection_collation = context.connection_collation;
    quiet.default_week_format = context.default_week_format;
    quiet
}

fn literals(arguments: &[Expression]) -> Option<Vec<Datum>> {
    let values = arguments.iter().map(|argument| match &argument.kind {
        ExpressionKind::Literal(datum) if is_short(datum) => Some(datum.clone()),
        _ => None,
    });
    values.collect()
}

fn is_short(datum: &Datum) -> bool {
    datum.as_bytes().is_none_or(|bytes| bytes.len() <= MAX_TEXT_BYTES)
}

/// Whether a condition is false or NULL for every row.
#[must_use]
pub fn is_never_true(condition: &Expression) -> bool {
    matches!(condition.kind, ExpressionKind::Literal(Datum::Null | Datum::Int(0)))
}
