//! Tests of the lock manager: stories, a random walk compared with a model, threads, and orders of
//! steps that shuttle chooses.

#[cfg(feature = "shuttle")]
mod interleavings;
#[cfg(not(feature = "shuttle"))]
mod model;
#[cfg(not(feature = "shuttle"))]
mod scenario;
#[cfg(not(feature = "shuttle"))]
mod stories;
#[cfg(not(feature = "shuttle"))]
mod threads;
