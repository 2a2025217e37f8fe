#![cfg(not(feature = "shuttle"))]

use std::collections::BTreeMap;

use firn_base::{PageId, PageNo, SpaceId};
use proptest::prelude::*;

use super::Translation;

fn page(space: u32, page_no: u32) -> PageId {
    PageId::new(SpaceId(space), PageNo(page_no))
}

#[test]
fn nothing_is_found_in_an_empty_table() {
    let table = Translation::new();
    assert_eq!(table.lookup(page(0, 0)), None);
    assert_eq!(table.lookup(page(u32::MAX, u32::MAX)), None);
    table.remove(page(1, 1), 0);
    assert_eq!(table.size_bytes(), 0);
}

#[test]
fn trees_grow_without_losing_what_they_have() {
    let table = Translation::new();
    let numbers = [0, 1, 1023, 1024, 1 << 20, (1 << 20) - 1, 1 << 30, u32::MAX];
    for (frame, &page_no) in numbers.iter().enumerate() {
        table.insert(page(3, page_no), frame as u32).unwrap();
        table.insert(page(page_no, 3), frame as u32 + 100).unwrap_or_else(|there| {
            assert_eq!((page_no, there), (3, 0), "only 3:3 could be entered twice");
        });
    }
    for (frame, &page_no) in numbers.iter().enumerate() {
        assert_eq!(table.lookup(page(3, page_no)), Some(frame as u32));
        assert_eq!(table.lookup(page(page_no, 3)), Some(frame as u32 + 100));
    }
}

#[test]
fn nodes_of_a_dropped_space_are_used_again() {
    let table = Translation::new();
    let fill = |space| {
        for page_no in (0..5000).step_by(7) {
            table.insert(page(space, page_no), page_no).unwrap();
        }
    };
    fill(1);
    let size_bytes = table.size_bytes();
    for space in 2..50 {
        table.release(SpaceId(space - 1));
        assert_eq!(table.lookup(page(space - 1, 7)), Some(7), "it still has pages");
        for (page, frame) in table.pages_of(SpaceId(space - 1)) {
            table.remove(page, frame);
        }
        table.release(SpaceId(space - 1));
        fill(space);
        assert_eq!(table.lookup(page(space - 1, 7)), None);
    }
    assert_eq!(table.size_bytes(), size_bytes);
}

#[derive(Debug, Clone)]
enum Step {
    Insert(PageId, u32),
    Remove(PageId, u32),
    Drop(SpaceId),
}

fn any_page() -> impl Strategy<Value = PageId> {
    let page_no = prop_oneof![0..4u32, 1020..1030u32, Just(1 << 21), Just(u32::MAX)];
    let space = prop_oneof![0..3u32, Just(5000), Just(u32::MAX - 1)];
    (space, page_no).prop_map(|(space, page_no)| page(space, page_no))
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (any_page(), 0..3u32).prop_map(|(page, frame)| Step::Insert(page, frame)),
        3 => (any_page(), 0..3u32).prop_map(|(page, frame)| Step::Remove(page, frame)),
        1 => any_page().prop_map(|page| Step::Drop(page.space)),
    ]
}

proptest! {
    #[test]
    fn it_is_a_map(steps in prop::collection::vec(any_step(), 1..200)) {
        let (table, mut model) = (Translation::new(), BTreeMap::new());
        for step in steps {
            match step {
                Step::Insert(page, frame) => {
                    let there = model.get(&page).copied();
                    prop_assert_eq!(table.insert(page, frame).err(), there);
                    model.entry(page).or_insert(frame);
                }
                Step::Remove(page, frame) => {
                    table.remove(page, frame);
                    if model.get(&page) == Some(&frame) {
                        model.remove(&page);
                    }
                }
                Step::Drop(space) => {
                    let pages = table.pages_of(space);
                    let expected: Vec<_> = model
                        .iter()
                        .filter(|(page, _)| page.space == space)
                        .map(|(&page, &frame)| (page, frame))
                        .collect();
                    prop_assert_eq!(&pages, &expected);
                    pages.iter().for_each(|&(page, frame)| table.remove(page, frame));
                    model.retain(|page, _| page.space != space);
                    table.release(space);
                }
            }
        }
        for (&page, &frame) in &model {
            prop_assert_eq!(table.lookup(page), Some(frame));
        }
    }
}
