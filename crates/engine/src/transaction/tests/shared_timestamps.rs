//! Transactions whose commits a shared source numbers, with gaps.

use firn_api::{TimestampError, TimestampSource, Timestamps};
use firn_base::Cts;
use firn_base::event::Event;
use firn_base::task::{Scheduler, install_scheduler};

use super::*;
use crate::test_support::{HybridClock, Oracle};
use crate::transaction::remote::RemoteTransactions;

/// A node whose commits an oracle numbers, and one with a hybrid logical clock.
fn nodes_with_shared_timestamps() -> [Node; 2] {
    let options = || TransactionOptions { table_slots: 64, ..Default::default() };
    let oracle = Timestamps::Shared(Arc::new(Oracle::new(100)));
    let clock = Timestamps::Shared(Arc::new(HybridClock::default()));
    [&oracle, &clock].map(|source| Node::with_timestamps(options(), source))
}

fn read_at(node: &Node, snapshot: Cts, key: &[u8]) -> Option<Vec<u8>> {
    let level = IsolationLevel::RepeatableRead;
    let mut reader = Transaction::begin_at(&node.system, level, snapshot).unwrap();
    let found = get(node, &mut reader, key);
    assert_eq!(reader.snapshot(), Some(snapshot));
    found
}

#[test]
fn snapshots_are_right_under_timestamps_with_gaps() {
    for node in nodes_with_shared_timestamps() {
        put(&node, b"a", b"1");
        let first = node.system.order().max_committed();
        let mut old = snapshot_isolation(&node);
        old.open_snapshot();
        std::thread::scope(|scope| {
            for thread in 0..4_u8 {
                let node = &node;
                scope.spawn(move || {
                    for round in 0..100_u8 {
                        let key = [thread, round];
                        put(node, &key, b"x");
                        // The next transaction sees the commit.
                        assert_eq!(
                            get(node, &mut snapshot_isolation(node), &key),
                            Some(b"x".to_vec())
                        );
                    }
                });
            }
        });
        let mut writer = begin(&node, IsolationLevel::ReadCommitted);
        assert!(writer.update(node.index, b"a", b"2").unwrap());
        writer.commit().unwrap();
        let last = node.system.order().max_committed();
        assert_eq!(get(&node, &mut old, b"a"), Some(b"1".to_vec()));
        assert_eq!(get(&node, &mut old, &[3, 99]), None);
        // There are snapshots between two commits too, because the numbers have gaps.
        assert_eq!(read_at(&node, Cts(first.0 + 1), b"a"), Some(b"1".to_vec()));
        assert_eq!(read_at(&node, Cts(last.0 - 1), b"a"), Some(b"1".to_vec()));
        assert_eq!(read_at(&node, last, b"a"), Some(b"2".to_vec()));
        drop(old);
        node.purge();
        let level = IsolationLevel::RepeatableRead;
        let gone = Transaction::begin_at(&node.system, level, first).map(drop);
        assert!(matches!(gone, Err(EngineError::SnapshotTooOld(_))), "{gone:?}");
        assert_eq!(get(&node, &mut snapshot_isolation(&node), b"a"), Some(b"2".to_vec()));
    }
}

#[test]
fn a_snapshot_from_elsewhere_holds_off_later_commits() {
    for node in nodes_with_shared_timestamps() {
        put(&node, b"a", b"1");
        let ahead = Cts(node.system.order().max_committed().0 + 1_000_000);
        let level = IsolationLevel::RepeatableRead;
        let mut reader = Transaction::begin_at(&node.system, level, ahead).unwrap();
        put(&node, b"b", b"2");
        assert_eq!(get(&node, &mut reader, b"b"), None, "it was committed after the snapshot");
        assert!(node.system.order().max_committed() > ahead);
    }
}

