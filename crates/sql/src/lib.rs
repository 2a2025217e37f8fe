//! SQL: re-exports of its crates, and the stages that have no crate yet: binder, planner, row
//! executor.
//!
//! ```text
//!   text ──► grammar ──► bind ──► logical plan ──► plan ──► physical plan ──► execute ──► rows
//!                          │                         │                            │
//!                       catalog                  statistics                   api::rows (a node)
//!             types and functions serve all of them
//! ```

pub use firn_sql_catalog as catalog;
pub use firn_sql_collation as collation;
pub use firn_sql_functions as functions;
pub use firn_sql_grammar as grammar;
pub use firn_sql_types as types;
pub use firn_sql_types::{error, watch};

pub mod bind;
pub mod execute;
pub mod expression;
pub mod logical;
pub mod plan;
pub mod prepare;
#[cfg(test)]
mod test_support;
