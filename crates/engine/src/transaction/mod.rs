//! Transactions (PolarTrans, paper 000 §4.2): ids, timestamps, snapshots, versions, rollback and purge.

pub mod active_list;
pub mod commit_order;
pub mod cursor;
pub mod handle;
pub mod prepared;
pub mod read;
pub mod snapshots;
pub mod system;
pub mod table;
pub(crate) mod undo;
pub(crate) mod versions;
pub mod write;

pub use cursor::{Cursor, Direction, KeyRange};
pub use handle::{IsolationLevel, Savepoint, Transaction, WaitPolicy};
pub use read::ReadMode;
pub use system::{IdLimits, SnapshotKind, TransactionOptions, TransactionSystem};

#[cfg(test)]
mod tests;
