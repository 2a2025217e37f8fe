//! Whether a session may run a plan now: its tables are locked if `LOCK TABLES` is in force, it
//! does not write without a condition (`sql_safe_updates`), and nobody holds the global read lock.

use firn_api::server::Patience;
use firn_sql::catalog::SessionCatalog;
use firn_sql::error::{Result, SqlError};
use firn_sql::plan::visit::for_each_input;
use firn_sql::plan::{Access, NamedTable, NodeKind, PlanNode, StatementPlan, WriteTarget};

use super::is_virtual;
use super::locked_tables::LockedTables;
use super::rights::Rights;
use super::runner::StatementRunner;
use super::settings::Settings;
use super::transaction::Transactions;
use crate::instance::Instance;
use crate::plan_cache::CachedPlan;
use crate::server::{self, Writing};
use crate::session_facts::Facts;

/// The name in the process list.
const WAITING: &str = "Waiting for global read lock";

/// What decides whether a session may run a statement now.
#[derive(Clone, Copy)]
pub(super) struct Permission<'s> {
    pub(super) instance: &'s Instance,
    pub(super) facts: &'s Facts,
    pub(super) catalog: &'s SessionCatalog,
    pub(super) rights: &'s Rights,
    pub(super) settings: &'s Settings,
    pub(super) transactions: &'s Transactions,
    pub(super) locked: &'s LockedTables,
}

impl<'s> Permission<'s> {
    #[inline]
    pub(super) fn of(runner: &'s StatementRunner) -> Permission<'s> {
        let StatementRunner {
            instance,
            facts,
            catalog,
            rights,
            settings,
            transactions,
            locked,
            ..
        } = runner;
        Permission { instance, facts, catalog, rights, settings, transactions, locked }
    }
}

impl Permission<'_> {
    /// Refuses a plan that the session's state does not allow.
    ///
    /// # Errors
    /// 1099 and 1100 under `LOCK TABLES`, 1175 under `sql_safe_updates`.
    pub(super) fn judge_plan(&self, plan: &CachedPlan) -> Result<()> {
        if !self.locked.is_empty() {
            plan.plan.tables.iter().try_for_each(|table| self.judge_table(table))?;
        }
        match self.settings.safe_updates && writes_without_looking(&plan.plan.statement) {
            true => Err(SqlError::new(
                1175,
                "You are using safe update mode and you tried to update a table without a WHERE that uses a \
                 KEY column. ",
            )),
            false => Ok(()),
        }
    }

    /// See [`begin_writing`].
    ///
    /// # Errors
    /// 1223, 1205, 1317.
    #[inline]
    pub(super) fn begin_writing(&self) -> Result<Option<Writing>> {
        begin_writing(self.instance, self.facts, self.settings, self.locked)
    }

    /// Takes the lock of `FLUSH TABLES WITH READ LOCK`. Blocks.
    ///
    /// # Errors
    /// 1205, 1317.
    pub(super) fn take_read_lock(&self) -> Result<()> {
        let patience = patience(self.facts, self.settings);
        let take = || self.instance.server.take_read_lock(self.facts.id, &patience);
        self.facts.waiting_for(WAITING, take).map_err(server::refused)
    }

    /// Whether this use of a table is allowed under `LOCK TABLES`.
    fn judge_table(&self, named: &NamedTable) -> Result<()> {
        let is_temporary = || {
            self.catalog.temporary_version() > 0 && self.is_temporary(&named.schema, &named.table)
        };
        if is_virtual(&named.schema) || is_temporary() {
            return Ok(());
        }
        self.locked.judge(&named.schema, &named.table, &named.alias, named.writes)
    }

    pub(super) fn is_temporary(&self, schema: &str, table: &str) -> bool {
        let found = self.catalog.table(schema, table);
        found.is_ok_and(|model| {
            self.catalog
                .shared()
                .find_table(schema, table)
                .is_ok_and(|stored| stored.is_none_or(|stored| stored.id != model.id))
        })
    }
}

/// Waits until the session may write, see [`WriteGate`](crate::server::WriteGate). `None`: it may
/// write until `UNLOCK TABLES`.
///
/// # Errors
/// 1223, 1205, 1317.
pub(super) fn begin_writing(
    instance: &Instance,
    facts: &Facts,
    settings: &Settings,
    locked: &LockedTables,
) -> Result<Option<Writing>> {
    if locked.writing.is_some() {
        return Ok(None);
    }
    if let Some(writing) = instance.write_gate.try_write() {
        return Ok(Some(writing));
    }
    let patience = patience(facts, settings);
    let write = || instance.write_gate.write(facts.id, &patience);
    facts.waiting_for(WAITING, write).map(Some)
}

/// How long the session waits for the global read lock.
fn patience<'f>(facts: &'f Facts, settings: &Settings) -> Patience<'f> {
    Patience { timeout: Some(settings.metadata_wait_timeout), cancelled: facts.cancelled.flag() }
}

/// Whether it changes rows that were not found by a key, without a limit.
fn writes_without_looking(statement: &StatementPlan) -> bool {
    let (source, targets) = match statement {
        StatementPlan::Update(update) => (&update.source, &update.targets),
        StatementPlan::Delete(delete) => (&delete.source, &delete.targets),
        StatementPlan::Query(_) | StatementPlan::Insert(_) => return false,
    };
    targets.iter().any(|target| scans_all(source, target))
}

fn scans_all(node: &PlanNode, target: &WriteTarget) -> bool {
    match &node.kind {
        NodeKind::Limit { count: Some(_), .. } | NodeKind::Sort { limit: Some(_), .. } => false,
        NodeKind::Scan(scan) if scan.row_key == Some(target.row_key) => {
            matches!(scan.access, Access::Full { .. })
        }
        _ => {
            let mut found = false;
            for_each_input(node, &mut |input| found = found || scans_all(input, target));
            found
        }
    }
}
