//! Access paths: points, ranges, orders, and values that go to the client without being decoded.

use firn_api::rows::Direction;
use firn_format::definition::IndexKind;
use firn_format::value::{ColumnType, IntWidth};

use crate::expression::Expression;
use crate::plan::{Access, InsertPlan, NodeKind, RangePlan, ScanPlan, StatementPlan};
use crate::types::{Datum, Decimal, SqlType};

use super::fixture::*;
use super::writes::insert_plan;

/// `t (id INT PRIMARY KEY, tiny TINYINT NULL, name VARCHAR, KEY (tiny, name))` with five rows.
fn database() -> (Database, std::sync::Arc<crate::catalog::model::TableModel>) {
    let mut database = Database::new();
    let table = database.create(
        NewTable::new("t")
            .column("id", int(), false)
            .column("tiny", ColumnType::Int(IntWidth::One), true)
            .column("name", varchar(), false)
            .index("PRIMARY", IndexKind::Clustered, &[0])
            .index("tiny", IndexKind::Secondary, &[1, 2]),
    );
    let rows = [
        (1, Some(7), "a"),
        (2, None, "b"),
        (3, Some(9), "c"),
        (4, Some(7), "B"),
        (5, Some(-3), "e"),
    ];
    let rows = rows.map(|(id, tiny, name)| {
        vec![literal(id), tiny.map_or_else(null, |tiny: i32| literal(tiny)), text(name)]
    });
    let plan: InsertPlan = insert_plan(&table, vec![0, 1, 2], rows.into());
    database.run(&prepared(StatementPlan::Insert(plan))).unwrap();
    (database, table)
}

fn ids(database: &mut Database, plan: ScanPlan) -> Vec<i64> {
    let rows = database.rows(query(scan(plan), vec![int_slot(0)])).unwrap();
    rows.iter()
        .map(|row| if let Datum::Int(id) = row[0] { id } else { panic!("{row:?}") })
        .collect()
}

fn bound(value: Expression, inclusive: bool) -> Option<(Expression, bool)> {
    Some((value, inclusive))
}

fn double(value: f64) -> Expression {
    Expression {
        kind: crate::expression::ExpressionKind::Literal(Datum::Double(value)),
        ty: SqlType::double(),
    }
}

#[test]
fn a_point_read_hands_stored_values_to_the_sink() {
    let (mut database, table) = database();
    let parameter =
        Expression { kind: crate::expression::ExpressionKind::Parameter(0), ty: SqlType::bigint() };
    let access = Access::Point { index: None, key: vec![parameter] };
    let plan = ScanPlan { access, ..scan_plan(&table, 0) };
    let plan = prepared(StatementPlan::Query(query(scan(plan), columns_of(&table, 0))));
    let mut transaction = database.begin();
    for (id, expected) in [(3, Some("3 9 c")), (6, None), (1 << 40, None), (2, Some("2 NULL b"))] {
        let mut sink = Rows::default();
        let parameters = [Datum::Int(id)];
        database.run_in(&mut *transaction, &plan, &parameters, &mut sink).unwrap();
        let rows: Vec<String> = sink.rows.iter().map(|row| shown(row)).collect();
        assert_eq!(rows, expected.into_iter().collect::<Vec<_>>());
        assert_eq!(sink.stored, sink.rows.len() * 3, "no datum on the way");
    }
}

#[test]
fn bounds_that_a_column_cannot_hold_move() {
    let (mut database, table) = database();
    let mut range = |lower: Option<(Expression, bool)>, upper: Option<(Expression, bool)>| {
        let range = RangePlan { equal: vec![], null_safe: vec![], lower, upper };
        let access = Access::Ranges { index: Some(1), ranges: vec![range] };
        ids(&mut database, ScanPlan { access, ..scan_plan(&table, 0) })
    };
    assert_eq!(range(bound(double(6.5), true), None), [1, 4, 3], "tiny >= 6.5");
    assert_eq!(range(bound(literal(7), false), None), [3], "tiny > 7");
    assert_eq!(range(bound(double(7.0), true), bound(double(8.9), true)), [1, 4]);
    assert_eq!(range(None, bound(literal(300), false)), [5, 1, 4, 3], "NULL is not less");
    assert_eq!(range(bound(literal(300), false), None), [0i64; 0]);
    assert_eq!(range(bound(literal(-300), false), None), [5, 1, 4, 3]);
    assert_eq!(range(bound(null(), false), None), [5, 1, 4, 3], "IS NOT NULL");
}

