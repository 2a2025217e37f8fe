//! Sessions: execution of clients' statements, between the wire and a database node.
//!
//! ```text
//!   wire ──► service ──► session ──► sql: grammar, plan, execute ──► api::rows (a database node)
//!                           ├─ accounts, variables      what it may do, how it is set
//!                           ├─ plan_cache, status       shared by all sessions (instance)
//!                           └─ server                   shared by all compute nodes
//! ```
//!
//! **Architecture invariant:** nothing here knows where rows are; a session uses a node only
//! through [`firn_api::rows`].

pub mod accounts;
mod belongings;
pub mod columns;
mod commits;
pub mod instance;
mod left_sessions;
pub mod logs;
pub mod plan_cache;
mod process_state;
mod read_consistency;
pub mod server;
mod server_figures;
pub mod service;
pub mod session;
pub mod session_facts;
mod statement_cut;
pub mod statement_effect;
pub mod statement_kind;
pub mod statement_route;
pub mod statistics_keeper;
pub mod status;
pub mod system_table;
pub mod variables;
pub mod wire_rows;

pub use instance::{GlobalHook, Instance, InstanceOptions, OpenError};
pub use service::SqlService;
pub use statistics_keeper::StatisticsKeeper;
