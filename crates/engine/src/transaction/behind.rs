//! Reads of a snapshot that is older than what they must see (003 §4.2).
//!
//! ```text
//!   replica has applied 40         when the read arrives, the writer shows 44, and its log is
//!                                  durable up to the commit of 43
//!
//!   leaf that nothing has changed since, all versions seen at 40     as at 43 and 44: read on
//!   leaf that the writer has changed, or a version not seen at 40    wait until 43 is applied,
//!                                                                    and read as of 43 from here on
//! ```
//!
//! A read has to see what is acknowledged, and so what is durable when it arrives. The replica
//! knows which timestamp that is once it has applied so far.
//!
//! Why a leaf that passes reads as at the newer snapshot: the replica has every change that the
//! writer has made to it, so no row of it can have another version there. A commit that the replica
//! does not know yet changes no page; its transaction's versions are in the leaf, and the older
//! snapshot does not see them. A key that has moved to another leaf has left this one by a change.
//! Undo is read only after the wait, since only versions that are not seen lead there.
//!
//! All that was read before the wait is the same in the newer snapshot: its commits had changed
//! their pages when the read arrived, so those changes would have been met. The reader has had the
//! newer snapshot all the time.
//!
//! Rules, cited by number:
//!
//! 1. The replica's position is taken before the leaf is read, and the leaf's last change at the
//!    writer afterwards.
//! 2. Whether everything was applied is decided between two attempts, never within one.
//! 3. All readers of a transaction, which may run in parallel, take the same newer snapshot.
//! 4. A writer on another machine is asked between two attempts. What it has said holds for the
//!    transaction: it was said after the read had arrived, and later changes are none that the read
//!    must see. A read that has asked [`MOST_ASKED`] times waits instead: each question takes a
//!    message, and the log that it waits for is on its way.
//!
//! The mutex of what was asked is a leaf.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use firn_api::rows::Awaited;
use firn_base::{Cts, Lsn, PageId};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::error::EngineError;
use crate::pages::{CatchUp, Restart};

/// A node that follows another one, as a read that is ahead of it sees it.
pub(crate) trait Following: Send + Sync {
    /// The snapshot that sees what is awaited and nothing that came later, if it can be opened.
    fn reached(&self, awaited: Awaited) -> Option<Cts>;

    /// The end of the applied log.
    fn applied(&self) -> Lsn;

    /// The end of the last log that has changed a page; [`Lsn::MAX`] if that is not known. `None`:
    /// the writer has to be asked by a message.
    fn last_change(&self, page: PageId) -> Option<Lsn>;

    /// The same, by a message. Blocks for a round trip.
    fn ask_last_change(&self, page: PageId) -> Lsn;

    /// Blocks until [`Following::reached`] returns a snapshot.
    ///
    /// # Errors
    /// If that takes longer than the patience, the node does not follow any more, or `cancelled`
    /// becomes true.
    fn wait(&self, awaited: Awaited, cancelled: Option<&AtomicBool>) -> Result<(), EngineError>;

    /// A fault on purpose: versions that the older snapshot does not see are not looked at.
    #[cfg(test)]
    fn ignores_unseen(&self) -> bool;
}

/// How many pages a transaction asks a writer on another machine for.
const MOST_ASKED: usize = 8;

/// Where the writer says that pages have changed last (rule 4).
type Asked = Arc<Mutex<FxHashMap<PageId, Lsn>>>;

/// A question to a writer on another machine.
struct Question {
    node: Arc<dyn Following>,
    leaf: PageId,
    asked: Asked,
}

/// The wait of a read.
struct Wait {
    node: Arc<dyn Following>,
    awaited: Awaited,
    cancelled: Option<Arc<AtomicBool>>,
}

/// What a snapshot must see beyond its own timestamp.
#[derive(Clone)]
pub(crate) struct Behind {
    node: Arc<dyn Following>,
    awaited: Awaited,
    /// The newer snapshot of all readers of a transaction; 0: none has needed it yet.
    chosen: Arc<AtomicU64>,
    /// The same, as this reader uses it (rule 2).
    newer: Cell<Option<Cts>>,
    /// Rule 1.
    applied: Cell<Lsn>,
    asked: Asked,
}

impl std::fmt::Debug for Question {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Question").field("leaf", &self.leaf).finish_non_exhaustive()
    }
}