#[test]
fn a_coordinator_decides_when_a_prepared_transaction_commits() {
    for node in nodes_with_shared_timestamps() {
        put(&node, b"a", b"1");
        let mut writer = begin(&node, IsolationLevel::ReadCommitted);
        assert!(writer.update(node.index, b"a", b"2").unwrap());
        let before = node.system.order().max_committed();
        let prepared = writer.prepare(b"xid", None).unwrap();
        assert!(prepared.lowest > before);
        assert!(node.system.pages().log.durable_lsn() >= prepared.position);
        let at = Cts(node.system.set_committing(b"xid").unwrap().0 + 50);
        assert!(at > prepared.lowest);
        node.system.commit_prepared(b"xid", Some(at)).unwrap();
        assert_eq!(read_at(&node, Cts(at.0 - 1), b"a"), Some(b"1".to_vec()));
        assert_eq!(read_at(&node, at, b"a"), Some(b"2".to_vec()));
        assert!(node.system.commit_prepared(b"xid", Some(at)).is_err());
        put(&node, b"b", b"3");
        assert!(node.system.order().max_committed() > at, "an unused timestamp holds nobody up");
    }
}

#[test]
fn without_the_source_of_timestamps_a_transaction_is_rolled_back() {
    let oracle = Arc::new(Oracle::new(100));
    let options = TransactionOptions { table_slots: 64, ..Default::default() };
    let node = Node::with_timestamps(options, &Timestamps::Shared(Arc::clone(&oracle) as _));
    put(&node, b"a", b"1");
    let mut writer = begin(&node, IsolationLevel::ReadCommitted);
    assert!(writer.update(node.index, b"a", b"2").unwrap());
    oracle.set_available(false);
    let refused = writer.commit().unwrap_err();
    assert!(refused.is_retryable(), "{refused}");
    oracle.set_available(true);
    put(&node, b"a", b"3");
    assert_eq!(get(&node, &mut snapshot_isolation(&node), b"a"), Some(b"3".to_vec()));
}

/// A prepared update of `a` from 1 to 2.
fn prepared_update(node: &Node) -> Prepared {
    put(node, b"a", b"1");
    let mut writer = begin(node, IsolationLevel::ReadCommitted);
    assert!(writer.update(node.index, b"a", b"2").unwrap());
    writer.prepare(b"xid", None).unwrap()
}

/// The same, with its timestamp being chosen. Returns the lowest possible one.
fn being_decided(node: &Node) -> Cts {
    prepared_update(node);
    node.system.set_committing(b"xid").unwrap()
}

#[test]
fn readers_and_writers_wait_for_a_decision_and_act_by_it() {
    for node in nodes_with_shared_timestamps() {
        let at = being_decided(&node);
        let mut old = snapshot_isolation(&node);
        old.open_snapshot();
        std::thread::scope(|scope| {
            let old = scope.spawn(|| get(&node, &mut old, b"a"));
            let new = scope.spawn(|| read_at(&node, at, b"a"));
            firn_base::task::sleep(Duration::from_millis(30));
            assert!(!old.is_finished() && !new.is_finished(), "nothing is decided yet");
            node.system.commit_prepared(b"xid", Some(at)).unwrap();
            assert_eq!(new.join().unwrap(), Some(b"2".to_vec()));
            assert_eq!(old.join().unwrap(), Some(b"1".to_vec()));
        });
        put(&node, b"a", b"3");
    }
}

#[test]
fn a_decision_that_does_not_come_ends_the_wait_with_an_error() {
    let [node, _] = nodes_with_shared_timestamps();
    being_decided(&node);
    let mut reader = snapshot_isolation(&node);
    let mut payload = Vec::new();
    let waited = reader.get(node.index, b"a", ReadMode::Consistent, &mut payload);
    assert!(matches!(waited, Err(EngineError::Lock(LockError::Timeout))), "{waited:?}");
    node.system.rollback_prepared(b"xid").unwrap();
    assert_eq!(get(&node, &mut snapshot_isolation(&node), b"a"), Some(b"1".to_vec()));
}

