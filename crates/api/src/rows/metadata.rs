//! Metadata locks: they keep a table's definition unchanged while a session uses it.
//!
//! ```text
//!   statement   Read, Write            to the end of its transaction
//!   DDL         Upgradable ─► NoWrite ─► Exclusive ─► (downgrade)
//!   LOCK TABLES ReadOnly, NoReadWrite  until UNLOCK TABLES
//! ```
//!
//! A session has one [`MetadataContext`] for its life; its own locks never conflict with each
//! other. Behind these traits, a lock table of this process grants the locks, or a service that
//! several nodes share.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_base::TableId;

use super::{Cancellation, RowsResult};

/// What a lock allows its holder, and what others may still do. The names in parentheses are
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
    /// Reads rows; no other session writes them (`SHARED_READ_ONLY`).
    ReadOnly,
    /// As `Upgradable`, but no other session writes (`SHARED_NO_WRITE`).
    NoWrite,
    /// No other session reads or writes rows (`SHARED_NO_READ_WRITE`).
    NoReadWrite,
    /// No other session uses the table in any way (`EXCLUSIVE`).
    Exclusive,
}

/// How long a lock is held.
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
    pub timeout: Duration,
    /// With this, others cancel the wait.
    pub cancelled: Option<&'a Cancellation>,
    /// The id under which the waiter's row locks are held, if there are any: deadlocks may involve
    /// them.
    pub transaction: Option<u64>,
    /// Whether the request waits now, for the process list.
    pub is_waiting: Option<&'a AtomicBool>,
}

impl LockPatience<'_> {
    /// Waits this long; nobody cancels it.
    #[must_use]
    pub const fn of(timeout: Duration) -> LockPatience<'static> {
        LockPatience { timeout, cancelled: None, transaction: None, is_waiting: None }
    }

    /// Runs the wait, and says so meanwhile.
    pub fn while_waiting<T>(&self, wait: impl FnOnce() -> T) -> T {
        let says = |waits| {
            if let Some(is_waiting) = self.is_waiting {
                is_waiting.store(waits, Ordering::Relaxed);
            }
        };
        says(true);
        let outcome = wait();
        says(false);
        outcome
    }
}

/// A point in the sequence of the transaction's locks to which they can be released.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LockMark {
    /// Locks of the fast path.
    pub fast: usize,
    /// Other locks.
    pub slow: u64,
}

/// Locks that [`MetadataContext::detach`] has removed from a context.
pub type DetachedLocks = Option<Box<dyn Any + Send + Sync>>;

pub trait MetadataLocks: Send + Sync {
    /// A context without locks.
    fn open(self: Arc<Self>) -> Arc<dyn MetadataContext>;
}

/// One session's metadata locks. One thread uses it at a time; dropping it releases everything.
pub trait MetadataContext: Any + Send + Sync {
    /// Takes a lock, or nothing if an equally strong one is held. Blocks.
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
    /// Whether the context holds a lock on the table that is at least as strong.
    fn holds(&self, table: TableId, lock: MetadataLock) -> bool;
    /// The current point in the sequence of the transaction's locks.
    fn mark(&self) -> LockMark;
    /// Releases what the transaction has locked since `mark`.
    fn release_to(&self, mark: LockMark);
    /// Releases all locks of the transaction.
    fn release_transaction(&self);
    /// Releases explicit locks: on one table, or all of them.
    fn release_explicit(&self, table: Option<TableId>);
    /// Weakens the transaction's strong locks on a table to this mode.
    fn downgrade(&self, table: TableId, to: MetadataLock);
    /// Whether another session waits for a lock that conflicts with this context's locks on the
    /// table.
    fn is_wanted(&self, table: TableId) -> bool;
    /// Removes the transaction's locks from the context; they are released when the result is
    /// dropped.
    fn detach(&self) -> DetachedLocks;
    /// Takes locks that were detached from another context of the node, while this context has no
    /// transaction's locks. They are those of a transaction that goes on ([`super::TakenOver`]); a
    /// node without such transactions has none of them.
    fn attach(&self, locks: DetachedLocks) {
        drop(locks);
    }
}
