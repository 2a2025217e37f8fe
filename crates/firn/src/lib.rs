//! A Firn node in this process: what the binary starts, and what tests and benches start too.

#![allow(clippy::disallowed_types, reason = "files and sockets of whoever runs the binary")]

pub mod allocator;
pub mod descriptors;
pub mod endpoint;
pub mod engine_status;
pub mod figures;
pub mod memory;
pub mod metrics;
pub mod node;
mod server_uuid;
