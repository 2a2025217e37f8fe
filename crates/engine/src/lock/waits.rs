//! The waits in progress, each with its verdict as soon as there is one.
//!
//! A wait is decided once, under the mutex of this structure: granted, chosen as the victim of a
//! deadlock, or cancelled. The waiter collects the verdict when it wakes up. The undecided waits
//! are the nodes of the waits-for graph.
//!
//! ```text
//!   begin ──► undecided ──► granted ───────────► collected by the waiter
//!                  ├──────► deadlock, cancelled ─► collected; its request is withdrawn by then
//!                  └──────► timed out: taken back by the waiter itself
//! ```

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use firn_base::TrxId;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::graph::WaitGraph;
use super::owner::Waiter;
use super::queue::{Blockers, Rank};
use super::table::Changes;
use super::target::{LockMode, Locked};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The waiter has the lock.
    Granted,
    /// The waiter was chosen to break this cycle.
    Deadlock(Vec<TrxId>),
    Cancelled,
    Timeout,
}

#[derive(Debug)]
pub(super) struct OpenWait {
    /// Its position among the waiters. The sequence identifies the wait.
    pub(super) rank: Rank,
    pub(super) locked: Locked,
    pub(super) mode: LockMode,
    pub(super) waiter: Arc<Waiter>,
    /// On the monotonic clock.
    pub(super) since: Duration,
    pub(super) verdict: Option<Verdict>,
}

/// A request to remove from the lock table after its wait was decided against it.
#[derive(Debug)]
pub(super) struct Withdrawal {
    pub(super) owner: TrxId,
    pub(super) sequence: u64,
    pub(super) locked: Locked,
}

/// Decisions to carry out once no mutex is held (README, rule 12).
#[derive(Debug, Default)]
#[must_use]
pub(super) struct Aftermath {
    pub(super) wake: SmallVec<[Arc<Waiter>; 2]>,
    pub(super) withdraw: SmallVec<[Withdrawal; 1]>,
}

/// A transaction in a deadlock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadlockParty {
    pub owner: TrxId,
    pub wanted: Locked,
    pub mode: LockMode,
    /// The cost of its rollback, in undo records.
    pub weight: u64,
}

/// A deadlock that was found and broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadlockReport {
    /// The waiting transactions: each waits for the next, the last for the first.
    pub parties: Vec<DeadlockParty>,
    /// The transaction whose wait was ended.
    pub victim: TrxId,
    /// The time on the monotonic clock.
    pub at: Duration,
}

#[derive(Debug, Default)]
pub(super) struct Waits {
    open: FxHashMap<TrxId, OpenWait>,
    graph: WaitGraph,
    deadlocks: u64,
    latest_deadlock: Option<DeadlockReport>,
}

impl Waits {
    /// Starts a wait and breaks the deadlocks that it closes. Returns an earlier wait of the same
    /// owner that was not collected.
    pub(super) fn begin(
        &mut self,
        owner: TrxId,
        wait: OpenWait,
        blockers: Blockers,
        aftermath: &mut Aftermath,
    ) -> Option<OpenWait> {
        let now = wait.since;
        let before = self.open.insert(owner, wait);
        self.graph.set(owner, blockers);
        self.break_deadlocks(owner, now, aftermath);
        before
    }

    /// Whether `owner` has a wait `sequence` with no verdict.
    pub(super) fn is_undecided(&self, owner: TrxId, sequence: u64) -> bool {
        self.open.get(&owner).is_some_and(|w| w.rank.sequence == sequence && w.verdict.is_none())
    }

    /// Applies the changes of waiting requests that the lock table has found.
    pub(super) fn apply(&mut self, changes: Changes, now: Duration, aftermath: &mut Aftermath) {
        for (owner, sequence) in changes.granted {
            aftermath.wake.extend(self.decide(owner, sequence, Verdict::Granted));
        }
        let mut gained = SmallVec::<[TrxId; 4]>::new();
        for (owner, sequence, blockers) in changes.waiting {
            if self.is_undecided(owner, sequence) && self.graph.set(owner, blockers) {
                gained.push(owner);
            }
        }
        for owner in gained {
            self.break_deadlocks(owner, now, aftermath);
        }
    }

    /// Decides a wait. Returns the waiter to wake, or `None` if the wait has ended or been decided
    /// already.
    pub(super) fn decide(
        &mut self,
        owner: TrxId,
        sequence: u64,
        verdict: Verdict,
    ) -> Option<Arc<Waiter>> {
        let wait = self.open.get_mut(&owner)?;
        if wait.rank.sequence != sequence || wait.verdict.is_some() {
            return None;
        }
        wait.verdict = Some(verdict);
        self.graph.remove(owner);
        Some(Arc::clone(&wait.waiter))
    }

