//! Loads under way: one read per page at a time, whoever asks, and never an older version than was cached.
//!
//! ```text
//!   first to ask     lead:  read ──► install, pins = 1 + joiners ──► wake the joiners
//!   others           join:  wait ────────────────────────────────► take over a pin
//! ```
//!
//! What is read is thrown away and the load begun again if meanwhile (rule 8)
//!
//! * the page was created, or its space discarded: the flight is *superseded*;
//! * a joiner needs a newer version than was read;
//! * the page changed elsewhere, or by a log group that is being applied.
//!
//! `dropped` remembers, for a group of pages, the newest version that was ever dropped, and begins with what was
//! durable when the pool was made: before that the pages were changed through another pool. It is a bound for
//! each of them: a load that asks for too new a version costs little, since what was dropped was durable.

use std::collections::hash_map::Entry;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
// Not shuttle's: written before the entry of the page is cleared and read after it was seen clear.
use std::sync::atomic::{AtomicU64, Ordering};

use firn_api::PageStoreError;
use firn_base::{Lsn, PageId, SpaceId};
use rustc_hash::{FxHashMap, FxHasher};

use crate::sync::{Event, Mutex};

const SHARDS: usize = 64;
const DROPPED_GROUPS: usize = 4096;

/// How a load ended for those who joined it.
#[derive(Clone)]
pub(crate) enum Outcome {
    /// Cached in this frame; each joiner has a pin.
    Cached(u32),
    /// Look again.
    Again,
    /// What the store said.
    Failed(PageStoreError),
}

/// Where joiners wait.
#[derive(Default)]
pub(crate) struct Flight {
    landed: Event,
    outcome: Mutex<Option<Outcome>>,
}

/// What is known of a flight under its shard's mutex.
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
    /// Read it.
    Lead,
    /// Somebody reads it.
    Join(Arc<Flight>),
}

/// What the leader does with what it has read.
pub(crate) enum Landing {
    /// The flight is over.
    Landed(Outcome),
    /// Read again, at least this version.
    ReadAgain(Lsn),
}

/// The loads under way in a pool.
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
    /// No loads, and no page older than what was `durable` by now.
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

    /// A version that is no older than `page` was when it was last dropped.
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

    /// Begins a load unless the page is cached or being loaded, and says whether it began one.
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

    /// Ends a load of which the version `read` was read, unless somebody wants a newer one. `install` puts
    /// the page in place with a pin for each joiner, or gives the error, and is called only if what was
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

    /// Has a load of `page` that is under way read a version that includes `lsn`.
    pub(crate) fn require(&self, page: PageId, lsn: Lsn) {
        if let Some(passengers) = self.shard(page).lock().get_mut(&page) {
            passengers.at_least = passengers.at_least.max(lsn);
        }
    }

    /// Runs `create`, which enters the page, so that no load puts an older version in its place.
    pub(crate) fn supersede<T>(&self, page: PageId, create: impl FnOnce() -> T) -> T {
        let mut shard = self.shard(page).lock();
        if let Some(passengers) = shard.get_mut(&page) {
            passengers.superseded = true;
        }
        create()
    }

    /// What is being read of `space` is not to be cached.
    pub(crate) fn supersede_space(&self, space: SpaceId) {
        for shard in &self.shards {
            for (page, passengers) in shard.lock().iter_mut() {
                passengers.superseded |= page.space == space;
            }
        }
    }
}
