//! The drawn header, and what `verify` finds.

use expect_test::expect;

use super::*;
use crate::annotate::{Annotated, PAGE_HEADER};

const PAGE: PageId = PageId::new(SpaceId(7), PageNo(3));

fn sealed() -> Box<PageBuf> {
    let mut page = PageBuf::boxed();
    page.format(PAGE, PageKind::Overflow);
    page.set_flags(0x80);
    page.set_lsn(Lsn(0x1020));
    page.seal();
    page
}

#[test]
fn the_header_is_laid_out_as_drawn() {
    let page = sealed();
    let drawing = Annotated::new(page.bytes()).fields(&PAGE_HEADER).zeros_to(PAGE_SIZE).finish();
    expect![[r#"
        0      4457ef82                  checksum
        4      0100                      version
        6      07                        kind
        7      80                        flags
        8      07000000                  space
        12     03000000                  page
        16     2010000000000000          LSN
        24     0000                      log stream
        26     000000000000              reserved
        32     zeros up to 16384
    "#]]
    .assert_eq(&drawing);
    assert_eq!((page.kind(), page.flags()), (Some(PageKind::Overflow), 0x80));
    assert_eq!((page.page_id(), page.lsn()), (PAGE, Lsn(0x1020)));
    assert_eq!(page.log_stream(), LogStreamId(0));
}

#[test]
fn every_kind_has_its_number() {
    for number in 0..=u8::MAX {
        assert!(PageKind::from_u8(number).is_none_or(|kind| kind as u8 == number));
    }
}

#[test]
fn a_sealed_page_is_what_it_was() {
    assert_eq!(sealed().verify(PAGE), Ok(()));
}

#[test]
fn any_changed_bit_is_found() {
    for bit in (0..PAGE_SIZE * 8).step_by(101) {
        let mut page = sealed();
        page.bytes_mut()[bit / 8] ^= 1 << (bit % 8);
        let damage = page.verify(PAGE).expect_err("the page was changed");
        assert!(matches!(damage, PageDamage::Checksum { .. }), "bit {bit}");
    }
}

#[test]
fn a_page_in_another_place_is_found() {
    let expected = PageId::new(SpaceId(7), PageNo(4));
    assert_eq!(sealed().verify(expected), Err(PageDamage::Misplaced { found: PAGE, expected }));
}

#[test]
fn a_page_of_another_layout_is_found() {
    let mut page = sealed();
    page.put_u16(VERSION, 2);
    page.seal();
    assert_eq!(page.verify(PAGE), Err(PageDamage::Version { found: 2 }));
}
