//! A session's rights on views: to create them, name their definers, drop them.

use firn_sql::error::Result;
use firn_sql::grammar::ast::{self, Statement};

use super::rights::named;
use super::runner::StatementRunner;
use crate::accounts::AccountName;

/// Judges statements about views in a session.
pub(super) struct ViewRights<'s> {
    runner: &'s StatementRunner,
}

impl<'s> ViewRights<'s> {
    pub(super) fn of(runner: &'s StatementRunner) -> ViewRights<'s> {
        ViewRights { runner }
    }

    /// Refuses a view that its creator may not create.
    ///
    /// # Errors
    /// 1142, 1143 and 1227 without the privileges; errors of the query's names.
    pub(super) fn judge_view(&self, create: &ast::CreateView) -> Result<()> {
        self.judge_query_of_view(create)?;
        let Some(definer) = self.definer_to_be(create) else { return Ok(()) };
        if definer == self.runner.rights.account.name {
            return Ok(());
        }
        self.runner.rights.require_one_of(
            &["SUPER", "SET_ANY_DEFINER", "SET_USER_ID"],
            "SUPER or SET_ANY_DEFINER",
        )?;
        match self.runner.instance.accounts.get(&definer) {
            Some(account) => self.runner.rights.require_system(&account.grants),
            None => {
                self.runner.rights.require_one_of(
                    &["SUPER", "ALLOW_NONEXISTENT_DEFINER", "SET_USER_ID"],
                    "SUPER or ALLOW_NONEXISTENT_DEFINER",
                )?;
                let AccountName { user, host } = &definer;
                self.runner.evaluation.note(1449, || {
                    format!("The user specified as a definer ('{user}'@'{host}') does not exist")
                });
                Ok(())
            }
        }
    }

    /// The user whose rights a view will have. `ALTER VIEW` without a definer keeps the previous
    /// one.
    fn definer_to_be(&self, create: &ast::CreateView) -> Option<AccountName> {
        match &create.definer {
            Some(ast::Account::Named { user, host }) => Some(AccountName::new(user, host)),
            Some(ast::Account::Current) => None,
            None if create.alter => {
                let schema = self.runner.state.connection.schema_of(&create.view);
                let before = self.runner.catalog.table(&schema, &create.view.name).ok()?;
                before.view().map(|view| named(&view.definer))
            }
            None => None,
        }
    }

    /// Refuses to drop a view with the rights of an account that the session may not change.
    ///
    /// # Errors
    /// 1227
    pub(super) fn judge_dropped_views(&self, views: &[ast::TableName]) -> Result<()> {
        for view in views {
            let schema = self.runner.state.connection.schema_of(view);
            let Ok(Some(found)) = self.runner.catalog.find_table(&schema, &view.name) else {
                continue;
            };
            let account = found
                .view()
                .and_then(|view| self.runner.instance.accounts.get(&named(&view.definer)));
            if let Some(account) =
                account.filter(|account| account.name != self.runner.rights.account.name)
            {
                self.runner.rights.require_system(&account.grants)?;
            }
        }
        Ok(())
    }

    fn judge_query_of_view(&self, create: &ast::CreateView) -> Result<()> {
        let query = ast::Select { query: create.query.clone(), into: None };
        self.runner.plan_for_view(&Statement::Select(Box::new(query))).map(drop)
    }
}
