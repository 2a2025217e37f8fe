use super::*;

fn status() -> NodeStatus {
    NodeStatus {
        node: NodeId(2),
        log: Some(LogStatus {
            leads: Some(7),
            leader: Some(2),
            truncated: Lsn(8),
            durable: Lsn(300),
            end: Lsn(301),
            history: vec![(19, Lsn(300)), (20, Lsn(200))],
            failure: None,
        }),
        pages: Some(PagesStatus {
            is_open: true,
            kept_from: Lsn(9),
            received: Lsn(300),
            applied: Lsn(200),
            behind_ms: 6,
            images_per_second: 5,
            failure: None,
        }),
        replica: Some(ReplicaStatus {
            is_open: true,
            epoch: 7,
            applied: Lsn(300),
            visible: Cts(40),
            behind_bytes: 0,
            behind_ms: 3,
            is_cut_off: false,
            load: LoadStatus {
                at_us: 16,
                processor_us: 17,
                processors: 2,
                reads: 18,
                read_us: 300,
            },
        }),
        archive: Some(ArchivingStatus {
            is_chosen: true,
            epoch: 14,
            archived: Some(Lsn(200)),
            progress: ArchiveProgress {
                as_of_ms: 11,
                behind_bytes: 100,
                behind_ms: 12,
                log_objects: 13,
                sets: 1,
                size_bytes: 300,
                sent_bytes: 15,
                failures: 2,
                error: None,
            },
        }),
        serves: Some("a:1".to_owned()),
        failure: None,
        is_paused: true,
        generation: 4,
    }
}

#[test]
fn a_status_has_these_bytes() {
    let bytes = status().encode();
    let expected = [
        &[7][..],                         // version
        &[2],                             // node 2
        &[1, 1, 7, 1, 2],                 // a log member that leads in term 7; member 2 leads
        &[8, 0xac, 2, 0xad, 2],           // log from 8, durable to 300, written to 301;
        &[2, 19, 0xac, 2, 20, 0xc8, 1],   // durable to 300 until 19 ms ago, to 200 until 20 ms ago
        &[0],                             // no failure
        &[1, 1, 9, 0xac, 2, 0xc8, 1],     // an open page node: 9, 300, 200,
        &[6, 5, 0],                       // 6 ms behind, 5 images a second, no failure
        &[1, 1, 7, 0xac, 2, 40, 0, 3, 0], // a replica in epoch 7: at 300, 40, 0 bytes, 3 ms, linked;
        &[16, 17, 2, 18, 0xac, 2],        // up to 16 us: 17 us of 2 processors, 18 reads in 300 us
        &[1, 1, 14, 1, 0xc8, 1, 11, 100], // it archives in choice 14, up to 200 and 11 ms, 100 and
        &[12, 13, 1, 0xac, 2, 15, 2, 0],  // 12 ms behind; 13 objects, 1 set, 300 bytes, 15 sent
        &[1, 3, b'a', b':', b'1'],        // serves at a:1
        &[0, 1, 4],                       // no failure, and it is paused; the fourth generation
    ];
    assert_eq!(bytes, expected.concat());
    assert_eq!(NodeStatus::decode(&bytes), Ok(status()));
}

#[test]
fn other_bytes_are_refused() {
    let bytes = status().encode();
    for length in 0..bytes.len() {
        assert_eq!(NodeStatus::decode(&bytes[..length]), Err(NotAStatus));
    }
    let longer: Vec<_> = bytes.iter().copied().chain([0]).collect();
    assert_eq!(NodeStatus::decode(&longer), Err(NotAStatus));
    let mut other = bytes;
    other[0] = 2;
    assert_eq!(NodeStatus::decode(&other), Err(NotAStatus));
}
