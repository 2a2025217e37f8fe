//! Redo: the log's groups and records, and the one function that changes a page.

pub mod apply;
pub mod change;
pub mod group;

pub use apply::{ApplyError, apply};
pub use change::{Change, ChangeDamage};
pub use group::{Group, GroupBuilder, GroupDamage, RawRecord};
