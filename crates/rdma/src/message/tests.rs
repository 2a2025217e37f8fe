use super::*;

/// The golden bytes of `docs/formats/rdma.md`.
#[test]
fn messages_have_these_bytes() {
    let owner = OwnerAddress { epoch: 300, worker: vec![7, 8] };
    assert_eq!(encode(&owner), [1, 0xac, 2, 2, 7, 8]);
    assert_eq!(decode(&encode(&owner)), Ok(owner));
    let connect =
        Connect { epoch: 300, peer: 5, question: 6, worker: vec![7, 8], name: "tit".to_owned() };
    #[rustfmt::skip]
    let to_owner: [(ToOwner, &[u8]); 2] = [
        (ToOwner::Connect(connect), &[1, 0, 0xac, 2, 5, 6, 2, 7, 8, 3, b't', b'i', b't']),
        (ToOwner::Leave { epoch: 300, peer: 5 }, &[1, 1, 0xac, 2, 5]),
    ];
    for (message, bytes) in to_owner {
        assert_eq!(encode(&message), bytes, "{message:?}");
        assert_eq!(decode(bytes), Ok(message));
    }
    let memory = Memory { epoch: 300, question: 6, address: 4096, length_words: 4, key: vec![9] };
    #[rustfmt::skip]
    let to_peer: [(ToPeer, &[u8]); 4] = [
        (ToPeer::Region(memory), &[1, 0, 0xac, 2, 6, 0x80, 0x20, 4, 1, 9]),
        (ToPeer::Unknown { epoch: 300, question: 6 }, &[1, 1, 0xac, 2, 6]),
        (ToPeer::Stale { epoch: 300, question: 6 }, &[1, 2, 0xac, 2, 6]),
        (ToPeer::Ended { epoch: 300 }, &[1, 3, 0xac, 2]),
    ];
    for (message, bytes) in to_peer {
        assert_eq!(encode(&message), bytes, "{message:?}");
        assert_eq!(decode(bytes), Ok(message));
    }
}

#[test]
fn other_bytes_are_refused() {
    let bytes = encode(&ToOwner::Leave { epoch: 300, peer: 5 });
    for length in 0..bytes.len() {
        assert_eq!(decode::<ToOwner>(&bytes[..length]), Err(NotAMessage));
    }
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(decode::<ToOwner>(&longer), Err(NotAMessage));
    assert_eq!(decode::<ToOwner>(&[&[2], &bytes[1..]].concat()), Err(NotAMessage));
}
