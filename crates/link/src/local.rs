//! This process, as its links introduce it.

use std::sync::atomic::{AtomicU64, Ordering};

use firn_base::network::NodeIdentity;

use crate::hello::Hello;

/// Who this process is, and the newest epoch that it knows of. All its links share it.
#[derive(Debug)]
pub struct LocalNode {
    pub identity: NodeIdentity,
    epoch: AtomicU64,
}

impl LocalNode {
    /// `epoch` is 0 for a process that speaks for none.
    #[must_use]
    pub fn new(identity: NodeIdentity, epoch: u64) -> LocalNode {
        LocalNode { identity, epoch: AtomicU64::new(epoch) }
    }

    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst)
    }

    /// Raises the epoch; a lower one has no effect. Links of older epochs end with their next
    /// message, and requests of theirs that no service has seen are refused.
    pub fn raise_epoch(&self, epoch: u64) {
        self.epoch.fetch_max(epoch, Ordering::SeqCst);
    }

    /// Whether a link that was agreed on in `epoch` has ended.
    pub(crate) fn has_left(&self, epoch: u64) -> bool {
        epoch != 0 && self.epoch() > epoch
    }

    pub(crate) fn hello(&self, window_bytes: u32) -> Hello {
        Hello::new(self.identity.clone(), self.epoch(), window_bytes)
    }
}