#[test]
fn a_killed_statement_waits_for_no_decision() {
    let [node, _] = nodes_with_shared_timestamps();
    being_decided(&node);
    let killed = Arc::new(AtomicBool::new(false));
    let mut reader = snapshot_isolation(&node);
    let mut writer = begin(&node, IsolationLevel::ReadCommitted);
    reader.set_cancelled(Arc::clone(&killed));
    writer.set_cancelled(Arc::clone(&killed));
    std::thread::scope(|scope| {
        let read = scope.spawn(|| {
            reader.get(node.index, b"a", ReadMode::Consistent, &mut Vec::new()).map(drop)
        });
        let written = scope.spawn(|| writer.update(node.index, b"a", b"3").map(drop));
        firn_base::task::sleep(Duration::from_millis(30));
        killed.store(true, Ordering::Relaxed);
        for ended in [read.join().unwrap(), written.join().unwrap()] {
            assert!(matches!(ended, Err(EngineError::Lock(LockError::Cancelled))), "{ended:?}");
        }
    });
    node.system.rollback_prepared(b"xid").unwrap();
}

/// An oracle that leaves one question open until it is let go.
struct SlowOracle {
    oracle: Oracle,
    /// The next question is the one.
    is_due: AtomicBool,
    is_waiting: AtomicBool,
    moved: Event,
}

impl SlowOracle {
    fn new() -> SlowOracle {
        let [is_due, is_waiting] = [false, false].map(AtomicBool::new);
        SlowOracle { oracle: Oracle::new(100), is_due, is_waiting, moved: Event::new() }
    }

    fn set_waiting(&self, is_waiting: bool) {
        self.is_waiting.store(is_waiting, Ordering::SeqCst);
        self.moved.notify_all();
    }

    fn wait_until_asked(&self) {
        self.moved.wait_until(None, || self.is_waiting.load(Ordering::SeqCst));
    }
}

impl TimestampSource for SlowOracle {
    fn next(&self) -> Result<Cts, TimestampError> {
        if self.is_due.swap(false, Ordering::SeqCst) {
            self.set_waiting(true);
            self.moved.wait_until(None, || !self.is_waiting.load(Ordering::SeqCst));
        }
        self.oracle.next()
    }

    fn observe(&self, cts: Cts) -> Result<(), TimestampError> {
        self.oracle.observe(cts)
    }

    fn growth_per_second(&self) -> u64 {
        self.oracle.growth_per_second()
    }
}

/// Counts how often a thread gives up its turn without anything to wait for.
#[derive(Default)]
struct YieldCount(AtomicUsize);

impl Scheduler for YieldCount {
    fn wait(&self, _key: usize, _timeout: Option<Duration>) -> bool {
        let mutex = parking_lot::Mutex::new(());
        let moment = Duration::from_millis(1);
        let _ = parking_lot::Condvar::new().wait_for(&mut mutex.lock(), moment);
        true
    }

    fn wake_all(&self, _key: usize) {}

    fn wake_one(&self, _key: usize) {}

    fn yield_now(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
        std::thread::yield_now();
    }

    fn monotonic(&self) -> Duration {
        firn_base::clock::SystemClock.monotonic()
    }
}

#[test]
fn a_slow_source_of_timestamps_makes_no_thread_spin() {
    let oracle = Arc::new(SlowOracle::new());
    let options = TransactionOptions { table_slots: 64, ..Default::default() };
    let node = Node::with_timestamps(options, &Timestamps::Shared(Arc::clone(&oracle) as _));
    put(&node, b"a", b"1");
    let yields = Arc::new(YieldCount::default());
    let counted = |work: &dyn Fn()| {
        install_scheduler(Some(Arc::clone(&yields) as _));
        work();
        install_scheduler(None);
    };
    let update = |payload: &[u8]| {
        let mut writer = begin(&node, IsolationLevel::ReadCommitted);
        assert!(writer.update(node.index, b"a", payload).unwrap());
        writer.commit().unwrap();
    };
    std::thread::scope(|scope| {
        oracle.is_due.store(true, Ordering::SeqCst);
        scope.spawn(|| put(&node, b"b", b"1"));
        oracle.wait_until_asked();
        let before = node.system.order().max_committed();
        let last = node.system.order().last();
        // Commits, and then waits until snapshots see it; the one after it waits with its write.
        let first = scope.spawn(|| counted(&|| update(b"2")));
        while node.system.order().last() == last {
            firn_base::task::sleep(Duration::from_millis(1));
        }
        let second = scope.spawn(|| counted(&|| update(b"3")));
        firn_base::task::sleep(Duration::from_millis(50));
        assert!(!first.is_finished() && !second.is_finished());
        assert_eq!(node.system.order().max_committed(), before, "the question is open");
        oracle.set_waiting(false);
    });
    assert_eq!(get(&node, &mut snapshot_isolation(&node), b"a"), Some(b"3".to_vec()));
    let yields = yields.0.load(Ordering::Relaxed);
    assert!(yields < 50, "{yields} turns were given up for nothing");
}

