//! Metadata locks: what keeps a table's definition as it is while somebody uses it.
//!
//! ```text
//!   statement   Read, Write            to the end of its transaction
//!   DDL         Upgradable ─► NoWrite ─► Exclusive ─► (downgrade)
//!   LOCK TABLES ReadOnly, NoReadWrite  until UNLOCK TABLES
//! ```
//!
//! A session has one [`MetadataContext`] for its life; its own locks never conflict with each
//! other. Who grants the locks is behind these traits: a table of this process, or a service that
//! other nodes ask.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use firn_base::TableId;

use super::{Cancellation, RowsResult};

/// What a lock allows its holder, and what it leaves to others. The names in parentheses are
/// MySQL's.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub enum MetadataLock {
    /// Knows the definition, and will use it (`SHARED`).
    Shared,
    /// Reads rows (`SHARED_READ`).
    Read,
    /// Writes rows, or reads them with locks (`SHARED_WRITE`).
    Write,
    /// Reads rows and will change the definition; others read and write (`SHARED_UPGRADABLE`).
    Upgradable,
    /// Reads rows, and nobody writes them (`SHARED_READ_ONLY`).
    ReadOnly,
    /// As `Upgradable`, but nobody else writes (`SHARED_NO_WRITE`).
    NoWrite,
    /// Nobody else reads or writes rows (`SHARED_NO_READ_WRITE`).
    NoReadWrite,
    /// Nobody else uses the table in any way (`EXCLUSIVE`).
    Exclusive,
}

/// For how long a lock is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum LockDuration {
    /// Until [`MetadataContext::release_transaction`].
    Transaction,
    /// Until [`MetadataContext::release_explicit`].
    Explicit,
}

/// How long a request may wait.
#[derive(Debug, Clone, Copy)]
pub struct LockPatience<'a> {
    /// The longest wait.
    pub timeout: Duration,
    /// By which others call the wait off.
    pub cancelled: Option<&'a Cancellation>,
    /// The id that the waiter's row locks are held under, if it has any: deadlocks may go through
    /// them.
    pub transaction: Option<u64>,
}

/// A place among the transaction's locks, to which they can be given back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LockMark {
    /// Locks of the fast path.
    pub fast: usize,
    /// Other locks.
    pub slow: u64,
}

/// Locks that [`MetadataContext::detach`] has taken out of a context.
pub type DetachedLocks = Option<Box<dyn Any + Send + Sync>>;

/// Grants metadata locks.
pub trait MetadataLocks: Send + Sync {
    /// A context without locks.
    fn open(self: Arc<Self>) -> Arc<dyn MetadataContext>;
}

/// One session's metadata locks. One thread uses it at a time; dropping it gives everything back.
pub trait MetadataContext: Any + Send + Sync {
    /// Takes a lock, or nothing if one that is as strong is held. Blocks.
    ///
    /// # Errors
    /// [`super::RowsError::LockWaitTimeout`], [`super::RowsError::Cancelled`], or
    /// [`super::RowsError::Deadlock`] if the waiter was chosen to break a deadlock.
    fn acquire(
        &self,
        table: TableId,
        lock: MetadataLock,
        duration: LockDuration,
        patience: &LockPatience<'_>,
    ) -> RowsResult<()>;
    /// Whether the context holds a lock on the table that is as strong.
    fn holds(&self, table: TableId, lock: MetadataLock) -> bool;
    /// Where the transaction's locks stand now.
    fn mark(&self) -> LockMark;
    /// Gives back what the transaction has locked since `mark`.
    fn release_to(&self, mark: LockMark);
    /// Gives back all that was locked for the transaction.
    fn release_transaction(&self);
    /// Gives back what was locked explicitly: of one table, or of all.
    fn release_explicit(&self, table: Option<TableId>);
    /// Makes the transaction's strong locks on a table this weak.
    fn downgrade(&self, table: TableId, to: MetadataLock);
    /// Whether somebody waits for a lock that this context's locks on the table are in the way of.
    fn is_wanted(&self, table: TableId) -> bool;
    /// Takes the transaction's locks out of the context; they are given back when the answer is
    /// dropped.
    fn detach(&self) -> DetachedLocks;
}
