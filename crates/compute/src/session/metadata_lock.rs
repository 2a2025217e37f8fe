//! The metadata locks of a session's statements: taken before a plan runs, kept until the
//! transaction ends.
//!
//! ```text
//!   plan ─► lock its tables ─► has a definition changed since it was made? ─┬─ no: run it
//!                                                                           └─ yes: plan again
//! ```
//!
//! If a statement is part of a deadlock and its transaction had locked nothing before, it releases
//! its locks and takes them again; otherwise the transaction is rolled back (1213).

use std::time::Duration;

use firn_api::rows::{LockDuration, LockMark, LockPatience, MetadataLock, RowsError};
use firn_base::TableId;
use firn_sql::error::{Result, SqlError};
use firn_sql::execute::error::from_rows;
use firn_sql::plan::PlannedLock;

use super::SqlSession;
use super::locked_tables::LockedTable;
use crate::plan_cache::CachedPlan;

impl SqlSession {
    /// Takes the locks that a plan needs. Blocks.
    ///
    /// # Errors
    /// 1205, 1213, 1317, 3024; 1412 if the plan is no longer valid, see
    /// [`SqlSession::plan_is_stale`].
    pub(super) fn lock_metadata(
        &mut self,
        plan: &CachedPlan,
        deadline: Option<Duration>,
    ) -> Result<()> {
        let locks = &plan.plan.locks;
        if locks.is_empty() {
            return Ok(());
        }
        let mark = self.transactions.metadata.mark();
        if let Err(error) = self.acquire_all(locks, mark, deadline) {
            self.transactions.metadata.release_to(mark);
            return Err(error);
        }
        let catalog = self.catalog.shared();
        let is_current = plan.plan.validity.version() == catalog.definitions_version();
        if is_current || locks.iter().all(|lock| lock.is_unchanged(catalog)) {
            return Ok(());
        }
        self.transactions.metadata.release_to(mark);
        self.plan_is_stale = true;
        Err(SqlError::new(1412, "Table definition has changed, please retry transaction"))
    }

    fn acquire_all(
        &self,
        locks: &[PlannedLock],
        mark: LockMark,
        deadline: Option<Duration>,
    ) -> Result<()> {
        let metadata = &*self.transactions.metadata;
        loop {
            let patience = self.lock_patience(deadline);
            let acquired = locks.iter().try_for_each(|lock| {
                let wanted = if lock.writes { MetadataLock::Write } else { MetadataLock::Read };
                metadata.acquire(lock.model.id, wanted, LockDuration::Transaction, &patience)
            });
            match acquired {
                Ok(()) => return Ok(()),
                Err(RowsError::Deadlock) if mark == LockMark::default() => {
                    metadata.release_to(mark)
                }
                Err(error) => return Err(from_rows(error)),
            }
        }
    }

    /// How long a request of the session waits for a metadata lock.
    pub(super) fn lock_patience(&self, deadline: Option<Duration>) -> LockPatience<'_> {
        let timeout = self.settings.metadata_wait_timeout;
        let left = deadline.map(|deadline| {
            deadline.saturating_sub(self.instance.facts.environment.clock.monotonic())
        });
        LockPatience {
            timeout: left.map_or(timeout, |left| left.min(timeout)),
            cancelled: Some(&self.facts.cancelled),
            transaction: self.transactions.open.as_ref().and_then(|open| open.inner.id()),
        }
    }

    /// Takes the locks of `LOCK TABLES`, or takes them again after a change of definitions. In the
    /// latter case, tables that are gone are left out.
    ///
    /// # Errors
    /// Tables that are gone, locks that were not granted.
    pub(super) fn take_table_locks(&mut self, locked: &[LockedTable]) -> Result<()> {
        loop {
            let tables = self.locks_of(locked)?;
            let patience = LockPatience {
                timeout: self.settings.metadata_wait_timeout,
                cancelled: Some(&self.facts.cancelled),
                transaction: None,
            };
            if let Err(error) = self.transactions.lock_tables(&tables, &patience) {
                self.transactions.forget_table_locks();
                return Err(error);
            }
            if self.locks_of(locked)? == tables {
                return Ok(());
            }
        }
    }

    /// The locks of `LOCK TABLES`, in one order for all sessions.
    fn locks_of(&self, locked: &[LockedTable]) -> Result<Vec<(TableId, MetadataLock)>> {
        let mut tables: Vec<(TableId, MetadataLock)> = Vec::new();
        let mut locked: Vec<&LockedTable> = locked.iter().collect();
        locked.sort_by_key(|one| (&one.schema, &one.table));
        for one in locked {
            let model = self.catalog.table(&one.schema, &one.table)?;
            if model.kind == firn_sql::catalog::model::TableKind::Temporary {
                continue;
            }
            let lock = match one.writes {
                true => MetadataLock::NoReadWrite,
                false => MetadataLock::ReadOnly,
            };
            match tables.iter_mut().find(|(other, _)| *other == model.id) {
                Some((_, strongest)) => *strongest = lock.max(*strongest),
                None => tables.push((model.id, lock)),
            }
        }
        Ok(tables)
    }

    /// Locks the tables of `LOCK TABLES` again, where a change of definitions has replaced them.
    ///
    /// # Errors
    /// Locks that were not granted.
    pub(super) fn keep_table_locks(&mut self) -> Result<()> {
        if self.locked.is_empty() {
            return Ok(());
        }
        let mut locked = std::mem::take(&mut self.locked.tables);
        locked.retain(|one| self.catalog.table(&one.schema, &one.table).is_ok());
        self.take_table_locks(&locked)?;
        self.locked.tables = locked;
        Ok(())
    }

    /// Releases tables that `HANDLER` has open and other sessions wait for.
    pub(super) fn yield_handlers(&mut self) {
        let metadata = &self.transactions.metadata;
        for open in &mut self.handlers {
            if let Some(table) = open.locked.take_if(|table| metadata.is_wanted(*table)) {
                metadata.release_explicit(Some(table));
            }
        }
    }
}