#[test]
fn a_commit_at_a_timestamp_that_snapshots_have_passed_is_refused() {
    for node in nodes_with_shared_timestamps() {
        let prepared = prepared_update(&node);
        let at = Some(Cts(prepared.lowest.0 + 1_000_000));
        let commit = |at| node.system.commit_prepared(b"xid", at);
        // A reader that meets the transaction as ACTIVE reads without it, at any snapshot.
        let ahead = Cts(prepared.lowest.0 + 2_000_000);
        assert_eq!(read_at(&node, ahead, b"a"), Some(b"1".to_vec()));
        assert!(matches!(commit(at), Err(EngineError::NotCommitting { .. })));
        let lowest = node.system.set_committing(b"xid").unwrap();
        assert!(lowest > ahead);
        let early = commit(at).unwrap_err();
        assert!(matches!(early, EngineError::CommitTooEarly { .. }), "{early}");
        assert!(early.to_string().contains(&format!("from {lowest} on")), "{early}");
        // The reply to the first call was lost; its timestamp is still good.
        put(&node, b"b", b"1");
        assert!(node.system.set_committing(b"xid").unwrap() > lowest);
        commit(Some(lowest)).unwrap();
        assert_eq!(read_at(&node, ahead, b"a"), Some(b"1".to_vec()));
        assert!(matches!(node.system.set_committing(b"xid"), Err(EngineError::NoSuchPrepared)));
    }
}

#[test]
fn a_number_of_the_nodes_own_needs_no_committing() {
    let [oracle, clock] = nodes_with_shared_timestamps();
    for node in [Node::new(), oracle, clock] {
        let prepared = prepared_update(&node);
        node.system.commit_prepared(b"xid", None).unwrap();
        assert!(node.system.order().max_committed() >= prepared.lowest);
        assert_eq!(get(&node, &mut snapshot_isolation(&node), b"a"), Some(b"2".to_vec()));
    }
}

#[test]
fn a_coordinator_elsewhere_decides_through_the_region() {
    for (node, offloads) in nodes_with_shared_timestamps().into_iter().zip([false, true]) {
        let remote = RemoteTransactions::connect(node.fabric.peer()).unwrap();
        let trx = prepared_update(&node).trx;
        if offloads {
            // Its slot passes to another transaction.
            (0..70_u8).for_each(|key| put(&node, &[key], b"1"));
            assert!(node.system.table().offload_counts().1 > 0);
        }
        let ahead = Cts(node.system.order().last().0 + 1_000);
        assert_eq!(read_at(&node, ahead, b"a"), Some(b"1".to_vec()));
        let lowest = remote.set_committing(trx).unwrap().unwrap();
        assert!(lowest > ahead);
        assert!(remote.set_committing(trx).unwrap() >= Some(lowest), "it may be repeated");
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| read_at(&node, lowest, b"a"));
            firn_base::task::sleep(Duration::from_millis(30));
            assert!(!reader.is_finished(), "nothing is decided yet");
            node.system.commit_prepared(b"xid", Some(lowest)).unwrap();
            assert_eq!(reader.join().unwrap(), Some(b"2".to_vec()));
        });
        assert_eq!(read_at(&node, ahead, b"a"), Some(b"1".to_vec()));
        assert_eq!(remote.set_committing(trx).unwrap(), None, "it has ended");
        let rolled_back = prepared_update(&node).trx;
        node.system.rollback_prepared(b"xid").unwrap();
        assert_eq!(remote.set_committing(rolled_back).unwrap(), None);
    }
}
