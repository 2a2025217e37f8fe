//! Constants beside dates, times and years are compared as a column would store them.
//!
//! ```text
//!   date_column = 240229          Compare(DateTime, date_column, 2024-02-29)
//!   date_column < 5               Compare(Integer, Cast(date_column → BIGINT), 5)
//!   date_column = 'abc'           error 1525 Incorrect DATE value: 'abc'
//!   time_column = '10:11'         Compare(Time, time_column, 10:11:00)
//!   time_column = 'abc'           Compare(Text, Cast(time_column → CHAR), 'abc')
//! ```
//!
//! A parameter is judged by the value with which the statement is planned. The plan then holds only
//! for values of that kind, which a [`Premise`] records; a plan for another value is not cached. In
//! such a plan, a parameter that stands for a literal of the text is that literal again.

use firn_sql_collation::{self as collation, Charset};
use firn_sql_logical::expression::visit::any;
use firn_sql_logical::expression::{Expression, ExpressionKind, fold};
use firn_sql_logical::{PlanContext, Premise};
use firn_sql_types::error::{Condition, Level, Result, SqlError};
use firn_sql_types::temporal::{DateRules, delimiter};
use firn_sql_types::{
    ComparisonKind, Datum, IntWidth, JsonValue, SqlMode, SqlType, TypeKind, cast,
};

use super::{Frame, PlanFacts, Typing, coerce, expression_builders};

/// What a value is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beside {
    /// One other value.
    Value,
    /// The values of a list, one after the other.
    List,
    /// The value at the same place of a row, which is before or after this one: neither is read as
    /// a column would store it.
    Row,
}

/// A constant as the column beside it would store it; otherwise the value itself.
///
/// # Errors
/// 1292 in a strict statement that writes, if the column cannot hold it.
pub(super) fn as_held(
    typing: &mut Typing<'_>,
    value: Expression,
    other: &Expression,
    beside: Beside,
) -> Result<Expression> {
    let is_column = matches!(other.kind, ExpressionKind::Slot(_));
    if beside == Beside::Row || !is_column || !concerns(&value.ty, &other.ty) {
        return Ok(value);
    }
    if other.ty.kind == TypeKind::Year {
        match value.ty.kind {
            // In a list, a number with a fraction is no year.
            _ if beside == Beside::List && is_fraction(typing.context, &value) => {
                return Ok(value);
            }
            // The year of the statement is that of this execution.
            TypeKind::Time { .. } => typing.facts.is_cacheable = false,
            _ => {}
        }
    }
    let column = &match (beside, &other.ty.kind) {
        // A value searched in a list keeps all of its digits.
        (Beside::List, TypeKind::Time { .. }) => SqlType::new(TypeKind::Time { fsp: 6 }),
        _ => other.ty.clone(),
    };
    let held = constant(typing.context, &value)
        .map(|constant| cast::held(constant, &value.ty, column, typing.context.evaluation));
    let wanted = held_type(column);
    if matches!(held, Some(None)) {
        warn_of_unfit(typing, &value, other, beside)?;
    }
    Ok(match (held, &value.kind) {
        (Some(Some(_)), ExpressionKind::Parameter(number)) => {
            suppose(&mut typing.facts, *number, &value.ty, column);
            coerce::cast_to(typing, value, wanted)
        }
        (Some(Some(held)), _) => {
            warn_of_delimiter(typing.context, &value, column);
            expression_builders::literal(held, wanted)
        }
        (Some(None), ExpressionKind::Parameter(_)) => as_written(typing, value),
        _ => value,
    })
}

/// Whether a constant is a number with digits after the point that are not 0.
fn is_fraction(context: &PlanContext<'_>, value: &Expression) -> bool {
    value.ty.kind.is_numeric()
        && constant(context, value)
            .and_then(|one| cast::to_double(one, &value.ty, context.evaluation).ok())
            .is_some_and(|number| number.fract() != 0.0)
}

