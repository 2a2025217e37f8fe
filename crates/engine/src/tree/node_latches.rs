//! Structure changes among nodes that share memory: the pages that a change touches are latched at
//! the [`PageTier`](firn_api::PageTier) before the first of them changes.
//!
//! ```text
//!   first run     pages latched here ── require ──► not latched among nodes: let go of everything
//!   in between    latch each page among the nodes, in the order of their numbers; may block
//!   second run    pages latched here ── require ──► all are: change, commit
//!   afterwards    the latches among the nodes are released
//! ```
//!
//! A node elsewhere that reads a tree holds a shared latch on the pages between which it moves, so
//! it sees a structure change whole or not at all. New pages need no latch: no other page names
//! them yet. The threads of one node exclude each other by the latches of the pool alone.
//!
//! Without a tier, a structure change looks at an `Option` once and runs once.

use std::cell::RefCell;

use firn_api::{TierLatch, TierLatchMode};
use firn_base::PageId;
use firn_buffer::BufferPool;
use smallvec::SmallVec;

use crate::error::EngineError;
use crate::pages::Restart;
use crate::tree::Tree;

/// The most existing pages that one structure change touches: two siblings and their parent.
const PAGES: usize = 3;

/// The pages that a structure change has latched among all nodes. They are released when this is
/// dropped.
pub(super) struct NodeLatches<'p> {
    pool: &'p BufferPool,
    held: SmallVec<[(PageId, Box<dyn TierLatch>); PAGES]>,
    /// What the last run needed and had not latched.
    wanted: RefCell<SmallVec<[PageId; PAGES]>>,
}

impl NodeLatches<'_> {
    /// The pages that the caller is about to change are latched among all nodes. Called after the
    /// last page was latched in the pool and before the first one changes.
    ///
    /// # Errors
    /// [`Restart::Again`] if they are not: the caller lets go of everything, and the next run finds
    /// them latched.
    pub(super) fn require(&self, pages: &[PageId]) -> Result<(), Restart> {
        let is_held = |page| self.held.iter().any(|(held, _)| held == page);
        if !self.pool.is_shared() || pages.iter().all(is_held) {
            return Ok(());
        }
        let mut wanted = self.wanted.borrow_mut();
        wanted.clear();
        wanted.extend_from_slice(pages);
        wanted.sort_unstable();
        Err(Restart::Again)
    }

    /// Latches what the last run needed, in place of what is held. Blocks; called with nothing
    /// latched in the pool.
    fn take_wanted(&mut self) -> Result<(), EngineError> {
        let wanted = std::mem::take(self.wanted.get_mut());
        if !wanted.is_empty() {
            self.held.clear();
        }
        for page in wanted {
            if let Some(latch) = self.pool.latch_among_nodes(page, TierLatchMode::Exclusive)? {
                self.held.push((page, latch));
            }
        }
        Ok(())
    }
}

impl Tree<'_> {
    /// Runs a change of the tree's structure until it completes, as
    /// [`ReadPages::run`](crate::pages::ReadPages::run) does. The pages that `change` requires stay
    /// latched among all nodes until it has completed.
    ///
    /// # Errors
    /// Those of `change`, or the tier's if a page cannot be latched.
    pub(super) fn change_structure<R>(
        &self,
        mut change: impl FnMut(&NodeLatches<'_>) -> Result<R, Restart>,
    ) -> Result<R, EngineError> {
        let pool = &*self.pages().pool;
        let (held, wanted) = (SmallVec::new(), RefCell::default());
        let mut latches = NodeLatches { pool, held, wanted };
        self.pages().run(|| {
            latches.take_wanted()?;
            change(&latches)
        })
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
