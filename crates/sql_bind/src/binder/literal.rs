//! Literals and placeholders.

use firn_sql_grammar as grammar;
use firn_sql_grammar::ast::{TypedStringKind, Value};
use firn_sql_logical::PlanContext;
use firn_sql_logical::expression::{Expression, ExpressionKind};
use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::hexadecimal::hexadecimal_digits;
use firn_sql_types::{
    Before, Coercibility, Datum, Decimal, Display, SqlType, TypeKind, WorkedOut, WrittenBytes,
};

use super::parameter::TEXT_CHARS;
use super::{Typing, coerce, expression_builders, expressions, parameter};

/// A literal or placeholder.
pub(crate) fn literal(context: &PlanContext<'_>, value: &Value) -> Result<Expression> {
    match value {
        Value::Number(text) => Ok(with_length(number(text)?, text)),
        Value::Text(text) => literal_text(context, text),
        Value::Hexadecimal(digits) => {
            context.watch.hold(digits.len() / 2)?;
            Ok(bytes(hex(digits)?, WrittenBytes::Hexadecimal))
        }
        Value::Bits(bits) => Ok(bytes(binary_digits(bits)?, WrittenBytes::Bits)),
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

/// A hexadecimal or bit literal as the number that it is beside numbers; any other expression
/// unchanged. A literal of more than 8 bytes is 0, with warning 1292.
pub(crate) fn as_number(context: &PlanContext<'_>, bound: Expression) -> Expression {
    let Some((number, is_whole)) = number_of_bytes(&bound) else { return bound };
    if let (false, ExpressionKind::Literal(Datum::Text(bytes))) = (is_whole, &bound.kind) {
        let digits = hexadecimal_digits(bytes).to_ascii_lowercase();
        let message = format!("Truncated incorrect BINARY value: 'x'{digits}''");
        expressions::warn(context, 1292, message);
    }
    number
}

/// As [`as_number`], for an operand of arithmetic, where bits are a signed number.
pub(crate) fn as_operand(context: &PlanContext<'_>, bound: Expression) -> Expression {
    let Some(written) = written_bytes(&bound) else { return bound };
    let number = as_number(context, bound);
    let ExpressionKind::Literal(Datum::UInt(value)) = number.kind else { return number };
    let length = number.ty.before.get().map_or(1, |before| before.shown.length);
    let (mut operand, length) = match written {
        WrittenBytes::Hexadecimal => (number, length),
        WrittenBytes::Bits => (expression_builders::integer(value as i64), length + 1),
    };
    operand.ty.before = expression_builders::worked_out(&operand.ty, length, false);
    operand
}

/// As [`as_number`], if the other side is a number; otherwise the expression as it was bound.
pub(crate) fn number_beside(
    context: &PlanContext<'_>,
    bound: Expression,
    other: &SqlType,
) -> Expression {
    let bound = parameter::inferred(context, bound, other);
    if is_number(other) { as_number(context, bound) } else { bound }
}

/// As [`number_beside`], for a value that is stored into a column.
pub(crate) fn number_for_column(
    context: &PlanContext<'_>,
    bound: Expression,
    column: &SqlType,
) -> Expression {
    let bound = parameter::inferred(context, bound, column);
    match number_of_bytes(&bound).filter(|_| is_number(column)) {
        Some((number, _)) => number,
        None => bound,
    }
}

fn is_number(ty: &SqlType) -> bool {
    ty.kind.is_numeric() || ty.kind == TypeKind::Year
}

/// How a literal of bytes was written.
pub(crate) fn written_bytes(expression: &Expression) -> Option<WrittenBytes> {
    match &expression.kind {
        ExpressionKind::Literal(Datum::Text(_)) => expression.ty.before.get()?.bytes,
        _ => None,
    }
}

/// The number of a literal of bytes, and whether all of the literal is in it.
fn number_of_bytes(expression: &Expression) -> Option<(Expression, bool)> {
    written_bytes(expression)?;
    let ExpressionKind::Literal(Datum::Text(bytes)) = &expression.kind else { return None };
    let beyond = bytes.len().saturating_sub(8);
    let is_whole = bytes[..beyond].iter().all(|byte| *byte == 0);
    let last = if is_whole { &bytes[beyond..] } else { &[] };
    let number = last.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    let mut literal = expression_builders::literal(Datum::UInt(number), SqlType::bigint_unsigned());
    // Digits of the largest number with this many bytes.
    let largest = u64::MAX.checked_shr(64 - 8 * bytes.len().min(8) as u32).unwrap_or(0);
    let length = largest.checked_ilog10().unwrap_or(0) + 1;
    let shown = Display { length, ..Display::of_expression(&literal.ty) };
    let operand = (literal.ty.clone(), shown);
    let of_bytes = expression.ty.before.get().map(|before| before.shown);
    let of_bytes = of_bytes.unwrap_or_else(|| Display::of_expression(&expression.ty));
    let written = (expression.ty.clone(), of_bytes);
    literal.ty.before = Before::of(WorkedOut {
        shown,
        nullable: false,
        operand,
        written,
        bytes: None,
        is_quiet: false,
    });
    Some((literal, is_whole))
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

fn bytes(bytes: Vec<u8>, written: WrittenBytes) -> Expression {
    let ty = SqlType::varbinary(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    let ty = ty.with_coercibility(Coercibility::Coercible);
    let mut literal = expression_builders::literal(Datum::text(bytes), ty);
    let unsigned = written == WrittenBytes::Hexadecimal;
    let shown = Display { unsigned, ..Display::of_expression(&literal.ty) };
    let operand = (literal.ty.clone(), shown);
    literal.ty.before = Before::of(WorkedOut {
        shown,
        nullable: false,
        operand: operand.clone(),
        written: operand,
        bytes: Some(written),
        is_quiet: false,
    });
    literal
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
