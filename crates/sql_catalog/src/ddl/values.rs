//! Conversions of values between rows, expressions and defaults, by the rules of assignment.

use firn_format::key::{Direction, KeyLayout, KeyPart};
use firn_format::value::{DateTime, Value, ValueError, ValueRef};
use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::{Datum, Decimal, EvaluationContext, SqlType, TypeKind, calendar, cast};

use super::super::model::{ColumnModel, IndexPartModel, TableModel};
use super::super::notation::literal_text;

fn unfit(error: ValueError) -> SqlError {
    match error {
        ValueError::NoMemory(no_room) => no_room.into(),
        _ => SqlError::new(1105, format!("Unknown error: {error}")),
    }
}

/// A stored value in the form of expressions.
pub(super) fn from_value(
    value: ValueRef<'_>,
    column: &ColumnModel,
    evaluation: &EvaluationContext,
) -> Result<Datum> {
    Datum::from_value_ref(value, &column.ty, &evaluation.time_zone).map_err(unfit)
}

/// A value of one type, converted for a column of another type.
///
/// # Errors
/// An error for a value that does not fit, if the context is strict.
pub(super) fn assign(
    datum: &Datum,
    from: &SqlType,
    to: &ColumnModel,
    evaluation: &EvaluationContext,
) -> Result<Datum> {
    let source = cast::Source::Expression;
    let target = cast::Target { ty: &to.ty, column: &to.name, row: 1, ctx: evaluation, source };
    cast::assign_within(datum, from, target, to.float_limits())
}

/// A value of a column's type in stored form.
///
/// # Errors
/// If it is none.
pub(super) fn to_value(
    datum: &Datum,
    column: &ColumnModel,
    evaluation: &EvaluationContext,
) -> Result<Value> {
    datum.to_stored(&column.ty, &evaluation.time_zone).map_err(unfit)
}

/// The value of a NOT NULL column in rows about which nothing is known; `None` if there is no such
/// value.
pub(super) fn implicit_default(kind: &TypeKind) -> Option<Datum> {
    Some(match kind {
        TypeKind::Null | TypeKind::Geometry => return None,
        TypeKind::Integer { unsigned: false, .. } => Datum::Int(0),
        TypeKind::Integer { .. } | TypeKind::Bit { .. } | TypeKind::Year | TypeKind::Set { .. } => {
            Datum::UInt(0)
        }
        TypeKind::Enum { .. } => Datum::UInt(1),
        TypeKind::Decimal { scale, .. } => Datum::Decimal(Decimal::from_unscaled(0, *scale)),
        TypeKind::Float | TypeKind::Double => Datum::Double(0.0),
        kind if kind.is_string() => Datum::text(""),
        TypeKind::Date => Datum::Date(0),
        TypeKind::Time { .. } => Datum::Time(0),
        TypeKind::DateTime { .. } | TypeKind::Timestamp { .. } => Datum::DateTime(0),
        TypeKind::Json => Datum::Json(std::sync::Arc::new(firn_sql_types::JsonValue::Null)),
        _ => return None,
    })
}

/// `CURRENT_TIMESTAMP(fsp)` of the statement, in the session's time zone.
pub(super) fn statement_time(evaluation: &EvaluationContext, fsp: u8) -> Datum {
    let step = 10_i64.pow(6 - u32::from(fsp.min(6)));
    let us = evaluation.statement_time_us.div_euclid(step) * step;
    let local: Option<DateTime> = evaluation.time_zone.to_local(us);
    local.or_else(|| calendar::date_time_from_unix_us(us)).map_or(Datum::Null, Datum::from)
}

/// `Duplicate entry '1-a' for key 't.k'`, for the values of a row.
pub(super) fn duplicate_entry(
    table: &TableModel,
    index: &str,
    values: &[Option<(Value, &ColumnModel)>],
    evaluation: &EvaluationContext,
) -> SqlError {
    let texts = values.iter().map(|value| match value {
        Some((value, column)) => match from_value(value.as_ref(), column, evaluation) {
            Ok(datum) => literal_text(&datum, &column.ty),
            Err(_) => String::new(),
        },
        None => String::new(),
    });
    let mut entry = texts.collect::<Vec<_>>().join("-");
    if let Some((at, _)) = entry.char_indices().nth(MAX_ENTRY_CHARACTERS) {
        entry.truncate(at);
        entry.push_str("...");
    }
    let message = format!("Duplicate entry '{entry}' for key '{}.{index}'", table.name);
    SqlError::new(1062, message)
}

/// How much of an entry is shown.
const MAX_ENTRY_CHARACTERS: usize = 64;

/// The same, for a key's bytes: parts that cannot be read back are left out.
pub(super) fn duplicate_key(
    table: &TableModel,
    index: &str,
    parts: &[IndexPartModel],
    key: &[u8],
    evaluation: &EvaluationContext,
) -> SqlError {
    let columns: Vec<&ColumnModel> =
        parts.iter().filter_map(|part| table.by_ordinal(part.ordinal)).collect();
    let key_parts = columns.iter().zip(parts).map(|(column, part)| KeyPart {
        column: part.ordinal,
        column_type: table.table.definition().columns[usize::from(part.ordinal)].column_type,
        nullable: column.ty.nullable,
        direction: if part.descending { Direction::Descending } else { Direction::Ascending },
        prefix_length: part.prefix,
    });
    let layout = KeyLayout::new(key_parts.collect());
    let decoded = layout.and_then(|layout| layout.decode(key, table.table.collations()));
    let decoded = decoded.unwrap_or_default();
    let values: Vec<Option<(Value, &ColumnModel)>> = decoded
        .into_iter()
        .zip(columns)
        .map(|(value, column)| value.map(|value| (value, column)))
        .collect();
    duplicate_entry(table, index, &values, evaluation)
}
