//! Purge: removes what no snapshot needs any more.
//!
//! In every segment, purge takes transactions from the front of the stream while their end is at or
//! below the horizon. It removes deleted records from their trees, frees replaced long values and
//! abandoned spaces, and then the undo pages that it has passed. A transaction that only inserted,
//! or updated without deleting, costs nothing but its pages.
//!
//! Purge finds a transaction's records by following their chain back from its end marker. Records
//! that the transaction undid itself, back to a savepoint, are not on the chain.
//!
//! Every step checks the current state first, so purge may repeat steps after a crash. Its progress
//! is recorded only when a page is freed, and a restart begins after that record.

use std::sync::Arc;

use firn_base::{Cts, IndexId, PageId, PageNo};
use firn_format::redo::Change;
use firn_format::space::UNDO_SPACE;
use firn_format::undo::{
    RecordVersion, UNDO_HEADER_BYTES, UndoOperation, UndoPage, UndoPointer, UndoRecord,
    UndoSegmentHeader,
};

use crate::error::EngineError;
use crate::log::writer::Purpose;
use crate::mini_transaction::MiniTransaction;
use crate::transaction::system::TransactionSystem;
use crate::transaction::undo::{Finished, Segment, Work, not_undo};

/// Transactions between two yields of the processor.
const STRETCH: u64 = 8;
/// A pass that has purged this many transactions is behind, and no longer yields: on a busy machine
/// it may be long before it runs again.
const YIELDING: u64 = 128;

impl TransactionSystem {
    /// Purges all segments up to the horizon. Returns the number of transactions passed. Called by
    /// one background task. Blocks.
    pub(crate) fn purge(&self, horizon: Cts) -> Result<u64, EngineError> {
        let mut passed = 0_u64;
        // This pass purges the last records of spaces that were dropped before it.
        let dropped = self.forest().spaces().dropped();
        for segment in self.undo().all() {
            while let Some(finished) = next_finished(&segment, horizon) {
                match finished.work {
                    Work::None => {}
                    Work::Own => self.purge_transaction(finished.end)?,
                    Work::AllBefore => self.purge_all_before(&segment, finished.end)?,
                }
                self.pass(&segment, finished.end)?;
                passed += 1;
                if passed < YIELDING && passed.is_multiple_of(STRETCH) {
                    firn_base::task::yield_now();
                }
            }
        }
        self.forest().spaces().forget_dropped(&dropped);
        Ok(passed)
    }

    /// Processes the records of the transaction whose commit marker is at `end`.
    fn purge_transaction(&self, end: UndoPointer) -> Result<(), EngineError> {
        let mut next = end;
        while !next.is_none() {
            let record = self.undo_record(next)?;
            let parsed = UndoRecord::parse(&record).map_err(|damage| EngineError::Corrupt {
                page: next.page_id(),
                what: damage.to_string(),
            })?;
            if parsed.operation != UndoOperation::RolledBack {
                self.purge_one(&parsed.operation)?;
                next = parsed.previous_in_trx;
            } else {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Processes every transaction from the segment's front up to the marker at `end`.
    fn purge_all_before(&self, segment: &Segment, end: UndoPointer) -> Result<(), EngineError> {
        let (mut page, purged) = {
            let stream = segment.stream.lock();
            (PageId::new(UNDO_SPACE, stream.first_page), stream.purged)
        };
        loop {
            let (markers, next) = self.commit_markers(page)?;
            for marker in markers {
                let is_purged =
                    marker.page_id() == purged.page_id() && marker.offset() <= purged.offset();
                let is_behind = marker.page_id() == end.page_id() && marker.offset() > end.offset();
                if !is_purged && !is_behind {
                    self.purge_transaction(marker)?;
                }
            }
            if page == end.page_id() || next == PageNo::NONE {
                return Ok(());
            }
            page = PageId::new(UNDO_SPACE, next);
        }
    }

    /// The commit markers of an undo page, and the page after it.
    fn commit_markers(&self, page: PageId) -> Result<(Vec<UndoPointer>, PageNo), EngineError> {
        self.pages().run(|| {
            let guard = self.pages().pool.shared(page)?;
            let undo = UndoPage::new(&guard).ok_or_else(|| not_undo(page))?;
            let mut markers = Vec::new();
            for record in undo.records_from(UNDO_HEADER_BYTES as u16) {
                let (offset, record) = record
                    .map_err(|damage| EngineError::Corrupt { page, what: damage.to_string() })?;
                if matches!(record.operation, UndoOperation::Committed { .. }) {
                    markers.push(UndoPointer::new(page.page_no, offset, 0));
                }
            }
            Ok((markers, undo.next()))
        })
    }

    fn purge_one(&self, operation: &UndoOperation<'_>) -> Result<(), EngineError> {
        match *operation {
            UndoOperation::Update { index, key, deletes: true, .. } => {
                self.purge_deleted(index, key)
            }
            UndoOperation::OverflowReplaced { space, first_page, owner } => {
                self.free_overflow(PageId::new(space, first_page), owner)
            }
            UndoOperation::SpaceAbandoned { space } => self.forest().spaces().drop_space(space),
            _ => Ok(()),
        }
    }

    /// Removes the record from its tree if it is deleted and no snapshot sees it.
    fn purge_deleted(&self, index: IndexId, key: &[u8]) -> Result<(), EngineError> {
        let tree = self.forest().tree(index);
        let written = tree.write(key, Purpose::Completion, |leaf| {
            let version = leaf.value().and_then(RecordVersion::parse).map(|(version, _)| version);
            if version.is_some_and(|version| version.deleted && self.is_settled(version.trx)) {
                leaf.remove();
            }
            Ok(())
        });
        let merged = match written {
            Ok(written) if written.is_underfull => tree.merge(key),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        match merged {
            // The whole space may have been dropped in the meantime.
            Err(error) if error.is_absent_page() => Ok(()),
            merged => merged,
        }
    }

    /// Removes the transaction that ends at `end` from the queue, and frees the pages before its
    /// end marker.
    fn pass(&self, segment: &Arc<Segment>, end: UndoPointer) -> Result<(), EngineError> {
        loop {
            let first = segment.stream.lock().first_page;
            if first == end.page_id().page_no {
                segment.stream.lock().finished.pop_front();
                return Ok(());
            }
            let next = self.free_first_page(segment, PageId::new(UNDO_SPACE, first), end)?;
            let mut stream = segment.stream.lock();
            stream.first_page = next;
            stream.purged = end;
        }
    }

    fn free_first_page(
        &self,
        segment: &Segment,
        first: PageId,
        end: UndoPointer,
    ) -> Result<PageNo, EngineError> {
        self.pages().run(|| {
            let mut mtr = MiniTransaction::begin(self.pages(), Purpose::Completion)?;
            let page = mtr.exclusive(first)?;
            let next = UndoPage::new(mtr.page(page)).ok_or_else(|| not_undo(first))?.next();
            let header = mtr.exclusive(segment.header)?;
            self.forest().spaces().free(&mut mtr, first)?;
            mtr.change(header, &Change::from(&UndoSegmentHeader::write_first_page(next)));
            mtr.change(header, &Change::from(&UndoSegmentHeader::write_purged(end)));
            let _ = mtr.commit();
            Ok(next)
        })
    }
}

fn next_finished(segment: &Segment, horizon: Cts) -> Option<Finished> {
    let stream = segment.stream.lock();
    stream.finished.front().copied().filter(|finished| finished.cts <= horizon)
}
