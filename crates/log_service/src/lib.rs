//! The log of a group for processes that read it and never write it: page nodes, replicas, backup.
//!
//! ```text
//!   page node                                   members of the group
//!   RemoteLog ── hold, every so often ────────► each: LogService ─ a lease in its LogStore
//!      │     ◄── positions ───────────────────
//!      └ RemoteFollower ── follow ────────────► one: LogService ─ LogFollower
//!            ◄── durable groups, progress ─────
//! ```
//!
//! [`LogService`] serves the readers' half of any [`firn_api::LogStore`]. [`RemoteLog`] is a
//! `LogStore` that cannot be opened for writing: it knows several members and reads from any.
//!
//! Promises, cited by number:
//!
//! * L1. *Nothing past the durable position goes out.* A service compares each piece with what its
//!   store says is durable, and a client compares it with what the message says.
//! * L2. *The durable position of a client never goes back.* It is the highest one that any member
//!   has named. A member that is behind it is not asked for what it lacks.
//! * L3. *Log that a reader holds is there at a majority of the members.* Each member keeps a lease
//!   for each reader, and the client renews with every member. A reader begins once a majority has
//!   taken the lease, so it is dropped only if a majority has dropped it. A reader that *stays* is
//!   on the disks of that majority, and finds its log when it returns.
//! * L4. *A stream continues where it ended.* A follower that moves to another member asks there
//!   for the log from the end of what it has taken.
//! * L5. *A slow reader slows only itself.* A stream has a window of bytes, and its own thread at
//!   the member; log is truncated without a reader that holds back more than its limit.
//! * L6. *Everything ends by its time.* A member that does not answer costs an attempt, and a call
//!   ends with [`firn_api::LogError::Unavailable`] after the client's patience.
//!
//! `docs/formats/log_service.md` describes the bytes, and
//! `docs/decisions/2026-11-26-readers-are-registered-at-each-member.md` has the reasons for L3.

pub mod client;
pub mod message;
pub mod server;

pub use client::{RemoteLog, RemoteLogOptions};
pub use server::{LeaderHint, LogService, LogServiceOptions};

/// The number of the service in a link.
pub const LOG_SERVICE: firn_link::ServiceId = firn_link::ServiceId(0x0201);
