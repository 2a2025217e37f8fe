//! Statistics of a table's content, for the planner.
//!
//! ```text
//!   rows, leaves        a few looks at the clustered tree, believed for two seconds
//!   distinct values     ANALYZE; before it, a guess from the index's shape
//!   histograms          ANALYZE
//! ```
//!
//! Statistics gathered by ANALYZE are kept with the table's model, whatever its version, and in the
//! table `mysql.table_statistics` ([`stored`]), from which they are read at the first use of a
//! table. Statements that write report how much ([`changes`]); a task that keeps statistics fresh
//! gathers the stale ones again ([`analyze`](super::analyze)).
//!
//! Rule: no lock is held during a call to the node.

mod changes;
mod histogram;
pub(super) mod stored;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use firn_api::rows::{DatabaseNode, TableRef};
use firn_format::definition::{ColumnDefinition, IndexKind};
use firn_format::key::KeyRange;
use firn_sql_types::{Datum, JsonValue, SqlType};
use parking_lot::RwLock;
use rustc_hash::FxHashMap;

use super::options::ColumnOptions;

use changes::Changes;
pub(super) use changes::Look;
pub use histogram::Histogram;
pub use stored::remove_gone;

/// How long a look at the tree is valid.
const LIVE_FOR: Duration = Duration::from_secs(2);

/// A condition on a column's values; NULL satisfies none of these.
#[derive(Debug, Clone, Copy)]
pub enum ValueRange<'a> {
    /// `= value`
    Equal(&'a Datum),
    /// Between two bounds, each with whether it is part of the range.
    Between { lower: Option<(&'a Datum, bool)>, upper: Option<(&'a Datum, bool)> },
}

/// The findings of ANALYZE.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gathered {
    /// Rows that there were.
    pub rows: f64,
    /// Distinct values of the first one, two … columns of each index, by its name.
    pub indexes: FxHashMap<Box<str>, Vec<f64>>,
    /// The columns by their names.
    pub columns: FxHashMap<Box<str>, ColumnStatistics>,
}

/// The findings of ANALYZE about a column.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnStatistics {
    /// The share of rows in which it is NULL.
    pub null_fraction: f64,
    /// Different values.
    pub distinct: f64,
    /// The distribution of the values that are not NULL.
    pub histogram: Option<Histogram>,
}

/// Statistics of a table. Gathered statistics are kept; the number of rows is looked up in the tree
/// again when it is needed and the last look is old.
pub struct TableStatistics {
    node: Arc<dyn DatabaseNode>,
    table: TableRef,
    live: RwLock<Option<Live>>,
    gathered: RwLock<Option<Arc<Gathered>>>,
    /// Whether the stored statistics have been read.
    is_loaded: AtomicBool,
    changes: Changes,
    /// See [`TableStatistics::changed_in`].
    changed_in: AtomicU64,
}

#[derive(Debug, Clone, Copy)]
struct Live {
    rows: f64,
    leaves: f64,
    at: Duration,
}

impl std::fmt::Debug for TableStatistics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableStatistics").field("live", &*self.live.read()).finish_non_exhaustive()
    }
}

impl TableStatistics {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(node: Arc<dyn DatabaseNode>, table: TableRef) -> TableStatistics {
        TableStatistics {
            node,
            table,
            live: RwLock::default(),
            gathered: RwLock::default(),
            is_loaded: AtomicBool::new(false),
            changes: Changes::default(),
            changed_in: AtomicU64::new(0),
        }
    }

    /// Takes over the statistics of an earlier version of the table.
    pub(super) fn take_over(&self, before: &TableStatistics) {
        let (live, gathered) = (*before.live.read(), before.gathered.read().clone());
        *self.live.write() = live;
        *self.gathered.write() = gathered;
        self.is_loaded.store(before.is_loaded.load(Ordering::Relaxed), Ordering::Relaxed);
        self.changes.take_over(&before.changes);
        self.changed_in.fetch_max(before.changed_in(), Ordering::AcqRel);
    }

    /// The generation of the plan cache in which they last changed: older plans of the table are
    /// made again.
    #[must_use]
    pub fn changed_in(&self) -> u64 {
        self.changed_in.load(Ordering::Acquire)
    }

    /// They have changed in this generation of the plan cache.
    pub fn set_changed_in(&self, generation: u64) {
        self.changed_in.fetch_max(generation, Ordering::AcqRel);
    }

    /// A statement has written this many rows.
    pub fn note_written(&self, rows: u64) {
        self.changes.add(rows);
    }

