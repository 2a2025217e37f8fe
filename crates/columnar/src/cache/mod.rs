//! Columns that scans have decoded, kept between statements by runs of leaves.
//!
//! ```text
//!   scan: leaf 8 at LSN 310 comes next
//!                     │     run:  leaves 7 @300, 8 @310, 9 @290 ...   rows of each   seen from 81
//!   page 7 ──┐        ▼           column 0 ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓
//!   page 8 ──┼─ the second of ─►  column 4 ▓▓▓▓▓▓▓▓
//!   page 9 ──┘
//!        held: unchanged leaves 8, 9 … are skipped, and their columns come from the run
//!        else: rows are decoded, packed and put
//! ```
//!
//! Invariants:
//! * the kept rows of a leaf are all rows that a snapshot at `seen_from` sees in the version `lsn`.
//!   A leaf that has changed has another LSN; while it has not changed, every later snapshot sees
//!   the same rows;
//! * a page is in at most one run, the run of its newest version; `live` counts the pages of a run;
//! * `used_bytes` is the sum of the runs' sizes, and exceeds the limit at most by the columns that
//!   are being put.
//!
//! No notification is needed when rows change, tables are dropped or pages are reused: their
//! columns are no longer found, and are evicted when room is needed. Eviction removes whole columns
//! of a table, the least used first, and only in favour of columns that were used far more often.
//! So statements that repeatedly read more than fits keep a part of it instead of evicting each
//! other's columns. A run of which most leaves have changed is no longer used, so the next scan
//! makes new runs.
//!
//! Latch rules:
//! 1. The register's lock comes before a shard's, and a shard's before a run's.
//! 2. They are held only for reads and changes in memory. No call to the node is made with one of
//!    them held, and the node holds none of its latches when it calls the cache.

mod leaf_run;
pub(crate) mod packed;
mod register;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use firn_api::rows::LeafVersion;
use firn_base::memory::Cache;
use firn_base::{Cts, LogStreamId, PageId};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

pub(crate) use leaf_run::{PackedRows, RunPart};
pub(crate) use register::{ColumnForm, ColumnNumber};

use leaf_run::Run;
use packed::Packed;
use register::Register;

const SHARDS: usize = 64;

/// Leaves by their identity: nodes with different log streams have pages with the same number.
type Shard = FxHashMap<(LogStreamId, PageId), Place>;

fn name_of(leaf: LeafVersion) -> (LogStreamId, PageId) {
    (leaf.stream, leaf.page)
}

/// Where a leaf's rows are.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    run: Arc<Run>,
    position: usize,
}

impl Place {
    /// Whether this leaf follows `self`'s in the same run.
    pub(crate) fn is_before(&self, other: &Place) -> bool {
        Arc::ptr_eq(&self.run, &other.run) && self.position + 1 == other.position
    }

    /// Whether it is the last of its run.
    pub(crate) fn is_last(&self) -> bool {
        self.position + 1 == self.run.leaves().len()
    }
}

/// The cache of decoded columns.
#[derive(Debug)]
pub(crate) struct ColumnCache {
    shards: Box<[Mutex<Shard>]>,
    register: Mutex<Register>,
    limit_bytes: u64,
    used_bytes: AtomicU64,
}

impl ColumnCache {
    pub(crate) fn new(limit_bytes: u64) -> ColumnCache {
        ColumnCache {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            register: Mutex::default(),
            limit_bytes,
            used_bytes: AtomicU64::new(0),
        }
    }

    /// The memory of the kept columns.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// The columns that a scan is about to use.
    pub(crate) fn open(self: &Arc<ColumnCache>, forms: Vec<ColumnForm>) -> CacheUse {
        let numbers = self.register.lock().number(forms);
        CacheUse { cache: Arc::clone(self), numbers }
    }

    fn shard(&self, page: PageId) -> &Mutex<Shard> {
        // The numbers of a table's leaves follow each other.
        &self.shards[page.page_no.0 as usize % SHARDS]
    }

