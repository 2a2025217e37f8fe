//! The bytes of a footer, and a check that it has the same content as the index in memory.

use std::collections::BTreeMap;

use expect_test::expect;
use firn_base::disk::OpenMode;
use firn_base::{Environment, PageId, PageNo};
use firn_format::redo::{Change, Group, GroupBuilder};
use proptest::prelude::*;

use super::*;
use crate::local::log::segment::{Segment, SegmentHeader};

const FIRST: Lsn = Lsn(0x1e88);

fn segment() -> Segment {
    let header = SegmentHeader {
        stream: firn_base::LogStreamId(0),
        database: crate::local::DatabaseId([0; 16]),
        blocks: 4096,
        first: FIRST,
        incarnation: 0,
        watermarks: Watermarks::default(),
        entry_sectors: 0,
    };
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("unused");
    let file = Environment::system().disk.open(&path, OpenMode::CreateNew).unwrap();
    Segment::new(&header, path, file)
}

fn page(number: u32) -> PageId {
    PageId::new(SpaceId(number >> 4), PageNo(number & 15))
}

/// An index of groups, each of which changes some pages, and the positions of the groups.
fn indexed(groups: &[Vec<u32>]) -> (PageIndex, Vec<Lsn>) {
    let (segment, mut index, mut starts) = (segment(), PageIndex::default(), Vec::new());
    let mut position = FIRST.advance(16);
    for pages in groups {
        let mut builder = GroupBuilder::new();
        for number in pages {
            builder.push(1, page(*number), |body| body.extend([0; 20]));
        }
        let bytes = builder.finish().to_vec();
        let group = Group::parse(&bytes).unwrap();
        index.add_group(&segment, position, &group, &mut Vec::new()).unwrap();
        starts.push(position);
        position = position.advance(group.length_bytes());
    }
    (index, starts)
}

