//! The log buffer: a ring of words that many threads fill at once.
//!
//! A thread reserves its place with one atomic add, copies its group, and stores the group's first
//! word (its length) last:
//!
//! ```text
//!            consumed                         reserved
//!               │ published │ hole │ published │
//!   … zeros … ──┴───────────┴──────┴───────────┴── zeros …
//!               ▲ the log store takes groups up to the first hole; the ring is zeroed behind it
//! ```
//!
//! The store finds holes by reading the ring, so there is no list of gaps and no lock. The ring
//! consists of atomic words: copying a group of a few hundred bytes word by word costs as much as a
//! `memcpy`, and no code here is unsafe.

use std::time::Duration;

use crossbeam_utils::CachePadded;
use firn_base::Lsn;
#[cfg(not(feature = "shuttle"))]
use firn_format::redo::group::MAX_GROUP_BYTES;

use crate::sync::{AtomicU64, Event, Ordering};

const WORD_BYTES: u64 = 8;
#[cfg(not(feature = "shuttle"))]
const MIN_CAPACITY_BYTES: usize = 4 * MAX_GROUP_BYTES;
/// Shuttle creates all words again for every order of steps.
#[cfg(feature = "shuttle")]
const MIN_CAPACITY_BYTES: usize = 256;

#[derive(Debug)]
pub struct LogBuffer {
    ring: Box<[AtomicU64]>,
    /// Bytes that can still be admitted, beyond what is reserved.
    admitted_bytes: CachePadded<AtomicU64>,
    reserved: CachePadded<AtomicU64>,
    consumed: CachePadded<AtomicU64>,
    room: Event,
}

/// The right to append one group without waiting. Dropping it returns the room.
#[derive(Debug)]
pub struct Admission<'a> {
    buffer: &'a LogBuffer,
    bytes: u64,
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        self.buffer.admitted_bytes.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

/// The position of a group in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// Its first byte.
    pub start: Lsn,
    /// One past its last byte.
    pub end: Lsn,
}

impl LogBuffer {
    /// An empty buffer whose next group goes to `next`.
    ///
    /// # Panics
    /// If the capacity is not a power of two or is below four of the largest groups.
    #[must_use]
    pub fn new(next: Lsn, capacity_bytes: usize) -> LogBuffer {
        assert!(capacity_bytes.is_power_of_two(), "the log buffer's size is a power of two");
        assert!(capacity_bytes >= MIN_CAPACITY_BYTES, "the log buffer holds several groups");
        let words = capacity_bytes / WORD_BYTES as usize;
        LogBuffer {
            ring: (0..words).map(|_| AtomicU64::new(0)).collect(),
            admitted_bytes: CachePadded::new(AtomicU64::new(0)),
            reserved: CachePadded::new(AtomicU64::new(next.0)),
            consumed: CachePadded::new(AtomicU64::new(next.0)),
            room: Event::new(),
        }
    }

    fn capacity_bytes(&self) -> u64 {
        self.ring.len() as u64 * WORD_BYTES
    }

    fn slot(&self, lsn: u64) -> usize {
        (lsn / WORD_BYTES) as usize & (self.ring.len() - 1)
    }

    /// The ring's words from a position in the log on.
    fn places(&self, lsn: u64, words: usize) -> impl Iterator<Item = &AtomicU64> {
        let first = self.slot(lsn);
        let before_end = words.min(self.ring.len() - first);
        self.ring[first..first + before_end].iter().chain(&self.ring[..words - before_end])
    }

    /// The end of the reserved part, one past every group that was appended so far.
    pub fn reserved_lsn(&self) -> Lsn {
        Lsn(self.reserved.load(Ordering::Acquire))
    }

    /// Bytes that the store has not taken yet.
    pub fn used_bytes(&self) -> u64 {
        let consumed = self.consumed.load(Ordering::Acquire);
        self.reserved.load(Ordering::Acquire).saturating_sub(consumed)
    }

    /// Admits a group of at most `bytes` if there is room now (rule 1).
    pub fn try_admit(&self, bytes: usize) -> Option<Admission<'_>> {
        let bytes = bytes as u64;
        let admitted = self.admitted_bytes.fetch_add(bytes, Ordering::AcqRel) + bytes;
        let admission = Admission { buffer: self, bytes };
        (self.used_bytes() + admitted <= self.capacity_bytes()).then_some(admission)
    }

    /// Blocks until the store has freed some room or `timeout` has passed.
    pub fn wait_for_room(&self, bytes: usize, timeout: Duration) {
        let ticket = self.room.listen();
        if self.try_admit(bytes).is_none() {
            self.room.wait(ticket, Some(timeout));
        }
    }

    /// Appends a finished group. Does not block.
    ///
    /// # Panics
    /// If the group is longer than the admission.
    pub fn append(&self, admission: Admission<'_>, group: &[u8]) -> Placed {
        let length = group.len() as u64;
        assert!(length <= admission.bytes, "a group is no longer than what was admitted for it");
        let start = self.reserved.fetch_add(length, Ordering::AcqRel);
        drop(admission);
        let (words, rest) = group.as_chunks::<{ WORD_BYTES as usize }>();
        assert!(rest.is_empty() && !words.is_empty(), "a group is padded to whole words");
        let places = self.places(start, words.len());
        for (place, word) in places.zip(words).skip(1) {
            place.store(u64::from_le_bytes(*word), Ordering::Relaxed);
        }
        self.ring[self.slot(start)].store(u64::from_le_bytes(words[0]), Ordering::Release);
        Placed { start: Lsn(start), end: Lsn(start + length) }
    }

    /// Takes published groups, in order and up to the first hole, until `into` has about
    /// `limit_bytes`. Returns the start of the first group. Only the log store calls it (rule 3).
    pub fn take(&self, into: &mut Vec<u8>, limit_bytes: usize) -> Lsn {
        let first = self.consumed.load(Ordering::Relaxed);
        let mut position = first;
        while into.len() < limit_bytes {
            let header = self.ring[self.slot(position)].load(Ordering::Acquire);
            if header == 0 {
                break;
            }
            let length = header & u64::from(u32::MAX);
            let taken = into.len();
            into.resize(taken + length as usize, 0);
            let (words, _) = into[taken..].as_chunks_mut::<{ WORD_BYTES as usize }>();
            let places = self.places(position, words.len());
            for (word, place) in words.iter_mut().zip(places) {
                *word = place.load(Ordering::Relaxed).to_le_bytes();
                place.store(0, Ordering::Relaxed);
            }
            position += length;
        }
        if position != first {
            self.consumed.store(position, Ordering::Release);
            self.room.notify_all();
        }
        Lsn(first)
    }
}

#[cfg(all(test, feature = "shuttle"))]
mod interleavings;
#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
