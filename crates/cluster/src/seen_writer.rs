//! The node that writes, as a replica sees it: by the shortest way that there is.
//!
//! | the writer is | what is newest | which pages have changed | the newest log |
//! |---|---|---|---|
//! | on this machine | its memory ([`crate::near`]) | its memory | its memory |
//! | on another one | a message | its memory, by messages or RDMA ([`crate::far_memory`]) | pushed by the log's nodes |
//! | of another layout | a message | | pushed by the log's nodes |

use std::sync::Arc;

use firn_api::{Modifications, WriterError, WriterNode, WriterPlace, WriterPositions};
use firn_base::{Environment, TrxId};
use firn_engine::replica::modifications_at;
use firn_fabric::Epoch;
use firn_writer_service::{RemoteWriter, SharedRegions};

use crate::far_memory::{self, FarMemory};
use crate::near::{NearWriter, NotReached};

/// Finds the way. Blocks for a few round trips.
pub(crate) fn connect(environment: &Environment, remote: &RemoteWriter) -> Arc<dyn WriterNode> {
    let place = match place_of(remote) {
        Ok(place) => place,
        Err(reason) => {
            tracing::debug!(%reason, "the writer's memory is not read");
            return Arc::new(remote.clone());
        }
    };
    match NearWriter::connect(environment, remote, &place) {
        Ok(near) => {
            tracing::info!("the writer is on this machine; its memory is read");
            return Arc::new(near);
        }
        Err(reason) => tracing::debug!(%reason, "the writer's memory is not of this machine"),
    }
    match FarWriter::connect(environment, remote, &place) {
        Ok(far) => Arc::new(far),
        Err(reason) => {
            tracing::debug!(%reason, "the writer does not tell which pages have changed");
            Arc::new(remote.clone())
        }
    }
}

fn place_of(remote: &RemoteWriter) -> Result<SharedRegions, NotReached> {
    let place = remote.regions()?;
    match place.layout {
        SharedRegions::LAYOUT => Ok(place),
        layout => Err(NotReached::AnotherLayout(layout)),
    }
}

/// A writer of another machine.
struct FarWriter {
    remote: RemoteWriter,
    modifications: Option<Arc<dyn Modifications>>,
}

impl FarWriter {
    fn connect(
        environment: &Environment,
        remote: &RemoteWriter,
        place: &SharedRegions,
    ) -> Result<FarWriter, NotReached> {
        let (caller, epoch) = (Arc::clone(remote.caller()), Epoch(place.epoch));
        let FarMemory { peer, way } = far_memory::reach(environment, caller, epoch);
        let modifications = modifications_at(&*peer)?;
        tracing::info!("the writer is on another machine; its memory is {way}");
        Ok(FarWriter { remote: remote.clone(), modifications })
    }
}

impl WriterNode for FarWriter {
    fn is_dense(&self) -> bool {
        self.remote.is_dense()
    }

    fn take_place(&self, replica: &str) -> Result<Box<dyn WriterPlace>, WriterError> {
        self.remote.take_place(replica)
    }

    fn newest(&self) -> Result<WriterPositions, WriterError> {
        self.remote.newest()
    }

    fn modifications(&self) -> Option<Arc<dyn Modifications>> {
        self.modifications.clone()
    }

    fn is_committing(&self, trx: TrxId) -> Result<bool, WriterError> {
        self.remote.is_committing(trx)
    }
}