    /// The request of the undecided wait of `owner`, for withdrawal.
    pub(super) fn undecided(&self, owner: TrxId) -> Option<Withdrawal> {
        let wait = self.open.get(&owner).filter(|wait| wait.verdict.is_none())?;
        Some(Withdrawal { owner, sequence: wait.rank.sequence, locked: wait.locked.clone() })
    }

    /// Whether the wait `sequence` of `owner` has been decided or no longer exists.
    pub(super) fn is_over(&self, owner: TrxId, sequence: u64) -> bool {
        !self.is_undecided(owner, sequence)
    }

    /// Ends the wait `sequence` of `owner`.
    pub(super) fn collect(&mut self, owner: TrxId, sequence: u64) -> Option<OpenWait> {
        if self.open.get(&owner)?.rank.sequence != sequence {
            return None;
        }
        self.graph.remove(owner);
        self.open.remove(&owner)
    }

    /// Ends the wait of `owner`, if it has one.
    pub(super) fn forget(&mut self, owner: TrxId) -> Option<OpenWait> {
        self.graph.remove(owner);
        self.open.remove(&owner)
    }

    /// The owners that `waiter` waits for.
    pub(super) fn blockers(&self, waiter: TrxId) -> impl Iterator<Item = TrxId> {
        self.graph.blockers(waiter).iter().map(|blocker| blocker.owner)
    }

    /// When the wait of `owner` began.
    pub(super) fn since(&self, owner: TrxId) -> Option<Duration> {
        self.open.get(&owner).map(|wait| wait.since)
    }

    pub(super) fn undecided_count(&self) -> usize {
        self.open.values().filter(|wait| wait.verdict.is_none()).count()
    }

    pub(super) fn deadlocks(&self) -> u64 {
        self.deadlocks
    }

    pub(super) fn latest_deadlock(&self) -> Option<&DeadlockReport> {
        self.latest_deadlock.as_ref()
    }

    fn break_deadlocks(&mut self, start: TrxId, now: Duration, aftermath: &mut Aftermath) {
        while let Some(cycle) = self.graph.cycle_through(start) {
            let cycle = self.shorten(cycle);
            let Some(victim) = self.choose_victim(&cycle) else { return };
            self.report(&cycle, victim, now);
            let Some(withdrawal) = self.undecided(victim) else { return };
            let verdict = Verdict::Deadlock(cycle);
            aftermath.wake.extend(self.decide(victim, withdrawal.sequence, verdict));
            aftermath.withdraw.push(withdrawal);
        }
    }

    /// Removes the owners from a cycle whose rollback would not break it.
    ///
    /// An edge ends at the nearest waiting exclusive request and leaves the rest to that one's
    /// edges (rule 10). If `a` would have to wait for `c` even if `b` between them in the same
    /// queue were gone, `b` does not cause the deadlock:
    ///
    /// ```text
    ///   queue of one key   [X c] [X b] [X a]        a ──► b ──► c   becomes   a ──► c
    /// ```
    fn shorten(&self, mut cycle: Vec<TrxId>) -> Vec<TrxId> {
        let mut position = 0;
        while position < cycle.len() && cycle.len() > 2 {
            let at = |offset| cycle[(position + offset) % cycle.len()];
            if self.is_bypass(at(0), at(1), at(2)) {
                cycle.remove((position + 1) % cycle.len());
                position = position.saturating_sub(1);
            } else {
                position += 1;
            }
        }
        cycle
    }

    /// Whether `a` must also wait for the request of `c` that `b` waits for: it stands before `b`,
    /// and so before `a` if `a` stands behind `b`.
    fn is_bypass(&self, a: TrxId, b: TrxId, c: TrxId) -> bool {
        let (Some(first), Some(second)) = (self.open.get(&a), self.open.get(&b)) else {
            return false;
        };
        let edge = self.graph.edge(b, c);
        edge.is_some_and(|mode| mode.conflicts_with(first.mode))
            && second.rank < first.rank
            && first.locked.covers(&second.locked)
    }

    /// The owner that is cheapest to roll back; among equals, the one that began to wait last (rule
    /// 11).
    fn choose_victim(&self, cycle: &[TrxId]) -> Option<TrxId> {
        let open = cycle.iter().filter_map(|owner| self.open.get_key_value(owner));
        let cost = |wait: &OpenWait| (wait.waiter.weight(), Reverse(wait.rank.sequence));
        open.min_by_key(|(_, wait)| cost(wait)).map(|(owner, _)| *owner)
    }

    fn report(&mut self, cycle: &[TrxId], victim: TrxId, now: Duration) {
        let party = |owner: &TrxId| {
            let wait = self.open.get(owner)?;
            Some(DeadlockParty {
                owner: *owner,
                wanted: wait.locked.clone(),
                mode: wait.mode,
                weight: wait.waiter.weight(),
            })
        };
        let parties = cycle.iter().filter_map(party).collect();
        self.deadlocks += 1;
        self.latest_deadlock = Some(DeadlockReport { parties, victim, at: now });
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty() && self.graph.is_empty()
    }
}
