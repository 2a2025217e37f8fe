//! Whether a statement may continue: another thread may cancel it, and its time may be over.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_base::clock::Clock;

use crate::error::{Result, SqlError};

/// What ends a statement early.
pub struct Interruption<'a> {
    /// Set by other threads to cancel the statement.
    pub cancelled: &'a AtomicBool,
    /// The deadline of the statement, on the monotonic clock.
    pub deadline: Option<(&'a dyn Clock, Duration)>,
}

impl<'a> Interruption<'a> {
    pub(crate) fn new(cancelled: &'a AtomicBool) -> Interruption<'a> {
        Interruption { cancelled, deadline: None }
    }

    /// Checks whether the statement may continue.
    ///
    /// # Errors
    /// 1317 if it was cancelled, 3024 if it has run for too long.
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(SqlError::interrupted());
        }
        match self.deadline {
            Some((clock, deadline)) if clock.monotonic() >= deadline => {
                Err(SqlError::out_of_time())
            }
            _ => Ok(()),
        }
    }
}
