//! Statements that write: their effects and results; a failed one leaves nothing behind.

use std::sync::Arc;

use firn_format::definition::IndexKind;
use firn_format::value::{ColumnType, IntWidth};
use proptest::prelude::*;

use crate::catalog::model::{ForeignKeyModel, ReferentialAction, TableModel};
use crate::catalog::options::ColumnOptions;
use crate::expression::{CompareOperator, Expression, Slot};
use crate::logical::{Assignment, CheckedBy, DuplicatePolicy, RowCheck, WriteTarget};
use crate::plan::{DeletePlan, InsertPlan, StatementPlan, UpdatePlan};

use super::fixture::*;

/// An insert of literal rows: values in slots from 60 on, the new row from 40 on, the existing row
/// from 20 on.
pub(super) fn insert_plan(
    table: &Arc<TableModel>,
    columns: Vec<u16>,
    rows: Vec<Vec<Expression>>,
) -> InsertPlan {
    let types: Vec<_> = rows[0].iter().map(|value| value.ty.clone()).collect();
    let outputs = types.iter().zip(60..).map(|(ty, number)| slot(number, ty)).collect();
    InsertPlan {
        table: Arc::clone(table),
        columns,
        source: query(values(rows, 60), outputs),
        duplicates: DuplicatePolicy::Refuse,
        ignore: false,
        new_row: slots_of(table, 40),
        old_row: slots_of(table, 20),
        generated: Vec::new(),
        checks: Vec::new(),
        defaults: Vec::new(),
    }
}

fn check(condition: Expression) -> RowCheck {
    RowCheck { of: CheckedBy::Constraint("big".into()), condition }
}

fn update_plan(
    table: &Arc<TableModel>,
    conditions: Vec<Expression>,
    assignments: Vec<(u16, Expression)>,
) -> UpdatePlan {
    UpdatePlan {
        source: write_scan(table, conditions),
        targets: vec![target(table, assignments)],
        ignore: false,
        gather_first: false,
    }
}

fn target(table: &Arc<TableModel>, assignments: Vec<(u16, Expression)>) -> WriteTarget {
    let assignment = |(ordinal, value)| Assignment { ordinal, value: Some(value) };
    WriteTarget {
        table: Arc::clone(table),
        row_key: Slot(90),
        row_payload: Slot(91),
        assignments: assignments.into_iter().map(assignment).collect(),
        in_turn: true,
        may_be_absent: false,
        row: slots_of(table, 0),
        generated: Vec::new(),
        checks: Vec::new(),
    }
}

fn delete_plan(table: &Arc<TableModel>, conditions: Vec<Expression>) -> DeletePlan {
    DeletePlan {
        source: write_scan(table, conditions),
        targets: vec![target(table, Vec::new())],
        ignore: false,
        gather_first: false,
    }
}

fn insert(plan: InsertPlan) -> crate::plan::PreparedPlan {
    prepared(StatementPlan::Insert(plan))
}

fn update(plan: UpdatePlan) -> crate::plan::PreparedPlan {
    prepared(StatementPlan::Update(plan))
}

fn delete(plan: DeletePlan) -> crate::plan::PreparedPlan {
    prepared(StatementPlan::Delete(plan))
}

fn equals(left: Expression, right: Expression) -> Expression {
    compare(left, CompareOperator::Equal, right)
}

/// `t (id INT PRIMARY KEY, a INT NULL, b VARCHAR NOT NULL, UNIQUE (a))`
fn plain(database: &Database) -> Arc<TableModel> {
    database.create(
        NewTable::new("t")
            .column("id", int(), false)
            .column("a", int(), true)
            .column("b", varchar(), false)
            .index("PRIMARY", IndexKind::Clustered, &[0])
            .index("a", IndexKind::Unique, &[1]),
    )
}

fn row(id: i64, a: i64, b: &str) -> Vec<Expression> {
    vec![literal(id), literal(a), text(b)]
}

