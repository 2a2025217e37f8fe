//! The storage engine of a database node: B-link trees, transactions, undo, row locks, redo and recovery.

pub mod lock;
pub mod log;
pub mod transaction;
