//! Summaries of a scan's rows by groups, where the rows themselves are not wanted.
//!
//! ```text
//!   SELECT d, COUNT(*), SUM(k), MIN(k) FROM t WHERE v < 9 GROUP BY d
//!     scan of t with a filter on v ──► 'a' │ rows 1,204 │ k: 1,200 values, sum 7,331, least -4, greatest 90
//!                                      'b' │ rows 3     │ k: …
//! ```
//!
//! Numbers are integers, in units of the last digit of their type: their sums do not depend on the
//! order of addition, so summaries of several scans, or of several nodes, add up to that of one
//! scan. A group may come several times; the caller adds them.
//!
//! Invariant: a summary is of rows for which the filter is known to be true, and whose values are
//! all known. If a row does not say enough, there is no summary at all.

use std::collections::BTreeMap;

use firn_format::row::{ColumnValue, RowView};
use firn_format::value::{Value, ValueRef};

use super::expression::{Expression, ExpressionEvaluator, RowExpression, RowValues};
use super::filter::{Test, Verdict};
use super::{RowContent, RowsResult, Scan, ScanOptions, TableRef, Transaction};

/// What is summed up.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Grouping {
    /// Rows with equal values of these make a group; without any, all rows do.
    pub groups: Vec<Expression>,
    /// The numbers of each group.
    pub summands: Vec<Summand>,
    /// A node with this many groups returns them, and goes on without any.
    pub most_groups: u64,
}

/// A number that each row has.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Summand {
    /// A column of integers.
    Column(u16),
    /// A value that is an integer or a decimal.
    Expression(Expression),
}

/// What the rows of a group come to.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct GroupSummary {
    /// The values of the groups' expressions in the group's first row.
    pub values: Vec<Value>,
    /// How many rows there are.
    pub rows: u64,
    /// The summary of each summand.
    pub numbers: Vec<NumberSummary>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct NumberSummary {
    /// How many are not NULL.
    pub values: u64,
    pub sum: i128,
    /// The least and the greatest; `None` if all are NULL.
    pub extremes: Option<(i128, i128)>,
}

impl NumberSummary {
    /// Adds the summary of other numbers; `None` if the sum leaves 128 bits.
    #[must_use]
    pub fn plus(self, other: NumberSummary) -> Option<NumberSummary> {
        let extremes = match (self.extremes, other.extremes) {
            (Some(own), Some(other)) => Some((own.0.min(other.0), own.1.max(other.1))),
            (own, other) => own.or(other),
        };
        let sum = self.sum.checked_add(other.sum)?;
        Some(NumberSummary { values: self.values + other.values, sum, extremes })
    }

    /// The summary of one number, which may be NULL.
    fn of(number: Option<i128>) -> NumberSummary {
        number.map_or_else(NumberSummary::default, |number| NumberSummary {
            values: 1,
            sum: number,
            extremes: Some((number, number)),
        })
    }
}

/// A step of a summary.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Summed {
    /// Groups in the order in which the scan met them.
    Groups { groups: Vec<GroupSummary>, is_last: bool },
    /// A row did not say enough. The rows have to be read, from the first.
    Unknown,
}

/// A summary that is being made.
pub trait Summaries: Send {
    /// The next groups. Blocks as a scan does.
    ///
    /// # Errors
    /// As a scan.
    fn next(&mut self, trx: &mut dyn Transaction) -> RowsResult<Summed>;
}

/// The summary of a scan's rows, made where the rows are.
pub struct RowSummaries {
    scan: Box<dyn Scan>,
    /// The ordinals of a covered row's values.
    columns: Box<[u16]>,
    most_groups: usize,
    adder: Adder,
}

/// Adds rows to their groups.
struct Adder {
    table: TableRef,
    /// `None`: all rows count.
    test: Option<Test>,
    groups: Vec<Box<dyn RowExpression>>,
    summands: Vec<Source>,
    found: FoundGroups,
    /// Buffer for the keys of the test's ranges.
    range_key: Vec<u8>,
}

/// Where a number comes from.
enum Source {
    Column(usize),
    Expression(Box<dyn RowExpression>),
}

#[derive(Default)]
struct FoundGroups {
    places: BTreeMap<Box<[u8]>, usize>,
    groups: Vec<GroupSummary>,
    /// The identity and the values of the current row's group.
    key: Vec<u8>,
    values: Vec<Value>,
}

