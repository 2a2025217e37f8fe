//! The primitives that lock-free parts and the lock manager synchronise with: the machine's, or
//! shuttle's when they are tested under many orders of steps (`--features shuttle`).

#[cfg(feature = "shuttle")]
pub(crate) use firn_base::sync::explored::*;
#[cfg(not(feature = "shuttle"))]
pub(crate) use firn_base::sync::machine::*;
