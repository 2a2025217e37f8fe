//! Statements that change definitions: the session's part around the catalog's.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use firn_api::rows::{BuildProgress, Cancellation, LockDuration, MetadataLock};
use firn_sql::catalog::ddl::{self, CreateTableAs, DdlContext, DdlOutcome};
use firn_sql::error::{Result, SqlError};
use firn_sql::execute::DefinitionBinder;
use firn_sql::grammar::ast::{self, Statement, TableName};
use firn_wire::Replies;

use super::answers::{Answered, Answers};
use super::arguments::Arguments;
use super::definition_locks::DefinitionLocks;
use super::definition_needs::DefinitionNeeds;
use super::permission::Permission;
use super::planning::tell_conditions;
use super::runner::StatementRunner;
use super::sinks::NoRows;
use super::view_rights::ViewRights;

/// Runs statements that change definitions in a session.
pub(super) struct DefinitionStatements<'s> {
    pub(super) runner: &'s mut StatementRunner,
}

impl DefinitionStatements<'_> {
    pub(super) fn run_definition(
        &mut self,
        statement: &Statement,
        replies: &mut Replies<'_>,
    ) -> Answered {
        match self.define(statement) {
            Ok((affected, info)) => {
                let runner = &mut *self.runner;
                runner.state.diagnostics.keep(&runner.evaluation);
                runner.state.diagnostics.count();
                runner.facts.row_count.store(affected as i64, Ordering::Relaxed);
                Answers::of(runner).affected(affected, 0, &info, replies)
            }
            Err(error) => Err(self.runner.refused(error)),
        }
    }

    fn define(&mut self, statement: &Statement) -> Result<(u64, String)> {
        let needs = DefinitionNeeds::of(self.runner).of_statement(statement);
        self.runner.rights.require(&needs)?;
        self.judge_locked(statement)?;
        match statement {
            Statement::CreateView(create) => ViewRights::of(self.runner).judge_view(create)?,
            Statement::DropView { views, .. } => {
                ViewRights::of(self.runner).judge_dropped_views(views)?;
            }
            Statement::CreateTable(create) => {
                if let Some(source) = &create.source {
                    self.judge_source(source)?;
                }
            }
            _ => {}
        }
        Permission::of(self.runner).refuse_read_only(statement)?;
        self.runner.rights.count_update()?;
        let writing = Permission::of(self.runner).begin_writing()?;
        let is_temporary = ddl::is_temporary(statement);
        // What commits a transaction has done something.
        let may_be_cut = self.runner.cutting.is_possible
            && !is_temporary
            && self.runner.transactions.open.is_none();
        if !is_temporary {
            self.runner.transactions.commit()?;
        }
        self.runner.evaluation.statement_kind = firn_sql::types::StatementKind::Write;
        if may_be_cut {
            self.runner.begin_cutting();
        }
        let outcome = self.with_ddl_context(|context| ddl::execute(context, statement));
        match &outcome {
            Ok(_) => self.runner.outlive_cut(),
            Err(error) => {
                self.runner.was_cut_by(error);
            }
        }
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
        let kept = DefinitionLocks::of(self.runner).keep_locked_tables();
        self.runner.transactions.metadata.release_transaction();
        done.and_then(|done| kept.map(|()| done))
    }

    /// `CREATE TABLE … AS` reads only what the session may read.
    fn judge_source(&mut self, source: &ast::TableSource) -> Result<()> {
        let query = ast::Select { query: source.query.clone(), into: None };
        let arguments = Arguments::default();
        let plan = self.runner.plan(&Statement::Select(Box::new(query)), &arguments)?;
        self.runner.rights.check_needs(&plan.needs)
    }

    /// Under `LOCK TABLES`, only tables that are locked for writing can be changed.
    fn judge_locked(&self, statement: &Statement) -> Result<()> {
        let changed: Vec<&TableName> = match statement {
            Statement::AlterTable(alter) => vec![&alter.table],
            Statement::DropTable { temporary: false, tables, .. } => tables.iter().collect(),
            Statement::Truncate(table)
            | Statement::CreateIndex { table, .. }
            | Statement::DropIndex { table, .. } => vec![table],
            _ => Vec::new(),
        };
        changed.into_iter().try_for_each(|table| {
            let schema = self.runner.state.connection.schema_of(table);
            self.runner.locked.judge(&schema, &table.name, &table.name, true)
        })
    }

    fn with_ddl_context<T>(&self, run: impl FnOnce(&DdlContext<'_>) -> Result<T>) -> Result<T> {
        self.with_ddl_context_until(&self.runner.facts.cancelled, run)
    }

    /// As [`DefinitionStatements::with_ddl_context`], for work that ends when `cancelled` is set.
    fn with_ddl_context_until<T>(
        &self,
        cancelled: &Arc<Cancellation>,
        run: impl FnOnce(&DdlContext<'_>) -> Result<T>,
    ) -> Result<T> {
        let StatementRunner {
            catalog,
            evaluation,
            facts,
            instance,
            rights,
            settings,
            state,
            transactions,
            ..
        } = &*self.runner;
        let variables = &state.connection.variables;
        let account = rights.account.name.to_string();
        let binder = DefinitionBinder::new(catalog, evaluation, state);
        let facts = Arc::clone(facts);
        let cut = &self.runner.facts.cut;
        let changes = || if cut.may_go_on() { Ok(()) } else { Err(SqlError::interrupted()) };
        let progress = move |done: BuildProgress| {
            tracing::info!(rows = done.rows_done, of = done.rows_estimated, "building an index");
            !facts.is_cancelled()
        };
        run(&DdlContext {
            catalog,
            clock: &*instance.facts.environment.clock,
            current_schema: state.connection.schema.as_deref(),
            evaluation,
            account: &account,
            lock_wait_timeout: settings.metadata_wait_timeout,
            foreign_key_checks: settings.limits.foreign_key_checks,
            require_primary_key: variables.known("sql_require_primary_key").is_on(),
            innodb_strict_mode: variables.known("innodb_strict_mode").is_on(),
            restrict_fk_on_non_standard_key: variables
                .known("restrict_fk_on_non_standard_key")
                .is_on(),
            expressions: &binder,
            progress: &progress,
            changes: &changes,
            locks: &transactions.metadata,
            cancelled,
            is_waiting: &self.runner.facts.waits_for_definition,
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
            DefinitionLocks::of(self.runner).acquire(rest.table.id, lock, duration)?;
        }
        let filled = self.insert_query(rest);
        let filled = match is_temporary {
            true => filled,
            // The table and its rows are committed, whatever `autocommit` says.
            false => filled.and_then(|done| self.runner.transactions.commit().map(|()| done)),
        };
        if filled.is_err() {
            if !is_temporary {
                // The inserted rows keep the table from being dropped.
                self.runner.transactions.roll_back_quietly();
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
        let arguments = Arguments::default();
        let mut plan = self.runner.plan(&Statement::Insert(Box::new(insert)), &arguments)?;
        tell_conditions(&self.runner.evaluation, &plan);
        // The statement was allowed before the table was made.
        plan.needs.clear();
        let outcome = self.runner.execute(&plan, &arguments, &mut NoRows)?;
        Ok((outcome.affected, outcome.info))
    }
}