impl RowSummaries {
    /// The summary of the rows of `inner` that satisfy the filter of `options`; `inner` obeys the
    /// other options. `None`: `evaluator` does not know one of the expressions.
    #[must_use]
    pub fn over(
        inner: Box<dyn Scan>,
        table: &TableRef,
        options: &ScanOptions,
        grouping: &Grouping,
        evaluator: &dyn ExpressionEvaluator,
    ) -> Option<RowSummaries> {
        let compile = |expression: &Expression| evaluator.compile(table.definition(), expression);
        let groups = grouping.groups.iter().map(compile).collect::<Option<_>>()?;
        let source = |summand: &Summand| {
            Some(match summand {
                Summand::Column(ordinal) => Source::Column(usize::from(*ordinal)),
                Summand::Expression(expression) => Source::Expression(compile(expression)?),
            })
        };
        let filter = options.filter.as_deref();
        let adder = Adder {
            table: table.clone(),
            test: filter.map(|filter| Test::of(filter, table, evaluator)),
            groups,
            summands: grouping.summands.iter().map(source).collect::<Option<_>>()?,
            found: FoundGroups::default(),
            range_key: Vec::new(),
        };
        Some(RowSummaries {
            scan: inner,
            columns: options.columns.as_deref().unwrap_or_default().into(),
            most_groups: usize::try_from(grouping.most_groups).unwrap_or(usize::MAX),
            adder,
        })
    }

    /// Adds the rows of the current batch; `None` if one of them does not say enough.
    fn add_batch(&mut self) -> Option<()> {
        let Self { scan, columns, adder, .. } = self;
        let table = adder.table.clone();
        for number in 0..scan.len() {
            match scan.row(number).content {
                RowContent::Payload(payload) => {
                    let view = RowView::parse(&table.layout().row, payload).ok()?;
                    let value =
                        |ordinal: usize| view.column(ordinal).ok().and_then(ColumnValue::inline);
                    adder.add(&value)?;
                }
                RowContent::Columns(values) => {
                    let value = |ordinal: usize| {
                        let place = columns.iter().position(|own| usize::from(*own) == ordinal)?;
                        Some(values.get(place)?.as_ref())
                    };
                    adder.add(&value)?;
                }
            }
        }
        Some(())
    }
}

impl Adder {
    /// Adds a row if it satisfies the test; `None` if it does not say enough.
    fn add(&mut self, row: &RowValues<'_, '_>) -> Option<()> {
        let verdict = match &mut self.test {
            Some(test) => test.verdict(&self.table, row, &mut self.range_key),
            None => Verdict::Holds,
        };
        match verdict {
            Verdict::Holds => self.found.add(&mut self.groups, &mut self.summands, row),
            Verdict::Fails => Some(()),
            Verdict::Unknown | Verdict::Raised => None,
        }
    }
}

impl FoundGroups {
    /// Adds a row; `None` if it does not say enough.
    fn add(
        &mut self,
        groups: &mut [Box<dyn RowExpression>],
        summands: &mut [Source],
        row: &RowValues<'_, '_>,
    ) -> Option<()> {
        self.key.clear();
        self.values.clear();
        for group in groups {
            self.values.push(group.group_value(row, &mut self.key)?);
        }
        let place = match self.places.get(&self.key[..]) {
            Some(place) => *place,
            None => self.begin(summands.len()),
        };
        let group = &mut self.groups[place];
        group.rows += 1;
        for (summand, summary) in summands.iter_mut().zip(&mut group.numbers) {
            *summary = summary.plus(NumberSummary::of(number_of(summand, row)?))?;
        }
        Some(())
    }

    /// Begins the group of the current row.
    fn begin(&mut self, numbers: usize) -> usize {
        let place = self.groups.len();
        self.places.insert(self.key.as_slice().into(), place);
        let values = std::mem::take(&mut self.values);
        let numbers = vec![NumberSummary::default(); numbers];
        self.groups.push(GroupSummary { values, rows: 0, numbers });
        place
    }

    fn take(&mut self) -> Vec<GroupSummary> {
        self.places.clear();
        std::mem::take(&mut self.groups)
    }
}

/// A row's number, `Some(None)` for NULL; `None` if the row does not say it.
fn number_of(summand: &mut Source, row: &RowValues<'_, '_>) -> Option<Option<i128>> {
    match summand {
        Source::Column(ordinal) => match row(*ordinal)? {
            ValueRef::Null => Some(None),
            ValueRef::Int(number) => Some(Some(number.into())),
            ValueRef::UInt(number) => Some(Some(number.into())),
            _ => None,
        },
        Source::Expression(expression) => expression.number(row),
    }
}

impl Summaries for RowSummaries {
    fn next(&mut self, trx: &mut dyn Transaction) -> RowsResult<Summed> {
        while self.scan.fetch(trx)? {
            if self.add_batch().is_none() {
                return Ok(Summed::Unknown);
            }
            if self.adder.found.groups.len() >= self.most_groups {
                return Ok(Summed::Groups { groups: self.adder.found.take(), is_last: false });
            }
        }
        Ok(Summed::Groups { groups: self.adder.found.take(), is_last: true })
    }
}
