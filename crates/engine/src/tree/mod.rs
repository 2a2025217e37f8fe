//! B-link trees (PolarIndex, paper 000 §4.1; Lehman & Yao).
//!
//! ```text
//!                 ┌─────────── P0 ───────────┐             level 1
//!                 │  "" → P1        m → P2   │
//!                 └───│────────────────│─────┘
//!               ┌─────▼───┐        ┌───▼─────┐
//!               │ P1 ""…m │───────►│ P2 m…+∞ │             level 0
//!               └─────────┘ right  └─────────┘
//!
//!   split of P1 at g, first mini-transaction:  P1 ""…g ──► P3 g…m ──► P2     (P0 does not know P3)
//!                     second:                  P0 gets g → P3
//! ```
//!
//! Between the two, and forever if the process dies there, a descent for `h` arrives at P1, sees
//! from the high fence that its key has moved right, and follows the link. A thread that follows a
//! link because the parent did not know the page posts the missing separator afterwards. No flag
//! says that a split is unfinished, because posting an existing separator changes nothing.
//!
//! Rules, cited by number:
//!
//! 1. A descent holds no latch: it reads published images of inner nodes, which may be slightly out
//!    of date. Fences and links correct for that. Only the target page is latched.
//! 2. Latches are taken on a lower level before a higher one, and on one level from left to right.
//! 3. A separator is posted with the child latched shared, so that it never names a page that was
//!    merged away meanwhile.
//! 4. A merge is one mini-transaction over left page, right page and parent. The right page is
//!    marked dead and *retired*. It is freed when every descent that might know its number has
//!    ended (epochs).
//! 5. The root never moves: when it splits, its content moves to two new pages.
//! 6. Before the first page of a structure change changes, all existing pages that it changes are
//!    latched among the nodes that share memory, until it has committed (`node_latches.rs`).
//! 7. A descent runs inside one epoch from its first read of the root until it has latched its
//!    page.
//!
//! Departures from the paper: explicit fences instead of trying the right neighbour; inner nodes
//! are read without latches; posting keeps the child latched (rule 3); pages are also merged.

pub mod bulk;
pub mod descend;
pub mod estimate;
pub mod merge;
mod node_latches;
mod posting;
pub mod prefetch;
pub mod split;
pub mod statistics;
pub mod write;

use std::ops::Deref;
use std::sync::Arc;

use firn_base::{IndexId, PageId, PageNo};
use firn_format::redo::Change;
use firn_format::tree::Entries;
use parking_lot::{Mutex, MutexGuard};

use crate::error::EngineError;
use crate::log::writer::Purpose;
use crate::mini_transaction::MiniTransaction;
use crate::pages::{Pages, ReadPages, Restart};
use crate::space::{DroppedSpaces, Spaces};
use crate::tree::posting::Postings;
use crate::tree::statistics::TreeStatistics;

pub use descend::Target;
pub use write::LeafWrite;

/// How structure changes of one tree exclude each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StructureChanges {
    /// Not at all: each change latches only the pages that it changes (PolarIndex).
    #[default]
    Concurrent,
    /// One at a time in each tree, from the first page to the last separator. This is the baseline
    /// for measurements of PolarIndex; InnoDB's index latch has the same effect.
    Serialised,
}

const STRUCTURE_LATCHES: usize = 64;

/// The state that all trees of a node share, for readers.
pub struct ForestReader {
    pages: ReadPages,
    dropped: Arc<DroppedSpaces>,
    statistics: TreeStatistics,
}

/// One tree, for readers. It changes no page: a half-done split stays half done.
#[derive(Clone, Copy)]
pub struct TreeReader<'f> {
    forest: &'f ForestReader,
    index: IndexId,
}

/// The state that all trees of a node share, for its writer.
pub struct Forest {
    reader: Arc<ForestReader>,
    pages: Pages,
    spaces: Arc<Spaces>,
    structure_changes: StructureChanges,
    structure_latches: Box<[Mutex<()>]>,
    postings: Postings,
    /// Pages that were merged away and that no descent knows any more.
    unreachable: Arc<Mutex<Vec<PageId>>>,
}

/// One tree, for reading and writing.
#[derive(Clone, Copy)]
pub struct Tree<'f> {
    reader: TreeReader<'f>,
    forest: &'f Forest,
}

impl ForestReader {
    /// The trees in `pages`. Trees in `dropped` spaces do not exist any more.
    #[must_use]
    pub fn new(pages: ReadPages, dropped: Arc<DroppedSpaces>) -> ForestReader {
        ForestReader { pages, dropped, statistics: TreeStatistics::default() }
    }

    #[must_use]
    pub fn pages(&self) -> &ReadPages {
        &self.pages
    }

    /// The tree with the root page `index`. Reads nothing.
    #[must_use]
    pub fn tree(&self, index: IndexId) -> TreeReader<'_> {
        TreeReader { forest: self, index }
    }
}

