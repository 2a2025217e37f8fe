//! SQL: grammar, types and functions, catalog model, planner, row executor.
//!
//! ```text
//!   text ──► grammar ──► bind ──► plan ──► execute ──► rows
//!                          │        │         │
//!                       catalog  statistics   api::rows (a database node)
//!             types and functions serve all of them
//! ```

pub use firn_sql_collation as collation;

pub mod bind;
pub mod catalog;
pub mod error;
pub mod execute;
pub mod expression;
pub mod functions;
pub mod grammar;
pub mod plan;
pub mod types;
pub mod watch;

#[cfg(test)]
mod test_support;
