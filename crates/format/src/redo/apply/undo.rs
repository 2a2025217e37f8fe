//! Pages of undo streams.

use firn_base::{PageId, PageNo};

use super::{ApplyError, reformat};
use crate::page::{PageBuf, PageKind};
use crate::undo::{
    END, LAST_RECORD, NEXT, PREVIOUS, SEGMENT, UNDO_HEADER_BYTES, UndoPage, record_length,
};

pub(super) fn init(
    page: &mut PageBuf,
    id: PageId,
    segment: u32,
    previous: PageNo,
) -> Result<(), ApplyError> {
    reformat(page, id, PageKind::Undo);
    page.put_u32(SEGMENT, segment);
    page.put_u32(PREVIOUS, previous.0);
    page.put_u32(NEXT, PageNo::NONE.0);
    page.put_u16(END, UNDO_HEADER_BYTES as u16);
    Ok(())
}

pub(super) fn link(page: &mut PageBuf, next: PageNo) -> Result<(), ApplyError> {
    page.put_u32(NEXT, next.0);
    Ok(())
}

pub(super) fn append(page: &mut PageBuf, record: &[u8]) -> Result<(), ApplyError> {
    let id = page.page_id();
    if record_length(record) != Some(record.len()) {
        return Err(ApplyError::Mismatch { page: id, what: "not an undo record" });
    }
    let view = UndoPage::new(page).ok_or(ApplyError::Damaged { page: id, what: "undo header" })?;
    if record.len() > view.free_bytes() {
        return Err(ApplyError::NoRoom { page: id });
    }
    let start = usize::from(view.end());
    page.bytes_mut()[start..start + record.len()].copy_from_slice(record);
    page.put_u16(END, (start + record.len()) as u16);
    page.put_u16(LAST_RECORD, start as u16);
    Ok(())
}
