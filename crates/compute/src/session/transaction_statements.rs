//! `BEGIN`, `COMMIT`, `ROLLBACK` and savepoints.

use firn_sql::error::{Result, SqlError};
use firn_sql::grammar::ast::{self, Statement};
use firn_wire::ConnectionControl;

use super::locked_tables::LockedTables;
use super::permission;
use super::runner::StatementRunner;
use super::settings::{Completion, Settings};
use super::transaction::Transactions;
use crate::instance::Instance;
use crate::session_facts::Facts;

/// Runs statements that begin and end transactions in a session.
pub(super) struct TransactionStatements<'s> {
    transactions: &'s mut Transactions,
    locked: &'s mut LockedTables,
    settings: &'s Settings,
    facts: &'s Facts,
    control: &'s ConnectionControl,
    instance: &'s Instance,
}

impl<'s> TransactionStatements<'s> {
    pub(super) fn of(runner: &'s mut StatementRunner) -> TransactionStatements<'s> {
        let StatementRunner { transactions, locked, settings, facts, control, instance, .. } =
            runner;
        TransactionStatements { transactions, locked, settings, facts, control, instance }
    }

    /// Executes one of them.
    ///
    /// # Errors
    /// 1305 for unknown savepoints, errors of the node.
    pub(super) fn run(&mut self, statement: &Statement) -> Result<()> {
        match statement {
            Statement::Begin(begin) => self.run_begin(begin),
            Statement::Commit(completion) => {
                let writing = || {
                    permission::begin_writing(self.instance, self.facts, self.settings, self.locked)
                };
                let _writing = self.transactions.is_lasting().then(writing).transpose()?;
                self.transactions.commit()?;
                self.complete(completion)
            }
            Statement::Rollback(completion) => {
                self.transactions.roll_back()?;
                self.complete(completion)
            }
            Statement::Savepoint(name) => {
                // With `autocommit=0`, it begins a transaction as any statement does.
                if self.transactions.open.is_none() && !self.settings.autocommit {
                    self.begin(None)?;
                }
                self.transactions.set_savepoint(name);
                Ok(())
            }
            Statement::RollbackTo(name) => self.transactions.roll_back_to(name),
            Statement::ReleaseSavepoint(name) => self.transactions.release_savepoint(name),
            _ => Err(SqlError::not_supported("this statement")),
        }
    }

    fn run_begin(&mut self, begin: &ast::Begin) -> Result<()> {
        *self.locked = LockedTables::default();
        self.transactions.unlock_tables()?;
        self.begin(begin.access)?;
        if begin.consistent_snapshot
            && let Some(open) = &mut self.transactions.open
        {
            open.inner.open_snapshot();
        }
        Ok(())
    }

    /// Begins a transaction that continues after the statement.
    fn begin(&mut self, access: Option<ast::AccessMode>) -> Result<()> {
        let node = &*self.instance.node;
        self.transactions.begin(node, self.settings, self.facts, true, access)
    }

    /// What follows `COMMIT` and `ROLLBACK`.
    fn complete(&mut self, completion: &ast::Completion) -> Result<()> {
        let usual = self.settings.completion;
        if completion.chain.unwrap_or(usual == Completion::Chain) {
            self.begin(None)?;
        }
        if completion.release.unwrap_or(usual == Completion::Release) {
            self.control.end_after_answer();
        }
        Ok(())
    }
}
