//! Timestamps of a source that nodes share, with gaps. Each commit that is being written has a
//! *place* with a bound: its own timestamp is greater than the bound, so `max_committed` may
//! advance up to it.
//!
//! ```text
//!   place 0   14      reserved 15, slot not filled yet
//!   place 1   11      asks the source, which answers with something above 11
//!   place 2   free
//!   last      17      17 is published already
//!                     max_committed = min(17, 14, 11) = 11
//! ```
//!
//! `max_committed` never passes a timestamp whose slot is not filled, because it advances to the
//! least of `last`, which is read first, and of all places. If the scan of the places misses a
//! commit, that commit has taken its place later. So it asked the source after `last` was handed
//! out, and gets a higher timestamp. If the scan finds the commit, its place is below its
//! timestamp: the value of `max_committed` at its arrival until the timestamp is known, and the
//! timestamp minus one afterwards.
//!
//! `max_committed` reaches `last` when no commit is in progress: the last commit to leave its place
//! finds all places free. Each commit leaves first and scans then, by sequentially consistent
//! operations.
//!
//! While a commit asks the source, which may take a round trip, `max_committed` stands still. So
//! everything that waits for it, or for a free place, waits on an event.

use std::sync::Arc;

use crossbeam_utils::CachePadded;
use firn_api::{TimestampError, TimestampSource};
use firn_base::Cts;

use super::{CommitTicket, Counters};
use crate::free_list::FreeList;
use crate::sync::{AtomicU64, AtomicUsize, Event, Ordering};

/// The most commits that may be written at once.
const PLACES: usize = if cfg!(feature = "shuttle") { 3 } else { 1024 };
const FREE: u64 = u64::MAX;

pub(super) struct Sparse {
    source: Arc<dyn TimestampSource>,
    places: Box<[CachePadded<AtomicU64>]>,
    free: FreeList<usize>,
    /// Places at and above this index were never used.
    used: AtomicUsize,
    /// Notified when `max_committed` may have advanced and a place may be free.
    moved: Arc<Event>,
}

impl Sparse {
    pub(super) fn new(source: Arc<dyn TimestampSource>) -> Sparse {
        let places = (0..PLACES).map(|_| CachePadded::new(AtomicU64::new(FREE)));
        let (free, used) = (FreeList::new(), AtomicUsize::new(0));
        Sparse { source, places: places.collect(), free, used, moved: Arc::default() }
    }

    pub(super) fn source(&self) -> &dyn TimestampSource {
        &*self.source
    }

    fn take_place(&self) -> usize {
        let next = |used: usize| (used < PLACES).then_some(used + 1);
        let unused = || self.used.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next).ok();
        let mut taken = None;
        self.moved.wait_until(None, || {
            taken = self.free.take().or_else(unused);
            taken.is_some()
        });
        taken.expect("the wait has no deadline")
    }

    pub(super) fn moved(&self) -> &Arc<Event> {
        &self.moved
    }

    fn leave(&self, counters: &Counters, place: usize) {
        self.places[place].store(FREE, Ordering::SeqCst);
        self.free.put(place);
        self.advance(counters);
    }

    fn advance(&self, counters: &Counters) {
        let last = counters.last().load(Ordering::SeqCst);
        let used = self.used.load(Ordering::SeqCst);
        let places = self.places[..used].iter().map(|place| place.load(Ordering::SeqCst));
        let reached = places.min().unwrap_or(FREE).min(last);
        counters.max_committed().fetch_max(reached, Ordering::SeqCst);
        self.moved.notify_all();
    }

    pub(super) fn reserve(&self, counters: &Counters) -> Result<CommitTicket, TimestampError> {
        let place = self.take_place();
        let before = counters.max_committed().load(Ordering::SeqCst);
        self.places[place].store(before, Ordering::SeqCst);
        let cts = match self.source.next() {
            Ok(cts) => cts,
            Err(error) => {
                self.leave(counters, place);
                return Err(error);
            }
        };
        assert!(cts.0 > before, "timestamp {cts} is not above {before}, which is visible already");
        Ok(self.enter(counters, place, cts))
    }

    pub(super) fn adopt(
        &self,
        counters: &Counters,
        cts: Cts,
    ) -> Result<CommitTicket, TimestampError> {
        self.source.observe(cts)?;
        let place = self.take_place();
        Ok(self.enter(counters, place, cts))
    }

    fn enter(&self, counters: &Counters, place: usize, cts: Cts) -> CommitTicket {
        self.places[place].store(cts.0 - 1, Ordering::SeqCst);
        counters.last().fetch_max(cts.0, Ordering::SeqCst);
        CommitTicket { cts, place }
    }

    pub(super) fn publish(&self, counters: &Counters, place: usize) {
        self.leave(counters, place);
    }

    /// Ensures that no later commit gets a timestamp up to `cts`. `max_committed` reaches `cts`
    /// when the commits that have one are published.
    pub(super) fn close_up_to(&self, counters: &Counters, cts: Cts) -> Result<(), TimestampError> {
        self.source.observe(cts)?;
        counters.last().fetch_max(cts.0, Ordering::SeqCst);
        self.advance(counters);
        Ok(())
    }
}