/// As [`as_held`], for a number beside a column of dates.
///
/// # Errors
/// As [`as_held`].
pub(super) fn number_as_held(
    typing: &mut Typing<'_>,
    value: Expression,
    other: &Expression,
) -> Result<Expression> {
    match value.ty.kind.is_numeric() && other.ty.kind.has_date() {
        true => as_held(typing, value, other, Beside::Value),
        false => Ok(value),
    }
}

/// A parameter whose text is a large whole number beside a column of `BIGINT`: it is a literal,
/// which is compared exactly and not as a double. The plan holds for the other texts.
pub(super) fn whole_as_written(
    typing: &mut Typing<'_>,
    value: Expression,
    other: &Expression,
) -> Expression {
    let ExpressionKind::Parameter(number) = value.kind else { return value };
    let is_large = matches!(other.ty.kind, TypeKind::Integer { width: IntWidth::Eight, .. });
    let is_column = matches!(other.kind, ExpressionKind::Slot(_));
    if !is_large || !is_column || !value.ty.kind.is_text() {
        return value;
    }
    let held = constant(typing.context, &value)
        .map(|constant| cast::held(constant, &value.ty, &other.ty, typing.context.evaluation));
    match held {
        Some(Some(_)) => {
            suppose(&mut typing.facts, number, &value.ty, &other.ty);
            value
        }
        Some(None) => as_written(typing, value),
        None => value,
    }
}

/// Whether a constant is what a column of times stores, so that the column can be compared with it
/// as it is.
pub(super) fn is_time(context: &PlanContext<'_>, value: &Expression) -> bool {
    let time = SqlType::new(TypeKind::Time { fsp: 6 });
    let constant = constant(context, value);
    constant.is_some_and(|one| cast::held(one, &value.ty, &time, context.evaluation).is_some())
}

/// A document that is no number beside a column of `BIGINT`, which would store 0 for it; and any
/// document beside a column of `TIME`, which stores the time of a text, and 0 for what is none.
pub(super) fn document_beside(
    context: &PlanContext<'_>,
    value: Expression,
    other: &Expression,
) -> Expression {
    let ExpressionKind::Literal(Datum::Json(document)) = &value.kind else { return value };
    if !matches!(other.kind, ExpressionKind::Slot(_)) {
        return value;
    }
    let is_read = match (&**document, &other.ty.kind) {
        (JsonValue::Array(_) | JsonValue::Object(_) | JsonValue::Null, _) => false,
        (JsonValue::Time(_) | JsonValue::Date(_) | JsonValue::DateTime(_), _) => true,
        (JsonValue::String(text), TypeKind::Time { fsp }) => {
            let text = Datum::text(text.as_bytes());
            let ty = SqlType::long_text(context.evaluation.connection_collation);
            let column = SqlType::new(TypeKind::Time { fsp: *fsp });
            if let Some(time) = cast::held(&text, &ty, &column, context.evaluation) {
                return expression_builders::literal(time, column);
            }
            has_digits(text.as_bytes().unwrap_or_default())
        }
        (JsonValue::String(text), _) => has_digits(text.as_bytes()),
        (_, TypeKind::Time { .. }) => false,
        _ => true,
    };
    if is_read {
        return value;
    }
    let (kind, stored) = match other.ty.kind {
        TypeKind::Integer { width: IntWidth::Eight, unsigned } => {
            ("INTEGER", if unsigned { Datum::UInt(0) } else { Datum::Int(0) })
        }
        TypeKind::Time { .. } => ("TIME", Datum::Time(0)),
        _ => return value,
    };
    let message = format!("Invalid JSON value for CAST to {kind} from column json at row 1");
    let condition = Condition { level: Level::Warning, code: 3156, message };
    context.conditions.borrow_mut().push(condition);
    expression_builders::literal(stored, SqlType::new(other.ty.kind.clone()))
}

/// Warns of a delimiter in the text of a constant that a column stores as a date or time.
fn warn_of_delimiter(context: &PlanContext<'_>, value: &Expression, column: &SqlType) {
    let Some(text) = constant(context, value).and_then(Datum::as_bytes) else { return };
    let delimiter = match column.kind {
        TypeKind::Time { .. } => delimiter::in_time(text, true),
        TypeKind::Year => None,
        _ => delimiter::in_date_time(text),
    };
    if let Some(delimiter) = delimiter {
        context.conditions.borrow_mut().push(delimiter.condition(text, 1));
    }
}

