//! SQL: the row executor, and the face of the crates that the executor stands on.
//!
//! ```text
//!   text ──► grammar ──► bind ──► logical plan ──► plan ──► physical plan ──► execute ──► rows
//!                          │                         │                            │
//!                       catalog                  statistics                   api::rows (a node)
//!             types and functions serve all of them
//! ```

pub use firn_sql_bind as bind;
pub use firn_sql_catalog as catalog;
pub use firn_sql_collation as collation;
pub use firn_sql_functions as functions;
pub use firn_sql_grammar as grammar;
pub use firn_sql_logical as logical;
pub use firn_sql_logical::expression;
pub use firn_sql_plan as plan;
pub use firn_sql_types as types;
pub use firn_sql_types::{error, watch};

pub mod execute;
pub mod prepare;
#[cfg(test)]
mod test_support;
#[cfg(test)]
mod tests;
