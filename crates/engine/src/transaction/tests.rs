use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use firn_base::clock::Clock;

use super::*;
use crate::error::EngineError;
use crate::lock::LockError;
use crate::test_support::Node;

mod held;
mod shared_timestamps;

fn begin(node: &Node, isolation: IsolationLevel) -> Transaction {
    Transaction::begin(&node.system, isolation).unwrap()
}

fn snapshot_isolation(node: &Node) -> Transaction {
    begin(node, IsolationLevel::RepeatableRead)
}

fn put(node: &Node, key: &[u8], payload: &[u8]) {
    let mut trx = snapshot_isolation(node);
    if !trx.update(node.index, key, payload).unwrap() {
        trx.insert(node.index, key, payload).unwrap();
    }
    trx.commit().unwrap();
}

fn get(node: &Node, trx: &mut Transaction, key: &[u8]) -> Option<Vec<u8>> {
    let mut payload = Vec::new();
    let found = trx.get(node.index, key, ReadMode::Consistent, &mut payload).unwrap();
    found.then_some(payload)
}

fn scan(node: &Node, trx: &mut Transaction, direction: Direction) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut cursor = Cursor::new(node.index, KeyRange::all(), direction, ReadMode::Consistent);
    let mut rows = Vec::new();
    while cursor.fetch(trx).unwrap() {
        rows.extend(cursor.rows().map(|(key, payload)| (key.to_vec(), payload.to_vec())));
    }
    rows
}

#[test]
fn a_snapshot_sees_what_was_committed_before_it() {
    let node = Node::new();
    put(&node, b"a", b"1");
    let mut reader = snapshot_isolation(&node);
    assert_eq!(get(&node, &mut reader, b"a").as_deref(), Some(&b"1"[..]));
    for version in 2..20_u8 {
        put(&node, b"a", &[version; 30]);
    }
    put(&node, b"b", b"new");
    assert_eq!(get(&node, &mut reader, b"a").as_deref(), Some(&b"1"[..]));
    assert_eq!(get(&node, &mut reader, b"b"), None);
    assert_eq!(scan(&node, &mut reader, Direction::Forward), [(b"a".to_vec(), b"1".to_vec())]);
    reader.commit().unwrap();
    let mut later = snapshot_isolation(&node);
    assert_eq!(get(&node, &mut later, b"a"), Some(vec![19; 30]));
    assert_eq!(scan(&node, &mut later, Direction::Backward).len(), 2);
}

#[test]
fn own_writes_are_seen_and_undone() {
    let node = Node::new();
    put(&node, b"a", b"1");
    let mut trx = snapshot_isolation(&node);
    trx.insert(node.index, b"b", b"2").unwrap();
    let savepoint = trx.savepoint();
    assert!(trx.update(node.index, b"a", b"changed").unwrap());
    assert!(trx.delete(node.index, b"b").unwrap());
    assert_eq!(get(&node, &mut trx, b"b"), None);
    trx.rollback_to(savepoint).unwrap();
    assert_eq!(get(&node, &mut trx, b"a").as_deref(), Some(&b"1"[..]));
    assert_eq!(get(&node, &mut trx, b"b").as_deref(), Some(&b"2"[..]));
    trx.rollback().unwrap();
    let mut later = snapshot_isolation(&node);
    assert_eq!(scan(&node, &mut later, Direction::Forward), [(b"a".to_vec(), b"1".to_vec())]);
}

#[test]
fn the_first_updater_wins() {
    let node = Node::new();
    put(&node, b"a", b"1");
    let mut late = snapshot_isolation(&node);
    assert!(get(&node, &mut late, b"a").is_some());
    put(&node, b"a", b"2");
    let conflict = late.update(node.index, b"a", b"3").unwrap_err();
    assert!(matches!(conflict, EngineError::WriteConflict), "{conflict}");
    assert_eq!(conflict.mysql_code(), 1020);
    let mut committed = begin(&node, IsolationLevel::ReadCommitted);
    assert!(committed.update(node.index, b"a", b"4").unwrap());
    committed.commit().unwrap();
}

