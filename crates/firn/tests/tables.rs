//! Tables over a real directory: a restart changes nothing, and no space leaks.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use firn_api::rows::NewIndex;
use firn_base::{Environment, TableId};
use firn_engine::check::check;
use firn_engine::dictionary::Dictionary;
use firn_engine::table::{ScanOptions, Table, WriteBuffers};
use firn_engine::transaction::IsolationLevel;
use firn_format::definition::{
    ColumnDefinition, IndexDefinition, IndexKind, IndexPart, TableDefinition,
};
use firn_format::key::BinaryCollation;
use firn_format::value::{ColumnType, IntWidth, ValueRef};
use firn_node::node::{Node, NodeOptions};

fn open(path: &Path) -> (Node, Arc<Dictionary>) {
    let mut options = NodeOptions::default();
    options.engine.buffer_pool_bytes = 32 << 20;
    options.storage.log.segment_size_bytes = 4 << 20;
    let node = Node::open(&Environment::system(), path, &options).unwrap();
    let dictionary = node.engine().open_dictionary(Arc::new(BinaryCollation)).unwrap();
    (node, dictionary)
}

fn definition(name: &str) -> TableDefinition {
    TableDefinition {
        columns: vec![
            ColumnDefinition::new("id", ColumnType::Int(IntWidth::Eight), false),
            ColumnDefinition::new("a", ColumnType::Int(IntWidth::Four), false),
            ColumnDefinition::new("body", ColumnType::Blob { max_bytes: u32::MAX }, true),
        ],
        indexes: vec![
            IndexDefinition::new("PRIMARY", IndexKind::Clustered, &[0]),
            IndexDefinition::new("a", IndexKind::Unique, &[1]),
        ],
        ..TableDefinition::new("s", name)
    }
}

fn create(dictionary: &Arc<Dictionary>) -> TableId {
    let mut ddl = dictionary.ddl().unwrap();
    ddl.create_schema("s", b"").unwrap();
    let id = ddl.create_table(definition("t")).unwrap();
    ddl.commit().unwrap();
    id
}

fn fill(node: &Node, table: &Table, ids: std::ops::Range<i64>) {
    let mut trx = node.engine().begin(IsolationLevel::RepeatableRead).unwrap();
    write(&mut trx, table, ids);
    trx.commit().unwrap();
}

fn write(
    trx: &mut firn_engine::transaction::Transaction,
    table: &Table,
    ids: std::ops::Range<i64>,
) {
    let mut buffers = WriteBuffers::default();
    let long = vec![3; 40_000];
    for id in ids {
        let body = if id % 50 == 0 { &long[..] } else { &long[..100] };
        let row = [ValueRef::Int(id), ValueRef::Int(id), ValueRef::Bytes(body)];
        table.insert(trx, &row, &mut buffers).unwrap();
    }
}

fn count(node: &Node, table: &Arc<Table>) -> usize {
    let mut trx = node.engine().begin(IsolationLevel::RepeatableRead).unwrap();
    let mut scan = table.scan(&mut trx, ScanOptions::all()).unwrap();
    let mut rows = 0;
    while scan.fetch(&mut trx).unwrap() {
        rows += scan.rows().count();
    }
    rows
}

/// Waits until all background work is done, and checks. Pages that nobody needs are free a moment
/// later.
fn assert_clean(node: &Node, dictionary: &Dictionary) {
    let is_busy = || node.engine().losers_left() > 0 || !dictionary.pending_drops().is_empty();
    while is_busy() {
        wait_a_moment();
    }
    let mut leaked = None;
    for _ in 0..600 {
        wait_a_moment();
        let report = check(dictionary, &mut |_| true).unwrap();
        assert!(report.is_clean(), "{:#?}", report.problems);
        leaked = Some(report.leaked_pages);
        if leaked == Some(0) {
            break;
        }
    }
    assert_eq!(leaked, Some(0));
}

#[allow(clippy::disallowed_methods)]
fn wait_a_moment() {
    std::thread::sleep(Duration::from_millis(100));
}

