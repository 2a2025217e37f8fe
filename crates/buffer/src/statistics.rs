//! The pool's counters, sharded so that threads rarely share one.

// Not shuttle's: counters decide nothing.
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;
use firn_base::task::thread_number;

const SHARDS: usize = 32;

/// The counters; each is an index into a shard.
#[derive(Debug, Clone, Copy)]
#[repr(usize)]
pub(crate) enum Counter {
    Hits,
    OptimisticHits,
    Misses,
    LoadsJoined,
    LoadsFailed,
    Prefetches,
    EvictionsClean,
    EvictionsOffered,
    OffersFull,
    EvictionWaits,
    BlockedShared,
    BlockedExclusive,
    Spins,
    ImagesCopied,
    ImagesRefused,
    GroupsApplied,
    PagesApplied,
    Invalidations,
}

const COUNTERS: usize = Counter::Invalidations as usize + 1;

type Shard = CachePadded<[AtomicU64; COUNTERS]>;

/// The counters of one pool.
pub(crate) struct Counters {
    shards: Box<[Shard]>,
    reads_in_flight: AtomicUsize,
}

/// A reading of a pool's counters. All except `reads_in_flight` count from the pool's start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolStatistics {
    /// Latches taken on a cached page.
    pub hits: u64,
    /// Reads of an inner node without a latch.
    pub optimistic_hits: u64,
    /// Reads of the page store.
    pub misses: u64,
    /// Loads that waited for another thread's read of the same page.
    pub loads_joined: u64,
    pub loads_failed: u64,
    /// Pages loaded before an operation needed them.
    pub prefetches: u64,
    /// Pages dropped because the page store had them.
    pub evictions_clean: u64,
    /// Pages dropped after the page store took them.
    pub evictions_offered: u64,
    /// Offers that the page store had no room for.
    pub offers_full: u64,
    /// Waits because no page could be evicted.
    pub eviction_waits: u64,
    /// Shared latches that were not free at once.
    pub blocked_shared: u64,
    /// Exclusive latches that were not free at once.
    pub blocked_exclusive: u64,
    /// How often waiters tried a latch again before they slept.
    pub spins: u64,
    /// Images of inner nodes that were published.
    pub images_copied: u64,
    /// Images not published because there were too many.
    pub images_refused: u64,
    /// Log groups that moved the applied position.
    pub groups_applied: u64,
    /// Cached pages that these groups changed, once for each group.
    pub pages_applied: u64,
    /// Cached pages dropped because they were changed elsewhere.
    pub invalidations: u64,
    /// Reads of the page store in progress.
    pub reads_in_flight: u64,
}

impl Counters {
    pub(crate) fn new() -> Counters {
        Counters {
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
            reads_in_flight: AtomicUsize::new(0),
        }
    }

    /// Adds one.
    pub(crate) fn count(&self, counter: Counter) {
        self.add(counter, 1);
    }

    /// Counts `number`.
    pub(crate) fn add(&self, counter: Counter, number: u64) {
        self.shards[thread_number() % SHARDS][counter as usize]
            .fetch_add(number, Ordering::Relaxed);
    }

    /// `count` reads of the page store begin.
    pub(crate) fn reads_began(&self, count: usize) {
        self.add(Counter::Misses, count as u64);
        self.reads_in_flight.fetch_add(count, Ordering::Relaxed);
    }

    /// One of them has ended.
    pub(crate) fn read_ended(&self) {
        self.reads_in_flight.fetch_sub(1, Ordering::Relaxed);
    }

    fn sum(&self, counter: Counter) -> u64 {
        self.shards.iter().map(|shard| shard[counter as usize].load(Ordering::Relaxed)).sum()
    }

    /// Reads all counters, one after the other.
    pub(crate) fn read(&self) -> PoolStatistics {
        PoolStatistics {
            hits: self.sum(Counter::Hits),
            optimistic_hits: self.sum(Counter::OptimisticHits),
            misses: self.sum(Counter::Misses),
            loads_joined: self.sum(Counter::LoadsJoined),
            loads_failed: self.sum(Counter::LoadsFailed),
            prefetches: self.sum(Counter::Prefetches),
            evictions_clean: self.sum(Counter::EvictionsClean),
            evictions_offered: self.sum(Counter::EvictionsOffered),
            offers_full: self.sum(Counter::OffersFull),
            eviction_waits: self.sum(Counter::EvictionWaits),
            blocked_shared: self.sum(Counter::BlockedShared),
            blocked_exclusive: self.sum(Counter::BlockedExclusive),
            spins: self.sum(Counter::Spins),
            images_copied: self.sum(Counter::ImagesCopied),
            images_refused: self.sum(Counter::ImagesRefused),
            groups_applied: self.sum(Counter::GroupsApplied),
            pages_applied: self.sum(Counter::PagesApplied),
            invalidations: self.sum(Counter::Invalidations),
            reads_in_flight: self.reads_in_flight.load(Ordering::Relaxed) as u64,
        }
    }
}
