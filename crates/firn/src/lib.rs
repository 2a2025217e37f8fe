//! A Firn node in this process: what the binary starts, and what tests and benches start too.

pub mod allocator;
pub mod descriptors;
pub mod endpoint;
pub mod engine_status;
pub mod figures;
pub mod memory;
pub mod metrics;
pub mod node;
mod server_uuid;
