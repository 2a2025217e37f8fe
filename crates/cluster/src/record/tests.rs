use firn_base::network::Role;
use firn_base::{Extents, PageNo};

use super::*;
use crate::framed_file::HEADER_BYTES;

fn record() -> Record {
    let text = "cluster = \"0000000000000000000000000000000a\"\n[[node]]\nnumber = 2\nname = \"n\"\n\
                address = \"10.0.0.1:258\"\nclient_address = \"10.0.0.1:3306\"\n\
                roles = [\"database\", \"log\", \"pages\", \"control\"]\n";
    Record {
        cluster: ClusterId(10),
        number: Some(NodeId(4)),
        name: "p".to_owned(),
        directory: DirectoryId(9),
        incarnation: 3,
        address: "pages.example:7400".parse().unwrap(),
        client_address: None,
        listen: Some("0.0.0.0:7400".parse().unwrap()),
        client_listen: None,
        roles: Roles::of(&[Role::Pages]),
        is_member: true,
        held: [(ChunkId(1), Epoch(6))].into(),
        told: vec!["10.0.0.1:258".parse().unwrap()],
        layout: Some(Layout::parse(text).unwrap()),
        log_member: Some(MemberPlace { member: MemberId(5), is_founder: false, is_made: true }),
        left: Some(MemberId(3)),
        zone: "west".to_owned(),
        generation: 2,
        taken_over_at: Lsn(300),
        control_member: Some(MemberPlace { member: MemberId(6), is_founder: false, is_made: true }),
        control_left: Some(MemberId(4)),
        parts: [(ChunkId(1), part())].into(),
    }
}

fn part() -> HeldPart {
    let (first, end, extents) = (PageNo(2), PageNo(300), Extents { pages: 8 });
    HeldPart { first, end, extents, is_alone: true }
}

#[test]
fn a_record_has_these_bytes() {
    let bytes = record().encode();
    let body = [
        &[10][..],              // cluster
        &[1, 4, 1, b'p', 9, 3], // node 4, p, directory 9, third start
        &[18],
        b"pages.example:7400",           // where the others reach it
        &[0],                            // no clients
        &[1, 0, 0, 0, 0, 0, 0xe8, 0x39], // listens at 0.0.0.0:7400
        &[0, 8],                         // and not for clients; pages
        &[1, 1, 1, 6],                   // taken; chunk 1 as of epoch 6
        &[1, 12],
        b"10.0.0.1:258",      // told of one control node
        &[1, 10, 1],          // a layout of cluster 10, with one node:
        &[2, 2, 1, b'n', 12], // 2 (its key), 2, n
        b"10.0.0.1:258",
        &[1, 13],
        b"10.0.0.1:3306",
        &[30], // database, log, pages, control
        &[7],
        b"default",                                   // its zone
        &[0],                                         // which votes
        &[1, 2, 2, 0],                                // log member 2 is node 2, a voter
        &[1, 2, 2],                                   // control member 2 is node 2
        &[0xff, 0xff, 0xff, 0xff, 7],                 // how many pages lie together
        &[1, 1, 0, 0xff, 0xff, 0xff, 0xff, 15, 1, 2], // chunk 1, all places, at node 2
        &[1, 5, 0, 1, 1, 3],                          // log member 5: joined, made; 3 was given up
        &[4],
        b"west",
        &[2, 0xac, 2],             // a standby took over twice, the last time at 300
        &[1, 6, 0, 1, 1, 4],       // control member 6: joined, made; 4 was given up
        &[1, 1, 2, 0xac, 2, 8, 1], // of chunk 1: places 2 to 300, by extents of 8; it was alone
    ];
    assert_eq!(bytes[..5], *b"FnNd\x07");
    assert_eq!(bytes[HEADER_BYTES..], body.concat());
    assert_eq!(Record::decode(&bytes), Some(record()));
}

/// The record as it is read from the bytes of a release in which chunks were not cut.
fn without_parts() -> Record {
    Record { parts: BTreeMap::new(), ..record() }
}

#[test]
fn a_record_of_before_chunks_were_cut_is_read() {
    let body = &without_parts().encode()[HEADER_BYTES..];
    let body = &body[..body.len() - 1];
    let checksum = crc32c::crc32c(body).to_le_bytes();
    let bytes = [&MAGIC[..], &[WITHOUT_PARTS], &checksum, body].concat();
    let mut found = Record::decode(&bytes).unwrap();
    assert_eq!(found, without_parts());
    found.note_parts(&found.layout.clone().unwrap());
    let part = found.parts[&ChunkId(1)];
    assert_eq!((part.first, part.end, part.is_alone), (PageNo(0), PageNo::NONE, true));
    let before = found.clone();
    found.note_parts(&found.layout.clone().unwrap());
    assert_eq!(found, before);
}

