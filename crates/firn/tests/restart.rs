//! A node over a real directory: after a restart, committed changes are there and others are not.

use std::path::Path;
use std::sync::Arc;

use firn_base::{Environment, IndexId, SpaceId, TableId};
use firn_engine::log::writer::Purpose;
use firn_engine::mini_transaction::MiniTransaction;
use firn_engine::transaction::{
    Cursor, Direction, IsolationLevel, KeyRange, ReadMode, Transaction, TransactionSystem,
};
use firn_format::space::SpacePurpose;
use firn_node::node::{Node, NodeOptions};

const SPACE: SpaceId = SpaceId(100);

fn open(path: &Path) -> Node {
    let mut options = NodeOptions::default();
    options.engine.buffer_pool_bytes = 32 << 20;
    options.storage.log.segment_size_bytes = 4 << 20;
    Node::open(&Environment::system(), path, &options).unwrap()
}

fn create_tree(system: &TransactionSystem) -> IndexId {
    let forest = system.forest();
    forest.spaces().create(SPACE, SpacePurpose::Table, TableId(1)).unwrap();
    let mut frames = forest.pages().pool.reserve(1);
    let index = forest.pages().run(|| {
        let mut mtr = MiniTransaction::begin(forest.pages(), Purpose::Forward)?;
        let index = forest.create_root(&mut mtr, &mut frames, SPACE)?;
        let _ = mtr.commit();
        Ok(index)
    });
    index.unwrap()
}

fn insert(system: &Arc<TransactionSystem>, index: IndexId, keys: std::ops::Range<u32>) {
    for key in keys {
        let mut trx = Transaction::begin(system, IsolationLevel::RepeatableRead).unwrap();
        trx.insert(index, &key.to_be_bytes(), &[7; 200]).unwrap();
        trx.commit().unwrap();
    }
}

fn keys(node: &Node, index: IndexId) -> Vec<u32> {
    let mut trx = node.engine().begin(IsolationLevel::RepeatableRead).unwrap();
    let mut cursor = Cursor::new(index, KeyRange::all(), Direction::Forward, ReadMode::Consistent);
    let mut keys = Vec::new();
    while cursor.fetch(&mut trx).unwrap() {
        keys.extend(cursor.rows().map(|(key, _)| u32::from_be_bytes(key.try_into().unwrap())));
    }
    keys
}

#[test]
fn a_clean_restart_keeps_everything() {
    let directory = tempfile::tempdir().unwrap();
    let node = open(directory.path());
    let index = create_tree(node.engine().system());
    insert(node.engine().system(), index, 0..2_000);
    node.close().unwrap();
    for _ in 0..2 {
        let node = open(directory.path());
        assert_eq!(keys(&node, index), (0..2_000).collect::<Vec<_>>());
        node.close().unwrap();
    }
}

#[test]
fn open_transactions_are_rolled_back_after_a_restart_and_prepared_ones_wait() {
    let directory = tempfile::tempdir().unwrap();
    let node = open(directory.path());
    let index = create_tree(node.engine().system());
    insert(node.engine().system(), index, 0..100);
    let mut open_trx = node.engine().begin(IsolationLevel::RepeatableRead).unwrap();
    for key in 0..50_u32 {
        assert!(open_trx.update(index, &key.to_be_bytes(), b"changed").unwrap());
    }
    assert!(open_trx.delete(index, &60_u32.to_be_bytes()).unwrap());
    open_trx.insert(index, &1000_u32.to_be_bytes(), b"new").unwrap();
    let mut prepared = node.engine().begin(IsolationLevel::RepeatableRead).unwrap();
    assert!(prepared.delete(index, &70_u32.to_be_bytes()).unwrap());
    prepared.prepare(b"branch", None).unwrap();
    node.close().unwrap();
    // The rollback at the session's end no longer reaches the disk.
    drop(open_trx);

    let node = open(directory.path());
    let report = node.engine().recovery_report();
    assert_eq!((report.losers, report.prepared), (1, 1));
    assert_eq!(keys(&node, index), (0..100).collect::<Vec<_>>());
    while node.engine().losers_left() > 0 {
        std::thread::yield_now();
    }
    let mut trx = node.engine().begin(IsolationLevel::RepeatableRead).unwrap();
    let mut payload = Vec::new();
    assert!(trx.get(index, &1_u32.to_be_bytes(), ReadMode::Consistent, &mut payload).unwrap());
    assert_eq!(payload, [7; 200]);
    assert!(trx.update(index, &1_u32.to_be_bytes(), b"again").unwrap());
    trx.commit().unwrap();
    assert_eq!(node.engine().system().prepared_transactions(), [b"branch".as_slice().into()]);
    node.engine().system().commit_prepared(b"branch", None).unwrap();
    assert_eq!(keys(&node, index).len(), 99);
    node.close().unwrap();
}

#[test]
fn two_processes_do_not_share_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let node = open(directory.path());
    let second = Node::open(&Environment::system(), directory.path(), &NodeOptions::default());
    let message = second.err().expect("the directory is taken").to_string();
    assert!(message.contains("in use by another Firn process"), "{message}");
    node.close().unwrap();
}
