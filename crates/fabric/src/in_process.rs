//! Regions within one process: the embedded default, without a transport.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::batch::{Batch, Completion};
use crate::epoch::Epoch;
use crate::error::FabricError;
use crate::owned::OwnedRegion;
use crate::region::{Fabric, Peer, Region};

/// The regions of one owner, by name. Dropping it ends its epoch.
#[derive(Debug)]
pub struct InProcessFabric {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    epoch: Epoch,
    has_ended: AtomicBool,
    regions: Mutex<HashMap<String, OwnedRegion>>,
}

impl InProcessFabric {
    #[must_use]
    pub fn new(epoch: Epoch) -> InProcessFabric {
        let regions = Mutex::new(HashMap::new());
        InProcessFabric {
            shared: Arc::new(Shared { epoch, has_ended: AtomicBool::new(false), regions }),
        }
    }

    /// A region whose memory the owner has made otherwise.
    #[cfg(not(feature = "shuttle"))]
    pub(crate) fn add(&self, name: &str, region: OwnedRegion) {
        self.shared.regions.lock().insert(name.to_owned(), region);
    }

    /// A peer of this owner in the same process.
    #[must_use]
    pub fn peer(&self) -> Arc<dyn Peer> {
        Arc::new(InProcessPeer { shared: Arc::clone(&self.shared) })
    }
}

impl Fabric for InProcessFabric {
    fn register(&self, name: &str, length_words: usize) -> Result<OwnedRegion, FabricError> {
        let mut regions = self.shared.regions.lock();
        if regions.contains_key(name) {
            return Err(FabricError::Registered(name.to_owned()));
        }
        let region = OwnedRegion::unregistered(length_words);
        regions.insert(name.to_owned(), region.clone());
        Ok(region)
    }

    fn epoch(&self) -> Epoch {
        self.shared.epoch
    }
}

impl Drop for InProcessFabric {
    fn drop(&mut self) {
        self.shared.has_ended.store(true, Ordering::Release);
    }
}

impl Shared {
    fn check(&self) -> Result<(), FabricError> {
        match self.has_ended.load(Ordering::Acquire) {
            true => Err(FabricError::Stale { epoch: self.epoch }),
            false => Ok(()),
        }
    }
}

struct InProcessPeer {
    shared: Arc<Shared>,
}

impl Peer for InProcessPeer {
    fn connect(&self, name: &str) -> Result<Arc<dyn Region>, FabricError> {
        self.shared.check()?;
        let region = self.shared.regions.lock().get(name).cloned();
        let region = region.ok_or_else(|| FabricError::Unknown(name.to_owned()))?;
        Ok(Arc::new(InProcessRegion { shared: Arc::clone(&self.shared), region }))
    }
}

struct InProcessRegion {
    shared: Arc<Shared>,
    region: OwnedRegion,
}

impl Region for InProcessRegion {
    fn length_words(&self) -> usize {
        self.region.words().len()
    }

    fn epoch(&self) -> Epoch {
        self.shared.epoch
    }

    fn timeout(&self) -> Duration {
        // Every batch is complete when it is submitted.
        Duration::ZERO
    }

    fn submit(&self, batch: Batch) -> Completion {
        let checked = self.shared.check();
        let answered = checked.and_then(|()| batch.run(self.region.words()));
        // A read that ran while the epoch ended returns an error.
        Completion::ready(answered.and_then(|answers| self.shared.check().map(|()| answers)))
    }
}

#[cfg(test)]
mod tests;
