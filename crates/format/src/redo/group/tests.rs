//! The drawn layout, groups that end too early, and arbitrary bytes.

use expect_test::expect;
use proptest::prelude::*;

use super::*;
use crate::annotate::Annotated;

fn page(number: u32) -> PageId {
    PageId::new(SpaceId(7), PageNo(number))
}

#[test]
fn a_group_is_laid_out_as_drawn() {
    let mut group = GroupBuilder::new();
    group.push(1, page(3), |body| body.extend_from_slice(b"body"));
    group.push(16, page(u32::MAX), |_| {});
    let bytes = group.finish();
    let mut drawing = Annotated::new(bytes);
    drawing.fields(&[(4, "length"), (2, "records"), (1, "version"), (1, "reserved")]);
    for body in [4, 0] {
        drawing.fields(&[(1, "kind"), (1, "reserved"), (2, "body length")]);
        drawing.fields(&[(4, "space"), (4, "page"), (body, "body")]);
    }
    drawing.zeros_to(40);
    expect![[r#"
        0      28000000                  length
        4      0200                      records
        6      01                        version
        7      00                        reserved
        8      01                        kind
        9      00                        reserved
        10     0400                      body length
        12     07000000                  space
        16     03000000                  page
        20     626f6479                  body
        24     10                        kind
        25     00                        reserved
        26     0000                      body length
        28     07000000                  space
        32     ffffffff                  page
        36                               body
        36     zeros up to 40
    "#]]
    .assert_eq(&drawing.finish());
}

#[test]
fn a_header_that_nobody_writes_is_refused() {
    let mut group = GroupBuilder::new();
    group.push(1, page(3), |body| body.extend_from_slice(b"body"));
    let good = group.finish().to_vec();
    // Damages the group's header, or its records.
    let parse = |at: usize, bytes: &[u8]| {
        let mut damaged = good.clone();
        damaged[at..at + bytes.len()].copy_from_slice(bytes);
        Group::parse(&damaged).and_then(|group| {
            let records: Result<Vec<_>, _> = group.records().collect();
            records.map(|records| records.len())
        })
    };
    let damage = |at, bytes| parse(at, bytes).expect_err("damage");
    assert_eq!(parse(4, &[1]), Ok(1));
    assert_eq!(damage(6, &[2]), GroupDamage::Header("unknown version"));
    assert_eq!(damage(7, &[1]), GroupDamage::Header("unknown version"));
    assert_eq!(damage(0, &[25]), GroupDamage::Header("impossible length"));
    assert_eq!(damage(0, &[0, 0, 3]), GroupDamage::Header("impossible length"));
    assert_eq!(damage(0, &[16]), GroupDamage::Header("too short for a record"));
    assert_eq!(damage(0, &[32]), GroupDamage::Incomplete);
    assert_eq!(damage(10, &[200]), GroupDamage::Record(0));
    assert_eq!(damage(4, &[2]), GroupDamage::Record(1));
}

#[test]
#[should_panic(expected = "at least one record")]
fn an_empty_group_is_not_written() {
    GroupBuilder::new().finish();
}

#[test]
#[should_panic(expected = "over the limit")]
fn a_group_that_is_too_long_is_not_written() {
    let mut group = GroupBuilder::new();
    for number in 0..3 {
        group.push(1, page(number), |body| body.resize(body.len() + 50_000, 0));
    }
    group.finish();
}

proptest! {
    #[test]
    fn the_records_come_back_and_a_torn_group_is_incomplete(
        records in proptest::collection::vec(
            (any::<u8>(), any::<u64>(), proptest::collection::vec(any::<u8>(), 0..300)),
            1..20,
        ),
        behind in proptest::collection::vec(any::<u8>(), 0..50),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut group = GroupBuilder::new();
        group.push(9, page(9), |body| body.push(9));
        group.finish();
        group.clear();
        prop_assert!(group.is_empty());
        for (kind, page, body) in &records {
            let written = group.push(*kind, PageId::from_u64(*page), |into| into.extend_from_slice(body));
            prop_assert_eq!(written, &body[..]);
        }
        let mut bytes = group.finish().to_vec();
        let length = bytes.len();
        prop_assert!(length.is_multiple_of(8));
        bytes.extend_from_slice(&behind);
        let group = Group::parse(&bytes).expect("a group");
        prop_assert_eq!(group.length_bytes(), length as u64);
        let found: Vec<_> = group.records().map(|record| record.expect("a record")).collect();
        let expected: Vec<_> = records
            .iter()
            .map(|(kind, page, body)| RawRecord { kind: *kind, page: PageId::from_u64(*page), body })
            .collect();
        prop_assert_eq!(found, expected);
        let torn = &bytes[..cut.index(length)];
        prop_assert_eq!(Group::parse(torn), Err(GroupDamage::Incomplete));
    }

    #[test]
    fn no_bytes_make_a_group_panic(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..200),
        length in 0u8..25,
    ) {
        if bytes.len() >= 8 {
            bytes[..4].copy_from_slice(&(u32::from(length) * 8).to_le_bytes());
            bytes[6..8].copy_from_slice(&[GROUP_VERSION, 0]);
        }
        if let Ok(group) = Group::parse(&bytes) {
            let mut records = group.records();
            while let Some(record) = records.next() {
                prop_assert!(records.position() <= bytes.len());
                if record.is_err() {
                    prop_assert_eq!(records.next(), None);
                }
            }
        }
    }
}