impl Forest {
    #[must_use]
    pub fn new(pages: Pages, spaces: Arc<Spaces>, structure_changes: StructureChanges) -> Forest {
        let dropped = Arc::clone(spaces.dropped_spaces());
        Forest {
            reader: Arc::new(ForestReader::new(pages.cached().clone(), dropped)),
            pages,
            spaces,
            structure_changes,
            structure_latches: (0..STRUCTURE_LATCHES).map(|_| Mutex::new(())).collect(),
            postings: Postings::default(),
            unreachable: Arc::default(),
        }
    }

    /// The same trees, for readers.
    #[must_use]
    pub fn reader(&self) -> &Arc<ForestReader> {
        &self.reader
    }

    #[must_use]
    pub fn pages(&self) -> &Pages {
        &self.pages
    }

    #[must_use]
    pub fn spaces(&self) -> &Arc<Spaces> {
        &self.spaces
    }

    #[must_use]
    pub fn statistics(&self) -> &TreeStatistics {
        &self.reader.statistics
    }

    /// The tree with the root page `index`. Reads nothing.
    #[must_use]
    pub fn tree(&self, index: IndexId) -> Tree<'_> {
        Tree { reader: self.reader.tree(index), forest: self }
    }

    /// Allocates a root page in `space` and makes it an empty leaf, within `mtr`.
    ///
    /// # Errors
    /// [`Restart`] if a page is needed first.
    pub fn create_root<'p>(
        &self,
        mtr: &mut MiniTransaction<'p>,
        frames: &mut firn_buffer::FrameReservation<'p>,
        space: firn_base::SpaceId,
    ) -> Result<IndexId, Restart> {
        let root = PageId::new(space, self.spaces.allocate(mtr, space)?);
        let held = mtr.create(frames, root);
        let index = IndexId::from(root);
        mtr.change(held, &empty_leaf(index));
        Ok(index)
    }

    /// Frees pages that were merged away and are no longer reachable by any thread. For a
    /// background task.
    ///
    /// # Errors
    /// A page or the log was not available.
    pub fn free_unreachable(&self) -> Result<usize, EngineError> {
        // Advances the epoch, so that pages retired a while ago become unreachable.
        crossbeam_epoch::pin().flush();
        let mut pages = std::mem::take(&mut *self.unreachable.lock());
        pages.extend(self.spaces.take_retired());
        let mut freed = 0;
        while let Some(page) = pages.pop() {
            match self.free_page(page) {
                Ok(()) => freed += 1,
                // The page was freed with its space, which was dropped in the meantime.
                Err(error) if error.is_absent_page() => {}
                Err(error) => {
                    pages.push(page);
                    self.unreachable.lock().append(&mut pages);
                    return Err(error);
                }
            }
        }
        Ok(freed)
    }

    fn free_page(&self, page: PageId) -> Result<(), EngineError> {
        self.pages.run(|| {
            let mut mtr = MiniTransaction::begin(&self.pages, Purpose::Completion)?;
            self.spaces.free(&mut mtr, page)?;
            let _ = mtr.commit();
            Ok(())
        })
    }

    /// Excludes other structure changes of the tree, if the forest's setting says so.
    fn serialise(&self, index: IndexId) -> Option<MutexGuard<'_, ()>> {
        if self.structure_changes == StructureChanges::Concurrent {
            return None;
        }
        let latch = &self.structure_latches[(index.0 % STRUCTURE_LATCHES as u64) as usize];
        Some(latch.try_lock().unwrap_or_else(|| {
            self.statistics().structure_waits.add(1);
            latch.lock()
        }))
    }

    /// Frees `page` after every descent that runs now has ended (rule 4).
    fn free_later(&self, page: PageId) {
        let unreachable = Arc::clone(&self.unreachable);
        crossbeam_epoch::pin().defer(move || unreachable.lock().push(page));
    }
}

impl<'f> Tree<'f> {
    fn pages(&self) -> &'f Pages {
        &self.forest.pages
    }
}

impl<'f> Deref for Tree<'f> {
    type Target = TreeReader<'f>;

    #[inline]
    fn deref(&self) -> &TreeReader<'f> {
        &self.reader
    }
}

impl<'f> TreeReader<'f> {
    #[must_use]
    pub fn index(&self) -> IndexId {
        self.index
    }

    fn pages(&self) -> &'f ReadPages {
        &self.forest.pages
    }

    fn root(&self) -> PageId {
        self.index.root()
    }

    fn page(&self, page_no: PageNo) -> PageId {
        PageId::new(self.root().space, page_no)
    }
}

/// The content of a new root.
fn empty_leaf(index: IndexId) -> Change<'static> {
    Change::TreeInit {
        index,
        level: 0,
        low: &[],
        high: None,
        right: PageNo::NONE,
        entries: Entries::EMPTY,
    }
}

#[cfg(test)]
mod tests;
