//! The history window: the log and the superseded images that reads of old versions still need, and
//! how old a read may be.
//!
//! ```text
//!   version        v0 ............ v1 ............ v2
//!   hold                [since ───► v1]  [since ──► v2]      log kept from the smallest `since`
//!   horizon                 ▲ v0 is kept: a read between the horizon and v1 begins with it
//! ```
//!
//! A hold lasts until the horizon passes its end. Then the version before its end is freed. The
//! horizon does not pass the position of a lease.
//!
//! Relations: `horizon ≤ allowed ≤ every lease`.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use firn_api::PageLease;
use firn_base::{Lsn, PageId};

use super::version::Version;

/// What reads of old versions need.
#[derive(Debug, Default)]
pub(super) struct History {
    horizon: Lsn,
    /// How far the horizon may be by now; leases before it are refused.
    allowed: Lsn,
    leases: Vec<Weak<HeldPosition>>,
    by_until: BTreeSet<(Lsn, PageId, Lsn)>,
    by_since: BTreeSet<(Lsn, PageId, Lsn)>,
}

impl History {
    /// Nothing is held; reads before `horizon` are not served.
    pub(super) fn new(horizon: Lsn) -> History {
        History { horizon, allowed: horizon, ..History::default() }
    }

    /// Every read at or after this position is served.
    pub(super) fn horizon(&self) -> Lsn {
        self.horizon
    }

    /// Keeps every version from `position` on; fails with the oldest position that can be held if
    /// that is too old.
    pub(super) fn lease(&mut self, reader: &str, position: Lsn) -> Result<Arc<HeldPosition>, Lsn> {
        if position < self.allowed {
            return Err(self.allowed);
        }
        let position = AtomicU64::new(position.0);
        let held = Arc::new(HeldPosition { reader: reader.to_owned(), position });
        self.leases.push(Arc::downgrade(&held));
        Ok(held)
    }

    /// The leases that have not ended.
    pub(super) fn leases(&self) -> impl Iterator<Item = Arc<HeldPosition>> + '_ {
        self.leases.iter().filter_map(Weak::upgrade)
    }

    /// How far the horizon may move towards `wanted`: not past a lease.
    pub(super) fn allow_horizon(&mut self, wanted: Lsn) -> Lsn {
        self.leases.retain(|lease| lease.strong_count() > 0);
        let oldest = self.leases().map(|lease| lease.position()).min().unwrap_or(Lsn::MAX);
        self.allowed = self.allowed.max(wanted.min(oldest));
        self.allowed
    }

    /// Keeps the log from `since`, and the image before it, until the horizon reaches `until`.
    pub(super) fn hold(&mut self, page: PageId, since: Lsn, until: Lsn) {
        self.by_until.insert((until, page, since));
        self.by_since.insert((since, page, until));
    }

    /// At the start, keeps what the stored versions of a page need.
    pub(super) fn hold_gaps(&mut self, page: PageId, versions: &[Version], has_base: bool) {
        for (index, version) in versions.iter().enumerate() {
            if version.lsn > self.horizon && (index > 0 || version.is_first || has_base) {
                self.hold(page, version.since, version.lsn);
            }
        }
    }

    /// Whether the horizon would pass the end of a hold.
    pub(super) fn would_expire(&self, horizon: Lsn) -> bool {
        self.by_until.first().is_some_and(|(until, ..)| *until <= horizon)
    }

    /// Moves the horizon, never back; returns the pages whose holds ended.
    pub(super) fn move_horizon(&mut self, horizon: Lsn) -> Vec<PageId> {
        debug_assert!(self.leases().all(|lease| horizon <= lease.position()), "a lease is passed");
        self.horizon = self.horizon.max(horizon);
        let mut pages = Vec::new();
        while self.would_expire(self.horizon) {
            let Some((until, page, since)) = self.by_until.pop_first() else { break };
            self.by_since.remove(&(since, page, until));
            pages.push(page);
        }
        pages
    }

    /// Where the held log starts; the end of time if none is held.
    pub(super) fn needs_log_from(&self) -> Lsn {
        self.by_since.first().map_or(Lsn::MAX, |(since, ..)| *since)
    }
}

/// A lease of this process: it lasts while it is referenced.
#[derive(Debug)]
pub(super) struct HeldPosition {
    /// The holder, for listings.
    pub(super) reader: String,
    position: AtomicU64,
}

impl PageLease for HeldPosition {
    fn position(&self) -> Lsn {
        Lsn(self.position.load(Ordering::Acquire))
    }

    fn advance(&self, to: Lsn) {
        self.position.fetch_max(to.0, Ordering::AcqRel);
    }
}

/// Knows which position was durable one window ago.
#[derive(Debug)]
pub(super) struct HorizonClock {
    window: Duration,
    horizon: Lsn,
    samples: VecDeque<(Duration, Lsn)>,
}

/// How often the durable position is sampled.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);

impl HorizonClock {
    /// A clock that starts with the horizon from the map.
    pub(super) fn new(window: Duration, horizon: Lsn) -> HorizonClock {
        HorizonClock { window, horizon, samples: VecDeque::new() }
    }

    /// Notes that `durable` is durable at `now`; returns the position that was durable one window
    /// ago, or the last position known to have been.
    pub(super) fn horizon(&mut self, now: Duration, durable: Lsn) -> Lsn {
        if self.window.is_zero() {
            return durable;
        }
        let is_due = |(time, _): &(Duration, Lsn)| now.saturating_sub(*time) >= SAMPLE_INTERVAL;
        if self.samples.back().is_none_or(is_due) {
            self.samples.push_back((now, durable));
        }
        while let Some((time, lsn)) = self.samples.front().copied() {
            if now.saturating_sub(time) < self.window {
                break;
            }
            self.samples.pop_front();
            self.horizon = self.horizon.max(lsn);
        }
        self.horizon
    }
}

#[cfg(test)]
mod tests;
