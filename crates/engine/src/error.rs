//! What can go wrong in the engine, told so that the caller knows what to do.

use firn_api::{LogError, PageStoreError, TimestampError};
use firn_base::memory::NoRoom;
use firn_base::{Cts, IndexId, PageId, SpaceId, TableId};
use firn_fabric::FabricError;
use firn_format::definition::DefinitionError;
use firn_format::key::KeyError;
use firn_format::row::RowError;

use crate::lock::LockError;

/// There are as many open snapshots as the registry has slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many open transactions: at most {limit} can be open at once")]
pub struct TooManySnapshots {
    /// How many slots there are.
    pub limit: usize,
}

/// A snapshot was asked for whose versions may be gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("snapshot {snapshot} is too old: versions before {oldest} may have been purged")]
pub struct SnapshotTooOld {
    /// The snapshot.
    pub snapshot: Cts,
    /// The oldest one that could be had.
    pub oldest: Cts,
}

/// Why an operation of the engine did not happen.
#[derive(Debug, Clone, thiserror::Error)]
pub enum EngineError {
    /// The log refused or failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A page could not be had.
    #[error(transparent)]
    Page(#[from] PageStoreError),
    /// The fabric has no memory for what other nodes are to read.
    #[error(transparent)]
    Fabric(#[from] FabricError),
    /// A snapshot that was decided elsewhere cannot be had any more.
    #[error(transparent)]
    SnapshotTooOld(#[from] SnapshotTooOld),
    /// There is no timestamp for a commit.
    #[error(transparent)]
    Timestamp(#[from] TimestampError),
    /// A live record has that key already.
    #[error("an entry with this key exists already in index {index}")]
    DuplicateKey {
        /// The index.
        index: IndexId,
        /// The key, as the index has it.
        key: Box<[u8]>,
    },
    /// The record changed after the transaction's snapshot was taken (first updater wins).
    #[error("the record has changed since it was last read; restart the transaction")]
    WriteConflict,
    /// A lock was not granted.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A lock is held by somebody else, and the caller did not want to wait.
    #[error("the record is locked by another transaction, and NOWAIT is set")]
    LockedNoWait,
    /// A key is longer than an index takes.
    #[error("a key of {length} bytes is longer than the {limit} bytes that an index takes")]
    KeyTooLong {
        /// The key's length in bytes.
        length: usize,
        /// The most that is taken.
        limit: usize,
    },
    /// A record is longer than a page takes, although what can be stored apart was.
    #[error("a record of {length} bytes is longer than the {limit} bytes that a page takes")]
    RecordTooLong {
        /// Bytes of key and value.
        length: usize,
        /// The most that is taken.
        limit: usize,
    },
    /// A page holds what cannot be there.
    #[error(
        "{page} is damaged: {what}; run `firn admin check`, and restore from a backup or a replica"
    )]
    Corrupt {
        /// The page.
        page: PageId,
        /// What is wrong.
        what: String,
    },
    /// More transactions are open than the engine was set up for.
    #[error(transparent)]
    TooManyTransactions(#[from] TooManySnapshots),
    /// All undo segments are bound to transactions.
    #[error("too many write transactions: at most {limit} can be open at once")]
    TooManyWriters {
        /// How many undo segments there are.
        limit: usize,
    },
    /// There is no such table.
    #[error("table {0} does not exist")]
    NoSuchTable(TableId),
    /// There is no such schema.
    #[error("unknown schema '{0}'")]
    NoSuchSchema(Box<str>),
    /// A schema of this name is there already.
    #[error("schema '{0}' exists")]
    SchemaExists(Box<str>),
    /// A table of this name is in the schema already.
    #[error("table '{schema}.{name}' exists already")]
    TableExists {
        /// The schema.
        schema: Box<str>,
        /// The table's name.
        name: Box<str>,
    },
    /// The table has changed since the transaction's snapshot was taken.
    #[error("the definition of table {0} has changed; please retry the transaction")]
    TableChanged(TableId),
    /// The table has an index of this name already.
    #[error("duplicate key name '{0}'")]
    IndexExists(Box<str>),
    /// The table has no index, or no usable one, of this name.
    #[error("there is no index '{0}'")]
    NoSuchIndex(Box<str>),
    /// There is no such tree, or it cannot be read (yet).
    #[error("there is no tree {0}")]
    NoSuchTree(IndexId),
    /// A counter has reached its end.
    #[error("a sequence of table {0} is used up")]
    SequenceExhausted(TableId),
    /// Values that make no row of the table.
    #[error(transparent)]
    Row(#[from] RowError),
    /// Values that make no key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A table definition that cannot be.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// There is no such space.
    #[error("space {0} does not exist")]
    NoSuchSpace(SpaceId),
    /// The transaction has ended or was rolled back by the engine.
    #[error("the transaction has ended")]
    TransactionEnded,
    /// This node follows another one's log: it takes no locks and writes nothing.
    #[error(
        "this node is a read-only replica and neither writes nor locks rows; send the statement to the \
         node that writes"
    )]
    ReadOnly,
    /// What was asked for does not fit the state of things.
    #[error("{0}")]
    Invalid(String),
    /// The memory budget has no room for a value.
    #[error(transparent)]
    NoMemory(#[from] NoRoom),
    /// The engine is closing.
    #[error("the engine is shutting down")]
    Closing,
}

impl EngineError {
    /// The error number that MySQL clients know.
    #[must_use]
    pub fn mysql_code(&self) -> u16 {
        match self {
            EngineError::Log(LogError::NoRoom { .. }) => 1021,
            // What drivers and proxies take for "this server does not write: find the one that
            // does".
            EngineError::Log(LogError::Fenced { .. } | LogError::NotLeader { .. }) => 1290,
            EngineError::Log(LogError::Unavailable { .. }) => 1180,
            EngineError::NoMemory(_) | EngineError::Fabric(_) => 1041,
            // The transaction was not committed, and can be run again.
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
            EngineError::Closing => 1053,
            EngineError::ReadOnly => 1290,
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

    /// Whether the same transaction may succeed when it is run again from its beginning.
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

    /// Whether a page does not exist, because its space or its tree was dropped.
    #[must_use]
    pub fn is_absent_page(&self) -> bool {
        matches!(
            self,
            EngineError::Page(PageStoreError::Absent(_))
                | EngineError::NoSuchSpace(_)
                | EngineError::NoSuchTree(_)
        )
    }

    /// Whether the node cannot go on.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        matches!(self, EngineError::Log(error) if error.ends_writer())
    }
}
