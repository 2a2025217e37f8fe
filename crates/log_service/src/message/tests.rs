use expect_test::{Expect, expect};
use firn_base::{PageNo, SpaceId};
use firn_format::redo::GroupBuilder;
use proptest::prelude::*;

use super::*;

const POSITIONS: Positions = Positions { truncated: Lsn(8), durable: Lsn(300) };

fn page(number: u32) -> PageId {
    PageId::new(SpaceId(1), PageNo(number))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

fn check(bytes: &[u8], expected: Expect) {
    expected.assert_eq(&hex(bytes));
}

fn group(number: u32) -> Vec<u8> {
    let mut builder = GroupBuilder::new();
    builder.push(1, page(number), |body| body.extend([number as u8; 8]));
    builder.finish().to_vec()
}

fn follow() -> FollowRequest {
    FollowRequest {
        name: "pages-1".to_owned(),
        from: Lsn(8),
        until: Some(Lsn(72)),
        pages: WantedPages::Ranges(vec![(page(2), page(300))]),
        limit_bytes: 65_536,
        piece_bytes: 1024,
        gather_us: 300,
    }
}

#[test]
fn requests_have_these_bytes() {
    let reader =
        HeldReader { name: "b".to_owned(), held: Lsn(128), limit_bytes: 1000, stays: true };
    check(
        &Request::Hold { client: 3, readers: vec![reader] }.encode(),
        expect!["02 00 03 01 01 62 80 01 e8 07 01"],
    );
    check(&Request::Forget { name: "b".to_owned() }.encode(), expect!["02 01 01 62"]);
    check(&Request::Read { from: Lsn(8), limit_bytes: 300 }.encode(), expect!["02 02 08 ac 02"]);
    check(&Request::Readers.encode(), expect!["02 03"]);
    check(
        &Request::Follow(follow()).encode(),
        expect!["02 04 07 70 61 67 65 73 2d 31 08 01 48 01 01 01 02 01 ac 02 80 80 04 80 08 ac 02"],
    );
    let pages = WantedPages::Places { extents: Extents { pages: 300 }, first: 5, end: 7 };
    check(
        &Request::Follow(FollowRequest { pages, until: None, ..follow() }).encode(),
        expect!["02 04 07 70 61 67 65 73 2d 31 08 00 02 ac 02 05 07 80 80 04 80 08 ac 02"],
    );
    let (extents, ranges) = (Extents { pages: 300 }, vec![(5, 7), (9, 300)]);
    let pages = WantedPages::SeveralPlaces { extents, ranges };
    check(
        &Request::Follow(FollowRequest { pages, until: None, ..follow() }).encode(),
        expect![
            "02 04 07 70 61 67 65 73 2d 31 08 00 03 ac 02 02 05 07 09 ac 02 80 80 04 80 08 ac 02"
        ],
    );
}

#[test]
fn replies_have_these_bytes() {
    let positions = POSITIONS;
    let held = Reply::Held { positions, kept_from: vec![Lsn(128)], leader: Some("a".to_owned()) };
    check(&held.encode(), expect!["02 00 08 ac 02 01 80 01 01 01 61"]);
    check(&Reply::Forgotten { positions }.encode(), expect!["02 01 08 ac 02"]);
    check(&Reply::Log { positions, end: Lsn(40) }.encode(), expect!["02 02 08 ac 02 28"]);
    check(
        &Reply::Readers { positions, readers: Vec::new() }.encode(),
        expect!["02 03 08 ac 02 00"],
    );
    check(&Reply::End { positions }.encode(), expect!["02 04 08 ac 02"]);
    let error = LogError::OutOfRange { position: Lsn(8), from: Lsn(128), to: Lsn(300) };
    check(
        &Reply::Failed { positions, failure: error.into() }.encode(),
        expect!["02 05 08 ac 02 05 08 80 01 ac 02"],
    );
}

#[test]
fn pushes_have_these_bytes() {
    let positions = POSITIONS;
    check(
        &Push::All { positions, from: Lsn(8), to: Lsn(40) }.encode(),
        expect!["02 00 08 ac 02 08 28"],
    );
    let (from, to, groups) = (Lsn(8), Lsn(136), vec![(32, 32), (0, 32)]);
    check(
        &Push::Some { positions, from, to, groups }.encode(),
        expect!["02 01 08 ac 02 08 88 01 02 20 20 00 20"],
    );
    check(&Push::Progress { positions }.encode(), expect!["02 02 08 ac 02"]);
}

/// The bytes of a push, as a client gets them.
fn bytes_of(body: &Body) -> Vec<u8> {
    body.parts().iter().flat_map(|part| part.iter().copied()).collect()
}

#[test]
fn a_piece_arrives_as_it_was_sent() {
    let log = [group(1), group(2), group(3)].concat();
    let some = PageFilter::Ranges(vec![page(2)..=page(2)]);
    for filter in [PageFilter::All, some, PageFilter::Ranges(Vec::new())] {
        let piece = LogPiece::new(Lsn(8), log.clone(), &filter).unwrap();
        let bytes = bytes_of(&Push::of_piece(POSITIONS, &piece, &filter));
        assert_eq!(read_push(Payload::from(bytes.clone())), Ok((POSITIONS, Some(piece))));
        let early = Positions { durable: Lsn(96), ..POSITIONS };
        let (mut push, rest) = Push::decode(&bytes).unwrap();
        match &mut push {
            Push::All { positions, .. } | Push::Some { positions, .. } => *positions = early,
            Push::Progress { .. } => unreachable!(),
        }
        let undurable = [push.encode().as_slice(), rest].concat();
        let refused = read_push(Payload::from(undurable));
        assert_eq!(refused, Err(Damage::Message("log that is not durable")));
    }
}

#[test]
fn a_push_whose_log_does_not_fit_is_refused() {
    let positions = POSITIONS;
    let (from, to) = (Lsn(8), Lsn(40));
    let refused = |push: Push, log: &[u8]| {
        let bytes = [push.encode().as_slice(), log].concat();
        assert!(read_push(Payload::from(bytes)).is_err(), "{push:?}");
    };
    let one = group(1);
    refused(Push::All { positions, from, to }, &one[..24]);
    refused(Push::All { positions, from, to: Lsn(48) }, &one);
    refused(Push::All { positions, from: to, to: from }, &[]);
    let some = |groups| Push::Some { positions, from, to, groups };
    refused(some(vec![(0, 40)]), &one);
    refused(some(vec![(0, 32)]), &[]);
    refused(some(vec![]), &one);
    refused(some(vec![(u64::MAX, 32)]), &one);
    refused(some(vec![(0, 32), (0, 0)]), &one);
}

#[test]
fn other_versions_and_limits_are_refused() {
    let mut bytes = Request::Readers.encode();
    bytes[0] = VERSION + 1;
    assert_eq!(Request::decode(&bytes), Err(Damage::Version(VERSION + 1)));
    assert_eq!(Request::decode(&[]), Err(Damage::Message("it is empty")));
    let name = "n".repeat(MAX_NAME_BYTES + 1);
    let reader = |name: &str| HeldReader {
        name: name.to_owned(),
        held: Lsn(8),
        limit_bytes: 0,
        stays: false,
    };
    for request in [
        Request::Forget { name: name.clone() },
        Request::Hold { client: 0, readers: vec![reader(&name)] },
        Request::Hold { client: 0, readers: vec![reader("a"); MAX_READERS + 1] },
        Request::Follow(FollowRequest { name, ..follow() }),
        Request::Follow(FollowRequest {
            pages: WantedPages::Ranges(vec![(page(1), page(1)); MAX_RANGES + 1]),
            ..follow()
        }),
    ] {
        let refused = Request::decode(&request.encode());
        assert_eq!(refused, Err(Damage::Message("a request is over its limits")));
    }
}

#[test]
fn options_survive_the_way() {
    let extents = Extents { pages: 4 };
    let places = PageFilter::places(extents, 5..7);
    let several = PageFilter::Places { extents, ranges: vec![5..7, 9..11] };
    for pages in [PageFilter::All, PageFilter::Ranges(vec![page(1)..=page(4)]), places, several] {
        let options = FollowOptions { pages, ..follow().options() };
        let request = FollowRequest::new(&options, options.from, 1, Duration::ZERO);
        let Ok(Request::Follow(read)) = Request::decode(&Request::Follow(request).encode()) else {
            panic!("it is a request");
        };
        assert_eq!(read.options(), options);
    }
}

#[test]
fn errors_survive_the_way() {
    let text = || "a place".to_owned();
    for error in [
        LogError::NoRoom { place: text(), reason: text() },
        LogError::Failed { place: text(), reason: text() },
        LogError::Fenced { by: LogEpoch(7) },
        LogError::NotLeader { hint: Some(text()) },
        LogError::Unavailable { reason: text() },
        LogError::OutOfRange { position: Lsn(1), from: Lsn(2), to: Lsn(3) },
        LogError::ReaderDropped { name: text(), held: Lsn(4), limit_bytes: 5 },
        LogError::Unreadable { at: text(), reason: text() },
        LogError::Damaged { at: text(), what: text() },
    ] {
        let read = LogError::from(Failure::from(error.clone()));
        assert_eq!(format!("{read:?}"), format!("{error:?}"));
    }
}

proptest! {
    #[test]
    fn any_bytes_are_refused_or_written_back(mut bytes: Vec<u8>, has_version: bool) {
        if has_version && !bytes.is_empty() {
            bytes[0] = VERSION;
        }
        check_any_bytes(&bytes);
    }

    #[test]
    fn damaged_messages_are_refused_or_written_back(at: usize, value: u8, kind in 0..4_usize) {
        let positions = POSITIONS;
        let (from, to, groups) = (Lsn(8), Lsn(40), vec![(0, 32)]);
        let mut bytes = match kind {
            0 => Request::Follow(follow()).encode(),
            1 => Reply::Held { positions, kept_from: vec![Lsn(8)], leader: None }.encode(),
            2 => [Push::All { positions, from, to }.encode(), group(1)].concat(),
            _ => [Push::Some { positions, from, to, groups }.encode(), group(1)].concat(),
        };
        let length = bytes.len();
        bytes[at % length] = value;
        check_any_bytes(&bytes);
    }
}
