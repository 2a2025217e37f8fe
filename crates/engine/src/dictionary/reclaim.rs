//! Freeing the pages of dropped trees.
//!
//! A record in the tree of drops says that a tree must be freed, from the drop's commit until the
//! last page is free. Pages are freed level by level from the leaves up, and each level from right
//! to left. So after a crash, the remaining pages are reachable from the root, over links that end
//! where freed pages begin.

use firn_base::{Cts, IndexId, PageId, PageNo};
use firn_format::page::PageKind;
use firn_format::redo::Change;
use firn_format::tree::TreePage;

use crate::dictionary::{Dictionary, stored};
use crate::error::EngineError;
use crate::log::writer::Purpose;
use crate::mini_transaction::MiniTransaction;
use crate::pages::Pages;
use crate::transaction::{IsolationLevel, Transaction, TransactionSystem};

/// A dropped tree whose pages are not free yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingDrop {
    pub index: IndexId,
    /// Snapshots from this timestamp on do not need the tree.
    pub from: Cts,
}

impl Dictionary {
    /// Dropped trees whose pages are not free yet.
    #[must_use]
    pub fn pending_drops(&self) -> Vec<PendingDrop> {
        self.drops.lock().clone()
    }

    /// Frees dropped trees that no snapshot needs any more. `horizon` is the timestamp up to which
    /// purge is complete. Returns the number of freed trees. Called by one background task. Blocks.
    ///
    /// # Errors
    /// Errors of the page store and the log; the next call frees the rest.
    pub fn reclaim(&self, horizon: Cts) -> Result<usize, EngineError> {
        let due = self.pending_drops().into_iter().filter(|drop| drop.from <= horizon);
        let mut freed = 0;
        for due in due {
            match free_tree(&self.system, due.index) {
                // The space was dropped in the meantime.
                Err(error) if !error.is_absent_page() => return Err(error),
                _ => {}
            }
            let mut trx = Transaction::begin(&self.system, IsolationLevel::ReadCommitted)?;
            trx.delete(self.trees.drops, &stored::drop_key(due.index))?;
            trx.commit_without_waiting()?;
            self.drops.lock().retain(|drop| drop.index != due.index);
            freed += 1;
        }
        Ok(freed)
    }
}

/// The remaining pages of a dropped tree, in the order of freeing.
pub(crate) fn pages_of(pages: &Pages, index: IndexId) -> Result<Vec<PageId>, EngineError> {
    // Levels from the root down, each from left to right.
    let mut levels = Vec::new();
    let mut leftmost = Some(index.root());
    while let Some(first) = leftmost {
        let (level, child) = read_level(pages, index, first)?;
        levels.push(level);
        leftmost = child;
    }
    let from_leaves = levels.iter().rev().flat_map(|level| level.iter().rev());
    Ok(from_leaves.copied().collect())
}

/// Frees all pages of a dropped tree.
fn free_tree(system: &TransactionSystem, index: IndexId) -> Result<(), EngineError> {
    let pages = pages_of(system.pages(), index)?;
    pages.into_iter().try_for_each(|page| free_page(system, page))
}

/// The remaining pages of a level, and the first page of the level below.
fn read_level(
    pages: &Pages,
    index: IndexId,
    first: PageId,
) -> Result<(Vec<PageId>, Option<PageId>), EngineError> {
    let (mut level, mut below) = (Vec::new(), None);
    let mut next = Some(first);
    while let Some(page) = next {
        let found = pages.run(|| {
            let guard = pages.pool.shared(page)?;
            let node = TreePage::new(&guard).ok();
            let node = node.filter(|node| node.index() == index && !node.is_dead());
            Ok(node.map(|node| (node.right(), (!node.is_leaf()).then(|| node.child(0)))))
        })?;
        let Some((right, child)) = found else { break };
        level.push(page);
        let on = |page_no| PageId::new(page.space, page_no);
        below = below.or(child.filter(|child| *child != PageNo::NONE).map(on));
        next = (right != PageNo::NONE).then(|| on(right));
    }
    Ok((level, below))
}

fn free_page(system: &TransactionSystem, page: PageId) -> Result<(), EngineError> {
    let pages = system.pages();
    pages.run(|| {
        let mut mtr = MiniTransaction::begin(pages, Purpose::Completion)?;
        let held = mtr.exclusive(page)?;
        system.forest().spaces().free(&mut mtr, page)?;
        mtr.change(held, &Change::Format { kind: PageKind::Free });
        let _ = mtr.commit();
        Ok(())
    })
}
