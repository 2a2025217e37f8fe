use std::collections::BTreeMap;
use std::time::Duration;

use firn_base::{SpaceId, TableId};
use firn_format::page::PageKind;
use firn_format::redo::Change;
use firn_format::space::SpacePurpose;
use firn_format::tree::{MAX_ENTRY_BYTES, TreePage};
use proptest::prelude::*;

use super::bulk::BulkLoad;
use super::*;
use crate::test_support::{TEST_SPACE, memory_forest};

const POOL_BYTES: usize = 32 << 20;

fn new_tree(forest: &Forest) -> Tree<'_> {
    new_tree_in(forest, TEST_SPACE)
}

fn new_tree_in(forest: &Forest, space: SpaceId) -> Tree<'_> {
    let mut frames = forest.pages().pool.reserve(1);
    let index = forest
        .pages()
        .run(|| {
            let mut mtr = MiniTransaction::begin(forest.pages(), Purpose::Forward)?;
            let index = forest.create_root(&mut mtr, &mut frames, space)?;
            let _ = mtr.commit();
            Ok(index)
        })
        .unwrap();
    forest.tree(index)
}

fn set(tree: Tree<'_>, key: &[u8], value: &[u8]) {
    tree.write(key, Purpose::Forward, |leaf| {
        leaf.require_room(value.len())?;
        leaf.set(value);
        Ok(())
    })
    .unwrap();
}

fn remove(tree: Tree<'_>, key: &[u8]) -> bool {
    let written = tree
        .write(key, Purpose::Forward, |leaf| {
            let found = leaf.slot.is_ok();
            if found {
                leaf.remove();
            }
            Ok(found)
        })
        .unwrap();
    if written.is_underfull {
        tree.merge(key).unwrap();
    }
    written.result
}

fn get(tree: Tree<'_>, key: &[u8]) -> Option<Vec<u8>> {
    tree.read(Target::At(key), |leaf| {
        Ok(leaf.search(key).ok().map(|slot| leaf.value(slot).to_vec()))
    })
    .unwrap()
}

fn entries_of(leaf: &TreePage<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    (0..leaf.slot_count()).map(|slot| (leaf.key(slot), leaf.value(slot).to_vec())).collect()
}

fn all_forward(tree: Tree<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let (mut all, mut from) = (Vec::<(Vec<u8>, Vec<u8>)>::new(), Some(Vec::new()));
    while let Some(key) = from {
        from = tree
            .read(Target::At(&key), |leaf| {
                all.retain(|(seen, _)| seen.as_slice() < leaf.low_fence());
                all.extend(entries_of(leaf));
                Ok(leaf.high_fence().map(<[u8]>::to_vec))
            })
            .unwrap();
    }
    all
}

fn all_backward(tree: Tree<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut leaves = Vec::new();
    let mut before: Option<Vec<u8>> = None;
    loop {
        let target = before.as_deref().map_or(Target::Last, Target::Before);
        let low = tree
            .read(target, |leaf| {
                leaves.push(entries_of(leaf));
                Ok(leaf.low_fence().to_vec())
            })
            .unwrap();
        if low.is_empty() {
            break;
        }
        before = Some(low);
    }
    leaves.reverse();
    leaves.concat()
}

fn key_of(number: u32) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

/// Frees pages until none of `space` is left to free. Epochs belong to the whole process: while a
/// descent of another test is preempted, all pages wait.
fn free_what_was_retired(forest: &Forest, space: SpaceId) {
    for _ in 0..10_000 {
        forest.free_unreachable().unwrap();
        if forest.spaces().usage(space).unwrap().retired == 0 {
            return;
        }
        firn_base::task::sleep(Duration::from_millis(1));
    }
    panic!("pages of {space:?} are never freed: {:?}", forest.spaces().usage(space));
}

