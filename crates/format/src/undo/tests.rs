//! Drawn records, the smallest old payload, and arbitrary bytes.

use expect_test::expect;
use firn_base::{Cts, IndexId, PageId, PageNo, SpaceId, TrxId};
use proptest::prelude::*;

use super::*;
use crate::annotate::{Annotated, PAGE_HEADER};
use crate::page::{PageBuf, PageKind};
use crate::redo::{ApplyError, Change, apply};
use crate::space::UNDO_SPACE;

const PAGE: PageId = PageId::new(UNDO_SPACE, PageNo(9));

fn version() -> RecordVersion {
    RecordVersion { trx: TrxId(5), undo: UndoPointer::new(PageNo(8), 100, 0), deleted: false }
}

fn record(operation: UndoOperation<'_>) -> UndoRecord<'_> {
    let previous_in_trx = UndoPointer::new(PageNo(9), 48, 0);
    UndoRecord { trx: TrxId(0x0A), previous_in_trx, operation }
}

fn encoded(operation: UndoOperation<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    record(operation).encode(&mut bytes);
    assert_eq!(UndoRecord::parse(&bytes), Ok(record(operation)));
    bytes
}

const RECORD_HEADER: [(usize, &str); 5] = [
    (2, "length"),
    (1, "kind"),
    (1, "flags"),
    (8, "transaction"),
    (8, "previous of the transaction: flags, offset, page"),
];

fn draw(name: &str, operation: UndoOperation<'_>, fields: &[(usize, &str)]) -> String {
    let bytes = encoded(operation);
    let drawing = Annotated::new(&bytes).fields(&RECORD_HEADER).fields(fields).finish();
    format!("{name}\n{drawing}")
}

#[test]
fn records_are_laid_out_as_drawn() {
    let (index, key) = (IndexId(0x0000_0007_0000_0002), b"key".as_slice());
    let mut scratch = Vec::new();
    let payload = OldPayload::smallest(b"0123456789abcdef+-", b"01x3456789abcdef", &mut scratch);
    let (space, first_page) = (SpaceId(7), PageNo(33));
    let update = |payload| {
        let deletes = payload == OldPayload::Same;
        UndoOperation::Update { index, key, previous: version(), payload, deletes }
    };
    let update_fields = [(8, "index"), (17, "previous version"), (2, "key length"), (3, "key")];
    let diff_fields = [
        (2, "old length"),
        (2, "at"),
        (2, "length"),
        (1, "old byte"),
        (2, "at"),
        (2, "length"),
        (2, "old bytes"),
    ];
    let drawings = [
        draw("Insert", UndoOperation::Insert { index, key }, &[(8, "index"), (3, "key")]),
        draw("Update, diff", update(payload), &[&update_fields[..], &diff_fields].concat()),
        draw("Update, same, deletes", update(OldPayload::Same), &update_fields),
        draw(
            "Update, whole",
            update(OldPayload::Whole(b"old")),
            &[&update_fields[..], &[(3, "old payload")]].concat(),
        ),
        draw(
            "OverflowWritten",
            UndoOperation::OverflowWritten { space, first_page },
            &[(4, "space"), (4, "first page")],
        ),
        draw(
            "OverflowReplaced",
            UndoOperation::OverflowReplaced { space, first_page, owner: TrxId(5) },
            &[(4, "space"), (4, "first page"), (8, "owner")],
        ),
        draw("SpaceCreated", UndoOperation::SpaceCreated { space }, &[(4, "space")]),
        draw("SpaceAbandoned", UndoOperation::SpaceAbandoned { space }, &[(4, "space")]),
        draw("Committed", UndoOperation::Committed { cts: Cts(77) }, &[(8, "commit timestamp")]),
        draw("RolledBack", UndoOperation::RolledBack, &[]),
        draw("Prepared", UndoOperation::Prepared { xid: b"xid" }, &[(3, "xid")]),
        draw("RollingBack", UndoOperation::RollingBack, &[]),
        draw(
            "InsertRun",
            UndoOperation::InsertRun { index, first: b"key", last: b"keys" },
            &[(8, "index"), (2, "first length"), (3, "first key"), (4, "last key")],
        ),
    ];
    expect![[r#"
        Insert
        0      1f00                      length
        2      01                        kind
        3      00                        flags
        4      0a00000000000000          transaction
        12     0000300009000000          previous of the transaction: flags, offset, page
        20     0200000007000000          index
        28     6b6579                    key
        Update, diff
        0      3f00                      length
        2      02                        kind
        3      02                        flags
        4      0a00000000000000          transaction
        12     0000300009000000          previous of the transaction: flags, offset, page
        20     0200000007000000          index
        28     0500000000000000000064000800000000  previous version
        45     0300                      key length
        47     6b6579                    key
        50     1200                      old length
        52     0200                      at
        54     0100                      length
        56     32                        old byte
        57     1000                      at
        59     0200                      length
        61     2b2d                      old bytes
        Update, same, deletes
        0      3200                      length
        2      02                        kind
        3      81                        flags
        4      0a00000000000000          transaction
        12     0000300009000000          previous of the transaction: flags, offset, page
        20     0200000007000000          index
        28     0500000000000000000064000800000000  previous version
        45     0300                      key length
        47     6b6579                    key
        Update, whole
        0      3500                      length
        2      02                        kind
        3      00                        flags
        4      0a00000000000000          transaction
        12     0000300009000000          previous of the transaction: flags, offset, page
        20     0200000007000000          index
        28     0500000000000000000064000800000000  previous version
        45     0300                      key length
        47     6b6579                    key
        50     6f6c64                    old payload
        OverflowWritten
        0      1c00                      length
        2      03                        kind
        3      00                        flags
        4      0a00000000000000          transaction
        12     0000300009000000          previous of the transaction: flags, offset, page
        20     07000000                  space
        24     21000000                  first page
        OverflowReplaced
        0      2400                      length
        2      04                        kind
        3      00                        flags
        4      0a00000000000000          transaction
        12     0000300009000000          previous of the transaction: flags, offset, page
        20     07000000                  space
        24     21000000                  first page
        28     0500000000000000          owner
        SpaceCreated
        0      1800                      length
        2      05                        kind
        3      00                        flags
        4      0a00000000000000          transaction
        12     0000300009000000          previous of the transaction: flags, offset, page
        20     07000000                  space
        SpaceAbandoned
        0      1800                      length
        2      06                        kind
        3      00                        flags
        4      0a00000000000000          transaction
        12     0000300009000000          previous of the transaction: flags, offset, page
        20     07000000                  space
        Committed
        0      1c00                      length
        2      07                        kind
        3      00                        flags
        4      0a00000000000000          transaction
        12     0000300009000000          previous of the transaction: flags, offset, page
        20     4d00000000000000          commit timestamp
        RolledBack
        0      1400                      length
        2      08                        kind
        3      00                        flags
        4      0a00000000000000          transaction
        12     0000300009000000          previous of the transaction: flags, offset, page
        Prepared
        0      1700                      length
        2      09                        kind
        3      00                        flags
        4      0a00000000000000          transaction
        12     0000300009000000          previous of the transaction: flags, offset, page
        20     786964                    xid
        RollingBack
        0      1400                      length
        2      0a                        kind
        3      00                        flags
        4      0a00000000000000          transaction
        12     0000300009000000          previous of the transaction: flags, offset, page
        InsertRun
        0      2500                      length
        2      0b                        kind
        3      00                        flags
        4      0a00000000000000          transaction
        12     0000300009000000          previous of the transaction: flags, offset, page
        20     0200000007000000          index
        28     0300                      first length
        30     6b6579                    first key
        33     6b657973                  last key
    "#]]
    .assert_eq(&drawings.concat());
}

fn stream() -> Box<PageBuf> {
    let mut page = PageBuf::boxed();
    let changes = [
        Change::UndoInit { segment: 3, previous: PageNo(8) },
        Change::UndoAppend { record: &encoded(UndoOperation::RolledBack) },
        Change::UndoAppend { record: &encoded(UndoOperation::Committed { cts: Cts(77) }) },
        Change::UndoLink { next: PageNo(10) },
    ];
    for change in &changes {
        apply(&mut page, PAGE, change).expect("a change that fits");
    }
    page
}

#[test]
fn an_undo_page_is_laid_out_as_drawn() {
    let page = stream();
    let mut drawing = Annotated::new(page.bytes());
    drawing.fields(&PAGE_HEADER).fields(&[
        (4, "segment"),
        (4, "previous"),
        (4, "next"),
        (2, "end of the records"),
        (2, "last record"),
    ]);
    drawing.fields(&RECORD_HEADER).fields(&RECORD_HEADER).field(8, "commit timestamp");
    drawing.zeros_to(16384);
    expect![[r#"
        0      00000000                  checksum
        4      0100                      version
        6      06                        kind
        7      00                        flags
        8      01000000                  space
        12     09000000                  page
        16     0000000000000000          LSN
        24     0000                      log stream
        26     000000000000              reserved
        32     03000000                  segment
        36     08000000                  previous
        40     0a000000                  next
        44     6000                      end of the records
        46     4400                      last record
        48     1400                      length
        50     08                        kind
        51     00                        flags
        52     0a00000000000000          transaction
        60     0000300009000000          previous of the transaction: flags, offset, page
        68     1c00                      length
        70     07                        kind
        71     00                        flags
        72     0a00000000000000          transaction
        80     0000300009000000          previous of the transaction: flags, offset, page
        88     4d00000000000000          commit timestamp
        96     zeros up to 16384
    "#]]
    .assert_eq(&drawing.finish());
}

#[test]
fn a_stream_is_read_forward_and_at_an_offset() {
    let page = stream();
    let view = UndoPage::new(&page).expect("an undo page");
    let committed = record(UndoOperation::Committed { cts: Cts(77) });
    let found: Vec<_> = view.records().map(|found| found.expect("a record")).collect();
    assert_eq!(found, [(48, record(UndoOperation::RolledBack)), (68, committed)]);
    assert_eq!(view.last_record(), Some(68));
    assert_eq!(view.record_at(68), Ok(committed));
    assert_eq!(view.records_from(68).count(), 1);
    assert_eq!((view.segment(), view.previous(), view.next()), (3, PageNo(8), PageNo(10)));
    let end = view.end_pointer(0);
    assert_eq!((end.page_id(), end.offset(), view.free_bytes()), (PAGE, 96, 16384 - 96));
    for offset in [0, 47, 96, 5000, u16::MAX] {
        assert!(view.record_at(offset).is_err(), "{offset}");
    }
}

#[test]
fn a_full_undo_page_refuses() {
    let mut page = stream();
    let long = encoded(UndoOperation::Prepared { xid: &[1; 4000] });
    let change = Change::UndoAppend { record: &long };
    let fitting = (0..10).take_while(|_| apply(&mut page, PAGE, &change).is_ok()).count();
    assert_eq!(fitting, (16384 - 96) / long.len());
    assert_eq!(apply(&mut page, PAGE, &change), Err(ApplyError::NoRoom { page: PAGE }));
    let view = UndoPage::new(&page).expect("an undo page");
    assert_eq!(view.records().filter(Result::is_ok).count(), 2 + fitting);
}

#[test]
fn a_segment_header_is_written_field_by_field() {
    let mut header = UndoSegmentHeader {
        segment: 3,
        state: SegmentState::Active,
        first_page: PageNo(8),
        last_page: PageNo(9),
        trx: TrxId(10),
        first_record: UndoPointer::new(PageNo(9), 48, 0),
        purged: UndoPointer::new(PageNo(8), 500, 0),
    };
    let mut page = PageBuf::boxed();
    let encoded = header.encode();
    let format = Change::Format { kind: PageKind::UndoHeader };
    for change in
        [format, Change::WriteBytes { at: UndoSegmentHeader::ENCODED_AT, bytes: &encoded }]
    {
        apply(&mut page, PAGE, &change).expect("a change that fits");
    }
    assert_eq!(UndoSegmentHeader::read(&page), Some(header));
    let mut drawing = Annotated::new(page.bytes());
    drawing.fields(&PAGE_HEADER).fields(&[
        (4, "segment"),
        (1, "state"),
        (3, "zero"),
        (4, "first page"),
        (4, "last page"),
        (8, "transaction"),
        (8, "its first record"),
        (8, "purged up to"),
    ]);
    drawing.zeros_to(16384);
    expect![[r#"
        0      00000000                  checksum
        4      0100                      version
        6      05                        kind
        7      00                        flags
        8      01000000                  space
        12     09000000                  page
        16     0000000000000000          LSN
        24     0000                      log stream
        26     000000000000              reserved
        32     03000000                  segment
        36     01                        state
        37     000000                    zero
        40     08000000                  first page
        44     09000000                  last page
        48     0a00000000000000          transaction
        56     0000300009000000          its first record
        64     0000f40108000000          purged up to
        72     zeros up to 16384
    "#]]
    .assert_eq(&drawing.finish());

    header.first_page = PageNo(18);
    header.last_page = PageNo(19);
    header.purged = UndoPointer::new(PageNo(18), 510, 0);
    for field in [
        UndoSegmentHeader::write_first_page(header.first_page),
        UndoSegmentHeader::write_last_page(header.last_page),
        UndoSegmentHeader::write_purged(header.purged),
    ] {
        apply(&mut page, PAGE, &Change::from(&field)).expect("a field");
    }
    assert_eq!(UndoSegmentHeader::read(&page), Some(header));
}

#[test]
fn a_pointer_keeps_its_parts() {
    let pointer = UndoPointer::new(PageNo(0xFFFF_FFFE), 0xABCD, UndoPointer::NO_EARLIER_VERSION);
    assert_eq!(pointer.page_id(), PageId::new(UNDO_SPACE, PageNo(0xFFFF_FFFE)));
    assert_eq!((pointer.offset(), pointer.flags()), (0xABCD, 1));
    assert!(pointer.has_no_earlier_version() && !pointer.is_none());
    assert!(UndoPointer::NONE.is_none() && UndoPointer::new(PageNo(0), 0, 1).is_none());
}

fn payloads() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let bytes = || proptest::collection::vec(any::<u8>(), 0..300);
    let edits = proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6);
    prop_oneof![
        (bytes(), bytes()),
        (bytes(), edits, 0usize..320).prop_map(|(old, edits, length)| {
            let mut new = old.clone();
            if length > 40 {
                new.resize(length, 1);
            }
            for (at, byte) in edits {
                if !new.is_empty() {
                    let at = at.index(new.len());
                    new[at] = byte;
                }
            }
            (old, new)
        }),
    ]
}

proptest! {
    #[test]
    fn the_old_payload_comes_back((old, new) in payloads()) {
        let mut scratch = Vec::new();
        let payload = OldPayload::smallest(&old, &new, &mut scratch);
        let (index, previous, deletes) = (IndexId(2), version(), old.len() % 2 == 0);
        let operation = UndoOperation::Update { index, key: b"k", previous, payload, deletes };
        let bytes = encoded(operation);
        prop_assert!(bytes.len() <= 20 + 8 + 17 + 2 + 1 + old.len());
        let UndoOperation::Update { payload, .. } = UndoRecord::parse(&bytes).expect("a record").operation
        else { panic!("an update") };
        let mut restored = b"rest".to_vec();
        payload.restore(&new, &mut restored).expect("they go together");
        prop_assert_eq!(restored, old);
    }

    #[test]
    fn no_bytes_make_a_record_panic(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..120),
        kind in 0u8..12,
        flags in prop_oneof![0u8..4, 128u8..132, any::<u8>()],
        new in proptest::collection::vec(any::<u8>(), 0..20),
    ) {
        if bytes.len() >= 4 {
            bytes[0] = bytes.len() as u8;
            bytes[1] = 0;
            bytes[2] = kind;
            bytes[3] = flags;
        }
        if let Ok(record) = UndoRecord::parse(&bytes) {
            let mut again = Vec::new();
            record.encode(&mut again);
            if !matches!(record.operation, UndoOperation::Update { .. }) {
                prop_assert_eq!(&again, &bytes);
            }
            prop_assert_eq!(UndoRecord::parse(&again), Ok(record));
            if let UndoOperation::Update { payload, .. } = record.operation {
                let _ = payload.restore(&new, &mut Vec::new());
            }
        }
    }

    #[test]
    fn no_bytes_make_a_page_panic(
        bytes in proptest::collection::vec(any::<u8>(), 48..400),
        offset in any::<u16>(),
        end in 0u16..500,
    ) {
        let mut page = PageBuf::boxed();
        page.bytes_mut()[..bytes.len()].copy_from_slice(&bytes);
        page.bytes_mut()[6] = PageKind::Undo as u8;
        page.put_u16(super::page::END, if offset % 2 == 0 { end } else { offset });
        if let Some(view) = UndoPage::new(&page) {
            let _ = (view.records().count(), view.records_from(offset).count());
            let _ = (view.record_at(offset), view.record_at(end), view.last_record());
        }
    }
}
