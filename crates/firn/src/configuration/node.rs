//! What the settings mean to the parts of a node.

use firn::node::NodeOptions;
use firn_engine::EngineOptions;
use firn_storage::local::{LocalOptions, LogOptions, PageStoreOptions};

use super::Configuration;

impl Configuration {
    /// A node's options, typed.
    pub(crate) fn node_options(&self) -> NodeOptions {
        NodeOptions { engine: self.engine_options(), storage: self.storage_options() }
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

    fn engine_options(&self) -> EngineOptions {
        EngineOptions {
            buffer_pool_bytes: self.buffer_pool.value.0 as usize,
            ..EngineOptions::default()
        }
    }
}