fn has_digits(text: &[u8]) -> bool {
    text.iter().any(u8::is_ascii_digit)
}

/// Whether a text is a number with an exponent.
fn has_exponent(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    let has_exponent = text.iter().any(|byte| matches!(byte, b'e' | b'E'));
    let begins_with_digit = text.first().is_some_and(u8::is_ascii_digit);
    has_exponent
        && begins_with_digit
        && std::str::from_utf8(text).is_ok_and(|text| text.parse::<f64>().is_ok())
}

/// Whether a column stores a number as the zero date: one that has no digit there, and as a
/// `DATETIME` also a fraction of a second with no more digits than the column has.
fn is_zero_date(number: f64, column: &TypeKind) -> bool {
    const NEARLY: f64 = 1e-9;
    let units = number * 10_f64.powi(column.fsp().into());
    let is_fraction = (0.0..1.0).contains(&number) && (units - units.round()).abs() < NEARLY;
    let holds_fraction = matches!(column, TypeKind::DateTime { .. }) && is_fraction;
    number >= 0.0 && (units.round() == 0.0 || holds_fraction)
}

/// Warns of a constant that a column of dates or times cannot store.
fn warn_of_unfit(
    typing: &Typing<'_>,
    value: &Expression,
    column: &Expression,
    beside: Beside,
) -> Result<()> {
    let kind = match column.ty.kind {
        TypeKind::Date => "date",
        TypeKind::Time { .. } => "time",
        _ if column.ty.kind.has_date() => "datetime",
        _ => return Ok(()),
    };
    let Some(constant) = constant(typing.context, value) else { return Ok(()) };
    let context = typing.context.evaluation;
    let is_zero = value.ty.kind.is_numeric()
        && cast::to_double(constant, &value.ty, context)
            .is_ok_and(|number| is_zero_date(number, &column.ty.kind));
    // A text of spaces can be stored as a time, but not compared with one, and so can a number with
    // an exponent.
    let is_quiet = matches!(column.ty.kind, TypeKind::Time { .. })
        && constant
            .as_bytes()
            .is_some_and(|text| text.trim_ascii().is_empty() || has_exponent(text));
    if beside == Beside::List
        || is_quiet
        || is_zero && !context.sql_mode.contains(SqlMode::NO_ZERO_DATE)
    {
        return Ok(());
    }
    let shown = cast::to_binary(constant, &value.ty, typing.context.evaluation);
    let (shown, name) = (shown.to_str_lossy(), column_name(&typing.frame, column));
    let message = format!("Incorrect {kind} value: '{shown}' for column '{name}' at row 1");
    if typing.refuses_unfit() {
        return Err(SqlError::new(1292, message));
    }
    let condition = Condition { level: Level::Warning, code: 1292, message };
    typing.context.conditions.borrow_mut().push(condition);
    Ok(())
}

/// Warns of the numbers of a constant list that are no dates or times, where a date or a time is
/// searched in it. A plan with such a warning is not cached, for a literal may be a parameter.
pub(super) fn warn_of_numbers(typing: &mut Typing<'_>, sought: &TypeKind, list: &[Expression]) {
    if !sought.is_temporal() {
        return;
    }
    let context = typing.context.evaluation;
    let is_fit = |number: &Datum, ty: &SqlType| match sought {
        TypeKind::Date => cast::date_of_number(number, ty, DateRules::LENIENT)
            .is_none_or(|parsed| parsed.value.is_some()),
        TypeKind::Time { .. } => {
            let time = SqlType::new(TypeKind::Time { fsp: 6 });
            cast::held(number, ty, &time, context).is_some()
        }
        _ => cast::is_readable_date(number, ty, context),
    };
    let mut unfit = Vec::new();
    for item in list {
        let is_null = matches!(item.kind, ExpressionKind::Literal(Datum::Null));
        match constant(typing.context, item).filter(|_| item.ty.kind.is_numeric()) {
            Some(number) if !is_fit(number, &item.ty) => unfit.push(number.plain_text()),
            None if !is_null => return,
            _ => {}
        }
    }
    if unfit.is_empty() {
        return;
    }
    let kind = if matches!(sought, TypeKind::Time { .. }) { "time" } else { "datetime" };
    typing.facts.is_cacheable = false;
    typing.context.conditions.borrow_mut().extend(unfit.into_iter().map(|number| Condition {
        level: Level::Warning,
        code: 1292,
        message: format!("Incorrect {kind} value: '{number}'"),
    }));
}

