//! The storage engine of a database node: B-link trees, transactions, undo, row locks, redo and
//! recovery.

pub mod check;
pub mod dictionary;
pub mod engine;
pub mod error;
mod free_list;
pub mod lock;
pub mod log;
pub mod metadata_lock;
pub mod mini_transaction;
mod modifications;
pub mod pages;
pub mod recovery;
pub mod replica;
pub mod rows;
pub mod sequence;
pub mod space;
mod sync;
pub mod table;
pub mod transaction;
pub mod tree;

pub use engine::{Engine, EngineOptions, Storage};
pub use error::EngineError;
pub use recovery::RecoveryReport;

#[cfg(test)]
mod test_support;