#[test]
fn keys_are_found_after_many_splits() {
    let forest = memory_forest(POOL_BYTES, StructureChanges::Concurrent);
    let tree = new_tree(&forest);
    for number in 0..20_000_u32 {
        set(tree, &key_of(number.wrapping_mul(0x9E37_79B1)), &number.to_le_bytes().repeat(10));
    }
    assert!(forest.statistics().splits.get() > 50);
    for number in 0..20_000_u32 {
        let key = key_of(number.wrapping_mul(0x9E37_79B1));
        assert_eq!(get(tree, &key), Some(number.to_le_bytes().repeat(10)));
    }
    let forward = all_forward(tree);
    assert_eq!(forward.len(), 20_000);
    assert!(forward.is_sorted());
    assert_eq!(forward, all_backward(tree));
}

#[test]
fn an_emptied_tree_gives_its_pages_back() {
    let forest = memory_forest(POOL_BYTES, StructureChanges::Concurrent);
    let tree = new_tree(&forest);
    for number in 0..30_000 {
        set(tree, &key_of(number), &[1; 100]);
    }
    let full = forest.spaces().usage(TEST_SPACE).unwrap();
    for number in 0..30_000 {
        assert!(remove(tree, &key_of(number)));
    }
    assert!(all_forward(tree).is_empty());
    free_what_was_retired(&forest, TEST_SPACE);
    let empty = forest.spaces().usage(TEST_SPACE).unwrap();
    assert!(full.used > 200 && empty.used < 10, "{full:?} {empty:?}");
}

#[test]
fn pages_that_wait_to_be_freed_go_with_their_space() {
    const DROPPED: SpaceId = SpaceId(8);
    let forest = memory_forest(POOL_BYTES, StructureChanges::Concurrent);
    forest.spaces().create(DROPPED, SpacePurpose::Table, TableId(2)).unwrap();
    let kept = new_tree(&forest);
    let dropped = new_tree_in(&forest, DROPPED);
    for tree in [kept, dropped, kept] {
        (0..3_000).for_each(|number| set(tree, &key_of(number), &[1; 100]));
        (0..3_000).for_each(|number| assert!(remove(tree, &key_of(number))));
    }
    assert!(forest.spaces().usage(DROPPED).unwrap().retired > 0);
    forest.spaces().drop_space(DROPPED).unwrap();
    free_what_was_retired(&forest, TEST_SPACE);
    assert!(forest.spaces().usage(DROPPED).unwrap_err().is_absent_page());
}

#[test]
fn a_descent_through_pages_of_a_dropped_space_comes_to_an_end() {
    const DROPPED: SpaceId = SpaceId(8);
    let forest = memory_forest(POOL_BYTES, StructureChanges::Concurrent);
    forest.spaces().create(DROPPED, SpacePurpose::Table, TableId(2)).unwrap();
    let tree = new_tree_in(&forest, DROPPED);
    (0..3_000).for_each(|number| set(tree, &key_of(number), &[1; 100]));
    // A page that is no leaf any more, below a parent with an old entry.
    let leaf = tree.read(Target::At(&key_of(0)), |leaf| Ok(leaf.page_id())).unwrap();
    forest
        .pages()
        .run(|| {
            let mut mtr = MiniTransaction::begin(forest.pages(), Purpose::Forward)?;
            let held = mtr.exclusive(leaf)?;
            mtr.change(held, &Change::Format { kind: PageKind::AllocationMap });
            let _ = mtr.commit();
            Ok(())
        })
        .unwrap();
    forest.spaces().note_dropped(DROPPED);
    let found = tree.read(Target::At(&key_of(0)), |_| Ok(()));
    assert!(found.unwrap_err().is_absent_page());
    let written = tree.write(&key_of(0), Purpose::Completion, |_| Ok(()));
    assert!(written.is_err_and(|error| error.is_absent_page()));
}

