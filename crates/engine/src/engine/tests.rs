//! Engines over one directory, one after the other, and what background tasks log.

use firn_api::rows::ReadMode;
use firn_base::IndexId;
use firn_fabric::{Epoch, InProcessFabric};
use firn_storage::local::{LocalOptions, LocalStorage};

use super::*;

mod handover;
use crate::test_support::{HybridClock, Oracle, TEST_SPACE, create_tree};

/// An engine over a directory.
struct Life {
    engine: Engine,
    storage: LocalStorage,
    fabric: Arc<InProcessFabric>,
}

impl Life {
    fn begin(directory: &std::path::Path, timestamps: &Timestamps) -> Life {
        Life::begin_after(directory, timestamps, &HandedOver::default())
    }

    fn begin_after(
        directory: &std::path::Path,
        timestamps: &Timestamps,
        handed: &HandedOver,
    ) -> Life {
        let environment = Environment::system();
        let storage = LocalStorage::open(&environment, directory, LocalOptions::default()).unwrap();
        let fabric = Arc::new(InProcessFabric::new(Epoch(1)));
        let seams = Storage {
            log: storage.log.clone(),
            epoch: WriterEpoch::Next,
            pages: storage.pages.clone(),
            timestamps: timestamps.clone(),
            fabric: Arc::clone(&fabric) as _,
        };
        let options = EngineOptions { buffer_pool_bytes: 4 << 20, ..EngineOptions::default() };
        let engine = Engine::open_after(&environment, seams, &options, handed).unwrap();
        Life { engine, storage, fabric }
    }

    fn end(self) {
        self.engine.close().unwrap();
        self.storage.close();
    }

    fn order(&self) -> &crate::transaction::commit_order::CommitOrder {
        self.engine.system().order()
    }

    /// Commits a record; returns its timestamp.
    fn insert(&self, index: IndexId, key: &[u8]) -> Cts {
        let mut trx = self.engine.begin(IsolationLevel::ReadCommitted).unwrap();
        trx.insert(index, key, b"row").unwrap();
        trx.commit().unwrap();
        self.order().max_committed()
    }

    fn has(&self, index: IndexId, key: &[u8], snapshot: Cts) -> bool {
        let level = IsolationLevel::RepeatableRead;
        let mut trx = Transaction::begin_at(self.engine.system(), level, snapshot).unwrap();
        trx.get(index, key, ReadMode::Consistent, &mut Vec::new()).unwrap()
    }
}

fn oracle(last: u64) -> Timestamps {
    Timestamps::Shared(Arc::new(Oracle::new(last)))
}

fn clock() -> Timestamps {
    Timestamps::Shared(Arc::new(HybridClock::default()))
}

#[test]
fn commits_after_a_restart_are_above_all_before_it_and_snapshots_see_both() {
    // In later lives the source may have forgotten what it has handed out.
    let forgetful = [oracle(1_000), oracle(0), oracle(0)];
    let clocks = [clock(), clock(), clock()];
    for lives in [[Timestamps::Local, Timestamps::Local, Timestamps::Local], forgetful, clocks] {
        let directory = tempfile::tempdir().unwrap();
        let (mut index, mut newest) = (None, Cts(0));
        for (life, timestamps) in lives.iter().enumerate() {
            let node = Life::begin(directory.path(), timestamps);
            let index = *index.get_or_insert_with(|| create_tree(node.engine.forest()));
            node.engine.forest().spaces().prepare(TEST_SPACE).unwrap();
            assert!(node.order().max_committed() >= newest, "all earlier commits are visible");
            assert_eq!(node.order().durable(), node.order().max_committed());
            // The first snapshot has gaps above and below.
            let mut old = node.engine.begin(IsolationLevel::RepeatableRead).unwrap();
            old.open_snapshot();
            for number in 0..20 {
                let before = newest;
                newest = node.insert(index, &[life as u8, number]);
                assert!(newest > before, "{newest} after {before}");
            }
            let mut new = node.engine.begin(IsolationLevel::RepeatableRead).unwrap();
            for written in 0..=life {
                let sees = |trx: &mut Transaction| {
                    let key = [written as u8, 19];
                    trx.get(index, &key, ReadMode::Consistent, &mut Vec::new()).unwrap()
                };
                assert_eq!((sees(&mut old), sees(&mut new)), (written < life, true));
            }
            drop((old, new));
            node.end();
        }
    }
}

