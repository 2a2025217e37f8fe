//! The table of metadata locks beside a list of grants in which everything is compared with
//! everything, stories about waits, and threads.

#[cfg(feature = "shuttle")]
mod interleavings;
#[cfg(not(feature = "shuttle"))]
mod model;
#[cfg(not(feature = "shuttle"))]
mod stories;
