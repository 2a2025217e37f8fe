//! A replica beside a writer over one directory. Each snapshot of the replica sees what the
//! writer's snapshot at the same timestamp sees, while rows, trees and definitions change and purge
//! runs.

mod by_page;
mod crowd;
mod half_done;
mod log_tail;
mod moved;
mod shared_timestamps;

use std::ops::Range;

use firn_api::Timestamps;
use firn_api::WriterEpoch;
use firn_api::rows::{DatabaseNode, IsolationLevel, ReadMode, RowsError, WaitPolicy};
use firn_base::{Environment, TableId};
use firn_fabric::{Batch, Completion, Epoch, FabricError, InProcessFabric, Peer, Region};
use firn_format::definition::{ColumnDefinition, IndexDefinition, IndexKind, IndexState};
use firn_format::key::BinaryCollation;
use firn_format::value::{ColumnType, IntWidth, Value, ValueRef};
use firn_storage::local::{LocalOptions, LocalStorage};

use super::faults::Fault;
use super::*;
use crate::dictionary::Dictionary;
use crate::engine::{Engine, EngineOptions, Storage};
use crate::rows::replica::ReplicaNode;
use crate::table::{ScanOptions, Table, WriteBuffers};
use crate::test_support::table_definition;
use crate::transaction::{ReadTransaction, RecordReader, Transaction};

const TIMEOUT: Duration = Duration::from_secs(60);

/// Regions of another machine: each batch takes a moment.
struct Elsewhere<T>(T);

impl Peer for Elsewhere<Arc<dyn Peer>> {
    fn connect(&self, name: &str) -> Result<Arc<dyn Region>, FabricError> {
        Ok(Arc::new(Elsewhere(self.0.connect(name)?)))
    }
}

impl Region for Elsewhere<Arc<dyn Region>> {
    fn length_words(&self) -> usize {
        self.0.length_words()
    }

    fn epoch(&self) -> Epoch {
        self.0.epoch()
    }

    fn is_at_hand(&self) -> bool {
        false
    }

    fn timeout(&self) -> Duration {
        self.0.timeout()
    }

    fn submit(&self, batch: Batch) -> Completion {
        firn_base::task::sleep(Duration::from_micros(50));
        self.0.submit(batch)
    }
}

/// A writer over a directory, and what replicas of it need.
struct Writer {
    engine: Engine,
    dictionary: Arc<Dictionary>,
    storage: LocalStorage,
    peer: Arc<dyn Peer>,
    environment: Environment,
    timestamps: Timestamps,
    directory: tempfile::TempDir,
}

impl Writer {
    fn open() -> Writer {
        Writer::numbered_by(Timestamps::Local)
    }

    /// A writer with the schema `s`, whose commits this source numbers.
    fn numbered_by(timestamps: Timestamps) -> Writer {
        Writer::with(timestamps, 0)
    }

    /// A writer whose newest log replicas can read in its memory.
    fn with_tail(bytes: usize) -> Writer {
        Writer::with(Timestamps::Local, bytes)
    }

    fn with(timestamps: Timestamps, log_tail_bytes: usize) -> Writer {
        let writer = Writer::over(tempfile::tempdir().unwrap(), timestamps, log_tail_bytes);
        let mut ddl = writer.dictionary.ddl().unwrap();
        ddl.create_schema("s", b"").unwrap();
        ddl.commit().unwrap();
        writer
    }

    fn over(directory: tempfile::TempDir, timestamps: Timestamps, log_tail_bytes: usize) -> Writer {
        let environment = Environment::system();
        let storage =
            LocalStorage::open(&environment, directory.path(), LocalOptions::default()).unwrap();
        let fabric = InProcessFabric::new(Epoch(1));
        let peer = fabric.peer();
        let seams = Storage {
            log: storage.log.clone(),
            epoch: WriterEpoch::Next,
            pages: storage.pages.clone(),
            timestamps: timestamps.clone(),
            fabric: Arc::new(fabric),
        };
        let options = EngineOptions {
            buffer_pool_bytes: 4 << 20,
            tracks_modifications: true,
            log_tail_bytes,
            ..EngineOptions::default()
        };
        let engine = Engine::open(&environment, seams, &options).unwrap();
        let dictionary = engine.open_dictionary(Arc::new(BinaryCollation)).unwrap();
        Writer { engine, dictionary, storage, peer, environment, timestamps, directory }
    }

