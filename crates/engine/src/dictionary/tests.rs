use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use expect_test::expect;
use firn_api::Room;
use firn_api::rows::NewIndex;
use firn_base::SpaceId;
use firn_base::task::StopAtEnd;
use firn_format::definition::{
    ColumnDefinition, IndexDefinition, IndexKind, IndexPart, TableDefinition,
};
use firn_format::key::BinaryCollation;
use firn_format::value::{ColumnType, IntWidth, Value, ValueRef};

use super::*;
use crate::check::check;
use crate::lock::LockError;
use crate::table::{ScanOptions, WriteBuffers};
use crate::test_support::{Database, ROOM, table_definition};
use crate::transaction::{KeyRange, ReadMode};

fn numbers(name: &str) -> TableDefinition {
    let int = ColumnType::Int(IntWidth::Four);
    let columns = vec![
        ColumnDefinition::new("id", int, false),
        ColumnDefinition::new("a", int, false),
        ColumnDefinition::new("b", int, true),
    ];
    let indexes = vec![
        IndexDefinition::new("PRIMARY", IndexKind::Clustered, &[0]),
        IndexDefinition::new("a", IndexKind::Secondary, &[1]),
    ];
    table_definition(name, columns, indexes)
}

fn row(id: i64, a: i64) -> [ValueRef<'static>; 3] {
    [ValueRef::Int(id), ValueRef::Int(a), ValueRef::Null]
}

fn fill(database: &Database, table: &Table, ids: std::ops::Range<i64>) {
    let (mut trx, mut buffers) = (database.begin(), WriteBuffers::default());
    for id in ids {
        table.insert(&mut trx, &row(id, id % 100), &mut buffers).unwrap();
    }
    trx.commit().unwrap();
}

fn count(database: &Database, table: &Arc<Table>, options: ScanOptions) -> usize {
    let mut trx = database.begin();
    let mut scan = table.scan(&mut trx, options).unwrap();
    let mut rows = 0;
    while scan.fetch(&mut trx).unwrap() {
        rows += scan.rows().count();
    }
    rows
}

fn assert_clean(database: &Database) {
    database.clean_up();
    let report = check(&database.dictionary, &mut |_| true).unwrap();
    assert!(report.is_clean(), "{:#?}", report.problems);
    assert_eq!(report.leaked_pages, 0);
}

fn reopen(database: &Database) -> Arc<Dictionary> {
    Dictionary::open(&database.node.system, Arc::new(BinaryCollation)).unwrap()
}

fn ddl<R>(database: &Database, change: impl FnOnce(&mut Ddl) -> Result<R, EngineError>) -> R {
    let mut ddl = database.dictionary.ddl().unwrap();
    let result = change(&mut ddl).unwrap();
    ddl.commit().unwrap();
    result
}

fn is_absent(database: &Database, space: SpaceId) -> bool {
    let usage = database.node.system.forest().spaces().usage(space);
    usage.is_err_and(|error| error.is_absent_page())
}

#[test]
fn what_was_created_is_there_after_opening_again() {
    let database = Database::new();
    let mut wide = numbers("wide");
    for number in 0..900 {
        let name = format!("a_column_with_a_long_name_{number}");
        wide.columns.push(ColumnDefinition::new(name, ColumnType::Int(IntWidth::One), true));
    }
    let created = [database.create(numbers("t")), database.create(wide)];
    let again = reopen(&database);
    for table in created {
        let name = &table.definition().name;
        let found = again.table_named("s", name).unwrap();
        assert_eq!(found.definition(), table.definition());
        assert_eq!(again.table(table.id()).unwrap().definition(), table.definition());
    }
    assert_eq!(again.schemas(), ["s".into()]);
    assert!(again.table_named("s", "other").is_none());
    assert_clean(&database);
}

