//! Open transactions that go on at the next writer.
//!
//! ```text
//!   first life    commits, an open transaction │ handed over │
//!   second life                                               it goes on │ commit, or a crash
//!   third life                                                                            looks
//! ```

use std::path::Path;
use std::sync::atomic::AtomicBool;

use firn_api::rows::HandedTransaction;
use firn_base::task::StopAtEnd;

use super::*;
use crate::error::EngineError;
use crate::transaction::WaitPolicy;
use crate::transaction::remote::RemoteTransactions;

const SESSION: u64 = 5;
const NUMBER: u64 = 77;

/// A transaction's own view of a key.
fn get(index: IndexId, trx: &mut Transaction, key: &[u8]) -> Option<Vec<u8>> {
    let mut payload = Vec::new();
    trx.get(index, key, ReadMode::Consistent, &mut payload).unwrap().then_some(payload)
}

fn lock(index: IndexId, trx: &mut Transaction, key: &[u8]) -> Result<bool, EngineError> {
    trx.get(index, key, ReadMode::Update(WaitPolicy::NoWait), &mut Vec::new())
}

fn begin(node: &Life) -> Transaction {
    node.engine.begin(IsolationLevel::RepeatableRead).unwrap()
}

/// What the next writer is told of these transactions.
fn hand_over(node: &Life, transactions: &mut [Transaction]) -> HandedOver {
    let describe = |transaction: &mut Transaction| {
        transaction.hand_over(NUMBER, SESSION, &None).unwrap().unwrap()
    };
    let handed = transactions.iter_mut().map(describe).collect();
    node.engine.system().hand_over(NUMBER, handed).unwrap()
}

/// The node ends, and leaves its transactions to the next writer. Until then their snapshots hold
/// what they see.
fn end_with(node: Life, mut transactions: Vec<Transaction>) -> HandedOver {
    let handed = hand_over(&node, &mut transactions);
    node.end();
    transactions.into_iter().for_each(Transaction::leave);
    handed
}

/// The next life, and the transaction that goes on in it.
fn next(path: &Path, handed: &HandedOver) -> (Life, Option<Transaction>) {
    let node = Life::begin_after(path, &Timestamps::Local, handed);
    node.engine.forest().spaces().prepare(TEST_SPACE).unwrap();
    let transaction = node.engine.going_on.lock().pop().map(|(_, transaction)| transaction);
    (node, transaction)
}

fn wait_for_losers(node: &Life) {
    while node.engine.losers_left() > 0 {
        firn_base::task::sleep(Duration::from_millis(1));
    }
}

/// A tree with two rows, and a transaction that has inserted two more, with a savepoint between.
fn first_life(path: &Path) -> (Life, IndexId, Transaction, crate::transaction::Savepoint) {
    let node = Life::begin(path, &Timestamps::Local);
    let index = create_tree(node.engine.forest());
    node.insert(index, b"locked");
    node.insert(index, b"deleted");
    let mut trx = begin(&node);
    assert!(get(index, &mut trx, b"deleted").is_some());
    trx.insert(index, b"one", b"row").unwrap();
    let savepoint = trx.savepoint();
    trx.insert(index, b"two", b"row").unwrap();
    assert!(lock(index, &mut trx, b"locked").unwrap());
    (node, index, trx, savepoint)
}

/// What others commit after the transaction's snapshot.
fn commit_later(node: &Life, index: IndexId) {
    node.insert(index, b"later");
    let mut other = begin(node);
    assert!(other.delete(index, b"deleted").unwrap());
    other.commit().unwrap();
}

