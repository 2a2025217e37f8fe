//! The pool's synchronisation primitives: the machine's, or shuttle's when the pool is tested under
//! many interleavings (`--features shuttle`).

#[cfg(feature = "shuttle")]
pub(crate) use firn_base::sync::explored::*;
#[cfg(not(feature = "shuttle"))]
pub(crate) use firn_base::sync::machine::*;

/// How often a waiter tries a latch before it sleeps.
pub(crate) const SPINS: u32 = if cfg!(feature = "shuttle") { 1 } else { 40 };
