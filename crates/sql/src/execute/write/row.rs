//! Conversions of values to and from a row's stored form.

use firn_api::rows::{TableRef, Transaction, cell_value};
use firn_format::row::RowView;
use firn_format::value::{ColumnType, DateTime, Value, ValueRef};

use crate::error::{Result, SqlError};
use crate::types::json::JsonValue;
use crate::types::{Datum, EvaluationContext};

use super::super::access::Fitted;
use super::super::error::{from_row, from_rows};

/// A value of a column as its row stores it.
pub(super) fn store<'a>(
    datum: &'a Datum,
    column_type: ColumnType,
    context: &EvaluationContext,
) -> Result<Fitted<'a>> {
    let mismatch = || {
        let shown = datum.plain_text();
        SqlError::new(1105, format!("Unknown error: '{shown}' is no value of the column's type"))
    };
    let value = match (column_type, datum) {
        (_, Datum::Null) => ValueRef::Null,
        (ColumnType::Int(_), Datum::Int(number)) => ValueRef::Int(*number),
        (ColumnType::Int(_), Datum::UInt(number)) => {
            ValueRef::Int(i64::try_from(*number).map_err(|_| mismatch())?)
        }
        (ColumnType::Float, Datum::Double(number)) => ValueRef::Float(*number as f32),
        (ColumnType::Double, Datum::Double(number)) => ValueRef::Double(*number),
        (ColumnType::Decimal(decimal_type), Datum::Decimal(number)) => {
            return number.to_stored(decimal_type).map(Fitted::Decimal).ok_or_else(mismatch);
        }
        (ColumnType::Date, Datum::Date(packed))
        | (ColumnType::Time { .. }, Datum::Time(packed))
        | (ColumnType::DateTime { .. }, Datum::DateTime(packed)) => ValueRef::Temporal(*packed),
        (ColumnType::Timestamp { .. }, Datum::DateTime(packed)) => {
            ValueRef::Temporal(instant(DateTime::unpack(*packed), context).ok_or_else(mismatch)?)
        }
        (ColumnType::Json, Datum::Json(document)) => {
            return serialized(document, context).map(Fitted::Bytes);
        }
        (column_type, Datum::UInt(number)) if column_type.fixed_length().is_some() => {
            ValueRef::UInt(*number)
        }
        (column_type, Datum::Int(number)) if column_type.fixed_length().is_some() => {
            ValueRef::UInt(u64::try_from(*number).map_err(|_| mismatch())?)
        }
        (column_type, Datum::Text(octets)) if column_type.fixed_length().is_none() => {
            ValueRef::Bytes(octets)
        }
        _ => return Err(mismatch()),
    };
    Ok(Fitted::Value(value))
}

/// A document in its stored form.
///
/// # Errors
/// 1301 if it is longer than a packet, whatever the statement's modes.
fn serialized(document: &JsonValue, context: &EvaluationContext) -> Result<Vec<u8>> {
    let bytes = document.to_text().into_bytes();
    match bytes.len() as u64 > context.max_allowed_packet_bytes {
        true => Err(SqlError::larger_than_packet(
            "json_binary::serialize",
            context.max_allowed_packet_bytes,
        )),
        false => Ok(bytes),
    }
}

/// Microseconds since 1970 UTC of a local time; the zero date is 0.
fn instant(local: DateTime, context: &EvaluationContext) -> Option<i64> {
    if local == DateTime::default() {
        return Some(0);
    }
    context.time_zone.to_timestamp_us(local)
}

/// The stored value of a column of a row, owned.
pub(super) fn stored_value(
    payload: &[u8],
    ordinal: u16,
    table: &TableRef,
    transaction: &dyn Transaction,
) -> Result<Value> {
    let view = RowView::parse(&table.layout().row, payload).map_err(from_row)?;
    let cell = view.column(usize::from(ordinal)).map_err(from_row)?;
    let mut overflow = Vec::new();
    let value = cell_value(transaction, table, cell, &mut overflow).map_err(from_rows)?;
    Ok(value.to_value())
}

/// Whether a column of a row already holds this value.
pub(super) fn holds(
    payload: &[u8],
    ordinal: u16,
    value: ValueRef<'_>,
    table: &TableRef,
    transaction: &dyn Transaction,
    overflow: &mut Vec<u8>,
) -> Result<bool> {
    let view = RowView::parse(&table.layout().row, payload).map_err(from_row)?;
    let cell = view.column(usize::from(ordinal)).map_err(from_row)?;
    let stored = cell_value(transaction, table, cell, overflow).map_err(from_rows)?;
    Ok(match (stored, value) {
        // Zero and negative zero are different stored values.
        (ValueRef::Double(one), ValueRef::Double(other)) => one.to_bits() == other.to_bits(),
        (ValueRef::Float(one), ValueRef::Float(other)) => one.to_bits() == other.to_bits(),
        (one, other) => one == other,
    })
}
