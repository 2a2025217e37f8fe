//! Conversions of values between row format, expressions and text.

use firn_format::value::ValueRef;

use crate::collation::Charset;
use crate::error::{Result, damaged};
use crate::types::{ByteString, Datum, EvaluationContext, SqlType, cast};

/// A stored value as a datum.
#[inline]
pub(crate) fn datum(
    value: ValueRef<'_>,
    ty: &SqlType,
    context: &EvaluationContext,
) -> Result<Datum> {
    Datum::from_value_ref(value, ty, &context.time_zone).map_err(damaged)
}

/// A value as text in UTF-8.
pub(crate) fn text(value: &Datum, ty: &SqlType, context: &EvaluationContext) -> Result<ByteString> {
    Ok(cast::to_text(value, ty, Charset::Utf8mb4, context)?.unwrap_or_default())
}
