//! Tests of a whole node, an engine over log and pages: killed as a real process over a real disk,
//! crashed under the simulator over its own disk, over a log in copies elsewhere, over page nodes,
//! over a replicated group or over a whole storage tier, and checked by the reads of its
//! transactions and of its replicas.
//!
//! ```text
//!   FIRN_ROUNDS=200 FIRN_SEED=7 cargo test --release -p firn-testing --test node kill_loop -- --nocapture
//!   FIRN_SEEDS=0..10000         cargo test --release -p firn-testing --test node simulated -- --nocapture
//! ```

mod chunk_machines;
mod chunks;
mod crowd;
mod group;
mod isolation;
mod kill_loop;
mod members;
mod mirror;
mod page_machines;
mod page_nodes;
mod plan;
mod quorum;
mod replica;
mod restart_time;
mod simulated;
mod structure;
mod tier;
mod verify;
mod worker;
