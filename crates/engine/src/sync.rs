//! The synchronisation primitives of lock-free parts and of the lock manager: the machine's, or
//! shuttle's when tests explore many orders of steps (`--features shuttle`).

#[cfg(feature = "shuttle")]
pub(crate) use firn_base::sync::explored::*;
#[cfg(not(feature = "shuttle"))]
pub(crate) use firn_base::sync::machine::*;
