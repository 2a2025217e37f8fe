//! Settings of a node.

use firn_engine::EngineOptions;
use firn_storage::local::LocalOptions;

/// The settings of a node's parts.
#[derive(Debug, Clone, Default)]
pub struct NodeOptions {
    pub engine: EngineOptions,
    /// The directory.
    pub storage: LocalOptions,
    /// The memory budget of the process; the buffer pool gives way when it is exceeded. `None`:
    /// there is no budget.
    pub memory_budget_bytes: Option<u64>,
}
