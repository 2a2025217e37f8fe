//! The queue of requests for one key: holders and waiters, in order.
//!
//! ```text
//!   granted            upgrades waiting      others waiting, by arrival
//!   [S T1] [S T2]      [X T1]                [X T3] [S T4] [S T5] [X T6]
//! ```
//!
//! The requests are ordered by their [`Standing`], which is all that the rules need (README, rules
//! 1 to 4): a request waits for every conflicting request of another owner with a lower standing.
//! Invariants:
//!
//! * standings ascend; an owner has at most one granted and at most one waiting request in a queue;
//! * a waiting request stands behind some conflicting request, here or in the range list, or its
//!   wait has already been decided and it is about to be withdrawn.

use firn_base::TrxId;
use smallvec::SmallVec;

use super::target::LockMode;

/// An owner that a request waits for, and the strongest that it has or wants there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Blocker {
    pub(super) owner: TrxId,
    pub(super) mode: LockMode,
}

/// The owners that a request waits for.
pub(super) type Blockers = SmallVec<[Blocker; 4]>;

/// The position of a waiting request among the waiting ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    /// False for the request of an owner that already has a lock here: such requests go first (rule
    /// 3).
    pub(super) newcomer: bool,
    /// Ascends with arrival and is never reused, so it also identifies the wait.
    pub(super) sequence: u64,
}

impl Rank {
    /// Behind all current waiters.
    pub(super) fn last(newcomer: bool) -> Rank {
        Rank { newcomer, sequence: u64::MAX }
    }
}

/// The state of a request. The order of the states is the order of the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Standing {
    Granted,
    Waiting(Rank),
}

/// What one owner has or wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) owner: TrxId,
    pub(super) mode: LockMode,
    pub(super) standing: Standing,
}

impl Request {
    /// Whether `later` must wait for this request (rules 1 and 2). The caller knows that the two
    /// meet in space.
    pub(super) fn blocks(&self, later: &Request) -> bool {
        self.standing < later.standing && self.opposes(later.owner, later.mode)
    }

    /// Whether this request, granted or not, prevents `owner` from having `mode`.
    pub(super) fn opposes(&self, owner: TrxId, mode: LockMode) -> bool {
        self.owner != owner && self.mode.conflicts_with(mode)
    }

    pub(super) fn as_blocker(&self) -> Blocker {
        Blocker { owner: self.owner, mode: self.mode }
    }

    pub(super) fn is_granted(&self) -> bool {
        self.standing == Standing::Granted
    }

    /// Whether this is the waiting request of the wait `sequence`.
    pub(super) fn is_wait(&self, sequence: u64) -> bool {
        matches!(self.standing, Standing::Waiting(rank) if rank.sequence == sequence)
    }

    /// Whether every request behind it must wait for it, whatever its mode and owner.
    fn is_barrier(&self) -> bool {
        !self.is_granted() && self.mode == LockMode::Exclusive
    }
}

/// The requests for one key.
#[derive(Debug, Default)]
pub(super) struct Queue {
    requests: SmallVec<[Request; 1]>,
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    pub(super) fn requests(&self) -> &[Request] {
        &self.requests
    }

    pub(super) fn has_waiters(&self) -> bool {
        self.requests.last().is_some_and(|request| !request.is_granted())
    }

    /// The mode that `owner` has been granted.
    pub(super) fn granted_to(&self, owner: TrxId) -> Option<LockMode> {
        let mut granted = self.requests.iter().take_while(|request| request.is_granted());
        granted.find(|request| request.owner == owner).map(|request| request.mode)
    }

    /// Adds a request. A granted one is merged with what its owner already has.
    pub(super) fn insert(&mut self, request: Request) {
        if request.is_granted()
            && let Some(granted) =
                self.requests.iter_mut().find(|r| r.is_granted() && r.owner == request.owner)
        {
            granted.mode = granted.mode.max(request.mode);
            return;
        }
        let position = self.requests.partition_point(|r| r.standing <= request.standing);
        self.requests.insert(position, request);
    }

    /// Removes what `owner` has been granted. False if it has nothing.
    pub(super) fn remove_granted(&mut self, owner: TrxId) -> bool {
        self.remove_first(|request| request.is_granted() && request.owner == owner).is_some()
    }

    /// Removes the waiting request `sequence`; returns its former standing.
    pub(super) fn remove_waiting(&mut self, sequence: u64) -> Option<Standing> {
        self.remove_first(|request| request.is_wait(sequence)).map(|request| request.standing)
    }

    fn remove_first(&mut self, is_it: impl FnMut(&Request) -> bool) -> Option<Request> {
        let position = self.requests.iter().position(is_it)?;
        Some(self.requests.remove(position))
    }

    /// Adds the owners in this queue that `request` waits for.
    ///
    /// The walk goes from the end of the queue towards its beginning and stops at the first waiting
    /// exclusive request: that one waits for everything before it, so its own edges in the
    /// waits-for graph lead on. A thousand writers that wait for one key are a chain rather than a
    /// million edges.
    pub(super) fn add_blockers_of(&self, request: &Request, blockers: &mut Blockers) {
        for earlier in self.requests.iter().rev() {
            if earlier.blocks(request) {
                blockers.push(earlier.as_blocker());
                if earlier.is_barrier() {
                    return;
                }
            }
        }
    }

    /// Visits the waiting requests behind `after`, in order. `try_grant` returns whether the
    /// request can be granted now. If `stop_at_barrier`, the walk ends behind a barrier that stays:
    /// nothing behind it can have changed.
    pub(super) fn reexamine(
        &mut self,
        after: Standing,
        stop_at_barrier: bool,
        mut try_grant: impl FnMut(&Queue, &Request) -> bool,
    ) {
        let mut position = self.requests.partition_point(|r| r.standing <= after);
        while let Some(&request) = self.requests.get(position) {
            if try_grant(self, &request) {
                self.requests.remove(position);
                let before = self.requests.len();
                self.insert(Request { standing: Standing::Granted, ..request });
                position += self.requests.len() - before;
            } else if stop_at_barrier && request.is_barrier() {
                return;
            } else {
                position += 1;
            }
        }
    }
}
