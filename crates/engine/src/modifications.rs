//! Where the log last changed each page and each table, for replicas (003 §4.2: the hierarchical
//! modification tracker).
//!
//! ```text
//!   mini-transaction changes page 3:17, its group ends at 900
//!     └─► tables[hash 3] ← 900    pages[hash 3:17] ← 900      both before the page's latch goes
//!
//!   replica, applied up to 800, reads page 3:17:   900 > 800, so it waits
//!                               reads page 4:1:    its slot says 500, so it reads
//! ```
//!
//! Slots are shared by hash, so a position may be that of another page: too high, never too low.
//! The region begins with a floor, the end of the log when the tracker was made: what changed
//! before is not in the slots.
//!
//! Invariant: a change is in the slots before another thread can change the page again, and so
//! before any commit that depends on it is acknowledged.
//!
//! Departures from 003. Slots hold positions of the log instead of commit timestamps, and are
//! written when a page changes instead of when the transaction commits, so a commit has no list of
//! pages to walk. A reader therefore also has to look at the transactions of what it reads: a
//! commit that it does not know yet changes no page ([`crate::transaction::behind`]). The paper's
//! global level is the newest commit timestamp, which is in another region.

use std::sync::Arc;
use std::time::Duration;

use firn_api::{Modifications, WriterError};
use firn_base::task::monotonic;
use firn_base::{IndexId, Lsn, PageId, SpaceId};
use firn_fabric::{Answers, Batch, Fabric, FabricError, OwnedRegion, Peer, Region};
use firn_format::page::PageBuf;
use firn_format::space::{DICTIONARY_SPACE, UNDO_SPACE};
use firn_format::tree::TreePage;

use crate::sync::{AtomicU64, Ordering};

/// The name of the region.
const REGION: &str = "modifications";
/// Word of the region: changes up to here are not in the slots.
const FLOOR_WORD: usize = 0;
/// Word of the region: the last change of a definition.
const DEFINITIONS_WORD: usize = 1;
/// The first word of the tables' slots, at the beginning of a cache line.
const TABLES_START: usize = 8;
const TABLE_SLOTS: usize = 1 << 12;
const PAGES_START: usize = TABLES_START + TABLE_SLOTS;
/// Slots of pages: half a mebibyte.
const PAGE_SLOTS: usize = 1 << 16;
const REGION_WORDS: usize = PAGES_START + PAGE_SLOTS;

/// The slots of a node that writes.
pub(crate) struct ModificationTracker {
    region: OwnedRegion,
    /// A tree of the dictionary that holds no definitions; 0 until it is known.
    counters: AtomicU64,
    /// Changes so far, if some of them are missed on purpose.
    #[cfg(test)]
    missing: std::sync::OnceLock<AtomicU64>,
}

/// The slots of another node's tracker.
pub(crate) struct RemoteModifications {
    region: Arc<dyn Region>,
    /// How long a question takes about, in nanoseconds, if it takes a message.
    round_trip_ns: AtomicU64,
}

/// Each question moves the mean time by one part in `MEAN_OVER` of the difference.
const MEAN_OVER: u64 = 8;

/// Spreads numbers that lie close together.
const fn slot_of(number: u64, slots: usize) -> usize {
    // Fibonacci hashing: the high bits of a product with 2⁶⁴ divided by the golden ratio.
    (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - slots.trailing_zeros())) as usize
}

fn table_word(space: SpaceId) -> usize {
    TABLES_START + slot_of(u64::from(space.0), TABLE_SLOTS)
}

fn page_word(page: PageId) -> usize {
    PAGES_START + slot_of(page.to_u64(), PAGE_SLOTS)
}

impl ModificationTracker {
    /// A tracker whose region other nodes can reach. The log ends at `end`.
    ///
    /// # Errors
    /// If the fabric has no memory for it.
    pub(crate) fn register(
        fabric: &dyn Fabric,
        end: Lsn,
    ) -> Result<ModificationTracker, FabricError> {
        let region = fabric.register(REGION, REGION_WORDS)?;
        region.words()[FLOOR_WORD].store(end.0, Ordering::SeqCst);
        Ok(ModificationTracker {
            region,
            counters: AtomicU64::new(0),
            #[cfg(test)]
            missing: std::sync::OnceLock::new(),
        })
    }

    /// Changes of this tree are no changes of definitions.
    pub(crate) fn set_counters(&self, tree: IndexId) {
        self.counters.store(tree.0, Ordering::Relaxed);
    }

    /// Notes that a group which ends at `end` has changed a page. The page is latched.
    pub(crate) fn note(&self, id: PageId, page: &PageBuf, end: Lsn) {
        #[cfg(test)]
        if self.is_missed() {
            return;
        }
        // Replicas read undo as of their position.
        if id.space == UNDO_SPACE {
            return;
        }
        if id.space == DICTIONARY_SPACE && self.has_definitions(page) {
            self.raise(DEFINITIONS_WORD, end);
        }
        self.raise(table_word(id.space), end);
        self.raise(page_word(id), end);
    }

    /// A fault on purpose: every other change is missed.
    #[cfg(test)]
    pub(crate) fn miss_some(&self) {
        self.missing.get_or_init(|| AtomicU64::new(0));
    }

    #[cfg(test)]
    fn is_missed(&self) -> bool {
        let missing = self.missing.get();
        missing.is_some_and(|changes| changes.fetch_add(1, Ordering::Relaxed).is_multiple_of(2))
    }

