//! Accounts, roles and privileges.

use super::TableName;

/// The name of an account or role.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Account {
    /// `'user'@'host'`.
    Named {
        user: String,
        /// The host; `%` unless given. In lower case.
        host: String,
    },
    /// `CURRENT_USER`.
    Current,
}

/// How an account is authenticated.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Authentication {
    /// `WITH plugin`; the default plugin unless given.
    pub plugin: Option<String>,
    pub proof: Proof,
    /// `REPLACE 'current password'`.
    pub current_password: Option<String>,
    /// `RETAIN CURRENT PASSWORD`.
    pub retain_current: bool,
}

/// The credentials of an account.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Proof {
    /// Not said.
    #[default]
    None,
    /// `BY 'password'`.
    Password(String),
    /// `BY RANDOM PASSWORD`.
    RandomPassword,
    /// `AS 'hash'`, as the plugin stores it.
    Hash(Vec<u8>),
}

/// An account of `CREATE USER` or `ALTER USER`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UserDefinition {
    pub account: Account,
    /// `IDENTIFIED …`, if given.
    pub authentication: Option<Authentication>,
    pub discard_old_password: bool,
}

/// Requirements for an account's connections.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TlsRequirement {
    None,
    Ssl,
    /// `X509`.
    X509,
    /// `CIPHER`, `ISSUER`, `SUBJECT`, with their values.
    Specified(Vec<(String, String)>),
}

/// Options of `CREATE USER` and `ALTER USER` for all their accounts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct UserOptions {
    pub require: Option<TlsRequirement>,
    /// `WITH MAX_…_PER_HOUR n` by name in capitals.
    pub limits: Vec<(String, u64)>,
    /// `ACCOUNT LOCK` or `UNLOCK`.
    pub locked: Option<bool>,
    /// `PASSWORD EXPIRE` and other password policies, in capitals as written.
    pub password_policies: Vec<String>,
    pub failed_login_attempts: Option<u64>,
    /// `PASSWORD_LOCK_TIME` in days; none for `UNBOUNDED`.
    pub password_lock_days: Option<Option<u64>>,
    pub comment: Option<String>,
    /// `ATTRIBUTE`, a JSON text.
    pub attribute: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CreateUser {
    /// No error if one already exists.
    pub if_not_exists: bool,
    pub users: Vec<UserDefinition>,
    pub default_roles: Vec<Account>,
    /// What holds for all.
    pub options: UserOptions,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AlterUser {
    /// No error if one does not exist.
    pub if_exists: bool,
    pub users: Vec<UserDefinition>,
    pub default_role: Option<RoleChoice>,
    /// What holds for all.
    pub options: UserOptions,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RoleChoice {
    None,
    All,
    AllExcept(Vec<Account>),
    Default,
    Roles(Vec<Account>),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SetPassword {
    /// The account; the current user's own unless given.
    pub account: Option<Account>,
    /// The new password; `None` for `TO RANDOM`.
    pub password: Option<String>,
    /// `REPLACE 'current password'`.
    pub current_password: Option<String>,
    /// `RETAIN CURRENT PASSWORD`.
    pub retain_current: bool,
}

/// A privilege, as `GRANT` names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Privilege {
    /// Its words in upper case, separated by one blank: `SELECT`, `CREATE TEMPORARY TABLES`,
    /// `BACKUP_ADMIN`.
    pub name: String,
    /// Its columns; empty for whole tables.
    pub columns: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Privileges {
    /// `ALL PRIVILEGES`.
    All,
    These(Vec<Privilege>),
}

/// The objects of privileges.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PrivilegeLevel {
    /// `*.*`.
    Global,
    /// `*`: the current database.
    CurrentDatabase,
    /// `database.*`, where `_` and `%` are wildcards.
    Database(String),
    Table(TableName),
    Function(TableName),
    Procedure(TableName),
    /// `PROXY ON` an account.
    Proxy(Account),
}

/// `GRANT` of privileges.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Grant {
    pub privileges: Privileges,
    /// On what.
    pub level: PrivilegeLevel,
    pub to: Vec<Account>,
    pub with_grant_option: bool,
}

/// `REVOKE` of privileges.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Revoke {
    /// No error if they did not have them.
    pub if_exists: bool,
    pub privileges: Privileges,
    /// `GRANT OPTION` is revoked too (`REVOKE ALL PRIVILEGES, GRANT OPTION`).
    pub grant_option: bool,
    /// The object; `None` for `REVOKE ALL PRIVILEGES, GRANT OPTION FROM`, which means everywhere.
    pub level: Option<PrivilegeLevel>,
    pub from: Vec<Account>,
    /// No error if an account does not exist.
    pub ignore_unknown_user: bool,
}
