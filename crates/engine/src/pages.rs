//! Page operations that may have to be run again.
//!
//! No latch is held across I/O (design rule 4). So an operation that needs a page which is not cached
//! answers [`Restart::Need`]; [`Pages::run`] then loads the page with nothing held and runs the
//! operation again from its start. Loaded pages stay pinned until the operation is through, so that two
//! operations in a small pool cannot keep evicting each other's pages.

use std::sync::Arc;

use firn_base::PageId;
use firn_buffer::{BufferPool, Miss};
use smallvec::SmallVec;

use crate::error::EngineError;
use crate::log::RedoLog;

/// Why an operation did not come to its end in this run. A value, so that everything that it held is let
/// go on the way out.
#[derive(Debug)]
pub enum Restart {
    /// It needs this page.
    Need(PageId),
    /// What it went by has changed meanwhile.
    Again,
    /// It failed for good.
    Fail(EngineError),
}

impl From<Miss> for Restart {
    fn from(miss: Miss) -> Restart {
        Restart::Need(miss.0)
    }
}

impl<E: Into<EngineError>> From<E> for Restart {
    fn from(error: E) -> Restart {
        Restart::Fail(error.into())
    }
}

/// The pages of a node and the log that changes them.
#[derive(Clone)]
pub struct Pages {
    /// The buffer pool.
    pub pool: Arc<BufferPool>,
    /// The redo log.
    pub log: Arc<RedoLog>,
}

/// Pages that one operation keeps in memory; more than any operation latches at once.
const PINS: usize = 8;

impl Pages {
    /// Runs `operation` until it comes to an end. Blocks for the I/O in between.
    ///
    /// # Errors
    /// What the operation failed with, or why a page could not be loaded.
    pub fn run<R>(
        &self,
        mut operation: impl FnMut() -> Result<R, Restart>,
    ) -> Result<R, EngineError> {
        let mut pins: SmallVec<[_; PINS]> = SmallVec::new();
        loop {
            match operation() {
                Ok(result) => return Ok(result),
                Err(Restart::Need(page)) => {
                    if pins.len() == PINS {
                        drop(pins.remove(0));
                    }
                    pins.push(self.pool.load(page)?);
                }
                // Whoever changes what the operation went by may need this processor for it.
                Err(Restart::Again) => firn_base::task::yield_now(),
                Err(Restart::Fail(error)) => return Err(error),
            }
        }
    }
}
