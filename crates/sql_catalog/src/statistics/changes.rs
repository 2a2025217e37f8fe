//! How many rows of a table were written since its statistics were last gathered.
//!
//! ```text
//!   statement that wrote 3 rows ──► written += 3
//!   written ≥ limit             ──► the statistics are stale and gathered again
//!   gathered                    ──► written = 0, limit = a tenth of the rows
//! ```
//!
//! The numbers are hints: rows of transactions that were rolled back count, and a restart begins
//! at 0. A table about which nothing is known is stale if it has rows; this is checked once.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Fewer changes than this make no statistics stale: any plan reads such a small table quickly.
pub(super) const MIN_CHANGES: u64 = 200;

#[derive(Debug)]
pub(super) struct Changes {
    written: AtomicU64,
    limit: AtomicU64,
    was_looked_at: AtomicBool,
    /// How often gathering began, and the number of the last one that has ended.
    begun: AtomicU64,
    done: AtomicU64,
}

/// A look at a whole table that has begun.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Look {
    number: u64,
    written_before: u64,
}

impl Default for Changes {
    fn default() -> Changes {
        Changes {
            written: AtomicU64::new(0),
            limit: AtomicU64::new(MIN_CHANGES),
            was_looked_at: AtomicBool::new(false),
            begun: AtomicU64::new(0),
            done: AtomicU64::new(0),
        }
    }
}

impl Changes {
    /// Adds a number of written rows.
    pub(super) fn add(&self, rows: u64) {
        self.written.fetch_add(rows, Ordering::Relaxed);
    }

    /// Whether so much was written that the gathered statistics tell little.
    pub(super) fn is_stale(&self) -> bool {
        self.written.load(Ordering::Relaxed) >= self.limit.load(Ordering::Relaxed)
    }

    /// Whether this is the first call.
    pub(super) fn is_first_look(&self) -> bool {
        !self.was_looked_at.swap(true, Ordering::Relaxed)
    }

    /// Begins to look at the table as a whole.
    pub(super) fn begin_look(&self) -> Look {
        let number = self.begun.fetch_add(1, Ordering::Relaxed) + 1;
        Look { number, written_before: self.written.load(Ordering::Relaxed) }
    }

    /// Records the number of rows that the table had when `look` began. False if a later look has
    /// already ended: that one is newer.
    pub(super) fn end_look(&self, look: Look, rows: f64) -> bool {
        if self.done.fetch_max(look.number, Ordering::Relaxed) > look.number {
            return false;
        }
        self.limit.store(MIN_CHANGES.max((rows / 10.0) as u64), Ordering::Relaxed);
        let without = |written: u64| Some(written.saturating_sub(look.written_before));
        let _ = self.written.fetch_update(Ordering::Relaxed, Ordering::Relaxed, without);
        true
    }

    /// Takes over the counts of an earlier version of the table.
    pub(super) fn take_over(&self, before: &Changes) {
        self.written.store(before.written.load(Ordering::Relaxed), Ordering::Relaxed);
        self.limit.store(before.limit.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}
