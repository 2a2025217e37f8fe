//! Statements by their kinds: each goes to the file that executes it.

use std::sync::Arc;

use firn_api::server::KillScope;
use firn_sql::catalog::ddl;
use firn_sql::error::{Result, SqlError};
use firn_sql::grammar;
use firn_sql::grammar::ast::{self, Statement};
use firn_wire::Replies;

use super::account::AccountStatements;
use super::answers::{Answered, Answers, Table};
use super::definition::DefinitionStatements;
use super::diagnostics::DiagnosticsStatements;
use super::explain::ExplainStatements;
use super::flush::FlushStatements;
use super::handler::{HandlerStatements, Handlers};
use super::kill;
use super::lifted_text::{self, LiftedText};
use super::load::LoadStatements;
use super::maintenance::MaintenanceStatements;
use super::permission::Permission;
use super::prepared::{NamedStatements, PreparedStatements};
use super::runner::StatementRunner;
use super::scalar_expressions::evaluate_number;
use super::set::SetStatements;
use super::show::{ShowStatements, shown_columns};
use super::table_locks::TableLockStatements;
use super::transaction_statements::TransactionStatements;
use super::xa::XaStatements;
use crate::status::Command;

/// Runs statements in a session.
pub(super) struct Statements<'s> {
    pub(super) runner: &'s mut StatementRunner,
    pub(super) handlers: &'s mut Handlers,
    /// `None` while a prepared statement runs, which is not one about prepared statements.
    pub(super) prepared: Option<&'s mut PreparedStatements>,
}

impl Statements<'_> {
    /// Executes a statement that was just parsed, and sends the answer.
    pub(super) fn run_parsed(
        self,
        parsed: grammar::Parsed,
        lifted: Option<LiftedText<'_>>,
        replies: &mut Replies<'_>,
    ) -> Answered {
        let Statements { runner, handlers, prepared } = self;
        runner.with_long_texts(parsed.long_texts, |runner| {
            Statements { runner, handlers, prepared }.run(&parsed.statement, lifted, replies)
        })
    }

    /// Executes a statement, and sends the answer. `lifted`: the statement's parameters are these
    /// literals of its text.
    pub(super) fn run(
        &mut self,
        statement: &Statement,
        lifted: Option<LiftedText<'_>>,
        replies: &mut Replies<'_>,
    ) -> Answered {
        let runner = &mut *self.runner;
        if !keeps_conditions(statement) {
            runner.state.diagnostics.clear();
            runner.evaluation.take_conditions();
            runner.tell_hints();
        }
        if let Some(command) = Command::of(statement) {
            runner.facts.status.count_command(command);
        }
        if let Err(error) = may_run(runner, statement) {
            return Err(runner.refused(error));
        }
        match statement {
            Statement::Select(_)
            | Statement::Insert(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Do(_) => lifted_text::run_planned(runner, statement, lifted, replies),
            Statement::Show(show) => ShowStatements { runner }.run_show(show, replies),
            Statement::Describe { table, column } => {
                let show = shown_columns(table, column.as_deref());
                ShowStatements { runner }.run_show(&show, replies)
            }
            Statement::Explain(explain) => ExplainStatements { runner }.run(explain, replies),
            Statement::Execute { name, using } => match self.named() {
                Ok(mut named) => named.run_named(name, using, replies),
                Err(error) => Err(self.runner.refused(error)),
            },
            Statement::TableMaintenance(work) => {
                MaintenanceStatements { runner }.run_maintenance(work, replies)
            }
            Statement::LoadData(load) => LoadStatements { runner }.run_load_data(load, replies),
            Statement::Xa(xa) => {
                let done = XaStatements::of(runner).run_xa(xa);
                Answers::of(runner).optional_table(done, replies)
            }
            Statement::Handler(handler) => {
                let handlers = &mut *self.handlers;
                HandlerStatements { runner, handlers }.run_handler(handler, replies)
            }
            // There are no help tables, so there are no topics.
            Statement::Help(_) => {
                let topics = Table::of_text(&["name", "is_it_category"]);
                Answers::of(runner).table(&topics, replies)
            }
            Statement::CreateUser(_) | Statement::AlterUser(_) | Statement::SetPassword(_) => {
                let done = runner.transactions.commit();
                let done = done.and_then(|()| change_accounts(runner, statement));
                Answers::of(runner).optional_table(done, replies)
            }
            other if ddl::is_ddl(other) => {
                DefinitionStatements { runner }.run_definition(other, replies)
            }
            other => {
                let is_commit = matches!(other, Statement::Commit(_));
                runner.transactions.may_leave_commit(is_commit && replies.can_be_late());
                let done = self.run_simple(other);
                self.runner.transactions.may_leave_commit(false);
                Answers::of(self.runner).done(done, replies)
            }
        }
    }

    /// Statements that answer only OK.
    fn run_simple(&mut self, statement: &Statement) -> Result<()> {
        let runner = &mut *self.runner;
        match statement {
            Statement::Begin(_)
            | Statement::Commit(_)
            | Statement::Rollback(_)
            | Statement::Savepoint(_)
            | Statement::RollbackTo(_)
            | Statement::ReleaseSavepoint(_) => TransactionStatements::of(runner).run(statement),
            Statement::SetTransaction(set) => SetStatements { runner }.run_set_transaction(set),
            Statement::Set(items) => SetStatements { runner }.run_set(items),
            Statement::ResetPersist { if_exists, variable } => {
                SetStatements { runner }.reset_persist(*if_exists, variable.as_deref())
            }
            Statement::Use(schema) => runner.use_schema(schema),
            Statement::Prepare { name, source } => self.named()?.run_prepare(name, source),
            Statement::Deallocate(name) => self.named()?.run_deallocate(name),
            Statement::Kill { query_only, id } => {
                let id = evaluate_number(runner, id)?;
                let scope = if *query_only { KillScope::Statement } else { KillScope::Connection };
                kill::kill(&runner.instance, &runner.rights, id, scope)
            }
            Statement::LockTables(locks) => TableLockStatements { runner }.run_lock_tables(locks),
            Statement::UnlockTables => TableLockStatements { runner }.run_unlock_tables(),
            Statement::LockInstance => {
                runner.rights.require_one_of(&["BACKUP_ADMIN"], "BACKUP_ADMIN")
            }
            Statement::UnlockInstance => Ok(()),
            Statement::Switchover { to } => switch(runner, to.as_deref()),
            Statement::Flush(what) => FlushStatements { runner }.run_flush(what),
            Statement::SetRole(_) => change_accounts(runner, statement).map(drop),
            Statement::DropUser { .. }
            | Statement::RenameUser(_)
            | Statement::CreateRole { .. }
            | Statement::DropRole { .. }
            | Statement::Grant(_)
            | Statement::Revoke(_)
            | Statement::GrantRoles { .. }
            | Statement::RevokeRoles { .. }
            | Statement::SetDefaultRole { .. } => {
                runner.transactions.commit()?;
                change_accounts(runner, statement).map(drop)
            }
            Statement::Signal(signal) => Err(signalled(runner, signal)),
            Statement::GetDiagnostics(get) => {
                let condition = get.condition.as_ref();
                let condition = condition.map(|number| evaluate_number(runner, number));
                let condition = condition.transpose()?;
                DiagnosticsStatements::of(runner).get_diagnostics(get, condition)
            }
            Statement::Resignal(_) => Err(SqlError::new(1645, "RESIGNAL when handler not active")),
            Statement::Unsupported { what } => Err(SqlError::not_supported(what)),
            Statement::Call(_) => Err(SqlError::not_supported("stored procedures")),
            Statement::Reset(_) => Err(SqlError::not_supported("RESET")),
            Statement::PurgeBinaryLogs(_) => Err(SqlError::not_supported("PURGE BINARY LOGS")),
            _ => Err(SqlError::not_supported("this statement")),
        }
    }

    /// `PREPARE`, `EXECUTE` and `DEALLOCATE`, which no prepared statement can be.
    fn named(&mut self) -> Result<NamedStatements<'_>> {
        let Some(prepared) = self.prepared.as_deref_mut() else {
            return Err(super::prepared::not_preparable());
        };
        Ok(NamedStatements { runner: self.runner, handlers: self.handlers, prepared })
    }
}

