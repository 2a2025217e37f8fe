//! The types of unknown parameters, inferred from the expressions beside them.
//!
//! ```text
//!   PREPARE … WHERE id = ? AND price * ? > 10      ? of BIGINT, ? of DECIMAL(65,30)
//! ```
//!
//! Clients learn these types when a statement is prepared. An execution uses the types of the
//! values that it gets.

use firn_format::value::CollationId;

use firn_sql_collation::Charset;
use firn_sql_logical::PlanContext;
use firn_sql_logical::expression::{Expression, ExpressionKind};
use firn_sql_types::error::Result;
use firn_sql_types::temporal::IntervalUnit;
use firn_sql_types::{SqlType, TypeKind, unify};

/// The longest text of a parameter beside a text, in characters.
pub(crate) const TEXT_CHARS: u32 = LONGEST_TEXT_BYTES / LONGEST_CHARACTER;
const LONGEST_TEXT_BYTES: u32 = 65_535;
/// The most bytes of a character.
const LONGEST_CHARACTER: u32 = 4;

/// What takes the type of what it is used with.
enum Unknown {
    Parameter(usize),
    /// A user variable that was never set, not even by the statement.
    Variable,
}

fn unknown(context: &PlanContext<'_>, expression: &Expression) -> Option<Unknown> {
    match &expression.kind {
        ExpressionKind::Parameter(number) => {
            let number = *number as usize;
            (number >= context.parameters.len()).then_some(Unknown::Parameter(number))
        }
        ExpressionKind::UserVariable(name) => {
            let is_unset = context.variables.user(name).is_none()
                && !context.assigned_variables.borrow().contains(name);
            is_unset.then_some(Unknown::Variable)
        }
        _ => None,
    }
}

/// An unknown parameter or variable, with the type that matches the other expression; any other
/// expression unchanged.
pub(crate) fn inferred(
    context: &PlanContext<'_>,
    expression: Expression,
    beside: &SqlType,
) -> Expression {
    let Some(unknown) = unknown(context, &expression) else { return expression };
    let collation = context.evaluation.connection_collation;
    let ty = parameter_type(beside, collation).with_nullable(true);
    if let Unknown::Parameter(number) = unknown {
        let mut known = context.parameter_types.borrow_mut();
        if known.len() <= number {
            known.resize(number + 1, None);
        }
        known[number].get_or_insert_with(|| ty.clone());
    }
    Expression { ty, ..expression }
}

/// Whether an expression takes the type of what it is used with.
pub(crate) fn is_unknown(context: &PlanContext<'_>, expression: &Expression) -> bool {
    unknown(context, expression).is_some()
}

/// Bytes, as parameters of operations on bits are.
pub(crate) fn bytes() -> SqlType {
    SqlType::varbinary(LONGEST_TEXT_BYTES)
}

/// The types of a function's unknown parameters, by place, where the function itself would take
/// any.
pub(crate) fn wanted(function: &str) -> Vec<(usize, SqlType)> {
    let moment = SqlType::new(TypeKind::DateTime { fsp: 6 });
    let time = SqlType::new(TypeKind::Time { fsp: 6 });
    match function {
        "YEAR" | "QUARTER" | "MONTH" | "MONTHNAME" | "WEEK" | "WEEKOFYEAR" | "YEARWEEK"
        | "DAYOFMONTH" | "DAYOFWEEK" | "DAYOFYEAR" | "WEEKDAY" | "DAYNAME" | "LAST_DAY"
        | "HOUR" | "MINUTE" | "SECOND" | "MICROSECOND" | "TO_DAYS" | "TO_SECONDS"
        | "UNIX_TIMESTAMP" | "DATE_FORMAT" | "TIME_FORMAT" | "CONVERT_TZ" => vec![(0, moment)],
        "EXTRACT" => vec![(1, moment)],
        "DATEDIFF" => vec![(0, moment.clone()), (1, moment)],
        "TIMESTAMPDIFF" => vec![(1, moment.clone()), (2, moment)],
        "TIMESTAMP" => vec![(0, moment), (1, time)],
        "TIME_TO_SEC" => vec![(0, time)],
        "ADDTIME" | "SUBTIME" => vec![(0, time.clone()), (1, time)],
        "ROUND" | "TRUNCATE" | "FORMAT" => vec![(0, SqlType::decimal(65, 30))],
        "<<" | ">>" | "~" | "BIT_COUNT" => vec![(0, bytes())],
        "CONV" => vec![(0, SqlType::bigint())],
        "JSON_EXTRACT" => vec![(0, SqlType::new(TypeKind::Json))],
        _ => Vec::new(),
    }
}