    fn has_definitions(&self, page: &PageBuf) -> bool {
        TreePage::new(page)
            .is_ok_and(|page| page.index().0 != self.counters.load(Ordering::Relaxed))
    }

    fn raise(&self, word: usize, end: Lsn) {
        let word = &self.region.words()[word];
        // Most of the time the tracker's line is already this thread's.
        if word.load(Ordering::Relaxed) < end.0 {
            word.fetch_max(end.0, Ordering::SeqCst);
        }
    }
}

impl RemoteModifications {
    /// Connects to the region of an owner. Blocks.
    ///
    /// # Errors
    /// [`FabricError::Unknown`] if the owner keeps no tracker, or it cannot be reached.
    pub(crate) fn connect(peer: &dyn Peer) -> Result<RemoteModifications, FabricError> {
        let region = peer.connect(REGION)?;
        if region.length_words() != REGION_WORDS {
            return Err(FabricError::Incompatible {
                owner: REGION.to_owned(),
                reason: format!("{} words instead of {REGION_WORDS}", region.length_words()),
            });
        }
        Ok(RemoteModifications { region, round_trip_ns: AtomicU64::new(0) })
    }

    fn ask(&self, words: &[usize]) -> Result<(Lsn, Lsn), WriterError> {
        let mut batch = Batch::new();
        let floor = batch.read(FLOOR_WORD, 1);
        let places: Vec<_> = words.iter().map(|word| batch.read(*word, 1)).collect();
        let answers = self.run(batch);
        let answers =
            answers.map_err(|error| WriterError::Unreachable { reason: error.to_string() })?;
        let lowest = places.into_iter().map(|place| answers.word(place)).min();
        Ok((Lsn(answers.word(floor)), Lsn(lowest.unwrap_or(u64::MAX))))
    }
}

impl RemoteModifications {
    fn run(&self, batch: Batch) -> Result<Answers, FabricError> {
        if self.region.is_at_hand() {
            return self.region.run(batch);
        }
        let began = monotonic();
        let answers = self.region.run(batch)?;
        let took = u64::try_from(monotonic().saturating_sub(began).as_nanos()).unwrap_or(u64::MAX);
        let mean = match self.round_trip_ns.load(Ordering::Relaxed) {
            0 => took,
            mean => mean - mean / MEAN_OVER + took / MEAN_OVER,
        };
        self.round_trip_ns.store(mean, Ordering::Relaxed);
        Ok(answers)
    }
}

impl Modifications for RemoteModifications {
    fn of_page(&self, page: PageId) -> Result<Lsn, WriterError> {
        let (floor, last) = self.ask(&[table_word(page.space), page_word(page)])?;
        Ok(floor.max(last))
    }

    fn of_definitions(&self) -> Result<Lsn, WriterError> {
        let (floor, last) = self.ask(&[DEFINITIONS_WORD])?;
        Ok(floor.max(last))
    }

    fn round_trip(&self) -> Option<Duration> {
        let mean = Duration::from_nanos(self.round_trip_ns.load(Ordering::Relaxed));
        (!self.region.is_at_hand()).then_some(mean)
    }
}

#[cfg(test)]
mod tests {
    use firn_base::PageNo;
    use firn_fabric::{Epoch, InProcessFabric};
    use firn_format::page::PageKind;
    use firn_format::redo::{Change, apply};

    use super::*;

    const fn lsn(groups: u64) -> Lsn {
        Lsn(groups * Lsn::ALIGNMENT)
    }

    fn page(space: u32, number: u32) -> PageId {
        PageId::new(SpaceId(space), PageNo(number))
    }

    fn any_page(id: PageId) -> Box<PageBuf> {
        let mut buffer = PageBuf::boxed();
        apply(&mut buffer, id, &Change::Format { kind: PageKind::AllocationMap }).unwrap();
        buffer
    }

    #[test]
    fn a_page_was_last_changed_where_its_table_and_it_were_changed() {
        let fabric = InProcessFabric::new(Epoch(1));
        let peer = fabric.peer();
        let tracker = ModificationTracker::register(&fabric, lsn(10)).unwrap();
        let seen = RemoteModifications::connect(&*peer).unwrap();
        assert_eq!(seen.of_page(page(5, 3)).unwrap(), lsn(10), "the floor");
        tracker.note(page(5, 3), &any_page(page(5, 3)), lsn(12));
        tracker.note(page(5, 4), &any_page(page(5, 4)), lsn(15));
        assert_eq!(seen.of_page(page(5, 3)).unwrap(), lsn(12));
        assert_eq!(seen.of_page(page(5, 4)).unwrap(), lsn(15));
        assert_eq!(seen.of_page(page(5, 9)).unwrap(), lsn(10), "the page alone decides");
        assert_eq!(seen.of_page(page(6, 3)).unwrap(), lsn(10), "so does the table");
        tracker.note(page(5, 3), &any_page(page(5, 3)), lsn(11));
        assert_eq!(seen.of_page(page(5, 3)).unwrap(), lsn(12), "it never goes back");
        assert_eq!(seen.of_definitions().unwrap(), lsn(10));
    }

    #[test]
    fn an_owner_that_keeps_no_tracker_is_no_error_of_the_transport() {
        let fabric = InProcessFabric::new(Epoch(1));
        let refused = RemoteModifications::connect(&*fabric.peer());
        assert!(matches!(refused, Err(FabricError::Unknown(_))));
    }
}
