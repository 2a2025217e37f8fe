//! Statements about accounts.

use std::cell::RefCell;
use std::collections::BTreeSet;

use firn_sql::catalog::{Relation, SessionCatalog};
use firn_sql::error::{Condition, Result, SqlError};
use firn_sql::grammar::ast::{self, Statement};
use firn_sql::types::session_facts::SessionFacts;
use firn_wire::auth::{AuthPlugin, caching_sha2};

use super::answers::Table;
use super::connection::ConnectionState;
use super::rights::Rights;
use super::runner::StatementRunner;
use crate::accounts::need::table_denied;
use crate::accounts::{Account, AccountContext, AccountName, PolicyDefaults, Privilege};
use crate::instance::Instance;
use crate::session_facts::Facts;

/// A plugin's stored form of a password; `None` for an unknown plugin.
fn hash(plugin: &str, password: &str) -> Option<String> {
    let plugin = AuthPlugin::from_name(plugin)?;
    Some(match password {
        "" => String::new(),
        password => plugin.authentication_string(password.as_bytes()),
    })
}

/// Whether a password matches a plugin's stored form.
fn proves(plugin: &str, password: &str, kept: &str) -> bool {
    match AuthPlugin::from_name(plugin) {
        _ if kept.is_empty() => password.is_empty(),
        Some(AuthPlugin::CachingSha2Password) => {
            caching_sha2::verify_password(kept.as_bytes(), password.as_bytes())
        }
        _ => hash(plugin, password).as_deref() == Some(kept),
    }
}

/// The answer with generated passwords.
fn made_passwords(made: &[(AccountName, String)]) -> Table {
    let mut table = Table::of_text(&["user", "host", "generated password", "auth_factor"]);
    for (name, password) in made {
        table.push_text(&[&name.user, &name.host, password, "1"]);
    }
    table
}

/// Runs statements about accounts and roles in a session.
pub(super) struct AccountStatements<'s> {
    pub(super) rights: &'s mut Rights,
    pub(super) connection: &'s ConnectionState,
    pub(super) catalog: &'s SessionCatalog,
    pub(super) facts: &'s Facts,
    pub(super) instance: &'s Instance,
}

impl<'s> AccountStatements<'s> {
    pub(super) fn of(runner: &'s mut StatementRunner) -> AccountStatements<'s> {
        let StatementRunner { rights, state, catalog, facts, instance, .. } = runner;
        AccountStatements { rights, connection: &state.connection, catalog, facts, instance }
    }
}

impl AccountStatements<'_> {
    /// Executes a statement; returns the passwords that it generated, and its warnings.
    ///
    /// # Errors
    /// See [`AccountContext`].
    pub(super) fn change(
        &mut self,
        statement: &Statement,
    ) -> Result<(Option<Table>, Vec<Condition>)> {
        let current = self.rights.account.name.clone();
        let grants = std::sync::Arc::clone(&self.rights.grants);
        let variables = &self.connection.variables;
        let length = variables.known("generated_random_password_length").number();
        let password_length = usize::try_from(length).unwrap_or(20);
        let mut context = AccountContext {
            book: &self.instance.accounts,
            current: &current,
            grants: &grants,
            host: &self.facts.host,
            schema: self.connection.schema.as_deref(),
            hash: &hash,
            proves: &proves,
            defaults: self.policy_defaults(),
            now_s: self.instance.now_s(),
            random: &|| self.facts.random_u64(),
            password_length,
            made: RefCell::default(),
            conditions: Vec::new(),
        };
        match statement {
            Statement::CreateUser(statement) => context.create_user(statement)?,
            Statement::AlterUser(statement) => context.alter_user(statement)?,
            Statement::DropUser { if_exists, users } => {
                context.drop_accounts("DROP USER", *if_exists, users)?;
            }
            Statement::RenameUser(pairs) => context.rename_user(pairs)?,
            Statement::CreateRole { if_not_exists, roles } => {
                context.create_role(*if_not_exists, roles)?;
            }
            Statement::DropRole { if_exists, roles } => {
                context.drop_accounts("DROP ROLE", *if_exists, roles)?;
            }
            Statement::Grant(statement) => {
                // What may not be granted does not tell whether it exists.
                context.check_grant(statement)?;
                self.refuse_grant_on_missing(statement)?;
                context.grant(statement)?;
            }
            Statement::Revoke(statement) => context.revoke(statement)?,
            Statement::GrantRoles { roles, to, with_admin_option } => {
                context.grant_roles(roles, to, *with_admin_option)?;
            }
            Statement::RevokeRoles { roles, from, .. } => context.revoke_roles(roles, from)?,
            Statement::SetPassword(statement) => context.change_password(statement)?,
            Statement::SetDefaultRole { roles, to } => context.set_default_role(roles, to)?,
            Statement::SetRole(choice) => {
                let account = std::sync::Arc::clone(&self.rights.account);
                let roles = context.chosen(choice, &account)?;
                *self.facts.roles.lock() = roles;
                self.facts.role_changes.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                self.rights.forget();
            }
            _ => return Err(SqlError::not_supported("this statement about accounts")),
        }
        let (made, warnings) = (context.made.take(), context.conditions);
        self.forgive_unlocked(statement);
        self.rights.refresh()?;
        Ok(((!made.is_empty()).then(|| made_passwords(&made)), warnings))
    }

