//! Operators against naive versions of themselves, with plenty of memory and with very little.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use crate::expression::{AggregateCall, CompareOperator, Expression, Slot, SortKey};
use crate::functions::AggregateFunction;
use crate::logical::{FrameBound, JoinKind, SetOperation, WindowCall, WindowFrame, WindowFunction};
use crate::plan::{CommonTable, NodeKind, PlanNode, StatementPlan, WindowPlan};
use crate::types::SqlType;

use super::fixture::*;

type Ints = Vec<Vec<Option<i64>>>;

/// So little that every operator has to spill.
const LITTLE: u64 = 6_000;

/// Runs a test with much and with little memory.
fn for_both(database: &mut Database, mut test: impl FnMut(&mut Database)) {
    for memory_bytes in [64 << 20, LITTLE] {
        database.memory_bytes = memory_bytes;
        test(database);
    }
}

fn pairs(values: impl Strategy<Value = i64> + Clone, most: usize) -> impl Strategy<Value = Ints> {
    let value = prop::option::weighted(0.9, values);
    prop::collection::vec(prop::collection::vec(value, 2), 1..most)
}

fn slots_as_columns(slots: &[u32]) -> Vec<Expression> {
    slots.iter().map(|number| int_slot(*number)).collect()
}

fn answer(database: &mut Database, root: PlanNode, slots: &[u32]) -> Vec<String> {
    let rows = database.rows(query(root, slots_as_columns(slots))).unwrap();
    rows.iter().map(|row| shown(row)).collect()
}

fn as_text(row: &[Option<i64>]) -> String {
    let value =
        |number: &Option<i64>| number.map_or("NULL".to_owned(), |number| number.to_string());
    row.iter().map(value).collect::<Vec<_>>().join(" ")
}

fn sorted(mut rows: Vec<String>) -> Vec<String> {
    rows.sort();
    rows
}

fn check(strategy: impl Strategy<Value = (Ints, Ints)>, test: impl Fn(&mut Database, Ints, Ints)) {
    let mut database = Database::new();
    let cell = std::cell::RefCell::new(&mut database);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(40));
    let run = runner.run(&strategy, |(left, right)| {
        let mut database = cell.borrow_mut();
        for_both(&mut database, |database| test(database, left.clone(), right.clone()));
        Ok(())
    });
    run.unwrap();
}

#[test]
fn sorts_order_rows() {
    check((pairs(-50..50_i64, 300), pairs(0..1_i64, 2)), |database, rows, _| {
        let key = |number, descending| SortKey { expression: int_slot(number), descending };
        let sort = |limit| {
            node(NodeKind::Sort {
                input: Box::new(int_rows(&rows, 0)),
                keys: vec![key(0, false), key(1, true)],
                keep: vec![Slot(0), Slot(1)],
                limit,
            })
        };
        let mut expected = rows.clone();
        expected.sort_by(|one, other| one[0].cmp(&other[0]).then(other[1].cmp(&one[1])));
        let expected: Vec<String> = expected.iter().map(|row| as_text(row)).collect();
        assert_eq!(answer(database, sort(None), &[0, 1]), expected);
        let first: Vec<String> = expected.into_iter().take(5).collect();
        assert_eq!(answer(database, sort(Some(literal(5))), &[0, 1]), first);
    });
}

#[test]
fn joins_pair_rows() {
    check((pairs(0..30_i64, 120), pairs(0..30_i64, 120)), |database, left, right| {
        for join in [JoinKind::Inner, JoinKind::Left, JoinKind::Semi, JoinKind::Anti] {
            for null_safe in [false, true] {
                let expected = sorted(naive_join(&left, &right, join, null_safe));
                let slots: &[u32] = match join {
                    JoinKind::Inner | JoinKind::Left => &[0, 1, 2, 3],
                    _ => &[0, 1],
                };
                let hash = hash_join(&left, &right, join, null_safe);
                // With little memory, a part of equal keys may be too large: then it is refused,
                // never wrong.
                match database.rows(query(hash, slots_as_columns(slots))) {
                    Ok(rows) => {
                        let rows = rows.iter().map(|row| shown(row)).collect();
                        assert_eq!(sorted(rows), expected, "{join:?} by hash");
                    }
                    Err(error) => {
                        assert_eq!((error.code, database.memory_bytes), (1041, LITTLE));
                    }
                }
                let nested = nested_loop(&left, &right, join, null_safe);
                assert_eq!(sorted(answer(database, nested, slots)), expected, "{join:?} nested");
            }
        }
    });
}

