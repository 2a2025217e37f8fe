//! DDL, maintenance of tables, `LOCK TABLES`: the session's part around the catalog's.

use std::sync::Arc;

use firn_api::rows::{BuildProgress, Cancellation, IsolationLevel, LockDuration, MetadataLock};
use firn_sql::catalog::analyze::analyze_table;
use firn_sql::catalog::ddl::{self, CreateTableAs, DdlContext, DdlOutcome};
use firn_sql::catalog::model::TableModel;
use firn_sql::catalog::notation::identifier;
use firn_sql::error::{ErrorKind, Result, SqlError};
use firn_sql::execute::DefinitionBinder;
use firn_sql::execute::error::from_rows;
use firn_sql::grammar::ast::{
    self, MaintenanceOperation, Statement, TableLockKind, TableMaintenance, TableName,
};
use firn_sql::types::Datum;
use firn_wire::{Replies, WireError};

use super::immediate_results::Table;
use super::locked_tables::{LockedTable, LockedTables};
use super::{SqlSession, wire_error};
use crate::accounts::Privilege;
use crate::accounts::need::Need;

type Answered = std::result::Result<(), WireError>;

/// Runs statements that change, check and lock tables in a session.
pub(super) struct DefinitionStatements<'s> {
    pub(super) session: &'s mut SqlSession,
}

