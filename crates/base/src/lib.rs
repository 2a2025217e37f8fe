//! The foundation of every crate of Firn: identifiers, and the world outside the process (clock,
//! disk, network, randomness, threads) behind traits, which the simulator implements too.
//!
//! Architecture invariant: this crate knows nothing about pages, logs or transactions.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this is where the operating system is asked"
)]

pub mod bytes;
pub mod clock;
pub mod disk;
pub mod environment;
pub mod event;
mod extents;
pub mod ids;
pub mod memory;
pub mod network;
pub mod number_text;
pub mod pool_thread;
pub mod random;
pub mod reaper;
mod scheduler;
pub mod stack;
pub mod sync;
pub mod task;
pub mod temporal_text;

pub use environment::Environment;
pub use extents::Extents;
pub use ids::{Cts, Hlc, IndexId, LogStreamId, Lsn, PageId, PageNo, SpaceId, TableId, TrxId};
