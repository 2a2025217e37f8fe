use super::*;

#[test]
fn questions_have_these_bytes() {
    let cases: [(Ask, &[u8]); 5] = [
        (Ask::TakePlace { replica: "r-1".to_owned() }, &[2, 0, 3, b'r', b'-', b'1']),
        (Ask::Look { place: 300, needed: Cts(7) }, &[2, 1, 0xac, 2, 7]),
        (Ask::GiveBack { place: 2 }, &[2, 2, 2]),
        (Ask::Newest, &[2, 3]),
        (Ask::Regions, &[2, 4]),
    ];
    for (ask, bytes) in cases {
        assert_eq!(encode(&ask), bytes, "{ask:?}");
        assert_eq!(decode(bytes), Ok(ask));
    }
}

#[test]
fn answers_have_these_bytes() {
    let positions = Positions {
        epoch: 3,
        durable_commits: Cts(40),
        durable_lsn: Lsn(300),
        visible: Cts(41),
        handed_out: Cts(42),
    };
    let regions = SharedRegions { socket: "/a".to_owned(), epoch: 300, layout: 1 };
    let cases: [(Answer, &[u8]); 7] = [
        (
            Answer::Place { place: 2, snapshot: Cts(40), lease_ms: 300, epoch: 3 },
            &[2, 0, 2, 40, 0xac, 2, 3],
        ),
        (Answer::Positions(positions), &[2, 1, 3, 40, 0xac, 2, 41, 42]),
        (Answer::GivenBack, &[2, 2]),
        (Answer::NotHere { reason: "a".to_owned() }, &[2, 3, 1, b'a']),
        (Answer::Gone { reason: "b".to_owned() }, &[2, 4, 1, b'b']),
        (Answer::NoPlace, &[2, 5]),
        (Answer::Regions(regions), &[2, 6, 2, b'/', b'a', 0xac, 2, 1]),
    ];
    for (answer, bytes) in cases {
        assert_eq!(encode(&answer), bytes, "{answer:?}");
        assert_eq!(decode(bytes), Ok(answer));
    }
}

#[test]
fn other_bytes_are_refused() {
    let bytes = encode(&Ask::Look { place: 300, needed: Cts(7) });
    for length in 0..bytes.len() {
        assert_eq!(decode::<Ask>(&bytes[..length]), Err(NotAMessage));
    }
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(decode::<Ask>(&longer), Err(NotAMessage));
    assert_eq!(decode::<Ask>(&[&[1], &bytes[1..]].concat()), Err(NotAMessage));
}
