//! The waits-for graph, and the search for a cycle in it.
//!
//! A node is an owner that waits; its edges lead to the owners that it waits for. An owner that
//! does not wait has no edges. A cycle is a deadlock:
//!
//! ```text
//!   T1 ──► T2 ──► T3        T3 queues behind T1:  T3 ──► T1, and the circle is closed
//!    ▲             │
//!    └─────────────┘
//! ```
//!
//! The graph has no cycle before an edge is added, and the search begins at the new edge, so every
//! cycle passes through the start of the search (README, rule 10).

use std::collections::VecDeque;
use std::collections::hash_map::Entry;

use firn_base::TrxId;
use rustc_hash::FxHashMap;

use super::queue::{Blocker, Blockers};
use super::target::LockMode;

#[derive(Debug, Default)]
pub(super) struct WaitGraph {
    edges: FxHashMap<TrxId, Blockers>,
    /// Number of edges to an owner; a missing entry means zero. An owner without incoming edges is
    /// in no cycle, which settles most new waiters at once.
    awaited: FxHashMap<TrxId, u32>,
}

impl WaitGraph {
    /// The owners that `waiter` waits for; none if it does not wait.
    pub(super) fn blockers(&self, waiter: TrxId) -> &[Blocker] {
        self.edges.get(&waiter).map_or(&[], |blockers| blockers)
    }

    /// Replaces the edges of `waiter`. True if one of them is new.
    pub(super) fn set(&mut self, waiter: TrxId, blockers: Blockers) -> bool {
        for blocker in &blockers {
            *self.awaited.entry(blocker.owner).or_default() += 1;
        }
        let Some(before) = self.edges.insert(waiter, blockers) else { return true };
        self.forget(&before);
        let is_new = |after: &Blocker| before.iter().all(|before| before.owner != after.owner);
        self.blockers(waiter).iter().any(is_new)
    }

    /// Removes the edges of `waiter`, which no longer waits.
    pub(super) fn remove(&mut self, waiter: TrxId) {
        if let Some(before) = self.edges.remove(&waiter) {
            self.forget(&before);
        }
    }

    fn forget(&mut self, blockers: &[Blocker]) {
        for blocker in blockers {
            let Some(count) = self.awaited.get_mut(&blocker.owner) else { continue };
            *count -= 1;
            if *count == 0 {
                self.awaited.remove(&blocker.owner);
            }
        }
    }

    /// The strongest that `blocker` has or wants where `waiter` waits for it.
    pub(super) fn edge(&self, waiter: TrxId, blocker: TrxId) -> Option<LockMode> {
        let edges = self.blockers(waiter);
        edges.iter().find(|edge| edge.owner == blocker).map(|edge| edge.mode)
    }

    /// A shortest cycle through `start`, as its owners in the order of waiting, `start` first. (The
    /// shorter the cycle, the less likely it is that another one must be broken afterwards.)
    pub(super) fn cycle_through(&self, start: TrxId) -> Option<Vec<TrxId>> {
        if !self.awaited.contains_key(&start) {
            return None;
        }
        let mut reached_from = FxHashMap::default();
        let mut frontier = VecDeque::from([start]);
        while let Some(waiter) = frontier.pop_front() {
            for &Blocker { owner, .. } in self.blockers(waiter) {
                if owner == start {
                    return Some(path_back(start, waiter, &reached_from));
                }
                if let Entry::Vacant(entry) = reached_from.entry(owner) {
                    entry.insert(waiter);
                    frontier.push_back(owner);
                }
            }
        }
        None
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.edges.is_empty() && self.awaited.is_empty()
    }
}

/// The owners from `start` to `end`.
fn path_back(start: TrxId, end: TrxId, reached_from: &FxHashMap<TrxId, TrxId>) -> Vec<TrxId> {
    let before = |owner: &TrxId| reached_from.get(owner).copied().filter(|_| *owner != start);
    let mut path: Vec<_> = std::iter::successors(Some(end), before).collect();
    path.reverse();
    path
}
