//! The lock manager: the decisions of [`super::table`] under mutexes, and the waiting.
//!
//! Every public call except [`LockManager::wait`] takes short mutexes only, so it may be made with
//! a page latch held. The rule numbers are those of the README in this folder.

use std::sync::Arc;
// Not shuttle's version: the sequence is drawn under the mutex that orders it.
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use firn_base::clock::Clock;
use firn_base::{IndexId, TrxId};

use super::group::{Group, Scope};
use super::occupancy::Occupancy;
use super::owner::{Owners, Waiter};
use super::queue::{Blockers, Rank, Standing};
use super::statistics::{Counters, LockInfo, LockStatistics, WaitInfo};
use super::table::{Attempt, Decision, Disturbance, Wanted};
use super::target::{Extent, KeyRange, LockMode, LockSpace, LockTarget, Locked, space_hash};
use super::waits::{Aftermath, DeadlockReport, OpenWait, Verdict, Waits, Withdrawal};
use crate::sync::Mutex;

/// How often a cancellable wait checks its flag.
const CANCELLED_INTERVAL: Duration = Duration::from_millis(10);

/// Groups of shards. Spaces that share one meet each other's mutexes, never each other's locks.
const GROUPS: usize = if cfg!(feature = "shuttle") { 2 } else { 64 };

/// The result of [`LockManager::request`].
#[derive(Debug)]
#[must_use]
pub enum Outcome {
    /// The owner has the lock now and did not have it before.
    Granted,
    /// The owner already had a lock that is at least as strong.
    Held,
    /// The request is queued. Release all latches, then call [`LockManager::wait`].
    Queued(Wait),
}

/// The result of [`LockManager::try_request`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum TryOutcome {
    /// The owner has the lock now and did not have it before.
    Granted,
    /// The owner already had a lock that is at least as strong.
    Held,
    /// Nothing was done. Names one of the owners that hold or want a conflicting lock.
    Blocked(TrxId),
}

/// A queued request. Dropping it leaves the request queued until its owner's locks are released.
#[derive(Debug)]
#[must_use]
pub struct Wait {
    owner: TrxId,
    sequence: u64,
    locked: Locked,
    waiter: Arc<Waiter>,
}

impl Wait {
    #[must_use]
    pub fn owner(&self) -> TrxId {
        self.owner
    }

    #[must_use]
    pub fn locked(&self) -> &Locked {
        &self.locked
    }
}

/// Why a wait ended without the lock.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LockError {
    /// The time ran out. The transaction keeps the locks that it has.
    #[error("lock wait timeout exceeded")]
    Timeout,
    /// The transaction was chosen to break a deadlock. It must roll back, because others wait for
    /// that.
    #[error("deadlock found when trying to get a lock")]
    Deadlock {
        /// The owners that waited in a circle: each waits for the next, the last for the first.
        cycle: Vec<TrxId>,
    },
    /// [`LockManager::cancel`] was called, or the owner's locks were released during the wait.
    #[error("lock wait was cancelled")]
    Cancelled,
}

/// Row, range and table locks of one database node.
#[derive(Debug)]
pub struct LockManager {
    groups: Box<[Group]>,
    occupancy: Arc<Occupancy>,
    owners: Owners,
    waits: Mutex<Waits>,
    next_sequence: AtomicU64,
    counters: Counters,
    clock: ClockHandle,
}

struct ClockHandle(Arc<dyn Clock>);

impl std::fmt::Debug for ClockHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clock")
    }
}

