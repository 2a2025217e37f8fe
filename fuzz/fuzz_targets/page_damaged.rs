//! A page of arbitrary bytes: no view of it and no change to it panics. A checksum makes such pages
//! rare, not impossible.

#![no_main]

use firn_base::{PageId, PageNo, SpaceId};
use firn_format::page::{PAGE_HEADER_BYTES, PAGE_SIZE, PageBuf, PageKind};
use firn_format::redo::{Change, RawRecord, apply};
use firn_fuzz::{Input, read_everything};
use libfuzzer_sys::fuzz_target;

const PAGE: PageId = PageId::new(SpaceId(7), PageNo(3));

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let mut page = PageBuf::boxed();
    let kind = PageKind::from_u8(input.u8() % 8).expect("eight kinds");
    page.format(PAGE, kind);
    page.set_flags(input.u8());
    scatter(&mut page, &mut input);
    read_everything(&page);
    let kind = input.u8();
    let record = RawRecord { kind, page: PAGE, body: input.take_all() };
    if let Ok(change) = Change::decode(&record) {
        let _ = apply(&mut page, PAGE, &change);
        read_everything(&page);
    }
});

/// Writes a header and then short runs of bytes at places in the page's body.
fn scatter(page: &mut PageBuf, input: &mut Input<'_>) {
    let header = input.take(32);
    page.bytes_mut()[PAGE_HEADER_BYTES..][..header.len()].copy_from_slice(header);
    for _ in 0..input.u8() % 32 {
        let at = PAGE_HEADER_BYTES + usize::from(input.u16()) % (PAGE_SIZE - PAGE_HEADER_BYTES);
        let length = usize::from(input.u8() % 32).min(PAGE_SIZE - at);
        let run = input.take(length);
        page.bytes_mut()[at..at + run.len()].copy_from_slice(run);
    }
}
