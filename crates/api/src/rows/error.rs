//! Why a database node did not do what it was asked.
//!
//! ```text
//!                    transaction   may the client run it again?
//!   Deadlock         is gone       yes, from its beginning
//!   LeaseExpired     is gone       yes, from its beginning
//!   Unavailable      is gone       yes, from its beginning, once the node answers again
//!   NotLeader        is gone       yes, on the node that leads now
//!   OutcomeUnknown   has ended     only after a look: it may have been committed
//!   WriteConflict    goes on       yes, from its beginning
//!   LockWaitTimeout  goes on       the statement
//!   others           goes on       no: the statement would fail again
//! ```

use firn_base::{IndexId, TableId};

/// Why a database node did not do what a caller asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, serde::Serialize, serde::Deserialize)]
pub enum RowsError {
    /// A row has these values already.
    #[error("an entry with this key exists already in index {index}")]
    DuplicateKey {
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
    /// Another transaction holds a lock, and the caller did not want to wait.
    #[error(
        "Statement aborted because lock(s) could not be acquired immediately and NOWAIT is set."
    )]
    LockedNoWait,
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
    /// A schema with this name already exists.
    #[error("Can't create database '{0}'; database exists")]
    SchemaExists(Box<str>),
    /// The schema already has a table with this name.
    #[error("Table '{name}' already exists")]
    TableExists {
        schema: Box<str>,
        /// The table's name.
        name: Box<str>,
    },
    /// The table already has an index with this name.
    #[error("Duplicate key name '{0}'")]
    IndexExists(Box<str>),
    /// The table has no usable index with this name.
    #[error("Can't DROP '{0}'; check that column/key exists")]
    NoSuchIndex(Box<str>),
    /// The node cannot be reached, or does not answer in time.
    #[error("The database node cannot be reached: {reason}; try again")]
    Unavailable {
        /// What went wrong on the way.
        reason: Box<str>,
    },
    /// The node no longer leads its group, so it takes no writes.
    #[error(
        "Running in read-only mode: another database node leads{}",
        hint.as_ref().map_or_else(String::new, |hint| format!(", ask {hint}"))
    )]
    NotLeader {
        /// The node that leads, if this one knows.
        hint: Option<Box<str>>,
    },
    /// The commit was requested, and it is unknown whether it is durable.
    #[error(
        "Got error '{reason}' during COMMIT; the transaction may or may not have been committed"
    )]
    OutcomeUnknown {
        /// What went wrong on the way.
        reason: Box<str>,
    },
    /// The node has not heard from the caller for so long that it has given up what the caller had
    /// open: transactions are rolled back, locks are released.
    #[error("The session's lease on the database node has expired; try restarting transaction")]
    LeaseExpired,
    /// No prepared transaction has this identifier.
    #[error("XAER_NOTA: Unknown XID")]
    NoSuchPrepared,
    /// The disk under the node's log is full.
    #[error("{message}")]
    DiskFull {
        /// Which disk it is, and what to do.
        message: String,
    },
    /// The node's memory budget has no room.
    #[error("{message}")]
    NoMemory {
        /// What needed the memory.
        message: String,
    },
    /// Anything else, with MySQL's error number.
    #[error("{message}")]
    Other {
        /// MySQL's error number.
        code: u16,
        message: String,
    },
    /// A table's `AUTO_INCREMENT` counter has no more numbers.
    #[error("Failed to read auto-increment value from storage engine")]
    SequenceExhausted,
    /// A row, or the smallest row of a definition, has no place in a page.
    #[error("{message}")]
    RowTooLarge {
        /// Which row it is, and how large it may be.
        message: String,
    },
}

impl RowsError {
    /// An object (`what`) that another database node made was passed to this one.
    #[cold]
    #[must_use]
    pub fn of_another_node(what: &str) -> RowsError {
        RowsError::Other { code: 1030, message: format!("the {what} is of another database node") }
    }

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
            RowsError::Unavailable { .. } => 1429,
            RowsError::NotLeader { .. } => 1836,
            RowsError::OutcomeUnknown { .. } => 1180,
            // Clients know this number as an error after which they run the transaction again.
            RowsError::LeaseExpired => 1213,
            RowsError::NoSuchPrepared => 1397,
            RowsError::DiskFull { .. } => 1021,
            RowsError::NoMemory { .. } => 1041,
            RowsError::Other { code, .. } => *code,
            RowsError::SequenceExhausted => 1467,
            RowsError::RowTooLarge { .. } => 1118,
        }
    }

    /// Whether the error also ended the transaction in which the call was made.
    #[must_use]
    pub fn ends_transaction(&self) -> bool {
        matches!(
            self,
            RowsError::Deadlock
                | RowsError::LeaseExpired
                | RowsError::Unavailable { .. }
                | RowsError::NotLeader { .. }
                | RowsError::OutcomeUnknown { .. }
        )
    }

    /// Whether repeating the work may succeed, without doing it twice.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            RowsError::Deadlock
            | RowsError::LeaseExpired
            | RowsError::Unavailable { .. }
            | RowsError::NotLeader { .. }
            | RowsError::WriteConflict
            | RowsError::LockWaitTimeout
            | RowsError::LockedNoWait
            | RowsError::TableChanged(_)
            | RowsError::DiskFull { .. }
            | RowsError::NoMemory { .. } => true,
            RowsError::OutcomeUnknown { .. }
            | RowsError::DuplicateKey { .. }
            | RowsError::Cancelled
            | RowsError::NoSuchTable(_)
            | RowsError::NoSuchSchema(_)
            | RowsError::SchemaExists(_)
            | RowsError::TableExists { .. }
            | RowsError::IndexExists(_)
            | RowsError::NoSuchIndex(_)
            | RowsError::NoSuchPrepared
            | RowsError::SequenceExhausted
            | RowsError::RowTooLarge { .. }
            | RowsError::Other { .. } => false,
        }
    }

    /// Whether one row of a batch may be the reason, so that the others can be written without it.
    #[must_use]
    pub fn may_concern_one_row(&self) -> bool {
        matches!(
            self,
            RowsError::DuplicateKey { .. }
                | RowsError::RowTooLarge { .. }
                | RowsError::Other { .. }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_is_left_of_the_transaction() {
        let reason = || Box::from("connection reset");
        let lost = RowsError::OutcomeUnknown { reason: reason() };
        assert!(lost.ends_transaction() && !lost.is_retryable(), "it may have been committed");
        for gone in [
            RowsError::Deadlock,
            RowsError::LeaseExpired,
            RowsError::Unavailable { reason: reason() },
            RowsError::NotLeader { hint: None },
        ] {
            assert!(gone.ends_transaction() && gone.is_retryable(), "{gone}");
        }
        for stays in [RowsError::WriteConflict, RowsError::LockWaitTimeout] {
            assert!(!stays.ends_transaction() && stays.is_retryable(), "{stays}");
        }
        let hint = RowsError::NotLeader { hint: Some("10.0.0.2:3306".into()) };
        let told = "Running in read-only mode: another database node leads, ask 10.0.0.2:3306";
        assert_eq!((hint.mysql_code(), hint.to_string().as_str()), (1836, told));
    }
}
