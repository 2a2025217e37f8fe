//! A remote database node: [`firn_api::rows`] as messages.
//!
//! ```text
//!   compute node                                     database node
//!   sql ─► RemoteNode ─ encode ─► Link ─► decode ─ RowService ─► DatabaseNode
//!            │  RemoteTransaction, RemoteScan, …        │  objects by handle: transactions, their
//!            │  RemoteTable: definition and codecs      │  scans, lock contexts, changes, builds
//!            └─ what it last heard of the node          └─ tables that were handed out
//! ```
//!
//! Rules, cited by number:
//!
//! M1. *The client chooses handles.* So an object needs no call to come into being: what is said to
//!     a transaction before its first call (that it begins, its settings) rides on that call. M2.
//!     *A handle is used by one thread at a time*, as the objects behind it;
//!     [`message::Message::Cancel`] alone comes from others. It names a call by its number, and has
//!     no effect on any other call. M3. *Each reply carries what the caller would otherwise have to
//!     ask for*: the version of the node's definitions, and a transaction's id, snapshot and marks.
//!     M4. *A table version that was handed out stays usable at the node until the client gives it
//!     back.* The client sends definitions that it has by their versions only, and so does the
//!     node. M5. *Nothing outlives its client*: what [`server::RowService`] holds for it ends with
//!     the service. An open transaction is rolled back.
//!     M6. *A lost reply is not a lost call.* A link that fails during a commit answers
//!     [`firn_api::rows::RowsError::OutcomeUnknown`], any other time
//!     [`firn_api::rows::RowsError::Unavailable`], after which the transaction is gone.
//!
//! `docs/formats/row-messages.md` describes the bytes.

pub mod client;
mod codec;
pub mod link;
pub mod message;
pub mod server;
#[cfg(test)]
mod tests;

pub use client::RemoteNode;
pub use codec::Damage;
pub use link::{Link, LinkError, Loopback};
pub use server::RowService;
