//! Parts of documents as values of columns of SQL types, for `JSON_TABLE`.

use crate::error::{Result, SqlError};
use crate::json::JsonValue;
use crate::{Datum, EvaluationContext, SqlMode, SqlType, StatementKind, TypeKind};

use super::{Source, Target, assign};

/// A context in which a value that does not fit is an error.
#[allow(clippy::field_reassign_with_default)] // some fields are private to its module
pub fn fitting_context(of: &EvaluationContext) -> EvaluationContext {
    let mut context = EvaluationContext::default();
    context.sql_mode = SqlMode(of.sql_mode.0 | SqlMode::STRICT_ALL_TABLES.0);
    context.time_zone = of.time_zone.clone();
    context.statement_time_us = of.statement_time_us;
    context.connection_collation = of.connection_collation;
    context.statement_kind = StatementKind::Write;
    context
}

/// A part of a document as a value of a column.
///
/// # Errors
/// 3666 for an array or object in a column that takes neither, and errors of storing the value.
pub fn fitting_value(
    value: &JsonValue,
    ty: &SqlType,
    column: &str,
    context: &EvaluationContext,
) -> Result<Datum> {
    if ty.kind == TypeKind::Json {
        return Ok(Datum::from(value.clone()));
    }
    let collation = context.connection_collation;
    let text = |text: &str| {
        let length = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
        (Datum::text(text.as_bytes()), SqlType::varchar(length, collation))
    };
    let (datum, from) = match value {
        JsonValue::Null => return Ok(Datum::Null),
        JsonValue::Array(_) | JsonValue::Object(_) => {
            let message = format!(
                "Can't store an array or an object in the scalar JSON_TABLE column '{column}'"
            );
            return Err(SqlError::new(3666, message));
        }
        JsonValue::String(inner) => text(inner),
        JsonValue::Bool(truth) if ty.kind.is_text() => text(if *truth { "true" } else { "false" }),
        other => (Datum::from(other.clone()), SqlType::new(TypeKind::Json)),
    };
    assign(&datum, &from, Target { ty, column, row: 1, ctx: context, source: Source::Expression })
}