#[test]
fn duplicate_keys_are_refused_and_deleted_ones_come_back() {
    let node = Node::new();
    put(&node, b"a", b"1");
    let mut trx = snapshot_isolation(&node);
    let duplicate = trx.insert(node.index, b"a", b"x").unwrap_err();
    assert_eq!(duplicate.mysql_code(), 1062);
    assert!(trx.delete(node.index, b"a").unwrap());
    trx.insert(node.index, b"a", b"again").unwrap();
    trx.commit().unwrap();
    let mut later = snapshot_isolation(&node);
    assert_eq!(get(&node, &mut later, b"a").as_deref(), Some(&b"again"[..]));
}

#[test]
fn a_wait_for_a_lock_is_called_off() {
    let node = Node::new();
    put(&node, b"a", b"1");
    let mut first = snapshot_isolation(&node);
    assert!(first.update(node.index, b"a", b"2").unwrap());
    let cancelled = Arc::new(AtomicBool::new(false));
    std::thread::scope(|scope| {
        let second = scope.spawn(|| {
            let mut second = begin(&node, IsolationLevel::ReadCommitted);
            second.set_cancelled(Arc::clone(&cancelled));
            second.insert(node.index, b"b", b"kept").unwrap();
            let error = second.update(node.index, b"a", b"3").unwrap_err();
            assert_eq!(error.mysql_code(), 1317, "{error}");
            cancelled.store(false, Ordering::Relaxed);
            second.commit().unwrap();
        });
        while node.system.locks().statistics().waits == 0 {
            std::thread::yield_now();
        }
        let clock = firn_base::clock::SystemClock;
        let called_off = clock.monotonic();
        cancelled.store(true, Ordering::Relaxed);
        second.join().unwrap();
        let waited = clock.monotonic().saturating_sub(called_off);
        assert!(waited < Duration::from_secs(10), "no timeout ended the wait");
    });
    assert_eq!(node.system.locks().statistics().cancelled, 1);
    first.commit().unwrap();
    let mut later = snapshot_isolation(&node);
    assert_eq!(get(&node, &mut later, b"b").as_deref(), Some(&b"kept"[..]));
}

#[test]
fn a_scan_is_called_off_between_its_batches() {
    let node = Node::new();
    (0..100_u8).for_each(|key| put(&node, &[key], b"row"));
    let cancelled = Arc::new(AtomicBool::new(false));
    let mut trx = snapshot_isolation(&node);
    trx.set_cancelled(Arc::clone(&cancelled));
    let range = KeyRange::all();
    let mut cursor = Cursor::new(node.index, range, Direction::Forward, ReadMode::Consistent);
    assert!(cursor.fetch(&mut trx).unwrap());
    cancelled.store(true, Ordering::Relaxed);
    assert_eq!(cursor.fetch(&mut trx).unwrap_err().mysql_code(), 1317);
    cancelled.store(false, Ordering::Relaxed);
    assert!(cursor.fetch(&mut trx).unwrap());
}

#[test]
fn a_writer_waits_for_the_writer_before_it() {
    let node = Node::new();
    put(&node, b"a", b"1");
    let mut first = snapshot_isolation(&node);
    assert!(first.update(node.index, b"a", b"2").unwrap());
    std::thread::scope(|scope| {
        let second = scope.spawn(|| {
            let mut second = begin(&node, IsolationLevel::ReadCommitted);
            assert!(second.update(node.index, b"a", b"3").unwrap());
            second.commit().unwrap();
        });
        while node.system.locks().statistics().waits == 0 {
            std::thread::yield_now();
        }
        assert!(!second.is_finished());
        first.commit().unwrap();
    });
    let mut later = snapshot_isolation(&node);
    assert_eq!(get(&node, &mut later, b"a").as_deref(), Some(&b"3"[..]));
}

