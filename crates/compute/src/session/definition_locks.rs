//! The locks of a session's statements on definitions: taken before a plan runs, kept until the
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
use firn_base::clock::Clock;
use firn_sql::catalog::SessionCatalog;
use firn_sql::catalog::model::TableKind;
use firn_sql::error::Result;
use firn_sql::execute::error::from_rows;
use firn_sql::plan::PlannedLock;

use super::locked_tables::{LockedTable, LockedTables};
use super::runner::StatementRunner;
use super::settings::Settings;
use super::transaction::Transactions;
use crate::plan_cache::CachedPlan;
use crate::session_facts::Facts;

/// Takes the locks on definitions that statements need.
pub(super) struct DefinitionLocks<'s> {
    transactions: &'s mut Transactions,
    locked: &'s mut LockedTables,
    catalog: &'s SessionCatalog,
    settings: &'s Settings,
    facts: &'s Facts,
    clock: &'s dyn Clock,
}

impl<'s> DefinitionLocks<'s> {
    #[inline]
    pub(super) fn of(runner: &'s mut StatementRunner) -> DefinitionLocks<'s> {
        let StatementRunner { transactions, locked, catalog, settings, facts, instance, .. } =
            runner;
        let clock = &*instance.facts.environment.clock as &dyn Clock;
        DefinitionLocks { transactions, locked, catalog, settings, facts, clock }
    }
}

impl DefinitionLocks<'_> {
    /// Takes the locks that a plan needs. False: the plan is no longer valid, and nothing is
    /// locked. Blocks.
    ///
    /// # Errors
    /// 1205, 1213, 1317, 3024.
    pub(super) fn lock(&self, plan: &CachedPlan, deadline: Option<Duration>) -> Result<bool> {
        let locks = &plan.plan.locks;
        let mark = self.transactions.metadata.mark();
        if let Err(error) = self.acquire_all(locks, mark, deadline) {
            self.transactions.metadata.release_to(mark);
            return Err(error);
        }
        let catalog = self.catalog.shared();
        let is_current = plan.plan.validity.version() == catalog.definitions_version();
        if is_current || locks.iter().all(|lock| lock.is_unchanged(catalog)) {
            return Ok(true);
        }
        self.transactions.metadata.release_to(mark);
        Ok(false)
    }

    fn acquire_all(
        &self,
        locks: &[PlannedLock],
        mark: LockMark,
        deadline: Option<Duration>,
    ) -> Result<()> {
        let metadata = &*self.transactions.metadata;
        loop {
            let patience = self.patience(deadline);
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

    /// Takes one lock. Blocks.
    ///
    /// # Errors
    /// 1205, 1213, 1317.
    pub(super) fn acquire(
        &self,
        table: TableId,
        lock: MetadataLock,
        duration: LockDuration,
    ) -> Result<()> {
        let patience = self.patience(None);
        self.transactions.metadata.acquire(table, lock, duration, &patience).map_err(from_rows)
    }

    /// How long a request waits for a lock.
    fn patience(&self, deadline: Option<Duration>) -> LockPatience<'_> {
        let timeout = self.settings.metadata_wait_timeout;
        let left = deadline.map(|deadline| deadline.saturating_sub(self.clock.monotonic()));
        LockPatience {
            timeout: left.map_or(timeout, |left| left.min(timeout)),
            cancelled: Some(&self.facts.cancelled),
            transaction: self.transactions.open.as_ref().and_then(|open| open.inner.id()),
            is_waiting: Some(&self.facts.waits_for_definition),
        }
    }

    /// Takes the locks of `LOCK TABLES`. Blocks.
    ///
    /// # Errors
    /// Tables that are gone, locks that were not granted.
    pub(super) fn lock_tables(&mut self, tables: LockedTables) -> Result<()> {
        *self.locked = tables;
        self.lock_tables_again()
    }

    /// Locks the tables of `LOCK TABLES` again, where a change of definitions has replaced them;
    /// tables that are gone are left out. Blocks.
    ///
    /// # Errors
    /// Locks that were not granted.
    pub(super) fn keep_locked_tables(&mut self) -> Result<()> {
        if self.locked.is_empty() {
            return Ok(());
        }
        let catalog = self.catalog;
        self.locked.tables.retain(|one| catalog.table(&one.schema, &one.table).is_ok());
        self.lock_tables_again()
    }

    /// Without all the locks, `LOCK TABLES` is not in force.
    fn lock_tables_again(&mut self) -> Result<()> {
        let taken = self.take_all();
        if taken.is_err() {
            self.transactions.forget_table_locks();
            *self.locked = LockedTables::default();
        }
        taken
    }

    fn take_all(&mut self) -> Result<()> {
        loop {
            let tables = locks_of(self.catalog, &self.locked.tables)?;
            let patience = LockPatience {
                timeout: self.settings.metadata_wait_timeout,
                cancelled: Some(&self.facts.cancelled),
                transaction: None,
                is_waiting: Some(&self.facts.waits_for_definition),
            };
            self.transactions.lock_tables(&tables, &patience)?;
            if locks_of(self.catalog, &self.locked.tables)? == tables {
                return Ok(());
            }
        }
    }
}

/// The locks of `LOCK TABLES`, in one order for all sessions.
pub(super) fn locks_of(
    catalog: &SessionCatalog,
    locked: &[LockedTable],
) -> Result<Vec<(TableId, MetadataLock)>> {
    let mut tables: Vec<(TableId, MetadataLock)> = Vec::new();
    let mut locked: Vec<&LockedTable> = locked.iter().collect();
    locked.sort_by_key(|one| (&one.schema, &one.table));
    for one in locked {
        let model = catalog.table(&one.schema, &one.table)?;
        if model.kind == TableKind::Temporary {
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
