//! The log of one member, as its driver sees it.
//!
//! ```text
//!   begin ≤ durable in the group ≤ synced ≤ written          (log positions)
//!     │        │                    │         └ write
//!     │        │                    └ sync
//!     │        └ set_durable: what pages may apply, and what readers of the stream get
//!     └ release: log before it is gone
//! ```
//!
//! Rules for drivers, cited by number:
//!
//! 1. One thread at a time calls `write`, `sync` and `release`. Any thread may call the rest.
//! 2. Writes are carried out in the order in which the member asked for them, each whole. A write
//!    that found no room is tried again before the next one.
//! 3. Only `sync` allows an answer to [`Member::synced`]. What was written may become durable
//!    earlier, but never a write before an earlier one: after a crash, the disk has what was
//!    synced, and of what was written after that a beginning.
//! 4. After [`LogError::Failed`] every later call fails, and the process opens the log again.
//!
//! [`Member::synced`]: firn_consensus::Member::synced

use firn_api::{LogError, Room, Watermarks};
use firn_base::Lsn;
use firn_consensus::{Saved, Write};

/// The log of one member of a group. One thread writes; any number reads.
pub trait MemberLog: Send + Sync {
    /// What the disk had when the log was opened. Hands it over: only the first call gets it.
    ///
    /// # Panics
    /// If it was called before.
    fn saved(&self) -> Saved;

    /// Writes what a member asks for. `bytes` are the log bytes of `write.append`, one entry after
    /// the other, each entry a run of whole log groups. Not durable yet. Blocks for I/O.
    ///
    /// Votes, restarts and truncations are rare, and are synced on the spot, after everything
    /// that was written before.
    ///
    /// A restart ends the readers of the log: the page store beside it is opened again, over
    /// pages that include everything before the new base.
    ///
    /// # Errors
    /// [`LogError::NoRoom`]: no entry was taken. Try the same write again, as a whole.
    /// [`LogError::Failed`].
    fn write(&self, write: &Write, bytes: &[u8]) -> Result<(), LogError>;

    /// Makes everything that was written durable. Blocks for I/O.
    ///
    /// # Errors
    /// [`LogError::Failed`].
    fn sync(&self) -> Result<(), LogError>;

    /// Appends the log bytes `from..to` to `into`, durable or not: for messages to members that
    /// are behind. Bytes that are truncated during the call may be mixed with those that replace
    /// them; the receiver of an entry compares its checksum. Blocks for I/O.
    ///
    /// # Errors
    /// [`LogError::OutOfRange`] if it is not kept or not written, [`LogError::Damaged`],
    /// [`LogError::Unreadable`].
    fn read(&self, from: Lsn, to: Lsn, into: &mut Vec<u8>) -> Result<(), LogError>;

    /// The group's durable position, as [`firn_consensus::Command::Durable`] names it. Pages and
    /// readers of the stream get log up to here. It never goes back. Does not block.
    fn set_durable(&self, lsn: Lsn);

    /// Forgets durable log that ends at or before `lsn`, in whole segments, as far as no reader and
    /// no page needs it. Returns where the kept log begins, for
    /// [`firn_consensus::Member::release`]. Blocks for I/O. If the disk fails here, the next
    /// write reports it.
    fn release(&self, lsn: Lsn) -> Lsn;

    /// The log before a base at which this member begins again had these watermarks. Called before
    /// the write of that restart, which makes them durable. Does not block.
    fn raise_watermarks(&self, watermarks: Watermarks);

    /// The highest watermarks in the durable log, with those of log that is released or that other
    /// members had before this one began at a base. May block for I/O.
    ///
    /// # Errors
    /// [`LogError::Damaged`], [`LogError::Unreadable`], [`LogError::Failed`].
    fn watermarks(&self) -> Result<Watermarks, LogError>;

    /// How much room is left. Does not block.
    ///
    /// # Errors
    /// [`LogError::Failed`].
    fn room(&self) -> Result<Room, LogError>;

    /// Stops the background tasks, and waits for them. Reads still work; writes fail.
    fn close(&self);
}
