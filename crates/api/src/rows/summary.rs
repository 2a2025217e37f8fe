//! Summaries of a scan's rows, where the rows themselves are not wanted.
//!
//! ```text
//!   SELECT COUNT(*), SUM(k), MIN(k) FROM t WHERE v < 9
//!     scan of t with a filter on v ──► rows 1,204 │ k: 1,200 values, sum 7,331, least -4, greatest 90
//! ```
//!
//! Integers only: their sums do not depend on the order of addition, so summaries of several scans,
//! or of several nodes, add up to that of one scan.

use firn_format::row::{ColumnValue, RowView};
use firn_format::value::ValueRef;

use super::{
    Cancellation, RowContent, RowsError, RowsResult, Scan, ScanOptions, TableRef, Transaction,
};

/// What rows come to.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Summary {
    /// How many there are.
    pub rows: u64,
    /// The summary of each wanted column.
    pub columns: Vec<ColumnSummary>,
}

/// The summary of a column's values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ColumnSummary {
    /// How many are not NULL.
    pub values: u64,
    pub sum: i128,
    /// The least and the greatest; `None` if all are NULL.
    pub extremes: Option<(i128, i128)>,
}

impl Summary {
    /// Of no rows.
    #[must_use]
    pub fn of_nothing(columns: usize) -> Summary {
        Summary { rows: 0, columns: vec![ColumnSummary::default(); columns] }
    }

    /// Adds the summary of other rows, for the same columns.
    pub fn add(&mut self, other: &Summary) {
        self.rows += other.rows;
        for (column, other) in self.columns.iter_mut().zip(&other.columns) {
            column.values += other.values;
            column.sum += other.sum;
            column.extremes = match (column.extremes, other.extremes) {
                (Some(own), Some(other)) => Some((own.0.min(other.0), own.1.max(other.1))),
                (own, other) => own.or(other),
            };
        }
    }
}

impl ColumnSummary {
    fn take(&mut self, number: i128) {
        self.values += 1;
        self.sum += number;
        let (least, greatest) = self.extremes.unwrap_or((number, number));
        self.extremes = Some((least.min(number), greatest.max(number)));
    }
}

/// Summarises the rows of a scan, for columns of integers. `cancellation` ends it between two
/// batches. Blocks as the scan does.
///
/// # Errors
/// As the scan, and error 1034 for a damaged row or a column that is not one of integers.
pub fn summarise(
    trx: &mut dyn Transaction,
    table: &TableRef,
    options: &ScanOptions,
    columns: &[u16],
    cancellation: &Cancellation,
) -> RowsResult<Summary> {
    let mut summary = Summary::of_nothing(columns.len());
    let mut scan = trx.scan(table, options)?;
    while scan.fetch(trx)? {
        if cancellation.is_cancelled() {
            return Err(RowsError::Cancelled);
        }
        add_batch(&*scan, table, options, columns, &mut summary)?;
    }
    Ok(summary)
}

fn add_batch(
    scan: &dyn Scan,
    table: &TableRef,
    options: &ScanOptions,
    columns: &[u16],
    summary: &mut Summary,
) -> RowsResult<()> {
    summary.rows += scan.len() as u64;
    if columns.is_empty() {
        return Ok(());
    }
    let places = options.columns.as_deref().unwrap_or_default();
    for number in 0..scan.len() {
        let row = scan.row(number).content;
        let view = match row {
            RowContent::Payload(payload) => {
                Some(RowView::parse(&table.layout().row, payload).map_err(|_| damaged())?)
            }
            RowContent::Columns(_) => None,
        };
        for (ordinal, column) in columns.iter().zip(&mut summary.columns) {
            let value = match (&view, row) {
                (Some(view), _) => {
                    view.column(usize::from(*ordinal)).ok().and_then(ColumnValue::inline)
                }
                (None, RowContent::Columns(values)) => {
                    let place = places.iter().position(|own| own == ordinal);
                    place.and_then(|place| values.get(place)).map(|value| value.as_ref())
                }
                (None, RowContent::Payload(_)) => None,
            };
            match value.ok_or_else(damaged)? {
                ValueRef::Null => {}
                ValueRef::Int(number) => column.take(number.into()),
                ValueRef::UInt(number) => column.take(number.into()),
                _ => return Err(damaged()),
            }
        }
    }
    Ok(())
}

#[cold]
fn damaged() -> RowsError {
    RowsError::Other { code: 1034, message: "Damaged row: no integer where one is".to_owned() }
}