/// Pairs with equal first values, where the second value of the left row is not greater.
fn naive_join(left: &Ints, right: &Ints, join: JoinKind, null_safe: bool) -> Vec<String> {
    let matches = |one: &[Option<i64>], other: &[Option<i64>]| {
        let equal = one[0] == other[0] && (null_safe || one[0].is_some());
        equal && one[1].zip(other[1]).is_some_and(|(one, other)| one <= other)
    };
    let mut rows = Vec::new();
    for one in left {
        let others: Vec<&Vec<Option<i64>>> =
            right.iter().filter(|other| matches(one, other)).collect();
        match join {
            JoinKind::Semi if !others.is_empty() => rows.push(as_text(one)),
            JoinKind::Anti if others.is_empty() => rows.push(as_text(one)),
            JoinKind::Semi | JoinKind::Anti => {}
            JoinKind::Left if others.is_empty() => {
                rows.push(as_text(&[one[0], one[1], None, None]));
            }
            _ => rows
                .extend(others.iter().map(|other| as_text(&[one[0], one[1], other[0], other[1]]))),
        }
    }
    rows
}

fn hash_join(left: &Ints, right: &Ints, join: JoinKind, null_safe: bool) -> PlanNode {
    node(NodeKind::HashJoin {
        left: Box::new(int_rows(left, 0)),
        right: Box::new(int_rows(right, 2)),
        join,
        keys: vec![(int_slot(0), int_slot(2))],
        null_safe: vec![null_safe],
        conditions: vec![compare(int_slot(1), CompareOperator::LessOrEqual, int_slot(3))],
        right_slots: vec![Slot(2), Slot(3)],
    })
}

fn nested_loop(left: &Ints, right: &Ints, join: JoinKind, null_safe: bool) -> PlanNode {
    let equal = if null_safe { CompareOperator::NullSafeEqual } else { CompareOperator::Equal };
    node(NodeKind::NestedLoop {
        left: Box::new(int_rows(left, 0)),
        right: Box::new(int_rows(right, 2)),
        join,
        conditions: vec![
            compare(int_slot(0), equal, int_slot(2)),
            compare(int_slot(1), CompareOperator::LessOrEqual, int_slot(3)),
        ],
        right_slots: vec![Slot(2), Slot(3)],
    })
}

fn aggregate_call(function: AggregateFunction, distinct: bool, output: u32) -> AggregateCall {
    let arguments =
        if function == AggregateFunction::CountRows { vec![] } else { vec![int_slot(1)] };
    let ty = match function {
        AggregateFunction::Sum => SqlType::decimal(40, 0),
        AggregateFunction::Average => SqlType::decimal(40, 4),
        _ => SqlType::bigint(),
    };
    let (order, separator) = (Vec::new(), Arc::from(*b","));
    AggregateCall { function, arguments, distinct, order, separator, output: Slot(output), ty }
}

fn aggregate(input: PlanNode, is_sorted: bool, rollup: Option<Vec<Slot>>) -> PlanNode {
    use AggregateFunction as F;
    let functions = [
        (F::CountRows, false),
        (F::Count, true),
        (F::Sum, false),
        (F::Min, false),
        (F::Max, false),
    ];
    let calls = functions.iter().zip(10..);
    let calls =
        calls.map(|((function, distinct), output)| aggregate_call(*function, *distinct, output));
    node(NodeKind::Aggregate {
        input: Box::new(input),
        groups: vec![(Slot(5), int_slot(0))],
        aggregates: calls.collect(),
        sorted: is_sorted,
        rollup,
    })
}

fn naive_group(key: Option<i64>, values: &[Option<i64>]) -> String {
    let known: Vec<i64> = values.iter().flatten().copied().collect();
    let distinct: BTreeSet<i64> = known.iter().copied().collect();
    let sum = (!known.is_empty()).then(|| known.iter().sum());
    let row = [
        key,
        Some(values.len() as i64),
        Some(distinct.len() as i64),
        sum,
        known.iter().min().copied(),
        known.iter().max().copied(),
    ];
    as_text(&row)
}

#[test]
fn groups_are_aggregated() {
    check((pairs(0..60_i64, 300), pairs(0..1_i64, 2)), |database, mut rows, _| {
        let slots = [5, 10, 11, 12, 13, 14];
        let mut groups: BTreeMap<Option<i64>, Vec<Option<i64>>> = BTreeMap::new();
        rows.iter().for_each(|row| groups.entry(row[0]).or_default().push(row[1]));
        let expected: Vec<String> =
            groups.iter().map(|(key, values)| naive_group(*key, values)).collect();
        let hashed = answer(database, aggregate(int_rows(&rows, 0), false, None), &slots);
        assert_eq!(sorted(hashed), sorted(expected.clone()));
        rows.sort();
        let in_order = answer(database, aggregate(int_rows(&rows, 0), true, None), &slots);
        assert_eq!(in_order, expected);
    });
}