fn column_name<'b>(frame: &'b Frame, column: &Expression) -> &'b str {
    let ExpressionKind::Slot(slot) = column.kind else { return "" };
    frame.table_column(slot).map_or("", |column| &column.name)
}

/// A parameter whose value a column cannot store: the plan is for this value alone, and a literal
/// of the text is a literal again.
pub(super) fn as_written(typing: &mut Typing<'_>, parameter: Expression) -> Expression {
    typing.facts.is_cacheable = false;
    match constant(typing.context, &parameter).filter(|_| typing.context.parameters_are_literals) {
        Some(value) => expression_builders::literal(value.clone(), parameter.ty),
        None => parameter,
    }
}

/// Refuses, with error 3854, the value of a parameter beside a text whose character set does not
/// have all of its characters. The plan holds for the other values.
pub(super) fn suppose_text(
    typing: &mut Typing<'_>,
    kind: ComparisonKind,
    side: &Expression,
) -> Result<()> {
    let (ComparisonKind::Text(id), ExpressionKind::Parameter(number)) = (kind, &side.kind) else {
        return Ok(());
    };
    let charset = collation::get(id).charset;
    let is_all = charset == Charset::Binary || charset.is_all_of_unicode();
    let Some(text) = constant(typing.context, side).filter(|_| !is_all && side.ty.kind.is_text())
    else {
        return Ok(());
    };
    let column = SqlType::varchar(0, id);
    if cast::held(text, &side.ty, &column, typing.context.evaluation).is_none() {
        return Err(SqlError::cannot_convert(text.as_bytes().unwrap_or_default(), charset.name()));
    }
    suppose(&mut typing.facts, *number, &side.ty, &column);
    Ok(())
}

/// Records that the plan holds only for values of a parameter that a column can store.
fn suppose(facts: &mut PlanFacts, parameter: u32, ty: &SqlType, column: &SqlType) {
    facts.premises.push(Premise { parameter, ty: ty.clone(), column: column.clone() });
}

/// A text that is compared with a date: an invalid date is the zero date. A parameter is NULL
/// then. A year is compared as a date without month and day.
pub(super) fn date_of_text(typing: &mut Typing<'_>, text: Expression) -> Result<Expression> {
    if text.ty.kind == TypeKind::Year {
        return expression_builders::call(typing, "DATE OF YEAR", vec![text]);
    }
    let text = known_date(typing, text);
    let is_text = text.ty.kind.is_string() || text.ty.kind.is_enum_or_set();
    if !is_text || matches!(text.kind, ExpressionKind::Parameter(_)) {
        return Ok(text);
    }
    let is_date = constant(typing.context, &text).is_some_and(|constant| {
        cast::held(constant, &text.ty, &moment(), typing.context.evaluation).is_some()
    });
    match is_date {
        true => Ok(coerce::cast_to(typing, text, moment())),
        false => expression_builders::call(typing, "DATE OF TEXT", vec![text]),
    }
}

/// A text that is compared with a date: a parameter whose value is none is the literal that it
/// stands for.
fn known_date(typing: &mut Typing<'_>, text: Expression) -> Expression {
    let ExpressionKind::Parameter(number) = text.kind else { return text };
    if !text.ty.kind.is_string() {
        return text;
    }
    let held = constant(typing.context, &text)
        .map(|constant| cast::held(constant, &text.ty, &moment(), typing.context.evaluation));
    match held {
        Some(Some(_)) => {
            suppose(&mut typing.facts, number, &text.ty, &moment());
            text
        }
        Some(None) => as_written(typing, text),
        None => text,
    }
}

