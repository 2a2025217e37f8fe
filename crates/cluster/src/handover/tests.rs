use std::ops::Bound;

use firn_api::rows::{
    HandedLock, HandedOver, HandedSession, HandedTarget, HandedTransaction, HandedWriter,
    IsolationLevel, MetadataLock, Savepoint,
};
use firn_base::{Cts, IndexId, PageId, PageNo, SpaceId, TableId, TrxId};

use super::*;

fn handed() -> HandedSessions {
    let index = IndexId::from(PageId::new(SpaceId(9), PageNo(3)));
    let lock = |target, is_exclusive| HandedLock { target, is_exclusive };
    let transaction = HandedTransaction {
        session: 300,
        isolation: IsolationLevel::RepeatableRead,
        writer: Some(HandedWriter { trx: TrxId(77), last: 5, records: 2 }),
        snapshot: Some(Cts(40)),
        row_locks: vec![
            lock(HandedTarget::Key(index, b"k".to_vec()), true),
            lock(
                HandedTarget::Range(index, Bound::Unbounded, Bound::Excluded(b"z".to_vec())),
                false,
            ),
            lock(HandedTarget::Table(TableId(11)), false),
        ],
        table_locks: vec![(TableId(11), MetadataLock::Write)],
    };
    HandedSessions {
        sessions: vec![HandedSession {
            session: 300,
            read_only: false,
            savepoints: vec![("a".to_owned(), Savepoint(4))],
            belongings: Some(vec![1, 9]),
        }],
        node: HandedOver {
            number: 8,
            transactions: vec![transaction],
            commits: vec![(TrxId(70), Cts(41))],
        },
    }
}

#[test]
fn the_messages_have_these_bytes() {
    let keep = Message::Keep(handed());
    let expected = [
        &[2][..],                                                // version
        &[0],                                                    // keep
        &[1, 0xac, 2, 0],                                        // one session, 300, that may write
        &[1, 1, b'a', 4], // its savepoint `a`, at 4 of the undo log
        &[1, 2, 1, 9],    // two bytes of belongings
        &[8],             // the handover's number
        &[1, 0xac, 2, 1], // one transaction, of session 300, repeatable read
        &[1, 77, 5, 2],   // transaction 77 ends at 5 of its undo log, after 2 records
        &[1, 40],         // its snapshot
        &[3],             // three locks:
        &[0, 0x83, 0x80, 0x80, 0x80, 0x90, 1, 1, b'k', 1], // key `k` of an index, exclusive
        &[1, 0x83, 0x80, 0x80, 0x80, 0x90, 1, 0, 2, 1, b'z', 0], // its keys up to `z`, shared
        &[2, 11, 0],      // table 11, shared
        &[1, 11, 2],      // one lock on a definition: table 11, to write rows
        &[1, 70, 41],     // transaction 70 has committed at 41
    ]
    .concat();
    assert_eq!(encode(VERSION, &keep), expected);
    assert_eq!(decode(VERSION, &expected), Some(keep));
    let forget = Message::Forget { number: 300 };
    assert_eq!(encode(VERSION, &forget), [2, 1, 0xac, 2]);
    assert_eq!(decode(VERSION, &[2, 1, 0xac, 2]), Some(forget));
}

#[test]
fn what_was_kept_is_taken_once_and_not_if_it_is_forgotten() {
    let handovers = Handovers::new(&Environment::system());
    assert_eq!(handovers.take(), HandedSessions::default());
    handovers.told(Message::Keep(handed()));
    handovers.told(Message::Forget { number: 9 });
    assert_eq!(handovers.take(), handed(), "another handover was forgotten");
    assert_eq!(handovers.take(), HandedSessions::default());
    handovers.told(Message::Keep(handed()));
    handovers.told(Message::Forget { number: 8 });
    assert_eq!(handovers.take(), HandedSessions::default());
}
