//! Memory that the node that writes shares with replicas of its machine.
//!
//! ```text
//!   process that leads                         replica of the same machine
//!     regions of the engine ──┐                   what is newest, which pages have changed, the
//!     the leader's lease ─────┴── shared ───────► newest log: read without a message
//!     writer service ──────────── message ──────► the place, and all of it on other machines
//! ```
//!
//! An answer without a message has to be as sure as one of the writer service (rule W1 of
//! [`firn_writer_service`]): the lease is read after the positions, and holds at that moment by the
//! clock that all processes of a machine share. A leader that lets another one lead takes the lease
//! back before it says so. Without a lease, or when the regions have ended, the replica asks by
//! message. Log is read without a lease: durable log holds under every leader.
//!
//! [`crate::seen_writer`] chooses between this and the ways to other machines.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use firn_api::{LogTail, Modifications, WriterError, WriterNode, WriterPlace, WriterPositions};
use firn_base::clock::Clock;
use firn_base::{Environment, TrxId};
use firn_engine::replica::RegionWriter;
use firn_fabric::{
    Epoch, Fabric, FabricError, OwnedRegion, Peer, Region, SharedMemoryFabric, SharedMemoryPeer,
};
use firn_node::node::Regions;
use firn_writer_service::{RemoteWriter, SharedRegions};

use crate::lease::TellLease;

/// The name of the socket in the process's directory.
const SOCKET: &str = "regions.sock";
/// The region that has the end of the leader's lease, in nanoseconds of the monotonic clock; 0
/// without a lease.
const LEASE_REGION: &str = "lease";
/// How long the owner's process has to pass its memory on.
const TIMEOUT: Duration = Duration::from_millis(500);

/// The regions of an engine that runs in this process.
pub(crate) struct NearRegions {
    fabric: Arc<SharedMemoryFabric>,
    lease: OwnedRegion,
    place: SharedRegions,
}

impl NearRegions {
    /// Serves regions at a socket in `directory`. `None` if that is not possible: then replicas ask
    /// by message. Blocks for I/O.
    pub(crate) fn serve(environment: &Environment, directory: &Path) -> Option<NearRegions> {
        NearRegions::try_serve(environment, directory)
            .inspect_err(|error| {
                tracing::warn!(%error, "replicas of this machine are answered by messages alone");
            })
            .ok()
    }

    fn try_serve(environment: &Environment, directory: &Path) -> Result<NearRegions, FabricError> {
        let path = directory.join(SOCKET);
        // Replicas have other working directories.
        let path = std::path::absolute(&path).unwrap_or(path);
        let epoch = environment.random.next_u64();
        let spawner = &*environment.spawner;
        let fabric = SharedMemoryFabric::serve(&path, Epoch(epoch), spawner)?;
        let lease = fabric.register(LEASE_REGION, 1)?;
        let (socket, layout) = (path.display().to_string(), SharedRegions::LAYOUT);
        let place = SharedRegions { socket, epoch, layout };
        Ok(NearRegions { fabric: Arc::new(fabric), lease, place })
    }

    /// For those who let other machines read the memory.
    #[cfg(feature = "rdma")]
    pub(crate) fn fabric(&self) -> Arc<SharedMemoryFabric> {
        Arc::clone(&self.fabric)
    }

    /// For the engine.
    pub(crate) fn regions(&self) -> Regions {
        Regions { fabric: Arc::clone(&self.fabric) as _, peer: self.fabric.peer() }
    }

    /// The epoch of these regions.
    pub(crate) fn epoch(&self) -> Epoch {
        self.fabric.epoch()
    }

    /// The way to them within this process.
    pub(crate) fn peer(&self) -> Arc<dyn Peer> {
        self.fabric.peer()
    }

    /// Where replicas find them.
    pub(crate) fn place(&self) -> SharedRegions {
        self.place.clone()
    }

    /// Publishes until when this process surely leads.
    pub(crate) fn lease(&self) -> TellLease {
        let lease = self.lease.clone();
        Box::new(move |until| {
            let until = u64::try_from(until.as_nanos()).unwrap_or(u64::MAX);
            lease.words()[0].store(until, std::sync::atomic::Ordering::SeqCst);
        })
    }
}

/// Why a writer's memory is not used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotReached {
    #[error(transparent)]
    Writer(#[from] WriterError),
    #[error(transparent)]
    Fabric(#[from] FabricError),
    #[error("the socket of that path is of another machine or an earlier engine")]
    AnotherOwner,
    #[error("its regions have layout {0}, which this release does not read")]
    AnotherLayout(u32),
}

/// A writer of this machine.
pub(crate) struct NearWriter {
    remote: RemoteWriter,
    seen: RegionWriter,
    lease: Arc<dyn Region>,
    clock: Arc<dyn Clock>,
}

impl NearWriter {
    /// Connects to the regions at `place`, if they are of this machine. Blocks.
    ///
    /// # Errors
    /// Why they cannot be reached so.
    pub(crate) fn connect(
        environment: &Environment,
        remote: &RemoteWriter,
        place: &SharedRegions,
    ) -> Result<NearWriter, NotReached> {
        let peer =
            SharedMemoryPeer::connect(Path::new(&place.socket), TIMEOUT, &*environment.spawner)?;
        let peer: Arc<dyn Peer> = Arc::new(peer);
        let lease = peer.connect(LEASE_REGION)?;
        // A node of a cluster numbers its commits itself.
        let seen = RegionWriter::connect(peer, true)?;
        if lease.epoch() != Epoch(place.epoch) || seen.epoch() != remote.epoch() {
            return Err(NotReached::AnotherOwner);
        }
        Ok(NearWriter {
            remote: remote.clone(),
            seen,
            lease,
            clock: Arc::clone(&environment.clock),
        })
    }

    /// The positions, if the lease holds after they were read.
    fn look(&self) -> Option<WriterPositions> {
        let positions = self.seen.newest().ok()?;
        let mut until = [0];
        self.lease.read(0, &mut until).ok()?;
        (self.clock.monotonic() < Duration::from_nanos(until[0])).then_some(positions)
    }
}

impl WriterNode for NearWriter {
    fn is_dense(&self) -> bool {
        self.remote.is_dense()
    }

    fn take_place(&self, replica: &str) -> Result<Box<dyn WriterPlace>, WriterError> {
        self.remote.take_place(replica)
    }

    fn newest(&self) -> Result<WriterPositions, WriterError> {
        self.look().map_or_else(|| self.remote.newest(), Ok)
    }

    fn answers_at_once(&self) -> bool {
        true
    }

    fn modifications(&self) -> Option<Arc<dyn Modifications>> {
        self.seen.modifications()
    }

    fn log_tail(&self) -> Option<Arc<dyn LogTail>> {
        self.seen.log_tail()
    }

    fn is_committing(&self, trx: TrxId) -> Result<bool, WriterError> {
        self.remote.is_committing(trx)
    }
}
