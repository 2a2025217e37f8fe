//! The primitives that the writer's role synchronises with: the machine's, or shuttle's when the role
//! is tested under many orders of steps (`--features shuttle`).

#[cfg(feature = "shuttle")]
pub(crate) use firn_base::sync::explored::*;
#[cfg(not(feature = "shuttle"))]
pub(crate) use firn_base::sync::machine::*;
