//! Workloads against any server that speaks the MySQL protocol: one driver measures Firn and its
//! peers.
//!
//! ```text
//!   command_line ──► Suite (tpcc, sysbench …) ──► run ──► Measured ──► summary, plot ──► output
//!                         │                        │
//!                      load, client ◄──────────────┘
//! ```
//!
//! Reports, statistics and progress, which all measurements share, are here too.
//!
//! Architecture invariant: nothing here knows Firn's engine or SQL layer; a server is a URL.

#![allow(clippy::disallowed_types, reason = "a client beside the node, under no simulator")]

mod bars;
pub mod client;
mod command_line;
mod dispatch;
mod error;
mod figure;
mod flags;
pub mod interruptions;
pub mod live;
pub mod load;
pub mod measure;
pub mod output;
mod plot;
pub mod progress;
pub mod random;
pub mod report;
pub mod run;
pub mod statistics;
mod suites;
pub mod summary;
pub mod sysbench;
pub mod tatp;
pub mod tpcc;
pub mod tpch;
pub mod watch;
pub mod workload;
pub mod ycsb;

pub use command_line::commands;
pub use dispatch::dispatch;
pub use error::{BenchError, Conflict, message_of};
