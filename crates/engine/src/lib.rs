//! The storage engine of a database node: B-link trees, transactions, undo, row locks, redo and recovery.

pub mod error;
pub mod lock;
pub mod log;
pub mod mini_transaction;
pub mod pages;
pub mod space;
pub mod transaction;
pub mod tree;

pub use error::EngineError;

#[cfg(test)]
mod test_support;
