//! Whether clients see an expression as nullable.
//!
//! MySQL decides by the operation and by its answers for the operands. The types of expressions are
//! more careful: a type that is NOT NULL is never NULL.

use firn_sql_collation::Charset;
use firn_sql_functions::Function;
use firn_sql_logical::PlanContext;
use firn_sql_logical::expression::{
    CompareOperator, Expression, ExpressionKind, SubqueryKind, fold,
};
use firn_sql_types::{Coercibility, Datum, TypeKind};

use super::super::Typing;
use super::super::expression_builders::is_never_null;
use crate::binder::display;

/// Functions that are NULL for some arguments and whose results are not texts, documents or times.
const NULLABLE: &[&str] = &[
    "/",
    "%",
    "DIV",
    "SQRT",
    "EXP",
    "LN",
    "LOG",
    "LOG2",
    "LOG10",
    "POW",
    "SIN",
    "COS",
    "TAN",
    "COT",
    "ASIN",
    "ACOS",
    "ATAN",
    "YEAR",
    "QUARTER",
    "MONTH",
    "WEEK",
    "WEEKOFYEAR",
    "YEARWEEK",
    "DAYOFMONTH",
    "DAYOFWEEK",
    "DAYOFYEAR",
    "WEEKDAY",
    "HOUR",
    "MINUTE",
    "SECOND",
    "MICROSECOND",
    "TO_DAYS",
    "TO_SECONDS",
    "TIME_TO_SEC",
    "DATEDIFF",
    "TIMESTAMPDIFF",
    "EXTRACT",
];

/// Functions that MySQL considers NULL only if an argument is.
const BY_ARGUMENTS: &[&str] = &[
    "DATE OF TEXT",
    "DAY OF TEXT",
    "DATE OF YEAR",
    "BOTH",
    "WHOLE",
    "TIME OF TEXT",
    "FIXED DOUBLE",
    "LENGTH",
    "CHAR_LENGTH",
    "BIT_LENGTH",
    "LOCATE",
    "INSTR",
    "FIND_IN_SET",
    "ASCII",
    "ORD",
    "CRC32",
    "REGEXP_LIKE",
    "REGEXP_INSTR",
    "STRCMP",
    "DEGREES",
    "RADIANS",
    "BIT_COUNT",
    "UNIX_TIMESTAMP",
    "PERIOD_ADD",
    "PERIOD_DIFF",
    "UNCOMPRESSED_LENGTH",
    "ABS",
    "SIGN",
    "ROUND",
    "TRUNCATE",
    "FLOOR",
    "CEILING",
    "NEG",
    "+",
    "-",
    "*",
    "&",
    "|",
    "^",
    "~",
    "<<",
    ">>",
    "GREATEST",
    "LEAST",
    "JSON_OVERLAPS",
    "MEMBER OF",
    "MAKE_SET",
    "EXPORT_SET",
    "COMPRESS",
    "NOW",
    "SYSDATE",
    "CURDATE",
    "CURTIME",
    "UTC_DATE",
    "UTC_TIME",
    "UTC_TIMESTAMP",
];

/// Whether clients see an expression as nullable. Chains of operators have any length, so this
/// keeps a list of what is left instead of recursing.
pub(crate) fn shown_nullable(typing: &Typing<'_>, expression: &Expression) -> bool {
    let mut left = vec![expression];
    while let Some(next) = left.pop() {
        if adds_null(typing, next, &mut left) {
            return true;
        }
    }
    false
}

/// Whether an operation may itself produce NULL; operands whose NULL makes it NULL are added to
/// `left`.
fn adds_null<'e>(
    typing: &Typing<'_>,
    expression: &'e Expression,
    left: &mut Vec<&'e Expression>,
) -> bool {
    let ty = &expression.ty;
    match &expression.kind {
        // Any operation that makes a document may fail.
        ExpressionKind::Literal(_) | ExpressionKind::Cast(_) if ty.kind == TypeKind::Json => {
            return true;
        }
        ExpressionKind::Literal(datum) => {
            return ty.before.get().map_or_else(|| datum.is_null(), |before| before.nullable);
        }
        ExpressionKind::Slot(slot) => {
            let reported = typing.displays.of_slot(*slot).and_then(|display| display.nullable);
            return reported.unwrap_or(ty.nullable);
        }
        ExpressionKind::Call { function, arguments } => {
            return call_adds_null(
                typing.context,
                function,
                arguments,
                &ty.kind,
                ty.nullable,
                left,
            );
        }
        // A text under a written collation.
        ExpressionKind::Cast(_) if ty.coercibility == Coercibility::Explicit => {
            return ty.before.get().map_or(ty.nullable, |before| before.nullable);
        }
        ExpressionKind::Cast(operand) => {
            left.push(operand);
            if display::is_surely_written_text(operand, ty) {
                return typing.context.evaluation.sql_mode.is_strict();
            }
            // Only a written cast to a date, a time or a moment may fail.
            if ty.kind.is_temporal() && operand.ty.kind.is_temporal() {
                return ty.coercibility == Coercibility::Implicit
                    && ty.nullable
                    && !operand.ty.nullable;
            }
            if ty.kind.is_temporal() && ty.coercibility == Coercibility::Implicit {
                return true;
            }
            // Bytes that are not valid text become NULL; clients see this only in strict modes.
            if operand.ty.kind.is_binary() && ty.kind.is_text() && !is_written_out(operand) {
                return typing.context.evaluation.sql_mode.is_strict();
            }
            return ty.nullable && !operand.ty.nullable;
        }
        ExpressionKind::Subquery(subquery) if !matches!(subquery.kind, SubqueryKind::Scalar) => {
            let reported = typing.displays.of_subquery(subquery.number);
            return reported.and_then(|display| display.nullable).unwrap_or(ty.nullable);
        }
        ExpressionKind::Compare { operator, sides, .. } => {
            if *operator != CompareOperator::NullSafeEqual {
                left.extend(sides.iter());
            }
        }
        ExpressionKind::And(list) | ExpressionKind::Or(list) => left.extend(list),
        ExpressionKind::Xor(sides) => left.extend(sides.iter()),
        ExpressionKind::Not(operand) => left.push(operand),
        ExpressionKind::Keep { value, .. } => left.push(value),
        ExpressionKind::InList { operand, list, .. } => {
            left.push(operand);
            left.extend(list.iter().filter(|item| !is_written_date(item)));
        }
        ExpressionKind::Like { text, pattern, .. } => left.extend([&**text, &**pattern]),
        ExpressionKind::Case { branches, otherwise } => {
            let Some(otherwise) = otherwise else { return true };
            left.push(otherwise);
            left.extend(branches.iter().map(|(_, value)| value));
        }
        ExpressionKind::Coalesce(list) => {
            return list
                .iter()
                .all(|one| !is_converted(typing, one) && shown_nullable(typing, one));
        }
        _ => return ty.nullable,
    }
    false
}

