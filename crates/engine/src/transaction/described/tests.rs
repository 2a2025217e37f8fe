//! The reader stands for a node that follows: its transactions are the same.

use std::ops::Bound;

use firn_api::rows::{Fetched, ReadSpan};

use super::*;
use crate::test_support::Node;
use crate::transaction::{Cursor, Direction, KeyRange, ReadMode, RecordReader};

fn reader(node: &Node) -> ReadTransaction {
    let versions = node.system.versions();
    let mut trx = ReadTransaction::begin(versions, IsolationLevel::RepeatableRead).unwrap();
    trx.keep_reads();
    trx
}

fn get(node: &Node, trx: &mut ReadTransaction, key: &[u8]) -> Option<Vec<u8>> {
    let mut payload = Vec::new();
    trx.get_consistent(node.index, key, &mut payload).unwrap().then_some(payload)
}

fn keys(node: &Node, trx: &mut ReadTransaction, low: &[u8], high: &[u8]) -> Vec<Vec<u8>> {
    let range =
        KeyRange { low: Bound::Included(low.to_vec()), high: Bound::Excluded(high.to_vec()) };
    let mut cursor = Cursor::new(node.index, range, Direction::Backward, ReadMode::Consistent);
    let mut found = Vec::new();
    while RecordReader::fetch(trx, &mut cursor, None).unwrap() != Fetched::End {
        found.extend(cursor.rows().map(|(key, _)| key.to_vec()));
    }
    found
}

/// A node with the records `b`, `d`, `f` and `hot`.
fn node() -> Node {
    let node = Node::new();
    for key in [&b"b"[..], b"d", b"f", b"hot"] {
        node.put(key, b"1");
    }
    node
}

/// Runs `read` in a transaction of a node that follows, then `others`, which also change the record
/// `hot`. Moves the transaction, and writes `hot`. Returns whether the snapshot could be renewed.
fn renewed_after(
    read: impl FnOnce(&Node, &mut ReadTransaction),
    others: impl FnOnce(&Node),
) -> bool {
    let node = node();
    let mut there = reader(&node);
    read(&node, &mut there);
    others(&node);
    node.put(b"hot", b"theirs");
    node.purge();
    let described = there.describe().unwrap();
    let mut here = Transaction::take_up(&node.system, &described).unwrap();
    assert_eq!(here.snapshot(), there.snapshot());
    drop(there);
    node.purge();
    assert_eq!(here.describe(), Some(described), "it can be moved on");
    let mark = here.read_mark();
    let refused = here.update(node.index, b"hot", b"mine").unwrap_err();
    assert!(matches!(refused, EngineError::WriteConflict), "{refused}");
    if !here.renew_snapshot(mark).unwrap() {
        assert_eq!(get(&node, &mut here, b"hot").as_deref(), Some(&b"1"[..]));
        return false;
    }
    assert!(here.update(node.index, b"hot", b"mine").unwrap());
    here.commit().unwrap();
    assert_eq!(get(&node, &mut reader(&node), b"hot").as_deref(), Some(&b"mine"[..]));
    true
}

#[test]
fn what_was_read_elsewhere_must_be_as_it_was() {
    let read_b = |node: &Node, trx: &mut ReadTransaction| drop(get(node, trx, b"b"));
    assert!(renewed_after(read_b, |_| {}));
    assert!(renewed_after(read_b, |node| node.put(b"d", b"2")));
    assert!(!renewed_after(read_b, |node| node.put(b"b", b"2")));
    assert!(!renewed_after(read_b, |node| node.remove(b"b")));
}

#[test]
fn a_record_that_was_not_there_must_not_have_come() {
    let read_c = |node: &Node, trx: &mut ReadTransaction| assert_eq!(get(node, trx, b"c"), None);
    assert!(renewed_after(read_c, |node| node.put(b"cc", b"2")));
    assert!(!renewed_after(read_c, |node| node.put(b"c", b"2")));
}

#[test]
fn a_range_that_was_read_elsewhere_must_have_the_same_records() {
    let read_range = |node: &Node, trx: &mut ReadTransaction| {
        assert_eq!(keys(node, trx, b"b", b"f"), [b"d", b"b"]);
    };
    assert!(renewed_after(read_range, |node| node.put(b"f", b"2")));
    assert!(!renewed_after(read_range, |node| node.put(b"d", b"2")));
    assert!(!renewed_after(read_range, |node| node.put(b"c", b"2")));
    assert!(!renewed_after(read_range, |node| node.remove(b"d")));
}

