//! Scans of a table in the order of one of its indexes, batch by batch.
//!
//! ```text
//!   clustered            rows as the cursor has them
//!   secondary            entries, then the rows behind them, whose pages are fetched ahead together
//!   secondary, covering  entries only: they have every requested column
//! ```

use std::ops::Bound;
use std::sync::Arc;

use firn_api::rows as api;
use firn_base::IndexId;
use firn_format::key::{KeyLayout, KeyRange as Keys};
use firn_format::row::{ColumnValue, RowView};
use firn_format::value::Value;

use crate::error::EngineError;
use crate::table::{SecondaryIndex, Table};
use crate::transaction::{Cursor, Direction, KeyRange, ReadMode, RecordReader};

/// The rows that a scan reads, and how.
#[derive(Debug, Clone)]
pub struct ScanOptions {
    /// The index; `None`: the clustered one.
    pub index: Option<SecondaryIndex>,
    /// The keys of the index, see [`firn_format::key::KeyLayout::range`].
    pub range: Keys,
    pub direction: Direction,
    /// The versions to read, and the locks to take.
    pub mode: ReadMode,
    /// The ordinals of the columns to read; `None`: all. If a secondary index has all of them, the
    /// scan does not read rows; [`TableScan::is_covered`] reports it.
    pub columns: Option<Box<[u16]>>,
    /// The most rows in a batch.
    pub batch_rows: usize,
}

impl ScanOptions {
    /// All rows in the order of the primary key, as the transaction sees them.
    #[must_use]
    pub fn all() -> ScanOptions {
        ScanOptions {
            index: None,
            range: Keys::all(),
            direction: Direction::Forward,
            mode: ReadMode::Consistent,
            columns: None,
            batch_rows: usize::MAX,
        }
    }
}

/// Where an entry has a column.
#[derive(Debug, Clone, Copy)]
enum Source {
    Part(usize),
    PrimaryKeyPart(usize),
}

#[derive(Debug)]
enum Path {
    Clustered,
    /// Reads the row of each entry.
    Lookup,
    /// The place of each requested column in the entry.
    Covering(Box<[(u16, Source)]>),
}

pub struct TableScan {
    table: Arc<Table>,
    index: Option<IndexId>,
    mode: ReadMode,
    cursor: Cursor,
    path: Path,
    batch: Batch,
    /// The decoded values of the batch, entry by entry.
    values: Vec<Value>,
}

/// Rows that were read through entries, in one piece of memory.
#[derive(Debug, Default)]
struct Batch {
    bytes: Vec<u8>,
    rows: Vec<api::RowSpan>,
    payload: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
pub struct ScanRow<'a> {
    pub key: &'a [u8],
    content: Content<'a>,
    table: &'a Table,
}

#[derive(Debug, Clone, Copy)]
enum Content<'a> {
    Row(&'a [u8]),
    Entry(&'a [(u16, Source)], &'a [Value]),
}

impl Table {
    /// Creates a scan. Reads nothing yet.
    ///
    /// # Errors
    /// [`EngineError::NoSuchTree`] if the table does not have this index,
    /// [`EngineError::TableChanged`] if the transaction's snapshot is older than the index.
    pub fn scan(
        self: &Arc<Table>,
        trx: &mut impl RecordReader,
        options: ScanOptions,
    ) -> Result<TableScan, EngineError> {
        let (tree, path) = match &options.index {
            None => (self.clustered, Path::Clustered),
            Some(index) => {
                self.check_ready(trx, index, options.mode)?;
                let locks = trx.locks(options.mode);
                let covering = options.columns.as_deref().filter(|_| !locks);
                let covering = covering.and_then(|columns| self.covering(index, columns));
                (index.id, covering.map_or(Path::Lookup, Path::Covering))
            }
        };
        let range = KeyRange {
            low: Bound::Included(options.range.start),
            high: options.range.end.map_or(Bound::Unbounded, Bound::Excluded),
        };
        Ok(TableScan {
            table: Arc::clone(self),
            index: options.index.map(|index| index.id),
            mode: options.mode,
            cursor: Cursor::new(tree, range, options.direction, options.mode)
                .with_batches_of(options.batch_rows),
            path,
            batch: Batch::default(),
            values: Vec::new(),
        })
    }

