//! Bytes of rows to columns, a column at a time.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Decimal128Builder};
use arrow::datatypes::{Schema, SchemaRef};
use firn_api::rows::{RowBatch, RowSpan, TableRef, Transaction, cell_value};
use firn_format::row::{NumberReader, RowView};
use firn_format::value::{DecimalType, Value, ValueRef};
use firn_sql::error::SqlError;
use firn_sql::execute::error::{from_row, from_rows};
use firn_sql::types::{Datum, SqlType, TimeZone, TypeKind};

use super::{BATCH_BYTES, BATCH_ROWS, ScanColumn, ScanShape};
use crate::stop::Result;
use crate::value::{Builder, unscaled};

/// Rows that were gathered: bytes of theirs in one piece, and where in them each row is.
#[derive(Default)]
pub(super) struct Gathered {
    bytes: Vec<u8>,
    rows: Vec<Range<usize>>,
}

impl Gathered {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.rows.clear();
    }

    /// How many rows there are.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether no row is to be added any more.
    pub(super) fn is_full(&self) -> bool {
        self.rows.len() >= BATCH_ROWS || self.bytes.len() >= BATCH_BYTES
    }

    /// Adds rows as they lie in memory.
    pub(super) fn append(&mut self, batch: &RowBatch<'_>) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(batch.bytes);
        let place = |span: &RowSpan| start + span.row_start as usize..start + span.row_end as usize;
        self.rows.extend(batch.spans.iter().map(place));
    }
}

/// Where rows that were gathered come from.
pub(super) struct Source<'a> {
    pub(super) gathered: &'a Gathered,
    pub(super) table: &'a TableRef,
    pub(super) transaction: &'a dyn Transaction,
}

/// Decodes rows of one scan.
pub(crate) struct Decoder {
    columns: Vec<ScanColumn>,
    time_zone: TimeZone,
    /// Builders for rows that come from an index alone.
    values: Vec<Builder>,
    value_rows: usize,
    overflow: Vec<u8>,
}

/// The schema of decoded columns.
pub(super) fn schema(columns: &[ScanColumn]) -> SchemaRef {
    let field = |(number, column): (usize, &ScanColumn)| {
        arrow::datatypes::Field::new(format!("c{number}"), column.field.physical.data_type(), true)
    };
    Arc::new(Schema::new(columns.iter().enumerate().map(field).collect::<Vec<_>>()))
}

impl Decoder {
    pub(super) fn new(shape: &ScanShape) -> Decoder {
        Decoder {
            columns: shape.columns.clone(),
            time_zone: shape.time_zone.clone(),
            values: Vec::new(),
            value_rows: 0,
            overflow: Vec::new(),
        }
    }

    /// Rows that came from an index alone and wait for [`Decoder::finish_values`].
    pub(super) fn value_rows(&self) -> usize {
        self.value_rows
    }

    /// Takes a row that came from an index alone.
    pub(super) fn append_values(&mut self, values: &[Value]) -> Result<()> {
        if self.values.is_empty() {
            let builder = |column: &ScanColumn| column.field.physical.builder(BATCH_ROWS);
            self.values = self.columns.iter().map(builder).collect();
        }
        for ((builder, column), value) in self.values.iter_mut().zip(&self.columns).zip(values) {
            append(builder, value.as_ref(), &column.field.ty, &self.time_zone)?;
        }
        self.value_rows += 1;
        Ok(())
    }

    /// The columns of the rows that were taken.
    pub(super) fn finish_values(&mut self) -> Vec<ArrayRef> {
        self.value_rows = 0;
        std::mem::take(&mut self.values).iter_mut().map(Builder::finish).collect()
    }

    /// Columns of the gathered rows, or of those that are chosen.
    pub(super) fn decode(
        &mut self,
        source: &Source<'_>,
        columns: Range<usize>,
        chosen: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        if columns.is_empty() {
            return Ok(Vec::new());
        }
        let Gathered { bytes, rows } = source.gathered;
        let row = |row: &Range<usize>| &bytes[row.clone()];
        let rows: Vec<&[u8]> = match chosen {
            None => rows.iter().map(row).collect(),
            Some(chosen) => {
                chosen.values().set_indices().map(|number| row(&rows[number])).collect()
            }
        };
        columns.map(|number| self.decode_column(number, &rows, source)).collect()
    }

