//! The table of metadata locks compared with a list of grants; stories about waits; threads.

#[cfg(feature = "shuttle")]
mod interleavings;
#[cfg(not(feature = "shuttle"))]
mod model;
#[cfg(not(feature = "shuttle"))]
mod stories;
