//! A transaction that begins at a replica, and goes on at the writer.

use firn_api::rows::Awaited;
use firn_format::key::KeyRange;

use super::*;

fn reader(replica: &Replica) -> ReadTransaction {
    let mut trx =
        ReadTransaction::begin(replica.versions(), IsolationLevel::RepeatableRead).unwrap();
    trx.keep_reads();
    trx
}

fn key(table: &Table, id: i64) -> Vec<u8> {
    let mut key = Vec::new();
    table.primary_key(&[ValueRef::Int(id)], &mut key).unwrap();
    key
}

/// The rows with `a` from `low` on and below `high`, by the index.
fn rows_by_a(table: &Arc<Table>, trx: &mut impl RecordReader, low: i64, high: i64) -> usize {
    let index = table.secondary()[0];
    let (_, layout) = table.secondary_with_layout().next().unwrap();
    let bound = |a| {
        let mut key = Vec::new();
        layout.key().encode_parts(&[ValueRef::Int(a)], table.collations(), &mut key).unwrap();
        key
    };
    let range = KeyRange { start: bound(low), end: Some(bound(high)) };
    let options = ScanOptions { index: Some(index), range, ..ScanOptions::all() };
    rows(table, trx, options).unwrap().len()
}

/// Reads rows by an index at a replica, and one row by its key. Then the writer changes `changed`
/// and the row `hot`, and the transaction goes on there and writes `hot`. Returns whether its
/// snapshot could be renewed.
fn renewed_after(changed: i64, to: i64) -> bool {
    const HOT: i64 = 90;
    let writer = Writer::open();
    let table = writer.create("t");
    for id in 0..100 {
        writer.insert(&table, id..id + 1, id);
    }
    let replica = writer.replica();
    writer.wait_for(&replica);
    let mut there = reader(&replica);
    let copy = replica.dictionary().table_for_read(&mut there, table.id()).unwrap();
    assert_eq!(rows_by_a(&copy, &mut there, 10, 20), 10);
    let mut payload = Vec::new();
    assert!(!copy.get(&mut there, &key(&copy, 500), ReadMode::Consistent, &mut payload).unwrap());

    let set_a = |trx: &mut Transaction, id: i64, a: i64| -> Result<(), EngineError> {
        let (key, mode) = (key(&table, id), ReadMode::Update(WaitPolicy::Wait));
        let mut payload = Vec::new();
        if !table.get(trx, &key, mode, &mut payload)? {
            return insert(&table, trx, id, a, b"");
        }
        let changes = [(1, ValueRef::Int(a))];
        table.update_columns(trx, &key, &payload, &changes, &mut WriteBuffers::default())
    };
    let mut others = writer.begin();
    set_a(&mut others, changed, to).unwrap();
    set_a(&mut others, HOT, 1000).unwrap();
    others.commit().unwrap();

    let described = there.describe().unwrap();
    let mut here = Transaction::take_up(writer.engine.system(), &described).unwrap();
    drop(there);
    let own = writer.dictionary.table_for_read(&mut here, table.id()).unwrap();
    assert_eq!(rows_by_a(&own, &mut here, 10, 20), 10, "as of its snapshot");
    let before = here.read_mark();
    let refused = set_a(&mut here, HOT, 7).unwrap_err();
    assert!(matches!(refused, EngineError::WriteConflict), "{refused}");
    let is_renewed = here.renew_snapshot(before).unwrap();
    if is_renewed {
        set_a(&mut here, HOT, 7).unwrap();
        here.commit().unwrap();
    } else {
        drop(here);
    }
    replica.close();
    drop((copy, own));
    writer.close();
    is_renewed
}

#[test]
fn what_was_read_at_the_replica_is_looked_at_by_the_writer() {
    assert!(renewed_after(50, 51), "another row");
    assert!(!renewed_after(15, 51), "a row of the range that was read");
    assert!(!renewed_after(50, 15), "a row that comes into the range");
    assert!(!renewed_after(500, 51), "a row that was looked for in vain");
    assert!(renewed_after(501, 51), "the one beside it");
}

#[test]
fn a_read_that_need_not_wait_is_described_as_one_of_the_newer_snapshot() {
    let writer = Writer::open();
    let (table, other) = (writer.create("t"), writer.create("u"));
    writer.insert(&table, 0..10, 1);
    let replica = writer.replica();
    writer.wait_for(&replica);
    let newest = writer.as_seen().newest().unwrap();
    // More than the replica has, which does not know so.
    let awaited =
        Awaited { commits: Cts(newest.visible.0 + 1), position: Lsn(u64::MAX), patience: TIMEOUT };
    let mut there = reader(&replica);
    there.must_see(Some(replica.by_page().unwrap().behind(awaited)));
    let copy = replica.dictionary().table_for_read(&mut there, table.id()).unwrap();
    let mode = ReadMode::Consistent;
    assert!(copy.get(&mut there, &key(&copy, 3), mode, &mut Vec::new()).unwrap());
    assert!(there.is_behind());
    writer.insert(&other, 0..1, 1);
    let described = there.describe().unwrap().snapshot.unwrap();
    assert!(described.at == awaited.commits, "{described:?}");
    assert!(matches!(
        described.reads.as_deref(),
        Some([firn_api::rows::ReadSpan::Record(index, _)]) if *index == copy.clustered()
    ));
    drop((there, copy));
    replica.close();
    writer.close();
}