    fn policy_defaults(&self) -> PolicyDefaults {
        let number = |name| self.instance.variables.get(name).map_or(0, |value| value.number());
        let requires = self.instance.variables.get("password_require_current");
        PolicyDefaults {
            history: number("password_history"),
            reuse_days: number("password_reuse_interval"),
            requires_current: requires.is_some_and(|value| value.is_on()),
        }
    }

    /// Forgets failed logins of an account that is unlocked, whose limits change, or that is
    /// created again.
    fn forgive_unlocked(&self, statement: &Statement) {
        let users: Vec<&ast::Account> = match statement {
            Statement::CreateUser(create) => {
                create.users.iter().map(|user| &user.account).collect()
            }
            Statement::AlterUser(alter)
                if alter.options.locked == Some(false)
                    || alter.options.failed_login_attempts.is_some()
                    || alter.options.password_lock_days.is_some() =>
            {
                alter.users.iter().map(|user| &user.account).collect()
            }
            Statement::RenameUser(pairs) => {
                pairs.iter().flat_map(|(old, new)| [old, new]).collect()
            }
            _ => Vec::new(),
        };
        for user in users {
            self.instance.usage.forgive(&match user {
                ast::Account::Named { user, host } => AccountName::new(user, host),
                ast::Account::Current => self.rights.account.name.clone(),
            });
        }
    }

    /// `SHOW GRANTS`.
    ///
    /// # Errors
    /// 1141 for an unknown account, 1044 for another user's account without the privilege, 3530 for
    /// roles of `USING` that the account does not have.
    pub(super) fn show_grants(
        &self,
        account: Option<&ast::Account>,
        using: &[ast::Account],
    ) -> Result<Table> {
        let name = match account {
            Some(ast::Account::Named { user, host }) => AccountName::new(user, host),
            Some(ast::Account::Current) | None => self.rights.account.name.clone(),
        };
        let may = self.rights.grants.on_schema("mysql").contains(Privilege::SELECT);
        if name != self.rights.account.name && !may {
            return Err(table_denied("SELECT", "user", &self.rights.who()));
        }
        let AccountName { user, host } = &name;
        let account = self.instance.accounts.get(&name).ok_or_else(|| {
            let why = format!("There is no such grant defined for user '{user}' on host '{host}'");
            SqlError::new(1141, why)
        })?;
        let roles = match using {
            [] if account.name == self.rights.account.name => self.facts.roles.lock().clone(),
            using => self.shown_roles(&account, using)?,
        };
        let grants = self.instance.accounts.effective(&account, &roles);
        let mut table = Table::of_text(&[&format!("Grants for {user}@{host}")]);
        for line in grants.shown(&name) {
            table.push_text(&[&line]);
        }
        if !account.roles.is_empty() {
            let roles: Vec<String> = account.roles.iter().map(AccountName::quoted).collect();
            table.push_text(&[&format!("GRANT {} TO {}", roles.join(","), name.quoted())]);
        }
        Ok(table)
    }

