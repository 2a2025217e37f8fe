//! The memory of the node that writes, from other machines.
//!
//! It is reached by messages of the region service. In a build with the feature `rdma`, and with
//! hardware for it at both ends, it is read by RDMA, and by messages once that fails.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use firn_base::Environment;
#[cfg(feature = "rdma")]
use firn_base::task::is_simulated;
use firn_fabric::{Epoch, Peer};
use firn_link::Caller;
#[cfg(feature = "rdma")]
use firn_rdma::{FarPeer, RdmaOwner, RdmaSettings, announce};
use firn_region_service::{RegionService, RemotePeer};

use crate::near::NearRegions;

/// How long a question by messages may take.
const TIMEOUT: Duration = Duration::from_millis(500);
/// How long a question by RDMA may take before it is asked by messages.
#[cfg(feature = "rdma")]
const RDMA_TIMEOUT: Duration = Duration::from_millis(100);

/// Lets other machines read the memory without messages until the value is dropped, and has
/// `service` tell them. `None` if that is not possible.
#[cfg(feature = "rdma")]
pub(crate) fn serve(
    environment: &Environment,
    near: &NearRegions,
    service: &RegionService,
) -> Option<Box<dyn Any>> {
    // Hardware is no part of the simulation.
    if is_simulated() {
        return None;
    }
    let settings = RdmaSettings::hardware(RDMA_TIMEOUT);
    let served = RdmaOwner::serve(near.fabric(), &settings, &*environment.spawner);
    let owner =
        served.inspect_err(|reason| tracing::info!(%reason, "memory is not read by RDMA")).ok()?;
    announce(&owner, service);
    tracing::info!("replicas of other machines may read memory by RDMA");
    Some(Box::new(owner))
}

#[cfg(not(feature = "rdma"))]
pub(crate) fn serve(_: &Environment, _: &NearRegions, _: &RegionService) -> Option<Box<dyn Any>> {
    None
}

/// The regions of a node on another machine.
pub(crate) struct FarMemory {
    pub(crate) peer: Box<dyn Peer>,
    /// How it is reached, for people.
    pub(crate) way: &'static str,
}

/// Reaches them in the best way that there is. Blocks for a few round trips.
pub(crate) fn reach(environment: &Environment, caller: Arc<Caller>, epoch: Epoch) -> FarMemory {
    #[cfg(feature = "rdma")]
    if !is_simulated() {
        let settings = RdmaSettings::hardware(RDMA_TIMEOUT);
        let caller = Arc::clone(&caller);
        let peer = FarPeer::reach(environment, caller, epoch, TIMEOUT, &settings);
        if peer.uses_rdma() {
            return FarMemory { peer: Box::new(peer), way: "read by RDMA" };
        }
    }
    let peer = RemotePeer::new(caller, epoch, TIMEOUT, &*environment.random);
    FarMemory { peer: Box::new(peer), way: "asked by messages" }
}