#[test]
fn a_bulk_load_is_the_same_tree() {
    let forest = memory_forest(POOL_BYTES, StructureChanges::Concurrent);
    let tree = new_tree(&forest);
    let mut load = BulkLoad::new(&forest, tree.index(), 90);
    for number in 0..50_000 {
        load.push(&key_of(number), &number.to_le_bytes().repeat(8)).unwrap();
    }
    load.finish().unwrap();
    let all = all_forward(tree);
    assert_eq!(all.len(), 50_000);
    assert!(all.iter().map(|(key, _)| key).eq((0..50_000).map(key_of).collect::<Vec<_>>().iter()));
    assert_eq!(all, all_backward(tree));
    set(tree, &key_of(70_000), b"more");
    assert_eq!(get(tree, &key_of(70_000)).as_deref(), Some(&b"more"[..]));
}

#[test]
fn a_bulk_load_refuses_what_is_not_sorted() {
    let forest = memory_forest(POOL_BYTES, StructureChanges::Concurrent);
    let tree = new_tree(&forest);
    let mut load = BulkLoad::new(&forest, tree.index(), 100);
    load.push(b"b", b"").unwrap();
    assert!(matches!(load.push(b"b", b""), Err(EngineError::DuplicateKey { .. })));
    assert!(matches!(load.push(b"a", b""), Err(EngineError::DuplicateKey { .. })));
}

#[test]
fn estimates_are_near_and_exact_within_a_leaf() {
    let forest = memory_forest(POOL_BYTES, StructureChanges::Concurrent);
    let tree = new_tree(&forest);
    for number in 0..40_000 {
        set(tree, &key_of(number), &[1; 60]);
    }
    let near = tree.estimate(&key_of(100), Some(&key_of(110))).unwrap();
    assert!(near.is_exact && near.entries == 10.0, "{near:?}");
    let far = tree.estimate(&key_of(10_000), Some(&key_of(30_000))).unwrap();
    assert!((15_000.0..25_000.0).contains(&far.entries), "{far:?}");
    let all = tree.estimate(&[], None).unwrap();
    assert!((30_000.0..50_000.0).contains(&all.entries), "{all:?}");
}

#[test]
fn a_tree_is_estimated_without_its_emptier_edges() {
    let forest = memory_forest(POOL_BYTES, StructureChanges::Concurrent);
    let tree = new_tree(&forest);
    for number in 0..40_000 {
        set(tree, &key_of(number), &[1; 60]);
    }
    // The first and the last leaf have one entry each.
    let keys = |at: &[u8]| {
        let entries = tree.read(Target::At(at), |leaf| Ok(entries_of(leaf))).unwrap();
        entries.into_iter().map(|(key, _)| key).collect::<Vec<_>>()
    };
    let (first, last) = (keys(&[]), keys(&key_of(39_999)));
    for key in first[1..].iter().chain(&last[..last.len() - 1]) {
        assert!(remove(tree, key));
    }
    let left = 40_000.0 - (first.len() + last.len() - 2) as f64;
    let all = tree.estimate(&[], None).unwrap();
    assert!((all.entries - left).abs() < left * 0.05, "{all:?}");
}

#[test]
fn a_split_that_was_left_half_done_is_completed_by_who_meets_it() {
    let forest = memory_forest(POOL_BYTES, StructureChanges::Concurrent);
    let tree = new_tree(&forest);
    for number in 0..2_000 {
        set(tree, &key_of(number * 10), &[1; 100]);
    }
    let new = tree.split_leaf_only(&key_of(505)).expect("a leaf that is not the root was split");
    let is_posted = || {
        let low = tree.read_page_low(new);
        tree.parent_has(&low)
    };
    assert!(!is_posted());
    let low = tree.read_page_low(new);
    assert_eq!(get(tree, &low[..4.min(low.len())]), get(tree, &low[..4.min(low.len())]));
    assert!(is_posted());
    assert_eq!(all_forward(tree).len(), 2_000);
}

impl Tree<'_> {
    /// The first half of a split, as if the process had died before the second half.
    pub(crate) fn split_leaf_only(&self, key: &[u8]) -> Option<PageId> {
        let new = self.split_page(key, 0, firn_format::tree::TREE_BODY_BYTES).unwrap();
        new.map(|(page, _posting)| page)
    }
}

