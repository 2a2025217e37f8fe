//! Pools at an applied position: the pages as they were when the log ended there, moved forward one
//! log group at a time (paper 001 §2.1: read-only nodes apply the writer's log to what they cache).
//!
//! ```text
//!   announce(end) ─► tell the loads ─► latch cached pages ─► change ─► unlatch ─► shown = end
//!      loads read        they read again        of the group, all
//!      as of `end`       as of `end`            before the first change
//! ```
//!
//! Relations: `shown ≤ announced`, and they differ only while a group is applied. A cached page
//! includes every group about it up to `shown`. A page that is read as of `announced` is put in
//! place only when that position is shown. Readers therefore never see a group applied on one page
//! and missing from another that they latch later: pages look as they do in the writer's pool.
//!
//! Groups change only cached pages. A page that is not cached is read from the page store on
//! demand, at the position announced by then. No page is ever dirty: the store has all of them, and
//! a lease keeps them. If the position passes a read in progress, the read may come too late for
//! the lease; it is repeated.

use std::sync::Arc;
use std::time::Duration;

use firn_api::{PageLease, PageStore};
use firn_base::{Environment, Lsn, PageId, SpaceId};
use firn_format::redo::{Change, Group, apply};

use crate::guard::{ExclusiveGuard, Miss};
use crate::pool::{BufferPool, BufferPoolOptions};
use crate::read_point::{AppliedPosition, ReadPoint};
use crate::statistics::Counter;

/// Why a log group did not move the position as expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyFailure {
    /// The group does not begin where the applied log ends. Nothing was changed; read the log again
    /// from there.
    #[error("the log is applied up to {applied}, but the next group begins at {start}")]
    OutOfOrder {
        /// The end of the applied log.
        applied: Lsn,
        /// Where the group begins.
        start: Lsn,
    },
    /// The group is damaged or from a newer build. Nothing was changed, and the position stays.
    /// Read the log again, from another place if the damage persists.
    #[error("the log group at {start} cannot be applied: {reason}")]
    Damaged {
        /// Where the group begins.
        start: Lsn,
        reason: String,
    },
    /// A cached page contradicts the log, so memory or the page's image was damaged. The group's
    /// pages were dropped and will be read again. The position has moved, and applying can
    /// continue.
    #[error("{page} in memory contradicts the log group that ends at {end}: {reason}")]
    Mismatch {
        page: PageId,
        /// The end of the group.
        end: Lsn,
        reason: String,
    },
}

/// Moves a pool's applied position forward. Each such pool has exactly one.
pub struct LogApplier {
    pool: Arc<BufferPool>,
    applied: Lsn,
}

impl BufferPool {
    /// Makes a pool that shows pages as of the position of `lease`, and the applier that moves it
    /// forward. The pool reads `store` as of the applied position and moves the lease with it. It
    /// offers the store no images.
    ///
    /// # Panics
    /// If there is no address space for the budget.
    #[must_use]
    pub fn at_position(
        env: &Environment,
        store: Arc<dyn PageStore>,
        lease: Arc<dyn PageLease>,
        options: &BufferPoolOptions,
    ) -> (Arc<BufferPool>, LogApplier) {
        let start = lease.position();
        let read_point = ReadPoint::Applied(AppliedPosition::of(lease));
        // All applied log is durable.
        let durable = Arc::new(|| Lsn::MAX);
        let pool = BufferPool::with_read_point(store, durable, read_point, options);
        pool.start_tasks(env, options);
        (Arc::clone(&pool), LogApplier { pool, applied: start })
    }

    /// The position at which the pool shows its pages; `None`: the newest versions. Does not block.
    #[must_use]
    pub fn applied_lsn(&self) -> Option<Lsn> {
        match &self.read_point {
            ReadPoint::Newest => None,
            ReadPoint::Applied(position) => Some(position.shown()),
        }
    }

    /// Blocks until the pool shows all log groups that end at or before `lsn`, or until `timeout`
    /// has passed (false). Called with no guard held. Returns true at once for a pool that shows
    /// the newest versions.
    pub fn wait_until_applied(&self, lsn: Lsn, timeout: Option<Duration>) -> bool {
        match &self.read_point {
            ReadPoint::Newest => true,
            ReadPoint::Applied(position) => position.wait_until_shown(lsn, timeout),
        }
    }

