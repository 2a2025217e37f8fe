//! What the settings mean to the parts of a node.

use firn::memory::MemoryPlan;
use firn::node::NodeOptions;
use firn_storage::local::{LocalOptions, LogOptions, PageStoreOptions};

use super::Configuration;
use super::sources::Origin;

impl Configuration {
    /// A node's options, typed.
    pub(crate) fn node_options(&self) -> NodeOptions {
        let mut options = NodeOptions { storage: self.storage_options(), ..NodeOptions::default() };
        self.memory_plan().apply(&mut options);
        options
    }

    /// What the node may take in memory, divided into its parts.
    pub(crate) fn memory_plan(&self) -> MemoryPlan {
        let (pool, budget) = (self.buffer_pool.value.0, self.memory_budget.value.0);
        match (budget, &self.buffer_pool.origin) {
            (0, _) => MemoryPlan::for_pool(pool),
            (_, Origin::Default) => MemoryPlan::within(budget),
            _ => MemoryPlan { budget_bytes: budget, ..MemoryPlan::for_pool(pool) },
        }
    }

    /// The options of the data directory.
    pub(crate) fn storage_options(&self) -> LocalOptions {
        LocalOptions {
            log: LogOptions {
                segment_size_bytes: self.log_segment_size.value.0,
                ..LogOptions::default()
            },
            pages: PageStoreOptions {
                behind_limit_bytes: self.materialise_behind_limit.value.0,
                history_window_ms: self.history_window_seconds.value * 1000,
                ..PageStoreOptions::default()
            },
        }
    }
}