    /// Makes room for columns that a scan uses: evicts the least used columns, as long as they are
    /// used much less than all of these. False if that is not enough.
    fn make_room(&self, wanted: &[ColumnNumber], needed_bytes: u64) -> bool {
        let mut register = self.register.lock();
        while self.used_bytes() + needed_bytes > self.limit_bytes {
            let Some(victim) = register.take_victim(wanted) else { return false };
            for shard in &self.shards {
                shard.lock().retain(|_, place| {
                    let (freed_bytes, is_empty) = place.run.forget(victim);
                    self.used_bytes.fetch_sub(freed_bytes, Ordering::Relaxed);
                    if is_empty {
                        self.leave(&place.run);
                    }
                    !is_empty
                });
            }
        }
        true
    }

    /// A page is no longer in the run.
    fn leave(&self, run: &Run) {
        self.used_bytes.fetch_sub(run.leave(), Ordering::Relaxed);
    }
}

impl Cache for ColumnCache {
    fn release(&self) {
        for shard in &self.shards {
            let Some(mut shard) = shard.try_lock() else { continue };
            shard.drain().for_each(|(_, place)| self.leave(&place.run));
        }
    }
}

/// The kept columns, as one scan uses them.
#[derive(Debug)]
pub(crate) struct CacheUse {
    cache: Arc<ColumnCache>,
    numbers: Vec<ColumnNumber>,
}

impl Drop for CacheUse {
    fn drop(&mut self) {
        self.cache.register.lock().note_kept(&self.numbers);
    }
}

/// The kept rows of a leaf.
#[derive(Debug)]
pub(crate) enum Kept {
    /// Nothing of this version, or nothing that the snapshot may see.
    Nothing,
    /// Other columns than the scan's.
    Others(Place),
    /// All columns of the scan, from this leaf on to the end of its run.
    All(RunPart),
}

impl CacheUse {
    /// The kept rows of a leaf of this version for a snapshot.
    pub(crate) fn get(&self, leaf: LeafVersion, snapshot: Cts) -> Kept {
        let found = self.cache.shard(leaf.page).lock().get(&name_of(leaf)).cloned();
        let Some(place) = found.filter(|place| {
            place.run.leaves()[place.position] == leaf
                && place.run.seen_from() <= snapshot
                && !place.run.is_worn()
        }) else {
            return Kept::Nothing;
        };
        match place.run.columns(&self.numbers) {
            Some(columns) => {
                Kept::All(RunPart::new(Arc::clone(&place.run), place.position, columns))
            }
            None => Kept::Others(place),
        }
    }

    /// Keeps columns of adjacent leaves, each with its number of rows, which a snapshot has seen.
    /// `known` is the place of the first leaf, if all leaves of its run have been read. False if
    /// there is no room.
    pub(crate) fn put(
        &self,
        leaves: &[(LeafVersion, usize)],
        snapshot: Cts,
        columns: &[Packed],
        known: Option<&Place>,
    ) -> bool {
        let cache = &*self.cache;
        let named = || self.numbers.iter().copied().zip(columns.iter().cloned());
        let fresh = Run::new(leaves, snapshot, named());
        let needed_bytes = fresh.size_bytes();
        if cache.used_bytes() + needed_bytes > cache.limit_bytes
            && !cache.make_room(&self.numbers, needed_bytes)
        {
            return false;
        }
        let same =
            known.filter(|place| place.position == 0 && place.run.leaves() == fresh.leaves());
        if let Some(added_bytes) = same.and_then(|place| place.run.add(named())) {
            cache.used_bytes.fetch_add(added_bytes, Ordering::Relaxed);
            return true;
        }
        cache.used_bytes.fetch_add(needed_bytes, Ordering::Relaxed);
        let run = Arc::new(fresh);
        for (position, leaf) in run.leaves().iter().enumerate() {
            let place = Place { run: Arc::clone(&run), position };
            let before = cache.shard(leaf.page).lock().insert(name_of(*leaf), place);
            if let Some(before) = before {
                cache.leave(&before.run);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests;
