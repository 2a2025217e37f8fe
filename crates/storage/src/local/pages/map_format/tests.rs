use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

const DATABASE: DatabaseId = DatabaseId([0xdb; 16]);
const AT: BatchPosition = BatchPosition { generation: 7, number: 3 };

fn batch() -> Batch {
    let page = |number| PageId::new(SpaceId(5), PageNo(number));
    let version = |lsn, since, slot, is_first| Version {
        lsn: Lsn(lsn),
        since: Lsn(since),
        slot: SlotNo(slot),
        is_first,
    };
    Batch {
        kind: BatchKind::Change,
        applied: Lsn(0x1000),
        horizon: Lsn(0x0f00),
        puts: vec![
            (page(1), version(0x1200, 0x1100, 0x11, true)),
            (page(2), version(0x1180, 0x1008, 0x12, false)),
        ],
        drops: vec![(SpaceId(9), Lsn(0x1240))],
    }
}

/// Field by field: offset, bytes, name.
fn check(bytes: &[u8], fields: &[(&str, usize)], expected: &Expect) {
    let mut shown = String::new();
    let mut position = 0;
    for (name, length) in fields {
        let field = &bytes[position..position + length];
        let hex: Vec<String> = field.iter().map(|byte| format!("{byte:02x}")).collect();
        shown += &format!("{position:<4} {:<24} {name}\n", hex.join(""));
        position += length;
    }
    let zeros = bytes.len() - position;
    assert!(bytes[position..].iter().all(|byte| *byte == 0));
    shown += &format!("{position:<4} {zeros} zeros\n");
    expected.assert_eq(&shown);
}

#[test]
fn the_header() {
    let bytes = encode_header(DATABASE, 7);
    assert_eq!(bytes.len(), HEADER_BYTES);
    let fields =
        [("magic", 8), ("layout", 4), ("page size", 4), ("generation", 8), ("database", 16)];
    check(
        &bytes[..HEADER_BYTES - 4],
        &fields,
        &expect![[r#"
            0    4649524e504d4150         magic
            8    01000000                 layout
            12   00400000                 page size
            16   0700000000000000         generation
            24   dbdbdbdbdbdbdbdbdbdbdbdbdbdbdbdb database
            40   468 zeros
        "#]],
    );
    check(
        &bytes[HEADER_BYTES - 4..],
        &[("checksum", 4)],
        &expect![[r#"
            0    a1762fe3                 checksum
            4    0 zeros
        "#]],
    );
}

#[test]
fn a_batch() {
    let mut bytes = Vec::new();
    batch().encode(AT, &mut bytes);
    assert_eq!(bytes.len(), SECTOR_BYTES);
    let head = [("magic", 4), ("checksum", 4), ("length", 4), ("kind", 4), ("generation", 8)];
    let rest = [("number", 8), ("applied", 8), ("horizon", 8), ("puts", 4), ("drops", 4)];
    let put =
        [("space", 4), ("page", 4), ("lsn", 8), ("since", 8), ("slot", 4), ("first version", 4)];
    let dropped = [("space", 4), ("zero", 4), ("end", 8)];
    let fields = [&head[..], &rest[..], &put[..], &put[..], &dropped[..]].concat();
    check(
        &bytes,
        &fields,
        &expect![[r#"
            0    46504d42                 magic
            4    ed6864df                 checksum
            8    88000000                 length
            12   03000000                 kind
            16   0700000000000000         generation
            24   0300000000000000         number
            32   0010000000000000         applied
            40   000f000000000000         horizon
            48   02000000                 puts
            52   01000000                 drops
            56   05000000                 space
            60   01000000                 page
            64   0012000000000000         lsn
            72   0011000000000000         since
            80   11000000                 slot
            84   01000000                 first version
            88   05000000                 space
            92   02000000                 page
            96   8011000000000000         lsn
            104  0810000000000000         since
            112  12000000                 slot
            116  00000000                 first version
            120  09000000                 space
            124  00000000                 zero
            128  4012000000000000         end
            136  376 zeros
        "#]],
    );
    assert_eq!(Batch::decode(&bytes, AT), Ok(batch()));
}

#[test]
fn a_header_of_another_file_is_refused() {
    let header = |bytes: &[u8]| *bytes.first_chunk::<HEADER_BYTES>().unwrap();
    let good = header(&encode_header(DATABASE, 7));
    assert_eq!(check_header(&good, DATABASE, 7), Ok(()));
    assert!(check_header(&good, DATABASE, 8).unwrap_err().contains("generation"));
    assert!(check_header(&good, DatabaseId([1; 16]), 7).unwrap_err().contains("database"));
    for byte in 0..HEADER_BYTES {
        let mut damaged = good;
        damaged[byte] ^= 0x10;
        assert!(check_header(&damaged, DATABASE, 7).is_err(), "byte {byte}");
    }
}

#[test]
fn a_batch_of_another_file_or_place_is_refused() {
    let mut bytes = Vec::new();
    batch().encode(AT, &mut bytes);
    assert!(Batch::decode(&bytes, BatchPosition { number: 4, ..AT }).is_err());
    assert!(Batch::decode(&bytes, BatchPosition { generation: 8, ..AT }).is_err());
    assert!(Batch::decode(&bytes[..100], AT).is_err());
    assert_eq!(claimed_number(&bytes, 7), Some(3));
    assert_eq!(claimed_number(&bytes, 6), None);
}

#[test]
fn no_flipped_bit_goes_unseen() {
    let mut bytes = Vec::new();
    batch().encode(AT, &mut bytes);
    for byte in 0..BATCH_HEADER_BYTES + 2 * PUT_BYTES + DROP_BYTES {
        bytes[byte] ^= 0x04;
        assert!(Batch::decode(&bytes, AT).is_err(), "byte {byte}");
        bytes[byte] ^= 0x04;
    }
}

proptest! {
    #[test]
    fn any_bytes_are_taken_without_a_panic(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..700),
        counts in (any::<u32>(), any::<u32>()),
        fix_checksum: bool,
    ) {
        if bytes.len() >= BATCH_HEADER_BYTES && fix_checksum {
            let mut honest = Vec::new();
            batch().encode(AT, &mut honest);
            bytes[..BATCH_HEADER_BYTES].copy_from_slice(&honest[..BATCH_HEADER_BYTES]);
            let length = bytes.len() as u32;
            bytes[8..12].copy_from_slice(&length.to_le_bytes());
            bytes[48..52].copy_from_slice(&counts.0.to_le_bytes());
            bytes[52..56].copy_from_slice(&counts.1.to_le_bytes());
            let checksum = crc32c::crc32c(&bytes[8..]);
            bytes[4..8].copy_from_slice(&checksum.to_le_bytes());
        }
        let _ = Batch::decode(&bytes, AT);
        let _ = claimed_number(&bytes, 7);
    }
}
