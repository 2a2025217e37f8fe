//! The bytes of an entry sector, and which bytes are not one.

use expect_test::expect;

use super::*;

fn entry(index: u64, term: u64, start: u64, content: Content) -> Entry {
    Entry { index: Index(index), term: Term(term), start: Lsn(start), content }
}

fn sample() -> EntrySector {
    let changes =
        vec![MemberChange::Set(MemberId(0x44), Role::Logger), MemberChange::Remove(MemberId(0x33))];
    EntrySector {
        segment: Lsn(0x1e88),
        incarnation: 5,
        first: Index(0x101),
        start: Lsn(0x2000),
        synced: Index(0x100),
        durable: Index(0xff),
        entries: vec![
            entry(0x101, 7, 0x2000, Content::Mark),
            entry(0x102, 7, 0x2000, Content::Log { bytes: 0x180, checksum: 0x1234_5678 }),
            entry(0x103, 8, 0x2180, Content::Members(changes)),
        ],
    }
}

#[test]
fn a_sector_is_laid_out_as_drawn() {
    let bytes = sample().encode();
    let rows = bytes[..168].chunks(8);
    let rows = rows.map(|row| row.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    // checksum, bytes, count | first | start | segment | incarnation, magic | synced | durable
    // kind, changes, checksum | term | bytes, three times; then two members with their roles
    expect![[r#"
        cb2ee26868000300
        0101000000000000
        0020000000000000
        881e000000000000
        05000000454e5452
        0001000000000000
        ff00000000000000
        0100000000000000
        0700000000000000
        0000000000000000
        0200000078563412
        0700000000000000
        8001000000000000
        0302000000000000
        0800000000000000
        0000000000000000
        4400000000000000
        0200000000000000
        3300000000000000
        0000000000000000
        0000000000000000"#]]
    .assert_eq(&rows.collect::<Vec<_>>().join("\n"));
    assert!(bytes[168..].iter().all(|byte| *byte == 0));
}

#[test]
fn a_sector_tells_what_was_put_in() {
    assert_eq!(EntrySector::decode(&sample().encode()), Some(sample()));
}

#[test]
fn every_flipped_bit_is_found() {
    for bit in 0..SECTOR_BYTES * 8 {
        let mut bytes = sample().encode();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(EntrySector::decode(&bytes), None, "bit {bit}");
    }
}

#[test]
fn bytes_that_no_writer_makes_are_refused() {
    let sealed = |change: fn(&mut [u8; SECTOR_BYTES])| {
        let mut bytes = sample().encode();
        change(&mut bytes);
        let checksum = crc32c::crc32c(&bytes[4..]);
        bytes[0..4].copy_from_slice(&checksum.to_le_bytes());
        EntrySector::decode(&bytes)
    };
    assert_eq!(sealed(|_| {}), Some(sample()));
    type Change = (&'static str, fn(&mut [u8; SECTOR_BYTES]));
    let changes: [Change; 9] = [
        ("more bytes than a sector has", |bytes| bytes[5] = 2),
        ("an entry more", |bytes| bytes[6] += 1),
        ("an entry less", |bytes| bytes[6] -= 1),
        ("no such kind", |bytes| bytes[56] = 9),
        ("a mark with log", |bytes| bytes[72] = 8),
        ("log without bytes", |bytes| bytes[80 + 16..80 + 24].fill(0)),
        ("beyond every position", |bytes| bytes[80 + 16..80 + 24].fill(0xff)),
        ("no such role", |bytes| bytes[128 + 8] = 4),
        ("bytes behind the entries", |bytes| bytes[511] = 1),
    ];
    for (what, change) in changes {
        assert_eq!(sealed(change), None, "{what}");
    }
}

#[test]
fn a_sector_holds_nineteen_batches() {
    let mut sector = sample();
    sector.entries.clear();
    let log = |sector: &EntrySector| {
        let content = Content::Log { bytes: 8, checksum: 1 };
        entry(sector.next().0, 7, sector.end().0, content)
    };
    while sector.has_room_for(&log(&sector)) {
        let next = log(&sector);
        sector.entries.push(next);
    }
    assert_eq!(sector.entries.len(), 19);
    assert_eq!(EntrySector::decode(&sector.encode()), Some(sector.clone()));
    assert!(sectors_for(&sector.entries) >= 2, "one may be nearly full");
}