#[test]
fn a_full_disk_is_freed_by_delete_truncate_and_drop() {
    let database = Database::new();
    let tables = ["t", "u"].map(|name| database.create(numbers(name)));
    tables.iter().for_each(|table| fill(&database, table, 0..1000));
    let delete = |ids: std::ops::Range<i64>| {
        let (mut trx, mut buffers) = (database.begin(), WriteBuffers::default());
        for id in ids {
            let mut key = Vec::new();
            tables[0].primary_key(&[ValueRef::Int(id)], &mut key)?;
            assert!(tables[0].delete(&mut trx, &key, &mut buffers)?);
        }
        trx.commit().map(drop)
    };
    let insert = || {
        let mut trx = database.begin();
        let inserted =
            tables[0].insert(&mut trx, &row(5000, 1), &mut WriteBuffers::default()).map(drop);
        trx.commit().unwrap();
        inserted.unwrap_err().mysql_code()
    };
    ROOM.set(Room::Low);
    assert_eq!(insert(), 1021);
    delete(0..500).unwrap();
    assert_eq!(insert(), 1021);
    // The remaining room is for ends of transactions, and for dropping whole tables.
    ROOM.set(Room::Scarce);
    assert_eq!(delete(500..501).unwrap_err().mysql_code(), 1021);
    ddl(&database, |ddl| ddl.truncate_table(tables[0].id()));
    ddl(&database, |ddl| ddl.drop_table(tables[1].id()));
    let mut refused = database.dictionary.ddl().unwrap();
    assert_eq!(refused.create_table(numbers("v")).unwrap_err().mysql_code(), 1021);
    drop(refused);
    database.clean_up();
    assert!(is_absent(&database, tables[1].space()));
    ROOM.set(Room::Plenty);
    let emptied = database.dictionary.table(tables[0].id()).unwrap();
    assert_eq!(count(&database, &emptied, ScanOptions::all()), 0);
    fill(&database, &emptied, 0..10);
    assert_clean(&database);
}

#[test]
fn a_rolled_back_ddl_leaves_nothing_behind() {
    let database = Database::new();
    let table = database.create(numbers("t"));
    fill(&database, &table, 0..1000);
    database.clean_up();
    let before = reopen(&database).tables_of("s").unwrap().len();
    let mut ddl = database.dictionary.ddl().unwrap();
    ddl.create_schema("other", b"x").unwrap();
    let id = ddl.create_table(numbers("u")).unwrap();
    let space = ddl.lock(id).unwrap().space();
    ddl.rename_table(table.id(), "other", "renamed").unwrap();
    ddl.truncate_table(table.id()).unwrap();
    ddl.drop_index(table.id(), "a").unwrap();
    ddl.drop_table(table.id()).unwrap();
    ddl.rollback().unwrap();
    database.clean_up();
    assert!(is_absent(&database, space));
    assert_eq!(reopen(&database).tables_of("s").unwrap().len(), before);
    assert!(reopen(&database).tables_of("other").is_none());
    assert!(database.dictionary.pending_drops().is_empty());
    assert!(database.dictionary.table_named("s", "u").is_none());
    assert_eq!(count(&database, &table, ScanOptions::all()), 1000);
    assert_clean(&database);
    database.create(numbers("u"));
}

#[test]
fn names_are_taken_once() {
    let database = Database::new();
    let table = database.create(numbers("t"));
    let mut other = database.dictionary.ddl().unwrap();
    assert_eq!(other.create_schema("s", b"").unwrap_err().mysql_code(), 1007);
    assert_eq!(other.create_table(numbers("t")).unwrap_err().mysql_code(), 1050);
    let nowhere = TableDefinition { schema_name: "n".to_owned(), ..numbers("t") };
    assert_eq!(other.create_table(nowhere).unwrap_err().mysql_code(), 1049);
    drop(other);
    ddl(&database, |ddl| {
        let u = ddl.create_table(numbers("u"))?;
        ddl.rename_table(table.id(), "s", "swap")?;
        ddl.rename_table(u, "s", "t")?;
        ddl.rename_table(table.id(), "s", "u")
    });
    assert_eq!(database.dictionary.table_named("s", "u").unwrap().id(), table.id());
    assert!(database.dictionary.table_named("s", "swap").is_none());
    assert_clean(&database);
}

