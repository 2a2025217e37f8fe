//! A database node: an engine over its log and pages.
//!
//! [`Node::open`] opens one over a local directory: the embedded default, in which all tiers are
//! one process. [`Node::open_over`] takes log and pages from wherever they are.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use firn_api::report::MemoryReport;
use firn_api::rows::HandedOver;
use firn_api::{Timestamps, WriterEpoch};
use firn_base::{Environment, Lsn};
use firn_engine::{Engine, EngineError, Storage};
use firn_fabric::{Epoch, Fabric, InProcessFabric, Peer};
use firn_storage::local::{LocalStorage, OpenError};

use crate::memory::{self, Governor};
use crate::storage::NodeStorage;

pub use crate::options::NodeOptions;

/// Why a node did not start or did not stop in order.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The directory.
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// Where the regions of a node's engine are.
pub struct Regions {
    /// Has none of the engine's regions yet.
    pub fabric: Arc<dyn Fabric>,
    /// The same regions, as other nodes see them.
    pub peer: Arc<dyn Peer>,
}

impl Regions {
    /// Regions that other processes cannot reach.
    #[must_use]
    pub fn own(environment: &Environment) -> Regions {
        // Any growing number serves as an epoch.
        let fabric = InProcessFabric::new(Epoch(environment.clock.wall_time_ms()));
        let peer = fabric.peer();
        Regions { fabric: Arc::new(fabric), peer }
    }
}

/// A running node. Dropping it without [`Node::close`] is like a crash, except that its threads go
/// on.
pub struct Node {
    governor: Governor,
    engine: Engine,
    storage: Arc<dyn NodeStorage>,
    regions: Arc<dyn Peer>,
    opened_at: Lsn,
    column_cache: OnceLock<Box<dyn Fn() -> u64 + Send + Sync>>,
}

impl Node {
    /// Opens the directory and the engine over it. Blocks for I/O.
    ///
    /// # Errors
    /// If another process uses the directory, or it has another format, or it is damaged.
    pub fn open(
        environment: &Environment,
        path: &Path,
        options: &NodeOptions,
    ) -> Result<Node, NodeError> {
        let storage = LocalStorage::open(environment, path, options.storage.clone())?;
        // This process has the directory's lock, so it is the one that writes.
        Node::open_over(environment, Arc::new(storage), WriterEpoch::Next, options)
    }

    /// Opens an engine that writes in `epoch`. What the options say of a directory is not looked
    /// at. Blocks for I/O.
    ///
    /// # Errors
    /// If the log refuses the epoch or does not answer, or log or pages are damaged.
    pub fn open_over(
        environment: &Environment,
        storage: Arc<dyn NodeStorage>,
        epoch: WriterEpoch,
        options: &NodeOptions,
    ) -> Result<Node, NodeError> {
        Node::open_with_regions(environment, storage, epoch, Regions::own(environment), options)
    }

    /// As [`Node::open_over`], with regions that other processes may reach.
    ///
    /// # Errors
    /// As there.
    pub fn open_with_regions(
        environment: &Environment,
        storage: Arc<dyn NodeStorage>,
        epoch: WriterEpoch,
        regions: Regions,
        options: &NodeOptions,
    ) -> Result<Node, NodeError> {
        let nothing = HandedOver::default();
        Node::open_after(environment, storage, epoch, regions, options, &nothing)
    }

    /// As [`Node::open_with_regions`], after a writer that has handed its open transactions over
    /// ([`Engine::open_after`]).
    ///
    /// # Errors
    /// As there.
    pub fn open_after(
        environment: &Environment,
        storage: Arc<dyn NodeStorage>,
        epoch: WriterEpoch,
        regions: Regions,
        options: &NodeOptions,
        handed: &HandedOver,
    ) -> Result<Node, NodeError> {
        let Regions { fabric, peer } = regions;
        let seams = Storage {
            log: storage.log(),
            epoch,
            pages: storage.pages(),
            timestamps: Timestamps::Local,
            fabric,
        };
        let engine = Engine::open_after(environment, seams, &options.engine, handed)?;
        let pages = engine.system().pages();
        let governor = Governor::start(environment, &pages.pool, options.memory_budget_bytes);
        let opened_at = pages.log.end_lsn();
        let column_cache = OnceLock::new();
        Ok(Node { governor, engine, storage, regions: peer, opened_at, column_cache })
    }

    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The end of the log at the time when the node was opened.
    #[must_use]
    pub fn opened_at(&self) -> Lsn {
        self.opened_at
    }

    /// Log and pages.
    #[must_use]
    pub fn storage(&self) -> &Arc<dyn NodeStorage> {
        &self.storage
    }

    /// The regions of the engine, as other nodes of this process reach them.
    #[must_use]
    pub fn regions(&self) -> &Arc<dyn Peer> {
        &self.regions
    }

    /// The memory that the node takes, by part. Reads figures of the system; too slow for every
    /// statement.
    #[must_use]
    pub fn memory(&self) -> MemoryReport {
        let column_cache = self.column_cache.get().map_or(0, |bytes| bytes());
        memory::report(&self.engine, self.storage.figures().memory, &self.governor, column_cache)
    }

    /// Counts the executors' column cache as a part of the node's memory. Only the first call has
    /// an effect.
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
