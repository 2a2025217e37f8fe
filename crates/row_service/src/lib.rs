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
//! * M1. *The client chooses handles.* An object therefore needs no call to come into being: what
//!   happens to a transaction before its first call (it begins, its settings) is sent with that
//!   call.
//! * M2. *One thread at a time uses a handle*, like the object behind it. Only
//!   [`message::Message::Cancel`] comes from other threads. It names a call by its number, and has
//!   no effect on any other call.
//! * M3. *Each reply carries what the caller would otherwise have to ask for*: the version of the
//!   node's definitions, and a transaction's id, snapshot and marks.
//! * M4. *A table version that was handed out stays usable at the node until the client returns
//!   it.* The client sends definitions that it has only by their versions, and so does the node.
//! * M5. *Nothing outlives its client*: what [`server::RowService`] holds for it ends with the
//!   service. An open transaction is rolled back.
//! * M6. *A lost reply is not a lost call.* If the link fails during a commit, the error is
//!   [`firn_api::rows::RowsError::OutcomeUnknown`]; at any other time it is
//!   [`firn_api::rows::RowsError::Unavailable`], and the transaction is gone.
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
pub use codec::{Damage, decode, encode};
pub use link::{Link, LinkError, Loopback};
pub use server::RowService;
