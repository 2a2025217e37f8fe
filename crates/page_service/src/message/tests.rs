//! The bytes of the messages.

use std::fmt::Write;

use expect_test::{Expect, expect};
use firn_base::PageNo;
use proptest::prelude::*;

use super::*;

fn page(space: u32, number: u32) -> PageId {
    PageId::new(SpaceId(space), PageNo(number))
}

fn check_bytes(bytes: &[u8], expected: &Expect) {
    let mut text = String::new();
    for line in bytes.chunks(16) {
        let hex: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(text, "{}", hex.join(" ")).unwrap();
    }
    expected.assert_eq(&text);
    check_any_bytes(bytes);
}

#[test]
fn requests_have_these_bytes() {
    let read = Request::Read(ReadRequest {
        holder: 0xabcd,
        patience: Duration::from_millis(10_000),
        pages: vec![
            PageRequest { page: page(1, 2), version: PageRead::Latest { at_least: Lsn(0x1000) } },
            PageRequest { page: page(3, 4), version: PageRead::AsOf(Lsn(0x2008)) },
        ],
    });
    check_bytes(
        &read.encode(),
        &expect![[r#"
        01 01 cd ab 00 00 00 00 00 00 10 27 00 00 02 00
        00 00 01 00 00 00 02 00 00 00 00 00 10 00 00 00
        00 00 00 03 00 00 00 04 00 00 00 01 08 20 00 00
        00 00 00 00
    "#]],
    );
    let lease = |number, position, reader: &str| LeaseRequest {
        number,
        position: Lsn(position),
        reader: reader.to_owned(),
    };
    let hold = Request::Hold(HoldRequest {
        holder: 0xabcd,
        round: 7,
        timeout: Duration::from_secs(20),
        leases: vec![lease(1, 0x40, "replica"), lease(2, 0x48, "")],
    });
    check_bytes(
        &hold.encode(),
        &expect![[r#"
        01 02 cd ab 00 00 00 00 00 00 07 00 00 00 00 00
        00 00 20 4e 00 00 02 00 00 00 01 00 00 00 00 00
        00 00 40 00 00 00 00 00 00 00 07 00 72 65 70 6c
        69 63 61 02 00 00 00 00 00 00 00 48 00 00 00 00
        00 00 00 00 00
    "#]],
    );
    check_bytes(
        &Request::Applied(vec![page(1, 0)]).encode(),
        &expect![[r#"
        01 03 01 00 00 00 01 00 00 00 00 00 00 00
    "#]],
    );
    check_bytes(
        &Request::Spaces.encode(),
        &expect![[r#"
        01 04
    "#]],
    );
}

#[test]
fn answers_have_these_bytes() {
    let failures = [
        Failure::Absent,
        Failure::Damaged { place: "file".to_owned(), reason: "bad".to_owned() },
        Failure::TooOld { kept_from: Lsn(0x100) },
        Failure::Unavailable { reason: "late".to_owned() },
        Failure::WrongChunk,
        Failure::OldEpoch { epoch: 1, current: 2 },
        Failure::StoreDamaged { place: "map".to_owned(), reason: "gone".to_owned() },
        Failure::Unreadable { place: "disk".to_owned(), reason: "5".to_owned() },
        Failure::AbsentUnheld,
    ];
    let mut writer = PagesWriter::new(true, 0);
    failures.iter().enumerate().for_each(|(index, failure)| writer.put_failure(index, failure));
    check_bytes(
        &writer.finish(),
        &expect![[r#"
        01 05 01 09 00 00 00 00 00 00 00 01 01 00 00 00
        02 04 00 66 69 6c 65 03 00 62 61 64 02 00 00 00
        03 00 01 00 00 00 00 00 00 03 00 00 00 04 04 00
        6c 61 74 65 04 00 00 00 05 05 00 00 00 06 01 00
        00 00 00 00 00 00 02 00 00 00 00 00 00 00 06 00
        00 00 07 03 00 6d 61 70 04 00 67 6f 6e 65 07 00
        00 00 08 04 00 64 69 73 6b 01 00 35 08 00 00 00
        09
    "#]],
    );
    let mut writer = PagesWriter::new(false, 0);
    writer.put_image(5, Lsn(0x3000), &[0xee; PAGE_SIZE]);
    check_bytes(
        &writer.finish()[..32],
        &expect![[r#"
        01 05 00 01 00 00 00 05 00 00 00 00 00 30 00 00
        00 00 00 00 ee ee ee ee ee ee ee ee ee ee ee ee
    "#]],
    );
    let held = [
        LeaseAnswer { number: 1, refused: None },
        LeaseAnswer { number: 2, refused: Some(Lsn(0x50)) },
    ];
    check_bytes(
        &encode_held(&held),
        &expect![[r#"
        01 06 02 00 00 00 01 00 00 00 00 00 00 00 00 02
        00 00 00 00 00 00 00 01 50 00 00 00 00 00 00 00
    "#]],
    );
    check_bytes(
        &encode_positions(&[Lsn(0x60)]),
        &expect![[r#"
        01 07 01 00 00 00 60 00 00 00 00 00 00 00
    "#]],
    );
    check_bytes(
        &encode_spaces(&[SpaceId(1), SpaceId(0x0203)]),
        &expect![[r#"
        01 08 02 00 00 00 01 00 00 00 03 02 00 00
    "#]],
    );
}

#[test]
fn images_are_read_in_place() {
    let mut writer = PagesWriter::new(false, 0);
    assert!(writer.is_empty());
    writer.put_image(5, Lsn(8), &[7; PAGE_SIZE]);
    writer.put_failure(0, &Failure::Absent);
    let bytes = writer.finish();
    check_any_bytes(&bytes);
    let pages = Pages::decode(&bytes).unwrap();
    let image = PageAnswer::Image { as_of: Lsn(8), image: &[7; PAGE_SIZE] };
    assert_eq!(pages.answers, [(5, image), (0, PageAnswer::Failed(Failure::Absent))]);
    assert!(!pages.has_waited);
}

#[test]
fn other_versions_and_long_texts_are_refused() {
    let error = Request::decode(&[9, 4]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the other node speaks version 9 of page messages, this one speaks 1"
    );
    let long = "ä".repeat(400);
    let mut writer = PagesWriter::new(false, 0);
    writer.put_failure(0, &Failure::Unavailable { reason: long });
    let bytes = writer.finish();
    let pages = Pages::decode(&bytes).unwrap();
    let PageAnswer::Failed(Failure::Unavailable { reason }) = &pages.answers[0].1 else {
        panic!("{pages:?}");
    };
    assert_eq!(reason.len(), 512, "a text is cut, between two characters");
}

proptest! {
    #[test]
    fn any_bytes_are_refused_or_written_back(
        kind in 0u8..10,
        rest in proptest::collection::vec(prop_oneof![0u8..4, any::<u8>()], 0..80),
    ) {
        check_any_bytes(&[&[VERSION, kind], &rest[..]].concat());
        check_any_bytes(&rest);
    }

    #[test]
    fn a_message_that_ends_early_is_refused(cut in 0usize..58) {
        let leases = vec![LeaseRequest { number: 1, position: Lsn(8), reader: "reader".to_owned() }];
        let timeout = Duration::from_secs(1);
        let bytes = Request::Hold(HoldRequest { holder: 1, round: 1, timeout, leases }).encode();
        prop_assert!(Request::decode(&bytes[..cut.min(bytes.len() - 1)]).is_err());
    }
}
