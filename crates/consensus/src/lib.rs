//! Replicated log groups: which member may write a log, and how far the log is durable.
//!
//! ```text
//!              tick · receive(message) · synced(write) · propose(batches) · read
//!                                     │
//!                               ┌─────▼─────┐
//!                               │  Member   │   no clock, no disk, no network
//!                               └─────┬─────┘
//!        Send(message) · Write(entries) · Durable(position) · Lead(term) · Follow(term)
//! ```
//!
//! A group is a handful of processes that keep copies of one log stream. One of them leads: it runs
//! the engine that writes, and its [`Term`] is the epoch that fences earlier writers. The log's
//! bytes are not here. An [`Entry`] names a range of log positions, and the process that drives a
//! [`Member`] has the bytes in its log buffer or in its segment files.
//!
//! The protocol is Raft, as the library `raft` has it. This crate adds what the library leaves to
//! its users: writes and sends that are in order, a leader lease, roles, priorities, catch-up from
//! pages, and messages in Firn's format. [`member`] has the invariants.

mod command;
mod entry;
mod index;
mod library;
pub mod member;
mod members;
mod message;
mod options;
mod take_over;

pub use command::{Command, Read, ReadId, Vote, Write, WriteNumber};
pub use entry::{Base, Batch, Content, Entry, Index, Term};
pub use member::{Member, ReceiveError, Refusal, Saved, SavedError};
pub use members::{MAX_CHANGES, MemberChange, MemberId, Members, MembersError, Role};
pub use message::{Message, MessageError, MessageKind};
pub use options::{Options, OptionsError, RestartAt};
pub use take_over::take_over;
