//! The aggregate functions and the types of their values. Executors compute the values.

use firn_sql_types::decimal::{MAX_PRECISION, MAX_SCALE};
use firn_sql_types::error::Result;
use firn_sql_types::{Coercibility, SqlType, TypeKind};

use crate::signature::{Want, exact_digits, merge_text};
use crate::{ResolveContext, Signature};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AggregateFunction {
    /// `COUNT(*)`
    CountRows,
    /// `COUNT(x, …)`
    Count,
    Sum,
    /// `AVG`
    Average,
    Min,
    Max,
    BitAnd,
    BitOr,
    BitXor,
    GroupConcat,
    /// `STDDEV_POP`, `STD`, `STDDEV`
    StandardDeviation,
    /// `STDDEV_SAMP`
    SampleStandardDeviation,
    /// `VAR_POP`, `VARIANCE`
    Variance,
    /// `VAR_SAMP`
    SampleVariance,
    /// `JSON_ARRAYAGG`
    JsonArray,
    /// `JSON_OBJECTAGG`
    JsonObject,
    /// `ANY_VALUE`, and columns outside `GROUP BY` where the mode allows them.
    AnyValue,
}

impl AggregateFunction {
    /// Whether the arguments count as numbers.
    #[must_use]
    pub const fn takes_numbers(self) -> bool {
        matches!(
            self,
            AggregateFunction::Sum
                | AggregateFunction::Average
                | AggregateFunction::StandardDeviation
                | AggregateFunction::SampleStandardDeviation
                | AggregateFunction::Variance
                | AggregateFunction::SampleVariance
                | AggregateFunction::BitAnd
                | AggregateFunction::BitOr
                | AggregateFunction::BitXor
        )
    }
}

/// The additional digits of a sum beyond those of its terms.
const DIGITS_OF_SUMS: u8 = 22;

/// The signature of an aggregate.
///
/// # Errors
/// 1267 if texts to be concatenated have no common collation.
pub fn resolve_aggregate(
    function: AggregateFunction,
    types: &[SqlType],
    context: &ResolveContext<'_>,
) -> Result<Signature> {
    use AggregateFunction as Aggregate;
    let every = |want: Want| types.iter().map(|ty| want.of(ty, context)).collect::<Vec<_>>();
    Ok(match function {
        Aggregate::CountRows | Aggregate::Count => {
            Signature { arguments: types.to_vec(), result: SqlType::bigint().not_null() }
        }
        Aggregate::Sum => {
            let arguments = every(Want::Number);
            let result = sum_type(&arguments[0]);
            Signature { arguments, result }
        }
        Aggregate::Average => {
            let arguments = every(Want::Number);
            let result = average_type(&arguments[0], context);
            Signature { arguments, result }
        }
        Aggregate::Min | Aggregate::Max | Aggregate::AnyValue => {
            let want = if types[0].kind.is_enum_or_set() { Want::Text } else { Want::Any };
            let arguments = every(want);
            let result = arguments[0].clone().with_nullable(true);
            Signature { arguments, result }
        }
        Aggregate::BitAnd | Aggregate::BitOr | Aggregate::BitXor => bits(types, context),
        Aggregate::GroupConcat => {
            let arguments = every(Want::Text);
            let result = joined_type(&arguments)?;
            Signature { arguments, result }
        }
        Aggregate::StandardDeviation
        | Aggregate::SampleStandardDeviation
        | Aggregate::Variance
        | Aggregate::SampleVariance => {
            Signature { arguments: every(Want::Double), result: SqlType::double() }
        }
        Aggregate::JsonArray => {
            Signature { arguments: types.to_vec(), result: SqlType::new(TypeKind::Json) }
        }
        Aggregate::JsonObject => {
            let arguments = vec![Want::Text.of(&types[0], context), types[1].clone()];
            Signature { arguments, result: SqlType::new(TypeKind::Json) }
        }
    })
}

fn sum_type(number: &SqlType) -> SqlType {
    if !is_exact(number) {
        return SqlType::double();
    }
    let (precision, scale) = exact_digits(&number.kind);
    let most = if scale > MAX_SCALE { u8::MAX } else { MAX_PRECISION };
    SqlType::decimal(precision.saturating_add(DIGITS_OF_SUMS).min(most), scale)
}

fn average_type(number: &SqlType, context: &ResolveContext<'_>) -> SqlType {
    if !is_exact(number) {
        return SqlType::double();
    }
    let (precision, scale) = exact_digits(&number.kind);
    let more = context.div_precision_increment;
    let precision = precision.saturating_add(more).min(MAX_PRECISION);
    SqlType::decimal(precision, scale.saturating_add(more).min(MAX_SCALE))
}

fn is_exact(number: &SqlType) -> bool {
    matches!(number.kind, TypeKind::Integer { .. } | TypeKind::Decimal { .. } | TypeKind::Null)
}

fn bits(types: &[SqlType], context: &ResolveContext<'_>) -> Signature {
    let ty = &types[0];
    // A NULL that is worked out is an empty binary string.
    if ty.kind == TypeKind::Null && context.constant(0).is_none() {
        let empty = SqlType::varbinary(0);
        return Signature { arguments: vec![empty.clone()], result: empty };
    }
    if ty.kind.is_binary() {
        return Signature { arguments: types.to_vec(), result: ty.clone().with_nullable(true) };
    }
    let arguments = vec![Want::Int.of(ty, context)];
    Signature { arguments, result: SqlType::bigint_unsigned().not_null() }
}

fn joined_type(texts: &[SqlType]) -> Result<SqlType> {
    const MAX_BYTES: u32 = u32::MAX;
    let (collation, coercibility) = merge_text(texts, "group_concat")?;
    // NULL alone is bytes.
    let binary =
        coercibility == Coercibility::Ignorable || texts.iter().any(|ty| ty.kind.is_binary());
    let kind = match binary {
        true => TypeKind::Blob { max_bytes: MAX_BYTES },
        false => TypeKind::Text { max_bytes: MAX_BYTES, collation },
    };
    Ok(SqlType::new(kind).with_coercibility(coercibility))
}
