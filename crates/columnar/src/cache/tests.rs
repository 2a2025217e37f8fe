use firn_base::{LogStreamId, Lsn, PageNo, SpaceId, TableId};
use firn_format::row::RowVersion;
use firn_sql::types::{Datum, IntWidth, SqlType, TypeKind};

use super::*;
use crate::value::Physical;

fn form(ordinal: u16) -> ColumnForm {
    ColumnForm {
        table: TableId(1),
        index: None,
        ordinal,
        ty: SqlType::new(TypeKind::Integer { width: IntWidth::Eight, unsigned: false }),
        row_version: RowVersion(0),
        time_zone: None,
    }
}

fn leaf(page: u32, lsn: u64) -> LeafVersion {
    let page = PageId::new(SpaceId(1), PageNo(page));
    LeafVersion { stream: LogStreamId(0), page, lsn: Lsn(lsn) }
}

/// As many one-row columns for each leaf as given, each with these numbers.
fn columns(numbers: &[&[i64]]) -> Vec<Packed> {
    let column = |numbers: &&[i64]| {
        let mut builder = Physical::Int.builder(numbers.len());
        numbers.iter().for_each(|number| builder.append(&Datum::Int(*number)).unwrap());
        Packed::pack(&builder.finish())
    };
    numbers.iter().map(column).collect()
}

/// Puts leaves of one row each.
fn put(scan: &CacheUse, leaves: &[LeafVersion], snapshot: u64, numbers: &[&[i64]]) -> bool {
    let rows: Vec<_> = leaves.iter().map(|leaf| (*leaf, 1)).collect();
    let known = match scan.get(leaves[0], Cts(snapshot)) {
        Kept::Others(place) => Some(place),
        _ => None,
    };
    scan.put(&rows, Cts(snapshot), &columns(numbers), known.as_ref())
}

/// The numbers of each column from a leaf on, to the end of its run.
fn held(scan: &CacheUse, leaf: LeafVersion, snapshot: u64) -> Option<Vec<Vec<i64>>> {
    let Kept::All(part) = scan.get(leaf, Cts(snapshot)) else { return None };
    let leaves = part.leaves().len();
    assert_eq!(part.leaves()[0], leaf);
    let rows = part.rows_of(leaves).unwrap();
    let of_column = |packed: &Packed| {
        let mut builder = Physical::Int.builder(0);
        let chosen = packed::Chosen { rows: rows.rows.clone(), bits: None };
        packed.unpack(rows.total, &chosen, &mut builder);
        let column = builder.finish();
        let number = |row| match Physical::Int.datum(&*column, row) {
            Datum::Int(number) => number,
            other => panic!("{other:?}"),
        };
        (0..column.len()).map(number).collect()
    };
    Some(rows.columns.iter().map(of_column).collect())
}

#[test]
fn a_leaf_is_held_as_long_as_it_has_not_changed_and_for_snapshots_that_are_not_older() {
    let cache = Arc::new(ColumnCache::new(1 << 20));
    let scan = cache.open(vec![form(0)]);
    assert!(put(&scan, &[leaf(7, 300), leaf(8, 310), leaf(9, 290)], 81, &[&[5, 6, 7]]));
    assert_eq!(held(&scan, leaf(7, 300), 81), Some(vec![vec![5, 6, 7]]));
    assert_eq!(held(&scan, leaf(8, 310), 90), Some(vec![vec![6, 7]]));
    assert_eq!(held(&scan, leaf(7, 300), 80), None);
    assert_eq!(held(&scan, leaf(7, 301), 90), None);
    assert_eq!(held(&scan, leaf(6, 300), 90), None);
    // One has changed: it is in a separate run, and the others stay where they were.
    assert!(put(&scan, &[leaf(8, 400)], 95, &[&[60]]));
    assert_eq!(held(&scan, leaf(8, 310), 99), None);
    assert_eq!(held(&scan, leaf(8, 400), 95), Some(vec![vec![60]]));
    assert_eq!(held(&scan, leaf(9, 290), 95), Some(vec![vec![7]]));
    // Most have: the run is no longer used, and gone with its last leaf.
    assert!(put(&scan, &[leaf(9, 500)], 96, &[&[70]]));
    assert_eq!(held(&scan, leaf(7, 300), 96), None);
    assert!(put(&scan, &[leaf(7, 300)], 96, &[&[5]]));
    assert_eq!(counted(&cache), cache.used_bytes());
}

#[test]
fn columns_of_a_run_come_one_by_one_and_in_the_order_of_the_scan() {
    let cache = Arc::new(ColumnCache::new(1 << 20));
    let leaves = [leaf(1, 1), leaf(2, 1)];
    assert!(put(&cache.open(vec![form(3)]), &leaves, 1, &[&[30, 31]]));
    let both = cache.open(vec![form(4), form(3)]);
    assert_eq!(held(&both, leaf(1, 1), 1), None);
    assert!(put(&both, &leaves, 2, &[&[40, 41], &[30, 31]]));
    assert_eq!(held(&both, leaf(1, 1), 1), Some(vec![vec![40, 41], vec![30, 31]]));
    let turned = cache.open(vec![form(3), form(4)]);
    assert_eq!(held(&turned, leaf(1, 1), 1), Some(vec![vec![30, 31], vec![40, 41]]));
    let other_version = ColumnForm { row_version: RowVersion(1), ..form(3) };
    assert_eq!(held(&cache.open(vec![other_version]), leaf(1, 1), 1), None);
    assert_eq!(counted(&cache), cache.used_bytes());
}

/// Bytes of all runs, recounted.
fn counted(cache: &ColumnCache) -> u64 {
    let mut runs = FxHashMap::default();
    for shard in &cache.shards {
        let shard = shard.lock();
        runs.extend(shard.values().map(|place| (Arc::as_ptr(&place.run), place.run.size_bytes())));
    }
    runs.values().sum()
}

#[test]
fn room_is_made_by_the_column_that_is_used_least_and_only_for_one_that_is_used_far_more() {
    let one = Run::new(&[(leaf(1, 1), 1)], Cts(1), [].into_iter()).size_bytes() + 100;
    let cache = Arc::new(ColumnCache::new(10 * one));
    let fill = |ordinal, pages: std::ops::Range<u32>| {
        let scan = cache.open(vec![form(ordinal)]);
        pages.filter(|page| put(&scan, &[leaf(*page, 1)], 1, &[&[1]])).count()
    };
    let holds = |ordinal, page| held(&cache.open(vec![form(ordinal)]), leaf(page, 1), 1).is_some();
    let fits = fill(0, 0..20);
    assert!((5..20).contains(&fits));
    assert_eq!(counted(&cache), cache.used_bytes());
    // As new as the other: the existing one stays.
    assert_eq!(fill(1, 100..120), 0);
    assert!(holds(0, 3));
    (0..9).for_each(|_| assert!(!holds(1, 100)));
    assert_eq!(fill(1, 100..120), fits);
    assert!(!holds(0, 3) && holds(1, 100));
    assert_eq!(counted(&cache), cache.used_bytes());
    assert!(cache.used_bytes() <= 10 * one);
}
