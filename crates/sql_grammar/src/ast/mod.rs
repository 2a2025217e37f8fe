//! The content of a statement: one enum over the statements, one file per family of them.
//!
//! Names of schemas, tables and columns are as written, without quotes; nothing here is resolved or
//! checked against a catalog. A node can hold only what the parser produces.

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

/// The name of a table (or view), with its database's name if the text gives it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TableName {
    /// The database, if the text names one.
    pub schema: Option<String>,
    pub name: String,
}

/// The name of a column, with its table's and database's names if the text gives them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ColumnName {
    /// The table, if the text names one.
    pub table: Option<TableName>,
    pub column: String,
}

/// A value to store: an expression, or the column's own default.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ValueOrDefault {
    Value(Expr),
    /// The word `DEFAULT`.
    Default,
}

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
    LoadData(Box<LoadData>),
    /// `DO`: the expressions are evaluated and the values discarded.
    Do(Vec<Expr>),
    /// `CALL` of a procedure.
    Call(Call),
    Handler(Handler),

    CreateDatabase(CreateDatabase),
    AlterDatabase(AlterDatabase),
    DropDatabase {
        /// No error if it does not exist.
        if_exists: bool,
        /// The database.
        name: String,
    },
    CreateTable(Box<CreateTable>),
    CreateTableLike {
        /// Only this session sees it.
        temporary: bool,
        /// No error if it already exists.
        if_not_exists: bool,
        /// The table to make.
        table: TableName,
        /// The table whose definition is copied.
        like: TableName,
    },
    AlterTable(Box<AlterTable>),
    DropTable {
        /// Only temporary tables.
        temporary: bool,
        /// No error if one does not exist.
        if_exists: bool,
        tables: Vec<TableName>,
    },
    /// `RENAME TABLE`: pairs of old and new name, in order.
    RenameTable(Vec<(TableName, TableName)>),
    /// `TRUNCATE TABLE`.
    Truncate(TableName),
    CreateIndex {
        table: TableName,
        /// The index; it has a name.
        index: IndexDefinition,
    },
    DropIndex {
        table: TableName,
        /// The index.
        name: String,
    },
    /// `CREATE VIEW` and `ALTER VIEW`.
    CreateView(Box<CreateView>),
    DropView {
        /// No error if one does not exist.
        if_exists: bool,
        views: Vec<TableName>,
    },

    /// `DROP` of a stored program; Firn has none.
    DropProgram {
        /// `PROCEDURE`, `FUNCTION`, `TRIGGER` or `EVENT`.
        kind: &'static str,
        /// No error if it does not exist.
        if_exists: bool,
        /// The program.
        name: TableName,
    },

    /// `BEGIN` and `START TRANSACTION`.
    Begin(Begin),
    Commit(Completion),
    /// `ROLLBACK` of the whole transaction.
    Rollback(Completion),
    Savepoint(String),
    /// `ROLLBACK TO SAVEPOINT`.
    RollbackTo(String),
    ReleaseSavepoint(String),
    SetTransaction(SetTransaction),
    Xa(Xa),
    LockTables(Vec<TableLock>),
    UnlockTables,
    /// `LOCK INSTANCE FOR BACKUP`.
    LockInstance,
    /// `ALTER INSTANCE SWITCHOVER [TO node]`: makes another node of the cluster write.
    Switchover {
        to: Option<String>,
    },
    UnlockInstance,

    /// `SET`, with all its assignments in order.
    Set(Vec<SetItem>),
    /// `USE` of a database.
    Use(String),
    Prepare {
        name: String,
        /// The source of its text.
        source: PrepareSource,
    },
    Execute {
        /// The prepared statement.
        name: String,
        /// The user variables with the values of the parameters.
        using: Vec<String>,
    },
    /// `DEALLOCATE PREPARE`.
    Deallocate(String),
    Show(Box<Show>),
    /// `DESCRIBE` of a table.
    Describe {
        table: TableName,
        /// The column, or a pattern over columns.
        column: Option<String>,
    },
    /// `EXPLAIN` of a statement.
    Explain(Box<Explain>),
    Help(String),
    Kill {
        /// Only the running statement, not the connection.
        query_only: bool,
        /// The connection.
        id: Expr,
    },
    GetDiagnostics(GetDiagnostics),
    Signal(Signal),
    Resignal(Signal),

    /// `ANALYZE`, `CHECK`, `CHECKSUM`, `OPTIMIZE` or `REPAIR` of tables.
    TableMaintenance(TableMaintenance),
    Flush(Vec<Flush>),
    Reset(Vec<String>),
    ResetPersist {
        /// No error if it was not persisted.
        if_exists: bool,
        /// The variable; `None` means all.
        variable: Option<String>,
    },
    PurgeBinaryLogs(PurgeLogs),

    CreateUser(Box<CreateUser>),
    AlterUser(Box<AlterUser>),
    DropUser {
        /// No error if one does not exist.
        if_exists: bool,
        users: Vec<Account>,
    },
    /// `RENAME USER`: pairs of old and new name.
    RenameUser(Vec<(Account, Account)>),
    CreateRole {
        /// No error if one already exists.
        if_not_exists: bool,
        roles: Vec<Account>,
    },
    DropRole {
        /// No error if one does not exist.
        if_exists: bool,
        roles: Vec<Account>,
    },
    /// `GRANT` of privileges.
    Grant(Box<Grant>),
    /// `REVOKE` of privileges.
    Revoke(Box<Revoke>),
    /// `GRANT` of roles.
    GrantRoles {
        roles: Vec<Account>,
        /// Who gets them.
        to: Vec<Account>,
        /// They may grant them to others.
        with_admin_option: bool,
    },
    /// `REVOKE` of roles.
    RevokeRoles {
        /// No error if they did not have them.
        if_exists: bool,
        roles: Vec<Account>,
        /// Who loses them.
        from: Vec<Account>,
        /// No error if an account does not exist.
        ignore_unknown_user: bool,
    },
    SetPassword(SetPassword),
    SetRole(RoleChoice),
    SetDefaultRole {
        roles: RoleChoice,
        to: Vec<Account>,
    },

    /// A MySQL statement that Firn refuses with error 1235.
    Unsupported {
        /// Its name, for the message.
        what: &'static str,
    },
}

impl Statement {
    /// Whether nothing reads the statement's literals before it is bound.
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
