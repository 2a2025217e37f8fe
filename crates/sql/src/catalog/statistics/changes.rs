//! How many rows of a table were written since it was last looked at as a whole.
//!
//! ```text
//!   statement that wrote 3 rows ──► written += 3
//!   written ≥ limit             ──► the statistics are stale: somebody gathers them anew
//!   gathered                    ──► written = 0, limit = a tenth of the rows
//! ```
//!
//! The numbers are hints: rows of transactions that were rolled back count, and a restart begins at 0. A table of
//! which nothing is known is stale if it has rows; that is looked at once.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Fewer changes than this make no statistics stale: a table so small is read in no time by any plan.
pub(super) const MIN_CHANGES: u64 = 200;

/// Changes of a table.
#[derive(Debug)]
pub(super) struct Changes {
    written: AtomicU64,
    limit: AtomicU64,
    was_looked_at: AtomicBool,
}

impl Default for Changes {
    fn default() -> Changes {
        Changes {
            written: AtomicU64::new(0),
            limit: AtomicU64::new(MIN_CHANGES),
            was_looked_at: AtomicBool::new(false),
        }
    }
}

impl Changes {
    /// So many rows were written.
    pub(super) fn add(&self, rows: u64) {
        self.written.fetch_add(rows, Ordering::Relaxed);
    }

    /// Whether so much was written that what was gathered tells little.
    pub(super) fn is_stale(&self) -> bool {
        self.written.load(Ordering::Relaxed) >= self.limit.load(Ordering::Relaxed)
    }

    /// Whether this is the first time that somebody asks.
    pub(super) fn is_first_look(&self) -> bool {
        !self.was_looked_at.swap(true, Ordering::Relaxed)
    }

    /// What the table holds is known, as it was when `written_before` was read; it has so many rows.
    pub(super) fn gathered(&self, rows: f64, written_before: u64) {
        self.limit.store(MIN_CHANGES.max((rows / 10.0) as u64), Ordering::Relaxed);
        self.written.fetch_sub(written_before, Ordering::Relaxed);
    }

    /// Rows written since the statistics were gathered.
    pub(super) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Goes on with what was counted for an earlier version of the table.
    pub(super) fn take_over(&self, before: &Changes) {
        self.written.store(before.written(), Ordering::Relaxed);
        self.limit.store(before.limit.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}
