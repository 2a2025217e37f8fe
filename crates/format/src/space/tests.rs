//! Drawn pages, and allocation against a plain list.

use expect_test::expect;
use firn_base::{PageId, PageNo, SpaceId, TableId};
use proptest::prelude::*;

use super::*;
use crate::annotate::{Annotated, PAGE_HEADER};
use crate::page::{PageBuf, PageKind};
use crate::redo::{ApplyError, Change, apply};

fn formatted(page_no: u32, kind: PageKind) -> (PageId, Box<PageBuf>) {
    let id = PageId::new(SpaceId(7), PageNo(page_no));
    let mut page = PageBuf::boxed();
    apply(&mut page, id, &Change::Format { kind }).expect("a page that may be formatted");
    (id, page)
}

#[test]
fn a_space_header_is_laid_out_as_drawn() {
    let (id, mut page) = formatted(0, PageKind::SpaceHeader);
    let mut header = SpaceHeader {
        purpose: SpacePurpose::Table,
        page_count: 4,
        allocation_hint: PageNo(3),
        table: TableId(0x11),
    };
    let fields = Change::WriteBytes { at: SpaceHeader::ENCODED_AT, bytes: &header.encode() };
    apply(&mut page, id, &fields).expect("a header");
    assert_eq!(SpaceHeader::read(&page), Some(header));
    let owner = Change::WriteBytes { at: SpaceHeader::OWNER_AREA_AT, bytes: b"own" };
    apply(&mut page, id, &owner).expect("the owner's bytes");
    let mut drawing = Annotated::new(page.bytes());
    drawing.fields(&PAGE_HEADER).fields(&[
        (4, "layout version"),
        (1, "purpose"),
        (3, "zero"),
        (4, "page count"),
        (4, "allocation hint"),
        (8, "table"),
        (8, "zero"),
        (3, "for the owner"),
    ]);
    drawing.zeros_to(16384);
    expect![[r#"
        0      00000000                  checksum
        4      0100                      version
        6      01                        kind
        7      00                        flags
        8      07000000                  space
        12     00000000                  page
        16     0000000000000000          LSN
        24     0000                      log stream
        26     000000000000              reserved
        32     01000000                  layout version
        36     03                        purpose
        37     000000                    zero
        40     04000000                  page count
        44     03000000                  allocation hint
        48     1100000000000000          table
        56     0000000000000000          zero
        64     6f776e                    for the owner
        67     zeros up to 16384
    "#]]
    .assert_eq(&drawing.finish());

    header.page_count = 9;
    let field = SpaceHeader::write_page_count(9);
    apply(&mut page, id, &Change::from(&field)).expect("a field");
    assert_eq!(SpaceHeader::read(&page), Some(header));
    page.bytes_mut()[36] = 99;
    assert_eq!(SpaceHeader::read(&page), None);
}

#[test]
fn bytes_are_written_in_the_body_only() {
    let (id, mut page) = formatted(0, PageKind::SpaceHeader);
    for at in [0, 31, 16383, u16::MAX] {
        let result = apply(&mut page, id, &Change::WriteBytes { at, bytes: &[1, 2] });
        assert!(matches!(result, Err(ApplyError::Mismatch { .. })), "{at}");
    }
}

#[test]
fn an_allocation_map_is_laid_out_as_drawn() {
    let (id, mut page) = formatted(1, PageKind::AllocationMap);
    for (index, state) in [(2, PageState::Used), (3, PageState::Used), (3, PageState::Retired)] {
        apply(&mut page, id, &Change::AllocationSet { index, state }).expect("a state");
    }
    let mut drawing = Annotated::new(page.bytes());
    drawing.fields(&PAGE_HEADER).fields(&[
        (4, "used"),
        (4, "retired"),
        (24, "zero"),
        (1, "pages 3, 2, 1, 0: 10 01 01 01"),
    ]);
    drawing.zeros_to(16384);
    expect![[r#"
        0      00000000                  checksum
        4      0100                      version
        6      02                        kind
        7      00                        flags
        8      07000000                  space
        12     01000000                  page
        16     0000000000000000          LSN
        24     0000                      log stream
        26     000000000000              reserved
        32     03000000                  used
        36     01000000                  retired
        40     000000000000000000000000000000000000000000000000  zero
        64     95                        pages 3, 2, 1, 0: 10 01 01 01
        65     zeros up to 16384
    "#]]
    .assert_eq(&drawing.finish());
}

#[test]
fn every_page_has_its_place_in_a_map() {
    let first = |page_no| map_page_of(PageNo(page_no));
    assert_eq!(first(0), (PageNo(1), 0));
    assert_eq!(first(PAGES_PER_MAP - 1), (PageNo(1), 65_279));
    assert_eq!(first(PAGES_PER_MAP), (PageNo(PAGES_PER_MAP + 1), 0));
    assert_eq!(first(PAGES_PER_MAP + 1), (PageNo(PAGES_PER_MAP + 1), 1));
    let (map_page, index) = first(u32::MAX - 1);
    assert_eq!(map_page.0 - 1 + u32::from(index), u32::MAX - 1);
}

#[test]
fn a_map_counts_its_own_pages_as_used() {
    let (_, page) = formatted(1, PageKind::AllocationMap);
    let map = AllocationMap::new(&page).expect("a map");
    assert_eq!((map.used_count(), map.find_free(0), map.first_page()), (2, Some(2), PageNo(0)));
    let (_, page) = formatted(PAGES_PER_MAP + 1, PageKind::AllocationMap);
    let map = AllocationMap::new(&page).expect("a map");
    assert_eq!((map.used_count(), map.find_free(0), map.find_free(1)), (1, Some(0), Some(2)));
    assert_eq!(map.first_page(), PageNo(PAGES_PER_MAP));
    assert!(map.is_consistent());
}

#[test]
fn a_map_ends() {
    let (id, mut page) = formatted(1, PageKind::AllocationMap);
    let last = (PAGES_PER_MAP - 1) as u16;
    let set = |index| Change::AllocationSet { index, state: PageState::Used };
    apply(&mut page, id, &set(last)).expect("a state");
    assert!(apply(&mut page, id, &set(last + 1)).is_err());
    let map = AllocationMap::new(&page).expect("a map");
    assert_eq!((map.find_free(last - 1), map.find_free(last)), (Some(last - 1), None));
    assert_eq!((map.state(last), map.state(last + 1)), (Some(PageState::Used), None));
    assert_eq!(map.find_free(u16::MAX), None);
}

proptest! {
    #[test]
    fn a_map_is_a_list_of_states(changes in proptest::collection::vec((2u16..60, 0u8..3), 0..200)) {
        let (id, mut page) = formatted(1, PageKind::AllocationMap);
        let mut model = [PageState::Free; 64];
        model[..2].fill(PageState::Used);
        for (index, state) in changes {
            let state = PageState::from_u8(state).expect("a state");
            apply(&mut page, id, &Change::AllocationSet { index, state }).expect("a state");
            model[usize::from(index)] = state;
        }
        let map = AllocationMap::new(&page).expect("a map");
        prop_assert!(map.is_consistent());
        for from in 0..64 {
            for state in [PageState::Free, PageState::Used, PageState::Retired] {
                let expected = (from..64).find(|&index| model[index] == state);
                let found = map.find(state, from as u16).filter(|&index| index < 64);
                prop_assert_eq!(found, expected.map(|index| index as u16));
            }
        }
    }
}