#[test]
fn reads_that_are_not_told_end_it() {
    let opens = |_: &Node, trx: &mut ReadTransaction| trx.open_snapshot();
    assert!(!renewed_after(opens, |_| {}), "the client has asked for this snapshot");
    let read = |times: usize, length: usize| {
        move |node: &Node, trx: &mut ReadTransaction| {
            for _ in 0..times {
                assert_eq!(get(node, trx, &vec![b'x'; length]), None);
            }
        }
    };
    assert!(renewed_after(read(256, 256), |_| {}));
    assert!(!renewed_after(read(257, 1), |_| {}), "too many");
    assert!(!renewed_after(read(256, 257), |_| {}), "too long");
}

#[test]
fn reads_are_recorded_from_then_on() {
    let node = node();
    let mut there = reader(&node);
    drop(get(&node, &mut there, b"b"));
    let described = there.describe().unwrap();
    let mut here = Transaction::take_up(&node.system, &described).unwrap();
    drop(there);
    drop(get(&node, &mut here, b"d"));
    let record = |key: &[u8]| ReadSpan::Record(node.index, key.to_vec());
    let reads = here.describe().unwrap().snapshot.unwrap().reads;
    assert_eq!(reads, Some(vec![record(b"b"), record(b"d")]));
    node.put(b"d", b"2");
    node.put(b"hot", b"theirs");
    let mark = here.read_mark();
    here.update(node.index, b"hot", b"mine").unwrap_err();
    assert!(!here.renew_snapshot(mark).unwrap());
}

#[test]
fn a_snapshot_chosen_elsewhere_is_not_renewed_without_its_reads() {
    let node = node();
    let snapshot = node.system.order().max_committed();
    node.put(b"hot", b"theirs");
    let level = IsolationLevel::RepeatableRead;
    let mut trx = Transaction::begin_at(&node.system, level, snapshot).unwrap();
    trx.keep_reads();
    let mark = trx.read_mark();
    trx.update(node.index, b"hot", b"mine").unwrap_err();
    assert!(!trx.renew_snapshot(mark).unwrap());
}

#[test]
fn before_the_first_read_there_is_nothing_to_go_on_from() {
    let node = node();
    for isolation in [IsolationLevel::ReadCommitted, IsolationLevel::RepeatableRead] {
        let there = ReadTransaction::begin(node.system.versions(), isolation).unwrap();
        let described = there.describe().unwrap();
        assert_eq!(described, DescribedTransaction { isolation, snapshot: None });
        node.put(b"hot", b"theirs");
        let mut here = Transaction::take_up(&node.system, &described).unwrap();
        assert_eq!(here.isolation(), isolation);
        assert!(here.update(node.index, b"hot", b"mine").unwrap());
        assert_eq!(here.describe(), None, "it has written");
    }
}

#[test]
fn read_committed_has_no_snapshot_between_statements() {
    let node = node();
    let versions = node.system.versions();
    let mut there = ReadTransaction::begin(versions, IsolationLevel::ReadCommitted).unwrap();
    drop(get(&node, &mut there, b"b"));
    there.end_statement();
    assert_eq!(there.describe().unwrap().snapshot, None);
}

#[test]
fn a_snapshot_that_nobody_has_held_is_refused() {
    let node = node();
    let mut there = reader(&node);
    drop(get(&node, &mut there, b"b"));
    let described = there.describe().unwrap();
    drop(there);
    node.put(b"b", b"2");
    node.purge();
    let refused = Transaction::take_up(&node.system, &described).map(drop).unwrap_err();
    assert_eq!(refused.mysql_code(), 1412, "{refused}");
}

#[test]
fn serializable_transactions_stay() {
    let node = node();
    let isolation = IsolationLevel::Serializable;
    let there = ReadTransaction::begin(node.system.versions(), isolation).unwrap();
    assert_eq!(there.describe(), None);
    let described = DescribedTransaction { isolation, snapshot: None };
    let refused = Transaction::take_up(&node.system, &described).map(drop);
    assert!(matches!(refused, Err(EngineError::Invalid(_))));
}
