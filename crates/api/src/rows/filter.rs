//! Conditions on rows that a node evaluates by itself. They need no session, no expression and no
//! SQL type, only the bytes that sort as a column's values do.
//!
//! ```text
//!   c BETWEEN 3 AND 5             Column c in [key(3), after key(5))
//!   c IN (1, 9) AND name = 'ann'  All [ Column c in [1] [9],  Column name in [sort key of 'ann'] ]
//!   c < 3 OR name IS NULL         Any [ Column c in (NULL, key(3)),  Column name in [NULL] ]
//! ```
//!
//! A range consists of keys that are the whole column, ascending
//! ([`firn_format::definition::TableDefinition::column_key`]), so an index over the column would
//! visit the same rows. Collations, NULLs and the order of numbers are those of keys.
//!
//! Invariant: a row is left out only if the filter is false for it. A row that does not say enough,
//! such as one with a value stored out of line, stays, and does not count towards a limit.

use firn_format::key::{KeyLayout, KeyRange};
use firn_format::row::{ColumnValue, RowView};
use firn_format::value::ValueRef;

use super::{
    RowBatch, RowContent, RowSpan, RowsResult, Scan, ScanOptions, ScanRow, TableRef, Transaction,
};

/// A condition on a row of a table.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Filter {
    /// The column's value lies in one of these ranges.
    Column {
        /// The column.
        ordinal: u16,
        /// Ranges of keys that consist of this column.
        ranges: Vec<KeyRange>,
    },
    /// All of these are true.
    All(Vec<Filter>),
    /// One of these is true.
    Any(Vec<Filter>),
}

/// A filter with the codecs of its columns.
enum Test {
    Column {
        ordinal: usize,
        layout: KeyLayout,
        ranges: Vec<KeyRange>,
    },
    All(Vec<Test>),
    Any(Vec<Test>),
    /// On a column that the table does not have: the result is unknown.
    Unknown,
}

impl Test {
    fn of(filter: Filter, table: &TableRef) -> Test {
        let all = |filters: Vec<Filter>| {
            filters.into_iter().map(|filter| Test::of(filter, table)).collect()
        };
        match filter {
            Filter::Column { ordinal, ranges } => match table.definition().column_key(ordinal) {
                Some(layout) => Test::Column { ordinal: ordinal.into(), layout, ranges },
                None => Test::Unknown,
            },
            Filter::All(filters) => Test::All(all(filters)),
            Filter::Any(filters) => Test::Any(all(filters)),
        }
    }

    /// Whether a row satisfies it; `None` if the row does not say enough. `value` returns a
    /// column's value, if the row has it; `key` is a buffer.
    fn holds<'v>(
        &self,
        table: &TableRef,
        value: &impl Fn(usize) -> Option<ValueRef<'v>>,
        key: &mut Vec<u8>,
    ) -> Option<bool> {
        match self {
            Test::Column { ordinal, layout, ranges } => {
                key.clear();
                // A value that makes no key is damaged; the statement meets it and reports it.
                layout.encode_parts(&[value(*ordinal)?], table.collations(), key).ok()?;
                Some(ranges.iter().any(|range| range.contains(key)))
            }
            Test::All(tests) => decided(tests, false, |test| test.holds(table, value, key)),
            Test::Any(tests) => decided(tests, true, |test| test.holds(table, value, key)),
            Test::Unknown => None,
        }
    }
}

/// `decisive` if one of the tests gives it, otherwise unknown if one of them does.
fn decided(
    tests: &[Test],
    decisive: bool,
    mut holds: impl FnMut(&Test) -> Option<bool>,
) -> Option<bool> {
    let mut result = Some(!decisive);
    for test in tests {
        match holds(test) {
            Some(held) if held == decisive => return Some(decisive),
            Some(_) => {}
            None => result = None,
        }
    }
    result
}

/// A scan without the rows for which a filter is false, up to a limit.
pub struct FilteredScan {
    inner: Box<dyn Scan>,
    table: TableRef,
    /// `None`: all rows are wanted.
    test: Option<Test>,
    /// How many more rows for which the test holds are wanted.
    left: u64,
    /// The ordinals of a covered row's values.
    columns: Box<[u16]>,
    /// The rows of the current batch that stay: their numbers and places.
    kept: Vec<usize>,
    spans: Vec<RowSpan>,
    key: Vec<u8>,
}

impl FilteredScan {
    /// The rows of `inner`, a consistent scan of `table`, that satisfy the filter of `options`, up
    /// to its limit. `inner` obeys the other options.
    #[must_use]
    pub fn over(inner: Box<dyn Scan>, table: &TableRef, options: &ScanOptions) -> FilteredScan {
        FilteredScan {
            inner,
            test: options.filter.as_deref().map(|filter| Test::of(filter.clone(), table)),
            left: options.limit.unwrap_or(u64::MAX),
            table: table.clone(),
            columns: options.columns.as_deref().unwrap_or_default().into(),
            kept: Vec::new(),
            spans: Vec::new(),
            key: Vec::new(),
        }
    }

    /// Finds the rows of the current batch that stay.
    fn sift(&mut self) {
        let Self { inner, table, test, left, columns, kept, spans, key } = self;
        kept.clear();
        spans.clear();
        let batch = inner.batch();
        for number in 0..inner.len() {
            if *left == 0 {
                break;
            }
            let content = inner.row(number).content;
            let holds = match test {
                Some(test) => holds_in_row(test, table, columns, content, key),
                None => Some(true),
            };
            if holds != Some(false) {
                kept.push(number);
                spans.extend(batch.map(|batch| batch.spans[number]));
            }
            if holds == Some(true) {
                *left -= 1;
            }
        }
    }
}

/// Whether a row satisfies a test. `columns` are the ordinals of a covered row's values.
fn holds_in_row(
    test: &Test,
    table: &TableRef,
    columns: &[u16],
    row: RowContent<'_>,
    key: &mut Vec<u8>,
) -> Option<bool> {
    match row {
        RowContent::Payload(payload) => {
            let view = RowView::parse(&table.layout().row, payload).ok()?;
            let value = |ordinal: usize| view.column(ordinal).ok().and_then(ColumnValue::inline);
            test.holds(table, &value, key)
        }
        RowContent::Columns(values) => {
            let value = |ordinal: usize| {
                let place = columns.iter().position(|own| usize::from(*own) == ordinal)?;
                Some(values.get(place)?.as_ref())
            };
            test.holds(table, &value, key)
        }
    }
}

impl Scan for FilteredScan {
    fn fetch(&mut self, trx: &mut dyn Transaction) -> RowsResult<bool> {
        let is_there = self.left > 0 && self.inner.fetch(trx)?;
        if is_there {
            self.sift();
        }
        Ok(is_there)
    }

    fn len(&self) -> usize {
        self.kept.len()
    }

    fn row(&self, number: usize) -> ScanRow<'_> {
        self.inner.row(self.kept[number])
    }

    fn batch(&self) -> Option<RowBatch<'_>> {
        let batch = self.inner.batch()?;
        Some(RowBatch { bytes: batch.bytes, spans: &self.spans })
    }

    fn is_covered(&self) -> bool {
        self.inner.is_covered()
    }
}
