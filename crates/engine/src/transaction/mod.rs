//! Transactions (PolarTrans, paper 000 §4.2): ids, timestamps, snapshots, versions, rollback and
//! purge.

pub mod active_list;
pub(crate) mod behind;
pub mod commit_order;
pub mod cursor;
pub(crate) mod described;
pub(crate) mod durable_commits;
pub mod handle;
pub(crate) mod handover;
pub mod prepared;
pub mod read;
pub mod read_transaction;
pub mod remote;
pub mod renewal;
pub mod run;
pub mod snapshots;
pub mod system;
pub mod table;
pub(crate) mod undo;
pub(crate) mod versions;
pub mod write;

pub use cursor::{Cursor, KeyRange};
pub use firn_api::rows::{Direction, IsolationLevel, Prepared, ReadMark, ReadMode, WaitPolicy};
pub use handle::{Savepoint, Transaction};
pub use read_transaction::{ReadTransaction, RecordReader};
pub use run::RecordRun;
pub use system::{IdLimits, SnapshotKind, TransactionOptions, TransactionSystem};
pub use versions::Versions;

#[cfg(test)]
mod tests;
