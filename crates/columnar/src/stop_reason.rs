//! Why the engine stops: the statement has failed, or the row executor must run it.
//!
//! Both are passed through the library's error type and recovered from it at the session.

use std::panic::AssertUnwindSafe;

use arrow::error::ArrowError;
use datafusion_common::DataFusionError;
use firn_sql::error::{ErrorKind, SqlError};
use firn_sql::execute::vectorised::Unsupported;
use futures::FutureExt;

/// Why the engine stops.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Stop {
    /// The statement fails with this.
    #[error("{0}")]
    Sql(SqlError),
    /// The row executor must run the statement.
    #[error("{0}")]
    Declined(String),
    /// The statement's memory does not suffice for running it in this way.
    #[error("{0}")]
    Memory(String),
}

impl Stop {
    /// Whether more memory would have helped.
    pub(crate) fn is_memory(&self) -> bool {
        match self {
            Stop::Memory(_) => true,
            Stop::Sql(error) => error.kind == ErrorKind::OutOfMemory,
            Stop::Declined(_) => false,
        }
    }
}

/// A result that may stop the engine.
pub(crate) type Result<T> = std::result::Result<T, Stop>;

/// Leaves the statement to the row executor.
pub(crate) fn declined<T>(why: impl Into<String>) -> Result<T> {
    Err(Stop::Declined(why.into()))
}

/// Returns a task's result, or reports its panic; without the report, the session would wait
/// forever.
pub(crate) async fn caught<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let done = AssertUnwindSafe(work).catch_unwind().await;
    done.unwrap_or_else(|_| declined("a task of the engine has panicked"))
}

impl From<SqlError> for Stop {
    fn from(error: SqlError) -> Stop {
        Stop::Sql(error)
    }
}

impl From<Stop> for Unsupported {
    fn from(stop: Stop) -> Unsupported {
        Unsupported(stop.to_string())
    }
}

impl From<ArrowError> for Stop {
    fn from(error: ArrowError) -> Stop {
        match error {
            ArrowError::ExternalError(inner) => inner
                .downcast_ref::<Stop>()
                .cloned()
                .unwrap_or_else(|| Stop::Declined(inner.to_string())),
            other => Stop::Declined(other.to_string()),
        }
    }
}

impl From<DataFusionError> for Stop {
    fn from(error: DataFusionError) -> Stop {
        let mut at: Option<&(dyn std::error::Error + 'static)> = Some(&error);
        while let Some(inner) = at {
            if let Some(stop) = inner.downcast_ref::<Stop>() {
                return stop.clone();
            }
            if let Some(DataFusionError::External(boxed)) = inner.downcast_ref()
                && let Some(stop) = boxed.downcast_ref::<Stop>()
            {
                return stop.clone();
            }
            if let Some(DataFusionError::ResourcesExhausted(why)) = inner.downcast_ref() {
                return Stop::Memory(why.clone());
            }
            if let Some(DataFusionError::Shared(shared)) = inner.downcast_ref() {
                at = Some(&**shared);
                continue;
            }
            at = inner.source();
        }
        Stop::Declined(error.to_string())
    }
}

impl From<Stop> for DataFusionError {
    fn from(stop: Stop) -> DataFusionError {
        DataFusionError::External(Box::new(stop))
    }
}

impl From<Stop> for ArrowError {
    fn from(stop: Stop) -> ArrowError {
        ArrowError::ExternalError(Box::new(stop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_panics_leaves_the_statement_to_the_row_executor() {
        let work = async { if true { panic!("on purpose") } else { Ok(7) } };
        let done = caught(work).now_or_never().expect("it waits for nothing");
        assert!(matches!(done, Err(Stop::Declined(_))), "{done:?}");
    }
}