#[test]
fn a_failed_insert_leaves_nothing_and_names_the_key() {
    let mut database = Database::new();
    let table = plain(&database);
    let rows = vec![row(1, 10, "x"), row(2, 20, "y")];
    let outcome = database.run(&insert(insert_plan(&table, vec![0, 1, 2], rows))).unwrap();
    assert_eq!((outcome.affected, &*outcome.info), (2, "Records: 2  Duplicates: 0  Warnings: 0"));

    let rows = vec![row(3, 30, "z"), row(4, 20, "w")];
    let error = database.run(&insert(insert_plan(&table, vec![0, 1, 2], rows))).unwrap_err();
    assert_eq!((error.code, &*error.message), (1062, "Duplicate entry '20' for key 't.a'"));
    let rows = vec![row(3, 30, "z"), row(1, 40, "w")];
    let error = database.run(&insert(insert_plan(&table, vec![0, 1, 2], rows))).unwrap_err();
    assert_eq!(&*error.message, "Duplicate entry '1' for key 't.PRIMARY'");
    assert_eq!(database.dump(&table), ["1 10 x", "2 20 y"]);

    let mut plan = insert_plan(&table, vec![0, 1, 2], vec![row(3, 30, "z"), row(4, 20, "w")]);
    plan.ignore = true;
    let outcome = database.run(&insert(plan)).unwrap();
    assert_eq!((outcome.affected, &*outcome.info), (1, "Records: 2  Duplicates: 1  Warnings: 1"));
    assert_eq!(database.warnings(), [(1062, "Duplicate entry '20' for key 't.a'".to_owned())]);
}

#[test]
fn columns_refuse_null_and_want_values() {
    let mut database = Database::new();
    let table = plain(&database);
    let rows = vec![vec![literal(1), literal(1), null()]];
    let error = database.run(&insert(insert_plan(&table, vec![0, 1, 2], rows))).unwrap_err();
    assert_eq!((error.code, &*error.message), (1048, "Column 'b' cannot be null"));
    let error =
        database.run(&insert(insert_plan(&table, vec![0], vec![vec![literal(1)]]))).unwrap_err();
    assert_eq!((error.code, &*error.message), (1364, "Field 'b' doesn't have a default value"));
    let rows = vec![row(1, 1, "a"), row(1 << 40, 2, "b")];
    let error = database.run(&insert(insert_plan(&table, vec![0, 1, 2], rows))).unwrap_err();
    let message = "Out of range value for column 'id' at row 2";
    assert_eq!((error.code, &*error.message), (1264, message));
    assert!(database.dump(&table).is_empty());
}

#[test]
fn replace_counts_what_it_deletes() {
    let mut database = Database::new();
    let table = plain(&database);
    let rows = vec![row(1, 10, "x"), row(2, 20, "y"), row(3, 30, "z")];
    database.run(&insert(insert_plan(&table, vec![0, 1, 2], rows))).unwrap();
    let mut plan = insert_plan(&table, vec![0, 1, 2], vec![row(1, 20, "new")]);
    plan.duplicates = DuplicatePolicy::Replace;
    assert_eq!(database.run(&insert(plan)).unwrap().affected, 3, "two rows were in the way");
    assert_eq!(database.dump(&table), ["1 20 new", "3 30 z"]);
}

#[test]
fn on_duplicate_key_update_counts_two_one_and_none() {
    let mut database = Database::new();
    let table = plain(&database);
    let run = |database: &mut Database, rows| {
        let mut plan = insert_plan(&table, vec![0, 1, 2], rows);
        let sum = call("+", vec![slot(21, &column_type(&table, 1)), literal(1)]);
        let b = slot(42, &column_type(&table, 2)); // VALUES(b)
        let assignments =
            [(1, sum), (2, b)].map(|(ordinal, value)| Assignment { ordinal, value: Some(value) });
        plan.duplicates = DuplicatePolicy::Update(assignments.into());
        database.run(&insert(plan)).unwrap()
    };
    assert_eq!(run(&mut database, vec![row(1, 10, "x")]).affected, 1);
    let outcome = run(&mut database, vec![row(1, 99, "y"), row(2, 50, "q")]);
    assert_eq!((outcome.affected, outcome.found), (3, 3));
    assert_eq!(outcome.info, "Records: 2  Duplicates: 1  Warnings: 0");
    assert_eq!(database.dump(&table), ["1 11 y", "2 50 q"]);

    let mut plan = insert_plan(&table, vec![0, 1, 2], vec![row(1, 99, "z")]);
    let value = Some(slot(21, &column_type(&table, 1)));
    plan.duplicates = DuplicatePolicy::Update(vec![Assignment { ordinal: 1, value }]);
    let outcome = database.run(&insert(plan)).unwrap();
    assert_eq!((outcome.affected, outcome.found), (0, 1), "the row is so already");
}