impl TreeReader<'_> {
    /// The low fence of a cached page.
    pub(crate) fn read_page_low(&self, page: PageId) -> Vec<u8> {
        let guard = self.pages().pool.shared(page).unwrap();
        TreePage::new(&guard).unwrap().low_fence().to_vec()
    }

    /// Whether the parents of leaves, all cached, have the separator.
    pub(crate) fn parent_has(&self, separator: &[u8]) -> bool {
        let epoch = crossbeam_epoch::pin();
        let parent = self.arrive_shared(Target::At(separator), 1, &epoch).unwrap();
        TreePage::new(&parent.guard).unwrap().search(separator).is_ok()
    }
}

#[test]
fn threads_insert_remove_and_read_at_once() {
    for changes in [StructureChanges::Concurrent, StructureChanges::Serialised] {
        let forest = memory_forest(POOL_BYTES, changes);
        let tree = new_tree(&forest);
        let forest = &forest;
        std::thread::scope(|scope| {
            for thread in 0..4_u32 {
                scope.spawn(move || {
                    for round in 0..3 {
                        for number in 0..3_000_u32 {
                            let key = key_of((number.wrapping_mul(0x9E37_79B1)) ^ thread);
                            set(tree, &key, &[thread as u8; 80]);
                            assert_eq!(get(tree, &key), Some(vec![thread as u8; 80]));
                        }
                        for number in 0..3_000_u32 {
                            let key = key_of((number.wrapping_mul(0x9E37_79B1)) ^ thread);
                            if round < 2 || number % 2 == 0 {
                                assert!(remove(tree, &key));
                                assert_eq!(get(tree, &key), None);
                            }
                        }
                        forest.free_unreachable().unwrap();
                    }
                });
            }
        });
        let all = all_forward(tree);
        assert_eq!(all.len(), 4 * 1_500);
        assert_eq!(all, all_backward(tree));
    }
}

#[test]
fn a_tree_ten_times_the_pool_works() {
    let forest = memory_forest(4 << 20, StructureChanges::Concurrent);
    let tree = new_tree(&forest);
    for number in 0..60_000_u32 {
        set(tree, &key_of(number.wrapping_mul(0x9E37_79B1)), &[7; 400]);
    }
    for number in (0..60_000_u32).step_by(7) {
        assert!(get(tree, &key_of(number.wrapping_mul(0x9E37_79B1))).is_some());
    }
}

#[derive(Debug, Clone)]
enum Step {
    Set(Vec<u8>, usize),
    Remove(Vec<u8>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = proptest::collection::vec(0..4_u8, 0..6).prop_map(|bytes| {
        bytes.into_iter().flat_map(|byte| vec![byte * 60; 1 + 90 * usize::from(byte)]).collect()
    });
    let step = prop_oneof![
        3 => (key.clone(), 0..2_000_usize).prop_map(|(key, length)| Step::Set(key, length)),
        1 => key.clone().prop_map(|key| {
            let length = MAX_ENTRY_BYTES - key.len();
            Step::Set(key, length)
        }),
        2 => key.prop_map(Step::Remove),
    ];
    proptest::collection::vec(step, 1..400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_tree_is_a_sorted_map(steps in steps()) {
        let forest = memory_forest(POOL_BYTES, StructureChanges::Concurrent);
        let tree = new_tree(&forest);
        let mut model = BTreeMap::new();
        for step in steps {
            match step {
                Step::Set(key, length) => {
                    set(tree, &key, &vec![9; length]);
                    model.insert(key, vec![9; length]);
                }
                Step::Remove(key) => {
                    prop_assert_eq!(remove(tree, &key), model.remove(&key).is_some());
                }
            }
        }
        let expected: Vec<_> = model.into_iter().collect();
        prop_assert_eq!(&all_forward(tree), &expected);
        prop_assert_eq!(all_backward(tree), expected);
    }
}
