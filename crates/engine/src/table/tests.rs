use std::sync::Arc;

use firn_format::definition::{ColumnDefinition, IndexDefinition, IndexKind};
use firn_format::key::KeyRange;
use firn_format::row::ColumnValue;
use firn_format::value::{CollationId, ColumnType, IntWidth, Value, ValueRef};

use super::*;
use crate::test_support::{Database, table_definition};
use crate::transaction::{Direction, ReadMode, Transaction};

mod model;
mod pages_elsewhere;

const ID: usize = 0;
const EMAIL: usize = 1;
const AGE: usize = 2;
const BODY: usize = 3;

fn int(number: i64) -> ValueRef<'static> {
    ValueRef::Int(number)
}

fn text(text: &str) -> ValueRef<'_> {
    ValueRef::Bytes(text.as_bytes())
}

/// `t (id INT PRIMARY KEY, email VARCHAR(100) NULL UNIQUE, age INT NULL KEY, body LONGBLOB NULL)`
fn people(database: &Database) -> Arc<Table> {
    let columns = vec![
        ColumnDefinition::new("id", ColumnType::Int(IntWidth::Four), false),
        ColumnDefinition::new(
            "email",
            ColumnType::Varchar { max_chars: 100, collation: CollationId::BINARY },
            true,
        ),
        ColumnDefinition::new("age", ColumnType::Int(IntWidth::Four), true),
        ColumnDefinition::new("body", ColumnType::Blob { max_bytes: u32::MAX }, true),
    ];
    let indexes = vec![
        IndexDefinition::new("PRIMARY", IndexKind::Clustered, &[ID as u16]),
        IndexDefinition::new("email", IndexKind::Unique, &[EMAIL as u16]),
        IndexDefinition::new("age", IndexKind::Secondary, &[AGE as u16]),
    ];
    database.create(table_definition("t", columns, indexes))
}

fn key_of(table: &Table, id: i64) -> Vec<u8> {
    let mut key = Vec::new();
    table.primary_key(&[int(id)], &mut key).unwrap();
    key
}