#[test]
fn equal_parts_match_null_only_when_asked() {
    let (mut database, table) = database();
    let mut equal = |value: Expression, null_safe: bool| {
        let range =
            RangePlan { equal: vec![value], null_safe: vec![null_safe], lower: None, upper: None };
        let access = Access::Ranges { index: Some(1), ranges: vec![range] };
        ids(&mut database, ScanPlan { access, ..scan_plan(&table, 0) })
    };
    assert_eq!(equal(null(), true), [2]);
    assert_eq!(equal(null(), false), [0i64; 0]);
    assert_eq!(equal(double(7.5), false), [0i64; 0], "no TINYINT is 7.5");
    assert_eq!(equal(literal(7), false), [1, 4], "names are ordered without regard to case");
}

#[test]
fn ranges_come_sorted_and_each_row_once() {
    let (mut database, table) = database();
    let range = |from: i64, to: i64| RangePlan {
        equal: vec![],
        null_safe: vec![],
        lower: bound(literal(from), true),
        upper: bound(literal(to), true),
    };
    let point = |id: i64| RangePlan {
        equal: vec![literal(id)],
        null_safe: vec![false],
        lower: None,
        upper: None,
    };
    let ranges = vec![point(5), range(2, 4), point(1), range(3, 5), point(1)];
    let access = Access::Ranges { index: None, ranges };
    let plan = ScanPlan { access, ..scan_plan(&table, 0) };
    assert_eq!(ids(&mut database, plan), [1, 2, 3, 4, 5]);
    let access = Access::Ranges { index: None, ranges: vec![point(5), point(1), range(2, 3)] };
    let plan = ScanPlan { access, direction: Direction::Backward, ..scan_plan(&table, 0) };
    assert_eq!(ids(&mut database, plan), [5, 3, 2, 1]);
    let ways = vec![
        Access::Ranges { index: None, ranges: vec![range(1, 3)] },
        Access::Ranges {
            index: Some(1),
            ranges: vec![RangePlan {
                equal: vec![literal(7)],
                null_safe: vec![false],
                lower: None,
                upper: None,
            }],
        },
    ];
    let plan = ScanPlan { access: Access::Union(ways), ..scan_plan(&table, 0) };
    let mut found = ids(&mut database, plan);
    found.sort_unstable();
    assert_eq!(found, [1, 2, 3, 4]);
}

#[test]
fn an_index_that_has_all_columns_answers_alone() {
    let (mut database, table) = database();
    let plan = ScanPlan {
        access: Access::Full { index: Some(1) },
        slots: slots_of(&table, 0).into_iter().take(2).collect(),
        covered: true,
        ..scan_plan(&table, 0)
    };
    assert_eq!(ids(&mut database, plan), [2, 5, 1, 4, 3]);
}

#[test]
fn limits_count_on_for_found_rows() {
    let (mut database, table) = database();
    for (count_all, expected) in
        [(false, vec!["2 NULL b", "3 9 c"]), (true, vec!["2 NULL b", "3 9 c"])]
    {
        let limit = node(NodeKind::Limit {
            input: Box::new(scan(scan_plan(&table, 0))),
            offset: Some(literal(1)),
            count: Some(literal(2)),
            count_all,
        });
        let rows = database.rows(query(limit, columns_of(&table, 0))).unwrap();
        assert_eq!(rows.iter().map(|row| shown(row)).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn decimals_find_their_neighbours() {
    let mut database = Database::new();
    let decimal = firn_format::value::DecimalType::new(4, 1).unwrap();
    let table =
        database.create(NewTable::new("d").column("n", ColumnType::Decimal(decimal), false).index(
            "PRIMARY",
            IndexKind::Clustered,
            &[0],
        ));
    let rows = [15, 25, 26].map(|tenths| {
        let kind = crate::expression::ExpressionKind::Literal(Datum::Decimal(
            Decimal::from_unscaled(tenths, 1),
        ));
        vec![Expression { kind, ty: SqlType::decimal(4, 1) }]
    });
    let plan = insert_plan(&table, vec![0], rows.into());
    database.run(&prepared(StatementPlan::Insert(plan))).unwrap();
    let value = |unscaled: i128| Expression {
        kind: crate::expression::ExpressionKind::Literal(Datum::Decimal(Decimal::from_unscaled(
            unscaled, 2,
        ))),
        ty: SqlType::decimal(10, 2),
    };
    let mut count = |lower, upper| {
        let range = RangePlan { equal: vec![], null_safe: vec![], lower, upper };
        let access = Access::Ranges { index: None, ranges: vec![range] };
        let plan = ScanPlan { access, ..scan_plan(&table, 0) };
        database.rows(query(scan(plan), columns_of(&table, 0))).unwrap().len()
    };
    assert_eq!(count(bound(value(250), true), None), 2);
    assert_eq!(count(bound(value(251), true), None), 1);
    assert_eq!(count(None, bound(value(251), false)), 2);
    assert_eq!(count(None, bound(value(99_999_999), false)), 3);
    assert_eq!(count(bound(value(-99_999_999), false), bound(value(149), true)), 0);
}
