//! The redo log. Mini-transactions append their groups to a buffer that many threads fill. The log
//! store takes the groups from there and makes them durable, and all threads that wait for a round
//! are woken together.
//!
//! ```text
//!   consumed ≤ reserved              ring: [consumed, reserved) is in memory
//!   durable  ≤ consumed              what the log store has taken
//! ```
//!
//! Rules of this folder, cited by number:
//!
//! 1. Room in the ring is admitted before any latch is taken; an admitted append never waits.
//! 2. A group is published by its first word, which is stored last. The ring is zeroed behind the
//!    store, so a first word other than zero means that the whole group is present.
//! 3. Only the log store moves `consumed`, in one call at a time. A thread that waits for its
//!    commit may do the store's work, so it must hold no latch.
//! 4. After the writer has ended (a failed sync, a newer epoch), nothing more is acknowledged. If
//!    the store is only unavailable, a wait ends with an error, and the group may still become
//!    durable.
//! 5. Completions are called by a task of the store, or by the thread that registers them.
//! 6. The listeners of commits that were left are called by any thread that waited for the log or
//!    led a round, with nothing latched, and by a task of the store. A commit is entered before its
//!    thread looks whether it may leave. The thread that moves the durable position past it
//!    therefore finds it.
//! 7. What the log store takes is in the ring that replicas read ([`tail`]) before it is durable,
//!    if there is one.

pub mod buffer;
pub mod completions;
mod left_commits;
pub(crate) mod tail;
pub mod writer;

/// The region with the durable position of a node's log, in word 0.
pub(crate) const DURABLE_REGION: &str = "durable-lsn";
/// Word of the region: the epoch in which the node writes its log.
pub(crate) const EPOCH_WORD: usize = 1;
/// Words of the region.
pub(crate) const DURABLE_WORDS: usize = 2;

pub use buffer::{Admission, LogBuffer};
pub use completions::{CommitListener, Completion};
pub use writer::{RedoLog, RedoLogOptions};