    /// Whether the statistics are out of date: too many rows were written since they were gathered,
    /// or nothing was ever gathered about a table with rows. May read a few pages.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.changes.is_stale()
            || self.changes.is_first_look()
                && self.gathered().is_none()
                && self.counted_rows() >= changes::MIN_CHANGES as f64
    }

    /// Rows of the table, at least 1. May read a few pages.
    #[must_use]
    pub fn rows(&self) -> f64 {
        self.live().rows.max(1.0)
    }

    /// Rows of the table for display: 0 if there are none. May read a few pages.
    #[must_use]
    pub fn counted_rows(&self) -> f64 {
        self.live().rows
    }

    /// Leaves of the clustered index, at least 1. May read a few pages.
    #[must_use]
    pub fn leaves(&self) -> f64 {
        self.live().leaves.max(1.0)
    }

    /// Leaves of an index by its number in the definition. Reads a few pages.
    #[must_use]
    pub fn index_leaves(&self, index: usize) -> f64 {
        let estimate = self.node.estimate(&self.table, Some(index), &KeyRange::all());
        estimate.map_or(0.0, |estimate| estimate.leaves)
    }

    /// How many distinct values the first `parts` columns of an index (by its number in the
    /// definition) have, at least 1.
    #[must_use]
    pub fn distinct(&self, index: usize, parts: usize) -> f64 {
        let rows = self.rows();
        let Some(index) = self.table.definition().indexes.get(index) else { return rows };
        let all = index.parts.len().max(1);
        if parts >= all && index.kind != IndexKind::Secondary {
            return rows;
        }
        let gathered = self.gathered();
        let known = gathered.as_ref().and_then(|gathered| {
            let distinct =
                *gathered.indexes.get(index.name.as_str())?.get(parts.checked_sub(1)?)?;
            Some(scaled(distinct, gathered.rows, rows))
        });
        known.unwrap_or_else(|| guessed(rows, parts.min(all), all)).clamp(1.0, rows)
    }

    /// The share of rows whose column is in a range, if something is known of its values. The
    /// values have the column's type.
    #[must_use]
    pub fn selectivity(&self, ordinal: u16, asked: ValueRange<'_>) -> Option<f64> {
        let gathered = self.gathered()?;
        let column = self.column(ordinal)?;
        let of_column = gathered.columns.get(column.name.as_str())?;
        let histogram = of_column.histogram.as_ref()?;
        let ty = type_of(column)?;
        let share = match asked {
            ValueRange::Equal(value) => histogram.equal(&ty, value),
            ValueRange::Between { lower, upper } => histogram.between(&ty, lower, upper),
        };
        Some((share * (1.0 - of_column.null_fraction)).clamp(0.0, 1.0))
    }

    /// The share of rows in which a column is NULL, if it is known.
    #[must_use]
    pub fn null_fraction(&self, ordinal: u16) -> Option<f64> {
        let gathered = self.gathered()?;
        Some(gathered.columns.get(self.column(ordinal)?.name.as_str())?.null_fraction)
    }

    fn column(&self, ordinal: u16) -> Option<&ColumnDefinition> {
        self.table.definition().columns.get(usize::from(ordinal))
    }

    /// The content of `COLUMN_STATISTICS` for a column.
    #[must_use]
    pub fn histogram_json(&self, ordinal: u16) -> Option<JsonValue> {
        let gathered = self.gathered()?;
        let column = self.column(ordinal)?;
        let of_column = gathered.columns.get(column.name.as_str())?;
        let histogram = of_column.histogram.as_ref()?;
        let text = histogram.json_text(&type_of(column)?, of_column.null_fraction);
        JsonValue::parse(&text).ok()
    }

    /// The gathered statistics; read from storage the first time.
    #[must_use]
    pub fn gathered(&self) -> Option<Arc<Gathered>> {
        if !self.is_loaded.swap(true, Ordering::Relaxed)
            && let Some(stored) = stored::read(&self.node, self.table.definition().table_id)
        {
            *self.gathered.write() = Some(Arc::new(stored));
        }
        self.gathered.read().clone()
    }

    /// The stored statistics are newer: they are read again.
    pub(super) fn forget_gathered(&self) {
        self.is_loaded.store(false, Ordering::Relaxed);
        *self.live.write() = None;
    }

    /// Begins to look at the table as a whole.
    pub(super) fn begin_look(&self) -> Look {
        self.changes.begin_look()
    }

    /// Sets the statistics gathered by a look. False if there are newer ones already.
    pub(super) fn set_gathered(&self, gathered: Arc<Gathered>, look: Look) -> bool {
        if !self.changes.end_look(look, gathered.rows) {
            return false;
        }
        self.is_loaded.store(true, Ordering::Relaxed);
        *self.gathered.write() = Some(gathered);
        *self.live.write() = None;
        true
    }

    fn live(&self) -> Live {
        let now = firn_base::task::monotonic();
        let kept = *self.live.read();
        if let Some(kept) = kept.filter(|kept| now < kept.at + LIVE_FOR) {
            return kept;
        }
        // Without an answer, the previous values stay: good enough for the planner.
        let estimate = self.node.estimate(&self.table, None, &KeyRange::all());
        let live = match estimate {
            Ok(estimate) => Live { rows: estimate.entries, leaves: estimate.leaves, at: now },
            Err(_) => Live { at: now, ..kept.unwrap_or(Live { rows: 1.0, leaves: 1.0, at: now }) },
        };
        *self.live.write() = Some(live);
        live
    }
}

/// The type of a column's values; `None` if its options are damaged.
fn type_of(column: &ColumnDefinition) -> Option<SqlType> {
    let options = ColumnOptions::decode(&column.options).ok()?;
    Some(SqlType::of_column(options.type_kind(column.column_type), column.nullable))
}

/// Values that were mostly distinct grow with the table; others do not.
pub(super) fn scaled(distinct: f64, rows_then: f64, rows_now: f64) -> f64 {
    if distinct > rows_then * 0.1 { distinct * (rows_now / rows_then.max(1.0)) } else { distinct }
}

/// Without looking at the values: each column distinguishes equally well, and all together have
/// distinct values in a tenth of the rows.
fn guessed(rows: f64, parts: usize, all: usize) -> f64 {
    let of_all = (rows / 10.0).max(rows.min(10.0));
    of_all.powf(parts as f64 / all as f64)
}
