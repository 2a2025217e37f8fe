//! Accounts, roles and privileges.

use super::TableName;

/// The name of an account or role.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Account {
    /// `'user'@'host'`.
    Named {
        /// The user.
        user: String,
        /// The host; `%` unless said. Letters are small.
        host: String,
    },
    /// `CURRENT_USER`.
    Current,
}

/// How an account proves who it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Authentication {
    /// `WITH plugin`; the default plugin unless said.
    pub plugin: Option<String>,
    /// What proves it.
    pub proof: Proof,
    /// `REPLACE 'current password'`.
    pub current_password: Option<String>,
    /// `RETAIN CURRENT PASSWORD`.
    pub retain_current: bool,
}

/// What an account proves itself with.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Proof {
    /// Not said.
    #[default]
    None,
    /// `BY 'password'`.
    Password(String),
    /// `BY RANDOM PASSWORD`.
    RandomPassword,
    /// `AS 'hash'`, as the plugin keeps it.
    Hash(Vec<u8>),
}

/// An account of `CREATE USER` or `ALTER USER`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UserDefinition {
    /// The account.
    pub account: Account,
    /// `IDENTIFIED …`; none if not said.
    pub authentication: Option<Authentication>,
    /// `DISCARD OLD PASSWORD`.
    pub discard_old_password: bool,
}

/// What an account's connections must be.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TlsRequirement {
    /// `NONE`.
    None,
    /// `SSL`.
    Ssl,
    /// `X509`.
    X509,
    /// `CIPHER`, `ISSUER`, `SUBJECT`, with their values.
    Specified(Vec<(String, String)>),
}

/// What `CREATE USER` and `ALTER USER` say of all their accounts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct UserOptions {
    /// `REQUIRE`.
    pub require: Option<TlsRequirement>,
    /// `WITH MAX_…_PER_HOUR n` by name in capitals.
    pub limits: Vec<(String, u64)>,
    /// `ACCOUNT LOCK` or `UNLOCK`.
    pub locked: Option<bool>,
    /// `PASSWORD EXPIRE` and other password policies, in capitals as written.
    pub password_policies: Vec<String>,
    /// `FAILED_LOGIN_ATTEMPTS`.
    pub failed_login_attempts: Option<u64>,
    /// `PASSWORD_LOCK_TIME` in days; none for `UNBOUNDED`.
    pub password_lock_days: Option<Option<u64>>,
    /// `COMMENT`.
    pub comment: Option<String>,
    /// `ATTRIBUTE`, a JSON text.
    pub attribute: Option<String>,
}

/// `CREATE USER`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CreateUser {
    /// Nothing is wrong if one is already there.
    pub if_not_exists: bool,
    /// The accounts.
    pub users: Vec<UserDefinition>,
    /// `DEFAULT ROLE`.
    pub default_roles: Vec<Account>,
    /// What holds for all.
    pub options: UserOptions,
}

/// `ALTER USER`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AlterUser {
    /// Nothing is wrong if one is not there.
    pub if_exists: bool,
    /// The accounts.
    pub users: Vec<UserDefinition>,
    /// `DEFAULT ROLE`.
    pub default_role: Option<RoleChoice>,
    /// What holds for all.
    pub options: UserOptions,
}

/// Which roles.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RoleChoice {
    /// `NONE`.
    None,
    /// `ALL`.
    All,
    /// `ALL EXCEPT`.
    AllExcept(Vec<Account>),
    /// `DEFAULT`.
    Default,
    /// These.
    Roles(Vec<Account>),
}

/// `SET PASSWORD`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SetPassword {
    /// Whose; one's own unless said.
    pub account: Option<Account>,
    /// The new one; none for `TO RANDOM`.
    pub password: Option<String>,
    /// `REPLACE 'current password'`.
    pub current_password: Option<String>,
    /// `RETAIN CURRENT PASSWORD`.
    pub retain_current: bool,
}

/// A privilege, as `GRANT` names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Privilege {
    /// Its words in capitals, with one blank between them: `SELECT`, `CREATE TEMPORARY TABLES`,
    /// `BACKUP_ADMIN`.
    pub name: String,
    /// Its columns; empty for whole tables.
    pub columns: Vec<String>,
}

/// Which privileges.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Privileges {
    /// `ALL PRIVILEGES`.
    All,
    /// These.
    These(Vec<Privilege>),
}

/// What privileges are on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PrivilegeLevel {
    /// `*.*`.
    Global,
    /// `*`: the current database.
    CurrentDatabase,
    /// `database.*`, where `_` and `%` are patterns.
    Database(String),
    /// A table.
    Table(TableName),
    /// `FUNCTION`.
    Function(TableName),
    /// `PROCEDURE`.
    Procedure(TableName),
    /// `PROXY ON` an account.
    Proxy(Account),
}

/// `GRANT` of privileges.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Grant {
    /// Which.
    pub privileges: Privileges,
    /// On what.
    pub level: PrivilegeLevel,
    /// To whom.
    pub to: Vec<Account>,
    /// `WITH GRANT OPTION`.
    pub with_grant_option: bool,
}

/// `REVOKE` of privileges.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Revoke {
    /// Nothing is wrong if they did not have them.
    pub if_exists: bool,
    /// Which.
    pub privileges: Privileges,
    /// `GRANT OPTION` goes too (`REVOKE ALL PRIVILEGES, GRANT OPTION`).
    pub grant_option: bool,
    /// On what; none for `REVOKE ALL PRIVILEGES, GRANT OPTION FROM`, which means everywhere.
    pub level: Option<PrivilegeLevel>,
    /// From whom.
    pub from: Vec<Account>,
    /// Nothing is wrong if an account is not there.
    pub ignore_unknown_user: bool,
}
