//! Defaults of columns in statements.

use firn_sql_grammar::ast;
use firn_sql_grammar::ast::{Expr, UnaryOperator, Value};
use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::{Datum, Decimal, EvaluationContext, SqlType, StatementKind, TypeKind};

use super::super::model::{ColumnModel, DefaultValue};
use super::super::options::DEFAULT_COLLATION;
use super::values;
use super::{DdlContext, expression_text};

/// The default of a column whose type is known.
///
/// # Errors
/// 1067 for values that do not fit, 1101 for types that accept no literal.
pub(super) fn of_column(
    context: &DdlContext<'_>,
    column: &ColumnModel,
    default: Option<&ast::ColumnDefault>,
) -> Result<DefaultValue> {
    let invalid = || invalid_default(&column.name);
    match default {
        None if column.generated.is_some() => Ok(DefaultValue::None),
        None if column.ty.nullable => Ok(DefaultValue::Null),
        None => Ok(DefaultValue::None),
        Some(_) if column.auto_increment => Err(invalid()),
        Some(ast::ColumnDefault::Expression(expression)) => {
            Ok(DefaultValue::Expression(expression_text(expression).into()))
        }
        Some(ast::ColumnDefault::Now(fsp)) => match column.ty.kind {
            TypeKind::DateTime { fsp: of_type } | TypeKind::Timestamp { fsp: of_type }
                if of_type == *fsp =>
            {
                Ok(DefaultValue::CurrentTimestamp { fsp: *fsp })
            }
            _ => Err(invalid()),
        },
        Some(ast::ColumnDefault::Literal(expression)) => {
            let (datum, ty) = literal(expression).ok_or_else(invalid)?;
            of_literal(context.evaluation, column, datum, &ty)
        }
    }
}

fn of_literal(
    evaluation: &EvaluationContext,
    column: &ColumnModel,
    datum: Datum,
    ty: &SqlType,
) -> Result<DefaultValue> {
    if datum.is_null() {
        let ok = column.ty.nullable;
        return if ok { Ok(DefaultValue::Null) } else { Err(invalid_default(&column.name)) };
    }
    if matches!(
        column.ty.kind,
        TypeKind::Text { .. } | TypeKind::Blob { .. } | TypeKind::Json | TypeKind::Geometry
    ) {
        let message = format!(
            "BLOB, TEXT, GEOMETRY or JSON column '{}' can't have a default value",
            column.name
        );
        return Err(SqlError::new(1101, message));
    }
    let strict = strict_context(evaluation);
    let value = values::assign(&datum, ty, column, &strict);
    let value = value.map_err(|_| invalid_default(&column.name))?;
    // A value that would be cut or rounded is refused, except for fractions of numbers.
    if strict.warning_count() > 0 && !column.ty.kind.is_numeric() {
        return Err(invalid_default(&column.name));
    }
    Ok(DefaultValue::Literal(value))
}

/// The session's context, which refuses what a strict `INSERT` would refuse.
pub(super) fn strict_context(evaluation: &EvaluationContext) -> EvaluationContext {
    EvaluationContext {
        sql_mode: evaluation.sql_mode,
        time_zone: evaluation.time_zone.clone(),
        statement_time_us: evaluation.statement_time_us,
        connection_collation: evaluation.connection_collation,
        statement_kind: StatementKind::Write,
        ..EvaluationContext::default()
    }
}

/// `Invalid default value for 'c'`
pub(super) fn invalid_default(name: &str) -> SqlError {
    SqlError::new(1067, format!("Invalid default value for '{name}'"))
}

/// The value of a literal, optionally with a sign, and its type; `None` for anything else.
pub(super) fn literal(expression: &Expr) -> Option<(Datum, SqlType)> {
    match expression {
        Expr::Value(value) => literal_value(value),
        Expr::UnaryOp { op: UnaryOperator::Plus, expr } => literal(expr),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
            let (datum, ty) = literal(expr)?;
            let negative = match datum {
                Datum::Int(number) => Datum::Int(number.checked_neg()?),
                Datum::UInt(number) => return negative_of_unsigned(number),
                Datum::Double(number) => Datum::Double(-number),
                Datum::Decimal(number) => Datum::Decimal(number.negate()),
                _ => return None,
            };
            Some((negative, ty))
        }
        Expr::Introduced { value, .. } => literal_value(value),
        Expr::TypedString { text, .. } => Some(text_literal(text)),
        _ => None,
    }
}

fn negative_of_unsigned(number: u64) -> Option<(Datum, SqlType)> {
    if number == 1 << 63 {
        return Some((Datum::Int(i64::MIN), SqlType::bigint()));
    }
    let number = Decimal::from(number).negate();
    Some((Datum::Decimal(number), SqlType::decimal(20, 0)))
}

fn text_literal(text: &str) -> (Datum, SqlType) {
    let length = text.chars().count() as u32;
    (Datum::text(text), SqlType::varchar(length, DEFAULT_COLLATION))
}

fn literal_value(value: &Value) -> Option<(Datum, SqlType)> {
    match value {
        Value::Null => Some((Datum::Null, SqlType::null())),
        Value::Boolean(truth) => Some((Datum::from_bool(*truth), SqlType::bigint())),
        Value::Text(text) => Some(text_literal(text)),
        Value::Hexadecimal(digits) => bytes_literal(digits, 16),
        Value::Bits(digits) => bytes_literal(digits, 2),
        Value::Number(digits) => number(digits),
        _ => None,
    }
}

/// Literals of bytes are numbers where a number is wanted, and so they are here if they are short
/// enough.
fn bytes_literal(digits: &str, radix: u32) -> Option<(Datum, SqlType)> {
    let number = u64::from_str_radix(digits, radix).ok();
    if radix == 2 {
        return Some((Datum::UInt(number?), SqlType::bigint_unsigned()));
    }
    let bytes: Option<Vec<u8>> = (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok())
        .collect();
    let bytes = bytes?;
    let length = bytes.len() as u32;
    Some((Datum::text(bytes), SqlType::varbinary(length)))
}

fn number(digits: &str) -> Option<(Datum, SqlType)> {
    if let Ok(number) = digits.parse::<i64>() {
        return Some((Datum::Int(number), SqlType::bigint()));
    }
    if let Ok(number) = digits.parse::<u64>() {
        return Some((Datum::UInt(number), SqlType::bigint_unsigned()));
    }
    if digits.contains(['e', 'E']) {
        let number = digits.parse().ok().filter(|number: &f64| number.is_finite())?;
        return Some((Datum::Double(number), SqlType::double()));
    }
    let decimal = Decimal::parse(digits)?;
    let ty = SqlType::decimal(decimal.digits().max(1), decimal.scale());
    Some((Datum::Decimal(decimal), ty))
}
