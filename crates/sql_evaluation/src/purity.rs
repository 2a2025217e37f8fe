//! What depends on the row alone, so that a node evaluates it as the statement does.
//!
//! Not here, and therefore not sent:
//! * what asks the session: its time zone (TIMESTAMP, times as dates), `default_week_format`,
//!   `div_precision_increment` (`/` of exact numbers), `connection_collation` (numbers as bytes),
//!   the clock, the user, variables, `RAND`;
//! * what differs between machines: logarithms, powers and angles come from the system's library;
//! * conversions to dates and times, which obey `sql_mode` without a warning, except of a date to a
//!   datetime.
//!
//! What obeys `sql_mode` with a warning, or `max_allowed_packet`, may be here: the node evaluates
//! under the strictest setting, and does not know the result where that raises something.

use firn_sql_functions::Function;
use firn_sql_logical::expression::Expression;
use firn_sql_types::{SqlType, TypeKind};

/// Functions of numbers, texts and bytes.
const OF_ANYTHING: &[&str] = &[
    "+",
    "-",
    "*",
    "DIV",
    "%",
    "NEG",
    "ABS",
    "SIGN",
    "CEILING",
    "FLOOR",
    "ROUND",
    "TRUNCATE",
    "SQRT",
    "GREATEST",
    "LEAST",
    "INTERVAL",
    "|",
    "&",
    "^",
    "~",
    "<<",
    ">>",
    "BIT_COUNT",
    "LENGTH",
    "CHAR_LENGTH",
    "BIT_LENGTH",
    "ASCII",
    "ORD",
    "LOWER",
    "UPPER",
    "REVERSE",
    "REPLACE",
    "CONCAT",
    "CONCAT_WS",
    "LEFT",
    "RIGHT",
    "SUBSTRING",
    "SUBSTRING_INDEX",
    "TRIM",
    "TRIM LEADING",
    "TRIM TRAILING",
    "LTRIM",
    "RTRIM",
    "LOCATE",
    "INSTR",
    "STRCMP",
    "FIELD",
    "ELT",
    "FIND_IN_SET",
    "LPAD",
    "RPAD",
    "REPEAT",
    "SPACE",
    "HEX",
    "ZEROFILL",
    "FIXED DOUBLE",
    "MD5",
    "SHA1",
    "CRC32",
];

/// Functions of dates and datetimes; of other arguments they ask the session.
const OF_DATES: &[&str] = &[
    "YEAR",
    "QUARTER",
    "MONTH",
    "DAYOFMONTH",
    "DAYOFYEAR",
    "DAYOFWEEK",
    "WEEKDAY",
    "WEEKOFYEAR",
    "HOUR",
    "MINUTE",
    "SECOND",
    "MICROSECOND",
    "TO_DAYS",
    "LAST_DAY",
    "DATEDIFF",
];

/// Whether a call depends on its arguments alone.
pub(crate) fn is_pure_call(
    function: &Function,
    arguments: &[Expression],
    result: &SqlType,
) -> bool {
    let is_date =
        |one: &Expression| matches!(one.ty.kind, TypeKind::Date | TypeKind::DateTime { .. });
    match function.name {
        "/" => matches!(result.kind, TypeKind::Double),
        name if OF_ANYTHING.contains(&name) => true,
        name if OF_DATES.contains(&name) => arguments.iter().all(is_date),
        _ => false,
    }
}

/// Whether a conversion depends on its operand alone.
pub(crate) fn is_pure_cast(from: &TypeKind, to: &TypeKind) -> bool {
    if from == to || *from == TypeKind::Null {
        return true;
    }
    let is_number = |kind: &TypeKind| {
        matches!(kind, TypeKind::Integer { .. } | TypeKind::Decimal { .. } | TypeKind::Double)
    };
    let from_number = is_number(from) || *from == TypeKind::Float;
    let from_any = from_number || from.is_string() || from.is_temporal();
    match to {
        to if is_number(to) || to.is_text() => from_any,
        to if to.is_binary() => from.is_string(),
        TypeKind::DateTime { .. } => *from == TypeKind::Date,
        _ => false,
    }
}
