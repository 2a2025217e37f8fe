//! An engine over a local directory: the embedded default, in which all tiers are one process.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use firn_api::report::MemoryReport;
use firn_api::{Timestamps, WriterEpoch};
use firn_base::{Environment, Lsn};
use firn_engine::{Engine, EngineError, Storage};
use firn_fabric::{Epoch, InProcessFabric, Peer};
use firn_storage::local::{LocalStorage, OpenError};

use crate::memory::{self, Governor};

pub use crate::options::NodeOptions;

/// Why a node did not start or stop as it should.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The directory.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// A node that runs. Dropping it without [`LocalNode::close`] is what a crash is, but for the
/// threads.
pub struct LocalNode {
    governor: Governor,
    engine: Engine,
    storage: LocalStorage,
    regions: Arc<dyn Peer>,
    opened_at: Lsn,
    column_cache: OnceLock<Box<dyn Fn() -> u64 + Send + Sync>>,
}

impl LocalNode {
    /// Opens the directory and the engine over it. Blocks for I/O.
    ///
    /// # Errors
    /// If the directory is another process's or another format's, or is damaged.
    pub fn open(
        environment: &Environment,
        path: &Path,
        options: &NodeOptions,
    ) -> Result<LocalNode, NodeError> {
        let storage = LocalStorage::open(environment, path, options.storage.clone())?;
        // Other processes cannot reach these regions, so any number that grows will do.
        let fabric = InProcessFabric::new(Epoch(environment.clock.wall_time_ms()));
        let regions = fabric.peer();
        let seams = Storage {
            log: storage.log.clone(),
            // The directory's lock has decided that this node writes.
            epoch: WriterEpoch::Next,
            pages: storage.pages.clone(),
            timestamps: Timestamps::Local,
            fabric: Arc::new(fabric),
        };
        let engine = Engine::open(environment, seams, &options.engine)?;
        let pool = &engine.system().pages().pool;
        let governor = Governor::start(environment, pool, options.memory_budget_bytes);
        let opened_at = storage.log.end_lsn();
        let column_cache = OnceLock::new();
        Ok(LocalNode { governor, engine, storage, regions, opened_at, column_cache })
    }

    /// The engine.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Where the log ended when the node had been opened.
    #[must_use]
    pub fn opened_at(&self) -> Lsn {
        self.opened_at
    }

    /// Log and pages.
    #[must_use]
    pub fn storage(&self) -> &LocalStorage {
        &self.storage
    }

    /// The regions of the engine, as other nodes of this process reach them.
    #[must_use]
    pub fn regions(&self) -> &Arc<dyn Peer> {
        &self.regions
    }

    /// What the node takes in memory, by part. Reads figures of the system; not for every statement.
    #[must_use]
    pub fn memory(&self) -> MemoryReport {
        let column_cache = self.column_cache.get().map_or(0, |bytes| bytes());
        memory::report(&self.engine, &self.storage, &self.governor, column_cache)
    }

    /// Counts what the statements' executors keep in columns as a part of the node's memory; the
    /// first one counts.
    pub fn count_column_cache(&self, bytes: impl Fn() -> u64 + Send + Sync + 'static) {
        let _ = self.column_cache.set(Box::new(bytes));
    }

    /// Ends background work and makes everything durable. Blocks.
    ///
    /// # Errors
    /// If the log has failed.
    pub fn close(self) -> Result<(), NodeError> {
        self.governor.stop();
        let closed = self.engine.close();
        self.storage.close();
        Ok(closed?)
    }
}