/// A text that an operator compares with a date: if neither is constant, their days are
/// compared, otherwise day and time.
pub(super) fn day_beside_date(
    typing: &mut Typing<'_>,
    text: Expression,
    other: &Expression,
) -> Result<Expression> {
    let are_of_rows = varies(&text) && varies(other);
    match other.ty.kind == TypeKind::Date && text.ty.kind.is_string() && are_of_rows {
        true => expression_builders::call(typing, "DAY OF TEXT", vec![text]),
        false => Ok(text),
    }
}

/// The value of a literal or of a parameter, as far as it is known.
fn constant<'e>(context: &'e PlanContext<'_>, expression: &'e Expression) -> Option<&'e Datum> {
    match &expression.kind {
        ExpressionKind::Literal(datum) => Some(datum),
        ExpressionKind::Parameter(number) => context.parameter_values.get(*number as usize),
        _ => None,
    }
    .filter(|datum| !datum.is_null())
}

/// A value that is compared with another one. Beside a date, refuses a text that is not a date
/// with error 1292 in a strict statement that writes, and with 1525 in any other.
pub(super) fn date_beside_date(
    typing: &mut Typing<'_>,
    value: Expression,
    other: &Expression,
) -> Result<Expression> {
    if !other.ty.kind.has_date() || !value.ty.kind.is_string() {
        return Ok(value);
    }
    let context = typing.context.evaluation;
    let value = match (&value.kind, constant(typing.context, &value)) {
        (ExpressionKind::Parameter(number), Some(text)) => {
            if cast::held(text, &value.ty, &other.ty, context).is_some() {
                suppose(&mut typing.facts, *number, &value.ty, &other.ty);
                return Ok(value);
            }
            as_written(typing, value)
        }
        _ => value,
    };
    let known = match &value.kind {
        ExpressionKind::Literal(constant) => Some(constant.clone()),
        ExpressionKind::Call { .. } | ExpressionKind::Cast(_) | ExpressionKind::Case { .. } => {
            fold::constant_value(&value, context)
        }
        _ => None,
    };
    match known {
        Some(ref constant @ Datum::Text(ref text))
            if !cast::is_readable_date(constant, &value.ty, context) =>
        {
            let name = match other.ty.kind {
                TypeKind::Date => "DATE",
                TypeKind::Timestamp { .. } => "TIMESTAMP",
                _ => "DATETIME",
            };
            let message = format!("Incorrect {name} value: '{}'", text.to_str_lossy());
            Err(SqlError::new(if typing.refuses_unfit() { 1292 } else { 1525 }, message))
        }
        _ => Ok(value),
    }
}

/// Whether an expression's value may change from row to row.
fn varies(expression: &Expression) -> bool {
    any(expression, &|one| {
        matches!(one.kind, ExpressionKind::Slot(_) | ExpressionKind::Subquery(_))
    })
}

/// Whether values of a type are read as what a column of the other type stores.
fn concerns(value: &SqlType, column: &SqlType) -> bool {
    let (value, is_text) = (&value.kind, value.kind.is_string());
    match &column.kind {
        TypeKind::Year => {
            is_text || value.is_temporal() && *value != TypeKind::Year || value.is_numeric()
        }
        TypeKind::Time { .. } => {
            is_text || value.has_date() || value.is_numeric() && *value != TypeKind::Year
        }
        kind => kind.has_date() && value.is_numeric() && *value != TypeKind::Year,
    }
}

fn moment() -> SqlType {
    SqlType::new(TypeKind::DateTime { fsp: 6 })
}

fn held_type(column: &SqlType) -> SqlType {
    SqlType::new(match column.kind {
        TypeKind::Date => TypeKind::Date,
        TypeKind::Time { fsp } => TypeKind::Time { fsp },
        TypeKind::Year => TypeKind::Year,
        _ => return moment(),
    })
}
