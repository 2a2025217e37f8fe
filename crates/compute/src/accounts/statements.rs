//! `CREATE USER`, `GRANT` and the other statements about accounts.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use firn_sql::error::{Condition, Level as Gravity, Result, SqlError};
use firn_sql::grammar::ast::{
    self, AlterUser, CreateUser, Grant, PrivilegeLevel, Privileges, Revoke, RoleChoice,
    TlsRequirement, UserOptions,
};

use super::account::{Account, AccountName};
use super::attribute;
use super::book::{AccountBook, StoreError};
use super::grants::{Grants, Level};
use super::need::denied;
use super::policy::PolicyDefaults;
use super::privilege::{DYNAMIC, Privilege, PrivilegeSet};

type Accounts = BTreeMap<AccountName, Arc<Account>>;

impl From<StoreError> for SqlError {
    fn from(error: StoreError) -> SqlError {
        let code = match error {
            StoreError::Rows(ref error) => error.mysql_code(),
            StoreError::Document(_) => 1728,
            StoreError::Server(error) => return crate::server::refused(error),
        };
        SqlError::new(code, error.to_string())
    }
}

/// The session that changes accounts, and the messages that result.
pub struct AccountContext<'a> {
    pub book: &'a AccountBook,
    /// The session's account.
    pub current: &'a AccountName,
    /// Its privileges, including those of its roles.
    pub grants: &'a Grants,
    /// Where its client comes from.
    pub host: &'a str,
    /// The current schema.
    pub schema: Option<&'a str>,
    /// The form of a password that a plugin stores; `None` for an unknown plugin.
    pub hash: &'a dyn Fn(&str, &str) -> Option<String>,
    /// Whether a password matches a plugin's stored form.
    pub proves: &'a dyn Fn(&str, &str, &str) -> bool,
    /// The rules for passwords if an account has none.
    pub defaults: PolicyDefaults,
    /// The time, in seconds since 1970.
    pub now_s: u64,
    /// Randomness for passwords.
    pub random: &'a dyn Fn() -> u64,
    /// The length of generated passwords.
    pub password_length: usize,
    /// Generated passwords, to be shown to the client.
    pub made: RefCell<Vec<(AccountName, String)>>,
    /// Notes, such as those of `IF EXISTS`.
    pub conditions: Vec<Condition>,
}

