//! Values that are too long for their rows: writing, reading and releasing chains of overflow
//! pages.
//!
//! ```text
//!   group 1   undo: written, first page A    A: empty, no next
//!   group 2   A: part 1, next B              B: empty, no next
//!   group 3   B: part 2, next C              C: empty, no next
//!   group 4   C: part 3, no next
//! ```
//!
//! After each group the chain can be walked to its end, so rollback finds every page (rule 4).

use std::ops::Range;

use firn_base::memory;
use firn_base::{PageId, PageNo, SpaceId, TrxId};
use firn_format::overflow::{OverflowPage, PART_BYTES};
use firn_format::redo::Change;
use firn_format::row::OverflowReference;
use firn_format::undo::UndoOperation;

use crate::error::EngineError;
use crate::log::writer::Purpose;
use crate::mini_transaction::MiniTransaction;
use crate::pages::ReadPages;
use crate::transaction::{Transaction, TransactionSystem};

/// The most room that the record of a chain takes in an undo page.
const NOTE_BYTES: usize = 64;

/// An empty part without a successor.
fn empty_part(owner: TrxId) -> Change<'static> {
    Change::OverflowInit { next: PageNo::NONE, owner, bytes: &[] }
}

/// Writes `value` to a new chain in `space`. The chain belongs to the transaction until it commits.
/// Blocks.
///
/// # Errors
/// Errors of the page store and the log; the caller rolls back to an earlier savepoint.
pub fn write(
    trx: &mut Transaction,
    space: SpaceId,
    value: &[u8],
) -> Result<OverflowReference, EngineError> {
    trx.check_open()?;
    let owner = trx.ensure_writer()?;
    let first_page = begin_chain(trx, space, owner)?;
    let system = std::sync::Arc::clone(&trx.system);
    let mut page = first_page;
    let mut parts = value.chunks(PART_BYTES).peekable();
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none();
        page = write_part(&system, PageId::new(space, page), owner, part, is_last)?;
    }
    Ok(OverflowReference { first_page, length: value.len() as u64 })
}

/// Allocates the first page and records the chain in the undo log, in one group.
fn begin_chain(trx: &mut Transaction, space: SpaceId, owner: TrxId) -> Result<PageNo, EngineError> {
    loop {
        let (system, writer) = (&trx.system, trx.writer.as_mut().expect("it has an id"));
        let (pages, spaces) = (system.pages(), system.forest().spaces());
        spaces.prepare(space)?;
        let mut frames = pages.pool.reserve(1);
        let begun = pages.run(|| {
            let mut mtr = MiniTransaction::begin(pages, Purpose::Forward)?;
            let Some(undo) = writer.undo.latch(&mut mtr, NOTE_BYTES)? else { return Ok(None) };
            let first_page = spaces.allocate(&mut mtr, space)?;
            let page = mtr.create(&mut frames, PageId::new(space, first_page));
            mtr.change(page, &empty_part(owner));
            let operation = UndoOperation::OverflowWritten { space, first_page };
            writer.undo.append(&mut mtr, undo, operation);
            let _ = mtr.commit();
            Ok(Some(first_page))
        })?;
        writer.publish_weight();
        drop(frames);
        match begun {
            Some(first_page) => return Ok(first_page),
            None => trx.extend_undo()?,
        }
    }
}

/// Fills `page` and links an empty page after it, unless this is the last part. Returns the empty
/// page.
fn write_part(
    system: &TransactionSystem,
    page: PageId,
    owner: TrxId,
    part: &[u8],
    is_last: bool,
) -> Result<PageNo, EngineError> {
    let (pages, spaces) = (system.pages(), system.forest().spaces());
    spaces.prepare(page.space)?;
    let mut frames = pages.pool.reserve(1);
    pages.run(|| {
        let mut mtr = MiniTransaction::begin(pages, Purpose::Forward)?;
        let held = mtr.exclusive(page)?;
        let mut next = PageNo::NONE;
        if !is_last {
            next = spaces.allocate(&mut mtr, page.space)?;
            let created = mtr.create(&mut frames, PageId::new(page.space, next));
            mtr.change(created, &empty_part(owner));
        }
        mtr.change(held, &Change::OverflowInit { next, owner, bytes: part });
        let _ = mtr.commit();
        Ok(next)
    })
}

/// Records that a chain is no longer part of its row, so that purge frees it. Blocks.
///
/// # Errors
/// Errors of the page store and the log.
pub fn give_up(
    trx: &mut Transaction,
    space: SpaceId,
    reference: OverflowReference,
) -> Result<(), EngineError> {
    let page = PageId::new(space, reference.first_page);
    let owner = read_part(trx.system.pages(), page, |part| part.owner)?;
    let first_page = reference.first_page;
    trx.note_undo(UndoOperation::OverflowReplaced { space, first_page, owner })
}

/// Appends the bytes of a value in `range` to `into`; the range is cut to the value's length. The
/// caller has a snapshot that sees the row or a lock on the row, so the chain stays. Blocks for
/// I/O.
///
/// # Errors
/// [`EngineError::Corrupt`] if the chain's length differs from the reference, or an error of the
/// page store.
pub fn read(
    pages: &ReadPages,
    space: SpaceId,
    reference: OverflowReference,
    range: Range<u64>,
    into: &mut Vec<u8>,
) -> Result<(), EngineError> {
    let end = range.end.min(reference.length);
    let wanted = usize::try_from(end.saturating_sub(range.start)).unwrap_or(usize::MAX);
    let mut promise = memory::ask(wanted)?;
    into.try_reserve_exact(wanted).map_err(|_| memory::NoRoom(wanted as u64))?;
    let mut page = PageId::new(space, reference.first_page);
    let mut at = 0;
    while at < end {
        let start = into.len();
        let (length, next) = read_part(pages, page, |part| {
            into.truncate(start);
            let length = part.bytes.len() as u64;
            let from = range.start.clamp(at, at + length) - at;
            let to = end.clamp(at, at + length) - at;
            if from < to {
                into.extend_from_slice(&part.bytes[from as usize..to as usize]);
            }
            (length, part.next)
        })?;
        at += length;
        promise.filled(into.len() - start);
        if at < end && (next == PageNo::NONE || length == 0) {
            let what = format!("a long value ends after {at} of {} bytes", reference.length);
            return Err(EngineError::Corrupt { page, what });
        }
        page = PageId::new(space, next);
    }
    Ok(())
}

fn read_part<R>(
    pages: &ReadPages,
    page: PageId,
    mut look: impl FnMut(&OverflowPage<'_>) -> R,
) -> Result<R, EngineError> {
    pages.run(|| {
        let guard = pages.pool.shared(page)?;
        let part = OverflowPage::new(&guard).ok_or_else(|| EngineError::Corrupt {
            page,
            what: "it is not part of a long value".to_owned(),
        })?;
        Ok(look(&part))
    })
}
