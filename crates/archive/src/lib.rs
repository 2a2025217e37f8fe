//! Continuous backup in an object store, restores to a moment, and clones.
//!
//! ```text
//!   database                      archive                                new directory
//!   log ──── Archiver ──────────► log/…      whole groups, with moments ─┐
//!   pages ─┘   (one task)         pages/…    images, in packs ───────────┤ prepare ─► log, BASE
//!                                 sets/…     which packs belong together │            │
//!                                 manifest/… what counts of all that ────┘            ▼
//!                                                                        ArchivedBase: images as
//!                                                                        they are needed
//! ```
//!
//! Promises, cited by number:
//!
//! * A1. *The manifest decides.* An object counts once a manifest names it, and the manifest with
//!   the highest number counts. An object is durable before a manifest names it, and is removed
//!   after a manifest without it is durable.
//! * A2. *One writer.* A manifest is written under a number that nobody has used. A writer that
//!   finds its number taken has been replaced, and stops. In a cluster, a manifest also says in
//!   which choice its writer was chosen, and a process that was chosen earlier does not take over.
//! * A3. *Log is archived once, in order, without a hole that is not named.* What was lost because
//!   the store was away for too long is a gap in the manifest; moments within it cannot be
//!   restored.
//! * A4. *An image set needs the log from its start on.* Every group that ends at or before a set's
//!   start is in its images or those of the sets before it, up to the last full set. The images are
//!   read while the database changes them; nothing that they show, a dropped space included, is
//!   newer than the set's end. A restore to that position or a later one can begin with it.
//! * A5. *The database does not wait.* The archiver reads log and pages as any reader does. If the
//!   store is away, log is kept up to a limit, and then no longer.
//! * A6. *What is read is checked*: every object by its checksums, every image as the page that it
//!   is. Damage is named with the object.
//!
//! A moment is a position of the log together with a time at which the log had grown so far. The
//! archiver notes one every tenth of a second, so no commit record needs a time. The time is that
//! of the node which writes, and only while no other node can be writing: elsewhere a commit is
//! known later than it is acknowledged. Restoring to a time means the last moment at or before it:
//! all that was acknowledged by then is there, and nothing that began later.

mod archive;
mod archiver;
mod base;
mod error;
pub mod format;
mod names;
mod restore;
mod verify;

pub use archive::{Archive, Coverage, Moment, RestorePlan};
pub use archiver::{
    ArchiveOptions, ArchiveSource, ArchiveStatus, ArchivedPages, ArchivedWriter, Archiver,
    LocalWriter, TakenOver, mark_now,
};
pub use base::{ArchivedBase, BaseDescription};
pub use error::ArchiveError;
pub use restore::{Progress, Restore, Restored};
pub use verify::{Finding, VerifyReport, verify};
