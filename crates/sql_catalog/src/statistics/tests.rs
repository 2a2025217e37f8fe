//! Histograms, stored statistics, and ANALYZE over a node.

use std::sync::Arc;
use std::time::Duration;

use firn_api::Incarnation;
use firn_api::rows::IsolationLevel;
use firn_base::TableId;
use firn_format::definition::{
    ColumnDefinition, IndexDefinition, IndexKind, IndexPart, TableDefinition,
};
use firn_format::value::{CollationId, ColumnType, IntWidth, ValueRef};
use firn_sql_types::{Datum, EvaluationContext, SqlType};
use proptest::prelude::*;

use crate::Catalog;
use crate::analyze::analyze_table;
use crate::test_support::TestNode;

use super::*;

fn histogram(values: impl IntoIterator<Item = i64>) -> Histogram {
    let values = values.into_iter().map(Datum::Int).collect();
    Histogram::of(&SqlType::bigint(), values).unwrap()
}

fn between(histogram: &Histogram, lower: i64, upper: i64) -> f64 {
    let (lower, upper) = (Datum::Int(lower), Datum::Int(upper));
    histogram.between(&SqlType::bigint(), Some((&lower, true)), Some((&upper, true)))
}

#[test]
fn a_histogram_tells_how_values_lie() {
    let even = histogram(0..10_000);
    assert!((between(&even, 1_000, 1_999) - 0.1).abs() < 0.01);
    assert!((even.equal(&SqlType::bigint(), &Datum::Int(77)) - 0.0001).abs() < 0.000_01);
    assert_eq!(even.equal(&SqlType::bigint(), &Datum::Int(20_000)), 0.0);
    assert_eq!(between(&even, -5, -1), 0.0);

    let skewed = histogram((0..1_000).map(|number| if number < 900 { 7 } else { number }));
    let share = skewed.equal(&SqlType::bigint(), &Datum::Int(7));
    assert!((share - 0.9).abs() < 0.01, "{share}");
    assert!(between(&skewed, 8, 10_000) < 0.11);
    assert!((between(&skewed, 7, 7) - 0.9).abs() < 0.01);
}

#[test]
fn a_wider_range_within_a_bucket_has_no_smaller_share() {
    let values = [vec![-12; 31], vec![-11], vec![0; 33]].concat();
    let histogram = histogram(values);
    assert!(between(&histogram, -50, -11) <= between(&histogram, -53, -8));
}

