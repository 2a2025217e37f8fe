//! Row, range and table locks.
//!
//! A write takes no lock here: the record carries its writer's id, and while that transaction is
//! active, the id locks the record (an *implicit* lock). This module keeps *explicit* locks, which
//! exist for locking reads, for waiters, and for a writer that a transaction waits for.
//!
//! ```text
//!   LockManager            mutexes, waiting                       manager, group, owner, waits
//!     └─ LockTable         decisions: granted or waiting, for whom  table, queue, range
//!     └─ WaitGraph         decisions: deadlocks                      graph
//! ```
//!
//! The `README.md` of this folder has the numbered rules.

mod graph;
mod group;
mod manager;
mod occupancy;
mod owner;
mod queue;
mod range;
mod statistics;
mod table;
mod target;
mod waits;

#[cfg(test)]
mod tests;

pub use manager::{LockError, LockManager, Outcome, TryOutcome, Wait};
pub use statistics::{LockInfo, LockStatistics, WaitInfo};
pub use target::{Extent, KeyRange, LockMode, LockSpace, LockTarget, Locked};
pub use waits::{DeadlockParty, DeadlockReport};
