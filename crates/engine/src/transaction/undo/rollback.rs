//! Rollback: undoes a transaction's changes, newest first.
//!
//! Each step finds the record by its key, and undoes it only if the record's undo pointer names
//! this undo record. Otherwise the step was done already: after a crash, rollback begins again from
//! the end. So every step can be repeated, and the progress of a rollback is not logged.
//!
//! If a step would restore a deleted version that no snapshot needs any more, it removes the record
//! instead: purge has passed that version and does not come back.

use firn_base::{IndexId, PageId, TrxId};
use firn_format::undo::{
    OldPayload, RECORD_VERSION_BYTES, RecordVersion, UndoOperation, UndoPage, UndoPointer,
    UndoRecord,
};

use crate::error::EngineError;
use crate::log::writer::Purpose;
use crate::pages::Restart;
use crate::transaction::system::TransactionSystem;
use crate::transaction::undo::not_undo;
use crate::tree::LeafWrite;

impl TransactionSystem {
    /// Undoes the records from `last` back to `until`, which itself stays. Blocks.
    pub(crate) fn undo_back_to(
        &self,
        last: UndoPointer,
        until: UndoPointer,
    ) -> Result<(), EngineError> {
        let mut next = last;
        while !next.is_none() && next != until {
            let record = self.undo_record(next)?;
            let parsed = UndoRecord::parse(&record).map_err(|damage| EngineError::Corrupt {
                page: next.page_id(),
                what: damage.to_string(),
            })?;
            match self.undo_one(next, parsed.trx, &parsed.operation) {
                // The changed space or tree of an earlier run's loser may have been dropped since.
                Err(error) if !error.is_absent_page() => return Err(error),
                _ => {}
            }
            next = parsed.previous_in_trx;
        }
        Ok(())
    }

    /// A copy of the undo record at `pointer`.
    pub(crate) fn undo_record(&self, pointer: UndoPointer) -> Result<Vec<u8>, EngineError> {
        self.pages().run(|| {
            let guard = self.pages().pool.shared(pointer.page_id())?;
            let page = UndoPage::new(&guard).ok_or_else(|| not_undo(pointer.page_id()))?;
            let bytes = page.record_bytes(usize::from(pointer.offset())).map_err(|damage| {
                EngineError::Corrupt { page: pointer.page_id(), what: damage.to_string() }
            })?;
            Ok(bytes.to_vec())
        })
    }

    fn undo_one(
        &self,
        pointer: UndoPointer,
        trx: TrxId,
        operation: &UndoOperation<'_>,
    ) -> Result<(), EngineError> {
        match *operation {
            UndoOperation::Insert { index, key } => self.undo_insert(pointer, index, key, key),
            UndoOperation::InsertRun { index, first, last } => {
                self.undo_insert(pointer, index, first, last)
            }
            UndoOperation::Update { index, key, previous, payload, .. } => {
                self.undo_update(pointer, index, key, previous, payload)
            }
            UndoOperation::OverflowWritten { space, first_page } => {
                self.free_overflow(PageId::new(space, first_page), trx)
            }
            UndoOperation::SpaceCreated { space } => self.forest().spaces().drop_space(space),
            UndoOperation::OverflowReplaced { .. }
            | UndoOperation::SpaceAbandoned { .. }
            | UndoOperation::Committed { .. }
            | UndoOperation::RolledBack
            | UndoOperation::RollingBack
            | UndoOperation::Prepared { .. } => Ok(()),
        }
    }

    /// Removes inserted records leaf by leaf. Other transactions may have inserted records between
    /// those of a run since.
    fn undo_insert(
        &self,
        pointer: UndoPointer,
        index: IndexId,
        first: &[u8],
        last: &[u8],
    ) -> Result<(), EngineError> {
        let tree = self.forest().tree(index);
        let mut next = Some(first.to_vec());
        while let Some(from) = next {
            let written = tree
                .write(&from, Purpose::Completion, |leaf| Ok(remove_of_run(leaf, pointer, last)))?;
            if written.is_underfull {
                tree.merge(&from)?;
            }
            next = written.result;
        }
        Ok(())
    }

    fn undo_update(
        &self,
        pointer: UndoPointer,
        index: IndexId,
        key: &[u8],
        previous: RecordVersion,
        payload: OldPayload<'_>,
    ) -> Result<(), EngineError> {
        let tree = self.forest().tree(index);
        let mut old = Vec::new();
        let _ = tree.write(key, Purpose::Completion, |leaf| {
            let Some(current) = wrote(leaf, pointer) else { return Ok(()) };
            payload
                .restore(current, &mut old)
                .map_err(|damage| corrupt(pointer, damage.to_string()))?;
            if previous.deleted && self.is_settled(previous.trx) {
                leaf.remove();
                return Ok(());
            }
            let value = [&previous.encode()[..], &old].concat();
            leaf.require_room(value.len())?;
            leaf.set(&value);
            Ok(())
        })?;
        Ok(())
    }
}

/// The most records of a run that one log group removes.
const MOST_REMOVED: usize = 512;

/// Removes a run's records from the leaf, beginning with the write's key. Returns the key to
/// continue with.
fn remove_of_run(
    leaf: &mut LeafWrite<'_, '_>,
    pointer: UndoPointer,
    last: &[u8],
) -> Option<Vec<u8>> {
    let (Ok(mut slot) | Err(mut slot)) = leaf.slot;
    let (mut removed, mut key) = (0, Vec::new());
    loop {
        let page = leaf.page();
        if slot == page.slot_count() {
            return page.high_fence().filter(|high| *high <= last).map(<[u8]>::to_vec);
        }
        page.key_into(slot, &mut key);
        if key.as_slice() > last {
            return None;
        }
        if removed == MOST_REMOVED {
            return Some(key);
        }
        leaf.slot = Ok(slot);
        if wrote(leaf, pointer).is_some() {
            leaf.remove();
            removed += 1;
        } else {
            slot += 1;
        }
    }
}

/// The record's payload, if its current version is the one that `pointer` undoes.
fn wrote<'a>(leaf: &'a LeafWrite<'_, '_>, pointer: UndoPointer) -> Option<&'a [u8]> {
    let (version, _) = RecordVersion::parse(leaf.value()?)?;
    let is_same =
        (version.undo.page_id(), version.undo.offset()) == (pointer.page_id(), pointer.offset());
    is_same.then(|| &leaf.value().expect("the key is here")[RECORD_VERSION_BYTES..])
}

fn corrupt(pointer: UndoPointer, what: String) -> Restart {
    Restart::Fail(EngineError::Corrupt { page: pointer.page_id(), what })
}
