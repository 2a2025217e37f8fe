use super::*;
use crate::test_support::Node;
use crate::transaction::{Cursor, Direction, IsolationLevel, ReadMode};

fn begin(node: &Node) -> Transaction {
    let mut trx = Transaction::begin(&node.system, IsolationLevel::RepeatableRead).unwrap();
    trx.keep_reads();
    trx
}

fn get(node: &Node, trx: &mut Transaction, key: &[u8]) -> Option<Vec<u8>> {
    let mut payload = Vec::new();
    let found = trx.get(node.index, key, ReadMode::Consistent, &mut payload).unwrap();
    found.then_some(payload)
}

fn keys(node: &Node, trx: &mut Transaction, low: &[u8], high: &[u8]) -> Vec<Vec<u8>> {
    let range =
        KeyRange { low: Bound::Included(low.to_vec()), high: Bound::Excluded(high.to_vec()) };
    let mut cursor = Cursor::new(node.index, range, Direction::Forward, ReadMode::Consistent);
    let mut found = Vec::new();
    while cursor.fetch(trx).unwrap() {
        found.extend(cursor.rows().map(|(key, _)| key.to_vec()));
    }
    found
}

/// Writes `hot`, which other transactions have changed, and tries to renew the snapshot.
fn renew(node: &Node, trx: &mut Transaction) -> bool {
    let mark = trx.read_mark();
    let refused = trx.update(node.index, b"hot", b"mine").unwrap_err();
    assert!(matches!(refused, EngineError::WriteConflict), "{refused}");
    trx.renew_snapshot(mark).unwrap()
}

/// Runs `read` in a transaction, then `others`, which also change the record `hot`. Returns whether
/// the snapshot could be renewed.
fn renewed_after(read: impl FnOnce(&Node, &mut Transaction), others: impl FnOnce(&Node)) -> bool {
    let node = Node::new();
    for key in [&b"b"[..], b"d", b"f", b"hot"] {
        node.put(key, b"1");
    }
    let mut trx = begin(&node);
    read(&node, &mut trx);
    others(&node);
    node.put(b"hot", b"theirs");
    if !renew(&node, &mut trx) {
        assert_eq!(get(&node, &mut trx, b"hot").as_deref(), Some(&b"1"[..]));
        return false;
    }
    assert_eq!(get(&node, &mut trx, b"hot").as_deref(), Some(&b"theirs"[..]));
    assert!(trx.update(node.index, b"hot", b"mine").unwrap());
    trx.commit().unwrap();
    assert_eq!(get(&node, &mut begin(&node), b"hot").as_deref(), Some(&b"mine"[..]));
    true
}

#[test]
fn what_was_read_must_be_as_it_was() {
    let read_b = |node: &Node, trx: &mut Transaction| drop(get(node, trx, b"b"));
    assert!(renewed_after(read_b, |_| {}));
    assert!(renewed_after(read_b, |node| node.put(b"d", b"2")));
    assert!(!renewed_after(read_b, |node| node.put(b"b", b"2")));
    assert!(!renewed_after(read_b, |node| node.remove(b"b")));
}

#[test]
fn a_record_that_was_not_there_must_not_have_come() {
    let read_c = |node: &Node, trx: &mut Transaction| assert_eq!(get(node, trx, b"c"), None);
    assert!(renewed_after(read_c, |node| node.put(b"cc", b"2")));
    assert!(!renewed_after(read_c, |node| node.put(b"c", b"2")));
}

#[test]
fn a_range_must_have_the_same_records() {
    let read_range = |node: &Node, trx: &mut Transaction| {
        assert_eq!(keys(node, trx, b"b", b"f"), [b"b", b"d"]);
    };
    assert!(renewed_after(read_range, |node| node.put(b"f", b"2")));
    assert!(renewed_after(read_range, |node| node.put(b"a", b"2")));
    assert!(!renewed_after(read_range, |node| node.put(b"d", b"2")));
    assert!(!renewed_after(read_range, |node| node.put(b"c", b"2")));
    assert!(!renewed_after(read_range, |node| node.remove(b"d")));
}

