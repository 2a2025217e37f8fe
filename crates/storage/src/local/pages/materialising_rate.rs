//! How many pages the materialiser brings up to date by itself in its next round: as many as it can
//! while the store is far behind the log or a thread waits for it, else a steady trickle in whole
//! batches.

use std::time::Duration;

/// The inputs of the decision.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    /// Durable log that is not applied, in bytes.
    pub(super) behind_bytes: u64,
    /// Pages with such log.
    pub(super) pending_pages: usize,
    /// Whether a thread waits, or the log has no room except by applying it.
    pub(super) is_hurried: bool,
}

/// Shares out the trickle.
#[derive(Debug)]
pub(super) struct Pace {
    batch_pages: usize,
    full_speed_bytes: u64,
    idle_pages_per_second: u32,
    /// Pages that may be written, in millionths.
    saved_micro_pages: u64,
    last: Option<Duration>,
}

const MICRO: u64 = 1_000_000;

impl Pace {
    pub(super) fn new(
        batch_pages: usize,
        behind_limit_bytes: u64,
        idle_pages_per_second: u32,
    ) -> Pace {
        Pace {
            batch_pages,
            full_speed_bytes: behind_limit_bytes / 2,
            idle_pages_per_second,
            saved_micro_pages: 0,
            last: None,
        }
    }

    /// Pages to take at time `now`.
    pub(super) fn pages(&mut self, now: Duration, load: Load) -> usize {
        self.save(now);
        if self.is_hurried(load) {
            return self.batch_pages;
        }
        let wanted = self.batch_pages.min(load.pending_pages);
        if wanted == 0 || self.saved_micro_pages < self.full_batch() {
            return 0;
        }
        self.saved_micro_pages -= wanted as u64 * MICRO;
        wanted
    }

    /// Whether there is no time to yield the core between pages.
    pub(super) fn is_hurried(&self, load: Load) -> bool {
        load.is_hurried || load.behind_bytes > self.full_speed_bytes
    }

    /// Saves up for at most one batch. A few pages wait as long as a full batch: a sync costs the
    /// same.
    fn save(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.last.replace(now).unwrap_or(now));
        let micros = u64::try_from(passed.as_micros()).unwrap_or(u64::MAX);
        let earned = micros.saturating_mul(u64::from(self.idle_pages_per_second));
        self.saved_micro_pages =
            self.saved_micro_pages.saturating_add(earned).min(self.full_batch());
    }

    fn full_batch(&self) -> u64 {
        self.batch_pages as u64 * MICRO
    }
}

#[cfg(test)]
mod tests;