#[test]
fn groups_are_rolled_up_and_empty_input_has_one_group() {
    let mut database = Database::new();
    let rows = vec![vec![Some(1), Some(2)], vec![Some(2), Some(3)], vec![None, Some(4)]];
    let plan = aggregate(int_rows(&rows, 0), false, Some(vec![Slot(6)]));
    let expected = ["NULL 0 1 4", "1 0 1 2", "2 0 1 3", "NULL 1 3 9"];
    assert_eq!(answer(&mut database, plan, &[5, 6, 10, 12]), expected);

    let plan = node(NodeKind::Aggregate {
        input: Box::new(node(NodeKind::Empty)),
        groups: vec![],
        aggregates: vec![
            aggregate_call(AggregateFunction::CountRows, false, 10),
            aggregate_call(AggregateFunction::Sum, false, 11),
        ],
        sorted: false,
        rollup: None,
    });
    assert_eq!(answer(&mut database, plan, &[10, 11]), ["0 NULL"]);
}

#[test]
fn distinct_and_set_operations_follow_sets() {
    check((pairs(0..16_i64, 200), pairs(0..16_i64, 200)), |database, left, right| {
        let ty = SqlType::bigint();
        let distinct = node(NodeKind::Distinct {
            input: Box::new(int_rows(&left, 0)),
            slots: vec![(Slot(0), ty.clone()), (Slot(1), ty.clone())],
            keep: vec![],
        });
        let set = |rows: &Ints| rows.iter().map(|row| as_text(row)).collect::<BTreeSet<_>>();
        let (one, other) = (set(&left), set(&right));
        let expected: Vec<String> = one.iter().cloned().collect();
        assert_eq!(sorted(answer(database, distinct, &[0, 1])), expected);
        let mut operate = |operation, all| {
            let side = |rows: &Ints, first| {
                query(int_rows(rows, first), vec![int_slot(first), int_slot(first + 1)])
            };
            let plan = node(NodeKind::SetOperation {
                operation,
                all,
                inputs: vec![side(&left, 0), side(&right, 2)],
                slots: vec![(Slot(10), ty.clone()), (Slot(11), ty.clone())],
            });
            sorted(answer(database, plan, &[10, 11]))
        };
        let union: Vec<String> = one.union(&other).cloned().collect();
        assert_eq!(operate(SetOperation::Union, false), union);
        assert_eq!(operate(SetOperation::Union, true).len(), left.len() + right.len());
        let common: Vec<String> = one.intersection(&other).cloned().collect();
        assert_eq!(operate(SetOperation::Intersect, false), common);
        let rest: Vec<String> = one.difference(&other).cloned().collect();
        assert_eq!(operate(SetOperation::Except, false), rest);
        let mut counts: BTreeMap<String, i64> = BTreeMap::new();
        left.iter().for_each(|row| *counts.entry(as_text(row)).or_default() += 1);
        right.iter().for_each(|row| *counts.entry(as_text(row)).or_default() -= 1);
        let left_over: i64 = counts.values().map(|count| (*count).max(0)).sum();
        assert_eq!(operate(SetOperation::Except, true).len() as i64, left_over);
        let both = left.len() as i64 - left_over;
        assert_eq!(operate(SetOperation::Intersect, true).len() as i64, both);
    });
}

/// `WITH RECURSIVE c AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < last) SELECT n FROM c`
fn counting(last: i64) -> crate::plan::PreparedPlan {
    let ty = SqlType::bigint();
    let read = |slot| node(NodeKind::CommonTable { number: 0, slots: vec![(0, Slot(slot))] });
    let filter = node(NodeKind::Filter {
        input: Box::new(read(1)),
        conditions: vec![compare(int_slot(1), CompareOperator::Less, literal(last))],
    });
    let table = CommonTable {
        query: query(node(NodeKind::OneRow), vec![literal(1)]),
        recursive: Some(query(filter, vec![call("+", vec![int_slot(1), literal(1)])])),
        limit: None,
        distinct: false,
        types: vec![ty],
        outer_slots: vec![],
    };
    let mut plan = prepared(StatementPlan::Query(query(read(2), vec![int_slot(2)])));
    plan.common_tables = vec![table];
    plan
}

#[test]
fn recursive_tables_end_or_are_ended() {
    let mut database = Database::new();
    let mut transaction = database.begin();
    let mut sink = Rows::default();
    database.run_in(&mut *transaction, &counting(50), &[], &mut sink).unwrap();
    let numbers: Vec<String> = sink.rows.iter().map(|row| shown(row)).collect();
    assert_eq!(numbers, (1..=50).map(|number| number.to_string()).collect::<Vec<_>>());
    database.limits.recursion_depth = 20;
    let ended = database.run_in(&mut *transaction, &counting(50), &[], &mut Rows::default());
    assert_eq!(ended.unwrap_err().code, 3636);
}

