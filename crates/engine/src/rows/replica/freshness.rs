//! Reads that wait until the replica is as new as they want (003 §4.1).

use std::time::Duration;

use firn_api::WriterError;
use firn_api::rows::{Cancellation, Freshness, ReadConsistency, RowsError, RowsResult};
use firn_base::Cts;
use firn_base::task::monotonic;

use super::ReplicaNode;

/// How long a wait goes on before it looks whether it was cancelled.
const LOOK: Duration = Duration::from_millis(20);

impl Freshness for ReplicaNode {
    fn catch_up(
        &self,
        wanted: ReadConsistency,
        patience: Duration,
        cancelled: &Cancellation,
    ) -> RowsResult<()> {
        let wait =
            Wait { node: self, until: monotonic().saturating_add(patience), patience, cancelled };
        match wait.target(wanted)? {
            Some(target) => wait.until_visible(target),
            None => Ok(()),
        }
    }
}

/// One wait.
struct Wait<'a> {
    node: &'a ReplicaNode,
    /// When it ends, on the monotonic clock.
    until: Duration,
    patience: Duration,
    cancelled: &'a Cancellation,
}

impl Wait<'_> {
    /// What has to be visible; `None`: nothing more than there is.
    fn target(&self, wanted: ReadConsistency) -> RowsResult<Option<Cts>> {
        let newest = self.node.replica.newest();
        let arrival = newest.arrive();
        loop {
            let asked = match wanted {
                ReadConsistency::Stale => return Ok(None),
                ReadConsistency::Position(cts) => return Ok(Some(cts)),
                ReadConsistency::Strong { shares: true } => newest.since(arrival),
                ReadConsistency::Strong { shares: false } => newest.ask_alone(),
                ReadConsistency::Bounded(age) => newest.within(age),
            };
            match asked {
                Ok(target) => return Ok(Some(target)),
                Err(error @ WriterError::Ended { .. }) => return Err(self.refusal(&error)),
                Err(error) if monotonic() >= self.until => return Err(self.refusal(&error)),
                // A replica that has failed is not waited for, and does not become newer.
                Err(error) if self.node.replica.failure().is_some() => {
                    return Err(self.refusal(&error));
                }
                Err(_) => self.pause()?,
            }
        }
    }

    fn until_visible(&self, target: Cts) -> RowsResult<()> {
        let replica = &self.node.replica;
        loop {
            let left = self.until.saturating_sub(monotonic());
            if replica.wait_until_visible(target, left.min(LOOK)) {
                return Ok(());
            }
            self.check_cancelled()?;
            if let Some(failure) = replica.failure() {
                return Err(self.refusal(&failure));
            }
            if left.is_zero() {
                return Err(self.refusal(&"the log has not come so far"));
            }
        }
    }

    /// Waits a moment for a writer that does not answer.
    fn pause(&self) -> RowsResult<()> {
        let replica = &self.node.replica;
        // More that becomes visible does not help here, and does no harm.
        replica.wait_until_visible(Cts(u64::MAX), LOOK.min(self.until.saturating_sub(monotonic())));
        self.check_cancelled()
    }

    fn check_cancelled(&self) -> RowsResult<()> {
        if self.cancelled.is_cancelled() { Err(RowsError::Cancelled) } else { Ok(()) }
    }

    fn refusal(&self, why: &dyn std::fmt::Display) -> RowsError {
        let reason = format!(
            "this replica could not learn and apply what is newest within {:?} ({why}); SET \
             firn_read_consistency = 'STALE' reads what it has",
            self.patience
        );
        RowsError::Unavailable { reason: reason.into() }
    }
}