    /// Ends the writer, and opens the next one over its directory.
    fn restart(self) -> Writer {
        let Writer { engine, storage, dictionary, directory, timestamps, .. } = self;
        engine.close().unwrap();
        storage.close();
        drop((engine, storage, dictionary));
        Writer::over(directory, timestamps, 0)
    }

    /// A writer whose regions are reached by messages.
    fn elsewhere() -> Writer {
        let mut writer = Writer::open();
        writer.peer = Arc::new(Elsewhere(writer.peer));
        writer
    }

    fn as_seen(&self) -> Arc<dyn WriterNode> {
        let is_dense = matches!(self.timestamps, Timestamps::Local);
        Arc::new(RegionWriter::connect(Arc::clone(&self.peer), is_dense).unwrap())
    }

    fn replica(&self) -> Replica {
        self.open_replica(None).unwrap()
    }

    /// A replica with a fault.
    fn open_replica(&self, fault: Option<Fault>) -> Result<Replica, EngineError> {
        self.open_replica_with(ReplicaOptions { fault, ..ReplicaOptions::default() })
    }

    fn open_replica_with(&self, options: ReplicaOptions) -> Result<Replica, EngineError> {
        self.open_replica_over(self.storage.log.clone(), options)
    }

    fn open_replica_over(
        &self,
        log: Arc<dyn LogStore>,
        options: ReplicaOptions,
    ) -> Result<Replica, EngineError> {
        let storage = ReplicaStorage {
            log,
            pages: self.storage.pages.clone(),
            fabric: Arc::new(InProcessFabric::new(Epoch(1))),
            writer: self.as_seen(),
        };
        // Smaller than what is read, so that pages are read again at the applied position.
        let options = ReplicaOptions { buffer_pool_bytes: 1 << 20, ..options };
        Replica::open(&self.environment, storage, options, Arc::new(BinaryCollation))
    }

    fn create(&self, name: &str) -> Arc<Table> {
        let columns = vec![
            ColumnDefinition::new("id", ColumnType::Int(IntWidth::Eight), false),
            ColumnDefinition::new("a", ColumnType::Int(IntWidth::Four), true),
            ColumnDefinition::new("b", ColumnType::Blob { max_bytes: 1 << 24 }, true),
        ];
        let indexes = vec![
            IndexDefinition::new("PRIMARY", IndexKind::Clustered, &[0]),
            IndexDefinition::new("a", IndexKind::Secondary, &[1]),
        ];
        let mut ddl = self.dictionary.ddl().unwrap();
        let id = ddl.create_table(table_definition(name, columns, indexes)).unwrap();
        ddl.commit().unwrap();
        self.dictionary.table(id).unwrap()
    }

    fn begin(&self) -> Transaction {
        self.engine.begin(IsolationLevel::RepeatableRead).unwrap()
    }

    fn insert(&self, table: &Table, ids: Range<i64>, a: i64) {
        let mut trx = self.begin();
        for id in ids {
            insert(table, &mut trx, id, a, b"").unwrap();
        }
        trx.commit().unwrap();
    }

    /// Waits until every commit is visible there.
    fn wait_for(&self, replica: &Replica) {
        let newest = self.engine.system().order().max_committed();
        assert!(replica.wait_until_visible(newest, TIMEOUT), "{:?}", replica.failure());
    }

    fn close(self) {
        self.engine.close().unwrap();
        self.storage.close();
    }
}