#[test]
fn a_footer_is_laid_out_as_drawn() {
    let (mut index, _) = indexed(&[vec![0x17], vec![0x17, 0x20], vec![0x17]]);
    index.dropped.push((SpaceId(9), 21));
    index.watermarks = Watermarks { trx_id_limit: TrxId(0x1234), cts_limit: Cts(0x5678) };
    let (head, body) = encode(&index, FIRST, 5);
    let rows = head.encode();
    let rows = rows[..80].chunks(16);
    let rows = rows.map(|row| row.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    expect![[r#"
        4649524e494458000100000005000000
        881e000000000000981e000000000000
        301f0000000000003412000000000000
        78560000000000000200000001000000
        1200000002000000159b1c9ab555fbd4"#]]
    .assert_eq(&rows.collect::<Vec<_>>().join("\n"));
    // page 1:7, first, length, list | page 2:0 … | drop of space 9 at 21 | list of 1:7
    expect!["[87, 80, 80, 80, 10, 02, 13, 02, f9, ff, ff, ff, 0f, 07, 09, 00, 09, 15, 05, 09]"]
        .assert_eq(&format!("{body:02x?}"));
}

#[test]
fn numbers_take_seven_bits_a_byte() {
    for number in [0, 1, 127, 128, 16383, 16384, u64::from(u32::MAX), u64::MAX] {
        let mut bytes = Vec::new();
        put_number(&mut bytes, number);
        let mut input = bytes.as_slice();
        assert_eq!(take_number(&mut input), Some(number));
        assert!(input.is_empty());
    }
    assert_eq!(take_number(&mut [0xff; 9].as_slice()), None);
    let mut too_large = [0xff; 10];
    too_large[9] = 2;
    assert_eq!(take_number(&mut too_large.as_slice()), None);
}

#[test]
fn a_head_is_of_one_segment_and_whole() {
    let (head, _) = encode(&indexed(&[vec![1]]).0, FIRST, 1);
    assert_eq!(FooterHead::decode(&head.encode(), FIRST), Some(head));
    assert_eq!(FooterHead::decode(&head.encode(), Lsn(8)), None);
    for bit in 0..HEAD_BYTES * 8 {
        let mut bytes = head.encode();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(FooterHead::decode(&bytes, FIRST), None, "bit {bit}");
    }
}

#[test]
fn special_records_are_noted() {
    let (segment, mut index, mut told) = (segment(), PageIndex::default(), Vec::new());
    let nowhere = PageId::new(SpaceId(9), PageNo::NONE);
    let mut builder = GroupBuilder::new();
    Change::SpaceDropped.encode(nowhere, &mut builder);
    Change::Watermark { trx_id_limit: TrxId(5), cts_limit: Cts(6) }.encode(nowhere, &mut builder);
    let bytes = builder.finish().to_vec();
    let group = Group::parse(&bytes).unwrap();
    index.add_group(&segment, FIRST, &group, &mut told).unwrap();
    let end = FIRST.advance(group.length_bytes());
    assert_eq!(told, [crate::local::log::index::Told::Dropped(SpaceId(9), end)]);
    assert_eq!(index.watermarks, Watermarks { trx_id_limit: TrxId(5), cts_limit: Cts(6) });
    let mut builder = GroupBuilder::new();
    builder.push(250, nowhere, |_| {});
    let unknown = builder.finish().to_vec();
    let unknown = Group::parse(&unknown).unwrap();
    assert!(index.add_group(&segment, end, &unknown, &mut told).is_err());
}

proptest! {
    #[test]
    fn a_footer_tells_what_the_index_did(
        groups in prop::collection::vec(prop::collection::vec(0u32..40, 1..5), 1..120)
    ) {
        let (index, starts) = indexed(&groups);
        let mut model: BTreeMap<PageId, Vec<Lsn>> = BTreeMap::new();
        for (pages, start) in groups.iter().zip(&starts) {
            for number in pages {
                let list = model.entry(page(*number)).or_default();
                if list.last() != Some(start) {
                    list.push(*start);
                }
            }
        }
        let (head, body) = encode(&index, FIRST, 5);
        let head = FooterHead::decode(&head.encode(), FIRST).unwrap();
        let summary = Summary::decode(&head, &body[..head.summary_bytes()]).unwrap();
        prop_assert_eq!(&summary.pages, &index.summaries());
        let pages: Vec<_> = summary.pages.iter().map(|at| PageId::from_u64(at.page)).collect();
        prop_assert_eq!(pages, model.keys().copied().collect::<Vec<_>>());
        let stored = StoredIndex::decode(&head, body).unwrap();
        for number in 0..50 {
            let units = stored.starts(page(number).to_u64()).unwrap();
            prop_assert_eq!(&units, &index.starts(page(number).to_u64()));
            let lsns: Vec<_> = units.iter().map(|at| FIRST.advance(u64::from(*at) * 8)).collect();
            prop_assert_eq!(lsns, model.get(&page(number)).cloned().unwrap_or_default());
        }
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(
        mut bytes in prop::collection::vec(0u8.., HEAD_BYTES),
        body in prop::collection::vec(0u8.., 0..200),
        split in 0usize..200,
    ) {
        bytes[..10].copy_from_slice(b"FIRNIDX\0\x01\0");
        bytes[10..12].fill(0);
        bytes[16..24].copy_from_slice(&FIRST.0.to_le_bytes());
        let split = split.min(body.len());
        let numbers = [
            4,
            1,
            split as u32,
            (body.len() - split) as u32,
            crc32c::crc32c(&body[..split]),
            crc32c::crc32c(&body[split..]),
        ];
        for (place, number) in bytes[56..80].chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        let checksum = crc32c::crc32c(&bytes[..508]);
        bytes[508..].copy_from_slice(&checksum.to_le_bytes());
        let bytes: [u8; HEAD_BYTES] = bytes.try_into().unwrap();
        let head = FooterHead::decode(&bytes, FIRST).unwrap();
        if let Some(stored) = StoredIndex::decode(&head, body) {
            let _ = stored.starts(stored.summary.pages[0].page);
        }
    }
}
