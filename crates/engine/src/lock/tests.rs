//! Tests of the lock manager: stories, a random walk beside a model, and threads.

mod model;
mod scenario;
mod stories;
mod threads;
