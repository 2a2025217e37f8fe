//! The engine's errors as errors of the seam.

use firn_api::LogError;
use firn_api::rows::RowsError;

use crate::error::EngineError;
use crate::lock::LockError;

impl From<EngineError> for RowsError {
    fn from(error: EngineError) -> RowsError {
        match error {
            EngineError::DuplicateKey { index, key } => RowsError::DuplicateKey { index, key },
            EngineError::WriteConflict => RowsError::WriteConflict,
            EngineError::Lock(LockError::Timeout) => RowsError::LockWaitTimeout,
            EngineError::Lock(LockError::Deadlock { .. }) => RowsError::Deadlock,
            EngineError::Lock(LockError::Cancelled) => RowsError::Cancelled,
            EngineError::LockedNoWait => RowsError::LockedNoWait,
            EngineError::TableChanged(table) => RowsError::TableChanged(table),
            EngineError::NoSuchTable(table) => RowsError::NoSuchTable(table),
            EngineError::NoSuchSchema(name) => RowsError::NoSuchSchema(name),
            EngineError::SchemaExists(name) => RowsError::SchemaExists(name),
            EngineError::TableExists { schema, name } => RowsError::TableExists { schema, name },
            EngineError::IndexExists(name) => RowsError::IndexExists(name),
            EngineError::NoSuchIndex(name) => RowsError::NoSuchIndex(name),
            EngineError::ReadOnly => RowsError::NotLeader { hint: None },
            EngineError::Log(LogError::NoRoom { .. }) => {
                RowsError::DiskFull { message: error.to_string() }
            }
            EngineError::NoMemory(_) | EngineError::Fabric(_) => {
                RowsError::NoMemory { message: error.to_string() }
            }
            other => RowsError::Other { code: other.mysql_code(), message: other.to_string() },
        }
    }
}

/// The error of a commit. If the log has failed, the appended commit may or may not be durable.
pub(super) fn of_commit(error: EngineError) -> RowsError {
    match error {
        EngineError::Log(LogError::Failed { .. }) => {
            RowsError::OutcomeUnknown { reason: error.to_string().into() }
        }
        other => other.into(),
    }
}
