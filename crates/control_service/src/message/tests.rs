//! The bytes of requests and replies, and what is refused.

use expect_test::{Expect, expect};
use firn_control::{ControlMessage, Heartbeat, NodeMessage};

use super::*;

fn hex(bytes: &[u8]) -> String {
    let rows = bytes
        .chunks(16)
        .map(|row| row.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" "));
    rows.collect::<Vec<_>>().join("\n")
}

fn check_request(request: &Request, expected: Expect) {
    expected.assert_eq(&hex(&request.encode()));
    assert_eq!(Request::decode(&request.encode()).as_ref(), Ok(request));
}

fn check_reply(reply: &Reply, expected: Expect) {
    expected.assert_eq(&hex(&reply.encode()));
    assert_eq!(Reply::decode(&reply.encode()).as_ref(), Ok(reply));
}

#[test]
fn requests_have_these_bytes() {
    check_request(
        &Request::Propose(Proposal::Remove { node: NodeId(300) }),
        expect!["01 00 03 ac 02"],
    );
    let (cluster, node) = (firn_control::ClusterId(7), NodeId(2));
    let heartbeat = Heartbeat { entries: 40, ..Heartbeat::default() };
    let body = NodeMessage::Heartbeat(heartbeat);
    let tell = Request::Tell(ToControl { cluster, node, incarnation: 5, body });
    check_request(&tell, expect!["01 01 07 02 05 00 28 00 00 00 00"]);
    let watcher = Some(Watcher { node, incarnation: 5 });
    check_request(
        &Request::Watch { watcher, entries: 300, patience: 1000 },
        expect!["01 02 01 02 05 ac 02 e8 07"],
    );
    check_request(
        &Request::Watch { watcher: None, entries: 0, patience: 0 },
        expect!["01 02 00 00 00"],
    );
    check_request(&Request::Status, expect!["01 03"]);
}

#[test]
fn replies_have_these_bytes() {
    let leader = Some("10.0.0.1:7".to_owned());
    check_reply(
        &Reply::NotLeader { leader: leader.clone() },
        expect!["01 00 01 0a 31 30 2e 30 2e 30 2e 31 3a 37"],
    );
    check_reply(&Reply::Applied(Applied::Node(NodeId(300))), expect!["01 01 01 ac 02"]);
    check_reply(&Reply::Refused("no".to_owned()), expect!["01 02 02 6e 6f"]);
    check_reply(&Reply::Unknown, expect!["01 03"]);
    let text = "gone".to_owned();
    check_reply(
        &Reply::Unheard { why: Unheard::Removed, text },
        expect!["01 04 01 04 67 6f 6e 65"],
    );
    let message = ToNode {
        cluster: firn_control::ClusterId(7),
        term: Term(6),
        body: ControlMessage::Heard { entries: 300 },
    };
    let news = Reply::News { catalog: Some(vec![1, 2]), messages: vec![message] };
    check_reply(&news, expect!["01 05 01 02 01 02 01 07 06 01 ac 02"]);
    let operation = OperationLine {
        operation: OperationId(9),
        text: "move".to_owned(),
        reason: Reason::NodeDown,
        progress: Some(Progress { done: 1, total: 2 }),
        waits_for: None,
    };
    let status = StatusReply {
        member: MemberId(2),
        term: Term(6),
        leads: true,
        leader,
        entries: 300,
        operations: vec![operation],
    };
    check_reply(
        &Reply::Status(Box::new(status)),
        expect![[r#"
        01 06 02 06 01 01 0a 31 30 2e 30 2e 30 2e 31 3a
        37 ac 02 01 09 04 6d 6f 76 65 01 01 01 02 00"#]],
    );
    check_reply(&Reply::Failed("full".to_owned()), expect!["01 07 04 66 75 6c 6c"]);
}

#[test]
fn other_bytes_are_refused() {
    let bytes = Request::Status.encode();
    let other = [&[2], &bytes[1..]].concat();
    assert_eq!(Request::decode(&other), Err(MessageError::Version(2)));
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(Request::decode(&longer), Err(MessageError::Malformed));
    assert_eq!(Reply::decode(&[]), Err(MessageError::Malformed));
    // A number with needless bytes.
    assert_eq!(Request::decode(&[1, 0x83, 0]), Err(MessageError::Malformed));
    for length in 0..200 {
        let bytes: Vec<u8> = (0..length).map(|at| (at * 7 + length) as u8).collect();
        check_any_bytes(&bytes);
    }
}
