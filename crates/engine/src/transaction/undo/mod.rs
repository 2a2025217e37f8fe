//! Undo segments: binding them to transactions, and appending to them.
//!
//! A segment is a first-in-first-out stream of undo records over linked pages
//! (`firn_format::undo`). One transaction at a time uses it, so commits do not share a history
//! list: each segment's stream is in commit order, and purge consumes each from its front.
//!
//! ```text
//!   segment 3:   ▒▒▒ freed ▒▒▒ │ trx 7 … committed │ trx 9 … committed │ trx 12 …
//!                              ▲ first page          ▲ finished queue    ▲ bound
//! ```
//!
//! The header page changes only when a page is linked or freed. The last record of the stream shows
//! the state of the bound transaction: an end marker (idle), *prepared*, or any other record
//! (active).

mod purge;
mod rollback;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

use firn_base::{Cts, PageId, PageNo, TrxId};
use firn_format::page::{PageBuf, PageKind};
use firn_format::redo::Change;
use firn_format::space::{HEADER_PAGE, SpaceHeader, UNDO_SPACE};
use firn_format::undo::{
    SegmentState, UndoOperation, UndoPage, UndoPointer, UndoRecord, UndoSegmentHeader,
};
use parking_lot::{Mutex, RwLock};

use crate::error::EngineError;
use crate::free_list::FreeList;
use crate::log::writer::Purpose;
use crate::mini_transaction::{Held, MiniTransaction};
use crate::pages::{Pages, ReadPages, Restart};
use crate::space::Spaces;

/// The longest identifier of a prepared transaction, in bytes (MySQL: format, global id, branch).
pub(crate) const MAX_XID_BYTES: usize = 144;
/// Room that every undo page reserves for markers, so that a commit never needs a new page.
const MARKER_BYTES: usize = 256;
/// The most segments: the capacity of the directory in the space's header.
pub(crate) const MAX_SEGMENTS: usize = 2048;

/// What purge must do for an ended transaction when no snapshot needs its undo records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Nothing: it only inserted, or updated without deleting, or was rolled back.
    None,
    /// Process its own records.
    Own,
    /// Process the records of every transaction from the front of the stream on. A restart does not
    /// know more.
    AllBefore,
}

/// An ended transaction in a segment's stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Finished {
    /// From this horizon on, no snapshot needs its undo records.
    pub(crate) cts: Cts,
    pub(crate) end: UndoPointer,
    pub(crate) work: Work,
}

/// The state of a segment's stream in memory.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) first_page: PageNo,
    /// The page to which records are appended.
    pub(crate) last_page: PageNo,
    /// The end marker of the last purged transaction, as of the last time that a page was freed.
    pub(crate) purged: UndoPointer,
    pub(crate) finished: VecDeque<Finished>,
}

#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) number: u32,
    pub(crate) header: PageId,
    pub(crate) stream: Mutex<Stream>,
}

impl Segment {
    fn last_page(&self) -> PageId {
        PageId::new(UNDO_SPACE, self.stream.lock().last_page)
    }
}

/// The undo segments of a node.
pub(crate) struct UndoSegments {
    pages: Pages,
    spaces: Arc<Spaces>,
    all: RwLock<Vec<Arc<Segment>>>,
    free: FreeList<Arc<Segment>>,
}

/// A bound transaction's view of its segment.
#[derive(Debug)]
pub(crate) struct UndoLog {
    pub(crate) segment: Arc<Segment>,
    pub(crate) trx: TrxId,
    /// The transaction's last record, where rollback begins.
    pub(crate) last: UndoPointer,
    /// The number of records that it has written.
    pub(crate) records: u64,
    /// What purge must do after the commit.
    pub(crate) work: Work,
}

impl UndoSegments {
    pub(crate) fn new(pages: Pages, spaces: Arc<Spaces>) -> UndoSegments {
        UndoSegments { pages, spaces, all: RwLock::default(), free: FreeList::new() }
    }

    pub(crate) fn all(&self) -> Vec<Arc<Segment>> {
        self.all.read().clone()
    }

    /// Adds a segment that recovery has found. It is free unless the caller binds it.
    pub(crate) fn add_recovered(&self, segment: Arc<Segment>) {
        self.all.write().push(segment);
    }

