//! Merges: an underfull page absorbs its right neighbour (rule 4), and a root with one child
//! becomes that child.

use firn_base::PageId;
use firn_format::redo::Change;
use firn_format::tree::TreePage;

use crate::error::EngineError;
use crate::log::writer::Purpose;
use crate::mini_transaction::{Held, MiniTransaction};
use crate::pages::Restart;
use crate::tree::node_latches::NodeLatches;
use crate::tree::write::UNDERFULL_BYTES;
use crate::tree::{Target, Tree};
use firn_format::tree::TREE_BODY_BYTES;

/// Room that a merged page keeps, so that the next insert does not split it again.
const SPARE_BYTES: usize = TREE_BODY_BYTES / 5;
/// A page with fewer bytes is merged even if its neighbour is full afterwards.
const NEARLY_EMPTY_BYTES: usize = TREE_BODY_BYTES / 32;

enum Merged {
    No,
    /// The page is the last one of its level: its left neighbour should absorb it.
    TryLeftOf(Vec<u8>),
    /// The page was absorbed. The parent has this state and is found by this key.
    Yes {
        gone: PageId,
        parent_key: Vec<u8>,
        parent: ParentState,
    },
}

enum ParentState {
    Fine,
    Underfull,
    RootWithOneChild,
}

impl<'f> Tree<'f> {
    /// Merges the leaf of `key` with a neighbour if both are nearly empty, and continues upwards
    /// while the parent becomes nearly empty. Has no effect otherwise.
    ///
    /// # Errors
    /// A page or the log was not available.
    pub fn merge(&self, key: &[u8]) -> Result<(), EngineError> {
        let _serialised = self.forest.serialise(self.index);
        let mut key = key.to_vec();
        for level in 0..u8::MAX {
            let mut outcome = self.try_merge(Target::At(&key), level)?;
            if let Merged::TryLeftOf(low) = &outcome {
                outcome = self.try_merge(Target::Before(low), level)?;
            }
            let Merged::Yes { gone, parent_key, parent } = outcome else { return Ok(()) };
            self.forest.free_later(gone);
            self.forest.statistics().merges.add(1);
            match parent {
                ParentState::Fine => return Ok(()),
                ParentState::RootWithOneChild => return self.shrink_root(),
                ParentState::Underfull => key = parent_key,
            }
        }
        Ok(())
    }

    fn try_merge(&self, target: Target<'_>, level: u8) -> Result<Merged, EngineError> {
        self.change_structure(|latches| {
            let mut mtr = MiniTransaction::begin_large(self.pages(), Purpose::Completion)?;
            let epoch = crossbeam_epoch::pin();
            let left = self.arrive_exclusive(target, level, &epoch)?.guard;
            let left = mtr.hold(left);
            let node = self.node(mtr.page(left))?;
            if node.page_id() == self.root() {
                return Ok(Merged::No);
            }
            let Some(high) = node.high_fence().map(<[u8]>::to_vec) else {
                let is_candidate =
                    node.used_bytes() < UNDERFULL_BYTES && !node.low_fence().is_empty();
                return Ok(match is_candidate {
                    true => Merged::TryLeftOf(node.low_fence().to_vec()),
                    false => Merged::No,
                });
            };
            let right = self.page(node.right());
            let right = mtr.exclusive(right)?;
            let parent = self.arrive_exclusive(Target::At(&high), level + 1, &epoch)?.guard;
            let parent = mtr.hold(parent);
            self.merge_held(mtr, latches, [left, right, parent], &high)
        })
    }

    fn merge_held(
        &self,
        mut mtr: MiniTransaction<'f>,
        latches: &NodeLatches<'_>,
        [left, right, parent]: [Held; 3],
        separator: &[u8],
    ) -> Result<Merged, Restart> {
        let (left_node, right_node) = (self.node(mtr.page(left))?, self.node(mtr.page(right))?);
        let parent_node = self.node(mtr.page(parent))?;
        let gone = right_node.page_id();
        let smaller = left_node.used_bytes().min(right_node.used_bytes());
        let spare = if smaller < NEARLY_EMPTY_BYTES { 0 } else { SPARE_BYTES };
        let slot = match parent_node.search(separator) {
            Ok(slot) if slot > 0 && parent_node.child(slot) == gone.page_no => slot,
            _ => return Ok(Merged::No),
        };
        let are_siblings = parent_node.child(slot - 1) == left_node.page_id().page_no;
        let is_small = smaller < UNDERFULL_BYTES;
        if !is_small || !are_siblings || !left_node.can_absorb(&right_node, spare) {
            return Ok(Merged::No);
        }
        latches.require(&[left_node.page_id(), gone, parent_node.page_id()])?;
        let entries = right_node.entries(0..right_node.slot_count());
        let high = right_node.high_fence().map(<[u8]>::to_vec);
        let next = right_node.right();
        self.forest.spaces.retire(&mut mtr, gone)?;
        mtr.change(
            left,
            &Change::TreeAbsorb {
                entries: entries.as_entries(),
                high: high.as_deref(),
                right: next,
            },
        );
        mtr.change(right, &Change::TreeKill);
        mtr.change(parent, &Change::TreeRemove { slot: slot as u16 });
        let parent_node = self.node(mtr.page(parent))?;
        let merged = Merged::Yes {
            gone,
            parent_key: parent_node.low_fence().to_vec(),
            parent: self.state_of(&parent_node),
        };
        let _ = mtr.commit();
        Ok(merged)
    }

    fn state_of(&self, parent: &TreePage<'_>) -> ParentState {
        if parent.page_id() == self.root() {
            return match parent.slot_count() {
                1 => ParentState::RootWithOneChild,
                _ => ParentState::Fine,
            };
        }
        match parent.used_bytes() < UNDERFULL_BYTES {
            true => ParentState::Underfull,
            false => ParentState::Fine,
        }
    }

    /// Replaces the content of the root by the content of its only child. The child is latched
    /// first (rule 2).
    fn shrink_root(&self) -> Result<(), EngineError> {
        let gone = self.change_structure(|latches| {
            let mut mtr = MiniTransaction::begin_large(self.pages(), Purpose::Completion)?;
            let Some(child) = self.only_child()? else { return Ok(None) };
            let child = mtr.exclusive(child)?;
            let root = mtr.exclusive(self.root())?;
            let (node, root_node) = (self.node(mtr.page(child))?, self.node(mtr.page(root))?);
            let is_only = root_node.slot_count() == 1
                && root_node.child(0) == node.page_id().page_no
                && node.high_fence().is_none();
            if !is_only {
                return Ok(None);
            }
            let (gone, level) = (node.page_id(), node.level());
            latches.require(&[gone, self.root()])?;
            let entries = node.entries(0..node.slot_count());
            let right = node.right();
            self.forest.spaces.retire(&mut mtr, gone)?;
            mtr.change(
                root,
                &Change::TreeInit {
                    index: self.index,
                    level,
                    low: &[],
                    high: None,
                    right,
                    entries: entries.as_entries(),
                },
            );
            mtr.change(child, &Change::TreeKill);
            let _ = mtr.commit();
            Ok(Some(gone))
        })?;
        if let Some(page) = gone {
            self.forest.free_later(page);
        }
        Ok(())
    }

    fn only_child(&self) -> Result<Option<PageId>, Restart> {
        let root = self.pages().pool.shared(self.root())?;
        let node = self.node(&root)?;
        let is_candidate = node.level() > 0 && node.slot_count() == 1;
        Ok(is_candidate.then(|| self.page(node.child(0))))
    }
}