#[test]
fn numbers_are_generated_and_told() {
    let mut database = Database::new();
    let options = ColumnOptions { auto_increment: true, ..ColumnOptions::default() };
    let table = database.create(
        NewTable::new("n")
            .column_with("id", ColumnType::UInt(IntWidth::Eight), false, &options)
            .column("b", varchar(), false)
            .index("PRIMARY", IndexKind::Clustered, &[0]),
    );
    let rows = vec![vec![text("a")], vec![text("b")]];
    let outcome = database.run(&insert(insert_plan(&table, vec![1], rows))).unwrap();
    assert_eq!((outcome.last_insert_id, outcome.session_last_insert_id), (1, Some(1)));
    let rows = vec![vec![literal(10), text("c")]];
    let outcome = database.run(&insert(insert_plan(&table, vec![0, 1], rows))).unwrap();
    assert_eq!((outcome.last_insert_id, outcome.session_last_insert_id), (10, None));
    let rows =
        vec![vec![null(), text("d")], vec![literal(0), text("e")], vec![default(), text("f")]];
    let outcome = database.run(&insert(insert_plan(&table, vec![0, 1], rows))).unwrap();
    assert_eq!(outcome.session_last_insert_id, Some(11), "behind what was given");
    assert_eq!(database.dump(&table), ["1 a", "2 b", "10 c", "11 d", "12 e", "13 f"]);

    database.limits.auto_increment_increment = 10;
    database.limits.auto_increment_offset = 3;
    let rows = vec![vec![text("g")], vec![text("h")]];
    database.run(&insert(insert_plan(&table, vec![1], rows))).unwrap();
    let last: Vec<String> = database.dump(&table).split_off(6);
    assert_eq!(last, ["23 g", "33 h"]);
}

#[test]
fn generated_columns_and_checks_see_the_row() {
    let mut database = Database::new();
    let table = plain(&database);
    let a = || slot(21, &column_type(&table, 1));
    let mut plan = insert_plan(&table, vec![0, 2], vec![vec![literal(4), text("x")]]);
    let id = slot(20, &column_type(&table, 0));
    plan.generated = vec![(1, call("+", vec![id, literal(100)]))];
    plan.checks = vec![check(compare(a(), CompareOperator::Greater, literal(103)))];
    database.run(&insert(plan)).unwrap();
    assert_eq!(database.dump(&table), ["4 104 x"]);
    let mut plan = insert_plan(&table, vec![0, 1, 2], vec![row(1, 5, "x")]);
    plan.checks = vec![check(compare(a(), CompareOperator::Greater, literal(103)))];
    let error = database.run(&insert(plan)).unwrap_err();
    assert_eq!((error.code, &*error.message), (3819, "Check constraint 'big' is violated."));
}

#[test]
fn update_tells_rows_found_from_rows_changed() {
    let mut database = Database::new();
    let table = plain(&database);
    let rows = vec![row(1, 10, "x"), row(2, 20, "y"), row(3, 30, "x")];
    database.run(&insert(insert_plan(&table, vec![0, 1, 2], rows))).unwrap();
    let plan = update_plan(&table, vec![], vec![(2, text("x"))]);
    let outcome = database.run(&update(plan)).unwrap();
    assert_eq!((outcome.found, outcome.affected), (3, 1));
    assert_eq!(outcome.info, "Rows matched: 3  Changed: 1  Warnings: 0");

    // a = a + 1, b = text of the new a; the key moves, so rows are collected first.
    let a = || slot(1, &column_type(&table, 1));
    let sum = call("+", vec![a(), literal(1)]);
    let mut plan = update_plan(&table, vec![], vec![(1, sum), (2, call("CONCAT", vec![a()]))]);
    plan.gather_first = true;
    database.run(&update(plan)).unwrap();
    assert_eq!(database.dump(&table), ["1 11 11", "2 21 21", "3 31 31"]);

    let mut plan = update_plan(&table, vec![], vec![(1, literal(11))]);
    plan.gather_first = true;
    let error = database.run(&update(plan)).unwrap_err();
    assert_eq!(&*error.message, "Duplicate entry '11' for key 't.a'");
    let mut plan = update_plan(&table, vec![], vec![(1, literal(11))]);
    plan.ignore = true;
    let outcome = database.run(&update(plan)).unwrap();
    assert_eq!((outcome.found, outcome.affected, outcome.warnings), (3, 0, 2));
    assert_eq!(database.dump(&table), ["1 11 11", "2 21 21", "3 31 31"]);
}

