//! Entries whose slots were reused before every snapshot saw their outcome.
//!
//! ```text
//!   segment 0   │bucket│bucket│…            64 buckets of 8 entries
//!   segment 1   │bucket│bucket│bucket│…     twice as many; there once segment 0 had no room
//!   entry       id · outcome · commit LSN · unused
//! ```
//!
//! Each segment is a fabric region, so that a peer finds entries like the owner: in each segment it
//! reads the one bucket that the transaction's id selects. Entries do not move.
//!
//! Rules, cited by number:
//!
//! 1. Entries are added and removed under the mutex; readers take no mutex.
//! 2. An entry's id is zero while its other words pass to another transaction. While an entry has
//!    an id, its commit LSN changes before its outcome.
//! 3. An entry is written before it is counted, and counted before its slot is reused (rule 2 of
//!    [`super`]). A reader reads slot, count and bucket in this order.

use std::sync::{Arc, OnceLock};

use firn_base::{Cts, TrxId};
use firn_fabric::{Fabric, FabricError, OwnedRegion};

use super::Entry;
use crate::sync::{AtomicU64, Mutex, Ordering};

/// Words of an entry, and where they lie.
pub(in crate::transaction) const ENTRY_WORDS: usize = 4;
pub(in crate::transaction) const ID: usize = 0;
pub(in crate::transaction) const OUTCOME: usize = 1;
pub(in crate::transaction) const COMMIT_LSN: usize = 2;

pub(in crate::transaction) const BUCKET_WORDS: usize = 8 * ENTRY_WORDS;
/// Buckets of the first segment; each next one has twice as many.
const FIRST_BUCKETS: usize = if cfg!(feature = "shuttle") { 1 } else { 64 };
/// Memory ends before this many segments are full.
const MOST_SEGMENTS: usize = 32;

/// The words after the slots that count what has overflowed: entries and segments.
pub(in crate::transaction) const HEADER_WORDS: usize = 16;
pub(in crate::transaction) const COUNT: usize = 0;
pub(in crate::transaction) const SEGMENTS: usize = 1;

/// The region of a segment.
pub(in crate::transaction) fn segment_name(segment: usize) -> String {
    format!("transaction-overflow-{segment}")
}

/// The first word of the bucket for `trx` in a segment of `segment_words` words.
pub(in crate::transaction) fn bucket_start(trx: TrxId, segment_words: usize) -> usize {
    // Ids that share a slot differ only in their high bits; the product mixes all bits.
    let hash = trx.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    (hash as usize & (segment_words / BUCKET_WORDS - 1)) * BUCKET_WORDS
}

pub(super) struct Overflow {
    fabric: Arc<dyn Fabric>,
    segments: [OnceLock<OwnedRegion>; MOST_SEGMENTS],
    changing: Mutex<()>,
    /// The last horizon up to which settled entries were removed.
    recycled_to: AtomicU64,
}

impl std::fmt::Debug for Overflow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Overflow").finish_non_exhaustive()
    }
}

impl Overflow {
    pub(super) fn new(fabric: Arc<dyn Fabric>) -> Overflow {
        let segments = [const { OnceLock::new() }; MOST_SEGMENTS];
        Overflow { fabric, segments, changing: Mutex::new(()), recycled_to: AtomicU64::new(0) }
    }

    fn segments(&self) -> impl DoubleEndedIterator<Item = &OwnedRegion> {
        let used = self.segments.iter().take_while(|segment| segment.get().is_some()).count();
        self.segments[..used].iter().filter_map(OnceLock::get)
    }

    /// The entries of the bucket for `trx` in a segment.
    fn bucket(segment: &OwnedRegion, trx: TrxId) -> impl Iterator<Item = &[AtomicU64]> {
        let words = segment.words();
        words[bucket_start(trx, words.len())..][..BUCKET_WORDS].chunks_exact(ENTRY_WORDS)
    }

    fn find(&self, trx: TrxId) -> Option<&[AtomicU64]> {
        let mut entries = self.segments().flat_map(|segment| Overflow::bucket(segment, trx));
        entries.find(|entry| entry[ID].load(Ordering::SeqCst) == trx.0)
    }