    /// The places of these columns in the entries of an index; `None` if a column is missing there.
    fn covering(&self, index: &SecondaryIndex, columns: &[u16]) -> Option<Box<[(u16, Source)]>> {
        let (_, layout) = self.find_secondary(index.id).ok()?;
        let place = |keys: &KeyLayout, column: u16| {
            let part = keys.parts().iter().position(|part| part.column == column)?;
            keys.is_invertible(part, self.collations()).then_some(part)
        };
        let source = |column: &u16| {
            let part = place(layout.key(), *column).map(Source::Part);
            let source =
                part.or_else(|| place(&self.layout.clustered, *column).map(Source::PrimaryKeyPart));
            source.map(|source| (*column, source))
        };
        columns.iter().map(source).collect()
    }
}

impl TableScan {
    /// Whether the rows come from the index alone. Then only the requested columns can be read.
    #[must_use]
    pub fn is_covered(&self) -> bool {
        matches!(self.path, Path::Covering(_))
    }

    /// Fetches the next batch; false at the end. A batch may be empty although more rows follow, if
    /// the rows of its entries are gone or were skipped. Blocks for locks and I/O.
    ///
    /// # Errors
    /// As [`Cursor::fetch`], and [`EngineError::Corrupt`] if an entry has no row.
    pub fn fetch(&mut self, trx: &mut impl RecordReader) -> Result<bool, EngineError> {
        let has_more = trx.fetch(&mut self.cursor, None)? != api::Fetched::End;
        self.follow(trx, has_more)?;
        Ok(has_more)
    }

    /// Like [`TableScan::fetch`], but skips leaves whose rows the caller has already; see
    /// [`api::Scan`]. A scan that reads rows through entries names no leaf, because a leaf of the
    /// index does not show whether its rows have changed.
    ///
    /// # Errors
    /// As [`TableScan::fetch`].
    pub fn fetch_unless_held(
        &mut self,
        trx: &mut impl RecordReader,
        held: api::HeldLeaves<'_>,
    ) -> Result<api::Fetched, EngineError> {
        if matches!(self.path, Path::Lookup) {
            let has_more = self.fetch(trx)?;
            return Ok(if has_more { api::Fetched::Rows(None) } else { api::Fetched::End });
        }
        let fetched = trx.fetch(&mut self.cursor, Some(held))?;
        self.follow(trx, matches!(fetched, api::Fetched::Rows(_)))?;
        Ok(fetched)
    }

    /// Prepares the batch from the cursor's rows, if there are any.
    fn follow(&mut self, trx: &mut impl RecordReader, has_rows: bool) -> Result<(), EngineError> {
        match &self.path {
            _ if !has_rows => {
                self.batch.clear();
                self.values.clear();
                Ok(())
            }
            Path::Clustered => Ok(()),
            Path::Lookup => self.look_up(trx),
            Path::Covering(_) => self.decode(),
        }
    }

    /// Reads the rows of the batch's entries.
    fn look_up(&mut self, trx: &mut impl RecordReader) -> Result<(), EngineError> {
        let (table, batch) = (&*self.table, &mut self.batch);
        let index = self.index.unwrap_or(table.clustered);
        let (_, layout) = table.find_secondary(index)?;
        batch.clear();
        let mut keys = Vec::with_capacity(self.cursor.rows().len());
        for (key, value) in self.cursor.rows() {
            keys.push(layout.primary_key(key, value).map_err(|error| table.damaged(&error))?);
        }
        if keys.len() > 1 {
            trx.snapshot_reader()
                .versions()
                .forest()
                .tree(table.clustered)
                .prefetch(keys.iter().copied());
        }
        let is_consistent = !trx.locks(self.mode);
        for key in keys {
            if table.get(trx, key, self.mode, &mut batch.payload)? {
                batch.push(key);
            } else if is_consistent {
                return Err(EngineError::Corrupt {
                    page: index.root(),
                    what: "an index entry has no row".to_owned(),
                });
            }
        }
        Ok(())
    }

    /// Reads the requested columns from the entries.
    fn decode(&mut self) -> Result<(), EngineError> {
        self.values.clear();
        let (table, Path::Covering(sources)) = (&*self.table, &self.path) else { return Ok(()) };
        let (_, layout) = table.find_secondary(self.index.unwrap_or(table.clustered))?;
        for (key, value) in self.cursor.rows() {
            let primary_key = layout.primary_key(key, value);
            let primary_key = primary_key.map_err(|error| table.damaged(&error))?;
            for (_, source) in sources {
                let found = match *source {
                    Source::Part(part) => read_part(layout.key(), key, part, table),
                    Source::PrimaryKeyPart(part) => {
                        read_part(&table.layout.clustered, primary_key, part, table)
                    }
                };
                self.values.push(found?);
            }
        }
        Ok(())
    }