#[test]
fn a_dropped_table_goes_when_nobody_can_see_it() {
    let database = Database::new();
    let table = database.create(numbers("t"));
    fill(&database, &table, 0..500);
    let mut reader = database.begin();
    let seen = database.dictionary.table_for_read(&mut reader, table.id()).unwrap();
    ddl(&database, |ddl| ddl.drop_schema("s"));
    database.clean_up();
    let mut scan = seen.scan(&mut reader, ScanOptions::all()).unwrap();
    let mut rows = 0;
    while scan.fetch(&mut reader).unwrap() {
        rows += scan.rows().count();
    }
    assert_eq!(rows, 500);
    assert!(database.dictionary.table_named("s", "t").is_none());
    assert!(database.dictionary.tables_of("s").is_none());
    drop(reader);
    database.clean_up();
    assert!(is_absent(&database, table.space()));
    assert_clean(&database);
}

#[test]
fn a_truncated_table_is_empty_and_counts_from_the_start() {
    let database = Database::new();
    let table = database.create(numbers("t"));
    fill(&database, &table, 0..500);
    assert_eq!(table.sequences().auto_increment.take(3).unwrap(), 1);
    let mut reader = database.begin();
    reader.open_snapshot();
    ddl(&database, |ddl| ddl.truncate_table(table.id()));
    let now = database.dictionary.table(table.id()).unwrap();
    assert_eq!(count(&database, &now, ScanOptions::all()), 0);
    assert_eq!(now.sequences().auto_increment.take(1).unwrap(), 1);
    let too_old = database.dictionary.table_for_read(&mut reader, table.id()).unwrap_err();
    assert_eq!(too_old.mysql_code(), 1412);
    drop(reader);
    fill(&database, &now, 0..10);
    assert_clean(&database);
    assert!(is_absent(&database, table.space()));
}

#[test]
fn columns_come_and_go_without_a_rewrite() {
    let database = Database::new();
    let table = database.create(numbers("t"));
    fill(&database, &table, 0..10);
    let new = ColumnDefinition {
        instant_default: Value::Int(77),
        ..ColumnDefinition::new("c", ColumnType::Int(IntWidth::Four), false)
    };
    let ordinal = ddl(&database, |ddl| ddl.add_column(table.id(), new));
    ddl(&database, |ddl| ddl.drop_column(table.id(), 2));
    let mut refused = database.dictionary.ddl().unwrap();
    assert!(refused.drop_column(table.id(), 1).is_err());
    drop(refused);
    let now = database.dictionary.table(table.id()).unwrap();
    let (mut trx, mut buffers) = (database.begin(), WriteBuffers::default());
    let values = [ValueRef::Int(50), ValueRef::Int(1), ValueRef::Null, ValueRef::Int(5)];
    now.insert(&mut trx, &values, &mut buffers).unwrap();
    let mut scan = now.scan(&mut trx, ScanOptions::all()).unwrap();
    let mut found = Vec::new();
    while scan.fetch(&mut trx).unwrap() {
        found.extend(
            scan.rows()
                .map(|row| row.column(usize::from(ordinal)).unwrap().inline().unwrap().to_value()),
        );
    }
    let mut expected = vec![Value::Int(77); 10];
    expected.push(Value::Int(5));
    assert_eq!(found, expected);
    trx.commit().unwrap();
    let mut wider = database.dictionary.table(table.id()).unwrap().definition().clone();
    wider.columns[3].column_type = ColumnType::Int(IntWidth::Eight);
    assert!(database.dictionary.ddl().unwrap().alter_options(wider).is_err());
    let mut renamed = database.dictionary.table(table.id()).unwrap().definition().clone();
    renamed.columns[3].name = "d".to_owned();
    ddl(&database, |ddl| ddl.alter_options(renamed.clone()));
    let again = database.dictionary.ddl().unwrap().alter_options(renamed);
    assert!(matches!(again, Err(EngineError::TableChanged(_))), "made from an older version");
    assert_eq!(reopen(&database).table(table.id()).unwrap().definition().columns[3].name, "d");
    assert_clean(&database);
}

