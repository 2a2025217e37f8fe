//! The redo log: mini-transactions append their groups to a buffer that many threads fill, the log
//! store takes them from there and makes them durable, and those who wait are woken together.
//!
//! ```text
//!   consumed ≤ reserved              ring: [consumed, reserved) is in memory
//!   durable  ≤ consumed              what the log store has taken
//! ```
//!
//! Rules of this folder, cited by number:
//!
//! 1. Room in the ring is admitted before any latch is taken; once admitted, an append never waits.
//! 2. A group is published by its first word, stored last. The ring is zeroed behind the store, so
//!    a first word that is not zero means that the whole group is there.
//! 3. Only the log store moves `consumed`, by one call at a time. A thread that waits for its
//!    commit may do the store's work, so it waits with nothing latched.
//! 4. When the writer has ended (a failed sync, a newer epoch), nothing is acknowledged any more.
//!    When the store is merely unavailable, a wait ends with an error and the group may still
//!    become durable.
//! 5. Completions are called by a task of the store, or by the thread that hands them over.

pub mod buffer;
pub mod completions;
pub mod writer;

pub use buffer::{Admission, LogBuffer};
pub use completions::{CommitListener, Completion};
pub use writer::{RedoLog, RedoLogOptions};
