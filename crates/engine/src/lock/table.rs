//! The decisions: which requests are granted, and which owners wait for which. There are no
//! threads, events or clocks here.
//!
//! A table is a view for one operation: either the one shard that holds a key, with the range list
//! to read, or all shards with the range list to change (README, rules 5 and 6):
//!
//! ```text
//!   narrow   [shard 3]               + &Ranges        a key, while no range is waiting
//!   wide     [shard 0 .. shard 15]   + &mut Ranges    a range; or a key, while a range is waiting
//! ```
//!
//! An operation that removes a request, or inserts one before waiters, returns a [`Disturbance`].
//! The caller then calls [`LockTable::reexamine`], which updates the waiters.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::DerefMut;
use std::sync::Arc;

use firn_base::TrxId;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::occupancy::Occupancy;
use super::queue::{Blockers, Queue, Rank, Request, Standing};
use super::range::Ranges;
use super::target::{Extent, KeyRange, LockMode, LockSpace, shard_hash};

/// The queues of the keys that hash to one shard.
#[derive(Debug)]
pub(super) struct Records {
    spaces: FxHashMap<LockSpace, BTreeMap<Arc<[u8]>, Queue>>,
    occupancy: Arc<Occupancy>,
}

impl Records {
    pub(super) fn new(occupancy: Arc<Occupancy>) -> Records {
        Records { spaces: FxHashMap::default(), occupancy }
    }

    fn queue(&self, space: LockSpace, key: &[u8]) -> Option<&Queue> {
        self.spaces.get(&space)?.get(key)
    }

    fn queue_mut(&mut self, space: LockSpace, key: &[u8]) -> Option<&mut Queue> {
        self.spaces.get_mut(&space)?.get_mut(key)
    }

    /// Adds a request; returns the shared copy of the key.
    fn insert(&mut self, space: LockSpace, key: &[u8], request: Request) -> Arc<[u8]> {
        let queues = self.spaces.entry(space).or_insert_with(|| {
            self.occupancy.enter(space);
            BTreeMap::new()
        });
        if let Some((key, _)) = queues.get_key_value(key) {
            let key = Arc::clone(key);
            if let Entry::Occupied(mut queue) = queues.entry(Arc::clone(&key)) {
                queue.get_mut().insert(request);
            }
            return key;
        }
        let key = Arc::<[u8]>::from(key);
        queues.entry(Arc::clone(&key)).or_default().insert(request);
        key
    }

    /// Removes a queue that has become empty.
    fn forget_if_empty(&mut self, space: LockSpace, key: &[u8]) {
        let Some(queues) = self.spaces.get_mut(&space) else { return };
        if queues.get(key).is_some_and(Queue::is_empty) {
            queues.remove(key);
        }
        if queues.is_empty() {
            self.spaces.remove(&space);
            self.occupancy.leave(space);
        }
    }

    /// The queues of the keys in `range`.
    fn queues_in<'a>(
        &'a self,
        space: LockSpace,
        range: &'a KeyRange,
    ) -> impl Iterator<Item = (&'a Arc<[u8]>, &'a Queue)> {
        let bounds = (range.low(), range.high());
        self.spaces.get(&space).into_iter().flat_map(move |queues| queues.range::<[u8], _>(bounds))
    }

    /// Every queue, in no order of spaces.
    pub(super) fn queues(&self) -> impl Iterator<Item = (LockSpace, &Arc<[u8]>, &Queue)> {
        let spaces = self.spaces.iter();
        spaces
            .flat_map(|(space, queues)| queues.iter().map(move |(key, queue)| (*space, key, queue)))
    }
}

/// The part of a space that an operation is about.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wanted<'a> {
    Key(&'a [u8]),
    /// The keys of a range, which is not empty.
    Range(&'a Arc<KeyRange>),
}

impl Wanted<'_> {
    /// The same part, owned.
    pub(super) fn to_extent(self) -> Extent {
        match self {
            Wanted::Key(key) => Extent::Key(Arc::from(key)),
            Wanted::Range(range) => Extent::Range(Arc::clone(range)),
        }
    }
}

