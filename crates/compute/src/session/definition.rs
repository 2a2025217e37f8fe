//! DDL, maintenance of tables, `LOCK TABLES`: around what the catalog does.

use std::sync::Arc;

use firn_api::rows::{BuildProgress, TableLock};
use firn_sql::catalog::ddl::{self, CreateTableAs, DdlContext, DdlOutcome};
use firn_sql::catalog::model::TableModel;
use firn_sql::catalog::statistics;
use firn_sql::catalog::type_text::identifier;
use firn_sql::error::{Result, SqlError};
use firn_sql::execute::DefinitionBinder;
use firn_sql::grammar::ast::{
    self, MaintenanceOperation, Statement, TableLockKind, TableMaintenance, TableName,
};
use firn_sql::types::Datum;
use firn_wire::{Replies, WireError};

use super::answer::Table;
use super::guards::LockedTable;
use super::{SqlSession, told};
use crate::accounts::Privilege;
use crate::privileges::{self, Need};

type Answered = std::result::Result<(), WireError>;

impl SqlSession {
    pub(super) fn run_definition(
        &mut self,
        statement: &Statement,
        replies: &mut Replies<'_>,
    ) -> Answered {
        match self.define(statement) {
            Ok((affected, info)) => {
                self.conditions.extend(self.evaluation.take_conditions());
                self.facts.row_count.store(affected as i64, std::sync::atomic::Ordering::Relaxed);
                self.answer_affected(affected, 0, &info, replies)
            }
            Err(error) => {
                self.keep_error(&error);
                Err(told(error))
            }
        }
    }

    fn define(&mut self, statement: &Statement) -> Result<(u64, String)> {
        let needs = self.definition_needs(statement);
        privileges::check(&needs, &self.grants, &self.account.name, &self.facts.host)?;
        self.judge_definition(statement)?;
        let writing = self.begin_writing()?;
        if !ddl::is_temporary(statement) {
            // They would be in the way of the definition's own; the next statement takes them again.
            self.transactions.unlock_tables()?;
        }
        self.evaluation.statement_kind = firn_sql::types::StatementKind::Write;
        let outcome = self.with_ddl_context(|context| ddl::execute(context, statement))?;
        // The rows of CREATE TABLE AS are a statement of their own.
        drop(writing);
        match outcome {
            DdlOutcome::Done { affected, info } => Ok((affected, info)),
            DdlOutcome::CreateTableAs(rest) => self.fill_new_table(&rest),
        }
    }

