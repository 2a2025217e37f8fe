//! The drawn layout, limits, and arbitrary bytes.

use expect_test::expect;
use firn_base::{PageId, SpaceId};

use super::*;
use crate::annotate::{Annotated, PAGE_HEADER};
use crate::redo::{ApplyError, Change, apply};

const PAGE: PageId = PageId::new(SpaceId(7), PageNo(9));

#[test]
fn a_part_is_laid_out_as_drawn() {
    let mut page = PageBuf::boxed();
    page.bytes_mut().fill(0xEE);
    page.set_lsn(firn_base::Lsn(0));
    let change = Change::OverflowInit { next: PageNo(10), owner: TrxId(7), bytes: b"part" };
    apply(&mut page, PAGE, &change).expect("a part");
    let read = OverflowPage::new(&page);
    assert_eq!(read, Some(OverflowPage { next: PageNo(10), owner: TrxId(7), bytes: b"part" }));
    let mut drawing = Annotated::new(page.bytes());
    drawing.fields(&PAGE_HEADER);
    drawing
        .fields(&[(4, "next"), (2, "length"), (2, "zero"), (8, "owner"), (4, "bytes")])
        .zeros_to(16384);
    expect![[r#"
        0      00000000                  checksum
        4      0100                      version
        6      07                        kind
        7      00                        flags
        8      07000000                  space
        12     09000000                  page
        16     0000000000000000          LSN
        24     0000                      log stream
        26     000000000000              reserved
        32     0a000000                  next
        36     0400                      length
        38     0000                      zero
        40     0700000000000000          owner
        48     70617274                  bytes
        52     zeros up to 16384
    "#]]
    .assert_eq(&drawing.finish());
}

#[test]
fn a_part_fills_its_page_and_no_more() {
    let mut page = PageBuf::boxed();
    let bytes = vec![1; PART_BYTES + 1];
    let whole = Change::OverflowInit { next: PageNo::NONE, owner: TrxId(7), bytes: &bytes[1..] };
    apply(&mut page, PAGE, &whole).expect("a part");
    assert_eq!(OverflowPage::new(&page).map(|part| part.bytes), Some(&bytes[1..]));
    let too_long = Change::OverflowInit { next: PageNo::NONE, owner: TrxId(7), bytes: &bytes };
    assert_eq!(apply(&mut page, PAGE, &too_long), Err(ApplyError::NoRoom { page: PAGE }));
    page.put_u16(LENGTH, PART_BYTES as u16 + 1);
    assert_eq!(OverflowPage::new(&page), None);
    assert_eq!(OverflowPage::new(&PageBuf::zeroed()), None);
}