#[test]
fn what_was_deleted_is_not_forgotten() {
    let read_b = |node: &Node, trx: &mut Transaction| drop(get(node, trx, b"b"));
    let delete_and_purge = |node: &Node| {
        node.remove(b"b");
        node.purge();
    };
    assert!(!renewed_after(read_b, delete_and_purge));
}

#[test]
fn what_it_has_written_itself_is_as_it_was() {
    let write_b = |node: &Node, trx: &mut Transaction| {
        assert_eq!(get(node, trx, b"b").as_deref(), Some(&b"1"[..]));
        assert!(trx.update(node.index, b"b", b"mine").unwrap());
        trx.insert(node.index, b"c", b"mine").unwrap();
        assert_eq!(keys(node, trx, b"b", b"f"), [b"b", b"c", b"d"]);
    };
    assert!(renewed_after(write_b, |_| {}));
    assert!(!renewed_after(write_b, |node| node.put(b"d", b"2")));
}

#[test]
fn a_key_that_was_taken_must_still_be() {
    let insert_b = |node: &Node, trx: &mut Transaction| {
        drop(get(node, trx, b"f"));
        let taken = trx.insert(node.index, b"b", b"mine").unwrap_err();
        assert_eq!(taken.mysql_code(), 1062);
    };
    assert!(renewed_after(insert_b, |_| {}));
    assert!(!renewed_after(insert_b, |node| node.remove(b"b")));
}

#[test]
fn changes_that_are_not_committed_yet_are_none() {
    let node = Node::new();
    node.put(b"b", b"1");
    node.put(b"hot", b"1");
    let mut trx = begin(&node);
    assert!(get(&node, &mut trx, b"b").is_some());
    let mut other = begin(&node);
    assert!(other.update(node.index, b"b", b"2").unwrap());
    node.put(b"hot", b"theirs");
    assert!(renew(&node, &mut trx));
    other.commit().unwrap();
    assert_eq!(get(&node, &mut trx, b"b").as_deref(), Some(&b"1"[..]));
    node.put(b"x", b"1");
    assert!(trx.update(node.index, b"hot", b"mine").unwrap());
}

#[test]
fn the_record_is_locked_from_then_on() {
    let node = Node::new();
    node.put(b"b", b"1");
    node.put(b"hot", b"1");
    let mut trx = begin(&node);
    assert!(get(&node, &mut trx, b"b").is_some());
    node.put(b"hot", b"theirs");
    assert!(renew(&node, &mut trx));
    let mut other = begin(&node);
    let mode = ReadMode::Update(WaitPolicy::NoWait);
    let refused = other.get(node.index, b"hot", mode, &mut Vec::new()).unwrap_err();
    assert_eq!(refused.mysql_code(), 3572);
}

#[test]
fn without_a_conflict_there_is_nothing_to_renew() {
    let node = Node::new();
    node.put(b"b", b"1");
    let mut trx = begin(&node);
    assert!(!trx.renew_snapshot(ReadMark::default()).unwrap());
}

#[test]
fn a_snapshot_that_was_asked_for_is_kept() {
    let open = |_: &Node, trx: &mut Transaction| trx.open_snapshot();
    assert!(!renewed_after(open, |_| {}));
}

#[test]
fn more_reads_than_are_kept_end_it() {
    let read = |times: usize| {
        move |node: &Node, trx: &mut Transaction| {
            for _ in 0..times {
                drop(get(node, trx, b"b"));
            }
        }
    };
    assert!(renewed_after(read(MOST_READS), |_| {}));
    assert!(!renewed_after(read(MOST_READS + 1), |_| {}));
}

#[test]
fn a_statement_that_began_without_a_snapshot_gets_any_other() {
    let node = Node::new();
    node.put(b"b", b"1");
    node.put(b"hot", b"1");
    let mut trx = begin(&node);
    let mark = trx.read_mark();
    assert!(get(&node, &mut trx, b"b").is_some());
    node.put(b"b", b"2");
    node.put(b"hot", b"2");
    assert!(trx.update(node.index, b"hot", b"mine").is_err());
    assert!(trx.renew_snapshot(mark).unwrap());
    assert_eq!(get(&node, &mut trx, b"b").as_deref(), Some(&b"2"[..]));
    assert!(trx.update(node.index, b"hot", b"mine").unwrap());
}