    /// Returns the segment of a transaction that has ended.
    pub(crate) fn release(&self, segment: Arc<Segment>) {
        self.free.put(segment);
    }

    /// Binds a segment to `trx`. Blocks if a new segment must be created.
    pub(crate) fn bind(&self, trx: TrxId) -> Result<UndoLog, EngineError> {
        let segment = match self.free.take() {
            Some(segment) => segment,
            None => self.create()?,
        };
        Ok(UndoLog { segment, trx, last: UndoPointer::NONE, records: 0, work: Work::None })
    }

    /// Creates a segment. Several threads may do so at once.
    fn create(&self) -> Result<Arc<Segment>, EngineError> {
        self.spaces.prepare(UNDO_SPACE)?;
        let segment = Arc::new(self.write_segment()?);
        self.all.write().push(Arc::clone(&segment));
        Ok(segment)
    }

    fn write_segment(&self) -> Result<Segment, EngineError> {
        let mut frames = self.pages.pool.reserve(2);
        self.pages.run(|| {
            let mut mtr = MiniTransaction::begin(&self.pages, Purpose::Completion)?;
            // Numbers are assigned with the directory latched, so it is filled without gaps.
            let directory = mtr.exclusive(PageId::new(UNDO_SPACE, HEADER_PAGE))?;
            let number = directory_entries(mtr.page(directory)).count();
            if number == MAX_SEGMENTS {
                return Err(EngineError::TooManyWriters { limit: MAX_SEGMENTS }.into());
            }
            let number = number as u32;
            let [header_no, first] = self.spaces.allocate_pair(&mut mtr, UNDO_SPACE)?;
            let header = mtr.create(&mut frames, PageId::new(UNDO_SPACE, header_no));
            mtr.change(header, &Change::Format { kind: PageKind::UndoHeader });
            let fields = UndoSegmentHeader {
                segment: number,
                state: SegmentState::Idle,
                first_page: first,
                last_page: first,
                trx: TrxId::NONE,
                first_record: UndoPointer::NONE,
                purged: UndoPointer::NONE,
            };
            mtr.change(
                header,
                &Change::WriteBytes { at: UndoSegmentHeader::ENCODED_AT, bytes: &fields.encode() },
            );
            let page = mtr.create(&mut frames, PageId::new(UNDO_SPACE, first));
            mtr.change(page, &Change::UndoInit { segment: number, previous: PageNo::NONE });
            let at = SpaceHeader::OWNER_AREA_AT + number as u16 * DIRECTORY_ENTRY_BYTES;
            let entry = header_no.0.to_le_bytes();
            mtr.change(directory, &Change::WriteBytes { at, bytes: &entry });
            let _ = mtr.commit();
            let stream = Stream {
                first_page: first,
                last_page: first,
                purged: UndoPointer::NONE,
                finished: VecDeque::new(),
            };
            let header = PageId::new(UNDO_SPACE, header_no);
            Ok(Segment { number, header, stream: Mutex::new(stream) })
        })
    }

    /// Links another page to the segment. Blocks; call it with nothing latched.
    pub(crate) fn extend(&self, segment: &Segment) -> Result<(), EngineError> {
        self.spaces.prepare(UNDO_SPACE)?;
        let last = segment.last_page();
        let mut frames = self.pages.pool.reserve(1);
        let new = self.pages.run(|| {
            let mut mtr = MiniTransaction::begin(&self.pages, Purpose::Completion)?;
            let page = mtr.exclusive(last)?;
            let header = mtr.exclusive(segment.header)?;
            let new = self.spaces.allocate(&mut mtr, UNDO_SPACE)?;
            let created = mtr.create(&mut frames, PageId::new(UNDO_SPACE, new));
            let (number, previous) = (segment.number, last.page_no);
            mtr.change(created, &Change::UndoInit { segment: number, previous });
            mtr.change(page, &Change::UndoLink { next: new });
            mtr.change(header, &Change::from(&UndoSegmentHeader::write_last_page(new)));
            let _ = mtr.commit();
            Ok(new)
        })?;
        segment.stream.lock().last_page = new;
        Ok(())
    }
}

/// The header pages of the segments, ordered by number. Blocks for I/O.
pub(crate) fn directory(pages: &ReadPages) -> Result<Vec<PageId>, EngineError> {
    pages.run(|| {
        let page = pages.pool.shared(PageId::new(UNDO_SPACE, HEADER_PAGE))?;
        Ok(directory_entries(&page).map(|page_no| PageId::new(UNDO_SPACE, page_no)).collect())
    })
}

