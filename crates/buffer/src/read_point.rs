//! Which versions of its pages a pool shows: the newest, or those at an applied position.

use std::sync::Arc;
use std::time::Duration;

use firn_api::{PageLease, PageRead};
use firn_base::Lsn;

use crate::sync::{AtomicU64, Event, Ordering};

/// Which versions of its pages a pool shows.
pub(crate) enum ReadPoint {
    Newest,
    /// As they were at a position that moves forward.
    Applied(AppliedPosition),
}

/// See [`crate::follow`]. Both positions only grow, and `shown ≤ announced`.
pub(crate) struct AppliedPosition {
    announced: AtomicU64,
    shown: AtomicU64,
    moved: Event,
    /// Keeps the versions that the pool reads.
    lease: Arc<dyn PageLease>,
}

impl ReadPoint {
    pub(crate) fn is_applied(&self) -> bool {
        matches!(self, ReadPoint::Applied(_))
    }

    /// Whether a change that ends at `lsn` is visible.
    pub(crate) fn includes(&self, lsn: Lsn) -> bool {
        match self {
            ReadPoint::Newest => true,
            ReadPoint::Applied(position) => lsn <= position.shown(),
        }
    }

    /// The version that a load reads now.
    pub(crate) fn version(&self, at_least: Lsn) -> PageRead {
        match self {
            ReadPoint::Newest => PageRead::Latest { at_least },
            ReadPoint::Applied(position) => PageRead::AsOf(position.announced()),
        }
    }

    /// Whether loads by now read a later position than `version`. The lease may have moved along.
    pub(crate) fn has_passed(&self, version: PageRead) -> bool {
        match self {
            ReadPoint::Newest => false,
            ReadPoint::Applied(position) => version.position() < position.announced(),
        }
    }

    /// Waits until a page of `version` may be shown.
    pub(crate) fn wait_until_shown(&self, version: PageRead) {
        if let ReadPoint::Applied(position) = self {
            position.wait_until_shown(version.position(), None);
        }
    }
}

impl AppliedPosition {
    pub(crate) fn of(lease: Arc<dyn PageLease>) -> AppliedPosition {
        let start = lease.position();
        AppliedPosition {
            lease,
            announced: AtomicU64::new(start.0),
            shown: AtomicU64::new(start.0),
            moved: Event::new(),
        }
    }

    /// The end of the last completely applied group.
    pub(crate) fn shown(&self) -> Lsn {
        Lsn(self.shown.load(Ordering::SeqCst))
    }

    fn announced(&self) -> Lsn {
        Lsn(self.announced.load(Ordering::SeqCst))
    }

    /// A group that ends here is about to be applied: loads read as of here from now on.
    pub(crate) fn announce(&self, end: Lsn) {
        self.announced.store(end.0, Ordering::SeqCst);
    }

    /// The group that ends here is applied.
    pub(crate) fn show(&self, end: Lsn) {
        self.shown.store(end.0, Ordering::SeqCst);
        self.lease.advance(end);
        self.moved.notify_all();
    }

    /// Waits until `lsn` is shown; false if `timeout` passes first.
    pub(crate) fn wait_until_shown(&self, lsn: Lsn, timeout: Option<Duration>) -> bool {
        self.moved.wait_until(timeout, || lsn <= self.shown())
    }
}
