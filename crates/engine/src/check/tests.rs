use std::sync::Arc;

use firn_format::definition::{ColumnDefinition, IndexDefinition, IndexKind};
use firn_format::redo::Change;
use firn_format::value::{ColumnType, IntWidth, ValueRef};

use super::*;
use crate::log::writer::Purpose;
use crate::mini_transaction::MiniTransaction;
use crate::table::{Table, WriteBuffers};
use crate::test_support::{Database, table_definition};
use crate::transaction::ReadMode;

fn table_with_rows(database: &Database) -> Arc<Table> {
    let columns = vec![
        ColumnDefinition::new("id", ColumnType::Int(IntWidth::Four), false),
        ColumnDefinition::new("a", ColumnType::Int(IntWidth::Four), false),
        ColumnDefinition::new("body", ColumnType::Blob { max_bytes: u32::MAX }, true),
    ];
    let indexes = vec![
        IndexDefinition::new("PRIMARY", IndexKind::Clustered, &[0]),
        IndexDefinition::new("a", IndexKind::Secondary, &[1]),
    ];
    let table = database.create(table_definition("t", columns, indexes));
    let (mut trx, mut buffers) = (database.begin(), WriteBuffers::default());
    let long = vec![1; 60_000];
    for id in 0..2000 {
        let body = if id % 100 == 0 { &long[..] } else { &long[..80] };
        let row = [ValueRef::Int(id), ValueRef::Int(id % 9), ValueRef::Bytes(body)];
        table.insert(&mut trx, &row, &mut buffers).unwrap();
    }
    trx.commit().unwrap();
    table
}

fn run(database: &Database) -> CheckReport {
    check(&database.dictionary, &mut |_| true).unwrap()
}

