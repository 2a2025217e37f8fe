//! Counters of the lock manager, and the listing of all locks.

// Not shuttle's version: no decision depends on the counters.
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use firn_base::TrxId;

use super::target::{LockMode, Locked};

/// Counters since the start of the process.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct LockStatistics {
    /// Requests that had to be queued.
    pub waits: u64,
    /// Waits that are in progress.
    pub current_waits: u64,
    pub timeouts: u64,
    /// Deadlocks found, which is the number of victims.
    pub deadlocks: u64,
    pub cancelled: u64,
    /// Time spent in waits that have ended, in microseconds.
    pub wait_time_us: u64,
    /// The longest of these waits, in microseconds.
    pub longest_wait_us: u64,
}

/// The live counters. (Deadlocks are counted where they are found.)
#[derive(Debug, Default)]
pub(super) struct Counters {
    waits: AtomicU64,
    timeouts: AtomicU64,
    cancelled: AtomicU64,
    wait_time_us: AtomicU64,
    longest_wait_us: AtomicU64,
}

impl Counters {
    pub(super) fn count_wait(&self) {
        self.waits.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_timeout(&self) {
        self.timeouts.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_cancelled(&self) {
        self.cancelled.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_wait_time(&self, waited: Duration) {
        let waited_us = u64::try_from(waited.as_micros()).unwrap_or(u64::MAX);
        self.wait_time_us.fetch_add(waited_us, Ordering::Relaxed);
        self.longest_wait_us.fetch_max(waited_us, Ordering::Relaxed);
    }

    pub(super) fn read(&self, current_waits: u64, deadlocks: u64) -> LockStatistics {
        LockStatistics {
            waits: self.waits.load(Ordering::Relaxed),
            current_waits,
            timeouts: self.timeouts.load(Ordering::Relaxed),
            deadlocks,
            cancelled: self.cancelled.load(Ordering::Relaxed),
            wait_time_us: self.wait_time_us.load(Ordering::Relaxed),
            longest_wait_us: self.longest_wait_us.load(Ordering::Relaxed),
        }
    }
}

/// One line of [`super::LockManager::snapshot`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockInfo {
    pub owner: TrxId,
    pub locked: Locked,
    pub mode: LockMode,
    /// Duration of the wait and its blockers; `None` if the owner has the lock.
    pub wait: Option<WaitInfo>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitInfo {
    /// Time since the request was queued.
    pub waited: Duration,
    /// The owners that it waits for. In a queue of exclusive waiters, each names the one before it.
    pub blockers: Vec<TrxId>,
}
