//! Conditions on rows that a node evaluates by itself, without a session: ranges of keys, which
//! need only the bytes that sort as a column's values do, and expressions.
//!
//! ```text
//!   c BETWEEN 3 AND 5             Column c in [key(3), after key(5))
//!   c IN (1, 9) AND name = 'ann'  All [ Column c in [1] [9],  Column name in [sort key of 'ann'] ]
//!   c < 3 OR name IS NULL         Any [ Column c in (NULL, key(3)),  Column name in [NULL] ]
//!   c + d > 9                     Expression, see [`super::expression`]
//! ```
//!
//! A range consists of keys that are the whole column, ascending
//! ([`firn_format::definition::TableDefinition::column_key`]), so an index over the column would
//! visit the same rows. Collations, NULLs and the order of numbers are those of keys.
//!
//! Invariant: a row is left out only if the filter is false for it. A row that does not say enough,
//! such as one with a value stored out of line, stays, and does not count towards a limit.
//! Conditions are evaluated from the first: behind an expression that raised a warning or an error,
//! none can leave the row out, because the statement would have raised it before it came to them.

use firn_format::key::{KeyLayout, KeyRange};
use firn_format::row::{ColumnValue, RowView};

use super::expression::{Expression, ExpressionEvaluator, RowExpression, RowValues};
use super::{
    RowBatch, RowContent, RowSpan, RowsResult, Scan, ScanOptions, ScanRow, TableRef, Transaction,
};

/// A condition on a row of a table.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Filter {
    /// The column's value lies in one of these ranges.
    Column {
        ordinal: u16,
        /// Ranges of keys that consist of this column.
        ranges: Vec<KeyRange>,
    },
    /// All of these are true.
    All(Vec<Filter>),
    /// One of these is true.
    Any(Vec<Filter>),
    /// This is true.
    Expression(Expression),
}

/// A filter with the codecs of its columns.
pub(super) enum Test {
    Column {
        ordinal: usize,
        layout: KeyLayout,
        ranges: Vec<KeyRange>,
    },
    All(Vec<Test>),
    Any(Vec<Test>),
    Expression(Box<dyn RowExpression>),
    /// On a column that the table does not have, or unknown to the evaluator.
    Unknown,
}

/// The result of a test.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Holds,
    Fails,
    /// The row does not say enough.
    Unknown,
    /// Unknown, and the statement has to see the row whatever later tests say.
    Raised,
}

impl From<bool> for Verdict {
    fn from(holds: bool) -> Verdict {
        if holds { Verdict::Holds } else { Verdict::Fails }
    }
}

impl Test {
    /// The test of a filter on rows of a table.
    pub(super) fn of(
        filter: &Filter,
        table: &TableRef,
        evaluator: &dyn ExpressionEvaluator,
    ) -> Test {
        let all = |filters: &[Filter]| {
            filters.iter().map(|filter| Test::of(filter, table, evaluator)).collect()
        };
        match filter {
            Filter::Column { ordinal, ranges } => match table.definition().column_key(*ordinal) {
                Some(layout) => {
                    Test::Column { ordinal: (*ordinal).into(), layout, ranges: ranges.clone() }
                }
                None => Test::Unknown,
            },
            Filter::Expression(expression) => {
                let compiled = evaluator.compile(table.definition(), expression);
                compiled.map_or(Test::Unknown, Test::Expression)
            }
            Filter::All(filters) => Test::All(all(filters)),
            Filter::Any(filters) => Test::Any(all(filters)),
        }
    }

    /// Whether a row satisfies it. `value` returns a column's value, if the row has it; `key` is a
    /// buffer.
    pub(super) fn verdict(
        &mut self,
        table: &TableRef,
        value: &RowValues<'_, '_>,
        key: &mut Vec<u8>,
    ) -> Verdict {
        match self {
            Test::Column { ordinal, layout, ranges } => {
                let Some(value) = value(*ordinal) else { return Verdict::Unknown };
                key.clear();
                match layout.encode_parts(&[value], table.collations(), key) {
                    Ok(_) => ranges.iter().any(|range| range.contains(key)).into(),
                    // The value is damaged; the statement meets it and reports it.
                    Err(_) => Verdict::Unknown,
                }
            }
            Test::All(tests) => {
                decided(tests, Verdict::Fails, |test| test.verdict(table, value, key))
            }
            Test::Any(tests) => {
                decided(tests, Verdict::Holds, |test| test.verdict(table, value, key))
            }
            Test::Expression(expression) => {
                expression.holds(value).map_or(Verdict::Raised, Verdict::from)
            }
            Test::Unknown => Verdict::Raised,
        }
    }
}

/// `decisive` as soon as one of the tests gives it, unless one before it has raised something;
/// otherwise unknown if one of them is, or the opposite.
fn decided(
    tests: &mut [Test],
    decisive: Verdict,
    mut verdict: impl FnMut(&mut Test) -> Verdict,
) -> Verdict {
    let mut result = Verdict::from(decisive == Verdict::Fails);
    for test in tests {
        match verdict(test) {
            last if last == decisive || last == Verdict::Raised => return last,
            Verdict::Unknown => result = Verdict::Unknown,
            _ => {}
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
    /// to its limit. `inner` obeys the other options; `evaluator` gives expressions their meaning.
    #[must_use]
    pub fn over(
        inner: Box<dyn Scan>,
        table: &TableRef,
        options: &ScanOptions,
        evaluator: &dyn ExpressionEvaluator,
    ) -> FilteredScan {
        let filter = options.filter.as_deref();
        FilteredScan {
            inner,
            test: filter.map(|filter| Test::of(filter, table, evaluator)),
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
            let verdict = match test {
                Some(test) => verdict_of_row(test, table, columns, content, key),
                None => Verdict::Holds,
            };
            if verdict != Verdict::Fails {
                kept.push(number);
                spans.extend(batch.map(|batch| batch.spans[number]));
            }
            if verdict == Verdict::Holds {
                *left -= 1;
            }
        }
    }
}

/// Whether a row satisfies a test. `columns` are the ordinals of a covered row's values.
fn verdict_of_row(
    test: &mut Test,
    table: &TableRef,
    columns: &[u16],
    row: RowContent<'_>,
    key: &mut Vec<u8>,
) -> Verdict {
    match row {
        RowContent::Payload(payload) => {
            let Ok(view) = RowView::parse(&table.layout().row, payload) else {
                return Verdict::Unknown;
            };
            let value = |ordinal: usize| view.column(ordinal).ok().and_then(ColumnValue::inline);
            test.verdict(table, &value, key)
        }
        RowContent::Columns(values) => {
            let value = |ordinal: usize| {
                let place = columns.iter().position(|own| usize::from(*own) == ordinal)?;
                Some(values.get(place)?.as_ref())
            };
            test.verdict(table, &value, key)
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
