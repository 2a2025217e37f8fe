//! A writer that is seen through its fabric regions: one of the same process, or one whose memory
//! this process shares.

use std::sync::Arc;
use std::time::Duration;

use firn_api::{
    LogEpoch, LogTail, Modifications, WriterError, WriterNode, WriterPlace, WriterPositions,
};
use firn_base::{Cts, TrxId};
use firn_fabric::{FabricError, Peer};

use crate::log::tail::RemoteLogTail;
use crate::modifications::RemoteModifications;
use crate::transaction::remote::{RemoteSnapshot, RemoteTransactions};
use crate::transaction::table::Outcome;

/// The node that has these regions.
pub struct RegionWriter {
    regions: Arc<RemoteTransactions>,
    modifications: Option<Arc<RemoteModifications>>,
    log_tail: Option<Arc<RemoteLogTail>>,
    epoch: LogEpoch,
    is_dense: bool,
}

/// A place in the writer's registry of snapshots. It lasts until it is dropped, or the writer's
/// epoch ends.
struct RegionPlace {
    regions: Arc<RemoteTransactions>,
    epoch: LogEpoch,
    snapshot: RemoteSnapshot,
}

impl RegionWriter {
    /// Connects to the regions of a writer that is open. `is_dense`: it numbers its commits itself.
    /// Blocks.
    ///
    /// # Errors
    /// If the regions cannot be reached.
    pub fn connect(writer: Arc<dyn Peer>, is_dense: bool) -> Result<RegionWriter, FabricError> {
        let modifications = if_known(RemoteModifications::connect(&*writer))?;
        let log_tail = if_known(RemoteLogTail::connect(&*writer))?;
        let regions = Arc::new(RemoteTransactions::connect(writer)?);
        let epoch = LogEpoch(regions.log_epoch()?);
        Ok(RegionWriter { regions, modifications, log_tail, epoch, is_dense })
    }

    /// The epoch in which the writer writes its log.
    #[must_use]
    pub fn epoch(&self) -> LogEpoch {
        self.epoch
    }
}

/// What has changed at a writer whose regions `peer` reaches; `None` if it does not tell. Blocks.
///
/// # Errors
/// If the regions cannot be reached.
pub fn modifications_at(peer: &dyn Peer) -> Result<Option<Arc<dyn Modifications>>, FabricError> {
    let modifications = if_known(RemoteModifications::connect(peer))?;
    Ok(modifications.map(|modifications| modifications as _))
}

/// `None`: the owner has no such region.
fn if_known<T>(connected: Result<T, FabricError>) -> Result<Option<Arc<T>>, FabricError> {
    match connected {
        Ok(region) => Ok(Some(Arc::new(region))),
        Err(FabricError::Unknown(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Regions fail when their owner's epoch has ended, or when it has given the place away.
fn ended(error: FabricError) -> WriterError {
    WriterError::Ended { reason: error.to_string() }
}

fn positions(
    regions: &RemoteTransactions,
    epoch: LogEpoch,
) -> Result<WriterPositions, FabricError> {
    // In this order: durable commits lie before the end of the durable log, and both timestamps of
    // a later moment are not lower.
    let (durable_commits, durable_lsn) = (regions.durable_commits()?, regions.durable_lsn()?);
    let (visible, handed_out) = (regions.visible()?, regions.last_handed_out()?);
    Ok(WriterPositions { epoch, durable_commits, durable_lsn, visible, handed_out })
}

impl WriterNode for RegionWriter {
    fn is_dense(&self) -> bool {
        self.is_dense
    }

    fn take_place(&self, _: &str) -> Result<Box<dyn WriterPlace>, WriterError> {
        let snapshot = self.regions.open().map_err(ended)?.ok_or(WriterError::NoPlace)?;
        Ok(Box::new(RegionPlace {
            regions: Arc::clone(&self.regions),
            epoch: self.epoch,
            snapshot,
        }))
    }

    /// The owner of the regions led when they were read: they end with its epoch.
    fn newest(&self) -> Result<WriterPositions, WriterError> {
        positions(&self.regions, self.epoch).map_err(ended)
    }

    /// Both fabrics are memory of this machine.
    fn answers_at_once(&self) -> bool {
        true
    }

    fn modifications(&self) -> Option<Arc<dyn Modifications>> {
        self.modifications.clone().map(|modifications| modifications as _)
    }

    fn log_tail(&self) -> Option<Arc<dyn LogTail>> {
        self.log_tail.clone().map(|tail| tail as _)
    }

    fn is_committing(&self, trx: TrxId) -> Result<bool, WriterError> {
        Ok(!self.is_dense && self.regions.outcome(trx).map_err(ended)? == Outcome::Committing)
    }
}

impl WriterPlace for RegionPlace {
    fn snapshot(&self) -> Cts {
        self.snapshot.cts()
    }

    fn lease(&self) -> Duration {
        Duration::MAX
    }

    fn look(&mut self, needed: Cts) -> Result<WriterPositions, WriterError> {
        self.snapshot.advance(needed).map_err(ended)?;
        positions(&self.regions, self.epoch).map_err(ended)
    }
}