/// Whether an item of a list is a text that is written, and was read as a date for the list.
fn is_written_date(item: &Expression) -> bool {
    let is_known = matches!(&item.kind, ExpressionKind::Literal(datum) if !datum.is_null());
    let before = item.ty.before.get();
    is_known
        && item.ty.kind.is_temporal()
        && before.is_some_and(|before| before.written.0.kind.is_text())
}

/// Whether a constant text was converted to another character set, so that MySQL made a literal of
/// it.
fn is_converted(typing: &Typing<'_>, expression: &Expression) -> bool {
    let own = expression.ty.charset();
    let differs = |from: Option<Charset>| {
        from.is_some_and(|charset| charset != Charset::Binary && Some(charset) != own)
    };
    match (&expression.kind, expression.ty.before.get()) {
        (ExpressionKind::Literal(Datum::Text(_)), Some(before)) => {
            differs(before.operand.0.charset().or(before.written.0.charset()))
        }
        (ExpressionKind::Cast(text), _) => {
            let is_known = |value: Datum| !value.is_null();
            differs(text.ty.charset())
                && fold::constant_value(text, typing.context.evaluation).is_some_and(is_known)
        }
        _ => false,
    }
}

fn call_adds_null<'e>(
    context: &PlanContext<'_>,
    function: &Function,
    arguments: &'e [Expression],
    result: &TypeKind,
    nullable: bool,
    left: &mut Vec<&'e Expression>,
) -> bool {
    // Bytes that are written are known to be text, or refused.
    if function.name == "DECODED" && arguments.iter().all(is_written_out) {
        return false;
    }
    if function.name == "ANY_VALUE" {
        left.extend(arguments);
        return false;
    }
    if may_be_null(context, function, result) {
        return true;
    }
    if is_never_null(function.name, arguments.len()) {
        return false;
    }
    if let "REPEAT" | "LPAD" | "RPAD" | "SPACE" = function.name {
        // A text of unknown length may be too long.
        let count = arguments.get(usize::from(function.name != "SPACE"));
        left.extend(arguments);
        return count.is_none_or(|count| !matches!(count.kind, ExpressionKind::Literal(_)));
    }
    if !BY_ARGUMENTS.contains(&function.name) {
        return nullable;
    }
    left.extend(arguments);
    false
}

fn is_written_out(expression: &Expression) -> bool {
    match &expression.kind {
        ExpressionKind::Literal(datum) => !datum.is_null(),
        ExpressionKind::Cast(inner) => is_written_out(inner),
        _ => false,
    }
}

/// Whether MySQL considers a function's value nullable even if no argument is.
fn may_be_null(context: &PlanContext<'_>, function: &Function, result: &TypeKind) -> bool {
    match function.name {
        "JSON_OVERLAPS" | "MEMBER OF" | "GREATEST" | "LEAST" | "VERSION" => false,
        "DATE OF TEXT" | "DAY OF TEXT" | "DATE OF YEAR" | "TIME OF TEXT" | "FIXED DOUBLE" => false,
        "NOW" | "SYSDATE" | "CURDATE" | "CURTIME" | "UTC_DATE" | "UTC_TIME" | "UTC_TIMESTAMP" => {
            false
        }
        name if name.starts_with("JSON_") => true,
        "MAKE_SET" | "&" | "|" | "^" | "~" | "<<" | ">>" => false,
        // A text longer than a packet would be NULL.
        _ if result.is_string() => context.evaluation.sql_mode.is_strict(),
        name => result.is_temporal() || NULLABLE.contains(&name),
    }
}