#[test]
fn common_tables_beyond_memory_are_read_from_disk() {
    let mut database = Database::new();
    let rows: Ints = (0..500).map(|number| vec![Some(number), Some(number * 2)]).collect();
    let read = |first: u32| {
        let slots = vec![(0, Slot(first)), (1, Slot(first + 1))];
        node(NodeKind::CommonTable { number: 0, slots })
    };
    let join = node(NodeKind::NestedLoop {
        left: Box::new(read(10)),
        right: Box::new(read(12)),
        join: JoinKind::Inner,
        conditions: vec![compare(int_slot(10), CompareOperator::Equal, int_slot(13))],
        right_slots: vec![Slot(12), Slot(13)],
    });
    let mut plan = prepared(StatementPlan::Query(query(join, vec![int_slot(10), int_slot(12)])));
    plan.common_tables = vec![CommonTable {
        query: query(int_rows(&rows, 0), vec![int_slot(0), int_slot(1)]),
        recursive: None,
        limit: None,
        distinct: false,
        types: vec![SqlType::bigint(), SqlType::bigint()],
        outer_slots: vec![],
    }];
    database.memory_bytes = 2_000;
    let mut transaction = database.begin();
    let mut sink = Rows::default();
    database.run_in(&mut *transaction, &plan, &[], &mut sink).unwrap();
    assert_eq!(sink.rows.len(), 250);
}

/// `f(arguments) OVER (PARTITION BY slot 0 ORDER BY slot 1 frame)` in slot 10.
fn window(
    rows: &Ints,
    function: WindowFunction,
    arguments: Vec<Expression>,
    frame: WindowFrame,
) -> PlanNode {
    let call = WindowCall { function, arguments, output: Slot(10), ty: SqlType::bigint() };
    node(NodeKind::Window(Box::new(WindowPlan {
        input: int_rows(rows, 0),
        partition: vec![int_slot(0)],
        order: vec![SortKey { expression: int_slot(1), descending: false }],
        frame,
        calls: vec![call],
        keep: vec![Slot(0), Slot(1)],
    })))
}

fn up_to_peers() -> WindowFrame {
    WindowFrame { rows: false, start: FrameBound::UnboundedPreceding, end: FrameBound::CurrentRow }
}

#[test]
fn windows_look_at_peers_and_frames() {
    use WindowFunction as W;
    let mut database = Database::new();
    let rows: Ints = [(1, 10), (1, 20), (1, 20), (1, 40), (2, 5)]
        .iter()
        .map(|(partition, value)| vec![Some(*partition), Some(*value)])
        .collect();
    let mut values = |function: W, arguments: Vec<Expression>, frame: WindowFrame| {
        answer(&mut database, window(&rows, function, arguments, frame), &[10]).join(" ")
    };
    let sum = || W::Aggregate(aggregate_call(AggregateFunction::Sum, false, 10));
    assert_eq!(values(W::RowNumber, vec![], up_to_peers()), "1 2 3 4 1");
    assert_eq!(values(W::Rank, vec![], up_to_peers()), "1 2 2 4 1");
    assert_eq!(values(W::DenseRank, vec![], up_to_peers()), "1 2 2 3 1");
    assert_eq!(values(W::CumulativeDistribution, vec![], up_to_peers()), "0.25 0.75 0.75 1 1");
    assert_eq!(values(W::Ntile, vec![literal(3)], up_to_peers()), "1 1 2 3 1");
    assert_eq!(values(W::Lag, vec![int_slot(1)], up_to_peers()), "NULL 10 20 20 NULL");
    let lead = vec![int_slot(1), literal(2), literal(-1)];
    assert_eq!(values(W::Lead, lead, up_to_peers()), "20 40 -1 -1 -1");
    assert_eq!(values(W::LastValue, vec![int_slot(1)], up_to_peers()), "10 20 20 40 5");
    assert_eq!(values(sum(), vec![], up_to_peers()), "10 50 50 90 5", "peers count together");
    let around = |rows, width: i64| {
        let (start, end) = match rows {
            true => (literal(width), literal(width)),
            false => (
                call("-", vec![int_slot(1), literal(width)]),
                call("+", vec![int_slot(1), literal(width)]),
            ),
        };
        WindowFrame { rows, start: FrameBound::Preceding(start), end: FrameBound::Following(end) }
    };
    assert_eq!(values(sum(), vec![], around(true, 1)), "30 50 80 60 5");
    assert_eq!(values(sum(), vec![], around(false, 10)), "50 50 50 40 5");
    let nth = vec![int_slot(1), literal(2)];
    assert_eq!(values(W::NthValue, nth, around(true, 1)), "20 20 20 40 NULL");
}
