//! Splits: first the page and its new sibling, then the parent, in two mini-transactions.

use firn_base::{PageId, PageNo};
use firn_buffer::FrameReservation;
use firn_format::redo::Change;
use firn_format::tree::{EntryList, TreePage};

use crate::error::EngineError;
use crate::log::writer::Purpose;
use crate::mini_transaction::{Held, MiniTransaction};
use crate::pages::Restart;
use crate::space::PickedPage;
use crate::tree::posting::Posting;
use crate::tree::{Target, Tree};

/// A page whose separator the parent must get, and this thread's claim to post it.
type NewPage<'f> = Option<(PageId, Posting<'f>)>;

impl<'f> Tree<'f> {
    /// Splits the leaf for `key` unless it has room for a value of `length` bytes by now.
    pub(super) fn make_room(&self, key: &[u8], length: usize) -> Result<(), EngineError> {
        let _serialised = self.forest.serialise(self.index);
        if let Some((page, _posting)) = self.split_page(key, 0, length)? {
            self.post(page)?;
        }
        Ok(())
    }

    /// Ensures that the parent knows `child`, or that another thread is about to post it: the
    /// second half of a split that any thread began.
    ///
    /// # Errors
    /// A page or the log was not available.
    pub(super) fn post_separator(&self, child: PageId) -> Result<(), EngineError> {
        let Some(_posting) = self.forest.postings.begin(child) else { return Ok(()) };
        let _serialised = self.forest.serialise(self.index);
        self.post(child)
    }

    fn post(&self, child: PageId) -> Result<(), EngineError> {
        loop {
            match self.try_post(child)? {
                None => return Ok(()),
                Some((separator, level)) => {
                    let split = self.split_page(&separator, level, size_of::<PageNo>())?;
                    if let Some((page, _posting)) = split {
                        self.post(page)?;
                    }
                }
            }
        }
    }

    /// Posts the separator of `child`. If the parent has no room, returns the key and level to
    /// split at.
    fn try_post(&self, child: PageId) -> Result<Option<(Vec<u8>, u8)>, EngineError> {
        self.change_structure(|latches| {
            let mut mtr = MiniTransaction::begin(self.pages(), Purpose::Completion)?;
            let epoch = crossbeam_epoch::pin();
            let guard = self.pages().pool.shared(child)?;
            let Ok(node) = TreePage::new(&guard) else { return Ok(None) };
            let separator = node.low_fence();
            let level = node.level() + 1;
            let is_gone = node.is_dead() || node.index() != self.index;
            if is_gone || separator.is_empty() || child == self.root() {
                return Ok(None);
            }
            let parent = self.arrive_exclusive(Target::At(separator), level, &epoch)?.guard;
            let parent = mtr.hold(parent);
            let node = self.node(mtr.page(parent))?;
            let Err(slot) = node.search(separator) else { return Ok(None) };
            if !node.fits(separator.len(), size_of::<PageNo>()) {
                return Ok(Some((separator.to_vec(), level)));
            }
            latches.require(&[node.page_id()])?;
            let value = child.page_no.0.to_le_bytes();
            mtr.change(
                parent,
                &Change::TreeInsert { slot: slot as u16, key: separator, value: &value },
            );
            let _ = mtr.commit();
            Ok(None)
        })
    }

