//! Sequences of tree changes against an ordered map, replay, and bytes that nobody vouches for.

use std::collections::BTreeMap;

use firn_base::{IndexId, Lsn, PageId, PageNo, SpaceId};
use proptest::prelude::*;

use super::{ApplyError, apply};
use crate::page::PageBuf;
use crate::redo::{Change, Group, GroupBuilder};
use crate::tree::{Entries, MAX_ENTRY_BYTES, MAX_KEY_BYTES, TreePage};

const LEFT: PageId = PageId::new(SpaceId(7), PageNo(3));
const RIGHT: PageId = PageId::new(SpaceId(7), PageNo(4));
const INDEX: IndexId = IndexId(LEFT.to_u64());

/// A page with all the log that led to it.
struct Logged {
    id: PageId,
    page: Box<PageBuf>,
    groups: Vec<Vec<u8>>,
}

impl Logged {
    fn new(id: PageId) -> Logged {
        Logged { id, page: PageBuf::boxed(), groups: Vec::new() }
    }

    /// Applies the change as it comes out of the log; a refused one changes nothing.
    fn apply(&mut self, change: Change<'_>) -> Result<(), ApplyError> {
        let mut group = GroupBuilder::new();
        change.encode(self.id, &mut group);
        let bytes = group.finish().to_vec();
        let before = self.page.clone();
        let result = apply(&mut self.page, self.id, &change);
        match result {
            Ok(()) => self.groups.push(bytes),
            Err(_) => assert!(before.bytes() == self.page.bytes(), "a refused change left traces"),
        }
        result
    }

    /// Rebuilds the page from its log and compares.
    fn check_replay(&self) {
        let mut replayed = PageBuf::boxed();
        replayed.bytes_mut().fill(0xEE);
        replayed.set_lsn(Lsn(0));
        for bytes in &self.groups {
            for record in Group::parse(bytes).expect("a group").records() {
                let record = record.expect("a record");
                let change = Change::decode(&record).expect("a change");
                apply(&mut replayed, record.page, &change).expect("it went well before");
            }
        }
        assert!(replayed.bytes() == self.page.bytes(), "the rebuilt page differs");
    }

    fn view(&self) -> TreePage<'_> {
        TreePage::new(&self.page).expect("a tree page")
    }
}

fn init<'a>(
    low: &'a [u8],
    high: Option<&'a [u8]>,
    right: PageNo,
    entries: Entries<'a>,
) -> Change<'a> {
    Change::TreeInit { index: INDEX, level: 0, low, high, right, entries }
}

#[derive(Debug, Clone)]
enum Step {
    Insert(Vec<u8>, Vec<u8>),
    Set(usize, Vec<u8>),
    Patch(usize, usize, Vec<u8>),
    Remove(usize),
    /// Splits at this share of the slots, then perhaps works on the left half alone, then merges.
    Split(usize, bool),
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        3 => (0u16..400).prop_map(|n| [b"key/".as_slice(), &n.to_be_bytes()].concat()),
        2 => proptest::collection::vec(0u8..3, 0..8),
        1 => (0u8..5, 1usize..MAX_KEY_BYTES).prop_map(|(byte, length)| vec![byte; length]),
    ]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => proptest::collection::vec(any::<u8>(), 0..60),
        1 => (any::<u8>(), 0usize..900).prop_map(|(byte, length)| vec![byte; length]),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (key(), value()).prop_map(|(key, value)| Step::Insert(key, value)),
        3 => (any::<usize>(), value()).prop_map(|(slot, value)| Step::Set(slot, value)),
        1 => (any::<usize>(), 0usize..70, proptest::collection::vec(any::<u8>(), 0..20))
            .prop_map(|(slot, at, bytes)| Step::Patch(slot, at, bytes)),
        3 => any::<usize>().prop_map(Step::Remove),
        1 => (any::<usize>(), any::<bool>()).prop_map(|(slot, keep)| Step::Split(slot, keep)),
    ]
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn check_against(model: &Model, logged: &Logged) {
    let view = logged.view();
    view.verify().unwrap_or_else(|violation| panic!("{violation}: {view:?}"));
    assert_eq!(view.slot_count(), model.len());
    for (slot, (key, value)) in model.iter().enumerate() {
        assert_eq!(&view.key(slot), key);
        assert_eq!(view.value(slot), value);
        assert_eq!(view.search(key), Ok(slot));
    }
}

