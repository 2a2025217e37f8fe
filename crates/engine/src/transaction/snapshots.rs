//! The registry of open snapshots. From it the engine knows which versions no reader needs any
//! more.
//!
//! Each open snapshot has a slot on a separate cache line; opening one takes two stores and two
//! loads. The oldest snapshot bounds what may be purged and which transaction slots may be
//! recycled:
//!
//! ```text
//!   horizon ≤ every registered snapshot ≤ max_committed
//! ```
//!
//! A scan could miss a snapshot that is being opened. So the scanner *announces* the horizon and
//! then scans a second time, and the opener reads the announcement after it has registered. Either
//! the scan sees the registration, or the opener sees the announcement and starts again with a
//! newer timestamp. Both sides use sequentially consistent operations for this.
//!
//! The registry lies in a fabric region. Peers have separate places there, which they take by
//! compare and swap and fill by the same protocol ([`super::remote`]):
//!
//! ```text
//!   word 0  announced · 8  peers so far │ 16  horizon │ 32…  64 places for peers │ …  sessions
//! ```
//!
//! A place holds the snapshot plus one, or zero if it is free. With the highest bit, a peer has
//! taken it for a snapshot that may have any age; the other bits are the peer's token.

use firn_base::Cts;
use firn_fabric::OwnedRegion;

use crate::error::{SnapshotTooOld, TooManySnapshots};
use crate::free_list::FreeList;
use crate::sync::{AtomicU64, AtomicUsize, Ordering};

/// The region of the registry.
pub(super) const REGION: &str = "snapshots";
/// Words between two places, so that each is on a separate cache line.
const STRIDE_WORDS: usize = 16;
pub(super) const ANNOUNCED_WORD: usize = 0;
/// Counts the peers, for their tokens.
pub(super) const PEERS_WORD: usize = 8;
pub(super) const HORIZON_WORD: usize = STRIDE_WORDS;
/// The most snapshots that all peers together can have open.
pub(super) const PEER_PLACES: usize = if cfg!(feature = "shuttle") { 2 } else { 64 };
/// A place without a snapshot.
pub(super) const FREE: u64 = 0;
/// In a place: its snapshot is about to be registered and may have any age.
pub(super) const UNSETTLED: u64 = 1 << 63;

/// The word of a peer's place.
pub(super) const fn peer_word(place: usize) -> usize {
    (2 + place) * STRIDE_WORDS
}

/// The snapshot in a place; the oldest possible one if it is about to be registered.
const fn snapshot_in(place: u64) -> Option<u64> {
    match place {
        FREE => None,
        place if place & UNSETTLED != 0 => Some(0),
        place => Some(place - 1),
    }
}

/// The word for a snapshot in its place.
pub(super) const fn registered(snapshot: Cts) -> u64 {
    snapshot.0 + 1
}

#[derive(Debug)]
pub struct Snapshots {
    region: OwnedRegion,
    limit: usize,
    free: FreeList<usize>,
    /// Slots at and above this index were never used.
    used: AtomicUsize,
    /// Open snapshots below this are given up: they hold nothing any more. Only on a replica.
    given_up: AtomicU64,
}

/// A place for one snapshot at a time. A session keeps one.
#[derive(Debug)]
pub struct SnapshotSlot {
    index: usize,
}

impl Snapshots {
    /// The length of the region for a registry with `limit` slots.
    #[must_use]
    pub const fn region_words(limit: usize) -> usize {
        peer_word(PEER_PLACES + limit)
    }

    /// A registry in `region`. No snapshot older than `horizon` will be requested.
    #[must_use]
    pub fn new(region: OwnedRegion, horizon: Cts) -> Snapshots {
        let limit = (region.words().len() / STRIDE_WORDS).saturating_sub(2 + PEER_PLACES);
        region.words()[ANNOUNCED_WORD].store(horizon.0, Ordering::SeqCst);
        region.words()[HORIZON_WORD].store(horizon.0, Ordering::SeqCst);
        Snapshots {
            region,
            limit,
            free: FreeList::new(),
            used: AtomicUsize::new(0),
            given_up: AtomicU64::new(0),
        }
    }

    /// The memory of a registry with `limit` slots, in bytes.
    pub(crate) fn size_bytes(limit: usize) -> usize {
        Snapshots::region_words(limit) * size_of::<u64>() + limit * size_of::<usize>()
    }

    #[inline]
    fn place(&self, slot: &SnapshotSlot) -> &AtomicU64 {
        &self.region.words()[peer_word(PEER_PLACES + slot.index)]
    }

    fn announced(&self) -> &AtomicU64 {
        &self.region.words()[ANNOUNCED_WORD]
    }

    fn horizon_word(&self) -> &AtomicU64 {
        &self.region.words()[HORIZON_WORD]
    }

