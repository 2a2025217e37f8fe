//! The search for cycles of waits, through metadata locks and row locks.
//!
//! ```text
//!   session A   waits for the metadata lock of t      behind B
//!   session B   ALTER t, waits for                    C
//!   session C   waits for a row that                  A has locked
//! ```
//!
//! The lock manager finds cycles through row locks alone. A cycle through both kinds contains a
//! context that waits for a metadata lock, and that context searches for it periodically.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::queue::{ContextId, Requests};

/// The transactions that a transaction waits for at a row, by their ids.
pub(super) type RowWaits = dyn Fn(u64) -> Vec<u64> + Send + Sync;

/// A node of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Party {
    Context(ContextId),
    /// A transaction at the row locks.
    Transaction(u64),
}

/// The contexts of a circle of waits through `start`.
pub(super) fn circle(
    requests: &Requests,
    row_waits: &RowWaits,
    start: ContextId,
) -> Option<Vec<ContextId>> {
    let start = Party::Context(start);
    let mut reached_from: FxHashMap<Party, Party> = FxHashMap::default();
    let mut frontier = VecDeque::from([start]);
    while let Some(party) = frontier.pop_front() {
        for next in waited_for(requests, row_waits, party) {
            if next == start {
                return Some(path_back(start, party, &reached_from));
            }
            if let std::collections::hash_map::Entry::Vacant(entry) = reached_from.entry(next) {
                entry.insert(party);
                frontier.push_back(next);
            }
        }
    }
    None
}

fn waited_for(requests: &Requests, row_waits: &RowWaits, party: Party) -> Vec<Party> {
    match party {
        Party::Context(context) => match requests.wait_of(context) {
            Some(wait) if wait.verdict.is_none() => {
                let blockers = requests.blockers(context, wait.table, wait.lock);
                blockers.into_iter().map(Party::Context).collect()
            }
            _ => requests.transaction_of(context).map(Party::Transaction).into_iter().collect(),
        },
        Party::Transaction(transaction) => {
            let holders = row_waits(transaction).into_iter().map(Party::Transaction);
            let own = requests.context_of(transaction).map(Party::Context);
            // A context that waits for nothing here leads back to its transaction, and no further.
            holders.chain(own).collect()
        }
    }
}

fn path_back(start: Party, end: Party, reached_from: &FxHashMap<Party, Party>) -> Vec<ContextId> {
    let before = |party: &Party| reached_from.get(party).copied().filter(|_| *party != start);
    std::iter::successors(Some(end), before)
        .filter_map(|party| match party {
            Party::Context(context) => Some(context),
            Party::Transaction(_) => None,
        })
        .collect()
}
