//! Reads that wait until the replica is as new as they want (003 §4.1).

use std::time::Duration;

use firn_api::WriterError;
use firn_api::rows::{Awaited, Cancellation, Freshness, ReadConsistency, RowsError, RowsResult};
use firn_base::task::monotonic;
use firn_base::{Cts, Lsn};

use crate::error::EngineError;
use crate::replica::NewestCommits;

use super::ReplicaNode;

/// How long a wait goes on before it looks whether it was cancelled.
const LOOK: Duration = Duration::from_millis(20);

impl Freshness for ReplicaNode {
    fn catch_up(
        &self,
        wanted: ReadConsistency,
        patience: Duration,
        cancelled: &Cancellation,
    ) -> RowsResult<Option<Awaited>> {
        if let ReadConsistency::Strong { log_tail, .. } = wanted {
            self.replica.use_log_tail(log_tail);
        }
        let wait =
            Wait { node: self, until: monotonic().saturating_add(patience), patience, cancelled };
        let Some(awaited) = wait.target(wanted)? else { return Ok(None) };
        if wait.may_begin(wanted, awaited) {
            return Ok(Some(awaited));
        }
        self.replica.catch_up(awaited, wait.until, cancelled.flag())?;
        Ok(None)
    }
}

struct Wait<'a> {
    node: &'a ReplicaNode,
    /// When it ends, on the monotonic clock.
    until: Duration,
    patience: Duration,
    cancelled: &'a Cancellation,
}

impl Wait<'_> {
    /// What has to be visible; `None`: nothing more than there is.
    fn target(&self, wanted: ReadConsistency) -> RowsResult<Option<Awaited>> {
        let patience = self.patience;
        let newest = self.node.replica.newest();
        let arrival = newest.arrive();
        loop {
            let asked = match wanted {
                ReadConsistency::Stale => return Ok(None),
                ReadConsistency::Position(commits) => {
                    return Ok(Some(Awaited { commits, position: Lsn::MAX, patience }));
                }
                ReadConsistency::Strong { shares: true, .. } => newest.since(arrival),
                ReadConsistency::Strong { shares: false, .. } => newest.ask_alone(),
                ReadConsistency::Bounded(age) => newest.within(age),
            };
            match asked {
                Ok(NewestCommits { visible: commits, durable: position }) => {
                    return Ok(Some(Awaited { commits, position, patience }));
                }
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

    /// Whether a read may begin before it can see what is awaited, and wait if it meets a change.
    fn may_begin(&self, wanted: ReadConsistency, awaited: Awaited) -> bool {
        let replica = &self.node.replica;
        let by_page = matches!(wanted, ReadConsistency::Strong { by_page: true, .. });
        let Some(tells) = replica.by_page().filter(|_| by_page && !replica.has_reached(awaited))
        else {
            return false;
        };
        tells.settle(awaited);
        !replica.has_reached(awaited) && tells.has_newest_definitions()
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
        EngineError::NotCaughtUp { patience: self.patience, reason: why.to_string() }.into()
    }
}
