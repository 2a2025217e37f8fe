use std::collections::HashSet;

use super::*;
use crate::log::writer::Purpose;
use crate::test_support::{TEST_SPACE, memory_forest};
use crate::tree::StructureChanges;

#[test]
fn a_picked_page_is_nobody_elses_until_it_is_given_up() {
    let forest = memory_forest(8 << 20, StructureChanges::Concurrent);
    let (spaces, pages) = (forest.spaces(), forest.pages());
    let used = spaces.usage(TEST_SPACE).unwrap().used;
    let mut picked: Vec<_> = (0..10).map(|_| spaces.pick(TEST_SPACE).unwrap()).collect();
    let numbers: HashSet<_> = picked.iter().map(PickedPage::page_no).collect();
    assert_eq!(numbers.len(), 10);
    assert_eq!(spaces.usage(TEST_SPACE).unwrap().used, used, "nothing is written down yet");

    let mut mtr = MiniTransaction::begin(pages, Purpose::Forward).unwrap();
    let allocated = spaces.allocate_pair(&mut mtr, TEST_SPACE).unwrap();
    assert!(allocated.iter().all(|page_no| !numbers.contains(page_no)), "{allocated:?}");
    let mut taken = picked.swap_remove(4);
    spaces.take(&mut mtr, &mut taken);
    let _ = mtr.commit();
    let taken_no = taken.page_no();
    drop(taken);
    drop(picked);
    assert_eq!(spaces.usage(TEST_SPACE).unwrap().used, used + 3);

    let again: HashSet<_> = {
        let picked: Vec<_> = (0..9).map(|_| spaces.pick(TEST_SPACE).unwrap()).collect();
        picked.iter().map(PickedPage::page_no).collect()
    };
    assert!(!again.contains(&taken_no));
    assert!(again.is_subset(&numbers), "what was given up is picked again");
}

#[test]
fn threads_that_pick_and_take_never_share_a_page() {
    let forest = memory_forest(8 << 20, StructureChanges::Concurrent);
    let (spaces, pages) = (forest.spaces(), forest.pages());
    let used = spaces.usage(TEST_SPACE).unwrap().used;
    let work = || {
        let mut taken = Vec::new();
        for round in 0..200 {
            let mut picked = spaces.pick(TEST_SPACE).unwrap();
            if round % 3 == 0 {
                continue;
            }
            let mut mtr = MiniTransaction::begin(pages, Purpose::Forward).unwrap();
            spaces.take(&mut mtr, &mut picked);
            let _ = mtr.commit();
            taken.push(picked.page_no());
        }
        taken
    };
    let taken: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let distinct: HashSet<_> = taken.iter().collect();
    assert_eq!(distinct.len(), taken.len());
    assert_eq!(spaces.usage(TEST_SPACE).unwrap().used, used + taken.len() as u64);
}