proptest! {
    #[test]
    fn shares_are_shares_and_grow_with_their_ranges(
        values in prop::collection::vec(-50_i64..50, 1..300),
        lower in -60_i64..60,
        length in 0_i64..60,
    ) {
        let histogram = histogram(values.clone());
        let narrow = between(&histogram, lower, lower + length);
        let wide = between(&histogram, lower - 3, lower + length + 3);
        prop_assert!((0.0..=1.0).contains(&narrow), "{}", narrow);
        prop_assert!(narrow <= wide + 1e-9, "{} {}", narrow, wide);
        prop_assert!((between(&histogram, -60, 60) - 1.0).abs() < 1e-9);
        let count = values.iter().filter(|value| **value == lower).count();
        let equal = histogram.equal(&SqlType::bigint(), &Datum::Int(lower));
        // With fewer values than buckets each has its own.
        if values.len() <= histogram::BUCKETS {
            prop_assert!((equal - count as f64 / values.len() as f64).abs() < 1e-9);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        bytes.insert(0, 1);
        let _ = stored::decode(&bytes);
    }
}

fn node_with_table() -> (TestNode, Arc<Catalog>) {
    let node = TestNode::new();
    let int = ColumnType::Int(IntWidth::Four);
    let word = ColumnType::Varchar { max_chars: 20, collation: CollationId(255) };
    let definition = TableDefinition {
        columns: vec![
            ColumnDefinition::new("id", int, false),
            ColumnDefinition::new("few", int, true),
            ColumnDefinition::new("many", int, false),
            ColumnDefinition::new("word", word, true),
        ],
        indexes: vec![
            IndexDefinition::new("PRIMARY", IndexKind::Clustered, &[0]),
            IndexDefinition::new("both", IndexKind::Secondary, &[1, 2]),
        ],
        ..TableDefinition::new("s", "t")
    };
    let mut definitions = node.node.change_definitions().unwrap();
    definitions.create_schema("s", &[]).unwrap();
    definitions.create_table(definition).unwrap();
    definitions.commit().unwrap();
    let catalog = Arc::new(Catalog::new(Arc::clone(&node.node), Incarnation::default()));
    (node, catalog)
}

/// Inserts this many rows, each made from its number.
fn fill(node: &TestNode, table: TableId, rows: i64, row: impl Fn(i64) -> [ValueRef<'static>; 4]) {
    let mut trx = node.node.begin(IsolationLevel::ReadCommitted).unwrap();
    let reference = trx.table_for_write(table).unwrap();
    for id in 0..rows {
        trx.insert(&reference, &row(id)).unwrap();
    }
    trx.commit().unwrap();
}

/// Three and seven distinct values, and no word.
fn numbers(id: i64) -> [ValueRef<'static>; 4] {
    [ValueRef::Int(id), ValueRef::Int(id % 3), ValueRef::Int(id % 7), ValueRef::Null]
}

#[test]
fn analyze_counts_and_others_read_what_it_has_counted() {
    let (node, catalog) = node_with_table();
    let table = catalog.table("s", "t").unwrap();
    let few = |id| if id % 4 == 0 { ValueRef::Null } else { ValueRef::Int(id % 4) };
    let word = |id| match id % 5 {
        0 => ValueRef::Null,
        number => ValueRef::Bytes([b"firn", b"Firn", b"snow", b"rime"][number as usize - 1]),
    };
    fill(&node, table.id, 2_000, |id| {
        [ValueRef::Int(id), few(id), ValueRef::Int(id / 2), word(id)]
    });

    let both = table.index("both").unwrap().number;
    let guessed = table.statistics.distinct(both, 1);
    let evaluation = EvaluationContext::default();
    analyze_table(&catalog, &table, &evaluation, &|| true).unwrap();
    let gathered = table.statistics.gathered().unwrap();
    assert_eq!(gathered.rows, 2_000.0);
    assert_eq!(gathered.indexes["both"], [4.0, 2_000.0]);
    let word = &gathered.columns["word"];
    assert_eq!((word.distinct, word.null_fraction), (3.0, 0.2));
    assert_ne!(table.statistics.distinct(both, 1), guessed);
    assert_eq!(stored::decode(&stored::encode(&gathered)).unwrap(), *gathered);

    // Another server over the same node reads the stored statistics.
    let other = Catalog::new(Arc::clone(&node.node), Incarnation::default());
    let table = other.table("s", "t").unwrap();
    let statistics = &table.statistics;
    assert_eq!(statistics.null_fraction(1), Some(0.25));
    let share = statistics.selectivity(1, ValueRange::Equal(&Datum::Int(3))).unwrap();
    assert!((share - 0.25).abs() < 0.01, "{share}");
    let bound = Datum::Int(250);
    let below = ValueRange::Between { lower: None, upper: Some((&bound, false)) };
    let share = statistics.selectivity(2, below).unwrap();
    assert!((share - 0.25).abs() < 0.01, "{share}");
    assert!(statistics.histogram_json(table.column("many").unwrap().ordinal).is_some());

    let stopped = analyze_table(&other, &table, &evaluation, &|| false).unwrap_err();
    assert_eq!(stopped.code, 1317);
}

#[test]
fn whoever_begins_later_and_ends_earlier_knows_more() {
    let changes = Changes::default();
    changes.add(500);
    let (early, late) = (changes.begin_look(), changes.begin_look());
    assert!(changes.end_look(late, 1_000.0));
    assert!(!changes.end_look(early, 1_000.0));
    assert!(!changes.is_stale(), "what was written before is not taken off twice");
}

#[test]
fn an_index_that_comes_while_a_table_is_read_is_counted_too() {
    let (node, catalog) = node_with_table();
    let table = catalog.table("s", "t").unwrap();
    fill(&node, table.id, 300, numbers);

    let new = firn_api::rows::NewIndex {
        name: "later".to_owned(),
        unique: false,
        parts: vec![IndexPart::ascending(2)],
        options: Vec::new(),
    };
    let is_added = std::cell::Cell::new(false);
    let go_on = || {
        if !is_added.replace(true) {
            let mut build =
                node.node.begin_index(table.id, &new, Duration::from_secs(1), None).unwrap();
            while !build.is_filled() {
                build.step().unwrap();
            }
            build.finish().unwrap();
            let current = catalog.table("s", "t").unwrap();
            analyze_table(&catalog, &current, &EvaluationContext::default(), &|| true).unwrap();
        }
        true
    };
    analyze_table(&catalog, &table, &EvaluationContext::default(), &go_on).unwrap();
    let stored = stored::read(&node.node, table.id).unwrap();
    assert_eq!(stored.indexes["later"], [7.0]);
    let current = catalog.table("s", "t").unwrap();
    assert_eq!(*current.statistics.gathered().unwrap(), stored);
}

/// However slowly a table is read, old versions of concurrently written rows can be purged.
#[test]
fn a_table_is_read_without_a_snapshot_that_lasts() {
    let (node, catalog) = node_with_table();
    let table = catalog.table("s", "t").unwrap();
    fill(&node, table.id, 3_500, numbers);
    let slices = std::cell::Cell::new(0);
    let go_on = || {
        slices.set(slices.get() + 1);
        assert_eq!(node.open_snapshots(), 0, "after slice {}", slices.get());
        true
    };
    analyze_table(&catalog, &table, &EvaluationContext::default(), &go_on).unwrap();
    assert!(slices.get() > 2);
    assert_eq!(table.statistics.gathered().unwrap().rows, 3_500.0);
}

#[test]
fn statistics_of_dropped_tables_go() {
    let (node, catalog) = node_with_table();
    let table = catalog.table("s", "t").unwrap();
    analyze_table(&catalog, &table, &EvaluationContext::default(), &|| true).unwrap();
    assert_eq!(remove_gone(&node.node).unwrap(), 0);
    assert!(stored::read(&node.node, table.id).is_some());

    let mut definitions = node.node.change_definitions().unwrap();
    definitions.drop_table(table.id).unwrap();
    definitions.commit().unwrap();
    assert_eq!(remove_gone(&node.node).unwrap(), 1);
    assert!(stored::read(&node.node, table.id).is_none());
}

#[test]
fn statistics_become_stale_with_a_tenth_of_the_rows_and_not_with_a_few() {
    let changes = Changes::default();
    changes.add(199);
    assert!(!changes.is_stale());
    changes.add(1);
    assert!(changes.is_stale());

    // Five were written while the table was read.
    let look = changes.begin_look();
    changes.add(5);
    assert!(changes.end_look(look, 10_000.0));
    assert!(!changes.is_stale());
    changes.add(994);
    assert!(!changes.is_stale());
    changes.add(1);
    assert!(changes.is_stale());
}
