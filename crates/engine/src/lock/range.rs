//! The range locks of the indexes, and the requests that wait for them.
//!
//! A range covers every key between its bounds, including keys that do not exist yet, which
//! prevents phantoms. A range meets a key that lies in it and a range that overlaps it. Ranges are
//! few (only serializable transactions take them), so one list holds them.

use std::sync::Arc;

use firn_base::TrxId;

use super::occupancy::Occupancy;
use super::queue::{Blockers, Request, Standing};
use super::target::{Extent, KeyRange, LockMode, LockSpace};

/// A granted range lock, or a request that waits for one.
#[derive(Debug)]
pub(super) struct RangeLock {
    pub(super) space: LockSpace,
    pub(super) range: Arc<KeyRange>,
    pub(super) request: Request,
}

/// The range locks, unordered.
#[derive(Debug)]
pub(super) struct Ranges {
    locks: Vec<RangeLock>,
    waiting: usize,
    occupancy: Arc<Occupancy>,
}

impl Ranges {
    pub(super) fn new(occupancy: Arc<Occupancy>) -> Ranges {
        Ranges { locks: Vec::new(), waiting: 0, occupancy }
    }

    pub(super) fn locks(&self) -> &[RangeLock] {
        &self.locks
    }

    /// The number of waiting ranges.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    pub(super) fn has_waiters(&self) -> bool {
        self.waiting > 0
    }

    /// The locks, granted and wanted, that cover `key`.
    pub(super) fn at(&self, space: LockSpace, key: &[u8]) -> impl Iterator<Item = &RangeLock> {
        self.locks.iter().filter(move |lock| lock.space == space && lock.range.contains(key))
    }

    /// The locks, granted and wanted, that overlap `range`.
    fn over(&self, space: LockSpace, range: &KeyRange) -> impl Iterator<Item = &RangeLock> {
        self.locks.iter().filter(move |lock| lock.space == space && lock.range.overlaps(range))
    }

    /// Adds the owners of ranges that a request for `key` waits for.
    pub(super) fn add_blockers_at(
        &self,
        space: LockSpace,
        key: &[u8],
        request: &Request,
        blockers: &mut Blockers,
    ) {
        let earlier = self.at(space, key).filter(|lock| lock.request.blocks(request));
        blockers.extend(earlier.map(|lock| lock.request.as_blocker()));
    }

    /// Adds the owners of ranges that a request for `range` waits for.
    pub(super) fn add_blockers_over(
        &self,
        space: LockSpace,
        range: &KeyRange,
        request: &Request,
        blockers: &mut Blockers,
    ) {
        let earlier = self.over(space, range).filter(|lock| lock.request.blocks(request));
        blockers.extend(earlier.map(|lock| lock.request.as_blocker()));
    }

    /// The strongest range that `owner` has over `key`.
    pub(super) fn covering(&self, space: LockSpace, key: &[u8], owner: TrxId) -> Option<LockMode> {
        let own = self.at(space, key).map(|lock| &lock.request);
        own.filter(|own| own.owner == owner && own.is_granted()).map(|own| own.mode).max()
    }

    /// Whether `owner` has a range that overlaps `range`, and the strongest that covers all of it.
    pub(super) fn possession(
        &self,
        space: LockSpace,
        range: &KeyRange,
        owner: TrxId,
    ) -> (bool, Option<LockMode>) {
        let mut possession = (false, None);
        for lock in self.over(space, range) {
            if lock.request.owner == owner && lock.request.is_granted() {
                possession.0 = true;
                if lock.range.covers(range) {
                    possession.1 = possession.1.max(Some(lock.request.mode));
                }
            }
        }
        possession
    }

    /// The waiting ranges that meet `extent`, in the order of their re-examination.
    pub(super) fn waiting_at(
        &self,
        space: LockSpace,
        extent: &Extent,
    ) -> Vec<(Arc<KeyRange>, Request)> {
        let meets = |lock: &&RangeLock| {
            lock.space == space
                && !lock.request.is_granted()
                && match extent {
                    Extent::Key(key) => lock.range.contains(key),
                    Extent::Range(range) => lock.range.overlaps(range),
                }
        };
        let waiting = self.locks.iter().filter(meets);
        let mut waiting: Vec<_> =
            waiting.map(|lock| (Arc::clone(&lock.range), lock.request)).collect();
        waiting.sort_by_key(|(_, request)| request.standing);
        waiting
    }

    /// Adds a request. A granted one is merged with what its owner has on exactly this range.
    pub(super) fn insert(&mut self, space: LockSpace, range: Arc<KeyRange>, request: Request) {
        if request.is_granted() {
            let own = self.position(|lock| lock.is_granted(space, &range, request.owner));
            if let Some(position) = own {
                let granted = &mut self.locks[position].request;
                granted.mode = granted.mode.max(request.mode);
                return;
            }
        } else {
            self.waiting += 1;
        }
        self.occupancy.enter(space);
        self.locks.push(RangeLock { space, range, request });
    }

    /// Removes what `owner` has been granted on exactly `range`. False if it has nothing.
    pub(super) fn remove_granted(
        &mut self,
        space: LockSpace,
        range: &KeyRange,
        owner: TrxId,
    ) -> bool {
        let position = self.position(|lock| lock.is_granted(space, range, owner));
        position.map(|position| self.remove(position)).is_some()
    }

    /// Removes the waiting request `sequence`; returns its former standing.
    pub(super) fn remove_waiting(&mut self, sequence: u64) -> Option<Standing> {
        let position = self.position(|lock| lock.request.is_wait(sequence))?;
        Some(self.remove(position).request.standing)
    }

    pub(super) fn grant(&mut self, request: &Request) {
        let Some(position) = self.position(|lock| lock.request == *request) else { return };
        let lock = self.remove(position);
        let granted = Request { standing: Standing::Granted, ..lock.request };
        self.insert(lock.space, lock.range, granted);
    }

    fn position(&self, is_it: impl FnMut(&RangeLock) -> bool) -> Option<usize> {
        self.locks.iter().position(is_it)
    }

    fn remove(&mut self, position: usize) -> RangeLock {
        let lock = self.locks.swap_remove(position);
        self.occupancy.leave(lock.space);
        self.waiting -= usize::from(!lock.request.is_granted());
        lock
    }
}

impl RangeLock {
    fn is_granted(&self, space: LockSpace, range: &KeyRange, owner: TrxId) -> bool {
        self.request.owner == owner
            && self.request.is_granted()
            && self.space == space
            && *self.range == *range
    }
}
