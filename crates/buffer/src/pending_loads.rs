//! Loads in progress: at any time one read per page, shared by all threads that want the page, and
//! never an older version than was cached before.
//!
//! ```text
//!   first to ask     lead:  read ──► install, pins = 1 + joiners ──► wake the joiners
//!   others           join:  wait ────────────────────────────────► take over a pin
//! ```
//!
//! The result of a read is discarded and the load starts again (rule 8) if meanwhile
//!
//! * the page was created, or its space discarded: the flight is *superseded*;
//! * a joiner needs a newer version than was read;
//! * the page changed elsewhere, or by a log group that is being applied.
//!
//! For each group of pages, `dropped` holds the newest version ever dropped. It starts with the
//! durable position when the pool was made: before that, the pages were changed through another
//! pool. It is an upper bound for each page: a load that asks for a newer version than needed costs
//! little, because what was dropped was durable.

use std::collections::hash_map::Entry;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
// Not shuttle's: written before the page's entry is cleared and read after it was seen to be clear.
use std::sync::atomic::{AtomicU64, Ordering};

use firn_api::PageStoreError;
use firn_base::{Lsn, PageId, SpaceId};
use rustc_hash::{FxHashMap, FxHasher};

use crate::sync::{Event, Mutex};

const SHARDS: usize = 64;
const DROPPED_GROUPS: usize = 4096;

/// The result of a load, for the threads that joined it.
#[derive(Clone)]
pub(crate) enum Outcome {
    /// Cached in this frame; each joiner has a pin.
    Cached(u32),
    /// Look up again.
    Again,
    Failed(PageStoreError),
}

/// The place where joiners wait.
#[derive(Default)]
pub(crate) struct Flight {
    landed: Event,
    outcome: Mutex<Option<Outcome>>,
}

/// The state of a flight, under its shard's mutex.
pub(crate) struct Passengers {
    flight: Arc<Flight>,
    joiners: u32,
    at_least: Lsn,
    superseded: bool,
}

/// How a load begins.
pub(crate) enum Boarding {
    /// The page is cached by now.
    Cached,
    /// The caller reads it.
    Lead,
    /// Another thread reads it.
    Join(Arc<Flight>),
}

/// What the leader does with the page it has read.
pub(crate) enum Landing {
    /// The flight is over.
    Landed(Outcome),
    /// Read again, at least this version.
    ReadAgain(Lsn),
}

/// The loads in progress in a pool.
pub(crate) struct Flights {
    shards: Box<[Mutex<FxHashMap<PageId, Passengers>>]>,
    dropped: Box<[AtomicU64]>,
}

fn hash(page: PageId) -> usize {
    let mut hasher = FxHasher::default();
    page.hash(&mut hasher);
    hasher.finish() as usize
}

impl Passengers {
    fn alone(at_least: Lsn) -> Passengers {
        Passengers { flight: Arc::default(), joiners: 0, at_least, superseded: false }
    }
}

impl Flight {
    /// Waits for the end of the load.
    pub(crate) fn wait(&self) -> Outcome {
        self.landed.wait_until(None, || self.outcome.lock().is_some());
        self.outcome.lock().clone().expect("the flight has landed")
    }
}

impl Flights {
    /// No loads, and no page older than `durable`.
    pub(crate) fn new(durable: Lsn) -> Flights {
        Flights {
            shards: (0..SHARDS).map(|_| Mutex::new(FxHashMap::default())).collect(),
            dropped: (0..DROPPED_GROUPS).map(|_| AtomicU64::new(durable.0)).collect(),
        }
    }

    /// `page` is about to be dropped at version `lsn`.
    pub(crate) fn note_dropped(&self, page: PageId, lsn: Lsn) {
        let bound = &self.dropped[hash(page) % DROPPED_GROUPS];
        if bound.load(Ordering::Relaxed) < lsn.0 {
            bound.fetch_max(lsn.0, Ordering::AcqRel);
        }
    }

    /// A version at least as new as `page` was when it was last dropped.
    pub(crate) fn newest_dropped(&self, page: PageId) -> Lsn {
        Lsn(self.dropped[hash(page) % DROPPED_GROUPS].load(Ordering::Acquire))
    }

    fn shard(&self, page: PageId) -> &Mutex<FxHashMap<PageId, Passengers>> {
        &self.shards[hash(page) % SHARDS]
    }

    /// Begins or joins a load.
    pub(crate) fn board(
        &self,
        page: PageId,
        at_least: Lsn,
        is_cached: impl FnOnce() -> bool,
    ) -> Boarding {
        let mut shard = self.shard(page).lock();
        match shard.entry(page) {
            Entry::Occupied(mut under_way) => {
                let passengers = under_way.get_mut();
                passengers.joiners += 1;
                passengers.at_least = passengers.at_least.max(at_least);
                Boarding::Join(Arc::clone(&passengers.flight))
            }
            Entry::Vacant(_) if is_cached() => Boarding::Cached,
            Entry::Vacant(place) => {
                place.insert(Passengers::alone(at_least));
                Boarding::Lead
            }
        }
    }

    /// Begins a load unless the page is cached or being loaded; returns whether it did.
    pub(crate) fn lead(&self, page: PageId, is_cached: impl FnOnce() -> bool) -> bool {
        let mut shard = self.shard(page).lock();
        match shard.entry(page) {
            Entry::Vacant(place) if !is_cached() => {
                place.insert(Passengers::alone(Lsn(0)));
                true
            }
            _ => false,
        }
    }

    /// Ends a load that read the version `read`, unless a joiner wants a newer one. `install` puts
    /// the page in place with a pin for each joiner, or returns the error; it is called only if the
    /// read still counts.
    pub(crate) fn land(
        &self,
        page: PageId,
        read: Lsn,
        install: impl FnOnce(u32) -> Outcome,
    ) -> Landing {
        let mut shard = self.shard(page).lock();
        let passengers = shard.get(&page).expect("a load ends once");
        if !passengers.superseded && passengers.at_least > read {
            return Landing::ReadAgain(passengers.at_least);
        }
        let passengers = shard.remove(&page).expect("just seen");
        let outcome =
            if passengers.superseded { Outcome::Again } else { install(passengers.joiners) };
        drop(shard);
        *passengers.flight.outcome.lock() = Some(outcome.clone());
        passengers.flight.landed.notify_all();
        Landing::Landed(outcome)
    }

    /// Makes a load of `page` in progress read a version that includes `lsn`.
    pub(crate) fn require(&self, page: PageId, lsn: Lsn) {
        if let Some(passengers) = self.shard(page).lock().get_mut(&page) {
            passengers.at_least = passengers.at_least.max(lsn);
        }
    }

    /// Runs `create`, which enters the page; no load then puts an older version in its place.
    pub(crate) fn supersede<T>(&self, page: PageId, create: impl FnOnce() -> T) -> T {
        let mut shard = self.shard(page).lock();
        if let Some(passengers) = shard.get_mut(&page) {
            passengers.superseded = true;
        }
        create()
    }

    /// Reads of `space` in progress must not be cached.
    pub(crate) fn supersede_space(&self, space: SpaceId) {
        for shard in &self.shards {
            for (page, passengers) in shard.lock().iter_mut() {
                passengers.superseded |= page.space == space;
            }
        }
    }
}
