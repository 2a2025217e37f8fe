//! Pages whose fields are written one by one: formatting, and writing bytes.

use firn_base::PageId;

use super::{ApplyError, reformat};
use crate::page::{PAGE_HEADER_BYTES, PageBuf, PageKind};

pub(super) fn format(page: &mut PageBuf, id: PageId, kind: PageKind) -> Result<(), ApplyError> {
    match kind {
        PageKind::Free | PageKind::SpaceHeader | PageKind::UndoHeader => reformat(page, id, kind),
        PageKind::AllocationMap => super::space::init(page, id),
        PageKind::TreeLeaf | PageKind::TreeInner | PageKind::Undo | PageKind::Overflow => {
            return Err(ApplyError::Mismatch {
                page: id,
                what: "an empty page of this kind is not valid",
            });
        }
    }
    Ok(())
}

pub(super) fn write_bytes(page: &mut PageBuf, at: usize, bytes: &[u8]) -> Result<(), ApplyError> {
    let id = page.page_id();
    let target = page
        .bytes_mut()
        .get_mut(at..at + bytes.len())
        .filter(|_| at >= PAGE_HEADER_BYTES)
        .ok_or(ApplyError::Mismatch { page: id, what: "bytes outside the page's body" })?;
    target.copy_from_slice(bytes);
    Ok(())
}