#[test]
fn sequences_never_repeat() {
    let database = Database::new();
    let table = database.create(numbers("t"));
    let sequence = &table.sequences().auto_increment;
    assert_eq!(sequence.peek().unwrap(), 1);
    let taken: Vec<u64> = (0..3000).map(|_| sequence.take(1).unwrap()).collect();
    assert!(taken.iter().copied().eq(1..=3000));
    sequence.pass(10_000).unwrap();
    sequence.pass(5).unwrap();
    assert_eq!(sequence.take(5000).unwrap(), 10_001);
    assert_eq!(sequence.peek().unwrap(), 15_001);
    // As after a crash: the reserved numbers are skipped.
    let again = reopen(&database);
    let after = again.table(table.id()).unwrap().sequences().auto_increment.take(1).unwrap();
    assert!(after >= 15_001, "{after}");
    again.close().unwrap();
    let orderly = reopen(&database);
    let next = orderly.table(table.id()).unwrap().sequences().auto_increment.take(1).unwrap();
    assert_eq!(next, after + 1);
    let last = &table.sequences().row_id;
    last.pass(u64::MAX - 1).unwrap();
    assert_eq!(last.take(1).unwrap_err().mysql_code(), 1467);
}

#[test]
fn threads_never_get_the_same_number() {
    let database = Database::new();
    let table = database.create(numbers("t"));
    let mut all = std::thread::scope(|scope| {
        let take = || {
            let take = |_| table.sequences().auto_increment.take(1).unwrap();
            (0..4000).map(take).collect::<Vec<u64>>()
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<u64>>()
    });
    all.sort_unstable();
    let count = all.len();
    all.dedup();
    assert_eq!(all.len(), count);
}

fn over_b(unique: bool) -> NewIndex {
    NewIndex {
        name: "b".to_owned(),
        unique,
        parts: vec![IndexPart::ascending(2), IndexPart::ascending(1)],
        options: Vec::new(),
    }
}

#[test]
fn an_index_is_added_and_dropped() {
    let database = Database::new();
    let table = database.create(numbers("t"));
    fill(&database, &table, 0..3000);
    let mut calls = Vec::new();
    let index = database.dictionary.add_index(table.id(), &over_b(false), |progress| {
        calls.push(progress.rows_done);
        true
    });
    assert!(calls.len() > 2 && calls.is_sorted() && calls.last() == Some(&3000), "{calls:?}");
    let now = database.dictionary.table(table.id()).unwrap();
    let added = *now.find_secondary(index.unwrap()).unwrap().0;
    let by_index = ScanOptions { index: Some(added), ..ScanOptions::all() };
    assert_eq!(count(&database, &now, by_index), 3000);
    let again = database.dictionary.add_index(table.id(), &over_b(false), |_| true);
    assert_eq!(again.unwrap_err().mysql_code(), 1061);
    assert_clean(&database);
    let mut reader = database.begin();
    reader.open_snapshot();
    ddl(&database, |ddl| ddl.drop_index(table.id(), "b"));
    let pages = || database.node.system.forest().spaces().usage(table.space()).unwrap().used;
    let before = pages();
    database.clean_up();
    assert_eq!(pages(), before, "a snapshot may still read the index");
    drop(reader);
    assert_clean(&database);
    assert!(pages() < before - 5);
    assert!(reopen(&database).pending_drops().is_empty());
}

#[test]
fn an_index_that_cannot_be_is_taken_back() {
    let database = Database::new();
    let table = database.create(numbers("t"));
    let (mut trx, mut buffers) = (database.begin(), WriteBuffers::default());
    for (id, b) in [(1, 5), (2, 6), (3, 5)] {
        let row = [ValueRef::Int(id), ValueRef::Int(0), ValueRef::Int(b)];
        table.insert(&mut trx, &row, &mut buffers).unwrap();
    }
    trx.commit().unwrap();
    let duplicate = database.dictionary.add_index(table.id(), &over_b(true), |_| true);
    assert_eq!(duplicate.unwrap_err().mysql_code(), 1062);
    let cancelled = database.dictionary.add_index(table.id(), &over_b(false), |_| false);
    assert!(matches!(cancelled, Err(EngineError::Lock(LockError::Cancelled))));
    let nonsense = NewIndex { parts: vec![IndexPart::ascending(9)], ..over_b(false) };
    assert!(database.dictionary.add_index(table.id(), &nonsense, |_| true).is_err());
    assert_eq!(database.dictionary.table(table.id()).unwrap().secondary().len(), 1);
    assert_eq!(database.dictionary.pending_drops().len(), 2);
    assert_clean(&database);
}

#[test]
fn a_build_that_a_crash_ended_is_taken_back() {
    let database = Database::new();
    let table = database.create(numbers("t"));
    fill(&database, &table, 0..2000);
    let interrupted = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        database.dictionary.add_index(table.id(), &over_b(false), |progress| {
            assert!(progress.rows_done < 1000, "a crash");
            true
        })
    }));
    assert!(interrupted.is_err());
    let again = reopen(&database);
    assert_eq!(again.table(table.id()).unwrap().secondary().len(), 1);
    let after = Database { node: database.node, dictionary: again };
    assert_clean(&after);
}

