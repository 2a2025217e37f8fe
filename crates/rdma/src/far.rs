//! The regions of another machine by the best way that there is: RDMA if both ends have it, and
//! messages of the region service otherwise.
//!
//! A batch that only reads is repeated by messages if RDMA fails, and from then on messages alone
//! are used: reading once more changes nothing, and the messages say whether the epoch has ended.
//! A batch that changes words is not repeated, since it may have been done, or may still be: it
//! fails, now and later, and its caller connects again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_base::Environment;
use firn_base::task::monotonic;
use firn_fabric::batch::{Answered, PendingBatch};
use firn_fabric::{Batch, Completion, Epoch, FabricError, Peer, Region};
use firn_link::Caller;
use firn_region_service::{RegionService, RemotePeer};

use crate::message::{OwnerAddress, decode, encode};
use crate::owner::RdmaOwner;
use crate::peer::RdmaPeer;
use crate::settings::RdmaSettings;

/// Has peers that ask the service of a link told where the owner's memory is.
pub fn announce(owner: &RdmaOwner, service: &RegionService) {
    service.set_memory_address(Epoch(owner.address().epoch), encode(owner.address()));
}

/// The regions of an owner at the other end of a link, in one epoch.
pub struct FarPeer {
    messages: RemotePeer,
    rdma: Option<Arc<RdmaPeer>>,
    has_failed: Arc<AtomicBool>,
}

impl FarPeer {
    /// Asks whether the owner is reached by RDMA, and finds out whether this process can. Batches
    /// take `timeout` by messages at most, and before that the timeout of the settings by RDMA.
    /// Blocks for a round trip.
    #[must_use]
    pub fn reach(
        environment: &Environment,
        caller: Arc<Caller>,
        epoch: Epoch,
        timeout: Duration,
        settings: &RdmaSettings,
    ) -> FarPeer {
        let messages = RemotePeer::new(caller, epoch, timeout, &*environment.random);
        let rdma = connect(environment, &messages, epoch, settings);
        let rdma = rdma.inspect_err(|reason| tracing::debug!(%reason, "RDMA is not used"));
        FarPeer { messages, rdma: rdma.ok(), has_failed: Arc::default() }
    }

    /// Whether the owner is reached by RDMA at this moment.
    #[must_use]
    pub fn uses_rdma(&self) -> bool {
        self.rdma.is_some() && !self.has_failed.load(Ordering::SeqCst)
    }
}

/// Why an owner is not reached by RDMA.
#[derive(Debug, thiserror::Error)]
enum NotReached {
    #[error(transparent)]
    Fabric(#[from] FabricError),
    #[error("the owner offers none")]
    NotOffered,
    #[error("the owner's address is not understood: {0}")]
    Address(#[from] crate::message::NotAMessage),
    #[error("its address is that of epoch {0}")]
    OtherEpoch(u64),
}

fn connect(
    environment: &Environment,
    messages: &RemotePeer,
    epoch: Epoch,
    settings: &RdmaSettings,
) -> Result<Arc<RdmaPeer>, NotReached> {
    let address = messages.memory_address()?.ok_or(NotReached::NotOffered)?;
    let owner: OwnerAddress = decode(&address)?;
    if owner.epoch != epoch.0 {
        return Err(NotReached::OtherEpoch(owner.epoch));
    }
    let (spawner, random) = (&*environment.spawner, &*environment.random);
    Ok(Arc::new(RdmaPeer::new(&owner, settings, spawner, random)?))
}

impl Peer for FarPeer {
    fn connect(&self, name: &str) -> Result<Arc<dyn Region>, FabricError> {
        let messages = self.messages.connect(name)?;
        let Some(peer) = self.rdma.as_ref().filter(|_| self.uses_rdma()) else {
            return Ok(messages);
        };
        match peer.connect(name) {
            Ok(rdma) => {
                let (peer, has_failed) = (Arc::clone(peer), Arc::clone(&self.has_failed));
                Ok(Arc::new(FarRegion {
                    ways: Arc::new(Ways { rdma, messages, has_failed }),
                    _peer: peer,
                }))
            }
            Err(reason) => {
                tracing::debug!(%reason, name, "the region is not reached by RDMA");
                Ok(messages)
            }
        }
    }
}

struct FarRegion {
    ways: Arc<Ways>,
    /// Its regions end with it.
    _peer: Arc<RdmaPeer>,
}

/// Both ways to a region.
struct Ways {
    rdma: Arc<dyn Region>,
    messages: Arc<dyn Region>,
    /// RDMA has failed, for this region or another one of the same owner.
    has_failed: Arc<AtomicBool>,
}

impl Ways {
    /// The answer of RDMA to a batch that only reads, or what the messages say if RDMA has failed.
    fn or_by_messages(&self, answered: Answered, batch: Batch) -> Answered {
        match answered {
            Err(
                error @ (FabricError::Stale { .. }
                | FabricError::Unreachable { .. }
                | FabricError::TimedOut { .. }
                | FabricError::Incompatible { .. }),
            ) => {
                if !self.has_failed.swap(true, Ordering::SeqCst) {
                    tracing::info!(reason = %error, "RDMA has failed; messages are used");
                }
                self.messages.run(batch)
            }
            answered => answered,
        }
    }
}

impl Region for FarRegion {
    fn length_words(&self) -> usize {
        self.ways.messages.length_words()
    }

    fn epoch(&self) -> Epoch {
        self.ways.messages.epoch()
    }

    fn is_at_hand(&self) -> bool {
        false
    }

    fn timeout(&self) -> Duration {
        self.ways.rdma.timeout().saturating_add(self.ways.messages.timeout())
    }

    fn submit(&self, batch: Batch) -> Completion {
        let ways = &self.ways;
        if batch.changes() {
            return ways.rdma.submit(batch);
        }
        if ways.has_failed.load(Ordering::SeqCst) {
            return ways.messages.submit(batch);
        }
        let sent = ways.rdma.submit(batch.clone());
        Completion::of(Box::new(FarBatch { ways: Arc::clone(ways), sent, batch }))
    }
}

/// A batch that only reads, on its way by RDMA.
struct FarBatch {
    ways: Arc<Ways>,
    sent: Completion,
    batch: Batch,
}

impl PendingBatch for FarBatch {
    fn is_done(&self) -> bool {
        self.sent.is_done()
    }

    fn wait(self: Box<Self>, timeout: Duration) -> Answered {
        let FarBatch { ways, sent, batch } = *self;
        let began = monotonic();
        let answered = sent.wait(timeout.min(ways.rdma.timeout()));
        let is_over = monotonic().saturating_sub(began) >= timeout;
        if is_over && matches!(answered, Err(FabricError::TimedOut { .. })) {
            return Err(FabricError::TimedOut { timeout });
        }
        ways.or_by_messages(answered, batch)
    }
}

#[cfg(test)]
mod tests;
