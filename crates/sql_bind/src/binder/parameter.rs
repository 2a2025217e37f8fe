//! The types of unknown parameters, inferred from the expressions beside them.
//!
//! ```text
//!   PREPARE … WHERE id = ? AND price * ? > 10      ? of BIGINT, ? of DECIMAL(65,30)
//! ```
//!
//! Clients learn these types when a statement is prepared. An execution uses the types of the
//! values that it gets.

use firn_format::value::CollationId;

use firn_sql_logical::PlanContext;
use firn_sql_logical::expression::{Expression, ExpressionKind};
use firn_sql_types::error::Result;
use firn_sql_types::{SqlType, TypeKind, unify};

/// The longest text of a parameter beside a text, in characters.
pub(crate) const TEXT_CHARS: u32 = 16_383;

fn unknown_parameter(context: &PlanContext<'_>, expression: &Expression) -> Option<usize> {
    match expression.kind {
        ExpressionKind::Parameter(number) => {
            let number = number as usize;
            (number >= context.parameters.len()).then_some(number)
        }
        _ => None,
    }
}

/// An unknown parameter, with the type that matches the other expression; any other expression
/// unchanged.
pub(crate) fn inferred(
    context: &PlanContext<'_>,
    expression: Expression,
    beside: &SqlType,
) -> Expression {
    let Some(number) = unknown_parameter(context, &expression) else { return expression };
    let collation = context.evaluation.connection_collation;
    let ty = parameter_type(beside, collation).with_nullable(true);
    let mut known = context.parameter_types.borrow_mut();
    if known.len() <= number {
        known.resize(number + 1, None);
    }
    known[number].get_or_insert_with(|| ty.clone());
    Expression { ty, ..expression }
}

/// The two sides of a comparison.
pub(crate) fn inferred_pair(
    context: &PlanContext<'_>,
    left: Expression,
    right: Expression,
) -> (Expression, Expression) {
    match (unknown_parameter(context, &left), unknown_parameter(context, &right)) {
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
    let is_unknown = |one: &Expression| unknown_parameter(context, one).is_some();
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
        TypeKind::Binary { .. } | TypeKind::Varbinary { .. } | TypeKind::Geometry => {
            SqlType::varbinary(65_535)
        }
        _ => SqlType::varchar(TEXT_CHARS, connection),
    }
}
