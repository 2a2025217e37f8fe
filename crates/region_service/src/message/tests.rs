use super::*;

/// The golden bytes of `docs/formats/region_service.md`.
#[test]
fn messages_have_these_bytes() {
    let run = Run {
        epoch: 300,
        region: 1,
        change: Some(Change { peer: 7, number: 2 }),
        acts: vec![
            SentAct::Read { start: 40, length: 5 },
            SentAct::Write { start: 3, words: vec![1, 300] },
            SentAct::CompareAndSwap { word: 7, expected: 0, new: 1 },
            SentAct::FetchAdd { word: 8, amount: 9 },
        ],
    };
    let read =
        Run { change: None, acts: vec![SentAct::Read { start: 0, length: 1 }], ..run.clone() };
    #[rustfmt::skip]
    let asks: [(Ask, &[u8]); 4] = [
        (Ask::Connect { epoch: 300, peer: 7, name: "tit".to_owned() },
            &[1, 0, 0xac, 2, 7, 3, b't', b'i', b't']),
        (Ask::Run(run),
            &[1, 1, 0xac, 2, 1, 1, 7, 2, 4, 0, 40, 5, 1, 3, 2, 1, 0xac, 2, 2, 7, 0, 1, 3, 8, 9]),
        (Ask::Run(read), &[1, 1, 0xac, 2, 1, 0, 1, 0, 0, 1]),
        (Ask::MemoryAddress { epoch: 300 }, &[1, 2, 0xac, 2]),
    ];
    for (ask, bytes) in asks {
        assert_eq!(encode(&ask), bytes, "{ask:?}");
        assert_eq!(decode(bytes), Ok(ask));
    }
    #[rustfmt::skip]
    let answers: [(Answer, &[u8]); 8] = [
        (Answer::Region { region: 1, length_words: 300 }, &[1, 0, 1, 0xac, 2]),
        (Answer::Words(vec![5, 300]), &[1, 1, 2, 5, 0xac, 2]),
        (Answer::Unknown, &[1, 2]),
        (Answer::Stale, &[1, 3]),
        (Answer::Superseded, &[1, 4]),
        (Answer::OutOfBounds { start: 3, end: 5, length: 4 }, &[1, 5, 3, 5, 4]),
        (Answer::TooLarge, &[1, 6]),
        (Answer::MemoryAddress(vec![8, 9]), &[1, 7, 2, 8, 9]),
    ];
    for (answer, bytes) in answers {
        assert_eq!(encode(&answer), bytes, "{answer:?}");
        assert_eq!(decode(bytes), Ok(answer));
    }
}

#[test]
fn other_bytes_are_refused() {
    let bytes = encode(&Ask::Connect { epoch: 300, peer: 7, name: "tit".to_owned() });
    for length in 0..bytes.len() {
        assert_eq!(decode::<Ask>(&bytes[..length]), Err(NotAMessage));
    }
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(decode::<Ask>(&longer), Err(NotAMessage));
    assert_eq!(decode::<Ask>(&[&[2], &bytes[1..]].concat()), Err(NotAMessage));
}

#[test]
fn a_batch_arrives_as_it_was_sent() {
    let mut batch = Batch::new();
    batch.read(1, 2);
    batch.write(3, vec![4, 5]);
    batch.compare_and_swap(6, 7, 8);
    batch.fetch_add(9, 10);
    assert_eq!(received(sent(&batch)), Some(batch));
}

/// Nobody makes an owner allocate more than the answer may have.
#[test]
fn a_batch_that_asks_for_too_much_is_refused() {
    let all = SentAct::Read { start: 0, length: MOST_WORDS as u64 };
    let add = SentAct::FetchAdd { word: 0, amount: 1 };
    assert!(received(vec![all.clone()]).is_some());
    for acts in [vec![all.clone(), add], vec![all.clone(), all]] {
        assert_eq!(received(acts), None);
    }
    assert_eq!(received(vec![SentAct::Read { start: 0, length: u64::MAX }]), None);
}