/// The record as it is read from the bytes of a release without zones.
fn old_record(number: u64) -> Record {
    let zone = "default".to_owned();
    let number = Some(NodeId(number));
    let record = Record { control_member: None, control_left: None, ..without_parts() };
    Record { number, zone, generation: 0, taken_over_at: Lsn(0), ..record }
}

/// The bytes of the record as releases without zones wrote them, of node 2. `chunks` is what its
/// layout says behind the control members.
fn old_bytes(version: u8, chunks: &[u8], length_less: usize) -> Vec<u8> {
    let body = [
        &[10, 1, 2, 1, b'p', 9, 3, 18][..],
        b"pages.example:7400",
        &[0, 1, 0, 0, 0, 0, 0, 0xe8, 0x39, 0, 8],
        &[0, 1, 1, 1, 6, 1, 12],
        b"10.0.0.1:258",
        &[1, 10, 1, 2, 2, 1, b'n', 12],
        b"10.0.0.1:258",
        &[1, 13],
        b"10.0.0.1:3306",
        &[30, 1, 2, 2, 0],
        &[1, 2, 2], // control member 2 is node 2
        chunks,
        &[1, 5, 0, 1, 1, 3],
    ]
    .concat();
    let body = &body[..body.len() - length_less];
    let checksum = crc32c::crc32c(body).to_le_bytes();
    [&MAGIC[..], &[version], &checksum, body].concat()
}

/// Node 2 has all pages.
const ALL_PAGES: &[u8] = &[1, 2];

#[test]
fn a_record_of_before_control_nodes_came_and_went_is_read() {
    let body = &without_parts().encode()[HEADER_BYTES..];
    // Without the control member, and with the word that there is one.
    let (before, behind) = body[..body.len() - 7].split_at(37);
    let body = [before, &[1], behind].concat();
    let checksum = crc32c::crc32c(&body).to_le_bytes();
    let bytes = [&MAGIC[..], &[FOUNDED_CONTROL], &checksum, &body].concat();
    let founder = MemberPlace { member: MemberId(4), is_founder: true, is_made: true };
    let expected = Record { control_member: Some(founder), control_left: None, ..without_parts() };
    assert_eq!(Record::decode(&bytes), Some(expected));
}

#[test]
fn a_record_of_before_zones_is_read() {
    let chunks = [0xff, 0xff, 0xff, 0xff, 7, 1, 1, 0, 0xff, 0xff, 0xff, 0xff, 15, 1, 2];
    let bytes = old_bytes(WITHOUT_ZONE, &chunks, 0);
    assert_eq!(Record::decode(&bytes), Some(old_record(2)));
}

#[test]
fn a_record_of_before_pages_were_divided_is_read() {
    assert_eq!(Record::decode(&old_bytes(ONE_CHUNK, ALL_PAGES, 0)), Some(old_record(2)));
}

#[test]
fn a_record_of_before_members_came_and_went_is_read() {
    let founder = MemberPlace { member: MemberId(2), is_founder: true, is_made: true };
    let expected = Record { log_member: Some(founder), left: None, ..old_record(2) };
    assert_eq!(Record::decode(&old_bytes(WITHOUT_MEMBER, ALL_PAGES, 6)), Some(expected));
}

#[test]
fn other_bytes_are_refused() {
    let bytes = record().encode();
    for length in 0..bytes.len() {
        assert_eq!(Record::decode(&bytes[..length]), None);
    }
    for place in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[place] ^= 1;
        assert_eq!(Record::decode(&damaged), None, "byte {place}");
    }
}

#[test]
fn a_change_is_on_the_disk_when_it_returns() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Environment::system().disk;
    let path = directory.path().join("node");
    assert!(RecordFile::read(&*disk, &path).unwrap().is_none());
    let file = RecordFile::write(&disk, &path, record()).unwrap();
    file.change(|record| record.incarnation += 1).unwrap();
    let found = RecordFile::read(&*disk, &path).unwrap();
    assert_eq!(found.map(|record| record.incarnation), Some(4));
    file.change(|_| {}).unwrap();
    assert_eq!(file.get().incarnation, 4);
}
