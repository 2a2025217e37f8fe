//! Statements about accounts.

use std::cell::RefCell;
use std::collections::BTreeSet;

use firn_sql::catalog::Relation;
use firn_sql::error::{Result, SqlError};
use firn_sql::functions::SessionFacts;
use firn_sql::grammar::ast::{self, Statement};
use firn_wire::auth::AuthPlugin;

use super::SqlSession;
use super::answer::Table;
use crate::accounts::{Account, AccountContext, AccountName, Privilege};

/// What a plugin keeps of a password; `None` for a plugin that is not there.
fn hash(plugin: &str, password: &str) -> Option<String> {
    let plugin = AuthPlugin::from_name(plugin)?;
    Some(match password {
        "" => String::new(),
        password => plugin.authentication_string(password.as_bytes()),
    })
}

/// The answer with passwords that the server made.
fn made_passwords(made: &[(AccountName, String)]) -> Table {
    let mut table = Table::of_text(&["user", "host", "generated password", "auth_factor"]);
    for (name, password) in made {
        table.push_text(&[&name.user, &name.host, password, "1"]);
    }
    table
}

impl SqlSession {
    /// Does what a statement about accounts says; answers the passwords that it made.
    ///
    /// # Errors
    /// See [`AccountContext`].
    pub(super) fn change_accounts(&mut self, statement: &Statement) -> Result<Option<Table>> {
        let current = self.account.name.clone();
        let grants = std::sync::Arc::clone(&self.grants);
        let schema = self.state.schema.clone();
        let facts = std::sync::Arc::clone(&self.facts);
        let length = self.state.variables.known("generated_random_password_length").number();
        let password_length = usize::try_from(length).unwrap_or(20);
        let mut context = AccountContext {
            book: &self.instance.accounts,
            current: &current,
            grants: &grants,
            schema: schema.as_deref(),
            hash: &hash,
            random: &|| facts.random_u64(),
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
                let account = std::sync::Arc::clone(&self.account);
                let roles = context.chosen(choice, &account)?;
                *self.facts.roles.lock() = roles;
                self.accounts_version = 0;
            }
            _ => return Err(SqlError::not_supported("this statement about accounts")),
        }
        let made = context.made.take();
        self.conditions = context.conditions;
        self.refresh_grants()?;
        Ok((!made.is_empty()).then(|| made_passwords(&made)))
    }

    /// `SHOW GRANTS`.
    ///
    /// # Errors
    /// 1141 for an unknown account, 1044 for another one's without the privilege, 3530 for roles of `USING`
    /// that the account does not have.
    pub(super) fn show_grants(
        &self,
        account: Option<&ast::Account>,
        using: &[ast::Account],
    ) -> Result<Table> {
        let name = match account {
            Some(ast::Account::Named { user, host }) => AccountName::new(user, host),
            Some(ast::Account::Current) | None => self.account.name.clone(),
        };
        let may = self.grants.on_schema("mysql").contains(Privilege::SELECT);
        if name != self.account.name && !may {
            let AccountName { user, host } = &self.account.name;
            let why = format!("Access denied for user '{user}'@'{host}' to database 'mysql'");
            return Err(SqlError::new(1044, why));
        }
        let AccountName { user, host } = &name;
        let account = self.instance.accounts.get(&name).ok_or_else(|| {
            let why = format!("There is no such grant defined for user '{user}' on host '{host}'");
            SqlError::new(1141, why)
        })?;
        let roles = match using {
            [] if account.name == self.account.name => self.facts.roles.lock().clone(),
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

    /// The roles that `SHOW GRANTS … USING` names.
    fn shown_roles(
        &self,
        account: &Account,
        using: &[ast::Account],
    ) -> Result<BTreeSet<AccountName>> {
        let named = using.iter().map(|role| {
            let role = match role {
                ast::Account::Named { user, host } => AccountName::new(user, host),
                ast::Account::Current => self.account.name.clone(),
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

    /// What is granted on a table or column must be there, unless it may be created.
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
        let schema = name.schema.as_deref().or(self.state.schema.as_deref());
        let schema = schema.ok_or_else(|| SqlError::new(1046, "No database selected"))?;
        self.catalog.relation(schema, &name.name)
    }

    /// `SHOW CREATE USER`.
    ///
    /// # Errors
    /// As [`SqlSession::show_grants`].
    pub(super) fn show_create_user(&self, account: &ast::Account) -> Result<Table> {
        let name = match account {
            ast::Account::Named { user, host } => AccountName::new(user, host),
            ast::Account::Current => self.account.name.clone(),
        };
        self.show_grants(
            Some(&ast::Account::Named { user: name.user.clone(), host: name.host.clone() }),
            &[],
        )?;
        let Some(account) = self.instance.accounts.get(&name) else {
            return Err(SqlError::new(1141, "There is no such account"));
        };
        let require = if account.requires_tls { "SSL" } else { "NONE" };
        let expire = if account.expired { " PASSWORD EXPIRE" } else { " PASSWORD EXPIRE DEFAULT" };
        let lock = if account.locked { "LOCK" } else { "UNLOCK" };
        let identified = match account.authentication.as_str() {
            "" => format!("IDENTIFIED WITH '{}'", account.plugin),
            kept => {
                format!("IDENTIFIED WITH '{}' AS '{}'", account.plugin, kept.replace('\'', "''"))
            }
        };
        let text = format!(
            "CREATE USER {} {identified} REQUIRE {require}{expire} ACCOUNT {lock} PASSWORD HISTORY \
             DEFAULT PASSWORD REUSE INTERVAL DEFAULT PASSWORD REQUIRE CURRENT DEFAULT",
            name.quoted()
        );
        let mut table = Table::of_text(&[&format!("CREATE USER for {}@{}", name.user, name.host)]);
        table.push_text(&[&text]);
        Ok(table)
    }
}