    /// Splits the page of `level` for `key`, unless it has room for a value of `length` bytes by
    /// now. Returns the new page if the parent must get a separator for it.
    pub(super) fn split_page(
        &self,
        key: &[u8],
        level: u8,
        length: usize,
    ) -> Result<NewPage<'f>, EngineError> {
        let mut picked = self.forest.spaces.pick(self.root().space)?;
        let mut frames = self.pages().pool.reserve(2);
        self.change_structure(|latches| {
            let mut mtr = MiniTransaction::begin_large(self.pages(), Purpose::Completion)?;
            let epoch = crossbeam_epoch::pin();
            let arrived = self.arrive_exclusive(Target::At(key), level, &epoch)?;
            drop(epoch);
            let page = mtr.hold(arrived.guard);
            let node = self.node(mtr.page(page))?;
            let has_room = match node.search(key) {
                Ok(slot) => node.fits_replacement(slot, length),
                Err(_) => node.fits(key.len(), length),
            };
            if has_room {
                return Ok(None);
            }
            latches.require(&[node.page_id()])?;
            let cut = Cut::choose(&node, key);
            self.forest.statistics().splits.add(1);
            if node.page_id() == self.root() {
                self.split_root(&mut mtr, &mut frames, page, &cut)?;
                let _ = mtr.commit();
                return Ok(None);
            }
            let new = self.page(picked.page_no());
            // Claimed before other threads can reach the page, whose separator is missing until
            // then.
            let posting = self.forest.postings.begin(new).unwrap_or_default();
            self.split_off(&mut mtr, &mut frames, page, &cut, &mut picked)?;
            let _ = mtr.commit();
            Ok(Some((new, posting)))
        })
    }

    /// Moves the right part of `page` to the picked page.
    fn split_off(
        &self,
        mtr: &mut MiniTransaction<'f>,
        frames: &mut FrameReservation<'f>,
        page: Held,
        cut: &Cut,
        picked: &mut PickedPage<'_>,
    ) -> Result<(), Restart> {
        let new = self.page(picked.page_no());
        let node = self.node(mtr.page(page))?;
        let high = node.high_fence().map(<[u8]>::to_vec);
        let right = node.right();
        let held = mtr.create(frames, new);
        mtr.change(
            held,
            &Change::TreeInit {
                index: self.index,
                level: cut.level,
                low: &cut.separator,
                high: high.as_deref(),
                right,
                entries: cut.right.as_entries(),
            },
        );
        let from_slot = cut.slot as u16;
        mtr.change(
            page,
            &Change::TreeTruncate { from_slot, high: &cut.separator, right: new.page_no },
        );
        self.forest.spaces.take(mtr, picked);
        Ok(())
    }

    /// Moves the root's content to two new pages and makes the root their parent (rule 5).
    fn split_root(
        &self,
        mtr: &mut MiniTransaction<'f>,
        frames: &mut FrameReservation<'f>,
        root: Held,
        cut: &Cut,
    ) -> Result<(), Restart> {
        let space = self.root().space;
        let left_entries = self.node(mtr.page(root))?.entries(0..cut.slot);
        let [left, right] = self.forest.spaces.allocate_pair(mtr, space)?;
        let mut children = EntryList::new();
        children.push(&[], &left.0.to_le_bytes());
        children.push(&cut.separator, &right.0.to_le_bytes());
        let held = mtr.create(frames, self.page(left));
        mtr.change(
            held,
            &Change::TreeInit {
                index: self.index,
                level: cut.level,
                low: &[],
                high: Some(&cut.separator),
                right,
                entries: left_entries.as_entries(),
            },
        );
        let held = mtr.create(frames, self.page(right));
        mtr.change(
            held,
            &Change::TreeInit {
                index: self.index,
                level: cut.level,
                low: &cut.separator,
                high: None,
                right: PageNo::NONE,
                entries: cut.right.as_entries(),
            },
        );
        mtr.change(
            root,
            &Change::TreeInit {
                index: self.index,
                level: cut.level + 1,
                low: &[],
                high: None,
                right: PageNo::NONE,
                entries: children.as_entries(),
            },
        );
        Ok(())
    }
}

/// Where a page is cut, with a copy of the part that moves.
struct Cut {
    level: u8,
    slot: usize,
    separator: Vec<u8>,
    right: EntryList,
}

impl Cut {
    fn choose(node: &TreePage<'_>, key: &[u8]) -> Cut {
        let insert_at = node.lower_bound(key);
        let mut slot = node.split_slot(insert_at, key);
        if !node.is_leaf() {
            // The new inner node needs at least one entry.
            slot = slot.min(node.slot_count() - 1);
        }
        Cut {
            level: node.level(),
            slot,
            separator: node.split_separator(slot, key),
            right: node.entries(slot..node.slot_count()),
        }
    }
}