    /// Under `LOCK TABLES` only tables that are locked for writing can be changed.
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
            self.judge_name(&self.schema_of(table), &table.name, &table.name, true)
        })
    }

    fn with_ddl_context<T>(&self, run: impl FnOnce(&DdlContext<'_>) -> Result<T>) -> Result<T> {
        let account = self.account.name.to_string();
        let binder = DefinitionBinder::new(&self.catalog, &self.evaluation);
        let lock_wait = self.state.variables.known("lock_wait_timeout").number();
        let facts = Arc::clone(&self.facts);
        let progress = move |done: BuildProgress| {
            tracing::info!(rows = done.rows_done, of = done.rows_estimated, "building an index");
            !facts.is_cancelled()
        };
        run(&DdlContext {
            catalog: &self.catalog,
            current_schema: self.state.schema.as_deref(),
            evaluation: &self.evaluation,
            account: &account,
            lock_wait_timeout: std::time::Duration::from_secs(lock_wait),
            foreign_key_checks: self.settings.limits.foreign_key_checks,
            require_primary_key: self.state.variables.known("sql_require_primary_key").is_on(),
            expressions: &binder,
            progress: &progress,
        })
    }

    /// The rows of `CREATE TABLE … AS SELECT`; the table goes if they cannot be inserted.
    fn fill_new_table(&mut self, rest: &CreateTableAs) -> Result<(u64, String)> {
        let filled = self.insert_query(rest);
        if filled.is_err() {
            let name = TableName {
                schema: Some(rest.table.schema.to_string()),
                name: rest.table.name.to_string(),
            };
            let drop =
                Statement::DropTable { temporary: false, if_exists: true, tables: vec![name] };
            self.with_ddl_context(|context| ddl::execute(context, &drop).map(|_| ()))?;
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
        let plan = self.plan(&Statement::Insert(Box::new(insert)), &arguments)?;
        let outcome = self.execute(&plan, &arguments, &mut super::execution::NoRows)?;
        Ok((outcome.affected, outcome.info))
    }

    pub(super) fn schema_of(&self, table: &TableName) -> String {
        let named = table.schema.as_deref().or(self.state.schema.as_deref());
        named.unwrap_or("").to_owned()
    }

    fn on_table(&self, privilege: Privilege, table: &TableName) -> Need {
        Need::on_table(privilege, &self.schema_of(table), &table.name)
    }

    /// What a DDL statement needs to be allowed.
    fn definition_needs(&self, statement: &Statement) -> Vec<Need> {
        let on = |privilege, table| self.on_table(privilege, table);
        match statement {
            Statement::CreateDatabase(create) => {
                vec![Need::on_schema(Privilege::CREATE, &create.name)]
            }
            Statement::AlterDatabase(alter) => {
                let name = alter.name.as_deref().or(self.state.schema.as_deref()).unwrap_or("");
                vec![Need::on_schema(Privilege::ALTER, name)]
            }
            Statement::DropDatabase { name, .. } => vec![Need::on_schema(Privilege::DROP, name)],
            Statement::CreateTable(create) if create.temporary => {
                vec![Need::on_schema(
                    Privilege::CREATE_TEMPORARY_TABLES,
                    &self.schema_of(&create.table),
                )]
            }
            Statement::CreateTable(create) => vec![on(Privilege::CREATE, &create.table)],
            Statement::CreateTableLike { table, like, .. } => {
                vec![on(Privilege::CREATE, table), on(Privilege::SELECT, like)]
            }
            Statement::AlterTable(alter) => vec![on(Privilege::ALTER, &alter.table)],
            Statement::DropTable { temporary: false, tables, .. } => {
                tables.iter().map(|table| on(Privilege::DROP, table)).collect()
            }
            Statement::RenameTable(pairs) => pairs
                .iter()
                .flat_map(|(old, new)| [on(Privilege::DROP, old), on(Privilege::CREATE, new)])
                .collect(),
            Statement::Truncate(table) => vec![on(Privilege::DROP, table)],
            Statement::CreateIndex { table, .. } | Statement::DropIndex { table, .. } => {
                vec![on(Privilege::INDEX, table)]
            }
            Statement::CreateView(create) => vec![on(Privilege::CREATE_VIEW, &create.view)],
            Statement::DropView { views, .. } => {
                views.iter().map(|view| on(Privilege::DROP, view)).collect()
            }
            _ => Vec::new(),
        }
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
        let committed = self.transactions.unlock_tables();
        if let Err(error) = committed {
            self.keep_error(&error);
            return Err(told(error));
        }
        let mut answer = Table::of_text(&["Table", "Op", "Msg_type", "Msg_text"]);
        for table in &work.tables {
            let schema = self.schema_of(table);
            let shown = format!("{schema}.{}", table.name);
            let done = self.maintain(work.operation, &schema, table);
            match done {
                Ok((kind, text)) => answer.push_text(&[&shown, operation, kind, &text]),
                Err(error) => {
                    answer.push_text(&[&shown, operation, "Error", &error.message]);
                    answer.push_text(&[&shown, operation, "status", "Operation failed"]);
                }
            }
        }
        self.answer_table(&answer, replies)
    }

    fn maintain(
        &mut self,
        operation: MaintenanceOperation,
        schema: &str,
        table: &TableName,
    ) -> Result<(&'static str, String)> {
        let needed = match operation {
            MaintenanceOperation::Check | MaintenanceOperation::Checksum => vec![Privilege::SELECT],
            _ => vec![Privilege::SELECT, Privilege::INSERT],
        };
        let needs: Vec<Need> =
            needed.into_iter().map(|one| Need::on_table(one, schema, &table.name)).collect();
        privileges::check(&needs, &self.grants, &self.account.name, &self.facts.host)?;
        let model = self.catalog.table(schema, &table.name)?;
        match operation {
            MaintenanceOperation::Analyze | MaintenanceOperation::Optimize => {
                let facts = Arc::clone(&self.facts);
                let go_on = move || !facts.is_cancelled();
                statistics::analyze(self.catalog.shared(), &model, &self.evaluation, &go_on)?;
                self.instance.plans.clear();
                Ok(("status", "OK".to_owned()))
            }
            MaintenanceOperation::Check => {
                let text = format!(
                    "SELECT COUNT(*) FROM {}.{}",
                    identifier(schema),
                    identifier(&table.name)
                );
                self.gather(&text)?;
                Ok(("status", "OK".to_owned()))
            }
            MaintenanceOperation::Repair => {
                Ok(("note", "The storage engine for the table doesn't support repair".to_owned()))
            }
            MaintenanceOperation::Checksum => Err(SqlError::not_supported("CHECKSUM TABLE")),
        }
    }

    /// `LOCK TABLES`
    ///
    /// # Errors
    /// Unknown tables, locks that were not granted, 1142 without the privilege.
    pub(super) fn run_lock_tables(&mut self, locks: &[ast::TableLock]) -> Result<()> {
        self.locked_tables.clear();
        self.transactions.unlock_tables()?;
        let mut locked = Vec::new();
        for lock in locks {
            let schema = self.schema_of(&lock.table);
            let needs = [
                Need::on_schema(Privilege::LOCK_TABLES, &schema),
                Need::on_table(Privilege::SELECT, &schema, &lock.table.name),
            ];
            privileges::check(&needs, &self.grants, &self.account.name, &self.facts.host)?;
            self.catalog.table(&schema, &lock.table.name)?;
            let alias = lock.alias.as_deref().unwrap_or(&lock.table.name).to_owned();
            if locked.iter().any(|other: &LockedTable| other.alias.eq_ignore_ascii_case(&alias)) {
                return Err(SqlError::new(1066, format!("Not unique table/alias: '{alias}'")));
            }
            let table = lock.table.name.clone();
            let writes = lock.kind == TableLockKind::Write;
            locked.push(LockedTable { schema, table, alias, writes });
        }
        self.take_table_locks(&locked)?;
        self.locked_tables = locked;
        Ok(())
    }

    /// Takes the locks of `LOCK TABLES` again where a change of definitions has given them back.
    ///
    /// # Errors
    /// Tables that are gone, locks that were not granted.
    pub(super) fn ensure_table_locks(&mut self) -> Result<()> {
        if self.locked_tables.is_empty() || self.transactions.has_table_locks() {
            return Ok(());
        }
        let locked = std::mem::take(&mut self.locked_tables);
        self.take_table_locks(&locked)?;
        self.locked_tables = locked;
        Ok(())
    }

    fn take_table_locks(&mut self, locked: &[LockedTable]) -> Result<()> {
        let mut models: Vec<(Arc<TableModel>, bool)> = Vec::new();
        for one in locked {
            let model = self.catalog.table(&one.schema, &one.table)?;
            match models.iter_mut().find(|(other, _)| other.id == model.id) {
                Some((_, writes)) => *writes |= one.writes,
                None => models.push((model, one.writes)),
            }
        }
        // In one order for all, so that two of these do not wait for each other.
        models.sort_by_key(|(model, _)| model.id);
        let lock = |(model, writes): (Arc<TableModel>, bool)| {
            (model.id, if writes { TableLock::Exclusive } else { TableLock::Shared })
        };
        let tables: Vec<_> = models.into_iter().map(lock).collect();
        let node = &*self.instance.node;
        self.transactions.lock_tables(node, &self.settings, &self.facts, &tables)
    }

    /// `UNLOCK TABLES`
    ///
    /// # Errors
    /// If the log has failed.
    pub(super) fn run_unlock_tables(&mut self) -> Result<()> {
        self.instance.global_lock.release(self.facts.id);
        if !std::mem::take(&mut self.locked_tables).is_empty() {
            self.transactions.unlock_tables()?;
        }
        Ok(())
    }

    /// The rows of a query that a statement was rewritten to.
    pub(super) fn gather(&mut self, text: &str) -> Result<Vec<Vec<Datum>>> {
        let parsed = firn_sql::grammar::parse(text, firn_sql::grammar::Mode::default())?;
        let arguments = super::execution::Arguments::default();
        let plan = self.plan(&parsed.statement, &arguments)?;
        let time_zone = self.settings.presentation.time_zone.clone();
        let mut sink = super::execution::Gathered::new(time_zone);
        self.execute(&plan, &arguments, &mut sink)?;
        Ok(sink.rows)
    }
}
