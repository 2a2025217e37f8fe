//! The errors of the engine. Each says what the caller can do.

use std::time::Duration;

use firn_api::{LogError, PageStoreError, TimestampError, WriterError};
use firn_base::memory::NoRoom;
use firn_base::{Cts, IndexId, PageId, SpaceId, TableId};
use firn_fabric::FabricError;
use firn_format::definition::DefinitionError;
use firn_format::key::KeyError;
use firn_format::row::RowError;

use crate::lock::LockError;

/// As many snapshots are open as the registry has slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many open transactions: at most {limit} can be open at once")]
pub struct TooManySnapshots {
    /// The number of slots.
    pub limit: usize,
}

/// The versions that a snapshot needs may have been purged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "snapshot {snapshot} is too old: versions before {oldest} may have been purged; please retry the \
     transaction"
)]
pub struct SnapshotTooOld {
    pub snapshot: Cts,
    /// The oldest snapshot that can be opened.
    pub oldest: Cts,
}

/// Why an operation of the engine failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum EngineError {
    /// The log refused the write or has failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A transaction's end is in the log, and the log store does not confirm that it is durable. A
    /// commit is visible in this node's memory, and may or may not survive a restart.
    #[error(transparent)]
    OutcomeUnknown(LogError),
    /// The page store could not return a page.
    #[error(transparent)]
    Page(#[from] PageStoreError),
    /// The fabric has no memory for the regions that other nodes read.
    #[error(transparent)]
    Fabric(#[from] FabricError),
    /// The node that writes does not answer this replica.
    #[error(transparent)]
    Writer(#[from] WriterError),
    /// This replica has not applied in time what a read must see.
    #[error(
        "this replica could not learn and apply what is newest within {patience:?} ({reason}); SET \
         firn_read_consistency = 'STALE' reads what it has"
    )]
    NotCaughtUp {
        /// How long the read has waited.
        patience: Duration,
        reason: String,
    },
    /// A snapshot that another node chose is too old.
    #[error(transparent)]
    SnapshotTooOld(#[from] SnapshotTooOld),
    /// No timestamp could be obtained for a commit.
    #[error(transparent)]
    Timestamp(#[from] TimestampError),
    /// A live record has this key already.
    #[error("an entry with this key exists already in index {index}")]
    DuplicateKey {
        index: IndexId,
        /// The key in the index's encoding.
        key: Box<[u8]>,
    },
    /// The record changed after the transaction's snapshot was taken (first updater wins).
    #[error("the record has changed since it was last read; restart the transaction")]
    WriteConflict,
    #[error(transparent)]
    Lock(#[from] LockError),
    /// Another transaction holds the lock, and the caller does not wait.
    #[error("the record is locked by another transaction, and NOWAIT is set")]
    LockedNoWait,
    /// A key is longer than an index takes.
    #[error("a key of {length} bytes is longer than the {limit} bytes that an index takes")]
    KeyTooLong { length: usize, limit: usize },
    /// A record is longer than a page can hold, although its long values are stored outside.
    #[error("a record of {length} bytes is longer than the {limit} bytes that a page takes")]
    RecordTooLong {
        /// Bytes of key and value together.
        length: usize,
        limit: usize,
    },
    /// A page or record has invalid content.
    #[error(
        "{page} is damaged: {what}; run `firn admin check`, and restore from a backup or a replica"
    )]
    Corrupt { page: PageId, what: String },
    /// More transactions are open than the limit allows.
    #[error(transparent)]
    TooManyTransactions(#[from] TooManySnapshots),
    /// All undo segments are in use.
    #[error("too many write transactions: at most {limit} can be open at once")]
    TooManyWriters {
        /// The number of undo segments.
        limit: usize,
    },
    #[error("table {0} does not exist")]
    NoSuchTable(TableId),
    #[error("unknown schema '{0}'")]
    NoSuchSchema(Box<str>),
    /// A schema with this name exists.
    #[error("schema '{0}' exists")]
    SchemaExists(Box<str>),
    /// A table with this name exists in the schema.
    #[error("table '{schema}.{name}' exists already")]
    TableExists { schema: Box<str>, name: Box<str> },
    /// The table has changed since the transaction's snapshot was opened.
    #[error("the definition of table {0} has changed; please retry the transaction")]
    TableChanged(TableId),
    /// The table has an index with this name.
    #[error("duplicate key name '{0}'")]
    IndexExists(Box<str>),
    /// The table has no index with this name, or the index is not usable.
    #[error("index '{0}' does not exist")]
    NoSuchIndex(Box<str>),
    /// The tree does not exist, or is not readable yet.
    #[error("tree {0} does not exist")]
    NoSuchTree(IndexId),
    /// The counter has reached its maximum.
    #[error("a counter of table {0} has reached its maximum")]
    SequenceExhausted(TableId),
    /// The values do not form a row of the table.
    #[error(transparent)]
    Row(#[from] RowError),
    /// The values do not form a key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The table definition is invalid.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    #[error("space {0} does not exist")]
    NoSuchSpace(SpaceId),
    /// The transaction has ended, or the engine has rolled it back.
    #[error("the transaction has ended")]
    TransactionEnded,
    /// This node follows another node's log: it takes no locks and writes nothing.
    #[error(
        "this node is a read-only replica and neither writes nor locks rows; send the statement to the \
         node that writes"
    )]
    ReadOnly,
    #[error("no prepared transaction has this identifier")]
    NoSuchPrepared,
    /// A coordinator chose the timestamp of a commit while snapshots could still read without it.
    #[error(
        "a prepared transaction that is not COMMITTING cannot commit at timestamp {at}; set it to \
         COMMITTING on every participant, then choose the timestamp"
    )]
    NotCommitting {
        /// The chosen timestamp.
        at: Cts,
    },
    /// Snapshots at the chosen timestamp may have read without the transaction.
    #[error(
        "a prepared transaction cannot commit at timestamp {at}, because snapshots below {lowest} may \
         have read without it; choose a timestamp from {lowest} on"
    )]
    CommitTooEarly {
        /// The chosen timestamp.
        at: Cts,
        /// The lowest possible one.
        lowest: Cts,
    },
    /// The request is not possible in the current state.
    #[error("{0}")]
    Invalid(String),
    /// The memory budget has no room for a value.
    #[error(transparent)]
    NoMemory(#[from] NoRoom),
    #[error("the engine is shutting down")]
    Closing,
}

