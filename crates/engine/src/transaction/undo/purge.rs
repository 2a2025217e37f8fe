//! Purge: forgetting what no snapshot can ask for any more.
//!
//! For every segment, transactions are taken from the front of the stream while their commit is at or
//! below the horizon. Records that say "deleted" leave their trees, replaced long values and abandoned
//! spaces are given back, and then the undo pages that were passed. A transaction that only inserted, or
//! updated without deleting, costs nothing but its pages.
//!
//! Everything here looks at the present state first, so that a crash in the middle does no harm: the
//! position is not stored, and purge begins again at the segment's first page.

use std::sync::Arc;

use firn_base::{Cts, IndexId, PageId};
use firn_format::space::UNDO_SPACE;
use firn_format::tree::RecordVersion;
use firn_format::undo::{
    UNDO_HEADER_BYTES, UndoOperation, UndoPage, UndoPointer, UndoRecord, UndoSegmentHeader,
};

use crate::error::EngineError;
use crate::log::writer::Purpose;
use crate::mini_transaction::MiniTransaction;
use crate::transaction::system::TransactionSystem;
use crate::transaction::undo::{Finished, Segment, not_undo};

impl TransactionSystem {
    /// Purges what the horizon allows, over all segments. Returns how many transactions were passed.
    /// For one background task. Blocks.
    pub(crate) fn purge(&self, horizon: Cts) -> Result<u64, EngineError> {
        let mut passed = 0;
        for segment in self.undo().all() {
            while let Some(finished) = next_finished(&segment, horizon) {
                if finished.has_work {
                    self.purge_records(&segment, finished.end)?;
                }
                self.pass(&segment, finished.end)?;
                passed += 1;
            }
        }
        Ok(passed)
    }

    /// Works off the records from the segment's position up to the marker at `end`.
    fn purge_records(&self, segment: &Arc<Segment>, end: UndoPointer) -> Result<(), EngineError> {
        let (pages, mut offset) = {
            let stream = segment.stream.lock();
            (stream.pages.clone(), stream.position)
        };
        for page_no in pages {
            let page = PageId::new(UNDO_SPACE, page_no);
            let is_last = page == end.page_id();
            let stop = if is_last { end.offset() } else { u16::MAX };
            for record in self.copy_records(page, offset, stop)? {
                let parsed = UndoRecord::parse(&record)
                    .map_err(|damage| EngineError::Corrupt { page, what: damage.to_string() })?;
                self.purge_one(&parsed.operation)?;
            }
            if is_last {
                return Ok(());
            }
            offset = UNDO_HEADER_BYTES as u16;
        }
        Ok(())
    }

    /// Copies of the records of a page in `[from, to)` that purge has to look at.
    fn copy_records(&self, page: PageId, from: u16, to: u16) -> Result<Vec<Vec<u8>>, EngineError> {
        self.pages().run(|| {
            let guard = self.pages().pool.shared(page)?;
            let undo = UndoPage::new(&guard).ok_or_else(|| not_undo(page))?;
            let mut copies = Vec::new();
            for record in undo.records_from(from) {
                let (offset, record) = record
                    .map_err(|damage| EngineError::Corrupt { page, what: damage.to_string() })?;
                if offset >= to {
                    break;
                }
                if needs_purge(&record.operation) {
                    let bytes = undo.record_bytes(usize::from(offset));
                    copies.extend(bytes.map(<[u8]>::to_vec));
                }
            }
            Ok(copies)
        })
    }

    fn purge_one(&self, operation: &UndoOperation<'_>) -> Result<(), EngineError> {
        match *operation {
            UndoOperation::Update { index, key, .. } => self.purge_deleted(index, key),
            UndoOperation::OverflowReplaced { space, first_page } => {
                self.free_overflow(PageId::new(space, first_page))
            }
            UndoOperation::SpaceAbandoned { space } => self.forest().spaces().drop_space(space),
            _ => Ok(()),
        }
    }

    /// Takes the record out of its tree if it is deleted and nobody can see it.
    fn purge_deleted(&self, index: IndexId, key: &[u8]) -> Result<(), EngineError> {
        let tree = self.forest().tree(index);
        let written = tree.write(key, Purpose::Completion, |leaf| {
            let version = leaf.value().and_then(RecordVersion::parse).map(|(version, _)| version);
            if version.is_some_and(|version| version.deleted && self.is_settled(version.trx)) {
                leaf.remove();
            }
            Ok(())
        });
        match written {
            Ok(written) if written.is_underfull => tree.merge(key),
            // The whole space may have been dropped since.
            Err(error) if !error.is_absent_page() => Err(error),
            _ => Ok(()),
        }
    }

    /// Moves the segment's position behind the marker at `end` and frees the pages before it.
    fn pass(&self, segment: &Arc<Segment>, end: UndoPointer) -> Result<(), EngineError> {
        loop {
            let (first, next) = {
                let mut stream = segment.stream.lock();
                let first = stream.pages[0];
                if first == end.page_id().page_no {
                    stream.position = end.offset();
                    stream.finished.pop_front();
                    return Ok(());
                }
                (first, stream.pages[1])
            };
            self.pages().run(|| {
                let mut mtr = MiniTransaction::begin(self.pages(), Purpose::Completion)?;
                let header = mtr.exclusive(segment.header)?;
                self.forest().spaces().free(&mut mtr, PageId::new(UNDO_SPACE, first))?;
                mtr.change(header, &UndoSegmentHeader::write_first_page(next).change());
                let _ = mtr.commit();
                Ok(())
            })?;
            segment.stream.lock().pages.pop_front();
        }
    }
}

fn next_finished(segment: &Segment, horizon: Cts) -> Option<Finished> {
    let stream = segment.stream.lock();
    stream.finished.front().copied().filter(|finished| finished.cts <= horizon)
}

fn needs_purge(operation: &UndoOperation<'_>) -> bool {
    match operation {
        UndoOperation::Update { deletes, .. } => *deletes,
        UndoOperation::OverflowReplaced { .. } | UndoOperation::SpaceAbandoned { .. } => true,
        _ => false,
    }
}