    /// The rows of the current batch, in the scan's order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = ScanRow<'_>> {
        (0..self.row_count()).map(|number| self.scan_row(number))
    }

    /// The number of rows in the current batch.
    #[must_use]
    pub fn row_count(&self) -> usize {
        match self.path {
            Path::Lookup => self.batch.rows.len(),
            _ => self.cursor.rows().len(),
        }
    }

    /// A row of the current batch: its key in the clustered tree, and its content.
    ///
    /// # Panics
    /// If the batch has fewer rows.
    #[must_use]
    pub fn row(&self, number: usize) -> api::ScanRow<'_> {
        let row = self.scan_row(number);
        let content = match row.content {
            Content::Row(payload) => api::RowContent::Payload(payload),
            Content::Entry(_, values) => api::RowContent::Columns(values),
        };
        api::ScanRow { key: row.key, content }
    }

    fn scan_row(&self, number: usize) -> ScanRow<'_> {
        let (key, content) = match &self.path {
            Path::Clustered => {
                let (key, value) = self.cursor.row(number);
                (key, Content::Row(value))
            }
            Path::Lookup => {
                let batch = self.batch.view();
                let span = batch.spans[number];
                (batch.key(span), Content::Row(batch.row(span)))
            }
            Path::Covering(sources) => {
                let (key, value) = self.cursor.row(number);
                let values = &self.values[number * sources.len()..(number + 1) * sources.len()];
                // The entry was decoded with the batch, so its key is valid.
                let key = self.primary_key_of(key, value).unwrap_or_default();
                (key, Content::Entry(sources, values))
            }
        };
        ScanRow { key, content, table: &self.table }
    }

    /// The current batch as it lies in memory; `None` in a covering scan.
    #[must_use]
    pub fn batch(&self) -> Option<api::RowBatch<'_>> {
        match self.path {
            Path::Clustered => Some(self.cursor.batch()),
            Path::Lookup => Some(self.batch.view()),
            Path::Covering(_) => None,
        }
    }

    /// The primary key in an entry of the scanned index.
    fn primary_key_of<'e>(&self, key: &'e [u8], value: &'e [u8]) -> Option<&'e [u8]> {
        let (_, layout) = self.table.find_secondary(self.index?).ok()?;
        layout.primary_key(key, value).ok()
    }
}

impl Batch {
    fn clear(&mut self) {
        self.bytes.clear();
        self.rows.clear();
    }

    /// Stores the row that was just read.
    fn push(&mut self, key: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let middle = self.bytes.len();
        self.bytes.extend_from_slice(&self.payload);
        self.rows.push(api::RowSpan {
            key_start: start as u32,
            key_end: middle as u32,
            row_start: middle as u32,
            row_end: self.bytes.len() as u32,
        });
    }

    fn view(&self) -> api::RowBatch<'_> {
        api::RowBatch { bytes: &self.bytes, spans: &self.rows }
    }
}

impl<'a> ScanRow<'a> {
    /// The row's bytes; `None` in a covering scan.
    #[must_use]
    pub fn payload(&self) -> Option<&'a [u8]> {
        match self.content {
            Content::Row(payload) => Some(payload),
            Content::Entry(..) => None,
        }
    }

    /// A view of the row, which reads it column by column; `None` in a covering scan.
    ///
    /// # Errors
    /// If the bytes are not a row of the table.
    pub fn view(&self) -> Option<Result<RowView<'a>, EngineError>> {
        self.payload().map(|payload| self.table.view(payload))
    }

    /// The value of a column; in a covering scan, of a requested one.
    ///
    /// # Errors
    /// If the column does not exist, or the bytes are not a row of the table.
    pub fn column(&self, ordinal: usize) -> Result<ColumnValue<'a>, EngineError> {
        match self.content {
            Content::Row(payload) => {
                let cell = self.table.view(payload)?.column(ordinal);
                cell.map_err(|error| self.table.row_error(error))
            }
            Content::Entry(sources, values) => {
                let found = sources.iter().position(|(column, _)| usize::from(*column) == ordinal);
                let found = found.ok_or(firn_format::row::RowError::NoSuchColumn(ordinal))?;
                Ok(ColumnValue::Inline(values[found].as_ref()))
            }
        }
    }
}

/// A part of a key, as a value.
fn read_part(
    layout: &KeyLayout,
    key: &[u8],
    part: usize,
    table: &Table,
) -> Result<Value, EngineError> {
    let mut reader = layout.reader(key);
    for _ in 0..part {
        reader.skip_part().map_err(|error| table.damaged(&error))?;
    }
    let value = reader.next_value(table.collations()).map_err(|error| table.damaged(&error))?;
    value.ok_or_else(|| table.damaged(&"a key part cannot be read back"))
}
