//! The bytes of messages, and what is refused.

use expect_test::{Expect, expect};
use firn_base::Lsn;

use super::*;
use crate::entry::Content;
use crate::members::{MemberChange, Members, Role};

/// Nothing but what every message has.
fn message(kind: MessageKind) -> Message {
    Message {
        kind,
        from: MemberId(1),
        to: MemberId(2),
        term: Term(3),
        stamp: 0,
        index: Index(0),
        log_term: Term(0),
        durable: Index(0),
        durable_term: Term(0),
        refused: false,
        hint: Index(0),
        base: None,
        entries: Vec::new(),
        context: Vec::new(),
    }
}

fn append() -> Message {
    let log = Content::Log { bytes: 200, checksum: 0x1234_5678 };
    let change = MemberChange::Set(MemberId(4), Role::Logger);
    let entry = |index, start, content| Entry {
        index: Index(index),
        term: Term(3),
        start: Lsn(start),
        content,
    };
    let entries = vec![
        entry(8, 1000, Content::Mark),
        entry(9, 1000, log),
        entry(10, 1200, Content::Members(vec![change, MemberChange::Remove(MemberId(1))])),
    ];
    Message {
        stamp: 77,
        index: Index(7),
        log_term: Term(2),
        durable: Index(6),
        entries,
        ..message(MessageKind::Append)
    }
}

fn bytes(message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    bytes
}

fn check(message: &Message, expected: Expect) {
    let bytes = bytes(message);
    let text: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    expected.assert_eq(&text.join(" "));
    let mut longer = bytes.clone();
    longer.extend_from_slice(b"log");
    assert_eq!(Message::decode(&longer), Ok((message.clone(), &b"log"[..])));
}

#[test]
fn messages_have_these_bytes() {
    check(
        &append(),
        expect![
            "01 00 01 02 03 4d 07 02 06 00 00 00 00 03 08 03 e8 07 00 09 03 e8 07 01 c8 01 f8 ac d1 91 01 0a 03 b0 09 02 02 00 04 01 01 01 00"
        ],
    );
    let vote = Message {
        index: Index(300),
        log_term: Term(2),
        durable: Index(6),
        durable_term: Term(2),
        ..message(MessageKind::AskVote)
    };
    check(&vote, expect!["01 02 01 02 03 00 ac 02 02 06 02 00 00 00 00 00"]);
    let answer = Message {
        refused: true,
        index: Index(7),
        hint: Index(5),
        log_term: Term(1),
        ..message(MessageKind::AppendAnswer)
    };
    check(&answer, expect!["01 01 01 02 03 00 07 01 00 00 01 05 00 00 00"]);
    let members = Members::new([(MemberId(1), Role::Voter), (MemberId(2), Role::Learner)]).unwrap();
    let base = Base { index: Index(6), term: Term(2), lsn: Lsn(1000), members, before: None };
    check(
        &Message { base: Some(base), ..message(MessageKind::Restart) },
        expect!["01 08 01 02 03 00 00 00 00 00 00 00 01 06 02 e8 07 02 01 00 02 02 00 00 00"],
    );
    let read = Message { term: Term(0), context: vec![9], ..message(MessageKind::AskRead) };
    check(&read, expect!["01 0a 01 02 00 00 00 00 00 00 00 00 00 00 01 09"]);
}

#[test]
fn other_bytes_are_refused() {
    assert_eq!(Message::decode(&[]), Err(MessageError::Malformed));
    assert_eq!(Message::decode(&[2, 0]), Err(MessageError::Version(2)));
    let whole = bytes(&append());
    for end in 0..whole.len() {
        assert!(Message::decode(&whole[..end]).is_err(), "{end} bytes of {}", whole.len());
    }
    for place in 0..whole.len() {
        for bit in 0..8 {
            let mut damaged = whole.clone();
            damaged[place] ^= 1 << bit;
            // Any answer, but no panic.
            let _ = Message::decode(&damaged);
        }
    }
}

#[test]
fn messages_that_no_member_sends_are_refused() {
    let refused =
        |message: Message| Message::decode(&bytes(&message)) == Err(MessageError::Malformed);
    assert!(refused(Message { from: MemberId(0), ..append() }), "nobody");
    assert!(refused(Message { term: Term(0), ..append() }), "no term");
    assert!(refused(Message { kind: MessageKind::Restart, ..append() }), "no base");
    assert!(refused(Message { kind: MessageKind::Heartbeat, ..append() }), "entries elsewhere");
    assert!(refused(Message { index: Index(8), ..append() }), "a gap of indexes");
    assert!(refused(Message { log_term: Term(4), ..append() }), "terms go back");
    let damaged = |damage: fn(&mut Entry)| {
        let mut message = append();
        damage(&mut message.entries[1]);
        refused(message)
    };
    assert!(damaged(|entry| entry.start = Lsn(1008)), "a gap of log");
    assert!(damaged(|entry| entry.term = Term(4)), "a term above the message's");
    assert!(damaged(|entry| entry.content = Content::Log { bytes: 0, checksum: 0 }), "no log");
    let endless = Content::Log { bytes: u64::MAX, checksum: 0 };
    let mut message = append();
    message.entries[1].content = endless;
    assert!(refused(message), "log beyond every position");
}