fn insert(
    table: &Table,
    trx: &mut Transaction,
    id: i64,
    a: i64,
    b: &[u8],
) -> Result<(), EngineError> {
    let row = [ValueRef::Int(id), ValueRef::Int(a), ValueRef::Bytes(b)];
    table.insert(trx, &row, &mut WriteBuffers::default())
}

/// All rows by the primary key, and all entries of each index that the snapshot can read.
fn contents(
    table: &Arc<Table>,
    trx: &mut impl RecordReader,
) -> Result<Vec<Vec<Vec<Value>>>, EngineError> {
    let mut all = vec![rows(table, trx, ScanOptions::all())?];
    for index in table.secondary().iter().filter(|index| index.state == IndexState::Ready) {
        let options =
            ScanOptions { index: Some(*index), columns: Some([1, 0].into()), ..ScanOptions::all() };
        all.push(rows(table, trx, options)?);
    }
    Ok(all)
}

fn rows(
    table: &Arc<Table>,
    trx: &mut impl RecordReader,
    options: ScanOptions,
) -> Result<Vec<Vec<Value>>, EngineError> {
    let wanted = options.columns.clone().unwrap_or_else(|| [0, 1, 2].into());
    let mut scan = table.scan(trx, options)?;
    let mut rows = Vec::new();
    while scan.fetch(trx)? {
        for row in scan.rows() {
            let cells = wanted.iter().map(|ordinal| {
                let mut buffer = Vec::new();
                let cell = row.column(usize::from(*ordinal))?;
                Ok(table.value(trx.snapshot_reader(), cell, &mut buffer)?.to_value())
            });
            rows.push(cells.collect::<Result<_, EngineError>>()?);
        }
    }
    Ok(rows)
}

fn ids(replica: &Replica, table: TableId) -> Vec<Value> {
    let mut trx =
        ReadTransaction::begin(replica.versions(), IsolationLevel::RepeatableRead).unwrap();
    let table = replica.dictionary().table_for_read(&mut trx, table).unwrap();
    contents(&table, &mut trx).unwrap()[0].iter().map(|row| row[0].clone()).collect()
}

#[test]
fn a_replica_sees_what_was_there_and_what_comes() {
    let writer = Writer::open();
    let table = writer.create("t");
    writer.insert(&table, 0..100, 1);
    let replica = writer.replica();
    assert_eq!(ids(&replica, table.id()).len(), 100);
    writer.insert(&table, 100..150, 1);
    writer.wait_for(&replica);
    assert_eq!(ids(&replica, table.id()).len(), 150);
    replica.close();
    writer.close();
}

#[test]
fn what_has_not_committed_is_not_seen_before_it_has() {
    let writer = Writer::open();
    let table = writer.create("t");
    writer.insert(&table, 0..10, 1);
    let mut before = writer.begin();
    insert(&table, &mut before, 10, 1, b"").unwrap();
    let replica = writer.replica();
    let mut during = writer.begin();
    insert(&table, &mut during, 11, 1, b"").unwrap();
    writer.insert(&table, 20..21, 1);
    writer.wait_for(&replica);
    let seen = |replica: &Replica| ids(replica, table.id()).len();
    assert_eq!(seen(&replica), 11, "two transactions are open");
    let mut old =
        ReadTransaction::begin(replica.versions(), IsolationLevel::RepeatableRead).unwrap();
    old.open_snapshot();
    before.commit().unwrap();
    during.rollback().unwrap();
    writer.insert(&table, 21..22, 1);
    writer.wait_for(&replica);
    assert_eq!(seen(&replica), 13);
    let old_rows = contents(&replica.dictionary().table(table.id()).unwrap(), &mut old).unwrap();
    assert_eq!(old_rows[0].len(), 11, "a snapshot stays as it is");
    drop(old);
    replica.close();
    writer.close();
}

