//! The session's privileges, directly and through views, where the rights of the view's definer
//! count.
//!
//! ```text
//!   SELECT a FROM v      needs SELECT on v from the session
//!                        needs SELECT on t from v's definer, with the roles that are on by default
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;

use firn_sql::catalog::SessionCatalog;
use firn_sql::error::{Result, SqlError};
use firn_sql::plan::ViewUser;
use rustc_hash::FxHashMap;

use crate::accounts::need::{self, Need, Who, denied, is_open, table_denied};
use crate::accounts::{Account, AccountName, Exceeded, Grants, Privilege};
use crate::instance::Instance;
use crate::session_facts::Facts;

/// A view's creator needs one of these privileges on each column that the view shows.
const FOR_VIEWS: [Privilege; 4] =
    [Privilege::SELECT, Privilege::INSERT, Privilege::UPDATE, Privilege::DELETE];

pub(super) struct Rights {
    instance: Arc<Instance>,
    facts: Arc<Facts>,
    pub(super) account: Arc<Account>,
    /// The privileges of the account and its active roles.
    pub(super) grants: Arc<Grants>,
    /// The version of the accounts that this was computed from; 0: of none.
    version: u64,
    /// The privileges of the views' definers.
    definers: FxHashMap<Arc<str>, Arc<Grants>>,
    /// The password has to be changed before anything else.
    pub(super) sandboxed: bool,
}

impl Rights {
    /// The rights of a session, which [`Rights::refresh`] computes.
    pub(super) fn new(
        instance: &Arc<Instance>,
        facts: &Arc<Facts>,
        account: Arc<Account>,
    ) -> Rights {
        Rights {
            instance: Arc::clone(instance),
            facts: Arc::clone(facts),
            account,
            grants: Arc::new(Grants::default()),
            version: 0,
            definers: FxHashMap::default(),
            sandboxed: false,
        }
    }

    /// Has them computed again before they are next used.
    pub(super) fn forget(&mut self) {
        self.version = 0;
    }

    /// Recomputes the session's privileges, if accounts have changed.
    pub(super) fn refresh(&mut self) -> Result<()> {
        let version = self.instance.accounts.version();
        if version == self.version {
            return Ok(());
        }
        self.definers.clear();
        let Some(account) = self.instance.accounts.get(&self.account.name) else {
            // The account was dropped: the session continues without rights.
            self.grants = Arc::new(Grants::default());
            self.version = version;
            return Ok(());
        };
        let roles: BTreeSet<AccountName> = {
            let mut roles = self.facts.roles.lock();
            roles.retain(|role| {
                account.roles.contains(role) || account.default_roles.contains(role)
            });
            roles.clone()
        };
        self.grants = Arc::new(self.instance.accounts.effective(&account, &roles));
        // A password that expires while the session is open is checked at the next login.
        let is_new = self.version == 0 || self.sandboxed;
        self.sandboxed = account.expired || is_new && self.is_outlived(&account);
        self.account = account;
        self.version = version;
        Ok(())
    }

    fn is_outlived(&self, account: &Account) -> bool {
        let lifetime = self.instance.variables.get("default_password_lifetime");
        let days = lifetime.map_or(0, |value| value.number());
        account.policy.is_outlived(days, self.instance.now_s())
    }

    /// Refuses statements that an expired password does not allow.
    ///
    /// # Errors
    /// 1820
    pub(super) fn refuse_sandboxed(&mut self) -> Result<()> {
        self.refresh()?;
        match self.sandboxed {
            true => Err(SqlError::new(
                1820,
                "You must reset your password using ALTER USER statement before executing this \
                 statement.",
            )),
            false => Ok(()),
        }
    }

    /// `Access denied for user 'u'@'h' to database 'd'`
    pub(super) fn schema_denied(&self, schema: &str) -> SqlError {
        let AccountName { user, host } = &self.account.name;
        let why = format!("Access denied for user '{user}'@'{host}' to database '{schema}'");
        SqlError::new(1044, why)
    }

    /// Refuses if the session may not know a table's columns.
    ///
    /// # Errors
    /// 1142
    pub(super) fn refuse_unseen(
        &self,
        catalog: &SessionCatalog,
        schema: &str,
        table: &str,
    ) -> Result<()> {
        let is_temporary = || matches!(catalog.temporary_table(schema, table), Ok(Some(_)));
        let reads = self.grants.on_schema(schema).contains(Privilege::SELECT);
        match reads || is_open(schema) || self.grants.has_own(schema, table) || is_temporary() {
            true => Ok(()),
            false => Err(table_denied("SELECT", table, &self.who())),
        }
    }

    /// The session whose privileges are checked.
    pub(super) fn who(&self) -> Who<'_> {
        Who { grants: &self.grants, account: &self.account.name, host: &self.facts.host }
    }

    /// Refuses unless the needs are met.
    ///
    /// # Errors
    /// See [`need::check`].
    pub(super) fn require(&self, needs: &[Need]) -> Result<()> {
        need::check(needs, &self.who())
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

    /// Refuses unless all needs of a plan are met, including those of its views.
    ///
    /// # Errors
    /// As [`need::check`]; 1356 and 1449 for privileges that views lack.
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

    /// Counts a statement of an account with an hourly limit.
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

    /// Counts a statement that changes something, as [`Rights::count_use`].
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

    /// The privileges of a view's definer.
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

    /// Only a user who may create views for others learns that a definer does not exist.
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

    pub(super) fn require_system(&self, of: &Grants) -> Result<()> {
        match of.is_system() && !self.grants.is_system() {
            true => Err(denied("SYSTEM_USER")),
            false => Ok(()),
        }
    }

    /// Refuses a view over tables on which the session has no privileges.
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
        let of_tables = |need: &&Need| !need.of.is_of_columns();
        if let Some(need) = own().filter(of_tables).find(|need| !some(need)) {
            return Err(need::table_denied("ANY", need.table.as_deref().unwrap_or(""), &who));
        }
        for need in own().filter(|need| need.of.is_of_columns()) {
            for column in &need.columns {
                let one = Need { columns: vec![Arc::clone(column)], ..need.clone() };
                if !some(&one) {
                    let table = need.table.as_deref().unwrap_or("");
                    return Err(need::column_denied("create view", column, table, &who));
                }
            }
        }
        Ok(())
    }
}

/// `user@host` as stored with a view.
pub(super) fn named(definer: &str) -> AccountName {
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
