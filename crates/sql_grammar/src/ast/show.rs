//! `SHOW`.

use super::Expr;
use super::{Account, TableName};

/// `LIKE` or `WHERE` of a `SHOW`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ShowFilter {
    /// `LIKE 'pattern'`, over the first column.
    Like(String),
    /// `WHERE`, over all columns.
    Where(Expr),
}

/// The object of `SHOW CREATE`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ShowCreate {
    Database {
        name: String,
        /// The result includes `IF NOT EXISTS`.
        if_not_exists: bool,
    },
    Table(TableName),
    View(TableName),
    Procedure(TableName),
    Function(TableName),
    Trigger(TableName),
    Event(TableName),
    User(Account),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Show {
    Databases(Option<ShowFilter>),
    Tables {
        extended: bool,
        full: bool,
        /// The database; the current one unless given.
        schema: Option<String>,
        filter: Option<ShowFilter>,
    },
    TableStatus {
        /// The database; the current one unless given.
        schema: Option<String>,
        filter: Option<ShowFilter>,
    },
    OpenTables {
        /// The database; all unless given.
        schema: Option<String>,
        filter: Option<ShowFilter>,
    },
    /// `COLUMNS`, `FIELDS`.
    Columns {
        extended: bool,
        full: bool,
        table: TableName,
        filter: Option<ShowFilter>,
    },
    /// `INDEX`, `INDEXES`, `KEYS`.
    Indexes {
        extended: bool,
        table: TableName,
        /// `WHERE`.
        filter: Option<ShowFilter>,
    },
    Create(ShowCreate),
    Variables {
        global: bool,
        filter: Option<ShowFilter>,
    },
    Status {
        global: bool,
        filter: Option<ShowFilter>,
    },
    Processlist {
        full: bool,
    },
    /// `WARNINGS`; `LIMIT` as offset and count.
    Warnings(Option<(u64, u64)>),
    /// `COUNT(*) WARNINGS`.
    WarningCount,
    /// `ERRORS`; `LIMIT` as offset and count.
    Errors(Option<(u64, u64)>),
    /// `COUNT(*) ERRORS`.
    ErrorCount,
    Engines,
    /// `ENGINE … STATUS | MUTEX | LOGS`.
    Engine {
        /// Its name; none for `ALL`.
        name: Option<String>,
        /// The word, in capitals.
        what: String,
    },
    CharacterSets(Option<ShowFilter>),
    Collations(Option<ShowFilter>),
    Privileges,
    Plugins,
    Grants {
        /// The account; the current one unless given.
        account: Option<Account>,
        /// `USING` roles.
        using: Vec<Account>,
    },
    Triggers {
        /// The database; the current one unless given.
        schema: Option<String>,
        filter: Option<ShowFilter>,
    },
    Events {
        /// The database; the current one unless given.
        schema: Option<String>,
        filter: Option<ShowFilter>,
    },
    ProcedureStatus(Option<ShowFilter>),
    FunctionStatus(Option<ShowFilter>),
    Profiles,
    Profile,
    BinaryLogs,
    /// `BINARY LOG STATUS`, `MASTER STATUS`.
    BinaryLogStatus,
    BinlogEvents,
    Replicas,
    /// `REPLICA STATUS`, `SLAVE STATUS`.
    ReplicaStatus,
}
