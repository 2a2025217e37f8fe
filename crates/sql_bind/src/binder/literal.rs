//! Literals and placeholders.

use firn_sql_grammar as grammar;
use firn_sql_grammar::ast::{Expr, TypedStringKind, Value};
use firn_sql_logical::PlanContext;
use firn_sql_logical::expression::{Expression, ExpressionKind};
use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::{Before, Coercibility, Datum, Decimal, SqlType, TypeKind};

use super::parameter::TEXT_CHARS;
use super::{Typing, coerce, expression_builders, parameter};

/// A literal or placeholder.
pub(crate) fn literal(context: &PlanContext<'_>, value: &Value) -> Result<Expression> {
    match value {
        Value::Number(text) => Ok(with_length(number(text)?, text)),
        Value::Text(text) => literal_text(context, text),
        Value::Hexadecimal(digits) => {
            context.watch.hold(digits.len() / 2)?;
            Ok(bytes(hex(digits)?))
        }
        Value::Bits(bits) => Ok(bytes(binary_digits(bits)?)),
        Value::Boolean(truth) => Ok(expression_builders::truth(Some(*truth), false)),
        Value::Null => Ok(expression_builders::null()),
        Value::Parameter(number) => Ok(placeholder(context, *number)),
        Value::LongText(number) => long_literal_text(context, *number as usize),
    }
}

/// Text of the connection's collation.
pub(crate) fn literal_text(context: &PlanContext<'_>, text: &str) -> Result<Expression> {
    // A long one is shared, and was counted as memory of the process.
    if text.len() < grammar::LONG_TEXT_BYTES {
        context.watch.hold(text.len())?;
    }
    let collation = context.evaluation.connection_collation;
    let ty = SqlType::varchar(u32::try_from(text.chars().count()).unwrap_or(u32::MAX), collation);
    Ok(expression_builders::literal(Datum::text(text.as_bytes()), ty))
}

/// The same for a literal stored apart from the tree; its bytes are shared.
fn long_literal_text(context: &PlanContext<'_>, number: usize) -> Result<Expression> {
    let text = context.long_texts.get(number);
    let text = text.ok_or_else(|| SqlError::not_supported("this literal"))?;
    let collation = context.evaluation.connection_collation;
    let characters = text.iter().filter(|byte| **byte & 0xc0 != 0x80).count();
    let ty = SqlType::varchar(u32::try_from(characters).unwrap_or(u32::MAX), collation);
    Ok(expression_builders::literal(Datum::Text(text.clone()), ty))
}

/// A double as long as it is written.
fn with_length(number: Expression, text: &str) -> Expression {
    if number.ty.kind != TypeKind::Double {
        return number;
    }
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    let before = expression_builders::worked_out(&number.ty, length, false);
    Expression { ty: SqlType { before, ..number.ty }, kind: number.kind }
}

/// `-number`, so that the smallest integer can be written.
pub(crate) fn negative_literal(value: &Value) -> Option<Expression> {
    let Value::Number(text) = value else { return None };
    number(&format!("-{text}")).ok()
}

fn placeholder(context: &PlanContext<'_>, number: u32) -> Expression {
    let known = context.parameters.get(number as usize).cloned();
    let collation = context.evaluation.connection_collation;
    let ty = known.unwrap_or_else(|| SqlType::varchar(TEXT_CHARS, collation));
    Expression { kind: ExpressionKind::Parameter(number), ty: ty.with_nullable(true) }
}

/// A hexadecimal or bit literal as the number that it is beside numbers: 0 if it does not fit, as
/// in MySQL.
pub(crate) fn number_of_bytes(expr: &Expr) -> Option<Expression> {
    let bytes = match expr {
        Expr::Value(Value::Hexadecimal(digits)) => hex(digits).ok()?,
        Expr::Value(Value::Bits(bits)) => binary_digits(bits).ok()?,
        _ => return None,
    };
    let beyond = bytes.len().saturating_sub(8);
    let number = match bytes[..beyond].iter().all(|byte| *byte == 0) {
        true => bytes[beyond..].iter().fold(0, |number, byte| number << 8 | u64::from(*byte)),
        false => 0,
    };
    Some(expression_builders::literal(Datum::UInt(number), SqlType::bigint_unsigned()))
}

