//! Row, range and table locks.
//!
//! A write takes no lock here: the record carries the id of its writer, and as long as that transaction is
//! active the record is locked by it (an *implicit* lock). An *explicit* lock, which is what this module
//! keeps, exists for locking reads, for those who wait, and for a writer that somebody waits for.
//!
//! ```text
//!   LockManager            mutexes, waiting                       manager, group, owner, waits
//!     └─ LockTable         decisions: granted or waiting, for whom  table, queue, range
//!     └─ WaitGraph         decisions: deadlocks                      graph
//! ```
//!
//! The rules that the parts follow are numbered in the `README.md` of this folder.

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
