//! System variables: their definitions, their global values, and those of a session.
//!
//! ```text
//!   definition ──► Global values ──copied when a session begins──► session values
//!                   SET GLOBAL                                       SET SESSION
//! ```
//!
//! A session keeps the global values with which it began (shared, behind an `Arc`) and the values
//! it has set itself, so thousands of sessions cost little.
//!
//! Invariant: every stored value has passed [`Definition::check`].

mod definition;
mod entries;
mod persisted;
mod store;
mod table;
#[cfg(test)]
mod tests;
mod without_effect;

pub use definition::{Definition, Kind, Scope, Setting};
pub use persisted::PersistedVariables;
pub(crate) use persisted::{decode as decode_setting, encode as encode_setting};
pub use store::{GlobalVariables, KeptGlobals, SessionVariables};
pub use table::find;

pub(crate) use table::DEFINITIONS;
