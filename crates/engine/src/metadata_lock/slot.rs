//! A context's places for `Read` and `Write` locks, which it fills and frees without a mutex.
//!
//! ```text
//!   place   0   free          table << 1 | writes   the lock
//! ```
//!
//! A context writes its own places. A thread that grants the context's waiting request also writes
//! them, under the mutex of the table of locks. Any thread may read them.

use crossbeam_utils::CachePadded;
use firn_api::rows::MetadataLock;
use firn_base::TableId;

use crate::sync::{AtomicU64, AtomicUsize, Event, Ordering};

/// Places of a context. Most transactions use fewer tables.
pub(super) const PLACES: usize = if cfg!(feature = "shuttle") { 2 } else { 14 };

/// The places of one context.
#[derive(Debug)]
pub(super) struct Slot {
    places: CachePadded<[AtomicU64; PLACES]>,
    /// Places that are taken, from the first one on.
    taken: AtomicUsize,
    /// Other locks of the transaction, and explicit ones.
    pub(super) slow: AtomicUsize,
    /// The id of the transaction while it waits for a row, 0 otherwise.
    pub(super) transaction: AtomicU64,
    /// Notified when a wait of the context was decided.
    pub(super) decided: Event,
}

pub(super) fn entry(table: TableId, lock: MetadataLock) -> u64 {
    table.0 << 1 | u64::from(lock == MetadataLock::Write)
}

fn lock_of(entry: u64) -> (TableId, MetadataLock) {
    let lock = if entry & 1 == 1 { MetadataLock::Write } else { MetadataLock::Read };
    (TableId(entry >> 1), lock)
}

impl Slot {
    pub(super) fn new() -> Slot {
        Slot {
            places: CachePadded::new(std::array::from_fn(|_| AtomicU64::new(0))),
            taken: AtomicUsize::new(0),
            slow: AtomicUsize::new(0),
            transaction: AtomicU64::new(0),
            decided: Event::new(),
        }
    }

    pub(super) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// The place that has a lock on the table. For the context itself.
    pub(super) fn find(&self, table: TableId) -> Option<(usize, MetadataLock)> {
        (0..self.taken()).find_map(|place| {
            let (of, lock) = lock_of(self.places[place].load(Ordering::Relaxed));
            (of == table).then_some((place, lock))
        })
    }

    /// Puts a lock in a place; a place that was free is taken from now on.
    pub(super) fn put(&self, place: usize, table: TableId, lock: MetadataLock) {
        self.places[place].store(entry(table, lock), Ordering::SeqCst);
        if place == self.taken() {
            self.taken.store(place + 1, Ordering::Relaxed);
        }
    }

    /// Frees the places from `first` on, and passes their tables to `freed`.
    pub(super) fn free_from(&self, first: usize, mut freed: impl FnMut(TableId)) {
        let taken = self.taken();
        if first >= taken {
            return;
        }
        self.taken.store(first, Ordering::Relaxed);
        for place in &self.places[first..taken] {
            let (table, _) = lock_of(place.load(Ordering::Relaxed));
            // Sequentially consistent, as is the following read of the requests for the table.
            place.store(0, Ordering::SeqCst);
            freed(table);
        }
    }

    /// The lock on a table in these places. Any thread may call it.
    pub(super) fn lock_on(&self, table: TableId) -> Option<MetadataLock> {
        self.places.iter().find_map(|place| {
            let entry = place.load(Ordering::SeqCst);
            let (of, lock) = lock_of(entry);
            (entry != 0 && of == table).then_some(lock)
        })
    }

    /// All locks here, in the order in which they were taken. For the context itself.
    pub(super) fn locks(&self) -> Vec<(TableId, MetadataLock)> {
        self.places[..self.taken()]
            .iter()
            .map(|place| lock_of(place.load(Ordering::Relaxed)))
            .collect()
    }
}