#[test]
fn primary_keys_change() {
    let mut database = Database::new();
    let table = plain(&database);
    let rows = vec![row(1, 10, "x"), row(2, 20, "y")];
    database.run(&insert(insert_plan(&table, vec![0, 1, 2], rows))).unwrap();
    let id = slot(0, &column_type(&table, 0));
    let mut plan = update_plan(&table, vec![], vec![(0, call("+", vec![id, literal(5)]))]);
    plan.gather_first = true;
    assert_eq!(database.run(&update(plan)).unwrap().affected, 2);
    assert_eq!(database.dump(&table), ["6 10 x", "7 20 y"]);
}

/// `child (id, parent_id → parent.id)` with these referential actions.
fn family(
    database: &Database,
    on_delete: ReferentialAction,
    on_update: ReferentialAction,
) -> [Arc<TableModel>; 2] {
    let parent = database.create(NewTable::new("parent").column("id", int(), false).index(
        "PRIMARY",
        IndexKind::Clustered,
        &[0],
    ));
    let mut new = NewTable::new("child")
        .column("id", int(), false)
        .column("parent_id", int(), true)
        .index("PRIMARY", IndexKind::Clustered, &[0])
        .index("parent_id", IndexKind::Secondary, &[1]);
    new.options.foreign_keys = vec![ForeignKeyModel {
        name: "fk".into(),
        columns: vec![1],
        parent_schema: "test".into(),
        parent_table: "parent".into(),
        parent_columns: vec!["id".into()],
        on_delete,
        on_update,
    }];
    [parent, database.create(new)]
}

fn fill_family(database: &mut Database, [parent, child]: &[Arc<TableModel>; 2]) {
    let rows = [1, 2, 3].map(|id| vec![literal(id)]).into();
    database.run(&insert(insert_plan(parent, vec![0], rows))).unwrap();
    let rows =
        [(1, 1), (2, 1), (3, 2)].map(|(id, parent)| vec![literal(id), literal(parent)]).into();
    database.run(&insert(insert_plan(child, vec![0, 1], rows))).unwrap();
}

#[test]
fn children_need_parents_and_keep_them() {
    let mut database = Database::new();
    let family = family(&database, ReferentialAction::Restrict, ReferentialAction::NoAction);
    fill_family(&mut database, &family);
    let [parent, child] = &family;
    let rows = vec![vec![literal(4), literal(9)]];
    let error = database.run(&insert(insert_plan(child, vec![0, 1], rows))).unwrap_err();
    assert_eq!(
        (error.code, &*error.message),
        (
            1452,
            "Cannot add or update a child row: a foreign key constraint fails (`test`.`child`, CONSTRAINT \
             `fk` FOREIGN KEY (`parent_id`) REFERENCES `parent` (`id`) ON DELETE RESTRICT)"
        )
    );
    let rows = vec![vec![literal(4), null()]];
    database.run(&insert(insert_plan(child, vec![0, 1], rows))).unwrap();
    let is_one = equals(slot(0, &column_type(parent, 0)), literal(1));
    let error = database.run(&delete(delete_plan(parent, vec![is_one.clone()]))).unwrap_err();
    assert_eq!(error.code, 1451, "{error}");
    let plan = update_plan(parent, vec![is_one.clone()], vec![(0, literal(8))]);
    assert_eq!(database.run(&update(plan)).unwrap_err().code, 1451);
    let plan = update_plan(child, vec![], vec![(1, literal(7))]);
    assert_eq!(database.run(&update(plan)).unwrap_err().code, 1452);
    assert_eq!(
        database.dump(child),
        ["1 1", "2 1", "3 2", "4 NULL"],
        "nothing is left of failures"
    );

    database.limits.foreign_key_checks = false;
    database.run(&delete(delete_plan(parent, vec![is_one]))).unwrap();
    assert_eq!(database.dump(parent), ["2", "3"]);
}

#[test]
fn children_follow_their_parents() {
    let mut database = Database::new();
    let family = family(&database, ReferentialAction::Cascade, ReferentialAction::Cascade);
    fill_family(&mut database, &family);
    let [parent, child] = &family;
    let is = |id: i64| vec![equals(slot(0, &column_type(parent, 0)), literal(id))];
    database.run(&update(update_plan(parent, is(1), vec![(0, literal(8))]))).unwrap();
    assert_eq!(database.dump(child), ["1 8", "2 8", "3 2"]);
    assert_eq!(database.run(&delete(delete_plan(parent, is(8)))).unwrap().affected, 1);
    assert_eq!(database.dump(child), ["3 2"]);
}

