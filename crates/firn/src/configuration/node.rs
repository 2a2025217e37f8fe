//! Translates the settings into the options of a node's parts.

use firn_archive::ArchiveOptions;
use firn_node::endpoint::EndpointOptions;
use firn_node::memory::MemoryPlan;
use firn_node::node::NodeOptions;
use std::path::PathBuf;

use firn_storage::local::{LocalOptions, LogOptions, PageStoreOptions};

use super::Configuration;
use super::sources::Origin;
use crate::logging::verbosity_of;

impl Configuration {
    pub(crate) fn endpoint_options(&self) -> EndpointOptions {
        let named = |text: &str| (!text.is_empty()).then(|| PathBuf::from(text));
        EndpointOptions {
            listen: Some(self.listen.value),
            socket: named(&self.socket.value),
            max_connections: self.max_connections.value,
            tls: named(&self.tls_certificate.value).zip(named(&self.tls_key.value)),
            metrics_listen: self.metrics_listen.value,
            log_error_verbosity: verbosity_of(self.log_level.value),
            set_verbosity: None,
            data_dir: self.data_dir.value.clone(),
            secure_file_priv: named(&self.secure_file_priv.value),
            buffer_pool_bytes: self.memory_plan().buffer_pool_bytes,
            column_cache_bytes: self.memory_plan().column_cache_bytes,
            door: None,
            cluster: None,
            lease: None,
            coming: Vec::new(),
            globals: None,
        }
    }

    pub(crate) fn node_options(&self) -> NodeOptions {
        let mut options = NodeOptions { storage: self.storage_options(), ..NodeOptions::default() };
        options.engine.log.leave_from = self.asynchronous_commit.value.leave_from();
        self.memory_plan().apply(&mut options);
        options
    }

    /// The node's memory, divided into its parts.
    pub(crate) fn memory_plan(&self) -> MemoryPlan {
        let (pool, budget) = (self.buffer_pool.value.0, self.memory_budget.value.0);
        match (budget, &self.buffer_pool.origin) {
            (0, _) => MemoryPlan::for_pool(pool),
            (_, Origin::Default) => MemoryPlan::within(budget),
            _ => MemoryPlan::of(pool, budget),
        }
    }

    /// How the archive is written.
    pub(crate) fn archive_options(&self) -> ArchiveOptions {
        ArchiveOptions {
            interval_ms: self.archive_interval_seconds.value * 1000,
            window_ms: self.archive_window_hours.value * 3600 * 1000,
            hold_log_bytes: self.archive_log_limit.value.0,
            ..ArchiveOptions::default()
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
            hold_log_bytes: (!self.archive.value.is_empty())
                .then_some(self.archive_log_limit.value.0),
        }
    }
}
