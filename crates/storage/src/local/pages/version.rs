//! What the store knows of a page, and how a wanted version is built from it.
//!
//! ```text
//!   log of the page     |--a--|   |--b--|--c--|            |--d--|
//!   versions                  v0              v1
//!   v1.since                      ^ start of b
//!   pending                                                ^ first ^ last
//!
//!   as of the end of b:  v0, then the log from v1.since to the end of b
//!   latest:              v1, then the log from pending.first to pending.last
//! ```
//!
//! Relations: `v[i].lsn ≤ v[i+1].since < v[i+1].lsn`, and no group about the page lies between
//! `v[i].lsn` and `v[i+1].since`, nor between the newest version and `pending.first`.

use std::sync::Arc;

use firn_base::Lsn;
use smallvec::SmallVec;

use super::image_buffers::StockedPage;
use super::slots::SlotNo;

/// A stored image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Version {
    /// The end of the last group that the image includes.
    pub(super) lsn: Lsn,
    /// No group about the page lies between the previous version and here. Log read from here on
    /// leads from that version to any position up to this one.
    pub(super) since: Lsn,
    /// Where the image is.
    pub(super) slot: SlotNo,
    /// Whether no image of the page was ever stored before, so that the log from `since` starts
    /// from nothing.
    pub(super) is_first: bool,
}

/// The stored images of a page, oldest first.
pub(super) type Versions = SmallVec<[Version; 1]>;

/// Log of a page that no stored image includes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pending {
    /// At or before the start of the first such group, at or after the newest stored image.
    pub(super) first: Lsn,
    /// The end of the last one.
    pub(super) last: Lsn,
    /// Whether the page has no stored image, so that it will take an additional slot.
    pub(super) is_new: bool,
}

/// What is known of a page at one moment.
#[derive(Debug, Clone, Default)]
pub(super) struct PageView {
    /// Stored images, oldest first.
    pub(super) versions: Versions,
    /// Log that is in none of them.
    pub(super) pending: Option<Pending>,
    /// Whether the page may have an image in the directory's base.
    pub(super) has_base: bool,
    /// An offered image that is not stored yet, newer than every stored one.
    pub(super) queued: Option<Arc<StockedPage>>,
}

/// What to begin with.
#[derive(Debug, Clone)]
pub(super) enum Base {
    /// The page's image in the directory's base. Without one, a page of zeros: the log creates the
    /// page.
    Nothing,
    /// The offered image.
    Queued(Arc<StockedPage>),
    /// `versions[.0]`.
    Stored(usize, Version),
}

/// A stretch of log, by group boundaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Replay {
    /// Groups that start here or later ...
    pub(super) from: Lsn,
    /// ... and end here or before.
    pub(super) to: Lsn,
    /// Whether a group about the page is known to end at `to`.
    pub(super) reaches_end: bool,
}

/// How to build a version.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// The image to start with.
    pub(super) base: Base,
    /// The log to apply to it.
    pub(super) replay: Option<Replay>,
}

/// Why there is no plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoPlan {
    /// The page did not exist then.
    Absent,
    /// The images from then are gone.
    TooOld,
}

impl PageView {
    /// The end of the newest known log about the page.
    pub(super) fn newest_known(&self) -> Lsn {
        let stored = self.versions.last().map_or(Lsn(0), |version| version.lsn);
        let queued = self.queued.as_ref().map_or(Lsn(0), |image| image.lsn());
        let pending = self.pending.map_or(Lsn(0), |pending| pending.last);
        stored.max(queued).max(pending)
    }

    /// How to build the page as of `wanted` (`None`: the newest) from the first `usable` versions;
    /// later versions were found to be damaged.
    pub(super) fn plan(&self, wanted: Option<Lsn>, usable: usize) -> Result<Plan, NoPlan> {
        let wanted = wanted.unwrap_or(Lsn::MAX);
        if let Some(plan) = self.plan_from_queued(wanted, usable) {
            return Ok(plan);
        }
        match self.versions[..usable].iter().rposition(|version| version.lsn <= wanted) {
            Some(index) => Ok(Plan {
                base: Base::Stored(index, self.versions[index]),
                replay: self.replay(self.log_after(index + 1), wanted),
            }),
            None => self.plan_from_nothing(wanted),
        }
    }

    fn plan_from_queued(&self, wanted: Lsn, usable: usize) -> Option<Plan> {
        let image = self.queued.as_ref().filter(|image| image.lsn() <= wanted)?;
        if usable < self.versions.len() {
            return None;
        }
        let newer = self.pending.filter(|pending| pending.last > image.lsn());
        let replay = self.replay(newer.map(|_| image.lsn()), wanted);
        Some(Plan { base: Base::Queued(Arc::clone(image)), replay })
    }

    fn plan_from_nothing(&self, wanted: Lsn) -> Result<Plan, NoPlan> {
        if self.has_base {
            return Ok(Plan {
                base: Base::Nothing,
                replay: self.replay(self.log_after(0), wanted),
            });
        }
        if self.versions.first().is_some_and(|version| !version.is_first) {
            return Err(NoPlan::TooOld);
        }
        let replay = self.replay(self.log_after(0), wanted).ok_or(NoPlan::Absent)?;
        Ok(Plan { base: Base::Nothing, replay: Some(replay) })
    }

    /// Where the log starts that leads from `versions[next - 1]` to its successor.
    fn log_after(&self, next: usize) -> Option<Lsn> {
        match self.versions.get(next) {
            Some(version) => Some(version.since),
            None => self.pending.map(|pending| pending.first),
        }
    }

    fn replay(&self, from: Option<Lsn>, wanted: Lsn) -> Option<Replay> {
        let from = from?;
        let end = match self.pending {
            Some(pending) => pending.last,
            None => self.versions.last()?.lsn,
        };
        let to = end.min(wanted);
        (from < to).then_some(Replay { from, to, reaches_end: to == end })
    }
}

/// Removes the versions that no read at or after `horizon` needs, and reports their slots.
pub(super) fn prune(versions: &mut Versions, horizon: Lsn, freed: &mut Vec<SlotNo>) {
    let base = versions.iter().rposition(|version| version.lsn <= horizon).unwrap_or(0);
    freed.extend(versions.drain(..base).map(|version| version.slot));
}

#[cfg(test)]
mod tests;