/// As [`number_of_bytes`], if the other side is a number; otherwise the expression as
/// it was bound.
pub(crate) fn number_beside(
    context: &PlanContext<'_>,
    expr: &Expr,
    bound: Expression,
    other: &SqlType,
) -> Expression {
    let bound = parameter::inferred(context, bound, other);
    match other.kind.is_numeric() || matches!(other.kind, TypeKind::Year) {
        true => number_of_bytes(expr).unwrap_or(bound),
        false => bound,
    }
}

/// `DATE '…'` and its relatives.
pub(crate) fn typed_string(
    typing: &mut Typing<'_>,
    kind: TypedStringKind,
    text: &str,
) -> Result<Expression> {
    let fraction = text.rsplit_once('.').map_or(0, |(_, digits)| digits.len().min(6) as u8);
    let (kind, name) = match kind {
        TypedStringKind::Date => (TypeKind::Date, "DATE"),
        TypedStringKind::Time => (TypeKind::Time { fsp: fraction }, "TIME"),
        TypedStringKind::Timestamp => (TypeKind::DateTime { fsp: fraction }, "DATETIME"),
    };
    let value = literal_text(typing.context, text)?;
    let cast = coerce::cast_to(typing, value, SqlType::new(kind));
    match cast.kind {
        ExpressionKind::Literal(Datum::Null) | ExpressionKind::Cast(_) => {
            Err(SqlError::new(1525, format!("Incorrect {name} value: '{text}'")))
        }
        // A literal as any other.
        _ => Ok(Expression { ty: SqlType { before: Before::default(), ..cast.ty }, ..cast }),
    }
}

/// A number as written: an integer, an exact number or, with an exponent, a double.
pub(crate) fn number(text: &str) -> Result<Expression> {
    let wrong =
        || SqlError::new(1367, format!("Illegal double '{text}' value found during parsing"));
    if text.contains(['e', 'E']) {
        let number =
            text.parse::<f64>().ok().filter(|number| number.is_finite()).ok_or_else(wrong)?;
        return Ok(expression_builders::literal(Datum::Double(number), SqlType::double()));
    }
    if !text.contains('.') {
        if let Ok(number) = text.parse::<i64>() {
            return Ok(expression_builders::integer(number));
        }
        if let Ok(number) = text.parse::<u64>() {
            return Ok(expression_builders::literal(
                Datum::UInt(number),
                SqlType::bigint_unsigned(),
            ));
        }
    }
    match Decimal::parse(text).ok_or(()) {
        Ok(number) => {
            let scale = number.scale();
            let whole = text.trim_start_matches('-').split('.').next().unwrap_or_default();
            let leading = whole.trim_start_matches('0').len() + usize::from(scale);
            let ty = SqlType::decimal(leading.clamp(1, u8::MAX.into()) as u8, scale);
            Ok(expression_builders::literal(Datum::Decimal(number), ty))
        }
        Err(_) => {
            let number = text.parse::<f64>().map_err(|_| wrong())?;
            Ok(expression_builders::literal(Datum::Double(number), SqlType::double()))
        }
    }
}

fn bytes(bytes: Vec<u8>) -> Expression {
    let ty = SqlType::varbinary(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    expression_builders::literal(Datum::text(bytes), ty.with_coercibility(Coercibility::Coercible))
}

fn hex(digits: &str) -> Result<Vec<u8>> {
    let wrong = || SqlError::not_supported("this hexadecimal literal");
    let pairs = digits.as_bytes().chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).map_err(|_| wrong())?;
        u8::from_str_radix(pair, 16).map_err(|_| wrong())
    });
    pairs.collect()
}

fn binary_digits(bits: &str) -> Result<Vec<u8>> {
    let wrong = || SqlError::not_supported("this bit literal");
    let padded = format!("{}{bits}", "0".repeat((8 - bits.len() % 8) % 8));
    let bytes = padded.as_bytes().chunks(8).map(|byte| {
        let byte = std::str::from_utf8(byte).map_err(|_| wrong())?;
        u8::from_str_radix(byte, 2).map_err(|_| wrong())
    });
    bytes.collect()
}
