//! Sorting and summing the rows' bytes gives the same results as operators on their values.

use std::sync::Arc;

use firn_format::definition::{ColumnDefinition, IndexKind};

use crate::catalog::model::TableModel;
use crate::expression::{AggregateCall, SortKey};
use crate::functions::AggregateFunction;
use crate::plan::{NodeKind, PlanNode, QueryPlan, StatementPlan};
use crate::types::{Datum, SqlType};

use super::fixture::*;
use super::writes::insert_plan;

/// `t (id INT PRIMARY KEY, k INT NULL, name VARCHAR NULL)`: numbers and names come several times,
/// names in both cases and with long beginnings in common.
fn database() -> (Database, Arc<TableModel>) {
    let mut database = Database::new();
    let table = database.create(
        NewTable::new("t")
            .column("id", int(), false)
            .column("k", int(), true)
            .column("name", varchar(), true)
            .index("PRIMARY", IndexKind::Clustered, &[0]),
    );
    let names =
        ["a long beginning A", "A LONG BEGINNING a", "a long beginning", "", "b", "é", "Z-1"];
    let row = |id: i64| {
        let k = if id % 5 == 0 { null() } else { literal((id * 7919) % 23 - 11) };
        let name = match id * 31 % 11 {
            9.. => null(),
            number => text(names[number as usize % names.len()]),
        };
        vec![literal(id), k, name]
    };
    let plan = insert_plan(&table, vec![0, 1, 2], (1..300).map(row).collect());
    database.run(&prepared(StatementPlan::Insert(plan))).unwrap();
    (database, table)
}

/// The same rows, through values: an operator that does nothing is in between.
fn through_values(node: PlanNode) -> PlanNode {
    self::node(NodeKind::Filter { input: Box::new(node), conditions: Vec::new() })
}

fn sort_keys(table: &TableModel, keys: &[(u16, bool)]) -> Vec<SortKey> {
    let key = |(ordinal, descending): &(u16, bool)| {
        let expression = slot(u32::from(*ordinal), &column_type(table, *ordinal));
        SortKey { expression, descending: *descending }
    };
    keys.iter().map(key).collect()
}

fn sorted(
    table: &Arc<TableModel>,
    keys: &[(u16, bool)],
    distinct: bool,
    limit: Option<(i64, i64)>,
    between: fn(PlanNode) -> PlanNode,
) -> QueryPlan {
    let mut root = between(scan(scan_plan(table, 0)));
    let columns: Vec<_> = match distinct {
        true => keys.iter().map(|(ordinal, _)| *ordinal).collect(),
        false => (0..table.columns.len() as u16).collect(),
    };
    let slots = slots_of(table, 0);
    if distinct {
        let slots = columns.iter().map(|at| (slots[usize::from(*at)].1, column_type(table, *at)));
        root = node(NodeKind::Distinct {
            input: Box::new(root),
            slots: slots.collect(),
            keep: Vec::new(),
        });
    }
    root = node(NodeKind::Sort {
        input: Box::new(root),
        keys: sort_keys(table, keys),
        keep: slots.iter().map(|(_, slot)| *slot).collect(),
        limit: None,
    });
    if let Some((offset, count)) = limit {
        root = node(NodeKind::Limit {
            input: Box::new(root),
            offset: Some(literal(offset)),
            count: Some(literal(count)),
            count_all: false,
        });
    }
    let columns = columns.iter().map(|at| slot(u32::from(*at), &column_type(table, *at)));
    query(root, columns.collect())
}

/// Runs a query on bytes and on values.
fn compare(database: &mut Database, direct: QueryPlan, general: QueryPlan, what: &str) {
    let plan = prepared(StatementPlan::Query(direct));
    let mut transaction = database.begin();
    let mut sink = Rows::default();
    database.run_in(&mut *transaction, &plan, &[], &mut sink).unwrap();
    assert_eq!(sink.stored, sink.rows.iter().map(Vec::len).sum::<usize>(), "{what}: as bytes");
    assert_eq!(sink.rows, database.rows(general).unwrap(), "{what}");
}

