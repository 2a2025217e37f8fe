//! The primitives that the pool synchronises with: the machine's, or shuttle's when the pool is tested
//! under every order of steps (`--features shuttle`).

#[cfg(feature = "shuttle")]
pub(crate) use firn_base::sync::explored::*;
#[cfg(not(feature = "shuttle"))]
pub(crate) use firn_base::sync::machine::*;

/// How often a latch is tried before its waiter sleeps.
pub(crate) const SPINS: u32 = if cfg!(feature = "shuttle") { 1 } else { 40 };