impl DefinitionStatements<'_> {
    pub(super) fn schema_of(&self, table: &TableName) -> String {
        self.session.state.connection.schema_of(table)
    }

    pub(super) fn run_definition(
        &mut self,
        statement: &Statement,
        replies: &mut Replies<'_>,
    ) -> Answered {
        match self.define(statement) {
            Ok((affected, info)) => {
                self.session.conditions.extend(self.session.evaluation.take_conditions());
                self.session
                    .facts
                    .row_count
                    .store(affected as i64, std::sync::atomic::Ordering::Relaxed);
                self.session.answer_affected(affected, 0, &info, replies)
            }
            Err(error) => {
                self.session.keep_error(&error);
                Err(wire_error(error))
            }
        }
    }

    fn define(&mut self, statement: &Statement) -> Result<(u64, String)> {
        let needs = self.definition_needs(statement);
        self.session.rights.require(&needs)?;
        self.judge_definition(statement)?;
        match statement {
            Statement::CreateView(create) => self.judge_view(create)?,
            Statement::DropView { views, .. } => self.judge_dropped_views(views)?,
            Statement::CreateTable(create) => {
                if let Some(source) = &create.source {
                    self.judge_source(source)?;
                }
            }
            _ => {}
        }
        self.session.refuse_read_only(statement)?;
        self.session.rights.count_update()?;
        let writing = self.session.begin_writing()?;
        let is_temporary = ddl::is_temporary(statement);
        if !is_temporary {
            self.session.transactions.commit()?;
        }
        self.session.evaluation.statement_kind = firn_sql::types::StatementKind::Write;
        let outcome = self.with_ddl_context(|context| ddl::execute(context, statement));
        // The rows of CREATE TABLE AS are a separate statement.
        drop(writing);
        let done = match outcome {
            Ok(DdlOutcome::Done { affected, info }) => Ok((affected, info)),
            Ok(DdlOutcome::CreateTableAs(rest)) => self.fill_new_table(&rest, is_temporary),
            Err(error) => Err(error),
        };
        if is_temporary {
            return done;
        }
        let kept = self.session.keep_table_locks();
        self.session.transactions.metadata.release_transaction();
        done.and_then(|done| kept.map(|()| done))
    }

    /// `CREATE TABLE … AS` reads only what the session may read.
    fn judge_source(&mut self, source: &ast::TableSource) -> Result<()> {
        let query = ast::Select { query: source.query.clone(), into: None };
        let arguments = super::execution::Arguments::default();
        let plan = self.session.plan(&Statement::Select(Box::new(query)), &arguments)?;
        self.session.rights.check_needs(&plan.needs)
    }

    /// Under `LOCK TABLES`, only tables that are locked for writing can be changed.
    fn judge_definition(&self, statement: &Statement) -> Result<()> {
        let changed: Vec<&TableName> = match statement {
            Statement::AlterTable(alter) => vec![&alter.table],
            Statement::DropTable { temporary: false, tables, .. } => tables.iter().collect(),
            Statement::Truncate(table)
            | Statement::CreateIndex { table, .. }
            | Statement::DropIndex { table, .. } => vec![table],
            _ => Vec::new(),
        };
        changed.into_iter().try_for_each(|table| {
            self.session.locked.judge(&self.schema_of(table), &table.name, &table.name, true)
        })
    }

    fn with_ddl_context<T>(&self, run: impl FnOnce(&DdlContext<'_>) -> Result<T>) -> Result<T> {
        self.with_ddl_context_until(&self.session.facts.cancelled, run)
    }

    /// As [`DefinitionStatements::with_ddl_context`], for work that ends when `cancelled` is set.
    fn with_ddl_context_until<T>(
        &self,
        cancelled: &Arc<Cancellation>,
        run: impl FnOnce(&DdlContext<'_>) -> Result<T>,
    ) -> Result<T> {
        let account = self.session.rights.account.name.to_string();
        let binder = DefinitionBinder::new(&self.session.catalog, &self.session.evaluation);
        let lock_wait = self.session.state.connection.variables.known("lock_wait_timeout").number();
        let facts = Arc::clone(&self.session.facts);
        let progress = move |done: BuildProgress| {
            tracing::info!(rows = done.rows_done, of = done.rows_estimated, "building an index");
            !facts.is_cancelled()
        };
        run(&DdlContext {
            catalog: &self.session.catalog,
            clock: &*self.session.instance.facts.environment.clock,
            current_schema: self.session.state.connection.schema.as_deref(),
            evaluation: &self.session.evaluation,
            account: &account,
            lock_wait_timeout: std::time::Duration::from_secs(lock_wait),
            foreign_key_checks: self.session.settings.limits.foreign_key_checks,
            require_primary_key: self
                .session
                .state
                .connection
                .variables
                .known("sql_require_primary_key")
                .is_on(),
            innodb_strict_mode: self
                .session
                .state
                .connection
                .variables
                .known("innodb_strict_mode")
                .is_on(),
            restrict_fk_on_non_standard_key: self
                .session
                .state
                .connection
                .variables
                .known("restrict_fk_on_non_standard_key")
                .is_on(),
            expressions: &binder,
            progress: &progress,
            locks: &self.session.transactions.metadata,
            cancelled,
        })
    }

    /// The rows of `CREATE TABLE … AS SELECT`; the table is dropped if they cannot be inserted.
    fn fill_new_table(
        &mut self,
        rest: &CreateTableAs,
        is_temporary: bool,
    ) -> Result<(u64, String)> {
        if !is_temporary {
            let (lock, duration) = (MetadataLock::Exclusive, LockDuration::Transaction);
            let patience = self.session.lock_patience(None);
            let metadata = &self.session.transactions.metadata;
            metadata.acquire(rest.table.id, lock, duration, &patience).map_err(from_rows)?;
        }
        let filled = self.insert_query(rest);
        let filled = match is_temporary {
            true => filled,
            // The table and its rows are committed, whatever `autocommit` says.
            false => filled.and_then(|done| self.session.transactions.commit().map(|()| done)),
        };
        if filled.is_err() {
            if !is_temporary {
                // The inserted rows keep the table from being dropped.
                self.session.transactions.roll_back_quietly();
            }
            let name = TableName {
                schema: Some(rest.table.schema.to_string()),
                name: rest.table.name.to_string(),
            };
            let drop = Statement::DropTable {
                temporary: is_temporary,
                if_exists: true,
                tables: vec![name],
            };
            // The table is dropped although the statement was cancelled.
            let never = Arc::new(Cancellation::default());
            self.with_ddl_context_until(&never, |context| {
                ddl::execute(context, &drop).map(|_| ())
            })?;
        }
        filled
    }

    fn insert_query(&mut self, rest: &CreateTableAs) -> Result<(u64, String)> {
        let names = rest.columns.iter().filter_map(|ordinal| rest.table.by_ordinal(*ordinal));
        let insert = ast::Insert {
            replace: rest.on_conflict == ast::OnConflict::Replace,
            ignore: rest.on_conflict == ast::OnConflict::Ignore,
            table: TableName {
                schema: Some(rest.table.schema.to_string()),
                name: rest.table.name.to_string(),
            },
            columns: names.map(|column| column.name.to_string()).collect(),
            source: ast::InsertSource::Query(Box::new(rest.query.clone())),
            priority: ast::Priority::Normal,
            partitions: Vec::new(),
            row_alias: None,
            on_duplicate: Vec::new(),
            hints: Vec::new(),
        };
        let arguments = super::execution::Arguments::default();
        let mut plan = self.session.plan(&Statement::Insert(Box::new(insert)), &arguments)?;
        self.session.tell_conditions(&plan);
        // The statement was allowed before the table was made.
        plan.needs.clear();
        let outcome = self.session.execute(&plan, &arguments, &mut super::execution::NoRows)?;
        Ok((outcome.affected, outcome.info))
    }

    fn on_table(&self, privilege: Privilege, table: &TableName) -> Need {
        Need::on_table(privilege, &self.schema_of(table), &table.name)
    }

    /// The privileges that a DDL statement needs. The session may change its own temporary tables.
    fn definition_needs(&self, statement: &Statement) -> Vec<Need> {
        let mut needs = self.needs_by_names(statement);
        if self.session.catalog.temporary_version() > 0 && !ddl::is_temporary(statement) {
            needs.retain(|need| match (&need.schema, &need.table) {
                (Some(schema), Some(table)) => {
                    !matches!(self.session.catalog.temporary_table(schema, table), Ok(Some(_)))
                }
                _ => true,
            });
        }
        needs
    }

    fn needs_by_names(&self, statement: &Statement) -> Vec<Need> {
        let on = |privilege, table| self.on_table(privilege, table);
        match statement {
            Statement::CreateDatabase(create) => {
                vec![Need::on_schema(Privilege::CREATE, &create.name)]
            }
            Statement::AlterDatabase(alter) => {
                let name = alter
                    .name
                    .as_deref()
                    .or(self.session.state.connection.schema.as_deref())
                    .unwrap_or("");
                vec![Need::on_schema(Privilege::ALTER, name)]
            }
            Statement::DropDatabase { name, .. } => vec![Need::on_schema(Privilege::DROP, name)],
            Statement::CreateTable(create) if create.temporary => {
                vec![Need::on_schema(
                    Privilege::CREATE_TEMPORARY_TABLES,
                    &self.schema_of(&create.table),
                )]
            }
            Statement::CreateTable(create) => {
                let mut needs = vec![on(Privilege::CREATE, &create.table)];
                needs.extend(create.source.iter().map(|_| on(Privilege::INSERT, &create.table)));
                let parents = create.elements.iter().filter_map(|element| match element {
                    ast::TableElement::ForeignKey(key) => Some(&key.references.table),
                    _ => None,
                });
                needs.extend(parents.map(|parent| self.on_parent(&create.table, parent)));
                needs
            }
            Statement::CreateTableLike { temporary, table, like, .. } => {
                let create = match temporary {
                    true => {
                        Need::on_schema(Privilege::CREATE_TEMPORARY_TABLES, &self.schema_of(table))
                    }
                    false => on(Privilege::CREATE, table),
                };
                vec![create, on(Privilege::SELECT, like)]
            }
            Statement::AlterTable(alter) => self.needs_of_alter(alter),
            Statement::DropTable { temporary: false, tables, .. } => {
                tables.iter().map(|table| on(Privilege::DROP, table)).collect()
            }
            Statement::RenameTable(pairs) => pairs
                .iter()
                .flat_map(|(old, new)| {
                    [
                        on(Privilege::ALTER, old),
                        on(Privilege::DROP, old),
                        on(Privilege::CREATE, new),
                        on(Privilege::INSERT, new),
                    ]
                })
                .collect(),
            Statement::Truncate(table) => vec![on(Privilege::DROP, table)],
            Statement::CreateIndex { table, .. } | Statement::DropIndex { table, .. } => {
                vec![on(Privilege::INDEX, table)]
            }
            Statement::CreateView(create) => {
                let replaces = create.or_replace || create.alter;
                let own = on(Privilege::CREATE_VIEW, &create.view);
                // Missing privileges are reported one by one.
                match replaces && own.is_met(&self.session.rights.grants) {
                    true => vec![on(Privilege::DROP, &create.view)],
                    false => vec![own],
                }
            }
            Statement::DropView { views, .. } => {
                views.iter().map(|view| on(Privilege::DROP, view)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn needs_of_alter(&self, alter: &ast::AlterTable) -> Vec<Need> {
        let mut needs = vec![self.on_table(Privilege::ALTER, &alter.table)];
        for action in &alter.actions {
            match action {
                ast::AlterAction::RenameTable(to) => {
                    needs.push(self.on_table(Privilege::DROP, &alter.table));
                    needs.push(self.on_table(Privilege::CREATE, to));
                    needs.push(self.on_table(Privilege::INSERT, to));
                }
                ast::AlterAction::AddForeignKey(key) => {
                    needs.push(self.on_parent(&alter.table, &key.references.table));
                }
                _ => {}
            }
        }
        needs
    }

    /// A foreign key's parent is in its child's schema unless given; its error names the schema.
    fn on_parent(&self, child: &TableName, parent: &TableName) -> Need {
        let schema = parent.schema.clone().unwrap_or_else(|| self.schema_of(child));
        Need::on_table(Privilege::REFERENCES, &schema, &parent.name)
    }

    /// `ANALYZE`, `CHECK`, `OPTIMIZE`, `REPAIR`, `CHECKSUM TABLE`.
    pub(super) fn run_maintenance(
        &mut self,
        work: &TableMaintenance,
        replies: &mut Replies<'_>,
    ) -> Answered {
        let operation = match work.operation {
            MaintenanceOperation::Analyze => "analyze",
            MaintenanceOperation::Check => "check",
            MaintenanceOperation::Checksum => "checksum",
            MaintenanceOperation::Optimize => "optimize",
            MaintenanceOperation::Repair => "repair",
        };
        let allowed = self.may_maintain(work);
        let committed = allowed.and_then(|()| self.session.transactions.commit());
        if let Err(error) = committed {
            self.session.keep_error(&error);
            return Err(wire_error(error));
        }
        let mut answer =
            Table::of_text(&["Table", "Op", "Msg_type", "Msg_text"]).shown_as("CHECK TABLE");
        for table in &work.tables {
            let schema = self.schema_of(table);
            let shown = format!("{schema}.{}", table.name);
            match self.maintain(work.operation, &schema, table) {
                Ok(lines) => {
                    for (kind, text) in lines {
                        answer.push_text(&[&shown, operation, kind, &text]);
                    }
                }
                Err(error) if error.kind == ErrorKind::Interrupted => {
                    self.session.keep_error(&error);
                    return Err(wire_error(error));
                }
                Err(error) => {
                    answer.push_text(&[&shown, operation, "Error", &error.message]);
                    answer.push_text(&[&shown, operation, "status", "Operation failed"]);
                }
            }
        }
        self.session.answer_table(&answer, replies)
    }

    fn may_maintain(&self, work: &TableMaintenance) -> Result<()> {
        for table in &work.tables {
            let needed: &[Privilege] = match work.operation {
                MaintenanceOperation::Check => {
                    self.session.rights.refuse_unseen(
                        &self.session.catalog,
                        &self.schema_of(table),
                        &table.name,
                    )?;
                    &[]
                }
                MaintenanceOperation::Checksum => &[Privilege::SELECT],
                _ => &[Privilege::SELECT, Privilege::INSERT],
            };
            let needs: Vec<Need> = needed.iter().map(|one| self.on_table(*one, table)).collect();
            self.session.rights.require(&needs)?;
        }
        Ok(())
    }

    fn maintain(
        &mut self,
        operation: MaintenanceOperation,
        schema: &str,
        table: &TableName,
    ) -> Result<Vec<(&'static str, String)>> {
        let sound = || vec![("status", "OK".to_owned())];
        let model = self.session.catalog.table(schema, &table.name)?;
        match operation {
            MaintenanceOperation::Analyze | MaintenanceOperation::Optimize => {
                let facts = Arc::clone(&self.session.facts);
                let go_on = move || !facts.is_cancelled();
                analyze_table(
                    self.session.catalog.shared(),
                    &model,
                    &self.session.evaluation,
                    &go_on,
                )?;
                self.session.instance.statistics_gathered(model.id);
                Ok(sound())
            }
            MaintenanceOperation::Check if model.view().is_none() => {
                let problems = self.check_entries(&model)?;
                if problems.is_empty() {
                    return Ok(sound());
                }
                let problems = problems.into_iter().map(|problem| ("Error", problem));
                Ok(problems.chain([("error", "Corrupt".to_owned())]).collect())
            }
            MaintenanceOperation::Check => {
                let text = format!(
                    "SELECT COUNT(*) FROM {}.{}",
                    identifier(schema),
                    identifier(&table.name)
                );
                self.gather(&text)?;
                Ok(sound())
            }
            MaintenanceOperation::Repair => {
                let refusal = "The storage engine for the table doesn't support repair";
                Ok(vec![("note", refusal.to_owned())])
            }
            MaintenanceOperation::Checksum => Err(SqlError::not_supported("CHECKSUM TABLE")),
        }
    }

    /// What is wrong with a table's indexes, by a snapshot of now. Others may write meanwhile, and
    /// change the definition: what the snapshot sees stays. Nothing is locked, so that a node which
    /// follows the log checks its tables, too.
    fn check_entries(&self, model: &TableModel) -> Result<Vec<String>> {
        let begun = self.session.instance.node.begin(IsolationLevel::RepeatableRead);
        let mut transaction = begun.map_err(from_rows)?;
        transaction.set_cancelled(&self.session.facts.cancelled);
        let table = transaction.table_for_read(model.id);
        let problems = table.and_then(|table| transaction.check_table(&table));
        problems.map_err(from_rows)
    }

    /// `LOCK TABLES`
    ///
    /// # Errors
    /// Unknown tables, locks that were not granted, 1142 without the privilege.
    pub(super) fn run_lock_tables(&mut self, locks: &[ast::TableLock]) -> Result<()> {
        self.session.locked = LockedTables::default();
        self.session.transactions.unlock_tables()?;
        let mut locked = Vec::new();
        for lock in locks {
            let schema = self.schema_of(&lock.table);
            let needs = [
                Need::on_schema(Privilege::LOCK_TABLES, &schema),
                Need::on_table(Privilege::SELECT, &schema, &lock.table.name),
            ];
            self.session.rights.require(&needs)?;
            self.session.catalog.table(&schema, &lock.table.name)?;
            let alias = lock.alias.as_deref().unwrap_or(&lock.table.name).to_owned();
            if locked.iter().any(|other: &LockedTable| other.alias.eq_ignore_ascii_case(&alias)) {
                return Err(SqlError::new(1066, format!("Not unique table/alias: '{alias}'")));
            }
            let table = lock.table.name.clone();
            let writes = lock.kind == TableLockKind::Write;
            locked.push(LockedTable { schema, table, alias, writes });
        }
        let writes = locked.iter().any(|one| one.writes);
        let writing = if writes { self.session.begin_writing()? } else { None };
        self.session.take_table_locks(&locked)?;
        self.session.locked = LockedTables { tables: locked, writing };
        Ok(())
    }

    /// `UNLOCK TABLES`
    ///
    /// # Errors
    /// If the log has failed.
    pub(super) fn run_unlock_tables(&mut self) -> Result<()> {
        self.session.instance.server.release_read_lock(self.session.facts.id);
        if !self.session.locked.is_empty() {
            self.session.locked = LockedTables::default();
            self.session.transactions.unlock_tables()?;
        }
        Ok(())
    }

    /// The rows of a query into which a statement was rewritten.
    pub(super) fn gather(&mut self, text: &str) -> Result<Vec<Vec<Datum>>> {
        let parsed = firn_sql::grammar::parse(text, firn_sql::grammar::Mode::default())?;
        let arguments = super::execution::Arguments::default();
        let mut plan = self.session.plan(&parsed.statement, &arguments)?;
        // The statement was allowed.
        plan.needs.clear();
        let time_zone = self.session.settings.presentation.time_zone.clone();
        let mut sink = super::execution::Gathered::new(time_zone);
        self.session.execute(&plan, &arguments, &mut sink)?;
        Ok(sink.rows)
    }
}
