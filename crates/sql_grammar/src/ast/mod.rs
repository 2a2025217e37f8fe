//! What a statement says: one enum over the statements, one file a family of them.
//!
//! Names of schemas, tables and columns are as written, without quotes; nothing here is resolved or
//! checked against a catalog. A node can hold only what the parser makes.

#![allow(
    clippy::large_enum_variant,
    reason = "a part of a statement is made once and moved little; a box for each would only be in the way"
)]

mod account;
mod admin;
mod cast_type;
mod dml;
mod expression;
mod partition;
mod query;
mod schema;
mod session;
mod show;
mod table;
mod transaction;

pub use account::*;
pub use admin::*;
pub use cast_type::*;
pub use dml::*;
pub use expression::*;
pub use partition::*;
pub use query::*;
pub use schema::*;
pub use session::*;
pub use show::*;
pub use table::*;
pub use transaction::*;

/// The name of a table (or view): its own and, where the text gives it, its database's.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TableName {
    /// The database, if the text names one.
    pub schema: Option<String>,
    /// The table.
    pub name: String,
}

/// The name of a column, with its table's and database's where the text gives them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ColumnName {
    /// The table, if the text names one.
    pub table: Option<TableName>,
    /// The column.
    pub column: String,
}

/// A value to store: an expression, or the column's own default.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ValueOrDefault {
    /// An expression.
    Value(Expr),
    /// The word `DEFAULT`.
    Default,
}

