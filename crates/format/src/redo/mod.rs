//! Redo: the log's groups and records, and the one function that changes a page.

pub mod group;

pub use group::{Group, GroupBuilder, GroupDamage, RawRecord};
