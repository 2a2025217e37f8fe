//! The catalog of tables: models of a node's definitions, changes of them (DDL), and the statements
//! and tables that show them.
//!
//! ```text
//!   binder ──► relation ──► session ──► lookup ──► api::rows::DatabaseNode
//!                 │                       └─ build: TableDefinition + options ──► model
//!                 └─ virtual tables: information_schema …
//!   ANALYZE ──► analyze ──► statistics, which planner and model read
//!   CREATE, ALTER, DROP ──► ddl ──► api::rows::Definitions
//!   SHOW, DESCRIBE ───────► show ──► rows, or a query over virtual tables
//! ```

pub mod analyze;
pub mod build;
pub mod ddl;
pub mod definition_text;
pub mod filled_texts;
pub mod information_schema;
pub mod lookup;
pub mod model;
pub mod notation;
pub mod options;
pub mod properties;
pub mod relation;
pub mod session;
pub mod show;
pub mod statistics;
#[cfg(test)]
mod test_support;
pub mod type_text;
pub mod virtual_schemas;
pub mod virtual_table;
pub mod virtual_table_metadata;

pub use lookup::Catalog;
pub use relation::Relation;
pub use session::{SessionCatalog, SessionTables};