/// Refuses statements that a read-only transaction or server, an expired password or the state of
/// XA does not allow.
fn may_run(runner: &mut StatementRunner, statement: &Statement) -> Result<()> {
    runner.rights.refresh()?;
    if !matches!(statement, Statement::SetPassword(_) | Statement::AlterUser(_)) {
        runner.rights.refuse_sandboxed()?;
    }
    if runner.transactions.xa.is_some() && ends_transaction(statement) {
        return Err(runner.transactions.wrong_xa_state());
    }
    // For DDL, privileges are checked first.
    match ddl::is_ddl(statement) {
        true => Ok(()),
        false => Permission::of(runner).refuse_read_only(statement),
    }
}

/// Has another node of the cluster write.
fn switch(runner: &StatementRunner, to: Option<&str>) -> Result<()> {
    let needed = ["GROUP_REPLICATION_ADMIN", "SUPER"];
    runner.rights.require_one_of(&needed, "SUPER or GROUP_REPLICATION_ADMIN")?;
    let Some(cluster) = &runner.instance.cluster else {
        return Err(SqlError::new(1235, "This server is not a node of a cluster"));
    };
    cluster.switch(to).map_err(|reason| SqlError::new(1105, reason))
}

/// Executes a statement about accounts; returns the passwords that it generated.
fn change_accounts(runner: &mut StatementRunner, statement: &Statement) -> Result<Option<Table>> {
    let facts = Arc::clone(&runner.facts);
    let change = || AccountStatements::of(runner).change(statement);
    let (table, warnings) = facts.cancelled.while_confirming(change)?;
    runner.state.diagnostics.conditions = warnings;
    Ok(table)
}

/// The error that a `SIGNAL` raises.
fn signalled(runner: &mut StatementRunner, signal: &ast::Signal) -> SqlError {
    let state = signal.sqlstate.as_deref().unwrap_or("45000");
    let mut error = SqlError::new(1644, "Unhandled user-defined exception condition");
    if let Ok(state) = <[u8; 5]>::try_from(state.as_bytes()) {
        error.state = state;
    }
    for (item, value) in &signal.items {
        let value = runner.evaluate(value);
        let text = value.map(|(value, _)| value.plain_text()).unwrap_or_default();
        match item.to_ascii_uppercase().as_str() {
            "MESSAGE_TEXT" => error.message = text,
            "MYSQL_ERRNO" => error.code = text.parse().unwrap_or(error.code),
            _ => {}
        }
    }
    error
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
    ) || ddl::is_ddl(statement) && !ddl::is_temporary(statement)
}