impl Extent {
    /// The same part, borrowed.
    pub(super) fn as_wanted(&self) -> Wanted<'_> {
        match self {
            Extent::Key(key) => Wanted::Key(key),
            Extent::Range(range) => Wanted::Range(range),
        }
    }
}

/// The range list, as far as the view may use it.
#[derive(Debug)]
pub(super) enum RangeAccess<'a> {
    None,
    /// Other narrow views may be reading it too.
    Shared(&'a Ranges),
    /// This view has all shards.
    Exclusive(&'a mut Ranges),
}

impl RangeAccess<'_> {
    /// The list, if there are ranges.
    fn get(&self) -> Option<&Ranges> {
        match self {
            RangeAccess::None => None,
            RangeAccess::Shared(ranges) => Some(ranges),
            RangeAccess::Exclusive(ranges) => Some(ranges),
        }
    }

    fn get_mut(&mut self) -> &mut Ranges {
        match self {
            RangeAccess::None | RangeAccess::Shared(_) => {
                unreachable!("ranges change in wide views only (rule 6)")
            }
            RangeAccess::Exclusive(ranges) => ranges,
        }
    }

    fn has_waiters(&self) -> bool {
        self.get().is_some_and(Ranges::has_waiters)
    }
}

/// A request was removed, or inserted before others: the waiters behind `after` must be
/// re-examined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(super) struct Disturbance {
    after: Standing,
}

/// The result of a request that must not be queued.
#[derive(Debug)]
pub(super) enum Attempt {
    /// The owner already had the lock.
    Held,
    Granted {
        extent: Extent,
        /// Waiters whose edges this changes.
        disturbance: Option<Disturbance>,
    },
    Blocked(Blocked),
}

/// Why a request cannot be granted now.
#[derive(Debug)]
pub(super) struct Blocked {
    newcomer: bool,
    /// The owners that it would wait for; at least one.
    pub(super) blockers: Blockers,
}

/// The answer to a request.
#[derive(Debug)]
pub(super) enum Decision {
    /// The owner already had the lock.
    Held,
    Granted {
        extent: Extent,
        /// Waiters whose edges this changes.
        disturbance: Option<Disturbance>,
    },
    Queued {
        /// The key or range that will be locked.
        extent: Extent,
        /// The request's position, which also identifies the wait.
        rank: Rank,
        /// The owners that it waits for.
        blockers: Blockers,
        /// Waiters whose edges this changes.
        disturbance: Option<Disturbance>,
    },
}

/// The new states of waiting requests.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// These waits have been granted.
    pub(super) granted: SmallVec<[(TrxId, u64); 2]>,
    /// Waits that continue, each with its blockers.
    pub(super) waiting: SmallVec<[(TrxId, u64, Blockers); 2]>,
}

/// Whether a wait, identified by its owner and its sequence, is still undecided. A decided request
/// is about to be withdrawn and must not be granted.
pub(super) type IsUndecided<'a> = &'a dyn Fn(TrxId, u64) -> bool;

/// The decisions of one operation. `G` is any guard of a shard, such as a mutex guard.
#[derive(Debug)]
pub(super) struct LockTable<'a, G> {
    shards: &'a mut [G],
    ranges: RangeAccess<'a>,
}

/// What an owner already has, as far as it concerns a new request.
struct Possession {
    /// Whether the owner has any lock here, of whatever strength: then the request is no newcomer
    /// (rule 3).
    any: bool,
    /// Whether the owner has everything that it requests (rule 4).
    enough: bool,
}

