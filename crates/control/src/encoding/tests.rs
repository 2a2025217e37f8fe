//! The bytes of proposals and snapshots, and what is refused.

use expect_test::{Expect, expect};
use firn_base::{Extents, Lsn, PageNo};
use firn_consensus::{MemberId, Role, Term};
use proptest::prelude::*;

use super::*;
use crate::catalog::tests::{example, join};
use crate::chunk::EVERY_SPACE;
use crate::identifiers::{ChunkId, ClusterId, Epoch, GroupId, NodeId, OperationId};
use crate::message::{ChunkReport, ControlMessage, Heartbeat, NodeMessage, Progress};
use crate::operation::{Division, OperationKind, Reason};
use crate::order::{Action, ChunkRange, Order, OrderNumber, retire_stray};
use crate::proposal::Founding;

fn hex(bytes: &[u8]) -> String {
    let rows = bytes
        .chunks(16)
        .map(|row| row.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" "));
    rows.collect::<Vec<_>>().join("\n")
}

fn check(proposal: &Proposal, expected: Expect) {
    let bytes = proposal.encode();
    expected.assert_eq(&hex(&bytes));
    assert_eq!(Proposal::decode(&bytes).as_ref(), Ok(proposal));
}

#[test]
fn proposals_have_these_bytes() {
    check(
        &Proposal::Join(join(4)),
        expect![[r#"
        01 00 01 07 02 6e 34 04 0a 68 6f 73 74 34 3a 34
        30 30 30 00 04 01 03 04 05 02 7a 31 80 80 80 80
        04 00 01 00 01 02 00"#]],
    );
    let (chunk, epoch, node) = (ChunkId(3), Epoch(300), NodeId(2));
    let (from, to, reason) = (Some(node), NodeId(4), Reason::NodeDown);
    check(
        &Proposal::MoveReplica { chunk, epoch, from, to, reason },
        expect!["01 0a 03 ac 02 01 02 04 01"],
    );
    let (group, add) = (GroupId(1), Some((node, Role::Logger)));
    let (remove, reason) = (Some(MemberId(1)), Reason::Draining);
    check(
        &Proposal::ChangeMember { group, epoch, add, remove, reason },
        expect!["01 0d 01 ac 02 01 02 01 01 01 03"],
    );
    check(&Proposal::Switch { group, to: Some(node) }, expect!["01 14 01 01 02"]);
    check(&Proposal::Resize { group, voters: 3, loggers: 1 }, expect!["01 15 01 03 01"]);
    let reason = Reason::Growth;
    check(&Proposal::Divide { chunk, epoch, reason }, expect!["01 16 03 ac 02 06"]);
    check(&Proposal::SplitAbove { bytes: 300 }, expect!["01 17 ac 02"]);
    let founding = Founding { nodes: Vec::new(), groups: Vec::new(), chunks: Vec::new() };
    let chunks = vec![ChunkId(1), ChunkId(4)];
    check(&Proposal::FoundNumbered { founding, chunks }, expect!["01 18 00 00 00 02 01 04"]);
    let (operation, step, position) = (OperationId(9), 2, Lsn(1000));
    check(
        &Proposal::Acknowledge { operation, step, node, position },
        expect!["01 12 09 02 02 e8 07"],
    );
}

#[test]
fn messages_have_these_bytes() {
    let (cluster, node, incarnation) = (ClusterId(7), NodeId(2), 5);
    let number = OrderNumber { operation: OperationId(9), step: 2, part: 0 };
    let report = ChunkReport { epoch: Epoch(4), position: Lsn(1000), bytes: 70_000, pages: 5 };
    let heartbeat = Heartbeat {
        entries: 40,
        unreachable: [NodeId(3)].into(),
        chunks: [(ChunkId(3), report)].into(),
        leads: [(GroupId(1), (Term(6), MemberId(2)))].into(),
        copies: [(OperationId(9), Progress { done: 1, total: 2 })].into(),
    };
    let to_control = |body| ToControl { cluster, node, incarnation, body };
    let message = to_control(NodeMessage::Heartbeat(heartbeat));
    expect![[r#"
        01 07 02 05 00 28 01 03 01 03 04 e8 07 f0 a2 04
        05 01 01 06 02 01 09 01 02"#]]
    .assert_eq(&hex(&message.encode()));
    assert_eq!(ToControl::decode(&message.encode()), Ok(message));
    let position = Lsn(1000);
    let message = to_control(NodeMessage::Acknowledgement { number, position });
    expect!["01 07 02 05 01 09 02 00 e8 07"].assert_eq(&hex(&message.encode()));
    let order = retire_stray(node, ChunkId(3), Epoch(4));
    let body = ControlMessage::Order(Order { number, ..order });
    let message = ToNode { cluster, term: Term(6), body };
    expect!["01 07 06 00 09 02 00 02 09 03 04"].assert_eq(&hex(&message.encode()));
    assert_eq!(ToNode::decode(&message.encode()), Ok(message));
    let (space, first, end) = (EVERY_SPACE, PageNo(300), PageNo(400));
    let action = Action::CopyPart {
        of: ChunkId(2),
        chunk: ChunkId(3),
        epoch: Epoch(1),
        range: ChunkRange { space, first, end, group: GroupId(1) },
        extents: Extents { pages: 8 },
    };
    let body = ControlMessage::Order(Order { number, node, action });
    let message = ToNode { cluster, term: Term(6), body };
    expect![[r#"
        01 07 06 00 09 02 00 02 0d 02 03 01 ff ff ff ff
        0f ac 02 90 03 01 08"#]]
    .assert_eq(&hex(&message.encode()));
    assert_eq!(ToNode::decode(&message.encode()), Ok(message));
}

#[test]
fn a_division_has_these_bytes() {
    let (chunk, upper, at) = (ChunkId(2), ChunkId(3), PageNo(300));
    let (waiting, ready) = ([NodeId(4)].into(), [(NodeId(5), Lsn(1000))].into());
    let kind = OperationKind::DivideChunk(Division { chunk, upper, at, waiting, ready });
    expect!["08 02 03 ac 02 01 04 01 05 e8 07"].assert_eq(&hex(&plain(&kind)));
    assert_eq!(exact(&plain(&kind)), Some(kind));
}

#[test]
fn snapshots_have_these_bytes() {
    let bytes = example().snapshot();
    expect![[r#"
        46 49 52 4e 43 54 52 4c 01 00 00 00 eb 00 00 00
        72 35 b3 60 07 0a 03 80 80 28 0f 32 14 f0 2e 0a
        b0 09 02 0a 03 01 02 6e 31 01 0a 68 6f 73 74 31
        3a 34 30 30 30 00 04 01 03 04 05 02 7a 31 80 80
        80 80 04 00 01 00 01 02 00 01 00 00 02 02 6e 32
        02 0a 68 6f 73 74 32 3a 34 30 30 30 00 04 01 03
        04 05 02 7a 32 80 80 80 80 04 00 01 00 01 02 00
        01 00 00 03 02 6e 33 03 0a 68 6f 73 74 33 3a 34
        30 30 30 00 04 01 03 04 05 02 7a 30 80 80 80 80
        04 00 01 00 01 02 00 01 00 00 02 00 03 01 01 00
        02 02 00 03 03 00 04 02 01 00 00 01 01 01 01 03
        01 01 00 02 02 00 03 03 01 04 02 01 02 01 01 01
        01 02 01 01 05 00 ff ff ff ff 0f 01 01 00 00 03
        01 00 0a 08 02 00 0a 08 03 00 0a 08 01 03 03 01
        00 00 03 01 02 03 00 01 02 00 01 03 01 02 03 00
        01 03 01 01 03 01 02 03 00 01 00 04 02 02 04"#]]
    .assert_eq(&hex(&bytes));
    assert_eq!(Catalog::restore(&bytes), Ok(example()));
}

#[test]
fn a_snapshot_that_says_when_chunks_are_cut_has_the_next_version() {
    let mut catalog = example();
    let usual = catalog.snapshot();
    catalog.split_above = 300;
    let bytes = catalog.snapshot();
    assert_eq!((bytes[8], usual[8]), (2, 1));
    let length = usual.len();
    assert_eq!((&bytes[20..length], &bytes[length..]), (&usual[20..], &[0xac, 2][..]));
    assert_eq!(Catalog::restore(&bytes), Ok(catalog));
    assert_eq!(Catalog::restore(&usual).map(|one| one.split_above), Ok(SPLIT_ABOVE));
}

#[test]
fn other_bytes_are_refused() {
    let whole = example().snapshot();
    for end in 0..whole.len() {
        assert!(Catalog::restore(&whole[..end]).is_err(), "{end} bytes of {}", whole.len());
    }
    for place in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[place] ^= 1;
        assert!(Catalog::restore(&damaged).is_err(), "byte {place}");
    }
    let mut newer = whole.clone();
    newer[8] = 3;
    let text = Catalog::restore(&newer).unwrap_err().to_string();
    expect!["the snapshot of the catalog has version 3, which this build does not know; update the older control node"].assert_eq(&text);
    assert!(matches!(Proposal::decode(&[2, 0]), Err(EncodingError::Version { found: 2, .. })));
    let mut later = whole.clone();
    later[8] = 2;
    assert!(Catalog::restore(&later).is_err(), "it has the fields of the version before");
    let mut longer = Proposal::Join(join(4)).encode();
    longer.push(0);
    assert!(Proposal::decode(&longer).is_err());
}

#[test]
fn catalogs_that_contradict_themselves_are_refused() {
    let mut catalog = example();
    catalog.nodes.remove(&crate::NodeId(2));
    let restored = Catalog::restore(&catalog.snapshot());
    assert!(matches!(restored, Err(EncodingError::Contradiction(_))), "{restored:?}");
}

proptest! {
    #[test]
    fn any_bytes_are_refused_or_written_back(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        check_any_bytes(&bytes);
    }

    #[test]
    fn damaged_payloads_are_refused_or_written_back(place in 0_usize..2000, bit in 0_u8..8) {
        let mut payload = plain(&example());
        let place = place % payload.len();
        payload[place] ^= 1 << bit;
        check_any_bytes(&payload);
    }
}