impl AccountContext<'_> {
    pub(super) fn name(&self, account: &ast::Account) -> AccountName {
        match account {
            ast::Account::Named { user, host } => AccountName::new(user, host),
            ast::Account::Current => self.current.clone(),
        }
    }

    fn note(&mut self, code: u16, message: String) {
        self.conditions.push(Condition { level: Gravity::Note, code, message });
    }

    fn require(&self, privilege: Privilege) -> Result<()> {
        if self.grants.global.contains(privilege) {
            return Ok(());
        }
        Err(denied(privilege.name))
    }

    /// A session that may write to the tables of accounts has the rights of `CREATE USER`.
    fn require_on_accounts(&self, on_tables: Privilege) -> Result<()> {
        if self.grants.on_schema("mysql").contains(on_tables) {
            return Ok(());
        }
        self.require(Privilege::CREATE_USER)
    }

    /// Only those with `SYSTEM_USER` may change an account that has it.
    pub(super) fn refuse_system(&self, account: &Account) -> Result<()> {
        let may = self.grants.is_system() || account.name == *self.current;
        match self.book.effective(account, &account.roles).is_system() && !may {
            true => Err(denied("SYSTEM_USER")),
            false => Ok(()),
        }
    }

    /// `CREATE USER`.
    ///
    /// # Errors
    /// 1396 for names that already exist; 1227 without the privilege; 1524 for an unknown plugin.
    pub fn create_user(&mut self, statement: &CreateUser) -> Result<()> {
        self.require_on_accounts(Privilege::INSERT)?;
        let roles: Vec<AccountName> =
            statement.default_roles.iter().map(|role| self.name(role)).collect();
        if !roles.is_empty() {
            self.may_hand_on(&roles)?;
        }
        let mut taken = Vec::new();
        self.book.change(|accounts| {
            let mut refused = Vec::new();
            for user in &statement.users {
                let name = self.name(&user.account);
                if name.user.is_empty() {
                    return Err(SqlError::not_supported("anonymous accounts"));
                }
                if accounts.contains_key(&name) {
                    refused.push(name);
                    continue;
                }
                let mut account = Account::new(name.clone());
                self.authenticate(&mut account, user)?;
                apply_options(&mut account, &statement.options)?;
                let roles = statement.default_roles.iter().map(|role| self.name(role));
                account.default_roles = roles.collect();
                account.roles.extend(account.default_roles.iter().cloned());
                accounts.insert(name, Arc::new(account));
            }
            if !statement.if_not_exists && !refused.is_empty() {
                return Err(failed("CREATE USER", &refused));
            }
            taken = refused;
            Ok::<_, SqlError>(())
        })?;
        for name in taken {
            let message = format!("Authorization ID {} already exists.", name.in_message());
            self.note(3163, message);
        }
        Ok(())
    }

    /// `ALTER USER`.
    ///
    /// # Errors
    /// 1396 for unknown accounts, 1227 without the privilege.
    pub fn alter_user(&mut self, statement: &AlterUser) -> Result<()> {
        let own = statement.users.iter().all(|user| self.name(&user.account) == *self.current);
        if !own || statement.options != UserOptions::default() {
            self.require_on_accounts(Privilege::UPDATE)?;
        }
        let mut absent = Vec::new();
        self.book.change(|accounts| {
            for user in &statement.users {
                let name = self.name(&user.account);
                let Some(account) = accounts.get_mut(&name) else {
                    absent.push(name);
                    continue;
                };
                self.refuse_system(account)?;
                let account = Arc::make_mut(account);
                self.authenticate(account, user)?;
                apply_options(account, &statement.options)?;
                if let Some(choice) = &statement.default_role {
                    account.default_roles = self.chosen(choice, account)?;
                }
            }
            if absent.is_empty() || statement.if_exists {
                return Ok(());
            }
            Err(failed("ALTER USER", &absent))
        })?;
        self.note_absent(absent);
        Ok(())
    }

    fn note_absent(&mut self, absent: Vec<AccountName>) {
        for name in absent {
            self.note(3162, format!("Authorization ID {} does not exist.", name.in_message()));
        }
    }

    /// The roles that a choice means for an account.
    ///
    /// # Errors
    /// 3530 for a role that was not granted.
    pub fn chosen(
        &self,
        choice: &RoleChoice,
        account: &Account,
    ) -> Result<std::collections::BTreeSet<AccountName>> {
        Ok(match choice {
            RoleChoice::None => std::collections::BTreeSet::new(),
            RoleChoice::All => account.roles.clone(),
            RoleChoice::Default => account.default_roles.clone(),
            RoleChoice::AllExcept(roles) => {
                let except: Vec<AccountName> = roles.iter().map(|role| self.name(role)).collect();
                account.roles.iter().filter(|role| !except.contains(role)).cloned().collect()
            }
            RoleChoice::Roles(roles) => {
                let roles = roles.iter().map(|role| self.name(role));
                let granted = roles.map(|role| {
                    if account.roles.contains(&role) {
                        return Ok(role);
                    }
                    let (role, to) = (role.quoted(), account.name.quoted());
                    Err(SqlError::new(3530, format!("{role} is not granted to {to}")))
                });
                granted.collect::<Result<_>>()?
            }
        })
    }

    /// `DROP USER` and `DROP ROLE`.
    ///
    /// # Errors
    /// 1396 for unknown accounts, in which case nothing is dropped; 1227 without the privilege.
    pub fn drop_accounts(
        &mut self,
        statement: &'static str,
        if_exists: bool,
        names: &[ast::Account],
    ) -> Result<()> {
        let names: Vec<AccountName> = names.iter().map(|name| self.name(name)).collect();
        self.may_drop(statement, &names)?;
        let absent = self.book.change(|accounts| {
            for account in names.iter().filter_map(|name| accounts.get(name)) {
                self.refuse_system(account)?;
            }
            let absent: Vec<AccountName> =
                names.iter().filter(|name| accounts.remove(name).is_none()).cloned().collect();
            if !absent.is_empty() && !if_exists {
                return Err(failed(statement, &absent));
            }
            for account in accounts.values_mut() {
                let has = names.iter().any(|name| account.roles.contains(name));
                if has {
                    let account = Arc::make_mut(account);
                    for name in &names {
                        account.roles.remove(name);
                        account.admin.remove(name);
                        account.default_roles.remove(name);
                    }
                }
            }
            Ok(absent)
        })?;
        self.note_absent(absent);
        Ok(())
    }

    /// The privilege `DROP ROLE` covers only accounts that cannot connect: an account that can is a
    /// user.
    fn may_drop(&self, statement: &str, names: &[AccountName]) -> Result<()> {
        if statement == "DROP USER" {
            return self.require_on_accounts(Privilege::DELETE);
        }
        if self.grants.global.contains(Privilege::CREATE_USER) {
            return Ok(());
        }
        if !self.grants.global.contains(Privilege::DROP_ROLE) {
            return Err(denied("CREATE USER, DROP ROLE"));
        }
        let is_user = |name: &AccountName| {
            self.book
                .get(name)
                .is_some_and(|account| !account.locked && self.refuse_system(&account).is_ok())
        };
        match names.iter().any(is_user) {
            true => Err(denied("CREATE USER")),
            false => Ok(()),
        }
    }

    /// `RENAME USER`.
    ///
    /// # Errors
    /// 1396 for unknown or existing names, 1227 without the privilege.
    pub fn rename_user(&mut self, pairs: &[(ast::Account, ast::Account)]) -> Result<()> {
        self.require_on_accounts(Privilege::UPDATE)?;
        self.book.change(|accounts| {
            for (old, new) in pairs {
                let (old, new) = (self.name(old), self.name(new));
                if accounts.contains_key(&new) {
                    return Err(failed("RENAME USER", &[old]));
                }
                let account = accounts.remove(&old);
                let account = account.ok_or_else(|| failed("RENAME USER", &[old]))?;
                self.refuse_system(&account)?;
                let account = Account { name: new.clone(), ..(*account).clone() };
                accounts.insert(new, Arc::new(account));
            }
            Ok(())
        })
    }

    /// `CREATE ROLE`.
    ///
    /// # Errors
    /// 1396 for names that already exist, 1227 without the privilege.
    pub fn create_role(&mut self, if_not_exists: bool, roles: &[ast::Account]) -> Result<()> {
        let has = |privilege| self.grants.global.contains(privilege);
        if !has(Privilege::CREATE_ROLE) && !has(Privilege::CREATE_USER) {
            return Err(denied("CREATE USER, CREATE ROLE"));
        }
        let roles: Vec<AccountName> = roles.iter().map(|role| self.name(role)).collect();
        self.book.change(|accounts| {
            for role in &roles {
                if accounts.contains_key(role) {
                    if if_not_exists {
                        continue;
                    }
                    return Err(failed("CREATE ROLE", std::slice::from_ref(role)));
                }
                let account = Account { locked: true, expired: true, ..Account::new(role.clone()) };
                accounts.insert(role.clone(), Arc::new(account));
            }
            Ok(())
        })
    }

    /// `GRANT` of privileges.
    ///
    /// # Errors
    /// 1410 for unknown accounts, 1144 for privileges that do not exist at the level, 1045 for
    /// privileges that the session does not have with `GRANT OPTION`.
    pub fn grant(&mut self, statement: &Grant) -> Result<()> {
        let (level, wanted) = self.granted(statement)?;
        self.book.change(|accounts| {
            for to in &statement.to {
                let name = self.name(to);
                let account = accounts.get_mut(&name).ok_or_else(|| {
                    SqlError::new(1410, "You are not allowed to create a user with GRANT")
                })?;
                self.refuse_system(account)?;
                wanted.give(
                    &mut Arc::make_mut(account).grants,
                    &level,
                    statement.with_grant_option,
                );
            }
            Ok(())
        })
    }

    /// The level and the privileges of a `GRANT` that the session may run.
    ///
    /// # Errors
    /// As [`AccountContext::grant`], apart from those of the accounts.
    fn granted(&self, statement: &Grant) -> Result<(Level, Wanted)> {
        let level = self.level(&statement.level)?;
        let mut wanted = self.wanted(&statement.privileges, &level)?;
        if statement.with_grant_option {
            wanted.whole = wanted.whole.with(Privilege::GRANT_OPTION);
        }
        self.may_grant(&level, &wanted)?;
        Ok((level, wanted))
    }

    /// Refuses a `GRANT` of privileges that the session may not hand on.
    ///
    /// # Errors
    /// 1044, 1045, 1142 and 1227.
    pub fn check_grant(&self, statement: &Grant) -> Result<()> {
        self.granted(statement).map(|_| ())
    }

    /// `REVOKE` of privileges.
    ///
    /// # Errors
    /// 1141 and 1147 for privileges that were not granted, and as [`AccountContext::grant`].
    pub fn revoke(&mut self, statement: &Revoke) -> Result<()> {
        let Some(level) = &statement.level else { return self.revoke_all(statement) };
        let level = self.level(level)?;
        let mut wanted = self.wanted(&statement.privileges, &level)?;
        if statement.grant_option {
            wanted.whole = wanted.whole.with(Privilege::GRANT_OPTION);
        }
        self.may_grant(&level, &wanted)?;
        let absent = self.book.change(|accounts| {
            let mut absent = Vec::new();
            for from in &statement.from {
                let name = self.name(from);
                let Some(account) = accounts.get_mut(&name) else {
                    absent.push(name);
                    continue;
                };
                self.refuse_system(account)?;
                let taken = wanted.take(&mut Arc::make_mut(account).grants, &level);
                if !taken && !statement.if_exists {
                    return Err(not_granted(&name, &level));
                }
            }
            if absent.is_empty() || statement.ignore_unknown_user {
                return Ok(absent);
            }
            Err(unknown_user(&absent[0]))
        })?;
        self.note_absent(absent);
        Ok(())
    }

    /// `REVOKE ALL PRIVILEGES, GRANT OPTION FROM …`.
    fn revoke_all(&mut self, statement: &Revoke) -> Result<()> {
        self.require_on_accounts(Privilege::UPDATE)?;
        self.book.change(|accounts| {
            for from in &statement.from {
                let name = self.name(from);
                match accounts.get_mut(&name) {
                    Some(account) => {
                        self.refuse_system(account)?;
                        Arc::make_mut(account).grants = Grants::default();
                    }
                    None if statement.ignore_unknown_user => {}
                    None => {
                        return Err(SqlError::new(
                            1269,
                            "Can't revoke all privileges for one or more of the requested users",
                        ));
                    }
                }
            }
            Ok(())
        })
    }

    /// `GRANT` of roles.
    ///
    /// # Errors
    /// 3523 for unknown roles or accounts, 1227 without the privilege.
    pub fn grant_roles(
        &mut self,
        roles: &[ast::Account],
        to: &[ast::Account],
        with_admin_option: bool,
    ) -> Result<()> {
        let roles: Vec<AccountName> = roles.iter().map(|role| self.name(role)).collect();
        self.may_hand_on(&roles)?;
        let to: Vec<AccountName> = to.iter().map(|name| self.name(name)).collect();
        self.book.change(|accounts| {
            if let Some(unknown) = roles.iter().chain(&to).find(|name| !accounts.contains_key(name)) {
                return Err(unknown_user(unknown));
            }
            for name in &to {
                if let Some(account) = accounts.get(name) {
                    self.refuse_system(account)?;
                }
                if roles.iter().any(|role| role == name || reaches(accounts, role, name)) {
                    let message = format!("User account {} is directly or indirectly granted to the role {}. The GRANT would create a loop", name.quoted(), roles[0].quoted());
                    return Err(SqlError::new(3573, message));
                }
                if let Some(account) = accounts.get_mut(name) {
                    let account = Arc::make_mut(account);
                    account.roles.extend(roles.iter().cloned());
                    if with_admin_option {
                        account.admin.extend(roles.iter().cloned());
                    }
                }
            }
            Ok(())
        })
    }

    /// `REVOKE` of roles.
    ///
    /// # Errors
    /// As [`AccountContext::grant_roles`].
    pub fn revoke_roles(&mut self, roles: &[ast::Account], from: &[ast::Account]) -> Result<()> {
        let roles: Vec<AccountName> = roles.iter().map(|role| self.name(role)).collect();
        self.may_hand_on(&roles)?;
        self.book.change(|accounts| {
            for name in from.iter().map(|name| self.name(name)) {
                let account = accounts.get_mut(&name).ok_or_else(|| unknown_user(&name))?;
                self.refuse_system(account)?;
                let account = Arc::make_mut(account);
                for role in &roles {
                    account.roles.remove(role);
                    account.admin.remove(role);
                    account.default_roles.remove(role);
                }
            }
            Ok(())
        })
    }

    /// `SET DEFAULT ROLE`.
    ///
    /// # Errors
    /// As [`AccountContext::chosen`], and 1227 for others' accounts without the privilege.
    pub fn set_default_role(&mut self, choice: &RoleChoice, to: &[ast::Account]) -> Result<()> {
        let names: Vec<AccountName> = to.iter().map(|name| self.name(name)).collect();
        if names.iter().any(|name| name != self.current) {
            self.require_on_accounts(Privilege::UPDATE)?;
        }
        self.book.change(|accounts| {
            for name in &names {
                let account = accounts.get_mut(name).ok_or_else(|| unknown_user(name))?;
                self.refuse_system(account)?;
                let roles = self.chosen(choice, account)?;
                Arc::make_mut(account).default_roles = roles;
            }
            Ok(())
        })
    }

    fn may_hand_on(&self, roles: &[AccountName]) -> Result<()> {
        let own = self.book.get(self.current);
        let has = |role| own.as_ref().is_some_and(|own| own.admin.contains(role));
        if self.grants.has_dynamic("ROLE_ADMIN") || roles.iter().all(has) {
            return Ok(());
        }
        Err(denied("WITH ADMIN, ROLE_ADMIN, SUPER"))
    }

    fn level(&self, level: &PrivilegeLevel) -> Result<Level> {
        let current = || {
            let schema = self.schema.map(str::to_owned);
            schema.ok_or_else(|| SqlError::new(1046, "No database selected"))
        };
        Ok(match level {
            PrivilegeLevel::Global => Level::Global,
            PrivilegeLevel::CurrentDatabase => Level::Schema(current()?),
            PrivilegeLevel::Database(schema) => Level::Schema(schema.clone()),
            PrivilegeLevel::Table(table) => {
                let schema = table.schema.clone().map_or_else(current, Ok)?;
                Level::Table(schema, table.name.clone())
            }
            PrivilegeLevel::Function(_) | PrivilegeLevel::Procedure(_) => {
                return Err(SqlError::not_supported("privileges on routines"));
            }
            PrivilegeLevel::Proxy(_) => return Err(SqlError::not_supported("GRANT PROXY")),
        })
    }

    fn wanted(&self, privileges: &Privileges, level: &Level) -> Result<Wanted> {
        let Privileges::These(listed) = privileges else {
            let dynamic = match level {
                Level::Global => DYNAMIC.iter().map(|name| (*name).to_owned()).collect(),
                _ => Vec::new(),
            };
            return Ok(Wanted { whole: Grants::all_at(level), dynamic, columns: Vec::new() });
        };
        let mut wanted = Wanted::default();
        for one in listed {
            if one.name == "USAGE" {
                continue;
            }
            let Some(privilege) = Privilege::named(&one.name) else {
                wanted.add_dynamic(&one.name, level)?;
                continue;
            };
            let fits = match level {
                Level::Global => true,
                Level::Schema(_) => privilege.holds_on_schemas(),
                Level::Table(..) if one.columns.is_empty() => privilege.holds_on_tables(),
                Level::Table(..) => privilege.holds_on_columns(),
            };
            match (fits, level) {
                (true, _) => {}
                (false, Level::Schema(_)) => {
                    return Err(SqlError::new(
                        1221,
                        "Incorrect usage of DB GRANT and GLOBAL PRIVILEGES",
                    ));
                }
                (false, _) => {
                    return Err(SqlError::new(
                        1144,
                        "Illegal GRANT/REVOKE command; please consult the manual to see which privileges can be used",
                    ));
                }
            }
            if one.columns.is_empty() {
                wanted.whole = wanted.whole.with(privilege);
            }
            let columns = one.columns.iter().map(|column| (column.clone(), privilege));
            wanted.columns.extend(columns);
        }
        Ok(wanted)
    }

    /// The session must have the privilege itself, with `GRANT OPTION`.
    fn may_grant(&self, level: &Level, wanted: &Wanted) -> Result<()> {
        let own = match level {
            Level::Global => self.grants.global,
            Level::Schema(schema) => self.grants.on_schema(schema),
            Level::Table(schema, table) => self.grants.on_table(schema, table),
        };
        let only_dynamic =
            wanted.whole.is_empty() && wanted.columns.is_empty() && !wanted.dynamic.is_empty();
        let asked = wanted.whole.with(Privilege::GRANT_OPTION);
        let asked = wanted.columns.iter().fold(asked, |all, (_, privilege)| all.with(*privilege));
        if !only_dynamic && !own.includes(asked) {
            return Err(match level {
                Level::Global => self.access_denied(),
                Level::Schema(schema) => self.schema_denied(schema),
                Level::Table(schema, table) => self.table_denied(schema, table, asked),
            });
        }
        let may_dynamic = |name: &String| {
            self.grants.dynamic.get(name) == Some(&true)
                || self.grants.on_schema("mysql").contains(Privilege::UPDATE)
        };
        match wanted.dynamic.iter().all(may_dynamic) {
            true => Ok(()),
            false => Err(denied("GRANT OPTION")),
        }
    }

    fn access_denied(&self) -> SqlError {
        let own = self.book.get(self.current);
        let has_password = own.is_some_and(|own| !own.authentication.is_empty());
        let with = if has_password { "YES" } else { "NO" };
        let name = self.current.in_message();
        SqlError::new(1045, format!("Access denied for user {name} (using password: {with})"))
    }

    pub(super) fn schema_denied(&self, schema: &str) -> SqlError {
        let name = self.current.in_message();
        SqlError::new(1044, format!("Access denied for user {name} to database '{schema}'"))
    }

    fn table_denied(&self, schema: &str, table: &str, asked: PrivilegeSet) -> SqlError {
        let own = self.grants.tables.get(&(schema.to_owned(), table.to_owned()));
        let of_columns = own.into_iter().flat_map(|own| own.columns.values());
        let held = of_columns
            .fold(self.grants.on_table(schema, table), |held, column| held.union(*column));
        let lacking = asked.without(held).iter().map(|privilege| match privilege {
            Privilege::GRANT_OPTION => "GRANT",
            other => other.name,
        });
        let (lacking, user) = (lacking.collect::<Vec<_>>().join(", "), &self.current.user);
        let message = format!(
            "{lacking} command denied to user '{user}'@'{}' for table '{table}'",
            self.host
        );
        SqlError::new(1142, message)
    }
}