impl EngineError {
    /// The error number of MySQL that clients get.
    #[must_use]
    pub fn mysql_code(&self) -> u16 {
        match self {
            EngineError::Log(LogError::NoRoom { .. }) => 1021,
            // Drivers and proxies read this code as "this server does not write: find the one that
            // does".
            EngineError::Log(LogError::Fenced { .. } | LogError::NotLeader { .. }) => 1836,
            EngineError::Log(LogError::Unavailable { .. } | LogError::Failed { .. }) => 1429,
            EngineError::Writer(_) | EngineError::NotCaughtUp { .. } => 1429,
            EngineError::OutcomeUnknown(_) => 1180,
            EngineError::NoMemory(_) | EngineError::Fabric(_) => 1041,
            // The transaction did not commit and can be run again.
            EngineError::Timestamp(_) => 1213,
            EngineError::DuplicateKey { .. } => 1062,
            EngineError::WriteConflict => 1020,
            EngineError::Lock(LockError::Deadlock { .. }) => 1213,
            EngineError::Lock(LockError::Timeout) => 1205,
            EngineError::Lock(LockError::Cancelled) => 1317,
            EngineError::LockedNoWait => 3572,
            EngineError::KeyTooLong { .. } => 1071,
            EngineError::RecordTooLong { .. }
            | EngineError::Row(RowError::TooLarge { .. })
            | EngineError::Definition(DefinitionError::Row(RowError::TooLarge { .. })) => 1118,
            EngineError::Row(RowError::NullInNotNull(_))
            | EngineError::Key(KeyError::NullInNotNull { .. }) => 1048,
            EngineError::NoSuchSchema(_) => 1049,
            EngineError::SchemaExists(_) => 1007,
            EngineError::TableExists { .. } => 1050,
            EngineError::TableChanged(_) | EngineError::SnapshotTooOld(_) => 1412,
            EngineError::IndexExists(_) => 1061,
            EngineError::NoSuchIndex(_) => 1091,
            EngineError::SequenceExhausted(_) => 1467,
            EngineError::Corrupt { .. } | EngineError::Page(PageStoreError::Damaged { .. }) => 1712,
            EngineError::TooManyTransactions(_) | EngineError::TooManyWriters { .. } => 1637,
            EngineError::NoSuchTable(_) => 1146,
            EngineError::NoSuchSpace(_) | EngineError::Page(PageStoreError::Absent(_)) => 1812,
            EngineError::NoSuchPrepared => 1397,
            EngineError::NotCommitting { .. } | EngineError::CommitTooEarly { .. } => 1399,
            EngineError::Closing => 1053,
            EngineError::ReadOnly => 1836,
            EngineError::Log(_)
            | EngineError::Page(_)
            | EngineError::TransactionEnded
            | EngineError::NoSuchTree(_)
            | EngineError::Row(_)
            | EngineError::Key(_)
            | EngineError::Definition(_)
            | EngineError::Invalid(_) => 1030,
        }
    }

    /// Whether the transaction may succeed if the client runs it again.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            EngineError::WriteConflict
                | EngineError::TableChanged(_)
                | EngineError::Timestamp(_)
                | EngineError::SnapshotTooOld(_)
                | EngineError::Lock(LockError::Deadlock { .. } | LockError::Timeout)
        )
    }

    /// Whether the page does not exist because its space or tree was dropped.
    #[must_use]
    pub fn is_absent_page(&self) -> bool {
        matches!(
            self,
            EngineError::Page(PageStoreError::Absent(_))
                | EngineError::NoSuchSpace(_)
                | EngineError::NoSuchTree(_)
        )
    }

    /// Whether the node must stop.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        matches!(
            self,
            EngineError::Log(error) | EngineError::OutcomeUnknown(error) if error.ends_writer()
        )
    }
}