impl<'a, G: DerefMut<Target = Records>> LockTable<'a, G> {
    /// A view of one shard or of all.
    pub(super) fn new(shards: &'a mut [G], ranges: RangeAccess<'a>) -> LockTable<'a, G> {
        LockTable { shards, ranges }
    }

    fn shard(&self, key: &[u8]) -> &Records {
        &self.shards[shard_hash(key) % self.shards.len()]
    }

    fn shard_mut(&mut self, key: &[u8]) -> &mut Records {
        let position = shard_hash(key) % self.shards.len();
        &mut self.shards[position]
    }

    /// Grants `mode` to `owner`, or queues the request as the wait `next_sequence()`.
    pub(super) fn request(
        &mut self,
        space: LockSpace,
        wanted: Wanted<'_>,
        owner: TrxId,
        mode: LockMode,
        next_sequence: impl FnOnce() -> u64,
    ) -> Decision {
        let blocked = match self.attempt(space, wanted, owner, mode) {
            Attempt::Held => return Decision::Held,
            Attempt::Granted { extent, disturbance } => {
                return Decision::Granted { extent, disturbance };
            }
            Attempt::Blocked(blocked) => blocked,
        };
        let Blocked { newcomer, blockers } = blocked;
        let rank = Rank { newcomer, sequence: next_sequence() };
        let standing = Standing::Waiting(rank);
        let extent = self.insert(space, wanted, Request { owner, mode, standing });
        let disturbance = (!newcomer).then_some(Disturbance { after: standing });
        Decision::Queued { extent, rank, blockers, disturbance }
    }

    /// Grants `mode` to `owner` if that is possible now.
    pub(super) fn attempt(
        &mut self,
        space: LockSpace,
        wanted: Wanted<'_>,
        owner: TrxId,
        mode: LockMode,
    ) -> Attempt {
        let possession = self.possession(space, wanted, owner, mode);
        if possession.enough {
            return Attempt::Held;
        }
        let newcomer = !possession.any;
        let mut request =
            Request { owner, mode, standing: Standing::Waiting(Rank::last(newcomer)) };
        let blockers = self.blockers(space, wanted, &request);
        if !blockers.is_empty() {
            return Attempt::Blocked(Blocked { newcomer, blockers });
        }
        request.standing = Standing::Granted;
        let extent = self.insert(space, wanted, request);
        // A newcomer that is granted at once conflicts with no waiter.
        let disturbance = (!newcomer).then_some(Disturbance { after: Standing::Granted });
        Attempt::Granted { extent, disturbance }
    }

    /// Whether `owner` must request `mode` before it acts on `key` under an implicit lock: another
    /// owner has or wants a conflicting lock, and `owner` has no record lock that excludes it (rule
    /// 7).
    pub(super) fn has_conflict(
        &self,
        space: LockSpace,
        key: &[u8],
        owner: TrxId,
        mode: LockMode,
    ) -> bool {
        let queue = self.shard(key).queue(space, key);
        if queue.and_then(|queue| queue.granted_to(owner)) >= Some(mode) {
            return false;
        }
        let mut requests = queue.into_iter().flat_map(Queue::requests);
        requests.any(|request| request.opposes(owner, mode))
            || self.ranges.get().is_some_and(|ranges| {
                ranges.at(space, key).any(|lock| lock.request.opposes(owner, mode))
            })
    }

    /// Records that `holder` has `key` exclusively, as the record's transaction id says (rule 9).
    pub(super) fn make_explicit(
        &mut self,
        space: LockSpace,
        key: &[u8],
        holder: TrxId,
    ) -> (Arc<[u8]>, Option<Disturbance>) {
        let request =
            Request { owner: holder, mode: LockMode::Exclusive, standing: Standing::Granted };
        let key = self.shard_mut(key).insert(space, key, request);
        let disturbance = Disturbance { after: Standing::Granted };
        let has_waiters = self.shard(&key).queue(space, &key).is_some_and(Queue::has_waiters)
            || self.ranges.has_waiters();
        (key, has_waiters.then_some(disturbance))
    }

    /// The mode that `owner` has been granted on `key` itself.
    pub(super) fn granted(&self, space: LockSpace, key: &[u8], owner: TrxId) -> Option<LockMode> {
        self.shard(key).queue(space, key)?.granted_to(owner)
    }

    /// Removes what `owner` has been granted on exactly this extent.
    pub(super) fn release(
        &mut self,
        space: LockSpace,
        extent: &Extent,
        owner: TrxId,
    ) -> Option<Disturbance> {
        let has_waiters = match extent {
            Extent::Key(key) => {
                let records = self.shard_mut(key);
                let queue = records.queue_mut(space, key)?;
                if !queue.remove_granted(owner) {
                    return None;
                }
                let has_waiters = queue.has_waiters();
                records.forget_if_empty(space, key);
                has_waiters || self.ranges.has_waiters()
            }
            Extent::Range(range) => self.ranges.get_mut().remove_granted(space, range, owner),
        };
        has_waiters.then_some(Disturbance { after: Standing::Granted })
    }

    /// Removes the waiting request `sequence`, if it still waits.
    pub(super) fn withdraw(
        &mut self,
        space: LockSpace,
        extent: &Extent,
        sequence: u64,
    ) -> Option<Disturbance> {
        let after = match extent {
            Extent::Key(key) => {
                let records = self.shard_mut(key);
                let after = records.queue_mut(space, key)?.remove_waiting(sequence);
                records.forget_if_empty(space, key);
                after?
            }
            Extent::Range(_) => self.ranges.get_mut().remove_waiting(sequence)?,
        };
        Some(Disturbance { after })
    }

    /// Grants the requests that can be granted after a disturbance at `extent`, and returns the
    /// blockers of the others.
    pub(super) fn reexamine(
        &mut self,
        space: LockSpace,
        extent: &Extent,
        disturbance: Disturbance,
        is_undecided: IsUndecided<'_>,
    ) -> Changes {
        let mut changes = Changes::default();
        match extent {
            Extent::Key(key) => {
                self.reexamine_key(space, key, Some(disturbance), is_undecided, &mut changes);
            }
            Extent::Range(range) => {
                for key in self.keys_with_waiters(space, range) {
                    self.reexamine_key(space, &key, None, is_undecided, &mut changes);
                }
            }
        }
        if self.ranges.has_waiters() {
            self.reexamine_ranges(space, extent, is_undecided, &mut changes);
        }
        changes
    }

    /// Without its own disturbance, re-examines every waiter of the key.
    fn reexamine_key(
        &mut self,
        space: LockSpace,
        key: &[u8],
        disturbance: Option<Disturbance>,
        is_undecided: IsUndecided<'_>,
        changes: &mut Changes,
    ) {
        let position = shard_hash(key) % self.shards.len();
        let ranges = self.ranges.get();
        let Some(queue) = self.shards[position].queue_mut(space, key) else { return };
        let after = disturbance.map_or(Standing::Granted, |disturbance| disturbance.after);
        queue.reexamine(after, disturbance.is_some(), |queue, request| {
            let mut blockers = Blockers::new();
            queue.add_blockers_of(request, &mut blockers);
            if let Some(ranges) = ranges {
                ranges.add_blockers_at(space, key, request, &mut blockers);
            }
            changes.note(request, blockers, is_undecided)
        });
    }

    fn keys_with_waiters(&self, space: LockSpace, range: &KeyRange) -> Vec<Arc<[u8]>> {
        let queues = self.shards.iter().flat_map(|records| records.queues_in(space, range));
        queues.filter(|(_, queue)| queue.has_waiters()).map(|(key, _)| Arc::clone(key)).collect()
    }

    fn reexamine_ranges(
        &mut self,
        space: LockSpace,
        extent: &Extent,
        is_undecided: IsUndecided<'_>,
        changes: &mut Changes,
    ) {
        for (range, request) in self.ranges.get_mut().waiting_at(space, extent) {
            let blockers = self.blockers(space, Wanted::Range(&range), &request);
            if changes.note(&request, blockers, is_undecided) {
                self.ranges.get_mut().grant(&request);
            }
        }
    }

    /// The owners that `request` waits for, each once.
    fn blockers(&self, space: LockSpace, wanted: Wanted<'_>, request: &Request) -> Blockers {
        let mut blockers = Blockers::new();
        match wanted {
            Wanted::Key(key) => {
                if let Some(queue) = self.shard(key).queue(space, key) {
                    queue.add_blockers_of(request, &mut blockers);
                }
                if let Some(ranges) = self.ranges.get() {
                    ranges.add_blockers_at(space, key, request, &mut blockers);
                }
            }
            Wanted::Range(range) => {
                for records in self.shards.iter() {
                    for (_, queue) in records.queues_in(space, range) {
                        queue.add_blockers_of(request, &mut blockers);
                    }
                }
                if let Some(ranges) = self.ranges.get() {
                    ranges.add_blockers_over(space, range, request, &mut blockers);
                }
            }
        }
        normalise(&mut blockers);
        blockers
    }

    fn possession(
        &self,
        space: LockSpace,
        wanted: Wanted<'_>,
        owner: TrxId,
        mode: LockMode,
    ) -> Possession {
        match wanted {
            Wanted::Key(key) => self.possession_of_key(space, key, owner, mode),
            Wanted::Range(range) => {
                let ranges = self.ranges.get();
                let (overlapping, covering) =
                    ranges.map_or((false, None), |ranges| ranges.possession(space, range, owner));
                Possession {
                    any: overlapping || self.has_key_in(space, range, owner),
                    enough: covering >= Some(mode),
                }
            }
        }
    }

    /// A range over the key is sufficient only while no other owner has the key: a writer may have
    /// locked it implicitly before the range was granted, and its lock may have been made explicit
    /// since (rule 9).
    fn possession_of_key(
        &self,
        space: LockSpace,
        key: &[u8],
        owner: TrxId,
        mode: LockMode,
    ) -> Possession {
        let queue = self.shard(key).queue(space, key);
        let by_record = queue.and_then(|queue| queue.granted_to(owner));
        let by_range = self.ranges.get().and_then(|ranges| ranges.covering(space, key, owner));
        let mut others = queue.into_iter().flat_map(Queue::requests);
        let enough = by_record >= Some(mode)
            || (by_range >= Some(mode)
                && !others.any(|other| other.is_granted() && other.opposes(owner, mode)));
        Possession { any: by_record.is_some() || by_range.is_some(), enough }
    }

    /// Whether `owner` has a key of `range`.
    fn has_key_in(&self, space: LockSpace, range: &KeyRange, owner: TrxId) -> bool {
        let mut queues = self.shards.iter().flat_map(|records| records.queues_in(space, range));
        queues.any(|(_, queue)| queue.granted_to(owner).is_some())
    }

    /// Visits every request, granted and waiting.
    pub(super) fn for_each(&self, mut visit: impl FnMut(LockSpace, Extent, &Request)) {
        for (space, key, queue) in self.shards.iter().flat_map(|records| records.queues()) {
            for request in queue.requests() {
                visit(space, Extent::Key(Arc::clone(key)), request);
            }
        }
        for lock in self.ranges.get().into_iter().flat_map(Ranges::locks) {
            visit(lock.space, Extent::Range(Arc::clone(&lock.range)), &lock.request);
        }
    }

    fn insert(&mut self, space: LockSpace, wanted: Wanted<'_>, request: Request) -> Extent {
        match wanted {
            Wanted::Key(key) => Extent::Key(self.shard_mut(key).insert(space, key, request)),
            Wanted::Range(range) => {
                self.ranges.get_mut().insert(space, Arc::clone(range), request);
                Extent::Range(Arc::clone(range))
            }
        }
    }
}

impl Changes {
    /// Records the new state of a waiting request; true if it is granted.
    fn note(
        &mut self,
        request: &Request,
        mut blockers: Blockers,
        is_undecided: IsUndecided<'_>,
    ) -> bool {
        let Standing::Waiting(rank) = request.standing else { return false };
        if !is_undecided(request.owner, rank.sequence) {
            return false;
        }
        if blockers.is_empty() {
            self.granted.push((request.owner, rank.sequence));
            return true;
        }
        normalise(&mut blockers);
        self.waiting.push((request.owner, rank.sequence, blockers));
        false
    }
}

/// Names each owner once, with the strongest of its modes.
fn normalise(blockers: &mut Blockers) {
    blockers.sort_unstable_by_key(|blocker| (blocker.owner, Reverse(blocker.mode)));
    blockers.dedup_by_key(|blocker| blocker.owner);
}