/// The type of an unknown parameter that is cast to a type.
pub(crate) fn of_cast(kind: &TypeKind) -> SqlType {
    match kind {
        TypeKind::Integer { .. } => SqlType::bigint(),
        TypeKind::Time { .. } => SqlType::new(TypeKind::DateTime { fsp: 6 }),
        kind => SqlType::new(kind.clone()),
    }
}

/// A date to which so many units are added, and their number: both may be unknown.
pub(crate) fn inferred_interval(
    context: &PlanContext<'_>,
    date: Expression,
    count: Expression,
    unit: IntervalUnit,
) -> (Expression, Expression) {
    let moment = match unit.is_whole_days() {
        true => TypeKind::Date,
        false => TypeKind::DateTime { fsp: 6 },
    };
    let number = match unit {
        IntervalUnit::Second => SqlType::decimal(65, 30),
        _ => SqlType::bigint(),
    };
    let count = match unit.is_compound() {
        true => count,
        false => inferred(context, count, &number),
    };
    (inferred(context, date, &SqlType::new(moment)), count)
}

/// The two sides of a comparison.
pub(crate) fn inferred_pair(
    context: &PlanContext<'_>,
    left: Expression,
    right: Expression,
) -> (Expression, Expression) {
    match (unknown(context, &left), unknown(context, &right)) {
        (Some(_), None) => (inferred(context, left, &right.ty), right),
        (None, Some(_)) => {
            let right = inferred(context, right, &left.ty);
            (left, right)
        }
        _ => (left, right),
    }
}

/// Values that become one type: unknown parameters get the type of the others.
///
/// # Errors
/// 1267 if the others have no common collation.
pub(crate) fn inferred_list(
    context: &PlanContext<'_>,
    list: Vec<Expression>,
    otherwise: Option<&SqlType>,
) -> Result<Vec<Expression>> {
    let is_unknown = |one: &Expression| is_unknown(context, one);
    if !list.iter().any(is_unknown) {
        return Ok(list);
    }
    let known = list.iter().filter(|one| !is_unknown(one)).map(|one| one.ty.clone());
    let known: Vec<SqlType> = known.collect();
    let collation = context.evaluation.connection_collation;
    let common = match known.is_empty() {
        true => otherwise.cloned(),
        false => Some(unify(&known, collation, "parameter")?),
    };
    let Some(common) = common.filter(|ty| ty.kind != TypeKind::Null) else { return Ok(list) };
    Ok(list.into_iter().map(|one| inferred(context, one, &common)).collect())
}

/// The type of a parameter beside a type.
fn parameter_type(beside: &SqlType, connection: CollationId) -> SqlType {
    match &beside.kind {
        TypeKind::Integer { unsigned: true, .. } => SqlType::bigint_unsigned(),
        TypeKind::Integer { .. } => SqlType::bigint(),
        TypeKind::Decimal { .. } => SqlType::decimal(65, 30),
        TypeKind::Float | TypeKind::Double => SqlType::double(),
        TypeKind::Bit { .. } => SqlType::new(TypeKind::Bit { bits: 64 }),
        TypeKind::Time { .. } => SqlType::new(TypeKind::Time { fsp: 6 }),
        TypeKind::DateTime { .. } | TypeKind::Timestamp { .. } => {
            SqlType::new(TypeKind::DateTime { fsp: 6 })
        }
        TypeKind::Date | TypeKind::Year | TypeKind::Json => SqlType::new(beside.kind.clone()),
        TypeKind::Text { .. } => {
            SqlType::new(TypeKind::Text { max_bytes: u32::MAX, collation: connection })
        }
        TypeKind::Blob { .. } => SqlType::new(TypeKind::Blob { max_bytes: u32::MAX }),
        TypeKind::Binary { .. } | TypeKind::Varbinary { .. } | TypeKind::Geometry => bytes(),
        kind => {
            let bytes = kind.charset().map_or(LONGEST_CHARACTER, Charset::max_character_bytes);
            let collation = kind.collation().unwrap_or(connection);
            SqlType::varchar(LONGEST_TEXT_BYTES / bytes, collation)
        }
    }
}
