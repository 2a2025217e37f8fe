//! The words of a region: the machine's atomics, or shuttle's when tests explore many orders of
//! steps (`--features shuttle`).

#[cfg(feature = "shuttle")]
pub(crate) use shuttle::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(feature = "shuttle"))]
pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
