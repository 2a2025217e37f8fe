//! Every kind of record drawn, and bodies of arbitrary bytes.

use expect_test::expect;
use proptest::prelude::*;

use super::*;
use crate::annotate::Annotated;
use crate::redo::Group;
use crate::tree::EntryList;

const PAGE: PageId = PageId::new(SpaceId(7), PageNo(3));
const INDEX: IndexId = IndexId(PAGE.to_u64());

const RECORD_HEADER: [(usize, &str); 5] =
    [(1, "kind"), (1, "reserved"), (2, "body length"), (4, "space"), (4, "page")];

/// Encodes the change, checks that it comes back, and draws its record.
fn draw(name: &str, change: Change<'_>, fields: &[(usize, &str)]) -> String {
    let page = if change.is_about_a_page() { PAGE } else { no_page(PAGE.space) };
    let mut group = GroupBuilder::new();
    change.encode(page, &mut group);
    let bytes = group.finish();
    let record = Group::parse(bytes).expect("a group").records().next();
    let record = record.expect("one record").expect("a good one");
    assert_eq!(Change::decode(&record), Ok(change));
    assert_eq!(record.kind, change.kind());
    let mut drawing = Annotated::new(&bytes[8..20 + record.body.len()]);
    format!("{name}\n{}", drawing.fields(&RECORD_HEADER).fields(fields).finish())
}

const ENTRIES: [(usize, &str); 6] = [
    (2, "entries: prefix length"),
    (2, "prefix"),
    (2, "suffix length"),
    (2, "value length"),
    (1, "suffix"),
    (3, "value"),
];

