//! The waits-for graph, and the search for a cycle in it.
//!
//! A node is an owner that waits; its edges lead to the owners that it waits for. An owner that does
//! not wait has no edges. A cycle is a deadlock:
//!
//! ```text
//!   T1 ──► T2 ──► T3        T3 queues behind T1:  T3 ──► T1, and the circle is closed
//!    ▲             │
//!    └─────────────┘
//! ```
//!
//! The graph has no cycle before an edge is added and the search begins where one was, so every cycle
//! runs through the place where the search begins (README, rule 10).

use firn_base::TrxId;
use rustc_hash::{FxHashMap, FxHashSet};

use super::queue::{Blocker, Blockers};
use super::target::LockMode;

/// See the module's page.
#[derive(Debug, Default)]
pub(super) struct WaitGraph {
    edges: FxHashMap<TrxId, Blockers>,
    /// How many edges lead to an owner; nothing stands for zero. An owner that nobody waits for is in
    /// no cycle, which answers for most new waiters at once.
    awaited: FxHashMap<TrxId, u32>,
}

impl WaitGraph {
    /// Whom `waiter` waits for; nobody, if it does not wait.
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

    /// `waiter` waits no more.
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

    /// A cycle through `start`, as the owners on it in the order of waiting, `start` first.
    pub(super) fn cycle_through(&self, start: TrxId) -> Option<Vec<TrxId>> {
        if !self.awaited.contains_key(&start) {
            return None;
        }
        let mut visited = FxHashSet::default();
        let mut path = vec![(start, 0)];
        while let Some((owner, next)) = path.last_mut() {
            let Some(&Blocker { owner: blocker, .. }) = self.blockers(*owner).get(*next) else {
                path.pop();
                continue;
            };
            *next += 1;
            if blocker == start {
                return Some(path.into_iter().map(|(owner, _)| owner).collect());
            }
            if visited.insert(blocker) {
                path.push((blocker, 0));
            }
        }
        None
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.edges.is_empty() && self.awaited.is_empty()
    }
}
