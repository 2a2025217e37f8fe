//! The statement's memory as the library's memory pool: an operator whose reservation fails spills
//! or ends the attempt.

use std::fmt;

use datafusion_common::{DataFusionError, Result};
use datafusion_execution::memory_pool::{MemoryLimit, MemoryPool, MemoryReservation};
use firn_sql::execute::MemoryBudget;

/// The statement's budget as a pool.
#[derive(Debug)]
pub(crate) struct BudgetPool(pub(crate) MemoryBudget);

impl fmt::Display for BudgetPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("statement")
    }
}

impl MemoryPool for BudgetPool {
    fn name(&self) -> &str {
        "statement"
    }

    fn grow(&self, _: &MemoryReservation, additional: usize) {
        self.0.take_anyway(additional as u64);
    }

    fn shrink(&self, _: &MemoryReservation, shrink: usize) {
        self.0.give_back(shrink as u64);
    }

    fn try_grow(&self, _: &MemoryReservation, additional: usize) -> Result<()> {
        if self.0.take(additional as u64) {
            return Ok(());
        }
        Err(DataFusionError::ResourcesExhausted(self.0.refusal().to_string()))
    }

    fn reserved(&self) -> usize {
        self.0.used_bytes() as usize
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.0.limit_bytes() as usize)
    }
}