impl CatchUp for Question {
    fn wait(&self) -> Result<(), EngineError> {
        let last = self.node.ask_last_change(self.leaf);
        self.asked.lock().insert(self.leaf, last);
        Ok(())
    }
}

impl std::fmt::Debug for Wait {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wait").field("awaited", &self.awaited).finish_non_exhaustive()
    }
}

impl CatchUp for Wait {
    fn wait(&self) -> Result<(), EngineError> {
        self.node.wait(self.awaited, self.cancelled.as_deref())
    }
}

impl Behind {
    pub(crate) fn new(node: Arc<dyn Following>, awaited: Awaited) -> Behind {
        let (newer, applied) = (Cell::new(None), Cell::new(Lsn::default()));
        Behind { node, awaited, chosen: Arc::default(), newer, applied, asked: Asked::default() }
    }

    /// Whether a snapshot that is opened now sees everything.
    pub(crate) fn is_over(&self) -> bool {
        self.node.reached(self.awaited).is_some()
    }

    /// Whether this snapshot sees everything.
    pub(crate) fn is_within(&self, snapshot: Cts) -> bool {
        self.awaited.commits <= snapshot
    }

    /// A snapshot in which all that was read so far is the same, and that sees what is awaited. Not
    /// every node has applied it yet.
    pub(crate) fn snapshot_with_awaited(&self) -> Cts {
        self.look();
        self.newer.get().unwrap_or(self.awaited.commits)
    }

    /// The snapshot from which the reader reads now: the newer one, once everything is applied.
    pub(crate) fn newer(&self) -> Option<Cts> {
        self.newer.get()
    }

    #[cfg(test)]
    pub(super) fn ignores_unseen(&self) -> bool {
        self.node.ignores_unseen()
    }

    /// Called before each attempt to read a leaf.
    pub(crate) fn look(&self) {
        if self.newer.get().is_some() {
            return;
        }
        self.applied.set(self.node.applied());
        self.newer.set(self.choose());
    }

    /// The newer snapshot, if it can be opened: rule 3.
    fn choose(&self) -> Option<Cts> {
        let reached = self.node.reached(self.awaited)?;
        match self.chosen.compare_exchange(0, reached.0, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => Some(reached),
            Err(chosen) => Some(Cts(chosen)),
        }
    }

    /// Whether what is seen in this leaf is the same in the newer snapshot, unless a version is not
    /// seen. `None`: the writer has to be asked (rule 4).
    pub(crate) fn covers(&self, leaf: PageId) -> Option<bool> {
        if self.newer.get().is_some() {
            return Some(true);
        }
        let last = self.node.last_change(leaf).or_else(|| self.answered(leaf))?;
        Some(last <= self.applied.get())
    }

    fn answered(&self, leaf: PageId) -> Option<Lsn> {
        self.asked.lock().get(&leaf).copied()
    }

    /// Ends this attempt unless [`Behind::covers`] says so of the leaf.
    ///
    /// # Errors
    /// What has to happen before the next attempt.
    #[inline]
    pub(crate) fn must_cover(
        &self,
        leaf: PageId,
        cancelled: Option<&Arc<AtomicBool>>,
    ) -> Result<(), Restart> {
        match self.covers(leaf) {
            Some(true) => Ok(()),
            covers => Err(self.before_next(leaf, covers.is_some(), cancelled)),
        }
    }

    #[cold]
    fn before_next(
        &self,
        leaf: PageId,
        is_known: bool,
        cancelled: Option<&Arc<AtomicBool>>,
    ) -> Restart {
        if !is_known && self.asked.lock().len() < MOST_ASKED {
            self.look();
            let (node, asked) = (Arc::clone(&self.node), Arc::clone(&self.asked));
            return Restart::Behind(Box::new(Question { node, leaf, asked }));
        }
        let restart = self.wait(cancelled);
        // The log may have come while the writer was asked.
        let has_come = self.answered(leaf).is_some_and(|last| last <= self.applied.get());
        if has_come { Restart::Again } else { restart }
    }

    /// Ends this attempt; the next one begins once everything is applied.
    #[cold]
    pub(crate) fn wait(&self, cancelled: Option<&Arc<AtomicBool>>) -> Restart {
        self.look();
        Restart::Behind(Box::new(Wait {
            node: Arc::clone(&self.node),
            awaited: self.awaited,
            cancelled: cancelled.cloned(),
        }))
    }
}