#[test]
fn a_lock_wait_times_out() {
    let node = Node::new();
    put(&node, b"a", b"1");
    let mut first = snapshot_isolation(&node);
    assert!(first.update(node.index, b"a", b"2").unwrap());
    let mut second = snapshot_isolation(&node);
    second.set_lock_wait_timeout(Duration::from_millis(20));
    let error = second.update(node.index, b"a", b"3").unwrap_err();
    assert!(matches!(error, EngineError::Lock(LockError::Timeout)), "{error}");
    let mut payload = Vec::new();
    let no_wait = ReadMode::Update(WaitPolicy::NoWait);
    let error = second.get(node.index, b"a", no_wait, &mut payload).unwrap_err();
    assert!(matches!(error, EngineError::LockedNoWait), "{error}");
    let skip = ReadMode::Share(WaitPolicy::SkipLocked);
    assert!(!second.get(node.index, b"a", skip, &mut payload).unwrap());
}

#[test]
fn a_deadlock_ends_one_of_the_two() {
    let node = Node::new();
    put(&node, b"a", b"1");
    put(&node, b"b", b"1");
    let (node, barrier) = (&node, &std::sync::Barrier::new(2));
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let threads = [[b"a", b"b"], [b"b", b"a"]].map(|keys| {
            scope.spawn(move || {
                let mut trx = begin(node, IsolationLevel::ReadCommitted);
                assert!(trx.update(node.index, keys[0], b"2").unwrap());
                barrier.wait();
                let outcome = trx.update(node.index, keys[1], b"2");
                if outcome.is_ok() {
                    trx.commit().unwrap();
                }
                outcome
            })
        });
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let victims = outcomes.iter().filter_map(|outcome| outcome.as_ref().err());
    let codes: Vec<_> = victims.map(EngineError::mysql_code).collect();
    assert_eq!(codes, [1213]);
}

#[test]
fn serializable_has_no_write_skew_and_no_phantoms() {
    let node = Node::new();
    put(&node, b"a", b"1");
    put(&node, b"c", b"1");
    let mut scanner = begin(&node, IsolationLevel::Serializable);
    assert_eq!(scan(&node, &mut scanner, Direction::Forward).len(), 2);
    let mut writer = snapshot_isolation(&node);
    writer.set_lock_wait_timeout(Duration::from_millis(20));
    assert_eq!(writer.insert(node.index, b"b", b"2").unwrap_err().mysql_code(), 1205);
    assert_eq!(writer.update(node.index, b"a", b"2").unwrap_err().mysql_code(), 1205);
    assert_eq!(scan(&node, &mut scanner, Direction::Backward).len(), 2);
    scanner.commit().unwrap();
    writer.insert(node.index, b"b", b"2").unwrap();
    writer.commit().unwrap();
}