    /// The entry of `trx`. Takes no lock.
    pub(super) fn get(&self, trx: TrxId) -> Option<Entry> {
        let words = self.find(trx)?;
        let outcome = words[OUTCOME].load(Ordering::SeqCst);
        let commit_lsn = words[COMMIT_LSN].load(Ordering::SeqCst);
        // With another id, the entry was reused: every snapshot sees the transaction.
        (words[ID].load(Ordering::SeqCst) == trx.0).then_some(Entry { outcome, commit_lsn })
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// If the fabric has no memory for another segment. Nothing was changed then.
    pub(super) fn insert(
        &self,
        trx: TrxId,
        entry: Entry,
        header: &[AtomicU64],
    ) -> Result<(), FabricError> {
        let _changing = self.changing.lock();
        let is_free = |words: &&[AtomicU64]| words[ID].load(Ordering::Relaxed) == 0;
        let free = |segment| Overflow::bucket(segment, trx).find(is_free);
        let found = self.segments().rev().find_map(free);
        let words = match found {
            Some(words) => words,
            None => {
                let segment = self.add_segment(header)?;
                free(segment).expect("a new segment is empty")
            }
        };
        words[COMMIT_LSN].store(entry.commit_lsn, Ordering::SeqCst);
        words[OUTCOME].store(entry.outcome, Ordering::SeqCst);
        words[ID].store(trx.0, Ordering::SeqCst);
        header[COUNT].fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn add_segment(&self, header: &[AtomicU64]) -> Result<&OwnedRegion, FabricError> {
        let number = self.segments().count();
        let words = (FIRST_BUCKETS << number) * BUCKET_WORDS;
        let region = self.fabric.register(&segment_name(number), words)?;
        let segment = self.segments[number].get_or_init(|| region);
        header[SEGMENTS].store(number as u64 + 1, Ordering::SeqCst);
        Ok(segment)
    }

    /// Changes an existing entry; returns its former outcome.
    ///
    /// # Panics
    /// If the entry does not exist: a transaction is in the table until it ends.
    pub(super) fn set(&self, trx: TrxId, entry: Entry) -> u64 {
        let _changing = self.changing.lock();
        let words = self.find(trx).expect("a transaction is in the table until it ends");
        words[COMMIT_LSN].store(entry.commit_lsn, Ordering::SeqCst);
        words[OUTCOME].swap(entry.outcome, Ordering::SeqCst)
    }

    /// The outcome of an existing entry, to be changed while the slot of `trx` is latched.
    ///
    /// # Panics
    /// As [`Overflow::set`].
    pub(super) fn outcome_word(&self, trx: TrxId) -> &AtomicU64 {
        &self.find(trx).expect("a transaction is in the table until it ends")[OUTCOME]
    }

    /// Removes an entry, if it exists; returns its outcome.
    pub(super) fn remove(&self, trx: TrxId, header: &[AtomicU64]) -> u64 {
        let _changing = self.changing.lock();
        let Some(words) = self.find(trx) else { return 0 };
        words[ID].store(0, Ordering::SeqCst);
        header[COUNT].fetch_sub(1, Ordering::SeqCst);
        words[OUTCOME].load(Ordering::SeqCst)
    }

    /// Removes all entries that every snapshot sees.
    pub(super) fn recycle(&self, horizon: Cts, header: &[AtomicU64]) {
        if self.recycled_to.swap(horizon.0, Ordering::Relaxed) == horizon.0 {
            return; // nothing more is settled than the last time
        }
        let _changing = self.changing.lock();
        for segment in self.segments() {
            for words in segment.words().chunks_exact(ENTRY_WORDS) {
                let outcome = words[OUTCOME].load(Ordering::Relaxed);
                let is_settled = Entry { outcome, commit_lsn: 0 }.is_settled(horizon);
                if words[ID].load(Ordering::Relaxed) != 0 && is_settled {
                    words[ID].store(0, Ordering::SeqCst);
                    header[COUNT].fetch_sub(1, Ordering::SeqCst);
                }
            }
        }
    }

    /// The transactions that are here.
    pub(super) fn ids(&self) -> Vec<TrxId> {
        let _changing = self.changing.lock();
        let words = self.segments().flat_map(|segment| segment.words().chunks_exact(ENTRY_WORDS));
        let ids = words.map(|words| TrxId(words[ID].load(Ordering::Relaxed)));
        ids.filter(|trx| *trx != TrxId::NONE).collect()
    }

    /// The memory of the segments in bytes.
    pub(super) fn size_bytes(&self) -> usize {
        self.segments().map(|segment| size_of_val(segment.words())).sum()
    }
}
