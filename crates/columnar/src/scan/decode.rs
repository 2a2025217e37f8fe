//! Bytes of rows to columns, a column at a time.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Decimal128Builder};
use arrow::datatypes::{Schema, SchemaRef};
use firn_api::rows::{RowBatch, RowSpan, TableRef, Transaction, cell_value};
use firn_format::row::{NumberReader, RowView};
use firn_format::value::{DecimalType, Value, ValueRef};
use firn_sql::error::damaged;
use firn_sql::execute::error::{from_row, from_rows};
use firn_sql::types::{Datum, SqlType, TimeZone, TypeKind};

use super::{BATCH_BYTES, ScanColumn, ScanShape};
use crate::batch::BATCH_ROWS;
use crate::cache::PackedRows;
use crate::cache::packed::{Chosen, Packed};
use crate::stop_reason::{Result, declined};
use crate::value::{Builder, unscaled};

/// The input of a batch in the scan's order: bytes of rows, and rows whose columns are already
/// decoded.
#[derive(Default)]
pub(super) struct Gathered {
    bytes: Vec<u8>,
    rows: Vec<Range<usize>>,
    parts: Vec<Part>,
    row_count: usize,
    size_bytes: usize,
}

/// Rows from one source.
enum Part {
    /// The next rows of [`Gathered::rows`], by their number.
    Rows(usize),
    Packed(PackedRows),
}

/// The rows of a part that are wanted.
enum Wanted<'g> {
    Rows(Vec<&'g [u8]>),
    Packed(&'g PackedRows, Chosen),
}

impl Gathered {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.rows.clear();
        self.parts.clear();
        (self.row_count, self.size_bytes) = (0, 0);
    }

    /// How many rows there are.
    pub(super) fn len(&self) -> usize {
        self.row_count
    }

    /// Whether the batch is full.
    pub(super) fn is_full(&self) -> bool {
        self.row_count >= BATCH_ROWS || self.size_bytes >= BATCH_BYTES
    }

    /// Adds rows as they lie in memory.
    pub(super) fn append(&mut self, batch: &RowBatch<'_>) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(batch.bytes);
        let place = |span: &RowSpan| start + span.row_start as usize..start + span.row_end as usize;
        self.rows.extend(batch.spans.iter().map(place));
        match self.parts.last_mut() {
            Some(Part::Rows(count)) => *count += batch.spans.len(),
            _ => self.parts.push(Part::Rows(batch.spans.len())),
        }
        self.row_count += batch.spans.len();
        self.size_bytes += batch.bytes.len();
    }

    /// Adds rows of packed columns.
    pub(super) fn append_packed(&mut self, packed: PackedRows) {
        self.row_count += packed.rows.len();
        let share = packed.rows.len() as f64 / packed.total.max(1) as f64;
        let size_bytes = packed.columns.iter().map(Packed::size_bytes).sum::<usize>();
        self.size_bytes += (size_bytes as f64 * share) as usize;
        self.parts.push(Part::Packed(packed));
    }

    /// The last `count` rows, which were added as stored bytes.
    pub(super) fn last_rows(&self, count: usize) -> Vec<&[u8]> {
        let rows = &self.rows[self.rows.len() - count..];
        rows.iter().map(|row| &self.bytes[row.clone()]).collect()
    }

    /// Replaces the last rows by their columns.
    pub(super) fn replace_last_rows(&mut self, packed: PackedRows) {
        let count = packed.rows.len();
        let first = self.rows.len() - count;
        self.bytes.truncate(self.rows.get(first).map_or(self.bytes.len(), |row| row.start));
        self.rows.truncate(first);
        match self.parts.pop() {
            Some(Part::Rows(all)) if all > count => self.parts.push(Part::Rows(all - count)),
            _ => {}
        }
        self.row_count -= count;
        self.append_packed(packed);
    }

    /// The wanted rows, part by part.
    fn wanted(&self, chosen: Option<&BooleanArray>) -> Vec<Wanted<'_>> {
        let (mut wanted, mut first, mut first_stored) =
            (Vec::with_capacity(self.parts.len()), 0, 0);
        for part in &self.parts {
            let rows = match part {
                Part::Rows(count) => first_stored..first_stored + count,
                Part::Packed(packed) => packed.rows.clone(),
            };
            let bits = chosen.map(|chosen| chosen.values().slice(first, rows.len()));
            first += rows.len();
            let chosen = Chosen { rows, bits };
            wanted.push(match part {
                Part::Rows(count) => {
                    first_stored += count;
                    let mut rows = Vec::with_capacity(*count);
                    chosen.for_each(|row| rows.push(&self.bytes[self.rows[row].clone()]));
                    Wanted::Rows(rows)
                }
                Part::Packed(packed) => Wanted::Packed(packed, chosen),
            });
        }
        wanted
    }
}