#[test]
fn tree_changes_are_laid_out_as_drawn() {
    let mut list = EntryList::with_prefix(b"ab");
    list.push(b"c", b"one");
    let (entries, right) = (list.as_entries(), PageNo(4));
    let (low, high) = (b"ab".as_slice(), Some(b"b".as_slice()));
    let init_fields = [
        (8, "index"),
        (1, "level"),
        (4, "right"),
        (2, "low length"),
        (2, "low"),
        (2, "high length"),
        (1, "high"),
    ];
    let absorb_fields = [(4, "right"), (2, "high length: +infinity")];
    let drawings = [
        draw(
            "TreeInit",
            Change::TreeInit { index: INDEX, level: 1, low, high, right, entries },
            &[&init_fields[..], &ENTRIES].concat(),
        ),
        draw(
            "TreeInsert",
            Change::TreeInsert { slot: 5, key: b"abc", value: b"one" },
            &[(2, "slot"), (2, "key length"), (3, "key"), (3, "value")],
        ),
        draw(
            "TreeSetValue",
            Change::TreeSetValue { slot: 5, value: b"two" },
            &[(2, "slot"), (3, "value")],
        ),
        draw(
            "TreePatchValue",
            Change::TreePatchValue { slot: 5, at: 16, bytes: &[1] },
            &[(2, "slot"), (2, "at"), (1, "bytes")],
        ),
        draw("TreeRemove", Change::TreeRemove { slot: 5 }, &[(2, "slot")]),
        draw(
            "TreeTruncate",
            Change::TreeTruncate { from_slot: 5, high: b"b", right },
            &[(2, "from slot"), (4, "right"), (1, "high")],
        ),
        draw(
            "TreeAbsorb",
            Change::TreeAbsorb { entries, high: None, right: PageNo::NONE },
            &[&absorb_fields[..], &ENTRIES].concat(),
        ),
        draw("TreeKill", Change::TreeKill, &[]),
        draw(
            "TreeInsertRun",
            Change::TreeInsertRun { slot: 5, entries },
            &[&[(2, "slot")], &ENTRIES[..]].concat(),
        ),
    ];
    expect![[r#"
        TreeInit
        0      02                        kind
        1      00                        reserved
        2      2000                      body length
        4      07000000                  space
        8      03000000                  page
        12     0300000007000000          index
        20     01                        level
        21     04000000                  right
        25     0200                      low length
        27     6162                      low
        29     0100                      high length
        31     62                        high
        32     0200                      entries: prefix length
        34     6162                      prefix
        36     0100                      suffix length
        38     0300                      value length
        40     63                        suffix
        41     6f6e65                    value
        TreeInsert
        0      03                        kind
        1      00                        reserved
        2      0a00                      body length
        4      07000000                  space
        8      03000000                  page
        12     0500                      slot
        14     0300                      key length
        16     616263                    key
        19     6f6e65                    value
        TreeSetValue
        0      04                        kind
        1      00                        reserved
        2      0500                      body length
        4      07000000                  space
        8      03000000                  page
        12     0500                      slot
        14     74776f                    value
        TreePatchValue
        0      05                        kind
        1      00                        reserved
        2      0500                      body length
        4      07000000                  space
        8      03000000                  page
        12     0500                      slot
        14     1000                      at
        16     01                        bytes
        TreeRemove
        0      06                        kind
        1      00                        reserved
        2      0200                      body length
        4      07000000                  space
        8      03000000                  page
        12     0500                      slot
        TreeTruncate
        0      07                        kind
        1      00                        reserved
        2      0700                      body length
        4      07000000                  space
        8      03000000                  page
        12     0500                      from slot
        14     04000000                  right
        18     62                        high
        TreeAbsorb
        0      08                        kind
        1      00                        reserved
        2      1200                      body length
        4      07000000                  space
        8      03000000                  page
        12     ffffffff                  right
        16     ffff                      high length: +infinity
        18     0200                      entries: prefix length
        20     6162                      prefix
        22     0100                      suffix length
        24     0300                      value length
        26     63                        suffix
        27     6f6e65                    value
        TreeKill
        0      09                        kind
        1      00                        reserved
        2      0000                      body length
        4      07000000                  space
        8      03000000                  page
        TreeInsertRun
        0      12                        kind
        1      00                        reserved
        2      0e00                      body length
        4      07000000                  space
        8      03000000                  page
        12     0500                      slot
        14     0200                      entries: prefix length
        16     6162                      prefix
        18     0100                      suffix length
        20     0300                      value length
        22     63                        suffix
        23     6f6e65                    value
    "#]]
    .assert_eq(&drawings.concat());
}

#[test]
fn other_changes_are_laid_out_as_drawn() {
    let drawings = [
        draw("Format", Change::Format { kind: PageKind::SpaceHeader }, &[(1, "page kind")]),
        draw(
            "WriteBytes",
            Change::WriteBytes { at: 40, bytes: b"1234" },
            &[(2, "at"), (4, "bytes")],
        ),
        draw(
            "AllocationSet",
            Change::AllocationSet { index: 9, state: PageState::Retired },
            &[(2, "index"), (1, "state")],
        ),
        draw(
            "UndoInit",
            Change::UndoInit { segment: 6, previous: PageNo::NONE },
            &[(4, "segment"), (4, "previous")],
        ),
        draw("UndoLink", Change::UndoLink { next: PageNo(4) }, &[(4, "next")]),
        draw("UndoAppend", Change::UndoAppend { record: b"rec" }, &[(3, "undo record")]),
        draw(
            "OverflowInit",
            Change::OverflowInit { next: PageNo(4), owner: TrxId(7), bytes: b"part" },
            &[(4, "next"), (8, "owner"), (4, "bytes")],
        ),
        draw("SpaceDropped", Change::SpaceDropped, &[]),
        draw(
            "Watermark",
            Change::Watermark { trx_id_limit: TrxId(1000), cts_limit: Cts(2000) },
            &[(8, "transaction id limit"), (8, "commit timestamp limit")],
        ),
        draw("WriterBegins", Change::WriterBegins { epoch: 3 }, &[(8, "epoch")]),
    ];
    expect![[r#"
        Format
        0      01                        kind
        1      00                        reserved
        2      0100                      body length
        4      07000000                  space
        8      03000000                  page
        12     01                        page kind
        WriteBytes
        0      0a                        kind
        1      00                        reserved
        2      0600                      body length
        4      07000000                  space
        8      03000000                  page
        12     2800                      at
        14     31323334                  bytes
        AllocationSet
        0      0b                        kind
        1      00                        reserved
        2      0300                      body length
        4      07000000                  space
        8      03000000                  page
        12     0900                      index
        14     02                        state
        UndoInit
        0      0c                        kind
        1      00                        reserved
        2      0800                      body length
        4      07000000                  space
        8      03000000                  page
        12     06000000                  segment
        16     ffffffff                  previous
        UndoLink
        0      0d                        kind
        1      00                        reserved
        2      0400                      body length
        4      07000000                  space
        8      03000000                  page
        12     04000000                  next
        UndoAppend
        0      0e                        kind
        1      00                        reserved
        2      0300                      body length
        4      07000000                  space
        8      03000000                  page
        12     726563                    undo record
        OverflowInit
        0      0f                        kind
        1      00                        reserved
        2      1000                      body length
        4      07000000                  space
        8      03000000                  page
        12     04000000                  next
        16     0700000000000000          owner
        24     70617274                  bytes
        SpaceDropped
        0      10                        kind
        1      00                        reserved
        2      0000                      body length
        4      07000000                  space
        8      ffffffff                  page
        Watermark
        0      11                        kind
        1      00                        reserved
        2      1000                      body length
        4      07000000                  space
        8      ffffffff                  page
        12     e803000000000000          transaction id limit
        20     d007000000000000          commit timestamp limit
        WriterBegins
        0      13                        kind
        1      00                        reserved
        2      0800                      body length
        4      07000000                  space
        8      ffffffff                  page
        12     0300000000000000          epoch
    "#]]
    .assert_eq(&drawings.concat());
}

#[test]
fn kinds_that_need_no_earlier_image_are_known() {
    let initial: Vec<u8> = (0..=255).filter(|&kind| Change::initialises_page(kind)).collect();
    assert_eq!(initial, [FORMAT, TREE_INIT, UNDO_INIT, OVERFLOW_INIT]);
}

#[test]
fn a_record_is_about_a_page_exactly_if_its_change_is() {
    let decode = |kind, page, body| Change::decode(&RawRecord { kind, page, body });
    let nowhere = no_page(PAGE.space);
    assert_eq!(decode(TREE_KILL, nowhere, &[]), Err(ChangeDamage::Page(TREE_KILL, nowhere)));
    assert_eq!(decode(SPACE_DROPPED, PAGE, &[]), Err(ChangeDamage::Page(SPACE_DROPPED, PAGE)));
    assert_eq!(decode(0, PAGE, &[]), Err(ChangeDamage::Kind(0)));
    assert_eq!(decode(20, PAGE, &[]), Err(ChangeDamage::Kind(20)));
    assert_eq!(decode(TREE_KILL, PAGE, &[0]), Err(ChangeDamage::Body(TREE_KILL)));
}

proptest! {
    #[test]
    fn what_is_decoded_from_any_bytes_encodes_to_them(
        kind in 0u8..20,
        body in proptest::collection::vec(prop_oneof![Just(0u8), Just(255), 0u8..9, any::<u8>()], 0..40),
    ) {
        for page in [PAGE, no_page(PAGE.space)] {
            let Ok(change) = Change::decode(&RawRecord { kind, page, body: &body }) else { continue };
            let mut group = GroupBuilder::new();
            change.encode(page, &mut group);
            let record = Group::parse(group.finish()).expect("a group").records().next();
            prop_assert_eq!(record, Some(Ok(RawRecord { kind, page, body: &body })));
        }
    }
}
