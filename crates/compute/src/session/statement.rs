//! Statements by their kinds: each goes to the file that executes it.

use std::sync::atomic::Ordering;

use firn_sql::error::{Result, SqlError};
use firn_sql::grammar::ast::{self, Statement};
use firn_wire::{Replies, WireError};

use super::definition::DefinitionStatements;
use super::diagnostics::DiagnosticsStatements;
use super::execution::LiftedText;
use super::explain::ExplainStatements;
use super::handler::HandlerStatements;
use super::immediate_results::Table;
use super::load::LoadStatements;
use super::locked_tables::LockedTables;
use super::prepared::PreparedStatements;
use super::set::SetStatements;
use super::settings::Completion;
use super::xa::XaStatements;
use super::{SqlSession, wire_error};
use crate::status::Command;

type Answered = std::result::Result<(), WireError>;

impl SqlSession {
    /// Executes a statement, and sends the answer. `lifted`: the statement's parameters are these
    /// literals of its text.
    pub(super) fn run_statement(
        &mut self,
        statement: &Statement,
        lifted: Option<LiftedText<'_>>,
        replies: &mut Replies<'_>,
    ) -> Answered {
        if !keeps_conditions(statement) {
            self.conditions.clear();
            self.evaluation.take_conditions();
        }
        if let Some(command) = Command::of(statement) {
            self.facts.status.count_command(command);
        }
        if let Err(error) = self.rights.refresh().and_then(|()| self.may_run(statement)) {
            self.keep_error(&error);
            return Err(wire_error(error));
        }
        // For DDL, privileges are checked first.
        if !firn_sql::catalog::ddl::is_ddl(statement)
            && let Err(error) = self.refuse_read_only(statement)
        {
            self.keep_error(&error);
            return Err(wire_error(error));
        }
        match statement {
            Statement::Select(_)
            | Statement::Insert(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Do(_) => self.run_planned(statement, lifted, replies),
            Statement::Show(show) => self.run_show(show, replies),
            Statement::Describe { table, column } => {
                self.run_describe(table, column.as_deref(), replies)
            }
            Statement::Explain(explain) => {
                ExplainStatements { session: self }.run(explain, replies)
            }
            Statement::Execute { name, using } => {
                PreparedStatements { session: self }.run_named(name, using, replies)
            }
            Statement::TableMaintenance(work) => {
                DefinitionStatements { session: self }.run_maintenance(work, replies)
            }
            Statement::LoadData(load) => {
                LoadStatements { session: self }.run_load_data(load, replies)
            }
            Statement::Xa(xa) => {
                let done = XaStatements::of(self).run_xa(xa);
                self.answer_optional_table(done, replies)
            }
            Statement::Handler(handler) => {
                HandlerStatements { session: self }.run_handler(handler, replies)
            }
            // There are no help tables, so there are no topics.
            Statement::Help(_) => {
                self.answer_table(&Table::of_text(&["name", "is_it_category"]), replies)
            }
            Statement::CreateUser(_) | Statement::AlterUser(_) | Statement::SetPassword(_) => {
                let done = self.transactions.commit();
                let done = done.and_then(|()| self.change_accounts(statement));
                self.answer_optional_table(done, replies)
            }
            other if firn_sql::catalog::ddl::is_ddl(other) => {
                DefinitionStatements { session: self }.run_definition(other, replies)
            }
            other => {
                let done = self.run_simple(other);
                self.answer_done(done, replies)
            }
        }
    }

    fn answer_optional_table(
        &mut self,
        done: Result<Option<Table>>,
        replies: &mut Replies<'_>,
    ) -> Answered {
        match done {
            Ok(Some(table)) => self.answer_table(&table, replies),
            Ok(None) => self.answer_done(Ok(()), replies),
            Err(error) => self.answer_done(Err(error), replies),
        }
    }

    /// OK, or the error.
    pub(super) fn answer_done(&mut self, done: Result<()>, replies: &mut Replies<'_>) -> Answered {
        match done {
            Ok(()) => {
                self.conditions.extend(self.evaluation.take_conditions());
                self.facts.row_count.store(0, Ordering::Relaxed);
                self.answer_ok(replies)
            }
            Err(error) => {
                self.keep_error(&error);
                Err(wire_error(error))
            }
        }
    }

    /// Refuses statements that a read-only transaction, an expired password or the state of XA does
    /// not allow.
    fn may_run(&mut self, statement: &Statement) -> Result<()> {
        if !matches!(statement, Statement::SetPassword(_) | Statement::AlterUser(_)) {
            self.rights.refuse_sandboxed()?;
        }
        if self.transactions.xa.is_some() && ends_transaction(statement) {
            return Err(self.transactions.wrong_xa_state());
        }
        Ok(())
    }

    /// Statements that answer only OK.
    fn run_simple(&mut self, statement: &Statement) -> Result<()> {
        match statement {
            Statement::Begin(begin) => self.run_begin(begin),
            Statement::Commit(completion) => {
                let _writing =
                    self.transactions.is_lasting().then(|| self.begin_writing()).transpose()?;
                self.transactions.commit()?;
                self.complete(completion)
            }
            Statement::Rollback(completion) => {
                self.transactions.roll_back()?;
                self.complete(completion)
            }
            Statement::Savepoint(name) => {
                self.ensure_lasting_transaction()?;
                self.transactions.set_savepoint(name);
                Ok(())
            }
            Statement::RollbackTo(name) => self.transactions.roll_back_to(name),
            Statement::ReleaseSavepoint(name) => self.transactions.release_savepoint(name),
            Statement::SetTransaction(set) => {
                SetStatements { session: self }.run_set_transaction(set)
            }
            Statement::Set(items) => SetStatements { session: self }.run_set(items),
            Statement::Use(schema) => self.use_schema(schema),
            Statement::Prepare { name, source } => {
                PreparedStatements { session: self }.run_prepare(name, source)
            }
            Statement::Deallocate(name) => {
                PreparedStatements { session: self }.run_deallocate(name)
            }
            Statement::Kill { query_only, id } => {
                let id = self.evaluate_number(id)?;
                self.kill_connection(id, *query_only)
            }
            Statement::LockTables(locks) => {
                DefinitionStatements { session: self }.run_lock_tables(locks)
            }
            Statement::UnlockTables => DefinitionStatements { session: self }.run_unlock_tables(),
            Statement::LockInstance => {
                self.rights.require_one_of(&["BACKUP_ADMIN"], "BACKUP_ADMIN")
            }
            Statement::UnlockInstance => Ok(()),
            Statement::Flush(what) => self.run_flush(what),
            Statement::ResetPersist { if_exists, variable } => {
                SetStatements { session: self }.reset_persist(*if_exists, variable.as_deref())
            }
            Statement::SetRole(_) => self.change_accounts(statement).map(|_| ()),
            Statement::DropUser { .. }
            | Statement::RenameUser(_)
            | Statement::CreateRole { .. }
            | Statement::DropRole { .. }
            | Statement::Grant(_)
            | Statement::Revoke(_)
            | Statement::GrantRoles { .. }
            | Statement::RevokeRoles { .. }
            | Statement::SetDefaultRole { .. } => {
                self.transactions.commit()?;
                self.change_accounts(statement).map(|_| ())
            }
            Statement::Signal(signal) => Err(self.signal(signal)),
            Statement::Unsupported { what } => Err(SqlError::not_supported(what)),
            Statement::Call(_) => Err(SqlError::not_supported("stored procedures")),
            Statement::GetDiagnostics(get) => {
                let condition = get.condition.as_ref();
                let condition = condition.map(|number| self.evaluate_number(number)).transpose()?;
                DiagnosticsStatements::of(self).get_diagnostics(get, condition)
            }
            Statement::Resignal(_) => Err(SqlError::new(1645, "RESIGNAL when handler not active")),
            Statement::Reset(_) => Err(SqlError::not_supported("RESET")),
            Statement::PurgeBinaryLogs(_) => Err(SqlError::not_supported("PURGE BINARY LOGS")),
            _ => Err(SqlError::not_supported("this statement")),
        }
    }

    fn run_begin(&mut self, begin: &ast::Begin) -> Result<()> {
        self.locked = LockedTables::default();
        self.transactions.unlock_tables()?;
        let node = &*self.instance.node;
        self.transactions.begin(node, &self.settings, &self.facts, true, begin.access)?;
        if begin.consistent_snapshot
            && let Some(open) = &mut self.transactions.open
        {
            open.inner.open_snapshot();
        }
        Ok(())
    }

    /// With `autocommit=0`, a `SAVEPOINT` begins a transaction as any statement does.
    fn ensure_lasting_transaction(&mut self) -> Result<()> {
        if self.transactions.open.is_none() && !self.settings.autocommit {
            let node = &*self.instance.node;
            self.transactions.begin(node, &self.settings, &self.facts, true, None)?;
        }
        Ok(())
    }

    /// What follows `COMMIT` and `ROLLBACK`.
    fn complete(&mut self, completion: &ast::Completion) -> Result<()> {
        let configured = self.settings.chain;
        let chain = completion.chain.unwrap_or(configured == Completion::Chain);
        let release = completion.release.unwrap_or(configured == Completion::Release);
        if chain {
            let node = &*self.instance.node;
            self.transactions.begin(node, &self.settings, &self.facts, true, None)?;
        }
        self.ends |= release;
        Ok(())
    }

    fn run_flush(&mut self, what: &[ast::Flush]) -> Result<()> {
        for one in what {
            self.may_flush(one)?;
        }
        for one in what {
            match one {
                ast::Flush::Tables { tables, with_read_lock: true, .. } if tables.is_empty() => {
                    return self.take_global_lock();
                }
                ast::Flush::Tables { tables, with_read_lock, for_export }
                    if *with_read_lock || *for_export =>
                {
                    let lock = |table: &ast::TableName| ast::TableLock {
                        table: table.clone(),
                        alias: None,
                        kind: ast::TableLockKind::Read,
                    };
                    let locks: Vec<_> = tables.iter().map(lock).collect();
                    return DefinitionStatements { session: self }.run_lock_tables(&locks);
                }
                ast::Flush::Tables { .. } => self.instance.plans.clear(),
                ast::Flush::Other(what) => self.flush_other(what),
            }
        }
        self.transactions.commit()
    }

    /// `RELOAD` lets an account flush anything; each other privilege is for one kind.
    fn may_flush(&self, what: &ast::Flush) -> Result<()> {
        let own = match what {
            ast::Flush::Tables { .. } => Some("FLUSH_TABLES"),
            ast::Flush::Other(what) => match what.as_str() {
                "STATUS" => Some("FLUSH_STATUS"),
                "PRIVILEGES" => Some("FLUSH_PRIVILEGES"),
                "USER_RESOURCES" => Some("FLUSH_USER_RESOURCES"),
                "OPTIMIZER_COSTS" => Some("FLUSH_OPTIMIZER_COSTS"),
                _ => None,
            },
        };
        match own {
            Some(own) => self.rights.require_one_of(&["RELOAD", own], &format!("RELOAD or {own}")),
            None => self.rights.require_one_of(&["RELOAD"], "RELOAD"),
        }
    }

    fn signal(&mut self, signal: &ast::Signal) -> SqlError {
        let state = signal.sqlstate.as_deref().unwrap_or("45000");
        let mut error = SqlError::new(1644, "Unhandled user-defined exception condition");
        if let Ok(state) = <[u8; 5]>::try_from(state.as_bytes()) {
            error.state = state;
        }
        for (item, value) in &signal.items {
            let text = self.evaluate_text(value).unwrap_or_default();
            match item.to_ascii_uppercase().as_str() {
                "MESSAGE_TEXT" => error.message = text,
                "MYSQL_ERRNO" => error.code = text.parse().unwrap_or(error.code),
                _ => {}
            }
        }
        error
    }
}

/// Whether a statement leaves the content of `SHOW WARNINGS` unchanged.
fn keeps_conditions(statement: &Statement) -> bool {
    let Statement::Show(show) = statement else {
        return matches!(statement, Statement::GetDiagnostics(_));
    };
    matches!(
        **show,
        ast::Show::Warnings(_)
            | ast::Show::Errors(_)
            | ast::Show::WarningCount
            | ast::Show::ErrorCount
    )
}

/// Whether a statement would end a transaction, which XA does not allow.
fn ends_transaction(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::Begin(_)
            | Statement::Commit(_)
            | Statement::Rollback(_)
            | Statement::LockTables(_)
    ) || firn_sql::catalog::ddl::is_ddl(statement)
        && !firn_sql::catalog::ddl::is_temporary(statement)
}
