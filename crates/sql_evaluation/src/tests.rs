//! Messages give back the expression that they were made of, and refuse what is not one.

use firn_api::rows::expression as message;
use firn_api::rows::expression::{
    ComparedBy, Comparison, ExpressionEvaluator, MOST_NESTED, Step, ValueKind, ValueType,
};
use firn_base::{SpaceId, TableId};
use firn_format::definition::{ColumnDefinition, TableDefinition};
use firn_format::row::RowVersion;
use firn_format::value::{ColumnType, IntWidth, Value, ValueRef};
use firn_sql_functions as functions;
use firn_sql_logical::expression::{CompareOperator, Expression, ExpressionKind, Slot};
use firn_sql_types::{ComparisonKind, Datum, SqlType};

use crate::{Given, PureEvaluator, sent_expression};

const BIGINT: ValueType = ValueType {
    kind: ValueKind::Integer { bytes: 8, is_unsigned: false },
    is_nullable: true,
    collation_rank: 5,
};

/// Slot 7 is the only column; nothing else has a value.
struct OneColumn;

impl Given for OneColumn {
    fn ordinal(&self, slot: Slot) -> Option<u16> {
        (slot == Slot(7)).then_some(0)
    }

    fn slot(&self, _slot: Slot) -> Option<&Datum> {
        None
    }

    fn parameter(&self, _number: u32) -> Option<&Datum> {
        None
    }
}

fn table() -> TableDefinition {
    TableDefinition {
        table_id: TableId(1),
        space: SpaceId(1),
        schema_name: "s".to_owned(),
        name: "t".to_owned(),
        schema_version: 1,
        row_version: RowVersion(0),
        columns: vec![ColumnDefinition::new("a", ColumnType::Int(IntWidth::Eight), true)],
        indexes: Vec::new(),
        options: Vec::new(),
    }
}

fn call(name: &str, arguments: Vec<Expression>) -> Expression {
    let function = functions::find(name).expect(name);
    Expression { kind: ExpressionKind::Call { function, arguments }, ty: SqlType::bigint() }
}

fn column() -> Expression {
    Expression { kind: ExpressionKind::Slot(Slot(7)), ty: SqlType::bigint() }
}

fn literal(number: i64) -> Expression {
    Expression { kind: ExpressionKind::Literal(Datum::Int(number)), ty: SqlType::bigint() }
}

/// Whether the expression is true of a row with this value.
fn holds(steps: Vec<Step>, value: ValueRef<'static>) -> Option<bool> {
    let expression = message::Expression { steps };
    PureEvaluator.compile(&table(), &expression)?.holds(&move |_| Some(value))
}

#[test]
fn a_comparison_is_evaluated_at_the_node() {
    let sides = Box::new([call("+", vec![column(), literal(1)]), literal(8)]);
    let (operator, kind) = (CompareOperator::Equal, ComparisonKind::Integer);
    let kind = ExpressionKind::Compare { operator, kind, sides };
    let condition = Expression { kind, ty: SqlType::boolean() };
    let steps = sent_expression(&condition, &OneColumn).expect("a message").steps;
    assert_eq!(steps.len(), 5);
    assert_eq!(holds(steps.clone(), ValueRef::Int(7)), Some(true));
    assert_eq!(holds(steps.clone(), ValueRef::Int(6)), Some(false));
    assert_eq!(holds(steps.clone(), ValueRef::Null), Some(false));
    // An overflow is the statement's error.
    assert_eq!(holds(steps, ValueRef::Int(i64::MAX)), None);
}

#[test]
fn what_asks_the_session_is_not_sent() {
    let impure = [
        call("RAND", Vec::new()),
        call("NOW", Vec::new()),
        call("WEEK", vec![column()]),
        call("LN", vec![column()]),
        call("/", vec![column(), literal(2)]),
        Expression { kind: ExpressionKind::UserVariable("a".into()), ty: SqlType::bigint() },
        Expression { kind: ExpressionKind::Slot(Slot(8)), ty: SqlType::bigint() },
    ];
    for expression in impure {
        assert_eq!(sent_expression(&expression, &OneColumn), None, "{expression:?}");
    }
}

#[test]
fn deep_expressions_are_not_sent() {
    let nested = |depth| (1..depth).fold(column(), |inner, _| call("ABS", vec![inner]));
    assert!(sent_expression(&nested(MOST_NESTED), &OneColumn).is_some());
    assert!(sent_expression(&nested(MOST_NESTED + 1), &OneColumn).is_none());
}

#[test]
fn steps_that_are_no_expression_are_refused() {
    let column = || Step::Column { ordinal: 0, ty: BIGINT };
    let zero = || Step::Literal { value: Value::Int(0), ty: BIGINT };
    let function =
        |name: &str, arguments| Step::Call { function: name.to_owned(), arguments, result: BIGINT };
    let text = ValueKind::Varchar { max_chars: 9, collation: 9999 };
    let by = ComparedBy::Text(9999);
    let mut deep = vec![column()];
    deep.extend((0..100_000).map(|_| Step::Not));
    let refused = [
        Vec::new(),
        vec![column(), zero()],
        vec![Step::Not],
        vec![column(), Step::And { operands: u32::MAX }],
        vec![column(), Step::In { items: u32::MAX, by, is_negated: false }],
        vec![column(), Step::Case { branches: u32::MAX, has_otherwise: true, result: BIGINT }],
        vec![Step::Column { ordinal: 1, ty: BIGINT }],
        vec![Step::Column { ordinal: 0, ty: ValueType { kind: ValueKind::Double, ..BIGINT } }],
        vec![Step::Literal { value: Value::Null, ty: ValueType { kind: text, ..BIGINT } }],
        vec![column(), zero(), Step::Compare { operator: Comparison::Less, by }],
        vec![Step::Kept { number: 0, ty: BIGINT }],
        vec![function("RAND", 0)],
        vec![function("no such function", 0)],
        vec![column(), function("+", 1)],
        deep,
    ];
    for steps in refused {
        let shown = format!("{:?}", &steps[..steps.len().min(3)]);
        assert_eq!(holds(steps, ValueRef::Int(1)), None, "{shown}");
    }
    assert_eq!(holds(vec![column()], ValueRef::Int(1)), Some(true));
}