#[test]
fn a_timestamp_from_far_ahead_is_not_handed_out_again_after_a_restart() {
    for timestamps in [oracle(1_000), clock()] {
        let directory = tempfile::tempdir().unwrap();
        let node = Life::begin(directory.path(), &timestamps);
        let index = create_tree(node.engine.forest());
        let mut trx = node.engine.begin(IsolationLevel::ReadCommitted).unwrap();
        trx.insert(index, b"a", b"row").unwrap();
        trx.prepare(b"xid", None).unwrap();
        let lowest = node.engine.system().set_committing(b"xid").unwrap();
        // Further than one watermark reserves.
        let at = Cts(lowest.0 + 3 * node.order().set_aside());
        node.engine.system().commit_prepared(b"xid", Some(at)).unwrap();
        node.end();
        let node = Life::begin(directory.path(), &oracle(0));
        node.engine.forest().spaces().prepare(TEST_SPACE).unwrap();
        assert!(node.insert(index, b"b") > at);
        assert!(node.has(index, b"a", node.order().max_committed()));
        node.end();
    }
}

#[test]
fn a_prepared_transaction_is_in_doubt_after_a_restart() {
    for timestamps in [oracle(1_000), clock()] {
        let directory = tempfile::tempdir().unwrap();
        let node = Life::begin(directory.path(), &timestamps);
        let index = create_tree(node.engine.forest());
        let mut trx = node.engine.begin(IsolationLevel::ReadCommitted).unwrap();
        trx.insert(index, b"a", b"row").unwrap();
        trx.prepare(b"xid", None).unwrap();
        // The coordinator chooses, and cannot say so before the node ends.
        let at = node.engine.system().set_committing(b"xid").unwrap();
        let later = node.insert(index, b"b");
        assert!(later > at);
        node.end();

        let node = Life::begin(directory.path(), &timestamps);
        node.engine.forest().spaces().prepare(TEST_SPACE).unwrap();
        assert_eq!(node.engine.recovery_report().prepared, 1);
        let opened = node.order().max_committed();
        assert!(node.has(index, b"b", opened));
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| node.has(index, b"a", opened));
            firn_base::task::sleep(Duration::from_millis(30));
            assert!(!reader.is_finished(), "it depends on the coordinator");
            node.engine.system().commit_prepared(b"xid", Some(at)).unwrap();
            assert!(reader.join().unwrap(), "it was committed below the snapshot");
        });
        node.end();
    }
}

#[test]
fn a_prepared_transaction_of_a_node_with_its_own_numbers_holds_no_reader_up() {
    let directory = tempfile::tempdir().unwrap();
    let node = Life::begin(directory.path(), &Timestamps::Local);
    let index = create_tree(node.engine.forest());
    let mut trx = node.engine.begin(IsolationLevel::ReadCommitted).unwrap();
    trx.insert(index, b"a", b"row").unwrap();
    trx.prepare(b"xid", None).unwrap();
    node.engine.system().set_committing(b"xid").unwrap();
    node.end();
    let node = Life::begin(directory.path(), &Timestamps::Local);
    node.engine.forest().spaces().prepare(TEST_SPACE).unwrap();
    let opened = node.order().max_committed();
    assert!(!node.has(index, b"a", opened));
    // It can be set to COMMITTING again, and commits above every snapshot.
    assert!(node.engine.system().set_committing(b"xid").unwrap() > opened);
    node.engine.system().commit_prepared(b"xid", None).unwrap();
    assert!(!node.has(index, b"a", opened));
    assert!(node.has(index, b"a", node.order().max_committed()));
    node.end();
}

#[test]
fn each_activity_logs_the_first_failure_of_a_row() {
    let failed = || Err(EngineError::TransactionEnded);
    let (mut one, mut other) = (FailureLog::new("purge"), FailureLog::new("rollback"));
    assert!(!one.note(Ok(())));
    assert!(one.note(failed()));
    assert!(!one.note(failed()));
    assert!(other.note(failed()), "another activity, or another engine of the process");
    assert!(!one.note(Ok(())));
    assert!(one.note(failed()));
}