#[test]
fn children_lose_their_parents() {
    let mut database = Database::new();
    let family = family(&database, ReferentialAction::SetNull, ReferentialAction::SetNull);
    fill_family(&mut database, &family);
    let [parent, child] = &family;
    let mut plan = delete_plan(parent, vec![]);
    plan.gather_first = true;
    assert_eq!(database.run(&delete(plan)).unwrap().affected, 3);
    assert_eq!(database.dump(child), ["1 NULL", "2 NULL", "3 NULL"]);
}

/// A statement over `t (id, a UNIQUE, b)` and the same on a map.
#[derive(Debug, Clone)]
enum Change {
    Insert(Vec<(i64, Option<i64>)>),
    Replace(i64, Option<i64>),
    SetA(i64, Option<i64>),
    Delete(i64),
}

fn change() -> impl Strategy<Value = Change> {
    let a = || prop::option::of(0..6_i64);
    prop_oneof![
        prop::collection::vec((0..6_i64, a()), 1..3).prop_map(Change::Insert),
        (0..6_i64, a()).prop_map(|(id, a)| Change::Replace(id, a)),
        (0..6_i64, a()).prop_map(|(id, a)| Change::SetA(id, a)),
        (0..6_i64).prop_map(Change::Delete),
    ]
}

type Model = std::collections::BTreeMap<i64, Option<i64>>;

/// Applies the change to the model; false, and nothing done, if it is refused.
fn on_model(change: &Change, model: &mut Model) -> bool {
    let mut after = model.clone();
    let is_free = |after: &Model, id: i64, a: Option<i64>| {
        a.is_none() || after.iter().all(|(other, present)| *other == id || *present != a)
    };
    match change {
        Change::Insert(rows) => {
            for (id, a) in rows {
                if after.contains_key(id) || !is_free(&after, *id, *a) {
                    return false;
                }
                after.insert(*id, *a);
            }
        }
        Change::Replace(id, a) => {
            after.retain(|other, present| other != id && (a.is_none() || *present != *a));
            after.insert(*id, *a);
        }
        Change::SetA(id, a) => {
            if after.contains_key(id) {
                if !is_free(&after, *id, *a) {
                    return false;
                }
                after.insert(*id, *a);
            }
        }
        Change::Delete(id) => {
            after.remove(id);
        }
    }
    *model = after;
    true
}

fn on_table(change: &Change, table: &Arc<TableModel>) -> crate::plan::PreparedPlan {
    let number = |a: &Option<i64>| a.map_or_else(null, literal);
    let row = |id: &i64, a: &Option<i64>| vec![literal(*id), number(a), text("b")];
    let is = |id: &i64| vec![equals(slot(0, &column_type(table, 0)), literal(*id))];
    match change {
        Change::Insert(rows) => {
            let rows = rows.iter().map(|(id, a)| row(id, a)).collect();
            insert(insert_plan(table, vec![0, 1, 2], rows))
        }
        Change::Replace(id, a) => {
            let mut plan = insert_plan(table, vec![0, 1, 2], vec![row(id, a)]);
            plan.duplicates = DuplicatePolicy::Replace;
            insert(plan)
        }
        Change::SetA(id, a) => update(update_plan(table, is(id), vec![(1, number(a))])),
        Change::Delete(id) => delete(delete_plan(table, is(id))),
    }
}

#[test]
fn tables_follow_a_model() {
    let mut database = Database::new();
    let table = plain(&database);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(25));
    let database = std::cell::RefCell::new(&mut database);
    runner
        .run(&prop::collection::vec(change(), 1..12), |changes| {
            let mut database = database.borrow_mut();
            database.run(&delete(delete_plan(&table, vec![]))).unwrap();
            let mut model = Model::new();
            for change in &changes {
                let done = database.run(&on_table(change, &table));
                prop_assert_eq!(on_model(change, &mut model), done.is_ok(), "{:?}", change);
                let expected: Vec<String> = model
                    .iter()
                    .map(|(id, a)| format!("{id} {} b", a.map_or("NULL".into(), |a| a.to_string())))
                    .collect();
                prop_assert_eq!(database.dump(&table), expected, "{:?}", change);
            }
            Ok(())
        })
        .unwrap();
}
