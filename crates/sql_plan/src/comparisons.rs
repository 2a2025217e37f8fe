//! The comparisons that an index, a hash table or an equality class can evaluate.

use firn_sql_logical::expression::{Expression, ExpressionKind};
use firn_sql_types::{ComparisonKind, SqlType, TypeKind};

/// Whether a comparison of `kind` between a column and a value follows the order of the column's
/// index, and if so, whether the index finds exactly what the comparison means.
#[must_use]
pub(crate) fn index_order(
    column: &SqlType,
    kind: &ComparisonKind,
    value: &SqlType,
) -> Option<bool> {
    let is_numeric = value.kind.is_numeric() || value.kind == TypeKind::Null;
    match (kind, &column.kind) {
        (ComparisonKind::Integer | ComparisonKind::Decimal, of) if of.is_integer() => {
            is_numeric.then_some(true)
        }
        (ComparisonKind::Integer | ComparisonKind::Decimal, TypeKind::Decimal { .. }) => {
            is_numeric.then_some(true)
        }
        // Beyond 2^53, neighbouring integers are the same double.
        (ComparisonKind::Double, of) if of.is_integer() => is_numeric.then_some(false),
        (ComparisonKind::Double, TypeKind::Decimal { .. }) => is_numeric.then_some(false),
        (ComparisonKind::Double, TypeKind::Float | TypeKind::Double) => is_numeric.then_some(true),
        (ComparisonKind::Text(collation), of) if of.is_string() => {
            let is_text = value.kind.is_string() || value.kind == TypeKind::Null;
            (is_text && column.collation() == Some(*collation)).then_some(true)
        }
        (ComparisonKind::DateTime, TypeKind::Timestamp { .. }) => {
            value.kind.has_date().then_some(false)
        }
        (ComparisonKind::DateTime, of) if of.has_date() => value.kind.has_date().then_some(true),
        (ComparisonKind::Time, TypeKind::Time { .. }) => {
            matches!(value.kind, TypeKind::Time { .. }).then_some(true)
        }
        (ComparisonKind::Integer, of) if of.is_enum_or_set() => is_numeric.then_some(true),
        _ => None,
    }
}

/// Whether equality of `kind` between two such columns is transitive: if two values equal a third
/// one, all are equal, and any may replace any other.
#[must_use]
pub(crate) fn is_transitive(one: &SqlType, kind: &ComparisonKind, two: &SqlType) -> bool {
    let both = |test: fn(&TypeKind) -> bool| test(&one.kind) && test(&two.kind);
    match kind {
        ComparisonKind::Integer => both(TypeKind::is_integer),
        ComparisonKind::Decimal => {
            both(|kind| kind.is_integer() || matches!(kind, TypeKind::Decimal { .. }))
        }
        ComparisonKind::Text(collation) => {
            both(TypeKind::is_string)
                && [one, two].iter().all(|ty| ty.collation() == Some(*collation))
        }
        ComparisonKind::DateTime => both(TypeKind::has_date),
        ComparisonKind::Time => both(|kind| matches!(kind, TypeKind::Time { .. })),
        ComparisonKind::Double | ComparisonKind::Json => false,
    }
}

/// A side of an equality as a key of a hash join: cast so that the keys of both sides have the same
/// form.
#[must_use]
pub(crate) fn as_hash_key(side: Expression, kind: &ComparisonKind, other: &SqlType) -> Expression {
    let is_same = side.ty.kind == other.kind
        || side.ty.kind.is_integer()
            && other.kind.is_integer()
            && side.ty.kind.is_unsigned() == other.kind.is_unsigned()
        || side.ty.kind.has_date() && other.kind.has_date()
        || matches!(side.ty.kind, TypeKind::Float | TypeKind::Double)
            && matches!(other.kind, TypeKind::Float | TypeKind::Double)
        || side.ty.kind.is_string()
            && other.kind.is_string()
            && side.ty.collation() == other.collation();
    if is_same {
        return side;
    }
    let wanted = match kind {
        ComparisonKind::Integer => SqlType::decimal(20, 0).kind,
        ComparisonKind::Decimal => SqlType::decimal(65, 30).kind,
        ComparisonKind::Double => TypeKind::Double,
        ComparisonKind::Text(collation) => {
            TypeKind::Varchar { max_chars: side.ty.max_text_chars(), collation: *collation }
        }
        ComparisonKind::DateTime => TypeKind::DateTime { fsp: 6 },
        ComparisonKind::Time => TypeKind::Time { fsp: 6 },
        // A text is used as a string, and is not parsed.
        ComparisonKind::Json => return side,
    };
    if side.ty.kind == wanted {
        return side;
    }
    let ty = SqlType { kind: wanted, ..side.ty.clone() };
    Expression { kind: ExpressionKind::Cast(Box::new(side)), ty }
}