impl LockManager {
    /// A lock manager without locks, which measures waits on `clock`.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> LockManager {
        let occupancy = Arc::new(Occupancy::new());
        LockManager {
            groups: (0..GROUPS).map(|_| Group::new(&occupancy)).collect(),
            occupancy,
            owners: Owners::new(),
            waits: Mutex::new(Waits::default()),
            next_sequence: AtomicU64::new(1),
            counters: Counters::default(),
            clock: ClockHandle(clock),
        }
    }

    /// Registers the counter of undo records that `owner` has written. Call it before the owner's
    /// first request; an owner without a counter counts as having written none.
    pub fn register(&self, owner: TrxId, weight: Arc<AtomicU64>) {
        self.owners.register(owner, weight);
    }

    /// Requests `target` for `owner`. Never blocks.
    ///
    /// A range whose bounds admit no key is granted and not recorded.
    pub fn request(&self, owner: TrxId, target: LockTarget<'_>, mode: LockMode) -> Outcome {
        with_wanted(target, |space, wanted| self.request_wanted(owner, space, wanted, mode))
            .unwrap_or(Outcome::Granted)
    }

    /// Requests `target`, but does not queue the request if it would have to wait (`NOWAIT`, `SKIP
    /// LOCKED`). Never blocks.
    pub fn try_request(&self, owner: TrxId, target: LockTarget<'_>, mode: LockMode) -> TryOutcome {
        with_wanted(target, |space, wanted| self.try_wanted(owner, space, wanted, mode))
            .unwrap_or(TryOutcome::Granted)
    }

    /// Whether `owner` must [`LockManager::request`] the key in `mode` before it acts on the key
    /// under an implicit lock, because another transaction has or wants a conflicting explicit lock
    /// (rule 7).
    ///
    /// One atomic load if the index has no explicit lock. Never blocks. The caller must hold the
    /// leaf's latch from before this call until the record carries its transaction id.
    #[must_use]
    pub fn has_conflict(&self, owner: TrxId, index: IndexId, key: &[u8], mode: LockMode) -> bool {
        let space = LockSpace::Index(index);
        if self.occupancy.is_vacant(space) {
            return false;
        }
        self.group(space).look(key).table().has_conflict(space, key, owner, mode)
    }

    /// Makes the implicit exclusive lock of `holder`, whose id the record carries, explicit, so
    /// that others can queue behind it. True if `holder` has the explicit lock now; false if it is
    /// no longer active, in which case nothing was changed.
    ///
    /// `is_active` asks the transaction table. It is called with mutexes of the lock manager held
    /// and must not call back. The transaction table must report "no longer active" before
    /// [`LockManager::release_all`] is called for the holder (rule 9). Never blocks.
    pub fn make_explicit(
        &self,
        holder: TrxId,
        index: IndexId,
        key: &[u8],
        is_active: impl FnOnce() -> bool,
    ) -> bool {
        let space = LockSpace::Index(index);
        let mut scope = self.group(space).enter(Wanted::Key(key));
        if scope.table().granted(space, key, holder) == Some(LockMode::Exclusive) {
            return true;
        }
        let mut made = None;
        let active = self.owners.note_if_active(holder, is_active, || {
            let (key, disturbance) = scope.table().make_explicit(space, key, holder);
            let locked = Locked { space, extent: Extent::Key(key) };
            made = Some((locked.clone(), disturbance));
            locked
        });
        let mut aftermath = Aftermath::default();
        if let Some((locked, disturbance)) = made {
            self.reexamine(&mut scope, &locked, disturbance, &mut aftermath);
        }
        drop(scope);
        self.settle(aftermath);
        active
    }

    /// Waits until the queued request is granted, for `timeout` at most. Blocks: call it with no
    /// latch and no mutex held.
    ///
    /// # Errors
    /// See [`LockError`]. The request is then no longer queued.
    pub fn wait(&self, wait: Wait, timeout: Option<Duration>) -> Result<(), LockError> {
        self.wait_unless(wait, timeout, None)
    }

    /// As [`LockManager::wait`], but ends with [`LockError::Cancelled`] soon after `cancelled` is
    /// set. The wait polls the flag, so the thread that sets it need not know where the owner
    /// waits.
    ///
    /// # Errors
    /// See [`LockError`]. The request is then no longer queued.
    pub fn wait_unless(
        &self,
        wait: Wait,
        timeout: Option<Duration>,
        cancelled: Option<&AtomicBool>,
    ) -> Result<(), LockError> {
        let Wait { owner, sequence, locked, waiter } = wait;
        let deadline = timeout.map(|timeout| self.clock.0.monotonic().saturating_add(timeout));
        let verdict = self.block_until_decided(owner, sequence, &waiter, deadline, cancelled);
        if let Some(verdict) = verdict {
            let withdrawal = Withdrawal { owner, sequence, locked: locked.clone() };
            if self.end_wait(withdrawal, verdict.clone()) && verdict == Verdict::Cancelled {
                self.counters.count_cancelled();
            }
        }
        let open = self.waits.lock().collect(owner, sequence);
        let Some(open) = open else { return Err(LockError::Cancelled) };
        self.counters.count_wait_time(self.clock.0.monotonic().saturating_sub(open.since));
        match open.verdict {
            Some(Verdict::Granted) => {
                self.owners.note(owner, locked);
                Ok(())
            }
            Some(Verdict::Deadlock(cycle)) => {
                self.withdraw(Withdrawal { owner, sequence, locked });
                Err(LockError::Deadlock { cycle })
            }
            Some(Verdict::Timeout) => {
                self.counters.count_timeout();
                Err(LockError::Timeout)
            }
            Some(Verdict::Cancelled) | None => Err(LockError::Cancelled),
        }
    }

    /// Ends the wait of `owner`, if it has one, with [`LockError::Cancelled`]. True if it had one.
    ///
    /// To avoid missing a session between its request and its wait, the killer sets the session's
    /// flag and then calls this, while the session queues its request and then reads the flag.
    pub fn cancel(&self, owner: TrxId) -> bool {
        let Some(withdrawal) = self.waits.lock().undecided(owner) else { return false };
        let cancelled = self.end_wait(withdrawal, Verdict::Cancelled);
        if cancelled {
            self.counters.count_cancelled();
        }
        cancelled
    }

    /// Releases one lock of `owner`, with the target of its request. The caller must know from
    /// [`Outcome::Granted`] that `owner` did not have the lock before, and `owner` must not have
    /// written the key since: a waiter would be granted a key that is still locked implicitly.
    /// Never blocks.
    pub fn release(&self, owner: TrxId, target: LockTarget<'_>) {
        let _nothing_if_empty = with_wanted(target, |space, wanted| {
            let locked = Locked { space, extent: wanted.to_extent() };
            self.owners.forget(owner, &locked);
            self.release_locked(owner, &locked);
        });
    }

    /// Releases all locks of `owner` and removes the owner. Never blocks.
    ///
    /// After that, no [`LockManager::make_explicit`] adds a lock for it (rule 9).
    pub fn release_all(&self, owner: TrxId) {
        let Some(mut estate) = self.owners.remove(owner) else { return };
        if let Some(waiter) = estate.waiter {
            let wait = self.waits.lock().forget(owner);
            if let Some(wait) = wait {
                let (sequence, locked) = (wait.rank.sequence, wait.locked.clone());
                self.withdraw(Withdrawal { owner, sequence, locked });
                // The wait may have been granted and not collected yet.
                estate.locks.push(wait.locked);
                waiter.event.notify_all();
            }
        }
        for locked in &estate.locks {
            self.release_locked(owner, locked);
        }
    }

    #[must_use]
    pub fn statistics(&self) -> LockStatistics {
        let waits = self.waits.lock();
        self.counters.read(waits.undecided_count() as u64, waits.deadlocks())
    }

    /// Approximate memory of all locks, in bytes. Visits all owners.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.owners.memory_bytes() as u64
    }

    #[must_use]
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock.0)
    }

    /// The transactions that `owner` waits for; empty if it does not wait.
    #[must_use]
    pub fn waits_for(&self, owner: TrxId) -> Vec<TrxId> {
        self.waits.lock().blockers(owner).collect()
    }

    /// The deadlock that was broken most recently.
    #[must_use]
    pub fn latest_deadlock(&self) -> Option<DeadlockReport> {
        self.waits.lock().latest_deadlock().cloned()
    }

    /// All explicit locks and all waits, ordered by target and then by queue position. Groups of
    /// spaces are read one after the other, so locks of different indexes may be from different
    /// moments.
    #[must_use]
    pub fn snapshot(&self) -> Vec<LockInfo> {
        let mut requests = Vec::new();
        for group in &self.groups {
            group.enter_wide().table().for_each(|space, extent, request| {
                requests.push((Locked { space, extent }, *request));
            });
        }
        requests.sort_by_cached_key(|(locked, request)| {
            (locked.space, locked.to_string(), request.standing)
        });
        let now = self.clock.0.monotonic();
        let waits = self.waits.lock();
        let requests = requests.into_iter();
        requests
            .map(|(locked, request)| {
                let wait = (request.standing != Standing::Granted).then(|| WaitInfo {
                    waited: now.saturating_sub(waits.since(request.owner).unwrap_or(now)),
                    blockers: waits.blockers(request.owner).collect(),
                });
                LockInfo { owner: request.owner, locked, mode: request.mode, wait }
            })
            .collect()
    }

    /// Whether [`LockManager::wait`] would return at once.
    #[cfg(all(test, not(feature = "shuttle")))]
    pub(super) fn is_decided(&self, wait: &Wait) -> bool {
        self.waits.lock().is_over(wait.owner, wait.sequence)
    }

    /// Whether no lock, wait or owner is recorded.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.snapshot().is_empty()
            && self.owners.is_empty()
            && self.waits.lock().is_empty()
            && self.occupancy.is_empty()
    }

    fn group(&self, space: LockSpace) -> &Group {
        &self.groups[space_hash(space) % GROUPS]
    }

    fn request_wanted(
        &self,
        owner: TrxId,
        space: LockSpace,
        wanted: Wanted<'_>,
        mode: LockMode,
    ) -> Outcome {
        let mut scope = self.group(space).enter(wanted);
        let next_sequence = || self.next_sequence.fetch_add(1, Ordering::Relaxed);
        let mut aftermath = Aftermath::default();
        match scope.table().request(space, wanted, owner, mode, next_sequence) {
            Decision::Held => Outcome::Held,
            Decision::Granted { extent, disturbance } => {
                let locked = Locked { space, extent };
                self.reexamine(&mut scope, &locked, disturbance, &mut aftermath);
                drop(scope);
                self.owners.note(owner, locked);
                self.settle(aftermath);
                Outcome::Granted
            }
            Decision::Queued { extent, rank, blockers, disturbance } => {
                let locked = Locked { space, extent };
                let waiter = self.owners.waiter(owner);
                let wait = Wait { owner, sequence: rank.sequence, locked, waiter };
                let earlier = self.begin(&wait, rank, mode, blockers, &mut aftermath);
                self.reexamine(&mut scope, &wait.locked, disturbance, &mut aftermath);
                drop(scope);
                self.settle(aftermath);
                if let Some(earlier) = earlier {
                    self.keep_or_withdraw(owner, earlier);
                }
                Outcome::Queued(wait)
            }
        }
    }

    fn try_wanted(
        &self,
        owner: TrxId,
        space: LockSpace,
        wanted: Wanted<'_>,
        mode: LockMode,
    ) -> TryOutcome {
        let mut scope = self.group(space).enter(wanted);
        match scope.table().attempt(space, wanted, owner, mode) {
            Attempt::Blocked(blocked) => TryOutcome::Blocked(blocked.blockers[0].owner),
            Attempt::Held => TryOutcome::Held,
            Attempt::Granted { extent, disturbance } => {
                let locked = Locked { space, extent };
                let mut aftermath = Aftermath::default();
                self.reexamine(&mut scope, &locked, disturbance, &mut aftermath);
                drop(scope);
                self.owners.note(owner, locked);
                self.settle(aftermath);
                TryOutcome::Granted
            }
        }
    }

    fn begin(
        &self,
        wait: &Wait,
        rank: Rank,
        mode: LockMode,
        blockers: Blockers,
        aftermath: &mut Aftermath,
    ) -> Option<OpenWait> {
        self.counters.count_wait();
        let open = OpenWait {
            rank,
            locked: wait.locked.clone(),
            mode,
            waiter: Arc::clone(&wait.waiter),
            since: self.clock.0.monotonic(),
            verdict: None,
        };
        self.waits.lock().begin(wait.owner, open, blockers, aftermath)
    }

    /// Blocks until the wait has a verdict. If the deadline passes or the wait is cancelled first,
    /// returns the verdict that the wait should get.
    fn block_until_decided(
        &self,
        owner: TrxId,
        sequence: u64,
        waiter: &Waiter,
        deadline: Option<Duration>,
        cancelled: Option<&AtomicBool>,
    ) -> Option<Verdict> {
        loop {
            let ticket = waiter.event.listen();
            if self.waits.lock().is_over(owner, sequence) {
                return None;
            }
            if cancelled.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
                return Some(Verdict::Cancelled);
            }
            let left = deadline.map(|at| at.saturating_sub(self.clock.0.monotonic()));
            if left == Some(Duration::ZERO) {
                return Some(Verdict::Timeout);
            }
            let pause = cancelled.map(|_| CANCELLED_INTERVAL);
            waiter.event.wait(ticket, left.into_iter().chain(pause).min());
        }
    }

    /// Decides a wait against its owner, unless it has been decided, and removes the request from
    /// the queue. True if this call decided it.
    fn end_wait(&self, withdrawal: Withdrawal, verdict: Verdict) -> bool {
        let Withdrawal { owner, sequence, .. } = withdrawal;
        // Decided under the mutex of the waits alone: from here on, no shard grants the request.
        let waiter = self.waits.lock().decide(owner, sequence, verdict);
        let Some(waiter) = waiter else { return false };
        self.withdraw(withdrawal);
        waiter.event.notify_all();
        true
    }

    /// Removes a request from its queue after its wait was decided against it.
    fn withdraw(&self, withdrawal: Withdrawal) {
        self.settle(Aftermath {
            withdraw: smallvec::smallvec![withdrawal],
            ..Aftermath::default()
        });
    }

    /// Carries out noted decisions, with no mutex held (rule 12).
    fn settle(&self, mut aftermath: Aftermath) {
        while let Some(Withdrawal { sequence, locked, .. }) = aftermath.withdraw.pop() {
            let mut scope = self.group(locked.space).enter(locked.extent.as_wanted());
            let disturbance = scope.table().withdraw(locked.space, &locked.extent, sequence);
            self.reexamine(&mut scope, &locked, disturbance, &mut aftermath);
        }
        for waiter in aftermath.wake {
            waiter.event.notify_all();
        }
    }

    /// Closes a wait that was not collected. If its lock was granted in the meantime, the owner
    /// keeps the lock.
    fn keep_or_withdraw(&self, owner: TrxId, wait: OpenWait) {
        if wait.verdict == Some(Verdict::Granted) {
            self.owners.note(owner, wait.locked);
        } else {
            self.withdraw(Withdrawal { owner, sequence: wait.rank.sequence, locked: wait.locked });
        }
    }

    fn release_locked(&self, owner: TrxId, locked: &Locked) {
        let mut scope = self.group(locked.space).enter(locked.extent.as_wanted());
        let disturbance = scope.table().release(locked.space, &locked.extent, owner);
        let mut aftermath = Aftermath::default();
        self.reexamine(&mut scope, locked, disturbance, &mut aftermath);
        drop(scope);
        self.settle(aftermath);
    }

    /// Re-examines the waiters around `locked`, and reports the outcome to their waits.
    fn reexamine(
        &self,
        scope: &mut Scope<'_>,
        locked: &Locked,
        disturbance: Option<Disturbance>,
        aftermath: &mut Aftermath,
    ) {
        let Some(disturbance) = disturbance else { return };
        let mut waits = self.waits.lock();
        let is_undecided = |owner, sequence| waits.is_undecided(owner, sequence);
        let changes =
            scope.table().reexamine(locked.space, &locked.extent, disturbance, &is_undecided);
        waits.apply(changes, self.clock.0.monotonic(), aftermath);
    }
}

/// Converts a target into the form that the decisions use. `None` for a range without keys.
fn with_wanted<R>(
    target: LockTarget<'_>,
    act: impl FnOnce(LockSpace, Wanted<'_>) -> R,
) -> Option<R> {
    match target {
        LockTarget::Record { index, key } => Some(act(LockSpace::Index(index), Wanted::Key(key))),
        LockTarget::Table { table } => Some(act(LockSpace::Table(table), Wanted::Key(b""))),
        LockTarget::Range { index, low, high } => {
            let range = Arc::new(KeyRange::new(low, high));
            (!range.is_empty()).then(|| act(LockSpace::Index(index), Wanted::Range(&range)))
        }
    }
}