/// A statement.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Statement {
    /// `SELECT`, `VALUES`, `TABLE`, `WITH … SELECT`.
    Select(Box<Select>),
    /// `INSERT` and `REPLACE`.
    Insert(Box<Insert>),
    /// `UPDATE`, of one table or several.
    Update(Box<Update>),
    /// `DELETE`, from one table or several.
    Delete(Box<Delete>),
    /// `LOAD DATA`.
    LoadData(Box<LoadData>),
    /// `DO`: the expressions are evaluated and forgotten.
    Do(Vec<Expr>),
    /// `CALL` of a procedure.
    Call(Call),
    /// `HANDLER`.
    Handler(Handler),

    /// `CREATE DATABASE`.
    CreateDatabase(CreateDatabase),
    /// `ALTER DATABASE`.
    AlterDatabase(AlterDatabase),
    /// `DROP DATABASE`.
    DropDatabase {
        /// Nothing is wrong if it is not there.
        if_exists: bool,
        /// The database.
        name: String,
    },
    /// `CREATE TABLE`.
    CreateTable(Box<CreateTable>),
    /// `CREATE TABLE … LIKE …`.
    CreateTableLike {
        /// Only this session sees it.
        temporary: bool,
        /// Nothing is wrong if it is already there.
        if_not_exists: bool,
        /// The table to make.
        table: TableName,
        /// The table whose definition is taken.
        like: TableName,
    },
    /// `ALTER TABLE`.
    AlterTable(Box<AlterTable>),
    /// `DROP TABLE`.
    DropTable {
        /// Only temporary tables.
        temporary: bool,
        /// Nothing is wrong if one is not there.
        if_exists: bool,
        /// The tables.
        tables: Vec<TableName>,
    },
    /// `RENAME TABLE`: pairs of old and new name, in order.
    RenameTable(Vec<(TableName, TableName)>),
    /// `TRUNCATE TABLE`.
    Truncate(TableName),
    /// `CREATE INDEX`.
    CreateIndex {
        /// The table.
        table: TableName,
        /// The index; it has a name.
        index: IndexDefinition,
    },
    /// `DROP INDEX`.
    DropIndex {
        /// The table.
        table: TableName,
        /// The index.
        name: String,
    },
    /// `CREATE VIEW` and `ALTER VIEW`.
    CreateView(Box<CreateView>),
    /// `DROP VIEW`.
    DropView {
        /// Nothing is wrong if one is not there.
        if_exists: bool,
        /// The views.
        views: Vec<TableName>,
    },

    /// `DROP` of a stored program, of which there are none.
    DropProgram {
        /// `PROCEDURE`, `FUNCTION`, `TRIGGER` or `EVENT`.
        kind: &'static str,
        /// Nothing is wrong if it is not there.
        if_exists: bool,
        /// The program.
        name: TableName,
    },

    /// `BEGIN` and `START TRANSACTION`.
    Begin(Begin),
    /// `COMMIT`.
    Commit(Completion),
    /// `ROLLBACK` of the whole transaction.
    Rollback(Completion),
    /// `SAVEPOINT`.
    Savepoint(String),
    /// `ROLLBACK TO SAVEPOINT`.
    RollbackTo(String),
    /// `RELEASE SAVEPOINT`.
    ReleaseSavepoint(String),
    /// `SET TRANSACTION`.
    SetTransaction(SetTransaction),
    /// `XA …`.
    Xa(Xa),
    /// `LOCK TABLES`.
    LockTables(Vec<TableLock>),
    /// `UNLOCK TABLES`.
    UnlockTables,
    /// `LOCK INSTANCE FOR BACKUP`.
    LockInstance,
    /// `UNLOCK INSTANCE`.
    UnlockInstance,

    /// `SET`, with all its assignments in order.
    Set(Vec<SetItem>),
    /// `USE` of a database.
    Use(String),
    /// `PREPARE`.
    Prepare {
        /// The name.
        name: String,
        /// Where its text comes from.
        source: PrepareSource,
    },
    /// `EXECUTE`.
    Execute {
        /// The prepared statement.
        name: String,
        /// The user variables that give the parameters their values.
        using: Vec<String>,
    },
    /// `DEALLOCATE PREPARE`.
    Deallocate(String),
    /// `SHOW …`.
    Show(Box<Show>),
    /// `DESCRIBE` of a table.
    Describe {
        /// The table.
        table: TableName,
        /// The column, or a pattern over columns.
        column: Option<String>,
    },
    /// `EXPLAIN` of a statement.
    Explain(Box<Explain>),
    /// `HELP`.
    Help(String),
    /// `KILL`.
    Kill {
        /// Only the running statement, not the connection.
        query_only: bool,
        /// The connection.
        id: Expr,
    },
    /// `GET DIAGNOSTICS`.
    GetDiagnostics(GetDiagnostics),
    /// `SIGNAL`.
    Signal(Signal),
    /// `RESIGNAL`.
    Resignal(Signal),

    /// `ANALYZE`, `CHECK`, `CHECKSUM`, `OPTIMIZE` or `REPAIR` of tables.
    TableMaintenance(TableMaintenance),
    /// `FLUSH`.
    Flush(Vec<Flush>),
    /// `RESET`.
    Reset(Vec<String>),
    /// `RESET PERSIST`.
    ResetPersist {
        /// Nothing is wrong if it was not persisted.
        if_exists: bool,
        /// The variable; none means all.
        variable: Option<String>,
    },
    /// `PURGE BINARY LOGS`.
    PurgeBinaryLogs(PurgeLogs),

    /// `CREATE USER`.
    CreateUser(Box<CreateUser>),
    /// `ALTER USER`.
    AlterUser(Box<AlterUser>),
    /// `DROP USER`.
    DropUser {
        /// Nothing is wrong if one is not there.
        if_exists: bool,
        /// The accounts.
        users: Vec<Account>,
    },
    /// `RENAME USER`: pairs of old and new name.
    RenameUser(Vec<(Account, Account)>),
    /// `CREATE ROLE`.
    CreateRole {
        /// Nothing is wrong if one is already there.
        if_not_exists: bool,
        /// The roles.
        roles: Vec<Account>,
    },
    /// `DROP ROLE`.
    DropRole {
        /// Nothing is wrong if one is not there.
        if_exists: bool,
        /// The roles.
        roles: Vec<Account>,
    },
    /// `GRANT` of privileges.
    Grant(Box<Grant>),
    /// `REVOKE` of privileges.
    Revoke(Box<Revoke>),
    /// `GRANT` of roles.
    GrantRoles {
        /// The roles.
        roles: Vec<Account>,
        /// Who gets them.
        to: Vec<Account>,
        /// They may hand them on.
        with_admin_option: bool,
    },
    /// `REVOKE` of roles.
    RevokeRoles {
        /// Nothing is wrong if they did not have them.
        if_exists: bool,
        /// The roles.
        roles: Vec<Account>,
        /// Who loses them.
        from: Vec<Account>,
        /// Nothing is wrong if an account is not there.
        ignore_unknown_user: bool,
    },
    /// `SET PASSWORD`.
    SetPassword(SetPassword),
    /// `SET ROLE`.
    SetRole(RoleChoice),
    /// `SET DEFAULT ROLE`.
    SetDefaultRole {
        /// Which roles.
        roles: RoleChoice,
        /// Whose.
        to: Vec<Account>,
    },

    /// A statement that MySQL has and Firn refuses with error 1235.
    Unsupported {
        /// What it is called, for the message.
        what: &'static str,
    },
}

impl Statement {
    /// Whether the literals of the statement are met by nobody before it is bound.
    pub(crate) fn is_planned(&self) -> bool {
        matches!(
            self,
            Statement::Select(_)
                | Statement::Insert(_)
                | Statement::Update(_)
                | Statement::Delete(_)
                | Statement::Do(_)
                | Statement::Set(_)
        )
    }
}