fn insert(table: &Table, trx: &mut Transaction, row: &[ValueRef<'_>]) -> Result<(), EngineError> {
    table.insert(trx, row, &mut WriteBuffers::default())
}

fn get(table: &Table, trx: &mut Transaction, id: i64) -> Option<Vec<Value>> {
    let mut payload = Vec::new();
    let found = table.get(trx, &key_of(table, id), ReadMode::Consistent, &mut payload).unwrap();
    found.then(|| values(table, trx, &payload))
}

fn values(table: &Table, trx: &Transaction, payload: &[u8]) -> Vec<Value> {
    let mut buffer = Vec::new();
    let cells = table.view(payload).unwrap().columns();
    cells.map(|cell| table.value(trx, cell.unwrap(), &mut buffer).unwrap().to_value()).collect()
}

fn scan(table: &Arc<Table>, trx: &mut Transaction, options: ScanOptions) -> Vec<i64> {
    let mut scan = table.scan(trx, options).unwrap();
    let mut ids = Vec::new();
    while scan.fetch(trx).unwrap() {
        ids.extend(scan.rows().map(|row| match row.column(ID).unwrap() {
            ColumnValue::Inline(ValueRef::Int(id)) => id,
            other => panic!("an id is {other:?}"),
        }));
    }
    ids
}

#[test]
fn a_row_is_found_by_every_index() {
    let database = Database::new();
    let table = people(&database);
    let mut trx = database.begin();
    for id in 0..100 {
        let email = format!("{id}@firn");
        insert(&table, &mut trx, &[int(id), text(&email), int(id % 7), text("b")]).unwrap();
    }
    trx.commit().unwrap();
    let mut trx = database.begin();
    assert_eq!(get(&table, &mut trx, 41).unwrap()[AGE], Value::Int(41 % 7));
    assert_eq!(get(&table, &mut trx, 100), None);
    let (email, age) = (table.secondary()[0], table.secondary()[1]);
    let mut row = RowBuffer::default();
    let found =
        table.get_by_unique(&mut trx, &email, &[text("7@firn")], ReadMode::Consistent, &mut row);
    assert!(found.unwrap());
    assert_eq!(row.key, key_of(&table, 7));
    let of_age = |age_wanted| {
        let range = table.key_layout(Some(&age)).unwrap().range(
            &[int(age_wanted)],
            std::ops::Bound::Unbounded,
            std::ops::Bound::Unbounded,
            table.collations(),
        );
        ScanOptions { index: Some(age), range: range.unwrap(), ..ScanOptions::all() }
    };
    let expected: Vec<i64> = (0..100).filter(|id| id % 7 == 3).collect();
    assert_eq!(scan(&table, &mut trx, of_age(3)), expected);
    let backward = ScanOptions { direction: Direction::Backward, ..of_age(3) };
    assert!(scan(&table, &mut trx, backward).iter().eq(expected.iter().rev()));
    let covered = ScanOptions { columns: Some([ID as u16, AGE as u16].into()), ..of_age(3) };
    assert!(table.scan(&mut trx, covered.clone()).unwrap().is_covered());
    assert_eq!(scan(&table, &mut trx, covered), expected);
    let locked = ScanOptions { mode: ReadMode::Update(Default::default()), ..of_age(3) };
    assert_eq!(scan(&table, &mut trx, locked), expected);
    let range = KeyRange { start: key_of(&table, 20), end: Some(key_of(&table, 23)) };
    let some = ScanOptions { range, ..ScanOptions::all() };
    assert_eq!(scan(&table, &mut trx, some), [20, 21, 22]);
}

#[test]
fn a_duplicate_leaves_nothing_behind() {
    let database = Database::new();
    let table = people(&database);
    let mut trx = database.begin();
    insert(&table, &mut trx, &[int(1), text("a"), int(1), ValueRef::Null]).unwrap();
    let long = vec![7; 50_000];
    let row = [int(2), text("a"), int(1), ValueRef::Bytes(&long)];
    let duplicate = insert(&table, &mut trx, &row).unwrap_err();
    let EngineError::DuplicateKey { index, key } = duplicate else { panic!("{duplicate}") };
    assert_eq!(index, table.secondary()[0].id);
    let mut found = RowBuffer::default();
    let mode = ReadMode::Update(Default::default());
    let email = table.secondary()[0];
    assert!(table.get_by_entry(&mut trx, &email, &key, mode, &mut found).unwrap());
    assert_eq!(found.key, key_of(&table, 1));
    assert_eq!(get(&table, &mut trx, 2), None);
    assert_eq!(scan(&table, &mut trx, ScanOptions::all()), [1]);
    trx.commit().unwrap();
    database.clean_up();
    assert_eq!(used_pages(&database, &table), 2 + 3);
}

fn used_pages(database: &Database, table: &Table) -> u64 {
    database.node.system.forest().spaces().usage(table.space()).unwrap().used
}

#[test]
fn rows_without_a_unique_value_do_not_collide() {
    let database = Database::new();
    let table = people(&database);
    let mut trx = database.begin();
    for id in 0..3 {
        insert(&table, &mut trx, &[int(id), ValueRef::Null, ValueRef::Null, ValueRef::Null])
            .unwrap();
    }
    let mut buffers = WriteBuffers::default();
    let key = key_of(&table, 1);
    assert!(table.update(&mut trx, &key, &[(EMAIL, text("x"))], &mut buffers).unwrap());
    assert!(table.delete(&mut trx, &key_of(&table, 0), &mut buffers).unwrap());
    assert!(!table.delete(&mut trx, &key_of(&table, 0), &mut buffers).unwrap());
    let by_email = ScanOptions { index: Some(table.secondary()[0]), ..ScanOptions::all() };
    assert_eq!(scan(&table, &mut trx, by_email), [2, 1]);
}

#[test]
fn long_values_come_back_as_they_were() {
    let database = Database::new();
    let table = people(&database);
    let lengths = [0, 1, 4000, 16 * 1024, 1 << 20, 20 << 20];
    let value = |length: usize, salt: u8| -> Vec<u8> {
        (0..length).map(|at| (at * 31 / 7) as u8 ^ salt).collect()
    };
    let before = used_pages(&database, &table);
    let mut buffers = WriteBuffers::default();
    for (id, length) in lengths.into_iter().enumerate() {
        let mut trx = database.begin();
        let body = value(length, 1);
        let row = [int(id as i64), text("long"), int(5), ValueRef::Bytes(&body)];
        insert(&table, &mut trx, &row).unwrap();
        assert!(get(&table, &mut trx, id as i64).unwrap()[BODY].as_ref() == row[BODY]);
        trx.commit().unwrap();
        let mut reader = database.begin();
        reader.open_snapshot();
        let mut trx = database.begin();
        let (key, changed) = (key_of(&table, id as i64), value(length, 2));
        let change = [(BODY, ValueRef::Bytes(&changed))];
        let savepoint = trx.savepoint();
        assert!(table.update(&mut trx, &key, &change, &mut buffers).unwrap());
        trx.rollback_to(savepoint).unwrap();
        assert!(get(&table, &mut trx, id as i64).unwrap()[BODY].as_ref() == row[BODY]);
        assert!(table.update(&mut trx, &key, &change, &mut buffers).unwrap());
        trx.commit().unwrap();
        database.clean_up();
        assert!(get(&table, &mut reader, id as i64).unwrap()[BODY].as_ref() == row[BODY]);
        drop(reader);
        let mut trx = database.begin();
        assert!(table.update(&mut trx, &key, &[(AGE, int(6))], &mut buffers).unwrap());
        assert!(get(&table, &mut trx, id as i64).unwrap()[BODY].as_ref() == change[0].1);
        assert!(table.delete(&mut trx, &key, &mut buffers).unwrap());
        trx.commit().unwrap();
        database.clean_up();
        assert_eq!(used_pages(&database, &table), before, "after a value of {length} bytes");
    }
}

#[test]
fn parts_of_a_long_value_are_read() {
    let database = Database::new();
    let table = people(&database);
    let body: Vec<u8> = (0..100_000_u32).map(|at| (at / 3) as u8).collect();
    let mut trx = database.begin();
    insert(&table, &mut trx, &[int(1), text("x"), int(5), ValueRef::Bytes(&body)]).unwrap();
    let mut payload = Vec::new();
    assert!(table.get(&mut trx, &key_of(&table, 1), ReadMode::Consistent, &mut payload).unwrap());
    let cell = table.view(&payload).unwrap().column(BODY).unwrap();
    let ColumnValue::Overflow(reference) = cell else { panic!("{cell:?}") };
    for range in [0..10, 16_330..16_340, 50_000..99_999, 99_990..200_000, 100_000..100_001] {
        let mut part = Vec::new();
        table.read_part(&trx, reference, range.clone(), &mut part).unwrap();
        let end = (range.end as usize).min(body.len());
        assert_eq!(part, body[(range.start as usize).min(end)..end], "{range:?}");
    }
}

#[test]
fn a_table_without_a_primary_key_counts_its_rows() {
    let database = Database::new();
    let columns = vec![ColumnDefinition::new("a", ColumnType::Int(IntWidth::Four), false)];
    let table = database.create(table_definition("h", columns, Vec::new()));
    let mut trx = database.begin();
    for number in [5, 3, 4] {
        insert(&table, &mut trx, &[int(number), ValueRef::Null]).unwrap();
    }
    assert_eq!(scan(&table, &mut trx, ScanOptions::all()), [5, 3, 4]);
}
