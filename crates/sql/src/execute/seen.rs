//! Keys of rows that have already come, where a row may come several times.

use rustc_hash::FxHashSet;

use crate::error::Result;

use super::Execution;
use super::memory::Reservation;

/// Rows' keys, counted as memory of the statement.
pub(crate) struct SeenKeys {
    keys: FxHashSet<Box<[u8]>>,
    held: Reservation,
}

impl SeenKeys {
    pub(crate) fn new(execution: &Execution<'_>) -> SeenKeys {
        SeenKeys { keys: FxHashSet::default(), held: execution.memory().reservation() }
    }

    /// Adds a key; false if it was there.
    pub(crate) fn add(&mut self, key: &[u8]) -> Result<bool> {
        if self.keys.contains(key) {
            return Ok(false);
        }
        self.held.require(key.len() + 32)?;
        Ok(self.keys.insert(key.into()))
    }
}
