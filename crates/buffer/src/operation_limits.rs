//! Bounds on what waiting threads keep in memory: operations that pin the pages they were missing,
//! and frames reserved for new pages.
//!
//! ```text
//!   frames   ├── pinned by operations: ½ ──┤── reserved: ¼ ──┤── can always go: ¼ ──┤
//! ```
//!
//! Without bounds, enough threads could each hold a few frames of a small pool and wait for one
//! more. An operation that reaches a bound waits with nothing pinned, so the operations inside can
//! finish. A holder of a reservation may wait for a turn, but not the other way round.

use crate::sync::{AtomicU64, Event, Ordering};

/// Pages that an operation may keep pinned while it has a [`Turn`].
pub const PINS_PER_TURN: usize = 8;

/// Units of which a limited number is out at a time.
pub(crate) struct Allowance {
    limit: u64,
    taken: AtomicU64,
    returned: Event,
}

impl Allowance {
    pub(crate) fn new(limit: usize) -> Allowance {
        let limit = limit.max(1) as u64;
        Allowance { limit, taken: AtomicU64::new(0), returned: Event::new() }
    }

    /// Takes `count` units. Waits until that many are available; a request beyond the limit waits
    /// until all are.
    pub(crate) fn take(&self, count: usize) {
        let count = count as u64;
        let room = self.limit.max(count);
        self.returned.wait_until(None, || {
            let more = |taken: u64| (taken + count <= room).then_some(taken + count);
            self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok()
        });
    }

    /// Gives `count` units back.
    pub(crate) fn give_back(&self, count: usize) {
        self.taken.fetch_sub(count as u64, Ordering::AcqRel);
        self.returned.notify_all();
    }
}

/// The right to keep up to [`PINS_PER_TURN`] pages pinned while more are loaded.
#[must_use]
pub struct Turn<'a>(&'a Allowance);

impl Turn<'_> {
    /// Waits until one of the turns in `allowance` is free.
    pub(crate) fn take(allowance: &Allowance) -> Turn<'_> {
        allowance.take(1);
        Turn(allowance)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.give_back(1);
    }
}
