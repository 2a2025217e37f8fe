//! What applies the log to a replica: pages, then transactions, definitions, and what is visible.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use firn_api::{FollowedGroup, LogPiece, WriterPositions};
use firn_base::clock::Clock;
use firn_base::{Cts, Lsn};
use firn_buffer::{ApplyFailure, LogApplier};
use firn_format::redo::Group;

use crate::dictionary::follow::Touched;
use crate::error::EngineError;
use crate::space::DroppedSpaces;
use crate::transaction::commit_order::MAX_COMMITTED_WORD;

use super::Shared;
use super::commits::AppliedCommits;
#[cfg(test)]
use super::faults;
use super::replay::{Replay, ReplayedCommit};

/// Applies groups of log, one thread at a time (rule 1).
pub(super) struct Applier {
    pub(super) shared: Arc<Shared>,
    pub(super) pages: LogApplier,
    pub(super) replay: Replay,
    pub(super) dropped: Arc<DroppedSpaces>,
    pub(super) commits: AppliedCommits,
    /// The end of the log that was given to this applier.
    pub(super) position: Lsn,
    /// The timestamp that the first snapshot must see.
    pub(super) first: Cts,
    /// The newest timestamp at which definitions were read; never goes back.
    pub(super) followed: Cts,
    /// Until when the place at the writer is surely held (rule 4), on `clock`.
    pub(super) held_until: Duration,
    pub(super) is_dense: bool,
    pub(super) clock: Arc<dyn Clock>,
    #[cfg(test)]
    pub(super) fault: Option<faults::Fault>,
    #[cfg(test)]
    pub(super) late: faults::Late,
}

impl Applier {
    /// Rule 4: whether log that has just come may be applied.
    pub(super) fn holds_place(&self) -> bool {
        self.clock.monotonic() < self.held_until
    }

    /// Applies what is new of a piece that begins at or before the position, group by group, until
    /// `is_enough` says so of the position. What is visible follows.
    pub(super) fn apply(
        &mut self,
        piece: &LogPiece,
        is_enough: &dyn Fn(Lsn) -> bool,
    ) -> Result<(), EngineError> {
        #[cfg(test)]
        self.receive();
        // Another thread may have applied some of it since it was asked for.
        let position = self.position;
        for group in piece.groups().filter(|group| group.end > position) {
            self.apply_group(&group)?;
            self.position = group.end;
            if is_enough(group.end) {
                break;
            }
        }
        self.shared.position.store(self.position.0, Ordering::Release);
        self.publish()
    }

    fn apply_group(&mut self, group: &FollowedGroup<'_>) -> Result<(), EngineError> {
        #[cfg(test)]
        if let Some(fault) = self.fault {
            return self.apply_group_with(fault, group);
        }
        self.begin_group(&group.group)?;
        self.change_pages(group.start, &group.group)?;
        self.finish_group(group.end)
    }

    pub(super) fn begin_group(&mut self, group: &Group<'_>) -> Result<(), EngineError> {
        self.replay.begin_group(&self.shared.versions, &self.dropped, group)
    }

    pub(super) fn change_pages(
        &mut self,
        start: Lsn,
        group: &Group<'_>,
    ) -> Result<(), EngineError> {
        match self.pages.apply(start, group) {
            Ok(()) => Ok(()),
            // The page was dropped and is read again from the page store.
            Err(mismatch @ ApplyFailure::Mismatch { .. }) => {
                tracing::error!(%mismatch, "a cached page did not fit the log");
                Ok(())
            }
            Err(failure) => Err(EngineError::Invalid(failure.to_string())),
        }
    }

    /// Rule 2: the group's pages have changed; its commits follow.
    pub(super) fn finish_group(&mut self, end: Lsn) -> Result<(), EngineError> {
        let commits = self.replay.end_group(&self.shared.versions, end);
        self.follow_commits(&commits)
    }

    /// Reads the definitions that the commits changed, then makes the commits visible.
    pub(super) fn follow_commits(&mut self, commits: &[ReplayedCommit]) -> Result<(), EngineError> {
        let is_ready = self.shared.is_ready.load(Ordering::Acquire);
        for commit in commits {
            // A commit with a later timestamp may have been followed before; it stays visible.
            self.followed = self.followed.max(commit.cts).max(self.shared.versions.newest());
            // Before the replica is ready there are no readers, and then everything is read.
            if is_ready {
                self.shared.dictionary.follow(&commit.touched, self.followed)?;
            }
            if !commit.touched.is_nothing() {
                self.shared.open_changes.end();
            }
            self.commits.applied(commit.cts);
        }
        if commits.is_empty() { Ok(()) } else { self.publish() }
    }

    /// Makes visible what can be.
    pub(super) fn publish(&mut self) -> Result<(), EngineError> {
        let Some(visible) = self.commits.advance(self.pages.applied_lsn()) else { return Ok(()) };
        let is_ready = self.shared.is_ready.load(Ordering::Acquire);
        if visible < self.first {
            return Ok(());
        }
        let is_news = !is_ready || visible != self.shared.versions.newest();
        if is_news {
            self.shared.versions.timestamps().words()[MAX_COMMITTED_WORD]
                .fetch_max(visible.0, Ordering::SeqCst);
        }
        if !is_ready {
            // Commits above `visible` may be applied already; nobody will follow them again.
            self.shared.dictionary.follow(&Touched::All, visible.max(self.followed))?;
            self.shared.is_ready.store(true, Ordering::Release);
        }
        // Only now: commits before the position are visible.
        if self.has_completed() || is_news {
            self.shared.moved.notify_all();
        }
        Ok(())
    }

    /// Publishes up to where every commit of the log is visible. Whether that has changed.
    fn has_completed(&self) -> bool {
        let applied = self.pages.applied_lsn().0;
        self.commits.are_all_visible()
            && self.shared.complete.swap(applied, Ordering::SeqCst) != applied
    }

    /// Notes what the writer has said of its durable commits.
    pub(super) fn announce(&mut self, positions: &WriterPositions) {
        if !self.is_dense || !self.shared.is_ready.load(Ordering::Acquire) {
            self.commits.announce(positions.durable_commits, positions.durable_lsn);
        }
    }
}
