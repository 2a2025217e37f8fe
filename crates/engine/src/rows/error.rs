//! The engine's errors as errors of the seam.

use firn_api::LogError;
use firn_api::rows::RowsError;
use firn_format::definition::DefinitionError;
use firn_format::row::RowError;

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
            EngineError::NoSuchPrepared => RowsError::NoSuchPrepared,
            EngineError::SequenceExhausted(_) => RowsError::SequenceExhausted,
            EngineError::ReadOnly => RowsError::NotLeader { hint: None },
            EngineError::OutcomeUnknown(error) => {
                RowsError::OutcomeUnknown { reason: error.to_string().into() }
            }
            EngineError::Log(error) => of_log(error),
            error @ (EngineError::Writer(_) | EngineError::NotCaughtUp { .. }) => {
                RowsError::Unavailable { reason: error.to_string().into() }
            }
            error @ (EngineError::RecordTooLong { .. }
            | EngineError::Row(RowError::TooLarge { .. })
            | EngineError::Definition(DefinitionError::Row(RowError::TooLarge {
                ..
            }))) => RowsError::RowTooLarge { message: error.to_string() },
            EngineError::NoMemory(_) | EngineError::Fabric(_) => {
                RowsError::NoMemory { message: error.to_string() }
            }
            other => RowsError::Other { code: other.mysql_code(), message: other.to_string() },
        }
    }
}

/// The error of a log that took nothing: the transaction is not committed, and never will be. The
/// log's epochs do not say which node writes now.
fn of_log(error: LogError) -> RowsError {
    match error {
        LogError::NoRoom { .. } => RowsError::DiskFull { message: error.to_string() },
        LogError::NotLeader { hint } => RowsError::NotLeader { hint: hint.map(Into::into) },
        LogError::Fenced { .. } => RowsError::NotLeader { hint: None },
        LogError::Unavailable { reason } => {
            let reason = format!("its log does not answer ({reason})").into();
            RowsError::Unavailable { reason }
        }
        LogError::Failed { .. } => RowsError::Unavailable { reason: error.to_string().into() },
        other => {
            let error = EngineError::Log(other);
            RowsError::Other { code: error.mysql_code(), message: error.to_string() }
        }
    }
}
