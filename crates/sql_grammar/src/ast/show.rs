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
    /// `DATABASE`.
    Database {
        name: String,
        /// The result includes `IF NOT EXISTS`.
        if_not_exists: bool,
    },
    /// `TABLE`.
    Table(TableName),
    /// `VIEW`.
    View(TableName),
    /// `PROCEDURE`.
    Procedure(TableName),
    /// `FUNCTION`.
    Function(TableName),
    /// `TRIGGER`.
    Trigger(TableName),
    /// `EVENT`.
    Event(TableName),
    /// `USER`.
    User(Account),
}

/// `SHOW …`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Show {
    /// `DATABASES`.
    Databases(Option<ShowFilter>),
    /// `TABLES`.
    Tables {
        /// `EXTENDED`.
        extended: bool,
        /// `FULL`.
        full: bool,
        /// The database; the current one unless given.
        schema: Option<String>,
        filter: Option<ShowFilter>,
    },
    /// `TABLE STATUS`.
    TableStatus {
        /// The database; the current one unless given.
        schema: Option<String>,
        filter: Option<ShowFilter>,
    },
    /// `OPEN TABLES`.
    OpenTables {
        /// The database; all unless given.
        schema: Option<String>,
        filter: Option<ShowFilter>,
    },
    /// `COLUMNS`, `FIELDS`.
    Columns {
        /// `EXTENDED`.
        extended: bool,
        /// `FULL`.
        full: bool,
        table: TableName,
        filter: Option<ShowFilter>,
    },
    /// `INDEX`, `INDEXES`, `KEYS`.
    Indexes {
        /// `EXTENDED`.
        extended: bool,
        table: TableName,
        /// `WHERE`.
        filter: Option<ShowFilter>,
    },
    /// `CREATE …`.
    Create(ShowCreate),
    /// `VARIABLES`.
    Variables {
        /// `GLOBAL`.
        global: bool,
        filter: Option<ShowFilter>,
    },
    /// `STATUS`.
    Status {
        /// `GLOBAL`.
        global: bool,
        filter: Option<ShowFilter>,
    },
    /// `PROCESSLIST`.
    Processlist {
        /// `FULL`.
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
    /// `ENGINES`.
    Engines,
    /// `ENGINE … STATUS | MUTEX | LOGS`.
    Engine {
        /// Its name; none for `ALL`.
        name: Option<String>,
        /// The word, in capitals.
        what: String,
    },
    /// `CHARACTER SET`.
    CharacterSets(Option<ShowFilter>),
    /// `COLLATION`.
    Collations(Option<ShowFilter>),
    /// `PRIVILEGES`.
    Privileges,
    /// `PLUGINS`.
    Plugins,
    /// `GRANTS`.
    Grants {
        /// The account; the current one unless given.
        account: Option<Account>,
        /// `USING` roles.
        using: Vec<Account>,
    },
    /// `TRIGGERS`.
    Triggers {
        /// The database; the current one unless given.
        schema: Option<String>,
        filter: Option<ShowFilter>,
    },
    /// `EVENTS`.
    Events {
        /// The database; the current one unless given.
        schema: Option<String>,
        filter: Option<ShowFilter>,
    },
    /// `PROCEDURE STATUS`.
    ProcedureStatus(Option<ShowFilter>),
    /// `FUNCTION STATUS`.
    FunctionStatus(Option<ShowFilter>),
    /// `PROFILES`.
    Profiles,
    /// `PROFILE`.
    Profile,
    /// `BINARY LOGS`.
    BinaryLogs,
    /// `BINARY LOG STATUS`, `MASTER STATUS`.
    BinaryLogStatus,
    /// `BINLOG EVENTS`.
    BinlogEvents,
    /// `REPLICAS`.
    Replicas,
    /// `REPLICA STATUS`, `SLAVE STATUS`.
    ReplicaStatus,
}
