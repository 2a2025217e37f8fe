//! What Firn is tested with. Nobody imports this crate outside of tests.
//!
//! * [`simulation`] runs a whole cluster in one process, one task at a time, from a seed.

pub mod random;
pub mod simulation;