#[test]
fn the_writer_purges_nothing_that_a_snapshot_of_the_replica_sees() {
    let writer = Writer::open();
    let table = writer.create("t");
    writer.insert(&table, 0..500, 1);
    let replica = writer.replica();
    let mut old =
        ReadTransaction::begin(replica.versions(), IsolationLevel::RepeatableRead).unwrap();
    old.open_snapshot();
    let mut trx = writer.begin();
    for id in 0..500 {
        let mut key = Vec::new();
        table.primary_key(&[ValueRef::Int(id)], &mut key).unwrap();
        table.delete(&mut trx, &key, &mut WriteBuffers::default()).unwrap();
    }
    trx.commit().unwrap();
    let here = replica.dictionary().table_for_read(&mut old, table.id()).unwrap();
    // Purge comes by every 10 ms, and needs commits to continue.
    for id in 1000..1030 {
        writer.insert(&table, id..id + 1, 1);
        firn_base::task::sleep(Duration::from_millis(10));
    }
    writer.wait_for(&replica);
    assert_eq!(contents(&here, &mut old).unwrap()[0].len(), 500);
    assert!(writer.engine.system().snapshots().horizon() <= old.snapshot().unwrap());
    drop(old);
    // Then it goes on.
    let newest = writer.engine.system().order().max_committed();
    let is_purged = |_| {
        writer.insert(&table, 2000..2001, 1);
        let mut trx = writer.begin();
        let mut key = Vec::new();
        table.primary_key(&[ValueRef::Int(2000)], &mut key).unwrap();
        table.delete(&mut trx, &key, &mut WriteBuffers::default()).unwrap();
        trx.commit().unwrap();
        firn_base::task::sleep(Duration::from_millis(10));
        writer.engine.system().snapshots().horizon() >= newest
    };
    assert!((0..5_000).any(is_purged), "the replica gives back what it does not need");
    replica.close();
    writer.close();
}

#[test]
fn a_snapshot_that_is_open_for_too_long_is_refused_and_holds_nothing() {
    let writer = Writer::open();
    let table = writer.create("t");
    writer.insert(&table, 0..10, 1);
    // Longer than a busy machine takes for a read.
    let limit = Duration::from_secs(3);
    let options = ReplicaOptions { snapshot_limit: Some(limit), ..ReplicaOptions::default() };
    let replica = Arc::new(writer.open_replica_with(options).unwrap());
    let node = ReplicaNode::new(Arc::clone(&replica), TIMEOUT);
    let mut old = node.begin(IsolationLevel::RepeatableRead).unwrap();
    old.open_snapshot();
    let here = old.table_for_read(table.id()).unwrap();
    let mut key = Vec::new();
    table.primary_key(&[ValueRef::Int(3)], &mut key).unwrap();
    let mut read = || old.get(&here, &key, ReadMode::Consistent, &mut Vec::new());
    assert!(read().unwrap());
    let newest = writer.engine.system().order().max_committed();
    let is_purged = |id| {
        writer.insert(&table, 1000 + id..1001 + id, 1);
        firn_base::task::sleep(Duration::from_millis(10));
        writer.engine.system().snapshots().horizon() > newest
    };
    assert!((0..5_000_i64).any(is_purged), "the old snapshot does not hold the writer up for ever");
    let refused = read().unwrap_err();
    assert_eq!(refused.mysql_code(), 1412, "{refused}");
    let mut new = node.begin(IsolationLevel::RepeatableRead).unwrap();
    assert!(new.get(&here, &key, ReadMode::Consistent, &mut Vec::new()).unwrap());
    drop((old, new));
    replica.close();
    writer.close();
}