/// Changes one page without going through its tree.
fn damage(database: &Database, page: PageId, change: &Change<'_>) {
    let pages = database.node.system.pages();
    pages
        .run(|| {
            let mut mtr = MiniTransaction::begin(pages, Purpose::Forward)?;
            let held = mtr.exclusive(page)?;
            mtr.change(held, change);
            let _ = mtr.commit();
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_sound_database_is_clean() {
    let database = Database::new();
    let table = table_with_rows(&database);
    let report = run(&database);
    assert!(report.is_clean(), "{:#?}", report.problems);
    assert_eq!((report.leaked_pages, report.entries, report.chains), (0, 2000, 20));
    assert_eq!(report.pages, report.pages_used);
    let mut buffers = WriteBuffers::default();
    let mut open = database.begin();
    for id in (0..2000).step_by(50) {
        let mut key = Vec::new();
        table.primary_key(&[ValueRef::Int(id)], &mut key).unwrap();
        assert!(table.delete(&mut open, &key, &mut buffers).unwrap());
    }
    let report = run(&database);
    assert!(report.is_clean(), "{:#?}", report.problems);
    assert_eq!((report.leaked_pages, report.entries), (0, 2000));
    open.commit().unwrap();
    assert_eq!(run(&database).entries, 2000 - 40);
    database.clean_up();
    let report = run(&database);
    assert!(report.is_clean(), "{:#?}", report.problems);
    assert_eq!((report.leaked_pages, report.chains), (0, 0));
}

#[test]
fn entries_without_rows_and_rows_without_entries_are_named() {
    let database = Database::new();
    let table = table_with_rows(&database);
    let index = table.secondary()[0].id;
    let mut trx = database.begin();
    assert!(trx.delete(index, &[0x80, 0, 0, 3, 0x80, 0, 0, 3]).unwrap());
    trx.insert(index, &[0x80, 0, 0, 4, 0x80, 0, 0, 9], &[]).unwrap();
    trx.commit().unwrap();
    let report = run(&database);
    assert_eq!(report.problems.count, 2, "{:#?}", report.problems);
    assert!(
        report.problems.first[0].what.contains("lacks the entry [80, 00, 00, 03, 80, 00, 00, 03]")
    );
    assert!(report.problems.first[1].what.contains("which no row has"));
}

#[test]
fn rows_under_wrong_keys_and_values_that_are_twice_in_a_unique_index_are_named() {
    let database = Database::new();
    let columns = vec![
        ColumnDefinition::new("id", ColumnType::Int(IntWidth::Four), false),
        ColumnDefinition::new("a", ColumnType::Int(IntWidth::Four), false),
    ];
    let indexes = vec![
        IndexDefinition::new("PRIMARY", IndexKind::Clustered, &[0]),
        IndexDefinition::new("a", IndexKind::Unique, &[1]),
    ];
    let table = database.create(table_definition("u", columns, indexes));
    let (mut trx, mut buffers) = (database.begin(), WriteBuffers::default());
    for id in 1..4 {
        let row = [ValueRef::Int(id), ValueRef::Int(id * 10)];
        table.insert(&mut trx, &row, &mut buffers).unwrap();
    }
    trx.commit().unwrap();
    let key = |id| {
        let mut key = Vec::new();
        table.primary_key(&[ValueRef::Int(id)], &mut key).unwrap();
        key
    };
    let mut trx = database.begin();
    let mut first = Vec::new();
    assert!(trx.get(table.clustered(), &key(1), ReadMode::Consistent, &mut first).unwrap());
    // The second row gets the first one's value, without a change of the index.
    assert!(trx.update(table.clustered(), &key(2), &first).unwrap());
    trx.commit().unwrap();
    let mut problems = Problems::default();
    let mut trx = database.begin();
    entries::check(&mut trx, &table, &mut problems).unwrap();
    let found: Vec<&str> = problems.first.iter().map(|problem| &*problem.what).collect();
    assert_eq!(
        found,
        [
            "index a lacks the entry [80, 00, 00, 0a]",
            "index a has the entry [80, 00, 00, 14], which no row has"
        ]
    );
    assert_eq!(run(&database).problems, problems);
}

#[test]
fn damaged_pages_are_named() {
    let database = Database::new();
    let table = table_with_rows(&database);
    let space = table.space();
    let leaf = PageId::new(space, firn_base::PageNo(table.clustered().root().page_no.0 + 6));
    damage(
        &database,
        leaf,
        &Change::OverflowInit {
            next: firn_base::PageNo::NONE,
            owner: firn_base::TrxId(1),
            bytes: &[],
        },
    );
    let report = run(&database);
    assert!(
        report.problems.first.iter().any(|problem| problem.page == leaf),
        "{:#?}",
        report.problems
    );
}

#[test]
fn pages_that_nobody_uses_are_counted() {
    let database = Database::new();
    let table = table_with_rows(&database);
    let system = &database.node.system;
    system
        .pages()
        .run(|| {
            let mut mtr = MiniTransaction::begin(system.pages(), Purpose::Forward)?;
            system.forest().spaces().allocate(&mut mtr, table.space())?;
            let _ = mtr.commit();
            Ok(())
        })
        .unwrap();
    let report = run(&database);
    assert!(report.is_clean());
    assert_eq!(report.leaked_pages, 1);
    let root = table.secondary()[0].id.root();
    system
        .pages()
        .run(|| {
            let mut mtr = MiniTransaction::begin(system.pages(), Purpose::Forward)?;
            system.forest().spaces().free(&mut mtr, root)?;
            let _ = mtr.commit();
            Ok(())
        })
        .unwrap();
    let report = run(&database);
    assert_eq!(report.problems.first[0].page, root, "{:#?}", report.problems);
}

#[test]
fn a_check_can_be_ended() {
    let database = Database::new();
    let mut buffers = WriteBuffers::default();
    let table = table_with_rows(&database);
    let mut trx = database.begin();
    let long = vec![2; 20 << 20];
    let row = [ValueRef::Int(-1), ValueRef::Int(1), ValueRef::Bytes(&long)];
    table.insert(&mut trx, &row, &mut buffers).unwrap();
    let ended = check(&database.dictionary, &mut |_| false).unwrap_err();
    assert!(matches!(ended, EngineError::Lock(LockError::Cancelled)));
}