/// Privileges of a statement.
#[derive(Debug, Default)]
struct Wanted {
    whole: PrivilegeSet,
    dynamic: Vec<String>,
    columns: Vec<(String, Privilege)>,
}

impl Wanted {
    fn add_dynamic(&mut self, name: &str, level: &Level) -> Result<()> {
        if !DYNAMIC.contains(&name) {
            let near = name;
            return Err(SqlError::new(1149, format!("There is no privilege '{near}'")));
        }
        if *level != Level::Global {
            let message = format!("Illegal privilege level specified for {name}");
            return Err(SqlError::new(3619, message));
        }
        self.dynamic.push(name.to_owned());
        Ok(())
    }

    fn give(&self, grants: &mut Grants, level: &Level, grantable: bool) {
        grants.give(level, self.whole);
        for name in &self.dynamic {
            *grants.dynamic.entry(name.clone()).or_default() |= grantable;
        }
        if let Level::Table(schema, table) = level {
            for (column, privilege) in &self.columns {
                let key = (schema.clone(), table.clone());
                grants.give_on_column(key, column, PrivilegeSet::NONE.with(*privilege));
            }
        }
    }

    /// False if none of them was granted at that level.
    fn take(&self, grants: &mut Grants, level: &Level) -> bool {
        let mut taken = grants.take(level, self.whole);
        for name in &self.dynamic {
            taken |= grants.dynamic.remove(name).is_some();
        }
        if let Level::Table(schema, table) = level {
            for (column, privilege) in &self.columns {
                let key = (schema.clone(), table.clone());
                let privileges = PrivilegeSet::NONE.with(*privilege);
                taken |= grants.take_on_column(&key, column, privileges);
            }
        }
        taken
    }
}