#[test]
fn a_transaction_goes_on_with_its_snapshot_its_changes_and_its_locks() {
    let directory = tempfile::tempdir().unwrap();
    let (node, index, trx, savepoint) = first_life(directory.path());
    commit_later(&node, index);
    let handed = end_with(node, vec![trx]);
    assert_eq!(handed.commits.len(), 2, "those after its snapshot: {handed:?}");

    let (node, trx) = next(directory.path(), &handed);
    let mut trx = trx.expect("it goes on");
    let report = node.engine.recovery_report();
    assert_eq!((report.going_on, report.losers, report.prepared), (1, 0, 0));
    node.insert(index, b"much later");
    // What its snapshot needs is not purged.
    node.engine.maintenance.purge_once(node.order().max_committed()).unwrap();
    for (key, is_seen) in [
        (&b"one"[..], true),
        (b"two", true),
        (b"locked", true),
        (b"deleted", true),
        (b"later", false),
        (b"much later", false),
    ] {
        assert_eq!(get(index, &mut trx, key).is_some(), is_seen, "{}", key.escape_ascii());
    }
    for (key, is_locked) in
        [(&b"one"[..], true), (b"two", true), (b"locked", true), (b"later", false)]
    {
        let found = lock(index, &mut begin(&node), key);
        assert_eq!(found.is_err(), is_locked, "{}: {found:?}", key.escape_ascii());
    }
    trx.rollback_to(savepoint).unwrap();
    assert_eq!(get(index, &mut trx, b"two"), None);
    trx.insert(index, b"three", b"row").unwrap();
    trx.commit().unwrap();
    let seen = |node: &Life| {
        ["one", "two", "three", "deleted", "later"]
            .map(|key| node.has(index, key.as_bytes(), node.order().max_committed()))
    };
    assert_eq!(seen(&node), [true, false, true, false, true]);
    assert!(lock(index, &mut begin(&node), b"locked").unwrap(), "its locks have ended with it");
    node.end();

    let (node, none) = next(directory.path(), &handed);
    assert!(none.is_none(), "it has ended");
    assert_eq!(seen(&node), [true, false, true, false, true]);
    node.end();
}

#[test]
fn what_nodes_that_follow_see_stays_readable() {
    let directory = tempfile::tempdir().unwrap();
    let node = Life::begin(directory.path(), &Timestamps::Local);
    let index = create_tree(node.engine.forest());
    let inserted = node.insert(index, b"deleted");
    assert_eq!(hand_over(&node, &mut []).transactions, [], "nobody follows");
    node.engine.system().keep_writing();
    let regions = RemoteTransactions::connect(node.fabric.peer()).unwrap();
    // Others see a commit once it is known to be durable.
    while regions.durable_commits().unwrap() < inserted {
        firn_base::task::sleep(Duration::from_millis(1));
    }
    let follower = regions.open().unwrap().expect("a place");
    commit_later(&node, index);
    node.engine.maintenance.purge_once(node.order().max_committed()).unwrap();
    let handed = hand_over(&node, &mut []);
    assert_eq!(handed.transactions.len(), 1);
    assert_eq!(handed.transactions[0].session, HandedTransaction::OF_FOLLOWERS);
    node.end();

    let (node, kept) = next(directory.path(), &handed);
    let kept = kept.expect("it keeps the snapshot");
    node.insert(index, b"much later");
    node.engine.maintenance.purge_once(node.order().max_committed()).unwrap();
    for (key, is_seen) in [(&b"deleted"[..], true), (b"later", false), (b"much later", false)] {
        assert_eq!(node.has(index, key, follower.cts()), is_seen, "{}", key.escape_ascii());
    }
    kept.leave();
    node.end();
}

#[test]
fn a_transaction_that_goes_on_can_be_rolled_back() {
    let directory = tempfile::tempdir().unwrap();
    let (node, index, trx, _) = first_life(directory.path());
    let handed = end_with(node, vec![trx]);
    let (node, trx) = next(directory.path(), &handed);
    trx.unwrap().rollback().unwrap();
    let newest = node.order().max_committed();
    assert!(!node.has(index, b"one", newest) && node.has(index, b"locked", newest));
    node.end();
}

#[test]
fn a_crash_after_it_went_on_rolls_it_back() {
    for writes_more in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let (node, index, trx, _) = first_life(directory.path());
        let handed = end_with(node, vec![trx]);
        let (node, trx) = next(directory.path(), &handed);
        let mut trx = trx.unwrap();
        if writes_more {
            trx.insert(index, b"three", b"row").unwrap();
        }
        trx.leave();
        node.end();
        // Even if the next writer is told of the same handover again.
        let (node, none) = next(directory.path(), &handed);
        assert!(none.is_none());
        assert_eq!(node.engine.recovery_report().losers, 1);
        wait_for_losers(&node);
        let newest = node.order().max_committed();
        for key in [&b"one"[..], b"two", b"three"] {
            assert!(!node.has(index, key, newest), "{}", key.escape_ascii());
        }
        assert!(lock(index, &mut begin(&node), b"one").is_ok(), "nobody locks it");
        node.end();
    }
}

