//! Parts of long values.

use firn_base::{PageId, PageNo, TrxId};

use super::{ApplyError, reformat};
use crate::overflow::{HEADER_BYTES, LENGTH, NEXT, OWNER, PART_BYTES};
use crate::page::{PageBuf, PageKind};

pub(super) fn init(
    page: &mut PageBuf,
    id: PageId,
    next: PageNo,
    owner: TrxId,
    bytes: &[u8],
) -> Result<(), ApplyError> {
    if bytes.len() > PART_BYTES {
        return Err(ApplyError::NoRoom { page: id });
    }
    reformat(page, id, PageKind::Overflow);
    page.put_u32(NEXT, next.0);
    page.put_u16(LENGTH, bytes.len() as u16);
    page.put_u64(OWNER, owner.0);
    page.bytes_mut()[HEADER_BYTES..HEADER_BYTES + bytes.len()].copy_from_slice(bytes);
    Ok(())
}
