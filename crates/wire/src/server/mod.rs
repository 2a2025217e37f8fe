//! The threads that serve connections.

mod connections;
mod options;

pub use connections::{ConnectionControl, ConnectionState, Connections};
pub use options::{LimitValues, Limits, ServerOptions};
