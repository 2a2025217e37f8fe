//! Commits whose threads have left. The thread that learns that a majority has their log answers
//! them. It has read a message of another member, or has synced this member's log.
//!
//! ```text
//!   committer   entered as left ─► durable? ─► taken by a round, or by who has the turn ─► leaves
//!   group       … the round is durable: position stored ─► has anybody left? ─► answered
//! ```
//!
//! Why no commit that was left is forgotten:
//!
//! * A committer is entered as left before it looks at the durable position. The position is stored
//!   before the look whether anybody has left. So one of the two sees the other.
//! * A committer leaves if a round has taken its log. Otherwise it has found the turn taken, or
//!   nothing to take although it wants log: then the holder of the turn, when it returns it, wakes
//!   the task `group-log`, which takes what is wanted.
//! * A writer that ends answers what is durable, and then tells the source its last word. That ends
//!   the rest, and a committer that comes later finds the failure.
//! * While no majority answers, nobody leaves. Those that have left before get the same error as
//!   those that wait: from the clock's task, which looks for them in each tick.

use super::driver::Shared;

impl Shared {
    /// No majority has answered for longer than the patience: nobody need wait for it any more.
    pub(super) fn refuse_left(&self) {
        let writer = self.core.lock().writer.clone();
        if let Some(writer) = writer.filter(|writer| writer.has_left()) {
            writer.answer(Some(&self.unavailable()));
        }
    }
}