#[test]
fn without_the_message_of_this_handover_it_is_rolled_back() {
    for is_told_another in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let (node, index, trx, _) = first_life(directory.path());
        let mut handed = end_with(node, vec![trx]);
        handed.number += 1;
        let told = if is_told_another { handed } else { HandedOver::default() };
        let (node, none) = next(directory.path(), &told);
        assert!(none.is_none());
        wait_for_losers(&node);
        assert!(!node.has(index, b"one", node.order().max_committed()));
        node.end();
    }
}

#[test]
fn a_transaction_that_went_on_here_is_not_taken_over() {
    let directory = tempfile::tempdir().unwrap();
    let (node, index, mut trx, _) = first_life(directory.path());
    let described = trx.hand_over(NUMBER, SESSION, &None).unwrap().unwrap();
    let handed = node.engine.system().hand_over(NUMBER, vec![described]).unwrap();
    // The other node did not lead.
    node.engine.system().keep_writing();
    trx.insert(index, b"three", b"row").unwrap();
    trx.commit().unwrap();
    node.end();
    let (node, none) = next(directory.path(), &handed);
    assert!(none.is_none());
    assert!(node.has(index, b"three", node.order().max_committed()));
    node.end();
}

#[test]
fn transactions_that_have_only_read_or_locked_go_on() {
    let directory = tempfile::tempdir().unwrap();
    let node = Life::begin(directory.path(), &Timestamps::Local);
    let index = create_tree(node.engine.forest());
    node.insert(index, b"deleted");
    node.insert(index, b"locked");
    let mut reader = begin(&node);
    assert!(get(index, &mut reader, b"deleted").is_some());
    commit_later(&node, index);
    let mut locker = begin(&node);
    assert!(lock(index, &mut locker, b"locked").unwrap());
    let handed = end_with(node, vec![reader, locker]);

    let node = Life::begin_after(directory.path(), &Timestamps::Local, &handed);
    node.engine.forest().spaces().prepare(TEST_SPACE).unwrap();
    let mut going_on = std::mem::take(&mut *node.engine.going_on.lock());
    let (_, mut locker) = going_on.pop().unwrap();
    let (_, mut reader) = going_on.pop().unwrap();
    assert_eq!(get(index, &mut reader, b"later"), None);
    assert!(get(index, &mut reader, b"deleted").is_some());
    assert!(matches!(lock(index, &mut begin(&node), b"locked"), Err(EngineError::LockedNoWait)));
    locker.insert(index, b"one", b"row").unwrap();
    locker.commit().unwrap();
    reader.commit().unwrap();
    assert!(lock(index, &mut begin(&node), b"locked").unwrap());
    node.end();
}

#[test]
fn nothing_commits_between_the_list_of_commits_and_the_next_writer() {
    let directory = tempfile::tempdir().unwrap();
    let node = Life::begin(directory.path(), &Timestamps::Local);
    let index = create_tree(node.engine.forest());
    // Keeps the commits after its snapshot in the table.
    let mut reader = begin(&node);
    reader.open_snapshot();
    let oldest = reader.snapshot().unwrap();
    let has_stopped = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop = StopAtEnd(&has_stopped);
        let writers: Vec<_> = (0..3_u8)
            .map(|writer| {
                let (node, has_stopped) = (&node, &has_stopped);
                scope.spawn(move || {
                    for number in 0_u32.. {
                        if has_stopped.load(Ordering::Relaxed) {
                            return;
                        }
                        let key = [&[writer][..], &number.to_be_bytes()].concat();
                        let mut trx = begin(node);
                        trx.insert(index, &key, b"row").unwrap();
                        trx.commit_without_waiting().unwrap();
                    }
                })
            })
            .collect();
        let system = node.engine.system();
        // What snapshots see may move on: a commit that finds the gate closed leaves its timestamp
        // unused.
        let commits = || system.table().commits_after(oldest);
        let looked = (0..50).map(|number| {
            let handed = system.hand_over(number, Vec::new());
            let before = commits();
            firn_base::task::yield_now();
            let after = commits();
            system.keep_writing();
            (handed.map(|handed| handed.number), before, after)
        });
        let looked: Vec<_> = looked.collect();
        has_stopped.store(true, Ordering::Relaxed);
        for writer in writers {
            writer.join().unwrap();
        }
        for (number, (handed, before, after)) in (0..).zip(looked) {
            assert_eq!(handed.unwrap(), number);
            assert_eq!(before, after, "in handover {number}");
        }
    });
    drop(reader);
    node.end();
}
