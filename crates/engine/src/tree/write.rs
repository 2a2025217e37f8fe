//! Changes of one leaf.

use firn_base::Lsn;
use firn_format::redo::Change;
use firn_format::tree::{Entries, MAX_ENTRY_BYTES, MAX_KEY_BYTES, TREE_BODY_BYTES, TreePage};

use crate::error::EngineError;
use crate::log::writer::Purpose;
use crate::mini_transaction::{Held, MiniTransaction};
use crate::pages::Restart;
use crate::tree::{Target, Tree};

/// A leaf that is latched exclusively within a mini-transaction, and the key's position in it.
pub struct LeafWrite<'a, 'p> {
    /// The mini-transaction; other pages may be latched and changed in it, in latch order.
    pub mtr: &'a mut MiniTransaction<'p>,
    leaf: Held,
    key: &'a [u8],
    /// The key's slot, or the slot at which it would be inserted.
    pub slot: Result<usize, usize>,
    room_wanted: &'a mut Option<usize>,
}

/// The result of a write.
#[derive(Debug, Clone, Copy)]
pub struct Written<R> {
    pub result: R,
    /// The end of its log group.
    pub lsn: Lsn,
    /// Whether the leaf is so empty that a merge may be worthwhile.
    pub is_underfull: bool,
}

/// A page below this is a candidate for a merge.
pub(super) const UNDERFULL_BYTES: usize = TREE_BODY_BYTES / 4;

impl LeafWrite<'_, '_> {
    /// The leaf.
    ///
    /// # Panics
    /// Never: the descent has checked the page.
    #[must_use]
    pub fn page(&self) -> TreePage<'_> {
        TreePage::new(self.mtr.page(self.leaf)).expect("a latched leaf stays a leaf")
    }

    /// The value at the key, if the key is here.
    #[must_use]
    pub fn value(&self) -> Option<&[u8]> {
        Some(self.page().value(self.slot.ok()?))
    }

    /// Ensures that the key can be set to a value of `length` bytes. Call it before the first
    /// change.
    ///
    /// # Errors
    /// If there is no room: the leaf is split, and the operation runs again.
    pub fn require_room(&mut self, length: usize) -> Result<(), Restart> {
        let fits = match self.slot {
            Ok(slot) => self.page().fits_replacement(slot, length),
            Err(_) => self.page().fits(self.key.len(), length),
        };
        if fits {
            return Ok(());
        }
        *self.room_wanted = Some(length);
        Err(Restart::Again)
    }

    /// Inserts the key, or replaces its value. There must be room.
    pub fn set(&mut self, value: &[u8]) {
        match self.slot {
            Ok(slot) => {
                self.mtr.change(self.leaf, &Change::TreeSetValue { slot: slot as u16, value });
            }
            Err(slot) => {
                let change = Change::TreeInsert { slot: slot as u16, key: self.key, value };
                self.mtr.change(self.leaf, &change);
                self.slot = Ok(slot);
            }
        }
    }

    /// Inserts adjacent entries in key order, of which this write's key is the first. There must be
    /// room, no existing entry between them, and their prefix must be the page's.
    ///
    /// # Panics
    /// If this write's key exists already.
    pub fn insert_run(&mut self, entries: Entries<'_>) {
        let slot = self.slot.expect_err("a run goes between two entries");
        self.mtr.change(self.leaf, &Change::TreeInsertRun { slot: slot as u16, entries });
        self.slot = Ok(slot);
    }

    /// Overwrites some bytes of the key's value.
    ///
    /// # Panics
    /// If the key is not here.
    pub fn patch(&mut self, at: usize, bytes: &[u8]) {
        let slot = self.slot.expect("a patched key is in the leaf") as u16;
        self.mtr.change(self.leaf, &Change::TreePatchValue { slot, at: at as u16, bytes });
    }

    /// Removes the key.
    ///
    /// # Panics
    /// If the key is not here.
    pub fn remove(&mut self) {
        let slot = self.slot.expect("a removed key is in the leaf");
        self.mtr.change(self.leaf, &Change::TreeRemove { slot: slot as u16 });
        self.slot = Err(slot);
    }
}

/// Whether a merge is worth trying. Not after every removal, because the neighbours may be full.
fn is_underfull(leaf: &TreePage<'_>) -> bool {
    const EVERY: usize = 8;
    leaf.used_bytes() < UNDERFULL_BYTES && leaf.slot_count().is_multiple_of(EVERY)
}

enum Attempt<R> {
    Done(Written<R>, Option<firn_base::PageId>),
    Split(usize),
}

impl Tree<'_> {
    /// Runs `operation` on the leaf of `key`, latched exclusively, in one mini-transaction. The
    /// operation first reads, then calls [`LeafWrite::require_room`] and takes other latches that
    /// it needs, and only then changes. It may run several times up to its first change.
    ///
    /// # Errors
    /// A page or the log was not available, or `operation` failed.
    pub fn write<R>(
        &self,
        key: &[u8],
        purpose: Purpose,
        mut operation: impl FnMut(&mut LeafWrite<'_, '_>) -> Result<R, Restart>,
    ) -> Result<Written<R>, EngineError> {
        if key.len() > MAX_KEY_BYTES {
            return Err(EngineError::KeyTooLong { length: key.len(), limit: MAX_KEY_BYTES });
        }
        loop {
            match self.attempt_write(key, purpose, &mut operation)? {
                Attempt::Done(written, unfinished) => {
                    if let Some(page) = unfinished {
                        self.post_separator(page)?;
                    }
                    return Ok(written);
                }
                Attempt::Split(length) if key.len() + length > MAX_ENTRY_BYTES => {
                    return Err(EngineError::RecordTooLong {
                        length: key.len() + length,
                        limit: MAX_ENTRY_BYTES,
                    });
                }
                Attempt::Split(length) => self.make_room(key, length)?,
            }
        }
    }

    fn attempt_write<R>(
        &self,
        key: &[u8],
        purpose: Purpose,
        operation: &mut impl FnMut(&mut LeafWrite<'_, '_>) -> Result<R, Restart>,
    ) -> Result<Attempt<R>, EngineError> {
        self.pages().run(|| {
            let mut mtr = MiniTransaction::begin(self.pages(), purpose)?;
            let epoch = crossbeam_epoch::pin();
            let arrived = self.arrive_exclusive(Target::At(key), 0, &epoch)?;
            drop(epoch);
            let leaf = mtr.hold(arrived.guard);
            let slot = self.node(mtr.page(leaf))?.search(key);
            let mut room_wanted = None;
            let mut write =
                LeafWrite { mtr: &mut mtr, leaf, key, slot, room_wanted: &mut room_wanted };
            let outcome = operation(&mut write);
            let (page, is_underfull) = (write.page().page_id(), is_underfull(&write.page()));
            if let Some(length) = room_wanted {
                return Ok(Attempt::Split(length));
            }
            let result = outcome?;
            let is_underfull = is_underfull && page != self.root();
            let lsn = mtr.commit();
            let unfinished = arrived.by_link.then_some(page);
            Ok(Attempt::Done(Written { result, lsn, is_underfull }, unfinished))
        })
    }
}