pub(super) struct Source<'a> {
    pub(super) table: &'a TableRef,
    pub(super) transaction: &'a dyn Transaction,
    /// Whether values out of line are read; otherwise they end the work.
    pub(super) reads_overflow: bool,
}

/// Decodes rows of one scan.
pub(crate) struct Decoder {
    columns: Vec<ScanColumn>,
    time_zone: TimeZone,
    /// Columns of entries that come from an index alone.
    entries: Vec<Builder>,
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
            entries: Vec::new(),
            overflow: Vec::new(),
        }
    }

    /// Takes a row that comes from an index alone, for [`Decoder::finish_entries`].
    pub(super) fn append_entry(&mut self, values: &[Value]) -> Result<()> {
        if self.entries.is_empty() {
            let builder = |column: &ScanColumn| column.field.physical.builder(BATCH_ROWS);
            self.entries = self.columns.iter().map(builder).collect();
        }
        for ((builder, column), value) in self.entries.iter_mut().zip(&self.columns).zip(values) {
            append(builder, value.as_ref(), &column.field.ty, &self.time_zone)?;
        }
        Ok(())
    }

    /// The columns of the entries that were taken.
    pub(super) fn finish_entries(&mut self) -> Vec<Packed> {
        let builders = std::mem::take(&mut self.entries).into_iter();
        builders.map(|mut builder| Packed::pack(&builder.finish())).collect()
    }

    pub(super) fn pack(&mut self, source: &Source<'_>, rows: &[&[u8]]) -> Result<Vec<Packed>> {
        let count = self.columns.len();
        let pack = |number: usize| {
            let mut builder = self.columns[number].field.physical.builder(rows.len());
            self.decode_rows(number, rows, source, &mut builder)?;
            Ok(Packed::pack(&builder.finish()))
        };
        (0..count).map(pack).collect()
    }

    /// The columns of the gathered rows, or of the selected ones.
    pub(super) fn decode(
        &mut self,
        source: &Source<'_>,
        gathered: &Gathered,
        columns: Range<usize>,
        chosen: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        if columns.is_empty() {
            return Ok(Vec::new());
        }
        let wanted = gathered.wanted(chosen);
        let rows = chosen.map_or(gathered.len(), BooleanArray::true_count);
        let decode = |number: usize| {
            let mut builder = self.columns[number].field.physical.builder(rows);
            for part in &wanted {
                match part {
                    Wanted::Rows(rows) => self.decode_rows(number, rows, source, &mut builder)?,
                    Wanted::Packed(packed, chosen) => {
                        packed.columns[number].unpack(packed.total, chosen, &mut builder);
                    }
                }
            }
            Ok(builder.finish())
        };
        columns.map(decode).collect()
    }

    fn decode_rows(
        &mut self,
        number: usize,
        rows: &[&[u8]],
        source: &Source<'_>,
        builder: &mut Builder,
    ) -> Result<()> {
        let ScanColumn { ordinal, field } = &self.columns[number];
        let layout = &source.table.layout().row;
        let numbers = layout.number_reader(usize::from(*ordinal));
        let reader = layout.column_reader(usize::from(*ordinal));
        let mut rest = rows;
        loop {
            let read = numbers.map_or(0, |numbers| append_numbers(builder, &numbers, rest));
            let Some((row, behind)) = rest[read..].split_first() else { return Ok(()) };
            rest = behind;
            let value = match reader.and_then(|reader| reader.read(row)) {
                Some(value) => value,
                None => {
                    let view = RowView::parse(layout, row).map_err(from_row)?;
                    let cell = view.column(usize::from(*ordinal)).map_err(from_row)?;
                    if !source.reads_overflow && cell.inline().is_none() {
                        return declined("a value is out of line");
                    }
                    let (transaction, table) = (source.transaction, source.table);
                    cell_value(transaction, table, cell, &mut self.overflow).map_err(from_rows)?
                }
            };
            append(builder, value, &field.ty, &self.time_zone)?;
        }
    }
}

/// Appends a column's numbers, as far as all can be read in one way; returns for how many rows.
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
        return declined("a decimal is stored where none is expected");
    };
    let Some(digits) = DecimalType::new(precision, scale) else {
        return declined("a decimal's digits are out of range");
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
