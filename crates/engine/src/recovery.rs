//! Recovery of transactions after a restart.
//!
//! The log store has found the end of the log, and the page store brings each page up to date when
//! it is first read. Before the first statement, recovery only reads the last record of each undo
//! segment:
//!
//! ```text
//!   committed, rolled back     the segment is free; purge goes over its stream from the front
//!   prepared                   the transaction waits for its coordinator
//!   handed over                the transaction goes on, if its writer has said what it had in memory
//!   anything else              the transaction is a loser, rolled back in the background
//! ```
//!
//! Losers and prepared transactions are entered into the transaction table as active, and prepared
//! ones that another node may have decided as COMMITTING ([`crate::transaction`]). So their rows
//! are locked as before: the lock is the id in the record. All other ids from before the restart
//! are below the watermark and not in the table, which means "committed, and visible to every
//! reader".
//!
//! A crash during recovery does no harm: rollback steps can be repeated.

use std::collections::VecDeque;
use std::sync::Arc;

use firn_base::{Cts, PageId, PageNo, TableId, TrxId};
use firn_format::space::{SpacePurpose, UNDO_SPACE};
use firn_format::undo::{UndoOperation, UndoPage, UndoPointer, UndoSegmentHeader};
use parking_lot::Mutex;

use crate::error::EngineError;
use crate::pages::ReadPages;
use crate::transaction::TransactionSystem;
use crate::transaction::handover::{Expected, handover_of};
use crate::transaction::undo::{self, Finished, Segment, Stream, UndoLog, Work, not_undo};

/// The findings of a restart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// The number of undo segments.
    pub undo_segments: usize,
    /// Transactions that are being rolled back in the background.
    pub losers: usize,
    /// Transactions that wait for their coordinator.
    pub prepared: usize,
    /// Transactions of the writer before that go on.
    pub going_on: usize,
}

/// The last record of a segment's stream.
struct LastRecord {
    pointer: UndoPointer,
    trx: TrxId,
    previous_in_trx: UndoPointer,
    end: End,
}

enum End {
    /// With the timestamp of a commit.
    Ended(Option<Cts>),
    Prepared(Box<[u8]>),
    Open,
}

impl TransactionSystem {
    /// Creates the undo space if it does not exist.
    pub(crate) fn ensure_undo_space(&self) -> Result<(), EngineError> {
        match self.forest().spaces().prepare(UNDO_SPACE) {
            Err(error) if error.is_absent_page() => {
                self.forest().spaces().create(UNDO_SPACE, SpacePurpose::Undo, TableId(0))
            }
            other => other,
        }
    }

    /// Reads the last record of every undo segment. Returns the transactions to roll back, and
    /// gives `expected` the undo logs of those that the writer before has handed over.
    pub(crate) fn recover(
        &self,
        expected: &mut Expected,
    ) -> Result<(RecoveryReport, Vec<UndoLog>), EngineError> {
        let mut report = RecoveryReport::default();
        let mut losers = Vec::new();
        for (number, header) in undo::directory(self.pages())?.into_iter().enumerate() {
            let segment = read_segment(self.pages(), number as u32, header)?;
            self.undo().add_recovered(Arc::clone(&segment));
            report.undo_segments += 1;
            let Some(last) = last_record(self.pages(), &segment)? else {
                self.undo().release(segment);
                continue;
            };
            let undo = UndoLog {
                segment: Arc::clone(&segment),
                trx: last.trx,
                last: last.pointer,
                records: 1,
                work: Work::AllBefore,
            };
            match last.end {
                End::Ended(cts) => {
                    // A snapshot that goes on may need it.
                    let cts = cts.unwrap_or_else(|| self.order().last());
                    let finished = Finished { cts, end: last.pointer, work: Work::AllBefore };
                    segment.stream.lock().finished.push_back(finished);
                    self.undo().release(segment);
                }
                End::Prepared(xid) => {
                    let undo = UndoLog { last: last.previous_in_trx, ..undo };
                    match handover_of(&xid) {
                        None => {
                            self.add_recovered(&xid, undo)?;
                            report.prepared += 1;
                        }
                        Some(number) => {
                            self.table().begin(last.trx, self.snapshots().horizon())?;
                            losers.extend(expected.take(number, undo));
                        }
                    }
                }
                End::Open => {
                    self.table().begin(last.trx, self.snapshots().horizon())?;
                    losers.push(undo);
                }
            }
        }
        report.losers = losers.len();
        Ok((report, losers))
    }
}

/// The transactions that have not ended according to the undo segments, prepared ones included. For
/// a node that writes nothing. Blocks for I/O.
///
/// # Errors
/// If a page cannot be read or is damaged.
pub(crate) fn open_transactions(pages: &ReadPages) -> Result<Vec<TrxId>, EngineError> {
    let mut open = Vec::new();
    let directory = match undo::directory(pages) {
        Err(error) if error.is_absent_page() => Vec::new(),
        other => other?,
    };
    for (number, header) in directory.into_iter().enumerate() {
        let segment = read_segment(pages, number as u32, header)?;
        let last = last_record(pages, &segment)?;
        open.extend(last.filter(|last| !matches!(last.end, End::Ended(_))).map(|last| last.trx));
    }
    Ok(open)
}

fn read_segment(
    pages: &ReadPages,
    number: u32,
    header: PageId,
) -> Result<Arc<Segment>, EngineError> {
    let fields = pages.run(|| {
        let guard = pages.pool.shared(header)?;
        let fields = UndoSegmentHeader::read(&guard);
        fields.ok_or_else(|| not_undo(header).into())
    })?;
    if fields.segment != number {
        return Err(EngineError::Corrupt {
            page: header,
            what: format!("it is undo segment {} instead of {number}", fields.segment),
        });
    }
    let stream = Stream {
        first_page: fields.first_page,
        last_page: fields.last_page,
        purged: fields.purged,
        finished: VecDeque::new(),
    };
    Ok(Arc::new(Segment { number, header, stream: Mutex::new(stream) }))
}

/// The newest record; `None` if the segment has none. The last page may have been linked without
/// getting a record yet.
fn last_record(pages: &ReadPages, segment: &Segment) -> Result<Option<LastRecord>, EngineError> {
    let (first, mut page_no) = {
        let stream = segment.stream.lock();
        (stream.first_page, stream.last_page)
    };
    loop {
        let page = PageId::new(UNDO_SPACE, page_no);
        let (found, previous) = pages.run(|| {
            let guard = pages.pool.shared(page)?;
            let undo = UndoPage::new(&guard).ok_or_else(|| not_undo(page))?;
            Ok((read_last(page, &undo)?, undo.previous()))
        })?;
        if found.is_some() || page_no == first || previous == PageNo::NONE {
            return Ok(found);
        }
        page_no = previous;
    }
}

fn read_last(page: PageId, undo: &UndoPage<'_>) -> Result<Option<LastRecord>, EngineError> {
    let Some(offset) = undo.last_record() else { return Ok(None) };
    let record = undo
        .record_at(offset)
        .map_err(|damage| EngineError::Corrupt { page, what: damage.to_string() })?;
    let end = match record.operation {
        UndoOperation::Committed { cts } => End::Ended(Some(cts)),
        UndoOperation::RolledBack => End::Ended(None),
        UndoOperation::Prepared { xid } => End::Prepared(xid.into()),
        _ => End::Open,
    };
    Ok(Some(LastRecord {
        pointer: UndoPointer::new(page.page_no, offset, 0),
        trx: record.trx,
        previous_in_trx: record.previous_in_trx,
        end,
    }))
}