fn apply_options(account: &mut Account, options: &UserOptions) -> Result<()> {
    if let Some(locked) = options.locked {
        account.locked = locked;
    }
    match &options.require {
        None => {}
        Some(TlsRequirement::None) => account.requires_tls = false,
        Some(TlsRequirement::Ssl) => account.requires_tls = true,
        // Clients are never asked for certificates here, so an account that requires one could not
        // be enforced.
        Some(TlsRequirement::X509 | TlsRequirement::Specified(_)) => {
            return Err(SqlError::not_supported("REQUIRE X509, CIPHER, ISSUER or SUBJECT"));
        }
    }
    if options.password_policies.iter().any(|policy| policy == "EXPIRE") {
        account.expired = true;
    }
    account.policy.apply(options);
    let comment = options.comment.as_deref().map(attribute::of_comment);
    for change in options.attribute.iter().chain(&comment) {
        account.attribute = Some(attribute::merged(account.attribute.as_deref(), change)?);
    }
    Ok(())
}

/// Whether `to` is among the roles of `from`, directly or indirectly.
fn reaches(accounts: &Accounts, from: &AccountName, to: &AccountName) -> bool {
    let Some(account) = accounts.get(from) else { return false };
    account.roles.iter().any(|role| role == to || reaches(accounts, role, to))
}

fn failed(statement: &str, names: &[AccountName]) -> SqlError {
    let why = match statement {
        "RENAME USER" => "",
        "CREATE USER" | "CREATE ROLE" => " (User account already exists)",
        _ => " (User account does not exist)",
    };
    let names = names.iter().map(|name| format!("{}{why}", name.in_message()));
    let names = names.collect::<Vec<_>>().join(",");
    SqlError::new(1396, format!("Operation {statement} failed for {names}"))
}

fn unknown_user(name: &AccountName) -> SqlError {
    SqlError::new(3523, format!("Unknown authorization ID {}", name.quoted()))
}

fn not_granted(name: &AccountName, level: &Level) -> SqlError {
    let (user, host) = (&name.user, &name.host);
    match level {
        Level::Table(_, table) => SqlError::new(
            1147,
            format!(
                "There is no such grant defined for user '{user}' on host '{host}' on table '{table}'"
            ),
        ),
        _ => SqlError::new(
            1141,
            format!("There is no such grant defined for user '{user}' on host '{host}'"),
        ),
    }
}
