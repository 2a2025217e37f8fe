//! A Firn node in this process: what the binary starts, and what tests and benches start too.

pub mod memory;
pub mod node;
