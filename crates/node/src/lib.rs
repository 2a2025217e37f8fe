//! A Firn node in one process: the engine over its log and pages ([`storage::NodeStorage`]), and
//! the MySQL port over it. The binary, the processes of clusters, the benches and the tests start
//! it.
//!
//! **Architecture invariant:** nothing here knows a command line, a configuration file or an
//! environment variable.

#![allow(clippy::disallowed_types, reason = "files and sockets of the user who runs the binary")]

pub mod allocator;
pub mod archived;
pub mod descriptors;
pub mod endpoint;
pub mod engine_status;
pub mod http;
pub mod load;
pub mod memory;
pub mod metrics;
pub mod node;
mod options;
pub mod replica;
pub mod report;
mod reporter;
mod server_uuid;
pub mod size;
pub mod storage;

pub use firn_compute::{statement_effect, statement_route};
