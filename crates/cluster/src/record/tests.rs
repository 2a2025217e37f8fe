use firn_base::network::Role;

use super::*;

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
        address: "10.0.0.2:7400".parse().unwrap(),
        client_address: None,
        roles: Roles::of(&[Role::Pages]),
        has_control: false,
        is_member: true,
        held: Some((ChunkId(1), Epoch(6))),
        told: vec!["10.0.0.1:258".parse().unwrap()],
        layout: Some(Layout::parse(text).unwrap()),
    }
}

#[test]
fn a_record_has_these_bytes() {
    let bytes = record().encode();
    let body = [
        &[10][..],                            // cluster
        &[1, 4, 1, b'p', 9, 3],               // node 4, p, directory 9, third start
        &[0, 10, 0, 0, 2, 0xe8, 0x39, 0, 8],  // 10.0.0.2:7400, no clients, pages
        &[0, 1, 1, 1, 6],                     // no control node; taken; chunk 1 as of epoch 6
        &[1, 0, 10, 0, 0, 1, 0x82, 2],        // told of 10.0.0.1:258
        &[1, 10, 1],                          // a layout of cluster 10, with one node:
        &[2, 2, 1, b'n'],                     // 2 (its key), 2, n
        &[0, 10, 0, 0, 1, 0x82, 2],           // 10.0.0.1:258
        &[1, 0, 10, 0, 0, 1, 0xea, 0x19, 30], // 10.0.0.1:3306; database, log, pages, control
        &[1, 2, 2, 0],                        // log member 2 is node 2, a voter
        &[1, 2, 2, 1, 2],                     // control member 2 is node 2, which has the pages
    ];
    assert_eq!(bytes[..5], *b"FnNd\x01");
    assert_eq!(bytes[HEADER_BYTES..], body.concat());
    assert_eq!(Record::decode(&bytes), Some(record()));
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
