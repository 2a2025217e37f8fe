//! Sequences of tree changes against an ordered map, replay, and arbitrary bytes.

use std::collections::BTreeMap;

use firn_base::{Cts, IndexId, Lsn, PageId, PageNo, SpaceId, TrxId};
use proptest::prelude::*;

use super::{ApplyError, apply};
use crate::page::{PAGE_SIZE, PageBuf, PageKind};
use crate::redo::{Change, Group, GroupBuilder, RawRecord};
use crate::space::PageState;
use crate::tree::{
    ENTRY_OVERHEAD_BYTES, Entries, EntryList, MAX_ENTRY_BYTES, MAX_KEY_BYTES, TreePage,
};

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

    /// Applies the change in its decoded form; a refused change leaves the page as it was.
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
    /// As many of these as go one after the other.
    InsertRun(Model),
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
        3 => proptest::collection::btree_map(key(), value(), 1..12).prop_map(Step::InsertRun),
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

fn run_insert_run(model: &mut Model, logged: &mut Logged, run: &Model) {
    let view = logged.view();
    let belongs = |key: &[u8]| {
        let is_short = key.len() + run[key].len() <= MAX_ENTRY_BYTES;
        is_short && view.covers(key) == crate::tree::Position::Inside
    };
    let Some(first) = run.keys().find(|key| belongs(key) && view.search(key).is_err()) else {
        return;
    };
    let slot = view.lower_bound(first);
    let gap = run.range(first.clone()..).take_while(|(key, _)| {
        belongs(key) && (slot == view.slot_count() || **key < view.key(slot))
    });
    let gap: Model = gap.map(|(key, value)| (key.clone(), value.clone())).collect();
    let list = |entries: &mut dyn Iterator<Item = (&Vec<u8>, &Vec<u8>)>| {
        let mut list = EntryList::with_prefix(view.prefix());
        entries.for_each(|(key, value)| list.push(&key[view.prefix().len()..], value));
        list
    };
    let (run, reversed) = (list(&mut gap.iter()), list(&mut gap.iter().rev()));
    let needed = |(key, value): (&Vec<u8>, &Vec<u8>)| {
        ENTRY_OVERHEAD_BYTES + key.len() - view.prefix().len() + value.len()
    };
    let fits = gap.iter().map(needed).sum::<usize>() <= view.free_bytes();
    let slot = slot as u16;
    if gap.len() > 1 {
        let change = Change::TreeInsertRun { slot, entries: reversed.as_entries() };
        logged.apply(change).expect_err("keys ascend");
    }
    let result = logged.apply(Change::TreeInsertRun { slot, entries: run.as_entries() });
    if fits {
        result.expect("it fits");
        model.extend(gap);
    } else {
        assert_eq!(result, Err(ApplyError::NoRoom { page: LEFT }));
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

/// Splits the page as a tree does, and checks both halves. Then merges them again, or, if `keep`,
/// drops the right half and its part of the model.
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
    let moved = sibling.view().entries(0..usize::MAX);
    let merged_bytes = logged.view().merged_bytes(&sibling.view());
    let fits = merged_bytes <= crate::tree::TREE_BODY_BYTES;
    assert!(fits || !logged.view().can_absorb(&sibling.view(), 0));
    let absorb = Change::TreeAbsorb { entries: moved.as_entries(), high: high.as_deref(), right };
    assert_eq!(logged.apply(absorb).is_ok(), fits);
    if fits {
        assert_eq!(logged.view().used_bytes(), merged_bytes);
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
        Step::InsertRun(run) => run_insert_run(model, logged, run),
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

#[test]
fn a_change_goes_to_its_own_page_only() {
    let mut page = PageBuf::boxed();
    apply(&mut page, LEFT, &init(&[], None, PageNo::NONE, Entries::EMPTY)).expect("an empty leaf");
    let change = Change::TreeInsert { slot: 0, key: b"k", value: b"v" };
    let expected = ApplyError::WrongPage { found: LEFT, expected: RIGHT };
    assert_eq!(apply(&mut page, RIGHT, &change), Err(expected));
    let link = Change::UndoLink { next: RIGHT.page_no };
    let found = Some(PageKind::TreeLeaf);
    let expected = ApplyError::WrongKind { page: LEFT, found, change: link.kind() };
    assert_eq!(apply(&mut page, LEFT, &link), Err(expected));
    let dropped = apply(&mut page, LEFT, &Change::SpaceDropped);
    assert_eq!(dropped, Err(ApplyError::NotAboutAPage(LEFT)));
    let format = apply(&mut page, LEFT, &Change::Format { kind: PageKind::TreeLeaf });
    assert!(matches!(format, Err(ApplyError::Mismatch { .. })));
}

#[test]
fn the_position_in_the_log_is_left_to_the_caller() {
    let mut page = PageBuf::boxed();
    page.set_lsn(Lsn(800));
    for change in [
        init(&[], None, PageNo::NONE, Entries::EMPTY),
        Change::TreeInsert { slot: 0, key: b"k", value: b"v" },
        Change::TreeKill,
        Change::Format { kind: PageKind::Free },
        Change::UndoInit { segment: 1, previous: PageNo::NONE },
        Change::OverflowInit { next: PageNo::NONE, owner: TrxId(7), bytes: b"part" },
    ] {
        apply(&mut page, LEFT, &change).expect("a change that fits");
        assert_eq!(page.lsn(), Lsn(800), "{change:?}");
    }
}

fn refused(page: &mut PageBuf, change: &Change<'_>) {
    let result = apply(page, LEFT, change);
    assert!(matches!(result, Err(ApplyError::Mismatch { .. })), "{result:?}: {change:?}");
}

#[test]
fn a_key_belongs_between_its_neighbours_and_the_fences() {
    let mut page = PageBuf::boxed();
    let mut entries = EntryList::new();
    entries.push(b"kd", b"1");
    entries.push(b"kf", b"2");
    let init = init(b"kb", Some(b"kh"), RIGHT.page_no, entries.as_entries());
    apply(&mut page, LEFT, &init).expect("a leaf");
    let wrong: [(u16, &[u8]); 10] = [
        (0, b"ka"),
        (0, b"kd"),
        (0, b"ke"),
        (1, b"kc"),
        (1, b"kf"),
        (2, b"ke"),
        (2, b"kh"),
        (3, b"kg"),
        (0, b"b"),
        (2, b"z"),
    ];
    for (slot, key) in wrong {
        refused(&mut page, &Change::TreeInsert { slot, key, value: b"" });
    }
    for (slot, key) in [(0, b"kb"), (2, b"ke"), (4, b"kg")] {
        apply(&mut page, LEFT, &Change::TreeInsert { slot, key, value: b"" }).expect("its place");
    }
    let high = Some(b"kz".as_slice());
    refused(&mut page, &Change::TreeTruncate { from_slot: 2, high: b"kb", right: RIGHT.page_no });
    refused(&mut page, &Change::TreeTruncate { from_slot: 2, high: b"kd", right: RIGHT.page_no });
    refused(&mut page, &Change::TreeTruncate { from_slot: 2, high: b"kh", right: RIGHT.page_no });
    refused(&mut page, &Change::TreeTruncate { from_slot: 2, high: b"ke", right: PageNo::NONE });
    refused(
        &mut page,
        &Change::TreeAbsorb { entries: entries.as_entries(), high, right: PageNo(9) },
    );
}

#[test]
fn a_page_begins_with_entries_in_order_within_its_fences() {
    let runs: [&[&[u8]]; 7] =
        [&[b"ka"], &[b"kh"], &[b"k"], &[b"z"], &[b"kc", b"kb"], &[b"kc", b"kc"], &[b"kc", b"ki"]];
    for keys in runs {
        let mut entries = EntryList::new();
        for key in keys {
            entries.push(key, b"");
        }
        let entries = entries.as_entries();
        refused(&mut PageBuf::boxed(), &init(b"kb", Some(b"kh"), RIGHT.page_no, entries));
    }
    let none = Entries::EMPTY;
    refused(&mut PageBuf::boxed(), &init(b"kb", Some(b"kb"), RIGHT.page_no, none));
    refused(&mut PageBuf::boxed(), &init(b"kb", Some(b"kh"), PageNo::NONE, none));
    refused(&mut PageBuf::boxed(), &init(b"kb", None, RIGHT.page_no, none));
}

#[test]
fn what_was_inserted_last_leaves_no_garbage() {
    let mut logged = Logged::new(LEFT);
    logged.apply(init(&[], None, PageNo::NONE, Entries::EMPTY)).expect("an empty leaf");
    logged.apply(Change::TreeInsert { slot: 0, key: b"a", value: b"one" }).expect("it fits");
    let before = logged.view().contiguous_bytes();
    logged.apply(Change::TreeInsert { slot: 1, key: b"b", value: b"two" }).expect("it fits");
    logged.apply(Change::TreeRemove { slot: 1 }).expect("it is there");
    assert_eq!((logged.view().contiguous_bytes(), logged.view().garbage()), (before, 0));
    logged.apply(Change::TreeInsert { slot: 1, key: b"b", value: b"two" }).expect("it fits");
    logged.apply(Change::TreeRemove { slot: 0 }).expect("it is there");
    assert_eq!(logged.view().garbage(), 6);
}

#[test]
fn compaction_happens_by_itself() {
    let mut logged = Logged::new(LEFT);
    logged.apply(init(&[], None, PageNo::NONE, Entries::EMPTY)).expect("an empty leaf");
    let key = |number: u16| number.to_be_bytes();
    for number in 0..30 {
        let insert = Change::TreeInsert { slot: number, key: &key(number), value: &[1; 500] };
        logged.apply(insert).expect("30 × 512 bytes fit");
    }
    for slot in 0..15 {
        logged.apply(Change::TreeRemove { slot }).expect("it is there");
    }
    let value = [2; 7000];
    let change = Change::TreeInsert { slot: 1, key: &key(2), value: &value };
    logged.apply(change).expect("it fits once the page is compacted");
    logged.view().verify().expect("a valid page");
    assert_eq!(logged.view().value(1), value);
    let set = Change::TreeSetValue { slot: 2, value: &value[..1500] };
    logged.apply(set).expect("it fits once more");
    logged.view().verify().expect("a valid page");
    logged.check_replay();
}

/// A change that owns its bytes.
#[derive(Debug, Clone)]
struct OwnedChange(u8, Vec<u8>);

impl OwnedChange {
    fn borrow(&self) -> Change<'_> {
        let page =
            if matches!(self.0, 16 | 17) { PageId::new(LEFT.space, PageNo::NONE) } else { LEFT };
        let raw = RawRecord { kind: self.0, page, body: &self.1 };
        Change::decode(&raw).unwrap_or(Change::TreeKill)
    }
}

/// Bodies that mostly are what their kind wants.
fn any_change() -> impl Strategy<Value = OwnedChange> {
    let plausible = (1u8..19, 0u16..12, key(), value(), key(), any::<u32>(), any::<bool>());
    let plausible = plausible.prop_map(|(kind, slot, mut key, value, other, number, flag)| {
        key.truncate(60_000);
        let mut entries = EntryList::new();
        entries.push(&other, &value);
        let (low, high) = if key < other { (&key, &other) } else { (&other, &key) };
        let high = flag.then_some(high.as_slice());
        let right = if flag { PageNo(number >> 1) } else { PageNo::NONE };
        let entries = if number % 3 == 0 { Entries::EMPTY } else { entries.as_entries() };
        let state = PageState::from_u8(number as u8 % 3).expect("a state");
        let at = if flag { slot } else { number as u16 };
        let change = match kind {
            1 => Change::Format { kind: PageKind::from_u8(number as u8 % 8).expect("a kind") },
            2 => {
                Change::TreeInit { index: INDEX, level: slot as u8 % 2, low, high, right, entries }
            }
            3 => Change::TreeInsert { slot, key: &key, value: &value },
            4 => Change::TreeSetValue { slot, value: &value },
            5 => Change::TreePatchValue { slot, at: at % 60, bytes: &value },
            6 => Change::TreeRemove { slot },
            7 => Change::TreeTruncate { from_slot: slot, high: &key, right: PageNo(number >> 1) },
            8 => Change::TreeAbsorb { entries, high, right },
            10 => Change::WriteBytes { at, bytes: &value },
            11 => Change::AllocationSet { index: at, state },
            12 => Change::UndoInit { segment: number, previous: right },
            13 => Change::UndoLink { next: right },
            14 => Change::UndoAppend { record: &value },
            15 => Change::OverflowInit { next: right, owner: TrxId(7), bytes: &value },
            16 => Change::SpaceDropped,
            18 => Change::TreeInsertRun { slot, entries },
            17 => Change::Watermark { trx_id_limit: TrxId(9), cts_limit: Cts(u64::from(number)) },
            19 => Change::WriterBegins { epoch: u64::from(number) },
            _ => Change::TreeKill,
        };
        encoded(&change)
    });
    let arbitrary = (any::<u8>(), proptest::collection::vec(any::<u8>(), 0..64))
        .prop_map(|(kind, body)| OwnedChange(kind % 21, body));
    prop_oneof![9 => plausible, 1 => arbitrary]
}

fn encoded(change: &Change<'_>) -> OwnedChange {
    let page = if change.is_about_a_page() { LEFT } else { PageId::new(LEFT.space, PageNo::NONE) };
    let mut group = GroupBuilder::new();
    change.encode(page, &mut group);
    let record = Group::parse(group.finish()).expect("a group").records().next();
    let record = record.expect("one record").expect("a good one");
    assert_eq!(Change::decode(&record).as_ref(), Ok(change));
    OwnedChange(record.kind, record.body.to_vec())
}

/// A page of any kind with something in it.
fn page_before() -> impl Strategy<Value = Box<PageBuf>> {
    let entries = proptest::collection::btree_map(key(), value(), 0..12);
    (1u8..8, entries, 0u8..2).prop_map(|(kind, entries, level)| {
        let mut page = PageBuf::boxed();
        let kind = PageKind::from_u8(kind).expect("a kind");
        let mut list = EntryList::new();
        let mut total = 0;
        for (key, value) in &entries {
            total += key.len() + value.len() + 10;
            if total < 16_000 && level == 0 {
                list.push(key, value);
            }
        }
        if level == 1 {
            list.push(b"", &9u32.to_le_bytes());
            list.push(b"k", &10u32.to_le_bytes());
        }
        let (low, high, right) = (b"".as_slice(), None, PageNo::NONE);
        let change = match kind {
            PageKind::TreeLeaf | PageKind::TreeInner => Change::TreeInit {
                index: INDEX,
                level,
                low,
                high,
                right,
                entries: list.as_entries(),
            },
            PageKind::Undo => Change::UndoInit { segment: 1, previous: PageNo(4) },
            PageKind::Overflow => {
                Change::OverflowInit { next: PageNo(4), owner: TrxId(7), bytes: b"part" }
            }
            _ => Change::Format { kind },
        };
        apply(&mut page, LEFT, &change).expect("a page that makes sense");
        page
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_change_makes_apply_panic_or_leave_traces_when_refused(
        before in page_before(),
        scars in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        changes in proptest::collection::vec(any_change(), 1..30),
    ) {
        let mut page = before;
        for (at, byte) in scars {
            // Mostly in the headers and the slots, where they do most harm.
            let at = at.index(PAGE_SIZE * 4);
            page.bytes_mut()[if at < PAGE_SIZE { at } else { at % 128 }] = byte;
        }
        let was_valid = TreePage::new(&page).is_ok_and(|view| view.verify().is_ok());
        for change in &changes {
            let unchanged = page.clone();
            let id = page.page_id();
            if let Err(error) = apply(&mut page, id, &change.borrow()) {
                let _ = error.to_string();
                prop_assert!(page.bytes() == unchanged.bytes());
            } else if was_valid && let Ok(view) = TreePage::new(&page) {
                prop_assert_eq!(view.verify(), Ok(()));
            }
        }
    }

    #[test]
    fn no_page_makes_apply_panic(
        header in proptest::collection::vec(any::<u8>(), 48..200),
        kind in 0u8..9,
        changes in proptest::collection::vec(any_change(), 1..30),
    ) {
        let mut page = PageBuf::boxed();
        page.bytes_mut()[..header.len()].copy_from_slice(&header);
        page.bytes_mut()[6] = kind;
        for change in &changes {
            let unchanged = page.clone();
            let id = page.page_id();
            if apply(&mut page, id, &change.borrow()).is_err() {
                prop_assert!(page.bytes() == unchanged.bytes());
            }
        }
    }

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