    fn decode_column(
        &mut self,
        number: usize,
        rows: &[&[u8]],
        source: &Source<'_>,
    ) -> Result<ArrayRef> {
        let ScanColumn { ordinal, field } = &self.columns[number];
        let layout = &source.table.layout().row;
        let numbers = layout.number_reader(usize::from(*ordinal));
        let reader = layout.column_reader(usize::from(*ordinal));
        let mut builder = field.physical.builder(rows.len());
        let mut rest = rows;
        loop {
            let read = numbers.map_or(0, |numbers| append_numbers(&mut builder, &numbers, rest));
            let Some((row, behind)) = rest[read..].split_first() else { break };
            rest = behind;
            let value = match reader.and_then(|reader| reader.read(row)) {
                Some(value) => value,
                None => {
                    let view = RowView::parse(layout, row).map_err(from_row)?;
                    let cell = view.column(usize::from(*ordinal)).map_err(from_row)?;
                    let (transaction, table) = (source.transaction, source.table);
                    cell_value(transaction, table, cell, &mut self.overflow).map_err(from_rows)?
                }
            };
            append(&mut builder, value, &field.ty, &self.time_zone)?;
        }
        Ok(builder.finish())
    }
}

/// Appends a column's numbers, as far as they can be read all in one way; returns of how many rows.
fn append_numbers(builder: &mut Builder, reader: &NumberReader, rows: &[&[u8]]) -> usize {
    match builder {
        Builder::Int(builder, _) => reader.read_all(rows, |number| builder.append_option(number)),
        Builder::UInt(builder) => {
            reader.read_all(rows, |number| builder.append_option(number.map(|bits| bits as u64)))
        }
        Builder::Decimal(builder, _) => {
            reader.read_all(rows, |number| builder.append_option(number.map(i128::from)))
        }
        Builder::Double(_) | Builder::Bytes(_) => 0,
    }
}

/// Appends a stored value to a column.
#[inline]
fn append(
    builder: &mut Builder,
    value: ValueRef<'_>,
    ty: &SqlType,
    time_zone: &TimeZone,
) -> Result<()> {
    match (&mut *builder, value) {
        (Builder::Int(builder, _), ValueRef::Int(number)) => builder.append_value(number),
        (Builder::UInt(builder), ValueRef::UInt(number)) => builder.append_value(number),
        (Builder::Double(builder), ValueRef::Double(number)) => builder.append_value(number),
        (Builder::Bytes(builder), ValueRef::Bytes(bytes)) => builder.append_value(bytes),
        (Builder::Int(builder, _), ValueRef::Temporal(packed))
            if !matches!(ty.kind, TypeKind::Timestamp { .. }) =>
        {
            builder.append_value(packed);
        }
        (Builder::Decimal(builder, _), ValueRef::Decimal(encoded)) => {
            append_decimal(builder, encoded, ty)?;
        }
        (_, ValueRef::Null) => builder.append(&Datum::Null)?,
        (_, value) => {
            let datum = Datum::from_value_ref(value, ty, time_zone).map_err(damaged)?;
            builder.append(&datum)?;
        }
    }
    Ok(())
}

fn append_decimal(builder: &mut Decimal128Builder, encoded: &[u8], ty: &SqlType) -> Result<()> {
    let TypeKind::Decimal { precision, scale, .. } = ty.kind else {
        return crate::stop::declined("a decimal is stored where none is expected");
    };
    let Some(digits) = DecimalType::new(precision, scale) else {
        return crate::stop::declined("a decimal's digits are out of range");
    };
    let number = if precision <= crate::value::DECIMAL_DIGITS {
        digits.unpack_i128(encoded).map_err(damaged)?
    } else {
        let number = firn_sql::types::Decimal::from_stored(digits, encoded).map_err(damaged)?;
        unscaled(&number, scale)?
    };
    builder.append_value(number);
    Ok(())
}

fn damaged(error: firn_format::value::ValueError) -> SqlError {
    SqlError::new(1034, format!("Damaged row: {error}"))
}
