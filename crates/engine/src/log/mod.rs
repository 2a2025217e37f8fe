//! The redo writer: mini-transactions append their groups to a buffer that many threads fill, whoever has the
//! writer's role writes the buffer to the log store and makes it durable, and those who wait are woken
//! together.
//!
//! ```text
//!   consumed ≤ reserved                                 ring: [consumed, reserved) is in memory
//!   durable  ≤ written ≤ taken = consumed               what the log store was given
//! ```
//!
//! Rules of this folder, cited by number:
//!
//! 1. Room in the ring is admitted before any latch is taken; once admitted, an append never waits.
//! 2. A group is published by its first word, stored last. The ring is zeroed behind the writer, so a
//!    first word that is not zero means that the whole group is there.
//! 3. Only who has the writer's role moves `consumed`, appends to the log store and moves `durable`. The role is
//!    no latch: it is held across writes and syncs, nobody spins for it, and who waits for it waits on an event,
//!    with nothing latched.
//! 4. After a failed sync, or when who has the role dies with groups in its hands, nothing is written any more
//!    and nothing is acknowledged any more.
//! 5. Those whose groups are durable are told when the role has been given back, or when the next round has been
//!    written and its sync is about to begin, so that the disk does not wait for them. One who waits for the next
//!    round is woken with the role's return. Whoever takes the role works until its own group is durable, not
//!    longer. Nobody takes it before those have arrived whom the last round has woken, for two syncs at most.
//! 6. Completions are called by the task `log-writer`, while the disk is at work on its next round if there is one, or
//!    by who hands them over; never by a committer that has, or had, the role.

pub mod buffer;
pub mod completions;
mod role;
pub mod writer;

pub use buffer::{Admission, LogBuffer};
pub use completions::{CommitListener, Completion};
pub use writer::{RedoLog, RedoLogOptions};
