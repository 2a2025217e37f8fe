//! Checks of a plan before it runs: its tables are locked if `LOCK TABLES` is in force, it does not
//! write without a condition (`sql_safe_updates`), and how long it may take.

use std::time::Duration;

use firn_api::server::Patience;
use firn_sql::error::{Result, SqlError};
use firn_sql::plan::visit::for_each_input;
use firn_sql::plan::{Access, NamedTable, NodeKind, PlanNode, StatementPlan, WriteTarget};

use super::{SqlSession, is_virtual};
use crate::plan_cache::CachedPlan;
use crate::server::{self, Writing};
use crate::statement_kind::StatementKind;

/// The name in the process list.
const WAITING: &str = "Waiting for global read lock";

impl SqlSession {
    /// Refuses a plan that the session's state does not allow.
    ///
    /// # Errors
    /// 1099 and 1100 under `LOCK TABLES`, 1175 under `sql_safe_updates`.
    pub(super) fn guard(&self, plan: &CachedPlan) -> Result<()> {
        if !self.locked.is_empty() {
            plan.plan.tables.iter().try_for_each(|table| self.judge(table))?;
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

    /// Waits until the session may write, see [`WriteGate`](crate::server::WriteGate). `None`: it
    /// may write until `UNLOCK TABLES`.
    ///
    /// # Errors
    /// 1223, 1205, 1317.
    pub(super) fn begin_writing(&self) -> Result<Option<Writing>> {
        if self.locked.writing.is_some() {
            return Ok(None);
        }
        if let Some(writing) = self.instance.write_gate.try_write() {
            return Ok(Some(writing));
        }
        let patience = self.read_lock_patience();
        let write = || self.instance.write_gate.write(self.facts.id, &patience);
        self.facts.waiting_for(WAITING, write).map(Some)
    }

    /// `FLUSH TABLES WITH READ LOCK`.
    ///
    /// # Errors
    /// 1205, 1317.
    pub(super) fn take_global_lock(&mut self) -> Result<()> {
        self.transactions.commit()?;
        let patience = self.read_lock_patience();
        let take = || self.instance.server.take_read_lock(self.facts.id, &patience);
        self.facts.waiting_for(WAITING, take).map_err(server::refused)
    }

    fn read_lock_patience(&self) -> Patience<'_> {
        let seconds = self.state.connection.variables.known("lock_wait_timeout").number();
        Patience {
            timeout: Some(Duration::from_secs(seconds)),
            cancelled: self.facts.cancelled.flag(),
        }
    }

    /// Whether this use of a table is allowed under `LOCK TABLES`.
    fn judge(&self, named: &NamedTable) -> Result<()> {
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

    /// The deadline of a query, on the monotonic clock.
    pub(super) fn deadline(&self, plan: &CachedPlan) -> Option<Duration> {
        if plan.kind != StatementKind::Select {
            return None;
        }
        let limit_ms =
            plan.plan.max_execution_time_ms.unwrap_or(self.settings.max_execution_time_ms);
        let now = || self.instance.facts.environment.clock.monotonic();
        (limit_ms > 0).then(|| now() + Duration::from_millis(limit_ms))
    }
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
