//! The redo writer: mini-transactions append their groups to a buffer that many threads fill, one task
//! writes the buffer to the log store and makes it durable, and committers are woken in batches.
//!
//! ```text
//!   consumed ≤ reserved                     ring: [consumed, reserved) is in memory
//!   durable  ≤ written ≤ consumed           what the log store was given
//! ```
//!
//! Rules of this folder, cited by number:
//!
//! 1. Room in the ring is admitted before any latch is taken; once admitted, an append never waits.
//! 2. A group is published by its first word, stored last. The ring is zeroed behind the writer, so a
//!    first word that is not zero means that the whole group is there.
//! 3. Only the writer task moves `consumed`, appends to the log store and moves `durable`.
//! 4. After a failed sync nothing is acknowledged any more.

pub mod buffer;
pub mod committers;
pub mod writer;

pub use buffer::{Admission, LogBuffer};
pub use writer::{RedoLog, RedoLogOptions};
