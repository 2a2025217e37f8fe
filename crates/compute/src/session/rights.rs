//! What the session may do, and what it may do through views: there the rights of the view's
//! definer count.
//!
//! ```text
//!   SELECT a FROM v      needs SELECT on v from the session
//!                        needs SELECT on t from v's definer, with the roles that are on by default
//! ```

use std::sync::Arc;

use firn_sql::error::{Result, SqlError};
use firn_sql::grammar::ast::{self, Statement};
use firn_sql::plan::{NeedOf, ViewUser};

use super::SqlSession;
use super::execution::Arguments;
use crate::accounts::{AccountName, Exceeded, Grants, Privilege};
use crate::privileges::{self, Need, Who, denied};

/// Privileges of which a view's creator needs one on each column that the view shows.
const FOR_VIEWS: [Privilege; 4] =
    [Privilege::SELECT, Privilege::INSERT, Privilege::UPDATE, Privilege::DELETE];

impl SqlSession {
    /// Whose privileges are looked at.
    pub(super) fn who(&self) -> Who<'_> {
        Who { grants: &self.grants, account: &self.account.name, host: &self.facts.host }
    }

    /// Refuses unless the needs are met.
    ///
    /// # Errors
    /// See [`privileges::check`].
    pub(super) fn require(&self, needs: &[Need]) -> Result<()> {
        privileges::check(needs, &self.who())
    }

    /// Refuses unless the session has one of some global privileges, static or dynamic.
    ///
    /// # Errors
    /// 1227
    pub(super) fn require_one_of(&self, privileges: &[&str], said: &str) -> Result<()> {
        let has = |name: &&str| match Privilege::named(name) {
            Some(privilege) => self.grants.global.contains(privilege),
            None => self.grants.has_dynamic(name),
        };
        if privileges.iter().any(has) { Ok(()) } else { Err(denied(said)) }
    }

    /// Refuses unless all needs of a plan are met, those of its views included.
    ///
    /// # Errors
    /// As [`privileges::check`]; 1356 and 1449 for what views may not do.
    #[inline]
    pub(super) fn check_needs(&mut self, needs: &[Need]) -> Result<()> {
        let is_met = |need: &Need| need.through.is_none() && need.is_met(&self.grants);
        if needs.iter().all(is_met) { Ok(()) } else { self.check_each_need(needs) }
    }

    fn check_each_need(&mut self, needs: &[Need]) -> Result<()> {
        self.require(needs)?;
        for need in needs {
            let Some(user) = &need.through else { continue };
            let user = Arc::clone(user);
            let is_met = match &user.definer {
                Some(definer) => need.is_met(&*self.grants_of_definer(definer)?),
                None => need.is_met(&self.grants),
            };
            if !is_met {
                return Err(lacking(&user));
            }
        }
        Ok(())
    }

    /// Counts a statement of an account that may run only so many in an hour.
    ///
    /// # Errors
    /// 1226
    #[inline]
    pub(super) fn count_use(&self) -> Result<()> {
        match self.account.policy.limits.counts_statements() {
            true => {
                let asked = self.instance.usage.asked(&self.account, self.instance.now_s());
                asked.map_err(|exceeded| self.exceeded(exceeded))
            }
            false => Ok(()),
        }
    }

    /// Counts a statement that changes something, as [`SqlSession::count_use`].
    ///
    /// # Errors
    /// 1226
    #[inline]
    pub(super) fn count_update(&self) -> Result<()> {
        match self.account.policy.limits.counts_statements() {
            true => {
                let updated = self.instance.usage.updated(&self.account, self.instance.now_s());
                updated.map_err(|exceeded| self.exceeded(exceeded))
            }
            false => Ok(()),
        }
    }

    fn exceeded(&self, Exceeded { resource, limit }: Exceeded) -> SqlError {
        let user = &self.account.name.user;
        let message = format!(
            "User '{user}' has exceeded the '{resource}' resource (current value: {limit})"
        );
        SqlError::new(1226, message)
    }

    /// What a view's definer may do.
    fn grants_of_definer(&mut self, definer: &Arc<str>) -> Result<Arc<Grants>> {
        if let Some(grants) = self.definers.get(definer) {
            return Ok(Arc::clone(grants));
        }
        let book = &self.instance.accounts;
        let Some(account) = book.get(&named(definer)) else {
            return Err(self.missing_definer(definer));
        };
        let grants = Arc::new(book.effective(&account, &account.default_roles));
        self.definers.insert(Arc::clone(definer), Arc::clone(&grants));
        Ok(grants)
    }

    /// Only those who may create views in the names of others are told of a definer who is gone.
    fn missing_definer(&self, definer: &str) -> SqlError {
        let AccountName { user, host } = named(definer);
        if self.grants.global.contains(Privilege::SUPER) {
            let message =
                format!("The user specified as a definer ('{user}'@'{host}') does not exist");
            return SqlError::new(1449, message);
        }
        self.access_denied()
    }

    /// `Access denied for user 'u'@'h' (using password: YES)`
    pub(super) fn access_denied(&self) -> SqlError {
        let with = if self.account.authentication.is_empty() { "NO" } else { "YES" };
        let (user, host) = (&self.account.name.user, &self.facts.host);
        let message = format!("Access denied for user '{user}'@'{host}' (using password: {with})");
        SqlError::new(1045, message)
    }

    /// Refuses a view that its creator may not create.
    ///
    /// # Errors
    /// 1142, 1143 and 1227 without the privileges; what the query's names answer.
    pub(super) fn judge_view(&mut self, create: &ast::CreateView) -> Result<()> {
        self.judge_query_of_view(create)?;
        let Some(definer) = self.definer_to_be(create) else { return Ok(()) };
        if definer == self.account.name {
            return Ok(());
        }
        self.require_one_of(
            &["SUPER", "SET_ANY_DEFINER", "SET_USER_ID"],
            "SUPER or SET_ANY_DEFINER",
        )?;
        match self.instance.accounts.get(&definer) {
            Some(account) => self.require_system(&account.grants),
            None => {
                self.require_one_of(
                    &["SUPER", "ALLOW_NONEXISTENT_DEFINER", "SET_USER_ID"],
                    "SUPER or ALLOW_NONEXISTENT_DEFINER",
                )?;
                let AccountName { user, host } = &definer;
                self.evaluation.note(1449, || {
                    format!("The user specified as a definer ('{user}'@'{host}') does not exist")
                });
                Ok(())
            }
        }
    }

    /// Whose rights a view will have. `ALTER VIEW` without a definer keeps the one before.
    fn definer_to_be(&self, create: &ast::CreateView) -> Option<AccountName> {
        match &create.definer {
            Some(ast::Account::Named { user, host }) => Some(AccountName::new(user, host)),
            Some(ast::Account::Current) => None,
            None if create.alter => {
                let schema = self.schema_of(&create.view);
                let before = self.catalog.table(&schema, &create.view.name).ok()?;
                before.view().map(|view| named(&view.definer))
            }
            None => None,
        }
    }

    fn require_system(&self, of: &Grants) -> Result<()> {
        match of.is_system() && !self.grants.is_system() {
            true => Err(denied("SYSTEM_USER")),
            false => Ok(()),
        }
    }

    /// Refuses to drop a view that has the rights of an account which the session may not change.
    ///
    /// # Errors
    /// 1227
    pub(super) fn judge_dropped_views(&self, views: &[ast::TableName]) -> Result<()> {
        for view in views {
            let schema = self.schema_of(view);
            let Ok(Some(found)) = self.catalog.find_table(&schema, &view.name) else { continue };
            let account =
                found.view().and_then(|view| self.instance.accounts.get(&named(&view.definer)));
            if let Some(account) = account.filter(|account| account.name != self.account.name) {
                self.require_system(&account.grants)?;
            }
        }
        Ok(())
    }

    fn judge_query_of_view(&mut self, create: &ast::CreateView) -> Result<()> {
        let query = ast::Select { query: create.query.clone(), into: None };
        let held = std::mem::replace(&mut self.judges_view, true);
        let planned = self.plan(&Statement::Select(Box::new(query)), &Arguments::default());
        self.judges_view = held;
        let needs = planned?.needs;
        self.require_for_view(&needs)
    }

    /// Refuses a view over tables on which the session has nothing.
    ///
    /// # Errors
    /// 1142, 1143
    pub(super) fn require_for_view(&self, needs: &[Need]) -> Result<()> {
        let who = self.who();
        let own = || needs.iter().filter(|need| need.through.is_none());
        let some = |need: &Need| {
            FOR_VIEWS
                .iter()
                .any(|one| Need { privilege: *one, ..need.clone() }.is_met(&self.grants))
        };
        let of_tables = |need: &&Need| need.of != NeedOf::Columns;
        if let Some(need) = own().filter(of_tables).find(|need| !some(need)) {
            return Err(privileges::table_denied("ANY", need.table.as_deref().unwrap_or(""), &who));
        }
        for need in own().filter(|need| need.of == NeedOf::Columns) {
            for column in &need.columns {
                let one = Need { columns: vec![Arc::clone(column)], ..need.clone() };
                if !some(&one) {
                    let table = need.table.as_deref().unwrap_or("");
                    return Err(privileges::column_denied("create view", column, table, &who));
                }
            }
        }
        Ok(())
    }
}

/// `user@host` as a view keeps it.
fn named(definer: &str) -> AccountName {
    let (user, host) = definer.rsplit_once('@').unwrap_or((definer, "%"));
    AccountName::new(user, host)
}

fn lacking(user: &ViewUser) -> SqlError {
    let message = format!(
        "View '{}.{}' references invalid table(s) or column(s) or function(s) or definer/invoker of view \
         lack rights to use them",
        user.schema, user.view
    );
    SqlError::new(1356, message)
}