/// Every way to sort the table.
fn compare_sorts(database: &mut Database, table: &Arc<TableModel>) {
    let keys: [&[(u16, bool)]; 7] = [
        &[(2, false)],
        &[(2, true)],
        &[(1, false)],
        &[(1, true), (2, false)],
        &[(2, false), (1, false)],
        &[(2, true), (1, true)],
        &[(0, true)],
    ];
    for keys in keys {
        for distinct in [false, true] {
            for limit in [None, Some((0, 7)), Some((5, 1)), Some((298, 9)), Some((0, 0))] {
                let direct = sorted(table, keys, distinct, limit, |node| node);
                let general = sorted(table, keys, distinct, limit, through_values);
                let what = format!("{keys:?} distinct {distinct} limit {limit:?}");
                compare(database, direct, general, &what);
            }
        }
    }
}

#[test]
fn rows_sorted_as_bytes_come_as_rows_sorted_as_values() {
    let (mut database, table) = database();
    compare_sorts(&mut database, &table);
}

#[test]
fn rows_that_are_more_than_fits_are_sorted_all_the_same() {
    let (mut database, table) = database();
    database.memory_bytes = 12 << 10;
    let direct = sorted(&table, &[(2, false), (0, true)], false, None, |node| node);
    let general = sorted(&table, &[(2, false), (0, true)], false, None, through_values);
    assert_eq!(database.rows(direct).unwrap(), database.rows(general).unwrap());
}

#[test]
fn aggregates_over_bytes_are_those_over_values() {
    use AggregateFunction as F;
    let (mut database, table) = database();
    let of = |database: &mut Database, table: &Arc<TableModel>| {
        let functions = [(F::CountRows, None), (F::Count, Some(1)), (F::Sum, Some(1))];
        let more = [(F::Average, Some(0)), (F::Min, Some(1)), (F::Max, Some(0))];
        let aggregate = |between: fn(PlanNode) -> PlanNode| {
            let call = |(number, (function, column)): (usize, &(F, Option<u16>))| AggregateCall {
                function: *function,
                arguments: column
                    .iter()
                    .map(|at| slot(u32::from(*at), &column_type(table, *at)))
                    .collect(),
                distinct: false,
                order: Vec::new(),
                separator: Arc::from(&b","[..]),
                output: crate::expression::Slot(50 + number as u32),
                ty: match function {
                    F::Sum => SqlType::decimal(40, 0),
                    F::Average => SqlType::decimal(40, 4),
                    _ => SqlType::bigint(),
                },
            };
            let calls: Vec<_> = functions.iter().chain(&more).enumerate().map(call).collect();
            let columns = calls.iter().map(|call| slot(call.output.0, &call.ty)).collect();
            let root = NodeKind::Aggregate {
                input: Box::new(between(scan(scan_plan(table, 0)))),
                groups: Vec::new(),
                aggregates: calls,
                sorted: false,
                rollup: None,
            };
            query(node(root), columns)
        };
        let general = database.rows(aggregate(through_values)).unwrap();
        assert_eq!(database.rows(aggregate(|node| node)).unwrap(), general);
        general
    };
    let found = of(&mut database, &table);
    assert_eq!(found[0][0], Datum::Int(299));
    // Without rows there is still one result row.
    let empty = database.create(
        NewTable::new("e").column("id", int(), false).column("k", int(), true).index(
            "PRIMARY",
            IndexKind::Clustered,
            &[0],
        ),
    );
    assert_eq!(of(&mut database, &empty)[0][2], Datum::Null);
}

#[test]
fn rows_that_are_older_than_a_column_are_read_as_they_are() {
    let (mut database, table) = database();
    let mut change = database.node.change_definitions().unwrap();
    change.add_column(table.id, ColumnDefinition::new("late", int(), true)).unwrap();
    change.commit().unwrap();
    let table = database.catalog.table("test", "t").unwrap();
    let rows = (300..310).map(|id| vec![literal(id), literal(id), text("new"), literal(id)]);
    let plan = insert_plan(&table, vec![0, 1, 2, 3], rows.collect());
    database.run(&prepared(StatementPlan::Insert(plan))).unwrap();
    for keys in [&[(2, false)][..], &[(3, true), (0, false)]] {
        let direct = sorted(&table, keys, false, None, |node| node);
        let general = sorted(&table, keys, false, None, through_values);
        assert_eq!(database.rows(direct).unwrap(), database.rows(general).unwrap());
    }
    let plain = database.rows(select_all(&table)).unwrap();
    assert_eq!(plain[0][3], Datum::Null);
    assert_eq!(plain[300][3], Datum::Int(301));
}
