//! A store that keeps fewer pages from some moment on.

use super::*;

/// Pages of spaces 1 and 2, of which only those of the first are kept later.
fn filled() -> (Store, PageFilter) {
    let mut store = Store::new(small_options());
    for value in 0..6 {
        for number in 0..10 {
            store.change(&[page(1, number), page(2, number)], value);
        }
    }
    store.settle();
    (store, PageFilter::Ranges(vec![page(1, 0)..=page(1, 1000)]))
}

/// The pages that are kept are as they should be, and no other is here.
fn check(store: &Store) {
    for page in store.versions.keys() {
        match page.space == SpaceId(1) {
            true => store.check_latest(*page),
            false => {
                let found = store.read_latest(*page);
                assert!(matches!(found, Err(PageStoreError::Absent(_))), "{page}: {found:?}");
            }
        }
    }
    let stored = store.pages.stored_pages(None, 1000);
    assert!(stored.iter().all(|page| page.space == SpaceId(1)), "{stored:?}");
    store.pages.verify_all(&mut |_| ()).unwrap();
}

#[test]
fn other_pages_go_and_leave_their_slots() {
    let (mut store, kept) = filled();
    store.round().unwrap();
    let before = store.pages.status().free_slots;
    store.pages.keep_only(&kept);
    assert!(store.pages.has_others());
    store.round().unwrap();
    assert!(!store.pages.has_others());
    assert_eq!(store.pages.status().free_slots, before + 10);
    check(&store);
    // Log about the others changes nothing, and holds nothing back.
    let end = store.change(&[page(1, 3), page(2, 3), page(2, 77)], 9);
    store.settle();
    assert_eq!(store.log.kept_from(), end);
    check(&store);
    // The slots are used again.
    for number in 10..30 {
        store.change(&[page(1, number)], 1);
    }
    store.settle();
    check(&store);
    store.options.kept = kept;
    store.restart(&SplitMix::new(4), 1);
    store.settle();
    check(&store);
}

#[test]
fn what_a_crash_leaves_of_other_pages_goes_after_the_restart() {
    for seed in 0..40 {
        let random = SplitMix::new(seed);
        let (mut store, kept) = filled();
        store.pages.keep_only(&kept);
        // The others may be gone, half gone, or all there.
        for _ in 0..seed % 3 {
            store.change(&[page(1, 1), page(2, 2)], seed);
            store.round().unwrap();
        }
        store.options.kept = kept;
        store.restart(&random, 1 + seed as usize % 3);
        store.settle();
        check(&store);
    }
}

#[test]
fn a_store_without_other_pages_writes_no_map_for_that() {
    let (mut store, _) = filled();
    let kept = PageFilter::Ranges(vec![page(1, 0)..=page(2, 1000)]);
    store.options.kept = kept;
    store.restart(&SplitMix::new(1), 1);
    assert!(store.pages.has_others(), "it does not know yet");
    store.settle();
    assert_eq!((store.pages.has_others(), store.pages.status().map_snapshots), (false, 0));
    store.check_all();
}
