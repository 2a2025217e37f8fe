//! The bytes of a segment header, and which bytes are not one.

use expect_test::expect;

use super::*;

fn sample() -> SegmentHeader {
    SegmentHeader {
        stream: LogStreamId(3),
        database: DatabaseId(*b"database's bytes"),
        blocks: 16,
        first: Lsn(0x1e88),
        incarnation: 5,
        watermarks: Watermarks { trx_id_limit: TrxId(0x1234), cts_limit: Cts(0x5678) },
        entry_sectors: 0,
    }
}

#[test]
fn a_header_is_laid_out_as_drawn() {
    let bytes = sample().encode();
    let rows = bytes[..64].chunks(16);
    let rows = rows.map(|row| row.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    // magic, version, stream, blocks | database | first LSN, incarnation, reserved | watermarks
    expect![[r#"
        4649524e4c4f47000100030010000000
        64617461626173652773206279746573
        881e0000000000000500000000000000
        34120000000000007856000000000000"#]]
    .assert_eq(&rows.collect::<Vec<_>>().join("\n"));
    assert!(bytes[64..508].iter().all(|byte| *byte == 0));
    expect!["[6a, 1a, 86, df]"].assert_eq(&format!("{:02x?}", &bytes[508..]));
}

#[test]
fn a_header_in_a_group_differs_in_version_and_sectors() {
    let bytes = SegmentHeader { entry_sectors: 2, ..sample() }.encode();
    let plain = sample().encode();
    let differing: Vec<usize> = (0..508).filter(|at| bytes[*at] != plain[*at]).collect();
    assert_eq!(differing, [8, 64]);
    assert_eq!((bytes[8], bytes[64]), (2, 2));
}

#[test]
fn a_header_tells_what_was_put_in() {
    for entry_sectors in [0, 2] {
        let header = SegmentHeader { entry_sectors, ..sample() };
        assert_eq!(SegmentHeader::decode(&header.encode()), Ok(header));
    }
}

#[test]
fn every_flipped_bit_is_found() {
    for bit in 0..HEADER_BYTES * 8 {
        let mut bytes = sample().encode();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(SegmentHeader::decode(&bytes).is_err(), "bit {bit}");
    }
}

#[test]
fn another_version_is_refused_by_name() {
    let mut bytes = sample().encode();
    bytes[8] = 3;
    let checksum = crc32c::crc32c(&bytes[..508]);
    bytes[508..].copy_from_slice(&checksum.to_le_bytes());
    let error = SegmentHeader::decode(&bytes).unwrap_err();
    assert!(error.contains("version 3") && error.contains("reads 1 and 2"), "{error}");
}

#[test]
fn names_tell_where_segments_begin() {
    let lsn = Lsn(0x00ff_1234_5678_9abc);
    assert_eq!(file_name(lsn), "00ff123456789abc.log");
    assert_eq!(parse_file_name(Path::new("log/00ff123456789abc.log")), Some(lsn));
    for name in ["ff.log", "00FF123456789abc.log", "00ff123456789abc.new", "+0ff123456789abc.log"] {
        assert_eq!(parse_file_name(Path::new(name)), None, "{name}");
    }
}

#[test]
fn a_segment_has_a_whole_number_of_memory_pages() {
    assert_eq!(blocks_in(0), 8);
    assert_eq!(blocks_in(4096 + 16 * 512 + 511), 16);
    assert_eq!(blocks_in(64 << 20), 131_064);
    assert_eq!(blocks_in(u64::MAX), 1 << 25);
}
