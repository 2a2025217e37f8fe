//! The synchronisation primitives of the writer's role: the machine's, or shuttle's when the role
//! is tested under many interleavings (`--features shuttle`).

#[cfg(feature = "shuttle")]
pub(crate) use firn_base::sync::explored::*;
#[cfg(not(feature = "shuttle"))]
pub(crate) use firn_base::sync::machine::*;
