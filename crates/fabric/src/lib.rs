//! One-sided memory: regions of words that somebody else may read and change without running any code of
//! the owner's database threads (papers 000 §4.3, 003: RDMA verbs).
//!
//! This build has the in-process fabric: a region is an array of atomics, and a remote handle is another
//! reference to it. What lives in regions (transaction table, timestamps, durable LSN) is laid out in
//! words from the start, so that shared memory, TCP or RDMA can serve the same regions unchanged.

pub mod in_process;
pub mod region;
mod words;

pub use in_process::{InProcessFabric, OwnedRegion};
pub use region::{FabricError, Region};
