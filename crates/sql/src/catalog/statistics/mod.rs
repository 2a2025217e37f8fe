//! How much of what is in a table: what the planner chooses by.

use std::sync::Arc;
use std::time::Duration;

use firn_api::rows::{DatabaseNode, TableRef};
use firn_base::clock::{Clock, SystemClock};
use firn_format::key::KeyRange;
use parking_lot::RwLock;

use crate::types::Datum;

/// How long a look at the tree is believed.
const LIVE_FOR: Duration = Duration::from_secs(2);

/// What is asked of a column's values; NULL matches none of these.
#[derive(Debug, Clone, Copy)]
pub enum ValueRange<'a> {
    /// `= value`
    Equal(&'a Datum),
    /// Between two bounds, each with whether it is part of the range.
    Between {
        /// The lower bound.
        lower: Option<(&'a Datum, bool)>,
        /// The upper bound.
        upper: Option<(&'a Datum, bool)>,
    },
}

/// Statistics of a table. What was gathered is kept; how many rows there are is looked up in the tree
/// again when it is asked for and the last look is old.
pub struct TableStatistics {
    node: Arc<dyn DatabaseNode>,
    table: TableRef,
    live: RwLock<Option<Live>>,
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
        TableStatistics { node, table, live: RwLock::default() }
    }

    /// Goes on with what was known of an earlier version of the table.
    pub(super) fn take_over(&self, before: &TableStatistics) {
        let live = *before.live.read();
        *self.live.write() = live;
    }

    /// Rows of the table, at least 1. May look at a few pages.
    #[must_use]
    pub fn rows(&self) -> f64 {
        self.live().rows.max(1.0)
    }

    /// Leaves of the clustered index, at least 1. May look at a few pages.
    #[must_use]
    pub fn leaves(&self) -> f64 {
        self.live().leaves.max(1.0)
    }

    /// How many different values the first `parts` columns of an index (by its number in the definition)
    /// have, at least 1.
    #[must_use]
    pub fn distinct(&self, index: usize, parts: usize) -> f64 {
        let rows = self.rows();
        let Some(index) = self.table.definition().indexes.get(index) else { return rows };
        let all = index.parts.len().max(1);
        let is_unique = index.kind != firn_format::definition::IndexKind::Secondary;
        if parts >= all {
            return if is_unique { rows } else { (rows / 10.0).max(rows.min(10.0)) };
        }
        rows.powf(parts as f64 / (all as f64 + 1.0)).max(1.0)
    }

    /// The share of rows for which a column is as asked for, if something is known of its values.
    #[must_use]
    pub fn selectivity(&self, _ordinal: u16, _asked: ValueRange<'_>) -> Option<f64> {
        None
    }

    /// The share of rows in which a column is NULL, if it is known.
    #[must_use]
    pub fn null_fraction(&self, _ordinal: u16) -> Option<f64> {
        None
    }

    fn live(&self) -> Live {
        let now = SystemClock.monotonic();
        let kept = *self.live.read();
        if let Some(kept) = kept.filter(|kept| now < kept.at + LIVE_FOR) {
            return kept;
        }
        // Without an answer, what was known stays: the planner can do with it.
        let estimate = self.node.estimate(&self.table, None, &KeyRange::all());
        let live = match estimate {
            Ok(estimate) => Live { rows: estimate.entries, leaves: estimate.leaves, at: now },
            Err(_) => Live { at: now, ..kept.unwrap_or(Live { rows: 1.0, leaves: 1.0, at: now }) },
        };
        *self.live.write() = Some(live);
        live
    }
}