fn run_insert(model: &mut Model, logged: &mut Logged, key: &[u8], value: &[u8]) {
    if key.len() + value.len() > MAX_ENTRY_BYTES {
        return;
    }
    let view = logged.view();
    let (found, fits) = (view.search(key), view.fits(key.len(), value.len()));
    match found {
        Ok(slot) => {
            let change = Change::TreeInsert { slot: slot as u16, key, value };
            logged.apply(change).expect_err("the key is there");
        }
        Err(slot) => {
            let result = logged.apply(Change::TreeInsert { slot: slot as u16, key, value });
            if fits {
                result.expect("it fits");
                model.insert(key.to_vec(), value.to_vec());
            } else {
                assert_eq!(result, Err(ApplyError::NoRoom { page: LEFT }));
            }
        }
    }
}

fn run_set(model: &mut Model, logged: &mut Logged, slot: usize, value: &[u8]) {
    let fits = logged.view().fits_replacement(slot, value.len());
    let key = logged.view().key(slot);
    let result = logged.apply(Change::TreeSetValue { slot: slot as u16, value });
    assert_eq!(result.is_ok(), fits);
    if fits {
        model.insert(key, value.to_vec());
    }
}

/// Splits the page as a tree does, checks both halves, and merges them again unless `keep` (then the
/// right half is forgotten, as is its part of the model).
fn run_split(model: &mut Model, logged: &mut Logged, slot: usize, keep: bool) {
    let view = logged.view();
    let at = view.split_slot(slot, &[]).min(view.slot_count() - 1).max(1);
    let at = if slot.is_multiple_of(3) { 1 + slot % (view.slot_count() - 1) } else { at };
    let separator = view.split_separator(at, &[]);
    let (high, right) = (view.high_fence().map(<[u8]>::to_vec), view.right());
    let entries = view.entries(at..view.slot_count());
    let mut sibling = Logged::new(RIGHT);
    sibling
        .apply(init(&separator, high.as_deref(), right, entries.as_entries()))
        .expect("the right half fits");
    logged
        .apply(Change::TreeTruncate {
            from_slot: at as u16,
            high: &separator,
            right: RIGHT.page_no,
        })
        .expect("the left half fits");
    let right_model = model.split_off(&separator);
    check_against(&right_model, &sibling);
    check_against(model, logged);
    if keep {
        return;
    }
    assert!(logged.view().can_absorb(&sibling.view(), 0) || logged.view().free_bytes() < 4000);
    let moved = sibling.view().entries(0..usize::MAX);
    let fits = logged.view().merged_bytes(&sibling.view()) <= crate::tree::TREE_BODY_BYTES;
    let absorb = Change::TreeAbsorb { entries: moved.as_entries(), high: high.as_deref(), right };
    assert_eq!(logged.apply(absorb).is_ok(), fits);
    if fits {
        sibling.apply(Change::TreeKill).expect("a live page can die");
        assert!(sibling.view().is_dead() && sibling.view().verify().is_ok());
        sibling.check_replay();
        model.extend(right_model);
    }
}

fn run(model: &mut Model, logged: &mut Logged, step: &Step) {
    let count = logged.view().slot_count();
    match step {
        Step::Insert(key, value) => {
            if logged.view().covers(key) == crate::tree::Position::Inside {
                run_insert(model, logged, key, value);
            } else {
                let change = Change::TreeInsert { slot: count as u16, key, value };
                logged.apply(change).expect_err("the key belongs elsewhere");
            }
        }
        Step::Set(slot, value) if count > 0 => run_set(model, logged, slot % count, value),
        Step::Patch(slot, at, bytes) if count > 0 => {
            let slot = slot % count;
            let (key, mut value) = (logged.view().key(slot), logged.view().value(slot).to_vec());
            let change = Change::TreePatchValue { slot: slot as u16, at: *at as u16, bytes };
            let result = logged.apply(change);
            assert_eq!(result.is_ok(), at + bytes.len() <= value.len());
            if result.is_ok() {
                value[*at..at + bytes.len()].copy_from_slice(bytes);
                model.insert(key, value);
            }
        }
        Step::Remove(slot) if count > 0 => {
            let key = logged.view().key(slot % count);
            logged.apply(Change::TreeRemove { slot: (slot % count) as u16 }).expect("it is there");
            model.remove(&key);
        }
        Step::Split(slot, keep) if count > 1 => run_split(model, logged, *slot, *keep),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_leaf_behaves_as_an_ordered_map_and_is_rebuilt_from_its_log(
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        let mut logged = Logged::new(LEFT);
        logged.apply(init(&[], None, PageNo::NONE, Entries::EMPTY)).expect("an empty page");
        let mut model = Model::new();
        for step in &steps {
            run(&mut model, &mut logged, step);
            check_against(&model, &logged);
        }
        logged.check_replay();
    }
}
