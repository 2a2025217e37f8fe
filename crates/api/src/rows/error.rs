//! Why a database node did not do what it was asked.

use firn_base::{IndexId, TableId};

/// Why a database node did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RowsError {
    /// A row has these values already.
    #[error("an entry with this key exists already in index {index}")]
    DuplicateKey {
        /// The index.
        index: IndexId,
        /// The key, as the index has it.
        key: Box<[u8]>,
    },
    /// The row changed after the transaction's snapshot was taken (first updater wins).
    #[error("Record has changed since last read")]
    WriteConflict,
    /// A lock was not granted in time.
    #[error("Lock wait timeout exceeded; try restarting transaction")]
    LockWaitTimeout,
    /// The transaction was chosen to break a deadlock and is rolled back.
    #[error("Deadlock found when trying to get lock; try restarting transaction")]
    Deadlock,
    /// A lock is held by somebody else, and the caller did not want to wait.
    #[error(
        "Statement aborted because lock(s) could not be acquired immediately and NOWAIT is set."
    )]
    LockedNoWait,
    /// Somebody asked for an end.
    #[error("Query execution was interrupted")]
    Cancelled,
    /// The table has changed since the transaction's snapshot was taken.
    #[error("Table definition has changed, please retry transaction")]
    TableChanged(TableId),
    /// There is no such table.
    #[error("table {0} does not exist")]
    NoSuchTable(TableId),
    /// There is no such schema.
    #[error("Unknown database '{0}'")]
    NoSuchSchema(Box<str>),
    /// A schema of this name is there already.
    #[error("Can't create database '{0}'; database exists")]
    SchemaExists(Box<str>),
    /// A table of this name is in the schema already.
    #[error("Table '{name}' already exists")]
    TableExists {
        /// The schema.
        schema: Box<str>,
        /// The table's name.
        name: Box<str>,
    },
    /// The table has an index of this name already.
    #[error("Duplicate key name '{0}'")]
    IndexExists(Box<str>),
    /// The table has no index, or no usable one, of this name.
    #[error("Can't DROP '{0}'; check that column/key exists")]
    NoSuchIndex(Box<str>),
    /// No prepared transaction has this identifier.
    #[error("XAER_NOTA: Unknown XID")]
    NoSuchPrepared,
    /// Anything else, with MySQL's error number.
    #[error("{message}")]
    Other {
        /// MySQL's error number.
        code: u16,
        /// What happened.
        message: String,
    },
}

impl RowsError {
    /// MySQL's error number.
    #[must_use]
    pub fn mysql_code(&self) -> u16 {
        match self {
            RowsError::DuplicateKey { .. } => 1062,
            RowsError::WriteConflict => 1020,
            RowsError::LockWaitTimeout => 1205,
            RowsError::Deadlock => 1213,
            RowsError::LockedNoWait => 3572,
            RowsError::Cancelled => 1317,
            RowsError::TableChanged(_) => 1412,
            RowsError::NoSuchTable(_) => 1146,
            RowsError::NoSuchSchema(_) => 1049,
            RowsError::SchemaExists(_) => 1007,
            RowsError::TableExists { .. } => 1050,
            RowsError::IndexExists(_) => 1061,
            RowsError::NoSuchIndex(_) => 1091,
            RowsError::NoSuchPrepared => 1397,
            RowsError::Other { code, .. } => *code,
        }
    }

    /// Whether the node has rolled the whole transaction back.
    #[must_use]
    pub fn ends_transaction(&self) -> bool {
        matches!(self, RowsError::Deadlock)
    }
}
