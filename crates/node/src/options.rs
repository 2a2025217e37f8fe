//! How a node is set up.

use firn_engine::EngineOptions;
use firn_storage::local::LocalOptions;

/// The settings of a node's parts.
#[derive(Debug, Clone, Default)]
pub struct NodeOptions {
    /// The engine.
    pub engine: EngineOptions,
    /// The directory.
    pub storage: LocalOptions,
    /// What the process may take; the buffer pool gives way when it takes more. `None`: nobody
    /// looks.
    pub memory_budget_bytes: Option<u64>,
}