    /// Latches the cached ones among `pages` exclusively. Waits for one latch at a time and holds
    /// no other meanwhile: the order of a group's records is not the readers' latch order (rule 5).
    fn latch_for_group(&self, pages: &[PageId]) -> Vec<ExclusiveGuard<'_>> {
        let mut busy = None;
        'again: loop {
            let waited_for = busy.and_then(|page| Some((page, self.latch_exclusive(page)?)));
            let mut guards = Vec::with_capacity(pages.len());
            if let Some((page, (number, latch))) = waited_for {
                guards.push(ExclusiveGuard::new(self, number, page, latch));
            }
            for &page in pages.iter().filter(|&&page| busy != Some(page)) {
                match self.try_latch_exclusive(page) {
                    Ok(Some((number, latch))) => {
                        guards.push(ExclusiveGuard::new(self, number, page, latch));
                    }
                    Ok(None) => {
                        busy = Some(page);
                        continue 'again;
                    }
                    // It is read as of the announced position from now on.
                    Err(Miss(_)) => {}
                }
            }
            return guards;
        }
    }
}

impl LogApplier {
    /// The pool that this applier moves.
    #[must_use]
    pub fn pool(&self) -> &Arc<BufferPool> {
        &self.pool
    }

    /// The end of the applied log, where the next group begins.
    #[must_use]
    pub fn applied_lsn(&self) -> Lsn {
        self.applied
    }

    /// Applies the next log group, which begins at `start` and is durable. Changes the group's
    /// cached pages, drops the pages of a space that the group drops, and moves the position to the
    /// group's end. Waits for latches, not for I/O; called with no guard held.
    ///
    /// # Errors
    /// Why the group was not applied; after [`ApplyFailure::Mismatch`] the next group can be
    /// applied.
    pub fn apply(&mut self, start: Lsn, group: &Group<'_>) -> Result<(), ApplyFailure> {
        if start != self.applied {
            return Err(ApplyFailure::OutOfOrder { applied: self.applied, start });
        }
        let changes = decode(start, group)?;
        let end = start.advance(group.length_bytes());
        let ReadPoint::Applied(position) = &self.pool.read_point else {
            unreachable!("an applier is made with a pool at an applied position");
        };
        position.announce(end);
        let applied = self.change_pages(&changes, end);
        for space in changes.iter().filter_map(dropped_space) {
            self.pool.discard_space(space);
        }
        position.show(end);
        self.applied = end;
        self.pool.counters.count(Counter::GroupsApplied);
        applied
    }

    fn change_pages(&self, changes: &[(PageId, Change<'_>)], end: Lsn) -> Result<(), ApplyFailure> {
        let mut pages: Vec<PageId> = Vec::new();
        for (page, _) in changes.iter().filter(|(_, change)| change.is_about_a_page()) {
            if !pages.contains(page) {
                pages.push(*page);
                self.pool.flights.require(*page, end);
            }
        }
        let mut guards = self.pool.latch_for_group(&pages);
        for (page, change) in changes {
            let Some(guard) = guards.iter_mut().find(|guard| guard.id() == *page) else { continue };
            if let Err(error) = apply(guard.page_mut(), *page, change) {
                guards.into_iter().for_each(ExclusiveGuard::discard);
                let reason = error.to_string();
                return Err(ApplyFailure::Mismatch { page: *page, end, reason });
            }
        }
        guards.iter_mut().for_each(|guard| guard.mark_changed(end));
        self.pool.counters.add(Counter::PagesApplied, guards.len() as u64);
        Ok(())
    }
}

fn decode<'a>(start: Lsn, group: &Group<'a>) -> Result<Vec<(PageId, Change<'a>)>, ApplyFailure> {
    let damaged = |reason: String| ApplyFailure::Damaged { start, reason };
    group
        .records()
        .map(|record| {
            let record = record.map_err(|damage| damaged(damage.to_string()))?;
            let change = Change::decode(&record).map_err(|damage| damaged(damage.to_string()))?;
            Ok((record.page, change))
        })
        .collect()
}

fn dropped_space((page, change): &(PageId, Change<'_>)) -> Option<SpaceId> {
    matches!(change, Change::SpaceDropped).then_some(page.space)
}

#[cfg(test)]
mod tests;