#[test]
fn one_of_many_gets_an_identifier_that_all_want() {
    let node = Node::new();
    for round in 0..50_u8 {
        let prepared = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for number in 0..4_u8 {
                let (node, prepared) = (&node, &prepared);
                scope.spawn(move || {
                    let mut trx = snapshot_isolation(node);
                    trx.insert(node.index, &[round, number], b"row").unwrap();
                    if trx.prepare(&[round], None).is_ok() {
                        prepared.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(prepared.load(Ordering::Relaxed), 1);
        node.system.commit_prepared(&[round], None).unwrap();
    }
    let mut later = snapshot_isolation(&node);
    assert_eq!(scan(&node, &mut later, Direction::Forward).len(), 50);
}

#[test]
fn a_prepared_transaction_outlives_its_session() {
    let node = Node::new();
    put(&node, b"a", b"1");
    let mut trx = snapshot_isolation(&node);
    assert!(trx.update(node.index, b"a", b"2").unwrap());
    trx.prepare(b"xid", None).unwrap();
    assert_eq!(node.system.prepared_transactions(), [b"xid".as_slice().into()]);
    let mut other = snapshot_isolation(&node);
    other.set_lock_wait_timeout(Duration::from_millis(20));
    assert!(other.update(node.index, b"a", b"3").is_err());
    assert_eq!(get(&node, &mut other, b"a").as_deref(), Some(&b"1"[..]));
    node.system.commit_prepared(b"xid", None).unwrap();
    assert!(node.system.commit_prepared(b"xid", None).is_err());
    let mut later = snapshot_isolation(&node);
    assert_eq!(get(&node, &mut later, b"a").as_deref(), Some(&b"2"[..]));
}

#[test]
fn purge_takes_out_what_nobody_sees() {
    let node = Node::new();
    for number in 0..2_000_u32 {
        put(&node, &number.to_be_bytes(), &[1; 50]);
    }
    let mut reader = snapshot_isolation(&node);
    assert_eq!(scan(&node, &mut reader, Direction::Forward).len(), 2_000);
    for number in 0..2_000_u32 {
        let mut trx = snapshot_isolation(&node);
        assert!(trx.delete(node.index, &number.to_be_bytes()).unwrap());
        trx.commit().unwrap();
    }
    node.purge();
    assert_eq!(scan(&node, &mut reader, Direction::Forward).len(), 2_000);
    assert!(node.records() >= 2_000);
    reader.commit().unwrap();
    node.purge();
    assert_eq!(node.records(), 0);
    assert!(node.undo_pages() < 10, "{}", node.undo_pages());
}

#[test]
fn money_is_neither_made_nor_lost() {
    const ACCOUNTS: u32 = 20;
    let node = Node::new();
    for account in 0..ACCOUNTS {
        put(&node, &account.to_be_bytes(), &100_i64.to_le_bytes());
    }
    let total = |trx: &mut Transaction| -> i64 {
        let rows = scan(&node, trx, Direction::Forward);
        rows.iter().map(|(_, value)| i64::from_le_bytes(value[..].try_into().unwrap())).sum()
    };
    for isolation in [IsolationLevel::RepeatableRead, IsolationLevel::Serializable] {
        std::thread::scope(|scope| {
            for thread in 0..4_u32 {
                let node = &node;
                scope.spawn(move || {
                    let mut done = 0;
                    let mut number = thread;
                    while done < 200 {
                        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        let (from, to) = (number % ACCOUNTS, (number >> 8) % ACCOUNTS);
                        if from != to && transfer(node, isolation, from, to).is_ok() {
                            done += 1;
                        }
                    }
                });
            }
            scope.spawn(|| {
                for _ in 0..50 {
                    let mut reader = snapshot_isolation(&node);
                    assert_eq!(total(&mut reader), 100 * i64::from(ACCOUNTS));
                    node.purge();
                }
            });
        });
        let mut reader = snapshot_isolation(&node);
        assert_eq!(total(&mut reader), 100 * i64::from(ACCOUNTS));
    }
}

fn transfer(node: &Node, isolation: IsolationLevel, from: u32, to: u32) -> Result<(), EngineError> {
    let mut trx = begin(node, isolation);
    trx.set_lock_wait_timeout(Duration::from_millis(100));
    let mut payload = Vec::new();
    for (account, amount) in [(from, -1), (to, 1)] {
        let key = account.to_be_bytes();
        assert!(trx.get(node.index, &key, ReadMode::Consistent, &mut payload)?);
        let balance = i64::from_le_bytes(payload[..].try_into().unwrap());
        trx.update(node.index, &key, &(balance + amount).to_le_bytes())?;
    }
    trx.commit()
}

#[test]
fn a_commit_that_was_only_locked_is_waited_for() {
    let node = Node::new();
    let mut writer = snapshot_isolation(&node);
    writer.insert(node.index, b"a", b"1").unwrap();
    writer.commit_without_waiting().unwrap();
    let mut reader = begin(&node, IsolationLevel::ReadCommitted);
    let mut payload = Vec::new();
    let share = ReadMode::Share(WaitPolicy::Wait);
    assert!(reader.get(node.index, b"a", share, &mut payload).unwrap());
    let seen = reader.observed.get();
    assert!(seen > firn_base::Lsn::default());
    reader.commit().unwrap();
    assert!(node.system.pages().log.durable_lsn() >= seen);
}

#[test]
fn a_commit_is_not_written_over_before_new_snapshots_see_it() {
    let node = Node::new();
    put(&node, b"a", b"1");
    let mut first = begin(&node, IsolationLevel::ReadCommitted);
    assert!(first.update(node.index, b"a", b"2").unwrap());
    // A commit that has taken an earlier timestamp and not published it holds later ones back.
    let gap = node.system.order().allocate();
    std::thread::scope(|scope| {
        scope.spawn(|| first.commit().unwrap());
        let second = scope.spawn(|| {
            let mut second = snapshot_isolation(&node);
            assert!(second.update(node.index, b"a", b"3").unwrap());
            second.open_snapshot();
            second.snapshot().unwrap()
        });
        firn_base::task::sleep(Duration::from_millis(20));
        assert!(!second.is_finished(), "the commit before it is not visible yet");
        node.system.order().publish(gap);
        assert!(second.join().unwrap() > gap.cts());
    });
}

#[test]
fn ranges_have_their_bounds() {
    let node = Node::new();
    for number in 0..500_u32 {
        put(&node, &number.to_be_bytes(), b"");
    }
    let key = |number: u32| number.to_be_bytes().to_vec();
    let mut trx = snapshot_isolation(&node);
    let mut count = |low, high, direction| {
        let range = KeyRange { low, high };
        let mut cursor = Cursor::new(node.index, range, direction, ReadMode::Consistent);
        let mut keys = Vec::new();
        while cursor.fetch(&mut trx).unwrap() {
            keys.extend(cursor.rows().map(|(key, _)| key.to_vec()));
        }
        match direction {
            Direction::Forward => assert!(keys.is_sorted()),
            Direction::Backward => assert!(keys.iter().rev().is_sorted()),
        }
        keys.len()
    };
    for direction in [Direction::Forward, Direction::Backward] {
        let (low, high) = (Bound::Included(key(10)), Bound::Excluded(key(20)));
        assert_eq!(count(low, high, direction), 10);
        let (low, high) = (Bound::Excluded(key(10)), Bound::Included(key(400)));
        assert_eq!(count(low, high, direction), 390);
        assert_eq!(count(Bound::Unbounded, Bound::Included(key(0)), direction), 1);
        assert_eq!(count(Bound::Included(key(499)), Bound::Unbounded, direction), 1);
        assert_eq!(count(Bound::Excluded(key(499)), Bound::Unbounded, direction), 0);
    }
}

#[test]
fn transactions_without_changes_can_be_prepared_without_end() {
    let node = Node::new();
    // Their markers alone fill more than one undo page.
    for number in 0..300_u32 {
        let xid = [&number.to_be_bytes()[..], &[b'x'; 140]].concat();
        let trx = Transaction::begin(&node.system, IsolationLevel::RepeatableRead).unwrap();
        trx.prepare(&xid, None).unwrap();
        match number % 2 {
            0 => node.system.commit_prepared(&xid, None).unwrap(),
            _ => node.system.rollback_prepared(&xid).unwrap(),
        }
    }
    assert!(node.undo_pages() > 4);
}

fn key_of(number: u32) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

fn run_of(numbers: impl Iterator<Item = u32>) -> RecordRun {
    let mut run = RecordRun::default();
    numbers.for_each(|number| run.push(&key_of(number), &[number as u8; 50]));
    run
}

fn numbers(rows: &[(Vec<u8>, Vec<u8>)]) -> Vec<u32> {
    rows.iter().map(|(key, _)| u32::from_be_bytes(key.as_slice().try_into().unwrap())).collect()
}

#[test]
fn a_run_goes_between_the_records_that_are_there() {
    let node = Node::new();
    for number in [500, 501, 900, 2_000] {
        put(&node, &key_of(number), b"old");
    }
    let others = |number: &u32| ![500, 501, 900, 2_000].contains(number);
    let mut trx = snapshot_isolation(&node);
    trx.insert_run(node.index, &mut run_of((0..3_000).filter(others))).unwrap();
    let undo_records = trx.writer.as_ref().unwrap().undo.records;
    assert!(undo_records < 60, "{undo_records} undo records of 2,996 rows of 100 bytes");
    let mut other = snapshot_isolation(&node);
    assert_eq!(numbers(&scan(&node, &mut other, Direction::Forward)), [500, 501, 900, 2_000]);
    trx.commit().unwrap();
    let mut later = snapshot_isolation(&node);
    let rows = scan(&node, &mut later, Direction::Backward);
    assert!(numbers(&rows).into_iter().rev().eq(0..3_000));
    assert_eq!(get(&node, &mut later, &key_of(77)), Some(vec![77; 50]));
}

#[test]
fn a_run_is_taken_back_without_what_others_have_put_between() {
    let node = Node::new();
    let mut trx = snapshot_isolation(&node);
    trx.insert_run(node.index, &mut run_of((0..4_000).step_by(2))).unwrap();
    assert!(trx.update(node.index, &key_of(10), b"changed").unwrap());
    assert!(trx.delete(node.index, &key_of(12)).unwrap());
    put(&node, &key_of(101), b"another's");
    put(&node, &key_of(3_999), b"another's");
    let savepoint = trx.savepoint();
    trx.insert_run(node.index, &mut run_of((4_000..6_000).rev())).unwrap();
    trx.rollback_to(savepoint).unwrap();
    assert_eq!(scan(&node, &mut trx, Direction::Forward).len(), 2_000 - 1 + 2);
    trx.rollback().unwrap();
    let mut later = snapshot_isolation(&node);
    assert_eq!(numbers(&scan(&node, &mut later, Direction::Forward)), [101, 3_999]);
}

#[test]
fn a_run_meets_taken_keys_deleted_records_and_locks() {
    let node = Node::new();
    put(&node, &key_of(5), b"taken");
    put(&node, &key_of(7), b"to be deleted");
    let mut trx = snapshot_isolation(&node);
    assert!(trx.delete(node.index, &key_of(7)).unwrap());
    trx.insert_run(node.index, &mut run_of(6..10)).unwrap();
    let savepoint = trx.savepoint();
    let error = trx.insert_run(node.index, &mut run_of(0..10)).unwrap_err();
    assert!(matches!(error, EngineError::DuplicateKey { .. }), "{error}");
    trx.rollback_to(savepoint).unwrap();
    assert_eq!(numbers(&scan(&node, &mut trx, Direction::Forward)), [5, 6, 7, 8, 9]);
    trx.commit().unwrap();

    let mut owner = begin(&node, IsolationLevel::Serializable);
    let mut payload = Vec::new();
    let mode = ReadMode::Update(WaitPolicy::Wait);
    assert!(!owner.get(node.index, &key_of(23), mode, &mut payload).unwrap());
    let mut blocked = snapshot_isolation(&node);
    blocked.set_lock_wait_timeout(Duration::from_millis(20));
    let error = blocked.insert_run(node.index, &mut run_of(20..30)).unwrap_err();
    assert!(matches!(error, EngineError::Lock(LockError::Timeout)), "{error}");
    owner.commit().unwrap();
    blocked.rollback().unwrap();
    let mut free = snapshot_isolation(&node);
    free.insert_run(node.index, &mut run_of(20..30)).unwrap();
    free.commit().unwrap();
}