#[test]
fn tables_are_there_after_a_clean_restart() {
    let directory = tempfile::tempdir().unwrap();
    let (node, dictionary) = open(directory.path());
    let id = create(&dictionary);
    let table = dictionary.table(id).unwrap();
    fill(&node, &table, 0..2_000);
    assert_eq!(table.sequences().auto_increment.take(7).unwrap(), 1);
    let definition = table.definition().clone();
    node.close().unwrap();
    // A table that is still held keeps the directory in use.
    drop((table, dictionary));
    let (node, dictionary) = open(directory.path());
    let found = dictionary.table_named("s", "t").unwrap();
    assert_eq!(*found.definition(), definition);
    assert_eq!(count(&node, &found), 2_000);
    assert_eq!(found.sequences().auto_increment.take(1).unwrap(), 8);
    assert_clean(&node, &dictionary);
    node.close().unwrap();
}

#[test]
fn what_was_under_way_is_taken_back_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let (node, dictionary) = open(directory.path());
    let id = create(&dictionary);
    let table = dictionary.table(id).unwrap();
    fill(&node, &table, 0..2_000);
    let new = NewIndex {
        name: "b".to_owned(),
        unique: false,
        parts: vec![IndexPart::ascending(1), IndexPart::ascending(0)],
        options: Vec::new(),
    };
    // The build never ends, as if the process died: its index stays in the definition.
    let stopped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        dictionary.add_index(id, &new, |progress| {
            assert!(progress.rows_done < 900, "the process ends");
            true
        })
    }));
    assert!(stopped.is_err());
    let mut writer = node.engine().begin(IsolationLevel::RepeatableRead).unwrap();
    let building = dictionary.table_for_write(&mut writer, id).unwrap();
    assert_eq!(building.secondary().len(), 2);
    write(&mut writer, &building, 5_000..5_300);
    let mut ddl = dictionary.ddl().unwrap();
    ddl.create_table(definition("u")).unwrap();
    node.close().unwrap();
    // The undo of these no longer reaches the disk.
    drop((writer, ddl, building, table));
    drop(dictionary);

    let (node, dictionary) = open(directory.path());
    assert_eq!(node.engine().recovery_report().losers, 2);
    let found = dictionary.table(id).unwrap();
    assert_eq!(found.secondary().len(), 1);
    assert!(dictionary.table_named("s", "u").is_none());
    assert_eq!(count(&node, &found), 2_000);
    assert_clean(&node, &dictionary);
    dictionary.add_index(id, &new, |_| true).unwrap();
    let mut ddl = dictionary.ddl().unwrap();
    ddl.create_table(definition("u")).unwrap();
    ddl.drop_index(id, "a").unwrap();
    ddl.commit().unwrap();
    assert_clean(&node, &dictionary);
    node.close().unwrap();
    let space = found.space();
    drop((found, dictionary));

    let (node, dictionary) = open(directory.path());
    assert_clean(&node, &dictionary);
    let mut ddl = dictionary.ddl().unwrap();
    ddl.drop_schema("s").unwrap();
    ddl.commit().unwrap();
    wait_a_moment();
    assert_clean(&node, &dictionary);
    let spaces = node.engine().forest().spaces();
    assert!(spaces.usage(space).is_err_and(|error| error.is_absent_page()));
    node.close().unwrap();
}

#[test]
fn a_prepared_transaction_keeps_its_tables_over_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (node, dictionary) = open(folder.path());
    let id = create(&dictionary);
    let table = dictionary.table(id).unwrap();
    let mut trx = node.engine().begin(IsolationLevel::RepeatableRead).unwrap();
    write(&mut trx, &table, 0..3);
    trx.prepare(b"branch", None).unwrap();
    drop((table, dictionary));
    node.close().unwrap();
    let (node, dictionary) = open(folder.path());
    let drop_table = || {
        let mut ddl = dictionary.ddl()?;
        ddl.set_lock_wait_timeout(Duration::from_millis(50));
        ddl.drop_table(id)?;
        ddl.commit()
    };
    assert_eq!(drop_table().unwrap_err().mysql_code(), 1205);
    fill(&node, &dictionary.table(id).unwrap(), 10..12);
    node.engine().system().commit_prepared(b"branch", None).unwrap();
    drop_table().unwrap();
    drop(dictionary);
    node.close().unwrap();
}
