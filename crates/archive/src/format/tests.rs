use std::fmt::Write as _;

use expect_test::{Expect, expect};
use firn_api::Watermarks;
use firn_base::{Cts, Lsn, PageId, PageNo, SpaceId, TrxId};
use firn_format::page::{PageBuf, PageKind};

use super::*;

const DATABASE: DatabaseId = DatabaseId([7; 16]);

fn watermarks() -> Watermarks {
    Watermarks { trx_id_limit: TrxId(90), cts_limit: Cts(70) }
}

/// Draws fields one below the other; the last one takes the rest.
fn drawn(bytes: &[u8], fields: &[(usize, &str)], expected: Expect) {
    let (mut at, mut drawing) = (0, String::new());
    for (length, meaning) in fields {
        let hex: String = bytes[at..at + length].iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(drawing, "{at:<4} {hex:<34} {meaning}").unwrap();
        at += length;
    }
    if at < bytes.len() {
        writeln!(drawing, "{at:<4} {} bytes of body", bytes.len() - at).unwrap();
    }
    expected.assert_eq(&drawing);
}

const FRAME: [(usize, &str); 5] = [
    (8, "magic"),
    (2, "version"),
    (2, "zero"),
    (4, "length of the head"),
    (4, "crc32c of the head"),
];

fn framed_fields(head: &[(usize, &'static str)]) -> Vec<(usize, &'static str)> {
    FRAME.iter().chain(head).copied().collect()
}

fn manifest() -> Manifest {
    let mut manifest = Manifest::new(DATABASE, 0xabcd, 1000);
    manifest.number = 3;
    manifest.as_of_ms = 5000;
    manifest.log.push(LogEntry {
        from: Lsn(64),
        to: Lsn(128),
        writer: 1,
        size_bytes: 99,
        time_ms: 4000,
    });
    manifest.sets.push(SetEntry {
        start: Lsn(64),
        end: Lsn(72),
        is_full: true,
        writer: 1,
        images: 2,
        size_bytes: 200,
        time_ms: 4100,
        watermarks: watermarks(),
    });
    manifest.gaps.push(Gap { from: Lsn(8), to: Lsn(64), from_ms: 1, to_ms: 2 });
    manifest
}

#[test]
fn a_manifest_is_laid_out_as_drawn() {
    let bytes = manifest().encode();
    assert_eq!(Manifest::decode(&bytes), Ok(manifest()));
    let fields = framed_fields(&[
        (16, "database id"),
        (8, "number"),
        (4, "writer"),
        (8, "window, ms"),
        (8, "acknowledged by then, ms"),
        (4, "log objects"),
        (4, "sets"),
        (4, "gaps"),
        (8, "log object: from"),
        (8, "to"),
        (4, "writer"),
        (8, "size"),
        (8, "last moment, ms"),
        (8, "set: start"),
        (8, "end"),
        (4, "1: full"),
        (4, "writer"),
        (8, "images"),
        (8, "size"),
        (8, "complete at, ms"),
        (8, "transaction id limit"),
        (8, "commit timestamp limit"),
        (8, "gap: from"),
        (8, "to"),
        (8, "from, ms"),
        (8, "to, ms"),
    ]);
    drawn(
        &bytes,
        &fields,
        expect![[r#"
        0    4649524e41524348                   magic
        8    0100                               version
        10   0000                               zero
        12   bc000000                           length of the head
        16   2daed904                           crc32c of the head
        20   07070707070707070707070707070707   database id
        36   0300000000000000                   number
        44   cdab0000                           writer
        48   e803000000000000                   window, ms
        56   8813000000000000                   acknowledged by then, ms
        64   01000000                           log objects
        68   01000000                           sets
        72   01000000                           gaps
        76   4000000000000000                   log object: from
        84   8000000000000000                   to
        92   01000000                           writer
        96   6300000000000000                   size
        104  a00f000000000000                   last moment, ms
        112  4000000000000000                   set: start
        120  4800000000000000                   end
        128  01000000                           1: full
        132  01000000                           writer
        136  0200000000000000                   images
        144  c800000000000000                   size
        152  0410000000000000                   complete at, ms
        160  5a00000000000000                   transaction id limit
        168  4600000000000000                   commit timestamp limit
        176  0800000000000000                   gap: from
        184  4000000000000000                   to
        192  0100000000000000                   from, ms
        200  0200000000000000                   to, ms
    "#]],
    );
}

fn log_object() -> LogObject {
    let mut head = LogHead::new(DATABASE, Lsn(64), Lsn(128), watermarks());
    head.marks =
        vec![Mark { time_ms: 1_000, lsn: Lsn(64) }, Mark { time_ms: 1_300, lsn: Lsn(128) }];
    head.pages = vec![PageId::new(SpaceId(1), PageNo(2)), PageId::new(SpaceId(1), PageNo(3))];
    head.dropped = vec![SpaceId(5)];
    LogObject { head, groups: vec![1; 64] }
}

#[test]
fn a_log_object_is_laid_out_as_drawn() {
    let bytes = log_object().encode();
    let found = LogObject::decode(&bytes).unwrap();
    assert_eq!(found.groups, log_object().groups);
    assert_eq!(found.head.marks, log_object().head.marks);
    assert_eq!(found.head.pages, log_object().head.pages);
    assert_eq!(found.head.dropped, log_object().head.dropped);
    let fields = framed_fields(&[
        (16, "database id"),
        (8, "from"),
        (8, "to"),
        (8, "transaction id limit"),
        (8, "commit timestamp limit"),
        (8, "bytes of the body"),
        (4, "crc32c of the body"),
        (4, "moments"),
        (4, "changed pages"),
        (4, "dropped spaces"),
        (3, "moment: time, position - from"),
        (3, "time and position - those before"),
        (5, "page: space times 2^32 + number"),
        (1, "page - page before"),
        (1, "dropped space"),
    ]);
    drawn(
        &bytes,
        &fields,
        expect![[r#"
        0    4649524e414c4f47                   magic
        8    0100                               version
        10   0000                               zero
        12   55000000                           length of the head
        16   8acdda87                           crc32c of the head
        20   07070707070707070707070707070707   database id
        36   4000000000000000                   from
        44   8000000000000000                   to
        52   5a00000000000000                   transaction id limit
        60   4600000000000000                   commit timestamp limit
        68   1100000000000000                   bytes of the body
        76   04f572c3                           crc32c of the body
        80   02000000                           moments
        84   02000000                           changed pages
        88   01000000                           dropped spaces
        92   e80700                             moment: time, position - from
        95   ac0240                             time and position - those before
        98   8280808010                         page: space times 2^32 + number
        103  01                                 page - page before
        104  05                                 dropped space
        105  17 bytes of body
    "#]],
    );
}

fn pack() -> Vec<u8> {
    let mut packer = PagePacker::new(DATABASE, Lsn(64));
    for number in [2, 7] {
        let mut page = PageBuf::boxed();
        page.format(PageId::new(SpaceId(0), PageNo(number)), PageKind::TreeLeaf);
        page.set_lsn(Lsn(64 + u64::from(number) * 8));
        packer.add(&mut page);
    }
    packer.encode()
}

#[test]
fn a_pack_is_laid_out_as_drawn() {
    let bytes = pack();
    let head = PageHead::decode(&bytes).unwrap();
    let mut page = PageBuf::boxed();
    let entry = head.find(PageId::new(SpaceId(0), PageNo(7))).unwrap();
    decompress(&bytes[head.image_range(entry).unwrap()], entry.page, &mut page).unwrap();
    assert_eq!((page.lsn(), entry.lsn), (Lsn(120), Lsn(120)));
    let fields = framed_fields(&[
        (16, "database id"),
        (8, "start of the set"),
        (4, "images"),
        (1, "page: space times 2^32 + number"),
        (1, "LSN"),
        (1, "stored length"),
        (1, "page - page before"),
        (1, "LSN"),
        (1, "stored length"),
    ]);
    drawn(
        &bytes,
        &fields,
        expect![[r#"
        0    4649524e41504147                   magic
        8    0100                               version
        10   0000                               zero
        12   22000000                           length of the head
        16   a6179561                           crc32c of the head
        20   07070707070707070707070707070707   database id
        36   4000000000000000                   start of the set
        44   02000000                           images
        48   02                                 page: space times 2^32 + number
        49   50                                 LSN
        50   23                                 stored length
        51   05                                 page - page before
        52   78                                 LSN
        53   23                                 stored length
        54   70 bytes of body
    "#]],
    );
}

fn set() -> ImageSet {
    let pack = |first, last| PackEntry {
        first: PageId::new(SpaceId(0), PageNo(first)),
        last: PageId::new(SpaceId(0), PageNo(last)),
        images: 2,
        size_bytes: 100,
    };
    ImageSet {
        database: DATABASE,
        start: Lsn(64),
        writer: 1,
        packs: vec![pack(2, 7), pack(9, 9)],
        dropped: vec![SpaceId(5)],
    }
}

#[test]
fn a_set_is_laid_out_as_drawn() {
    let bytes = set().encode();
    assert_eq!(ImageSet::decode(&bytes), Ok(set()));
    let fields = framed_fields(&[
        (16, "database id"),
        (8, "start"),
        (4, "writer"),
        (4, "packs"),
        (4, "dropped spaces"),
        (8, "pack: first page"),
        (8, "last page"),
        (4, "images"),
        (8, "size"),
        (28, "the next pack"),
        (4, "dropped space"),
    ]);
    drawn(
        &bytes,
        &fields,
        expect![[r#"
        0    4649524e41534554                   magic
        8    0100                               version
        10   0000                               zero
        12   60000000                           length of the head
        16   75995020                           crc32c of the head
        20   07070707070707070707070707070707   database id
        36   4000000000000000                   start
        44   01000000                           writer
        48   02000000                           packs
        52   01000000                           dropped spaces
        56   0200000000000000                   pack: first page
        64   0700000000000000                   last page
        72   02000000                           images
        76   6400000000000000                   size
        84   09000000000000000900000000000000020000006400000000000000 the next pack
        112  05000000                           dropped space
    "#]],
    );
}

#[test]
fn the_pack_of_a_page_is_found() {
    let set = set();
    let pack =
        |number| set.pack_of(PageId::new(SpaceId(0), PageNo(number))).map(|(number, _)| number);
    assert_eq!(
        (1..11).map(pack).collect::<Vec<_>>(),
        [None, Some(0), Some(0), Some(0), Some(0), Some(0), Some(0), None, Some(1), None,]
    );
}

/// Each bit that is turned around, and each end that is cut off, is noticed or changes nothing that
/// is believed.
#[test]
fn damaged_objects_are_refused() {
    let whole = [manifest().encode(), log_object().encode(), set().encode()];
    for bytes in &whole {
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            check_any_bytes(&damaged);
            check_any_bytes(&bytes[..at]);
            assert!(Manifest::decode(&damaged).is_err(), "byte {at}");
            assert!(LogObject::decode(&damaged).is_err(), "byte {at}");
            assert!(ImageSet::decode(&damaged).is_err(), "byte {at}");
            assert!(LogObject::decode(&bytes[..at]).is_err(), "byte {at}");
        }
    }
    let bytes = pack();
    let head = PageHead::decode(&bytes).unwrap();
    let entry = head.images()[0];
    let range = head.image_range(&entry).unwrap();
    let mut page = PageBuf::boxed();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        check_any_bytes(&damaged);
        let is_refused = PageHead::decode(&damaged).is_err()
            || decompress(&damaged[range.clone()], entry.page, &mut page).is_err();
        assert!(is_refused || !range.contains(&at), "byte {at}");
    }
}

#[test]
fn the_manifest_of_a_cluster_ends_with_an_epoch() {
    let alone = manifest();
    let of_cluster = Manifest { epoch: 0x0102, ..alone.clone() };
    let (alone, bytes) = (alone.encode(), of_cluster.encode());
    assert_eq!(Manifest::decode(&bytes), Ok(of_cluster));
    assert_eq!(bytes[8..10], [2, 0], "its version");
    assert_eq!(bytes.len(), alone.len() + 8);
    assert_eq!(bytes[20..alone.len()], alone[20..]);
    assert_eq!(bytes[alone.len()..], [2, 1, 0, 0, 0, 0, 0, 0]);
    check_any_bytes(&bytes);
    let mut other = bytes.clone();
    other[8] = 1;
    assert_eq!(Manifest::decode(&other), Err(FormatError::Invalid));
}

#[test]
fn another_version_is_named() {
    let mut bytes = manifest().encode();
    bytes[8] = 3;
    assert_eq!(Manifest::decode(&bytes), Err(FormatError::Version { found: 3, newest: 2 }));
    assert_eq!(Manifest::decode(&set().encode()), Err(FormatError::Magic));
}
