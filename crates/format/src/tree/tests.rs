//! The drawn layout, a small tree made of pages, detected violations, and (ignored) timing.

use std::collections::{BTreeMap, HashMap};

use expect_test::expect;
use firn_base::{IndexId, PageId, PageNo, SpaceId};
use proptest::prelude::*;

use super::*;
use crate::annotate::{Annotated, PAGE_HEADER};
use crate::page::PageBuf;
use crate::redo::{ApplyError, Change, apply};

const SPACE: SpaceId = SpaceId(7);
const ROOT: PageNo = PageNo(2);

fn page_id(page_no: PageNo) -> PageId {
    PageId::new(SPACE, page_no)
}

fn index() -> IndexId {
    IndexId::from(page_id(ROOT))
}

fn leaf<'a>(low: &'a [u8], high: Option<&'a [u8]>, entries: Entries<'a>) -> Change<'a> {
    let right = if high.is_some() { PageNo(9) } else { PageNo::NONE };
    Change::TreeInit { index: index(), level: 0, low, high, right, entries }
}

fn applied(changes: &[Change<'_>]) -> Box<PageBuf> {
    let mut page = PageBuf::boxed();
    for change in changes {
        apply(&mut page, page_id(ROOT), change).expect("a change that fits");
    }
    page
}

const TREE_HEADER: [(usize, &str); 14] = [
    (8, "index"),
    (1, "level"),
    (1, "reserved"),
    (2, "slots"),
    (2, "heap start"),
    (2, "garbage"),
    (2, "prefix length"),
    (2, "low fence offset"),
    (2, "low fence length"),
    (2, "high fence offset"),
    (2, "high fence length"),
    (2, "reserved"),
    (4, "right sibling"),
    (0, "slots begin"),
];

#[test]
fn a_leaf_is_laid_out_as_drawn() {
    let mut entries = EntryList::with_prefix(b"ab");
    entries.push(b"cde", b"one");
    entries.push(b"d", b"two");
    let page = applied(&[
        leaf(b"aba", Some(b"abf"), entries.as_entries()),
        Change::TreeInsert { slot: 1, key: b"abcdef", value: b"new" },
        Change::TreeRemove { slot: 2 },
    ]);
    let mut drawing = Annotated::new(page.bytes());
    drawing.fields(&PAGE_HEADER).fields(&TREE_HEADER);
    drawing.fields(&[(4, "slot 0 head"), (2, "offset"), (2, "suffix length")]);
    drawing.fields(&[(4, "slot 1 head"), (2, "offset"), (2, "suffix length")]);
    drawing.zeros_to(16355);
    drawing.fields(&[(4, "entry 1 suffix"), (2, "value length"), (3, "value")]);
    drawing.fields(&[(1, "garbage: suffix"), (2, "value length"), (3, "value")]);
    drawing.fields(&[(3, "entry 0 suffix"), (2, "value length"), (3, "value")]);
    drawing.fields(&[(3, "high fence"), (3, "low fence")]);
    drawing.zeros_to(16384);
    expect![[r#"
        0      00000000                  checksum
        4      0100                      version
        6      03                        kind
        7      00                        flags
        8      07000000                  space
        12     02000000                  page
        16     0000000000000000          LSN
        24     0000                      log stream
        26     000000000000              reserved
        32     0200000007000000          index
        40     00                        level
        41     00                        reserved
        42     0200                      slots
        44     e33f                      heap start
        46     0600                      garbage
        48     0200                      prefix length
        50     fd3f                      low fence offset
        52     0300                      low fence length
        54     fa3f                      high fence offset
        56     0300                      high fence length
        58     0000                      reserved
        60     09000000                  right sibling
        64                               slots begin
        64     00656463                  slot 0 head
        68     f23f                      offset
        70     0300                      suffix length
        72     66656463                  slot 1 head
        76     e33f                      offset
        78     0400                      suffix length
        80     zeros up to 16355
        16355  63646566                  entry 1 suffix
        16359  0300                      value length
        16361  6e6577                    value
        16364  64                        garbage: suffix
        16365  0300                      value length
        16367  74776f                    value
        16370  636465                    entry 0 suffix
        16373  0300                      value length
        16375  6f6e65                    value
        16378  616266                    high fence
        16381  616261                    low fence
    "#]]
    .assert_eq(&drawing.finish());
}

#[test]
fn an_inner_node_is_laid_out_as_drawn() {
    let mut entries = EntryList::new();
    entries.push(b"", &3u32.to_le_bytes());
    entries.push(b"mm", &4u32.to_le_bytes());
    let page = applied(&[Change::TreeInit {
        index: index(),
        level: 1,
        low: b"",
        high: None,
        right: PageNo::NONE,
        entries: entries.as_entries(),
    }]);
    let mut drawing = Annotated::new(page.bytes());
    drawing.fields(&PAGE_HEADER).fields(&TREE_HEADER);
    drawing.fields(&[(4, "slot 0 head"), (2, "offset"), (2, "suffix length")]);
    drawing.fields(&[(4, "slot 1 head"), (2, "offset"), (2, "suffix length")]);
    drawing.zeros_to(16370);
    drawing.fields(&[(2, "entry 1 suffix"), (2, "value length"), (4, "child")]);
    drawing.fields(&[(2, "entry 0 value length"), (4, "child")]);
    expect![[r#"
        0      00000000                  checksum
        4      0100                      version
        6      04                        kind
        7      00                        flags
        8      07000000                  space
        12     02000000                  page
        16     0000000000000000          LSN
        24     0000                      log stream
        26     000000000000              reserved
        32     0200000007000000          index
        40     01                        level
        41     00                        reserved
        42     0200                      slots
        44     f23f                      heap start
        46     0000                      garbage
        48     0000                      prefix length
        50     0040                      low fence offset
        52     0000                      low fence length
        54     0000                      high fence offset
        56     ffff                      high fence length
        58     0000                      reserved
        60     ffffffff                  right sibling
        64                               slots begin
        64     00000000                  slot 0 head
        68     fa3f                      offset
        70     0000                      suffix length
        72     00006d6d                  slot 1 head
        76     f23f                      offset
        78     0200                      suffix length
        80     zeros up to 16370
        16370  6d6d                      entry 1 suffix
        16372  0400                      value length
        16374  04000000                  child
        16378  0400                      entry 0 value length
        16380  03000000                  child
    "#]]
    .assert_eq(&drawing.finish());
}

#[test]
fn fences_tell_where_a_key_belongs() {
    let page = applied(&[leaf(b"b", Some(b"d"), Entries::EMPTY)]);
    let view = TreePage::new(&page).expect("a tree page");
    let positions = [b"a".as_slice(), b"b", b"czz", b"d"].map(|key| view.covers(key));
    use Position::{After, Before, Inside};
    assert_eq!(positions, [Before, Inside, Inside, After]);
}

#[test]
fn a_key_leads_to_the_child_whose_range_has_it() {
    let mut entries = EntryList::new();
    for (key, child) in [(b"b".as_slice(), 10u32), (b"d", 11), (b"f", 12)] {
        entries.push(key, &child.to_le_bytes());
    }
    let page = applied(&[Change::TreeInit {
        index: index(),
        level: 3,
        low: b"b",
        high: Some(b"h"),
        right: PageNo(4),
        entries: entries.as_entries(),
    }]);
    let view = TreePage::new(&page).expect("a tree page");
    let children =
        [b"b".as_slice(), b"cc", b"d", b"ezz", b"f", b"g"].map(|key| view.find_child(key).1.0);
    assert_eq!(children, [10, 10, 11, 11, 12, 12]);
}

#[test]
fn a_separator_is_the_shortest_key_between() {
    assert_eq!(separator(b"abcde", b"abxyz"), b"abx");
    assert_eq!(separator(b"ab", b"abc"), b"abc");
    assert_eq!(separator(b"", b"zz"), b"z");
}

#[test]
fn an_inner_node_keeps_its_first_entry() {
    let mut entries = EntryList::new();
    entries.push(b"", &3u32.to_le_bytes());
    let init = |entries| Change::TreeInit {
        index: index(),
        level: 1,
        low: b"",
        high: None,
        right: PageNo::NONE,
        entries,
    };
    let mut page = applied(&[init(entries.as_entries())]);
    let id = page_id(ROOT);
    let mut refused = |change: Change<'_>| {
        let error = apply(&mut page, id, &change).expect_err("a change that does not fit");
        assert!(matches!(error, ApplyError::Mismatch { .. }), "{error}");
    };
    refused(Change::TreeRemove { slot: 0 });
    refused(Change::TreeTruncate { from_slot: 0, high: b"m", right: PageNo(4) });
    refused(Change::TreeInsert { slot: 1, key: b"m", value: b"12345" });
    refused(Change::TreeSetValue { slot: 0, value: b"123" });
    refused(init(Entries::EMPTY));
}

#[test]
fn a_page_that_is_not_valid_is_found_out() {
    let mut entries = EntryList::with_prefix(b"ab");
    entries.push(b"cde", b"one");
    entries.push(b"d", b"two");
    let good = applied(&[leaf(b"aba", Some(b"abf"), entries.as_entries())]);
    assert_eq!(TreePage::new(&good).expect("a tree page").verify(), Ok(()));
    let found = |at: usize, bytes: &[u8]| {
        let mut page = good.clone();
        page.bytes_mut()[at..at + bytes.len()].copy_from_slice(bytes);
        match TreePage::new(&page) {
            Ok(view) => view.verify().expect_err("damage").to_string(),
            Err(error) => error.to_string(),
        }
    };
    let report = [
        found(6, &[1]),
        found(7, &[2]),
        found(7, &[FLAG_DEAD]),
        found(layout::LEVEL, &[1]),
        found(layout::SLOT_COUNT, &[255, 255]),
        found(layout::HEAP_START, &[0, 0]),
        found(layout::GARBAGE, &[1, 0]),
        found(layout::PREFIX_LENGTH, &[1, 0]),
        found(layout::PREFIX_LENGTH, &[9, 0]),
        found(layout::LOW_LENGTH, &[0, 200]),
        found(layout::HIGH_LENGTH, &[0, 200]),
        found(layout::RIGHT, &[255; 4]),
        found(64, b"xxxx"),
        found(68, &[0xFF, 0x3F]),
        found(68, &[0x30, 0x00]),
        found(16365, &[4, 0]),
        found(16383, b"z"),
        found(16380, b"b"),
    ];
    expect![[r#"
        the page is not part of a tree
        header: unknown flag
        header: a dead page has entries
        header: the level contradicts the page's kind
        the page's tree header is not valid: slots and heap
        the page's tree header is not valid: slots and heap
        0 bytes of the heap are unused, but the header says 1
        fences: the prefix is not what the fences share
        the page's tree header is not valid: prefix
        the page's tree header is not valid: low fence
        the page's tree header is not valid: high fence
        fences: only the last page of a level ends at infinity
        slot 0: the head is not that of the key
        slot 0: ends past the page
        slot 0: begins before the heap
        two parts of the heap overlap at byte 16370
        fences: the low fence is not below the high fence
        slot 0: the key is outside of the fences"#]]
    .assert_eq(&report.join("\n"));
}

/// A tree whose pages are in a map, changed by one thread: the steps of a real tree on each level,
/// without latches and log.
struct SmallTree {
    pages: HashMap<PageNo, Box<PageBuf>>,
    next: u32,
}

impl SmallTree {
    fn new() -> SmallTree {
        let mut tree = SmallTree { pages: HashMap::new(), next: ROOT.0 + 1 };
        tree.apply(ROOT, &leaf(b"", None, Entries::EMPTY));
        tree
    }

    fn apply(&mut self, page_no: PageNo, change: &Change<'_>) {
        let page = self.pages.entry(page_no).or_insert_with(PageBuf::boxed);
        apply(page, page_id(page_no), change).unwrap_or_else(|error| panic!("{error}: {change:?}"));
        let view = TreePage::new(page).expect("a tree page");
        view.verify().unwrap_or_else(|violation| panic!("{violation}: {view:?}"));
    }

    fn view(&self, page_no: PageNo) -> TreePage<'_> {
        TreePage::new(&self.pages[&page_no]).expect("a tree page")
    }

    fn new_page(&mut self) -> PageNo {
        self.next += 1;
        PageNo(self.next)
    }

    /// The page at `level` that is responsible for `key`.
    fn descend(&self, key: &[u8], level: u8) -> PageNo {
        let mut page_no = ROOT;
        loop {
            let view = self.view(page_no);
            match view.covers(key) {
                Position::After => page_no = view.right(),
                Position::Before => panic!("{key:?} is before {view:?}"),
                Position::Inside if view.level() == level => return page_no,
                Position::Inside => page_no = view.find_child(key).1,
            }
        }
    }

    fn insert(&mut self, level: u8, key: &[u8], value: &[u8]) {
        let page_no = self.descend(key, level);
        let view = self.view(page_no);
        match view.search(key) {
            Ok(slot) if view.fits_replacement(slot, value.len()) => {
                self.apply(page_no, &Change::TreeSetValue { slot: slot as u16, value });
            }
            Err(slot) if view.fits(key.len(), value.len()) => {
                self.apply(page_no, &Change::TreeInsert { slot: slot as u16, key, value });
            }
            found => {
                self.split(page_no, found.unwrap_or_else(|slot| slot), key);
                self.insert(level, key, value);
            }
        }
    }

    fn split(&mut self, page_no: PageNo, insert_at: usize, key: &[u8]) {
        if page_no == ROOT {
            return self.raise_root();
        }
        let view = self.view(page_no);
        assert!(view.slot_count() > 0, "{view:?} needs no split");
        let slot = view.split_slot(insert_at, key);
        let separator = view.split_separator(slot, key);
        let mut entries = view.entries(slot..view.slot_count());
        let (level, high, right) =
            (view.level(), view.high_fence().map(<[u8]>::to_vec), view.right());
        if level > 0 && entries.as_entries().is_empty() {
            // The new inner node begins with the key that did not fit; its child follows.
            entries = EntryList::new();
            entries.push(key, &[0; 4]);
        }
        let sibling = self.new_page();
        let (low, entries) = (separator.as_slice(), entries.as_entries());
        let high = high.as_deref();
        self.apply(sibling, &Change::TreeInit { index: index(), level, low, high, right, entries });
        let truncate = Change::TreeTruncate { from_slot: slot as u16, high: low, right: sibling };
        self.apply(page_no, &truncate);
        self.insert(level + 1, &separator, &sibling.0.to_le_bytes());
    }

    /// Moves the root's entries down into a new page.
    fn raise_root(&mut self) {
        let view = self.view(ROOT);
        let (level, entries) = (view.level(), view.entries(0..usize::MAX));
        let child = self.new_page();
        let init = |level, entries| Change::TreeInit {
            index: index(),
            level,
            low: b"",
            high: None,
            right: PageNo::NONE,
            entries,
        };
        self.apply(child, &init(level, entries.as_entries()));
        let mut link = EntryList::new();
        link.push(b"", &child.0.to_le_bytes());
        self.apply(ROOT, &init(level + 1, link.as_entries()));
    }

    fn leaves(&self) -> Vec<TreePage<'_>> {
        let mut leaves = vec![self.view(self.descend(b"", 0))];
        while let Some(last) = leaves.last()
            && last.right() != PageNo::NONE
        {
            let right = self.view(last.right());
            assert_eq!(last.high_fence(), Some(right.low_fence()));
            leaves.push(right);
        }
        leaves
    }
}

fn any_key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..12),
        (0u32..3000).prop_map(|n| [b"prefix".as_slice(), &n.to_be_bytes()].concat()),
        (0u8..4, 0usize..=MAX_KEY_BYTES, any::<u8>()).prop_map(|(fill, length, last)| {
            let mut key = vec![fill; length];
            key.pop();
            if length > 0 {
                key.push(last);
            }
            key
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_tree_of_pages_splits_at_any_keys_and_values(
        entries in proptest::collection::vec((any_key(), 0usize..MAX_ENTRY_BYTES, any::<bool>()), 1..300),
    ) {
        let mut tree = SmallTree::new();
        let mut model = BTreeMap::new();
        for (key, length, is_small) in entries {
            let length = if is_small { length % 100 } else { length };
            let value = vec![length as u8; length.min(MAX_ENTRY_BYTES - key.len())];
            tree.insert(0, &key, &value);
            model.insert(key, value);
        }
        let leaves = tree.leaves();
        let found = leaves.iter().flat_map(|leaf| {
            (0..leaf.slot_count()).map(|slot| (leaf.key(slot), leaf.value(slot).to_vec()))
        });
        prop_assert!(found.eq(model));
    }

    #[test]
    fn no_bytes_make_a_view_panic(
        header in proptest::collection::vec(any::<u8>(), TREE_HEADER_BYTES..200),
        tail in proptest::collection::vec(any::<u8>(), 0..200),
        is_plausible in any::<bool>(),
        key in any_key(),
    ) {
        let mut page = PageBuf::boxed();
        page.bytes_mut()[..header.len()].copy_from_slice(&header);
        let start = crate::page::PAGE_SIZE - tail.len();
        page.bytes_mut()[start..].copy_from_slice(&tail);
        page.bytes_mut()[6] = 3 + header[6] % 2;
        if is_plausible {
            page.put_u16(layout::SLOT_COUNT, u16::from(header[layout::SLOT_COUNT]) % 40);
            page.put_u16(layout::HEAP_START, 0x3F00);
            page.put_u16(layout::PREFIX_LENGTH, 1);
            page.put_u16(layout::LOW_OFFSET, 0x3F80);
            page.put_u16(layout::LOW_LENGTH, 5);
            page.put_u16(layout::HIGH_LENGTH, layout::INFINITE);
        }
        if let Ok(view) = TreePage::new(&page) {
            let _ = (view.verify(), view.search(&key), view.find_child(&key), view.covers(&key));
            let _ = (view.free_bytes(), view.used_bytes(), view.fits(key.len(), 3));
            for slot in 0..view.slot_count() + 1 {
                let _ = (view.key(slot), view.value(slot), view.child(slot));
                let _ = view.fits_replacement(slot, 7);
            }
            let _ = (view.entries(0..usize::MAX), view.merged_bytes(&view));
            let slot = view.split_slot(view.slot_count(), &key);
            let _ = (view.split_slot(0, &key), view.split_separator(slot, &key));
        }
    }
}

#[test]
fn ascending_keys_fill_their_pages() {
    let mut tree = SmallTree::new();
    for number in 0..20_000u32 {
        tree.insert(0, &number.to_be_bytes(), &[0; 60]);
    }
    let leaves = tree.leaves();
    let (_, full) = leaves.split_last().expect("a leaf");
    for leaf in full {
        // What the prefix saves, once the page has a high fence, is free again.
        assert!(
            leaf.free_bytes() < TREE_BODY_BYTES / 20,
            "{leaf:?} has {} free bytes",
            leaf.free_bytes()
        );
    }
}

/// Prints the nanoseconds of one call within `work`, which makes `calls` calls: the minimum of 100
/// runs.
#[allow(clippy::disallowed_methods)]
fn measure(name: &str, calls: usize, work: &mut dyn FnMut()) {
    let runs = (0..100).map(|_| {
        let start = std::time::Instant::now();
        work();
        start.elapsed().as_nanos() as f64 / calls as f64
    });
    println!("{name}: {:.1} ns", runs.fold(f64::INFINITY, f64::min));
}

fn time_search(name: &str, page: &PageBuf, keys: &[[u8; 9]]) {
    let rounds = 1;
    measure(&format!("{name}: view and search"), rounds * keys.len(), &mut || {
        for key in (0..rounds).flat_map(|_| keys) {
            let view = TreePage::new(page).expect("a tree page");
            std::hint::black_box(view.search(std::hint::black_box(key))).expect("it is there");
        }
    });
    measure(&format!("{name}: view, cover, search, value"), rounds * keys.len(), &mut || {
        for key in (0..rounds).flat_map(|_| keys) {
            let view = TreePage::new(page).expect("a tree page");
            assert_eq!(view.covers(std::hint::black_box(key)), Position::Inside);
            let slot = view.search(key).expect("it is there");
            std::hint::black_box(view.value(slot));
        }
    });
}

/// Run with `--ignored --nocapture`.
#[test]
#[ignore = "measures"]
fn timing() {
    let key = |n: u64| {
        let mut key = [1; 9];
        key[1..].copy_from_slice(&(n * 7).to_be_bytes());
        key
    };
    let mut entries = EntryList::new();
    for number in 0..100 {
        entries.push(&key(number), &[0; 120]);
    }
    let last = applied(&[leaf(b"", None, entries.as_entries())]);
    let (low, high) = (key(0), key(1000));
    let page = applied(&[leaf(&low, Some(&high), entries.as_entries())]);
    let mut random = 1u64;
    let mut next = || {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        random >> 33
    };
    // Enough keys that the processor cannot learn their order.
    let keys: Vec<[u8; 9]> = (0..32_768).map(|_| key(next() % 100)).collect();
    time_search("leaf of 100", &page, &keys);
    time_search("leaf of 100 without prefix", &last, &keys);

    let (rounds, value) = (500, [7u8; 100]);
    let mut copy = page.clone();
    let new_keys: Vec<Vec<u8>> =
        (0..20u64).map(|n| [&[1u8][..], &(n * 31 % 100 * 7 + 1).to_be_bytes()].concat()).collect();
    measure("copy a page", rounds, &mut || {
        for _ in 0..rounds {
            copy.bytes_mut().copy_from_slice(std::hint::black_box(page.bytes()));
        }
    });
    measure("20 × search and insert, copy a page once", rounds, &mut || {
        for _ in 0..rounds {
            copy.bytes_mut().copy_from_slice(page.bytes());
            for key in &new_keys {
                let slot = TreePage::new(&copy).expect("a tree page").lower_bound(key) as u16;
                let change = Change::TreeInsert { slot, key, value: &value };
                apply(&mut copy, page_id(ROOT), &change).expect("it fits");
            }
        }
    });
    measure("patch a value", rounds * 100, &mut || {
        for n in 0..rounds * 100 {
            let change = Change::TreePatchValue { slot: (n % 100) as u16, at: 3, bytes: &[1; 17] };
            apply(&mut copy, page_id(ROOT), &change).expect("it fits");
        }
    });
}