#[test]
fn definitions_change_when_their_commit_is_seen() {
    let writer = Writer::open();
    let table = writer.create("t");
    writer.insert(&table, 0..10, 1);
    let replica = writer.replica();
    let named = |name: &str| replica.dictionary().table_named("s", name);
    let mut old =
        ReadTransaction::begin(replica.versions(), IsolationLevel::RepeatableRead).unwrap();
    old.open_snapshot();

    let other = writer.create("u");
    writer.insert(&other, 0..5, 1);
    let mut ddl = writer.dictionary.ddl().unwrap();
    ddl.rename_table(table.id(), "s", "v").unwrap();
    ddl.commit().unwrap();
    writer.wait_for(&replica);
    assert!(named("t").is_none());
    assert_eq!(named("v").unwrap().id(), table.id());
    assert_eq!(ids(&replica, other.id()).len(), 5);
    let refused = replica.dictionary().table_for_read(&mut old, other.id());
    assert!(
        matches!(refused, Err(EngineError::TableChanged(_))),
        "it is younger than the snapshot"
    );

    let mut ddl = writer.dictionary.ddl().unwrap();
    ddl.truncate_table(table.id()).unwrap();
    ddl.drop_table(other.id()).unwrap();
    ddl.create_schema("r", b"options").unwrap();
    ddl.commit().unwrap();
    writer.insert(&writer.dictionary.table(table.id()).unwrap(), 7..8, 1);
    writer.wait_for(&replica);
    assert_eq!(ids(&replica, table.id()), [Value::Int(7)]);
    assert!(named("u").is_none());
    assert_eq!(replica.dictionary().schema_options("r").as_deref(), Some(&b"options"[..]));
    let refused = replica.dictionary().table_for_read(&mut old, table.id());
    assert!(matches!(refused, Err(EngineError::TableChanged(_))), "its rows are gone from it");
    drop(old);
    replica.close();
    writer.close();
}

#[test]
fn a_replica_neither_locks_nor_writes() {
    let writer = Writer::open();
    let table = writer.create("t");
    writer.insert(&table, 0..10, 1);
    let replica = writer.replica();
    let mut trx =
        ReadTransaction::begin(replica.versions(), IsolationLevel::RepeatableRead).unwrap();
    let table = replica.dictionary().table_for_read(&mut trx, table.id()).unwrap();
    let mut key = Vec::new();
    table.primary_key(&[ValueRef::Int(3)], &mut key).unwrap();
    let mode = ReadMode::Update(WaitPolicy::Wait);
    let locked = table.get(&mut trx, &key, mode, &mut Vec::new());
    assert!(matches!(locked, Err(EngineError::ReadOnly)));
    assert!(matches!(table.sequences().auto_increment.take(1), Err(EngineError::ReadOnly)));
    drop(trx);
    replica.close();
    writer.close();
}

#[test]
fn a_snapshot_that_was_decided_elsewhere_is_waited_for() {
    let writer = Writer::open();
    let table = writer.create("t");
    writer.insert(&table, 0..10, 1);
    let replica = Arc::new(writer.replica());
    let node = ReplicaNode::new(Arc::clone(&replica), Duration::from_millis(50));
    let never = node.begin_at(IsolationLevel::RepeatableRead, Cts(replica.visible().0 + 1000));
    assert!(matches!(never, Err(RowsError::Unavailable { .. })));

    let node = ReplicaNode::new(Arc::clone(&replica), TIMEOUT);
    for id in 10..40 {
        writer.insert(&table, id..id + 1, 1);
        let newest = writer.engine.system().order().max_committed();
        let mut trx = node.begin_at(IsolationLevel::RepeatableRead, newest).unwrap();
        assert_eq!(trx.snapshot(), Some(newest));
        let here = trx.table_for_read(table.id()).unwrap();
        let mut key = Vec::new();
        table.primary_key(&[ValueRef::Int(id)], &mut key).unwrap();
        let mut payload = Vec::new();
        assert!(trx.get(&here, &key, ReadMode::Consistent, &mut payload).unwrap());
        let locked = trx.get(&here, &key, ReadMode::Share(WaitPolicy::Wait), &mut payload);
        assert_eq!(locked, Err(RowsError::NotLeader { hint: None }));
    }
    drop(node);
    replica.close();
    writer.close();
}