    /// The roles named by `SHOW GRANTS … USING`.
    fn shown_roles(
        &self,
        account: &Account,
        using: &[ast::Account],
    ) -> Result<BTreeSet<AccountName>> {
        let named = using.iter().map(|role| {
            let role = match role {
                ast::Account::Named { user, host } => AccountName::new(user, host),
                ast::Account::Current => self.rights.account.name.clone(),
            };
            match account.roles.contains(&role) {
                true => Ok(role),
                false => {
                    let (role, to) = (role.quoted(), account.name.quoted());
                    Err(SqlError::new(3530, format!("{role} is not granted to {to}")))
                }
            }
        });
        named.collect()
    }

    /// The table or column of a grant must exist, unless it may be created.
    fn refuse_grant_on_missing(&self, statement: &ast::Grant) -> Result<()> {
        let ast::PrivilegeLevel::Table(name) = &statement.level else { return Ok(()) };
        let ast::Privileges::These(privileges) = &statement.privileges else {
            return self.granted_table(name).map(|_| ());
        };
        if privileges.iter().any(|one| one.name == "CREATE") {
            return Ok(());
        }
        let Relation::Table(table) = self.granted_table(name)? else { return Ok(()) };
        let mut columns = privileges.iter().flat_map(|one| &one.columns);
        match columns.find(|column| table.column(column).is_none()) {
            Some(column) => {
                let message = format!("Unknown column '{column}' in '{}'", table.name);
                Err(SqlError::new(1054, message))
            }
            None => Ok(()),
        }
    }

    fn granted_table(&self, name: &ast::TableName) -> Result<Relation> {
        let schema = name.schema.as_deref().or(self.connection.schema.as_deref());
        let schema = schema.ok_or_else(|| SqlError::new(1046, "No database selected"))?;
        self.catalog.relation(schema, &name.name)
    }

    /// `SHOW CREATE USER`.
    ///
    /// # Errors
    /// As [`AccountStatements::show_grants`].
    pub(super) fn show_create_user(&self, account: &ast::Account) -> Result<Table> {
        let name = match account {
            ast::Account::Named { user, host } => AccountName::new(user, host),
            ast::Account::Current => self.rights.account.name.clone(),
        };
        let may = self.rights.grants.on_schema("mysql").contains(Privilege::SELECT);
        if name != self.rights.account.name && !may {
            return Err(self.rights.schema_denied("mysql"));
        }
        let Some(account) = self.instance.accounts.get(&name) else {
            let name = name.in_message();
            let why = format!(
                "Operation SHOW CREATE USER failed for {name} (User account does not exist)"
            );
            return Err(SqlError::new(1396, why));
        };
        let require = if account.requires_tls { "SSL" } else { "NONE" };
        let expire = match account.expired {
            true => "PASSWORD EXPIRE".to_owned(),
            false => account.policy.shown_lifetime(),
        };
        let lock = if account.locked { "LOCK" } else { "UNLOCK" };
        let identified = match account.authentication.as_str() {
            "" => format!("IDENTIFIED WITH '{}'", account.plugin),
            kept => {
                format!("IDENTIFIED WITH '{}' AS '{}'", account.plugin, kept.replace('\'', "''"))
            }
        };
        let text = format!(
            "CREATE USER {} {identified} REQUIRE {require}{} {expire} ACCOUNT {lock} {}{}",
            name.quoted(),
            account.policy.shown_limits(),
            account.policy.shown_rules(),
            account.attribute.as_ref().map_or(String::new(), |attribute| {
                format!(" ATTRIBUTE '{}'", attribute.replace('\'', "''"))
            }),
        );
        let mut table = Table::of_text(&[&format!("CREATE USER for {}@{}", name.user, name.host)]);
        table.push_text(&[&text]);
        Ok(table)
    }
}