    /// The places that may hold a snapshot, those of peers first.
    fn places(&self) -> impl Iterator<Item = u64> {
        let used = self.used.load(Ordering::SeqCst);
        let places = self.region.words()[peer_word(0)..].iter().step_by(STRIDE_WORDS);
        places.take(PEER_PLACES + used).map(|place| place.load(Ordering::SeqCst))
    }

    /// Takes a slot. Return it with [`Snapshots::give_back`].
    ///
    /// # Errors
    /// [`TooManySnapshots`].
    pub fn take(&self) -> Result<SnapshotSlot, TooManySnapshots> {
        let index = self.free.take().or_else(|| self.take_unused());
        index.map(|index| SnapshotSlot { index }).ok_or(TooManySnapshots { limit: self.limit })
    }

    #[cold]
    fn take_unused(&self) -> Option<usize> {
        let next = |used: usize| (used < self.limit).then_some(used + 1);
        self.used.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next).ok()
    }

    /// Closes the slot's snapshot, if one is open, and frees the slot.
    pub fn give_back(&self, slot: SnapshotSlot) {
        self.close(&slot);
        self.free.put(slot.index);
    }

    /// Opens a snapshot of everything committed so far. `newest` returns the snapshot that a reader
    /// would take now; it never goes back.
    #[inline]
    pub fn open(&self, slot: &SnapshotSlot, newest: impl Fn() -> Cts) -> Cts {
        loop {
            let snapshot = newest();
            self.place(slot).store(registered(snapshot), Ordering::SeqCst);
            if self.announced().load(Ordering::SeqCst) <= snapshot.0 {
                return snapshot;
            }
        }
    }

    /// Opens a snapshot that another node has chosen.
    ///
    /// # Errors
    /// [`SnapshotTooOld`] if versions that it sees may have been purged. No snapshot is open then.
    pub fn open_at(&self, slot: &SnapshotSlot, snapshot: Cts) -> Result<(), SnapshotTooOld> {
        self.place(slot).store(registered(snapshot), Ordering::SeqCst);
        let announced = Cts(self.announced().load(Ordering::SeqCst));
        if announced <= snapshot {
            return Ok(());
        }
        self.close(slot);
        Err(SnapshotTooOld { snapshot, oldest: announced })
    }

    /// Registers an older snapshot than the newest, while another open snapshot keeps its versions
    /// alive.
    ///
    /// # Panics
    /// If the snapshot is already older than the horizon.
    pub fn share(&self, slot: &SnapshotSlot, snapshot: Cts) {
        self.place(slot).store(registered(snapshot), Ordering::SeqCst);
        assert!(self.horizon() <= snapshot, "a shared snapshot is kept alive by its owner");
    }

    pub fn close(&self, slot: &SnapshotSlot) {
        self.place(slot).store(FREE, Ordering::SeqCst);
    }

    fn oldest(&self, limit: u64) -> u64 {
        let given_up = self.given_up.load(Ordering::SeqCst);
        let open = self.places().filter_map(snapshot_in).filter(|snapshot| *snapshot >= given_up);
        open.min().unwrap_or(limit).min(limit)
    }

    /// Advances the horizon, to `limit` at most. Every open snapshot and every later one is at or
    /// above the horizon, because a new snapshot is not older than `limit`. Called by one
    /// background task.
    pub fn advance_horizon(&self, limit: Cts) -> Cts {
        let candidate = self.oldest(limit.0);
        self.announced().fetch_max(candidate, Ordering::SeqCst);
        let horizon = self.oldest(candidate);
        self.horizon_word().fetch_max(horizon, Ordering::SeqCst);
        self.horizon()
    }

    /// From now on, snapshots below `cts` hold nothing. What they see may be purged, so a reader
    /// looks at [`Snapshots::given_up`] after it has read. Called before the horizon advances.
    pub fn give_up_below(&self, cts: Cts) {
        self.given_up.fetch_max(cts.0, Ordering::SeqCst);
    }

    /// Snapshots below this may see too little.
    #[must_use]
    pub fn given_up(&self) -> Cts {
        Cts(self.given_up.load(Ordering::SeqCst))
    }

    /// The horizon that was last computed.
    #[must_use]
    pub fn horizon(&self) -> Cts {
        Cts(self.horizon_word().load(Ordering::SeqCst))
    }

    /// The number of open snapshots, peers' included. Reads every slot.
    #[must_use]
    pub fn open_count(&self) -> usize {
        self.places().filter(|place| *place != FREE).count()
    }

    /// Whether a peer has a place.
    #[must_use]
    pub fn have_peers(&self) -> bool {
        self.places().take(PEER_PLACES).any(|place| place != FREE)
    }

    /// Frees the place of a dead peer. Versions that only this peer needed may be purged.
    pub fn forget_peer(&self, place: usize) {
        self.region.words()[peer_word(place)].store(FREE, Ordering::SeqCst);
    }
}

#[cfg(all(test, feature = "shuttle"))]
mod interleavings;
#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
