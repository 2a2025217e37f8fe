//! A node that follows another node of the same process.
//!
//! ```text
//!   Node ──► log, pages ─────► Replica ──► ReplicaNode ──► an endpoint
//!       └───────► regions ────────────┘
//! ```

use std::sync::Arc;

use firn_base::Environment;
use firn_engine::EngineError;
use firn_engine::replica::{RegionWriter, Replica, ReplicaOptions, ReplicaStorage};
use firn_fabric::{Epoch, InProcessFabric};
use firn_sql_collation::Collations;

use crate::node::Node;

/// Opens a replica beside a node whose dictionary is open. Close it before the node. Blocks for
/// I/O, and until a snapshot can be opened.
///
/// # Errors
/// As [`Replica::open`].
pub fn open_beside(
    environment: &Environment,
    node: &Node,
    options: ReplicaOptions,
) -> Result<Arc<Replica>, EngineError> {
    let storage = ReplicaStorage {
        log: node.storage().log(),
        pages: node.storage().pages(),
        // No other node reads these regions, so any growing number serves as an epoch.
        fabric: Arc::new(InProcessFabric::new(Epoch(environment.clock.wall_time_ms()))),
        writer: Arc::new(as_writer(node)?),
    };
    Ok(Arc::new(Replica::open(environment, storage, options, Arc::new(Collations))?))
}

/// The node as replicas of this process see it.
///
/// # Errors
/// If the node is closing.
pub fn as_writer(node: &Node) -> Result<RegionWriter, EngineError> {
    // A node numbers its commits itself.
    Ok(RegionWriter::connect(Arc::clone(node.regions()), true)?)
}