/// The header pages in the directory, ordered by segment number.
fn directory_entries(directory: &PageBuf) -> impl Iterator<Item = PageNo> {
    let entries = (0..MAX_SEGMENTS).map(|number| {
        let offset = number * usize::from(DIRECTORY_ENTRY_BYTES);
        PageNo(directory.get_u32(usize::from(SpaceHeader::OWNER_AREA_AT) + offset))
    });
    entries.take_while(|page_no| page_no.0 != 0)
}

const DIRECTORY_ENTRY_BYTES: u16 = 4;

impl UndoLog {
    /// Notes that purge must process the records.
    pub(crate) fn note_work(&mut self) {
        if self.work == Work::None {
            self.work = Work::Own;
        }
    }

    /// Latches the page of the next record. `None` if it has no room for `bytes`: the segment must
    /// be extended.
    pub(crate) fn latch(
        &self,
        mtr: &mut MiniTransaction<'_>,
        bytes: usize,
    ) -> Result<Option<Held>, Restart> {
        let held = mtr.exclusive(self.segment.last_page())?;
        let page = undo_page(mtr, held)?;
        Ok((page.free_bytes() >= bytes + MARKER_BYTES).then_some(held))
    }

    /// The pointer to the next record.
    pub(crate) fn next_pointer(
        &self,
        mtr: &MiniTransaction<'_>,
        held: Held,
        flags: u16,
    ) -> UndoPointer {
        UndoPage::new(mtr.page(held)).expect("a latched undo page").end_pointer(flags)
    }

    /// Appends a record to the page that [`UndoLog::latch`] returned.
    pub(crate) fn append(
        &mut self,
        mtr: &mut MiniTransaction<'_>,
        held: Held,
        operation: UndoOperation<'_>,
    ) -> UndoPointer {
        let pointer = self.append_marker(mtr, held, operation);
        self.last = pointer;
        self.records += 1;
        pointer
    }

    /// Latches the page for a marker. Every page reserves room for one.
    pub(crate) fn latch_marker(&self, mtr: &mut MiniTransaction<'_>) -> Result<Held, Restart> {
        let held = mtr.exclusive(self.segment.last_page())?;
        undo_page(mtr, held)?;
        Ok(held)
    }

    /// Appends a marker to the page that [`UndoLog::latch_marker`] returned.
    pub(crate) fn append_marker(
        &self,
        mtr: &mut MiniTransaction<'_>,
        held: Held,
        operation: UndoOperation<'_>,
    ) -> UndoPointer {
        let pointer = self.next_pointer(mtr, held, 0);
        let record = UndoRecord { trx: self.trx, previous_in_trx: self.last, operation };
        append_record(mtr, held, &record);
        pointer
    }

    pub(crate) fn append_committed(
        &self,
        mtr: &mut MiniTransaction<'_>,
        held: Held,
        cts: Cts,
    ) -> UndoPointer {
        self.append_marker(mtr, held, UndoOperation::Committed { cts })
    }

    pub(crate) fn append_rolled_back(
        &self,
        mtr: &mut MiniTransaction<'_>,
        held: Held,
    ) -> UndoPointer {
        self.append_marker(mtr, held, UndoOperation::RolledBack)
    }
}

thread_local! {
    /// The buffer in which this thread builds undo records, kept for its memory.
    static RECORD: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

fn append_record(mtr: &mut MiniTransaction<'_>, held: Held, record: &UndoRecord<'_>) {
    RECORD.with_borrow_mut(|bytes| {
        bytes.clear();
        record.encode(bytes);
        mtr.change(held, &Change::UndoAppend { record: bytes });
    });
}

/// A held page as an undo page.
fn undo_page<'a>(mtr: &'a MiniTransaction<'_>, held: Held) -> Result<UndoPage<'a>, Restart> {
    let page = mtr.page(held);
    UndoPage::new(page).ok_or_else(|| Restart::Fail(not_undo(page.page_id())))
}

/// The error for a page that should be an undo page.
pub(crate) fn not_undo(page: PageId) -> EngineError {
    EngineError::Corrupt { page, what: "it is not an undo page".to_owned() }
}