#[test]
fn an_index_is_built_while_the_table_is_written() {
    let database = Database::new();
    let table = database.create(numbers("t"));
    fill(&database, &table, 0..4000);
    let (stop, written) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let _stop = StopAtEnd(&stop);
        for thread in 0..3_u64 {
            let (database, stop, written, id) = (&database, &stop, &written, table.id());
            scope.spawn(move || {
                let mut random = thread * 7919 + 1;
                while !stop.load(Ordering::Acquire) {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    match write_some(database, id, (random >> 33) as i64) {
                        Ok(()) => written.fetch_add(1, Ordering::Release),
                        Err(error) if error.is_retryable() => 0,
                        Err(EngineError::DuplicateKey { .. }) => 0,
                        Err(error) => panic!("{error}"),
                    };
                }
            });
        }
        for round in 0..3 {
            let before = written.load(Ordering::Acquire);
            while written.load(Ordering::Acquire) < before + 50 {
                std::thread::yield_now();
            }
            let dictionary = &database.dictionary;
            let index = dictionary.add_index(table.id(), &over_b(false), |_| true).unwrap();
            let now = dictionary.table(table.id()).unwrap();
            let added = *now.find_secondary(index).unwrap().0;
            let mut trx = database.begin();
            let mut counts = [0; 2];
            for (count, index) in counts.iter_mut().zip([None, Some(added)]) {
                let options = ScanOptions { index, ..ScanOptions::all() };
                let mut scan = now.scan(&mut trx, options).unwrap();
                while scan.fetch(&mut trx).unwrap() {
                    *count += scan.rows().count();
                }
            }
            assert_eq!(counts[0], counts[1], "round {round}");
            drop(trx);
            if round < 2 {
                ddl(&database, |ddl| ddl.drop_index(table.id(), "b"));
                database.clean_up();
            }
        }
    });
    assert_clean(&database);
}

/// Inserts, changes or deletes a few rows in one transaction, which is sometimes rolled back.
fn write_some(database: &Database, id: TableId, random: i64) -> Result<(), EngineError> {
    let system = &database.node.system;
    let mut trx = Transaction::begin(system, IsolationLevel::ReadCommitted)?;
    let table = database.dictionary.table_for_write(&mut trx, id)?;
    let mut buffers = WriteBuffers::default();
    for step in 0..3 {
        let number = (random + step * 1009) % 5000;
        let mut key = Vec::new();
        table.primary_key(&[ValueRef::Int(number)], &mut key)?;
        match (random + step) % 4 {
            0 => {
                table.delete(&mut trx, &key, &mut buffers)?;
            }
            1 => match table.insert(&mut trx, &row(number, step), &mut buffers) {
                Err(EngineError::DuplicateKey { .. }) => {}
                other => other?,
            },
            _ => {
                let b = ValueRef::Int(random % 50);
                table.update(&mut trx, &key, &[(2, b)], &mut buffers)?;
            }
        }
    }
    if random % 7 == 0 { trx.rollback() } else { trx.commit() }
}

