//! A split that the writer has left half done. The replica finds every key by the link, and leaves
//! the split as it is: it has no log to complete it with.

use firn_format::tree::TreePage;

use super::*;
use crate::tree::Target;

const ROWS: i64 = 4_000;

fn key_of(table: &Table, id: i64) -> Vec<u8> {
    let mut key = Vec::new();
    table.primary_key(&[ValueRef::Int(id)], &mut key).unwrap();
    key
}

#[test]
fn a_replica_reads_past_a_half_done_split_and_leaves_it() {
    let writer = Writer::open();
    let table = writer.create("t");
    writer.insert(&table, 0..ROWS, 1);
    let replica = writer.replica();
    let tree = writer.engine.forest().tree(table.clustered());
    let new = tree.split_leaf_only(&key_of(&table, ROWS / 2)).expect("a leaf besides the root");
    let separator = tree.read_page_low(new);
    assert!(!tree.parent_has(&separator));
    // The split lies before this commit.
    writer.insert(&writer.create("u"), 0..1, 1);
    writer.wait_for(&replica);

    let mut trx =
        ReadTransaction::begin(replica.versions(), IsolationLevel::RepeatableRead).unwrap();
    let here = replica.dictionary().table_for_read(&mut trx, table.id()).unwrap();
    let by_key = (0..ROWS).filter(|id| {
        let key = key_of(&here, *id);
        here.get(&mut trx, &key, ReadMode::Consistent, &mut Vec::new()).unwrap()
    });
    assert_eq!(by_key.count() as i64, ROWS);
    for entries in contents(&here, &mut trx).unwrap() {
        assert_eq!(entries.len() as i64, ROWS);
    }

    let copy = replica.versions().forest().tree(here.clustered());
    let met = (0..ROWS).filter(|id| {
        let key = key_of(&here, *id);
        let page = |leaf: &TreePage<'_>| Ok(leaf.page_id());
        let (page, half_done) = copy.read(Target::At(&key), page).unwrap();
        assert_eq!(half_done.is_some(), page == new, "row {id} is met by the link, or it is not");
        half_done.is_some()
    });
    assert!(met.count() > 0, "the split is half done on the replica");
    assert!(!copy.parent_has(&separator));
    assert!(!tree.parent_has(&separator), "the replica has written nothing");
    drop(trx);
    replica.close();

    // The writer completes it.
    let mut trx = writer.begin();
    for id in 0..ROWS {
        let key = key_of(&table, id);
        table.get(&mut trx, &key, ReadMode::Consistent, &mut Vec::new()).unwrap();
    }
    drop(trx);
    assert!(tree.parent_has(&separator));
    writer.close();
}