#[test]
fn concurrent_ddl_and_writers_leave_a_sound_table() {
    let database = Database::new();
    let table = database.create(numbers("t"));
    fill(&database, &table, 0..500);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop = StopAtEnd(&stop);
        for thread in 0..3_i64 {
            let (database, stop, id) = (&database, &stop, table.id());
            scope.spawn(move || {
                let mut random = thread * 104_729;
                while !stop.load(Ordering::Acquire) {
                    random = (random * 69_069 + 12_345) & 0x3fff_ffff;
                    match write_some_of_any_width(database, id, random) {
                        Ok(()) | Err(EngineError::DuplicateKey { .. }) => {}
                        Err(error) if error.is_retryable() => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
        for round in 0..8 {
            let new = ColumnDefinition {
                instant_default: Value::Int(round),
                ..ColumnDefinition::new("c", ColumnType::Int(IntWidth::Two), true)
            };
            let ordinal = ddl(&database, |ddl| ddl.add_column(table.id(), new));
            if round % 3 == 2 {
                ddl(&database, |ddl| ddl.truncate_table(table.id()));
            }
            ddl(&database, |ddl| ddl.drop_column(table.id(), ordinal));
            database.clean_up();
        }
    });
    assert_clean(&database);
}

fn write_some_of_any_width(
    database: &Database,
    id: TableId,
    random: i64,
) -> Result<(), EngineError> {
    let mut trx = database.begin();
    let table = database.dictionary.table_for_write(&mut trx, id)?;
    let mut buffers = WriteBuffers::default();
    let mut values = vec![ValueRef::Null; table.definition().columns.len()];
    (values[0], values[1]) = (ValueRef::Int(random % 2000), ValueRef::Int(random % 10));
    table.insert(&mut trx, &values, &mut buffers)?;
    trx.commit()
}

#[test]
fn the_dictionary_is_laid_out_as_drawn() {
    let database = Database::new();
    let table = database.create(numbers("t"));
    table.sequences().auto_increment.take(1).unwrap();
    ddl(&database, |ddl| ddl.drop_index(table.id(), "a"));
    let trees = *database.dictionary.trees();
    let mut lines = Vec::new();
    let names = ["tables", "names", "schemas", "counters", "drops"];
    let mut trx = database.begin();
    for (name, tree) in names.into_iter().zip(trees.all()) {
        lines.push(format!("{name}: root page {}", tree.root().page_no));
        stored::for_each(&mut trx, tree, KeyRange::all(), ReadMode::Consistent, |key, value| {
            let value = match value.len() {
                0..=8 => format!("{value:02x?}"),
                length => format!("{length} bytes"),
            };
            lines.push(format!("  {} = {value}", key.escape_ascii()));
        })
        .unwrap();
    }
    expect![[r#"
        tables: root page 2
          \x00\x00\x00\x00\x00\x00\x00\x01\x00\x00 = 143 bytes
        names: root page 3
          s\x00t = [01, 00, 00, 00, 00, 00, 00, 00]
        schemas: root page 4
          s = []
        counters: root page 5
          \x01\x00\x00\x00\x00\x00\x00\x00\x00 = [50, 00, 00, 00, 00, 00, 00, 00]
          \x02\x00\x00\x00\x00\x00\x00\x00\x00 = [41, 00, 00, 00, 00, 00, 00, 00]
          \x04\x00\x00\x00\x00\x00\x00\x00\x01 = [01, 04, 00, 00, 00, 00, 00, 00]
        drops: root page 6
          \x00\x00\x00\x10\x00\x00\x00\x03 = []"#]]
    .assert_eq(&lines.join("\n"));
}
