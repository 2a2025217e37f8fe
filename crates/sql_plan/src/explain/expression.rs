//! Expressions as text.

use firn_sql_functions::AggregateFunction;
use firn_sql_logical::expression::{
    AggregateCall, ComparedRow, Expression, ExpressionKind, IsTest, SubqueryKind,
};
use firn_sql_types::hexadecimal::hexadecimal_digits;
use firn_sql_types::{Datum, EvaluationContext, SqlType, TypeKind, cast::cast};

use super::names::Names;

/// An expression as text.
pub(super) fn text(expression: &Expression, names: &Names<'_>) -> String {
    let of = |expression: &Expression| text(expression, names);
    match &expression.kind {
        ExpressionKind::Literal(datum) => literal(datum, &expression.ty),
        ExpressionKind::Parameter(number) => format!("?{}", number + 1),
        ExpressionKind::Slot(slot) => names.name(*slot),
        ExpressionKind::Call { function, arguments } => call(function.name, arguments, names),
        ExpressionKind::Cast(inner) => {
            format!("cast({} as {})", of(inner), type_name(&expression.ty))
        }
        ExpressionKind::Compare { operator, sides, .. } => {
            format!("({} {} {})", of(&sides[0]), operator.text(), of(&sides[1]))
        }
        ExpressionKind::And(list) => joined(list, " and ", names),
        ExpressionKind::Or(list) => joined(list, " or ", names),
        ExpressionKind::Xor(sides) => joined(&sides[..], " xor ", names),
        ExpressionKind::Not(inner) => format!("(not {})", of(inner)),
        ExpressionKind::Is { operand, test, negated } => {
            let test = match test {
                IsTest::Null => "null",
                IsTest::True => "true",
                IsTest::False => "false",
            };
            format!("({} is {}{test})", of(operand), if *negated { "not " } else { "" })
        }
        ExpressionKind::InList { operand, list, negated, .. } => {
            let not = if *negated { "not " } else { "" };
            format!("({} {not}in ({}))", of(operand), list_text(list, names))
        }
        ExpressionKind::Like { text: value, pattern, negated, .. } => {
            let not = if *negated { "not " } else { "" };
            format!("({} {not}like {})", of(value), of(pattern))
        }
        ExpressionKind::Case { branches, otherwise } => {
            let mut written = "case".to_owned();
            for (condition, value) in branches {
                written += &format!(" when {} then {}", of(condition), of(value));
            }
            if let Some(otherwise) = otherwise {
                written += &format!(" else {}", of(otherwise));
            }
            written + " end"
        }
        ExpressionKind::Coalesce(list) => format!("coalesce({})", list_text(list, names)),
        ExpressionKind::Subquery(subquery) => match &subquery.kind {
            SubqueryKind::Scalar => "(subquery)".to_owned(),
            SubqueryKind::Row(compared) => before_subquery(compared, "", names),
            SubqueryKind::Exists { negated: false } => "exists(subquery)".to_owned(),
            SubqueryKind::Exists { negated: true } => "not exists(subquery)".to_owned(),
            SubqueryKind::Quantified { compared, all: true } => {
                before_subquery(compared, "all ", names)
            }
            SubqueryKind::Quantified { compared, all: false } => {
                before_subquery(compared, "any ", names)
            }
        },
        ExpressionKind::Row(list) => format!("row({})", list_text(list, names)),
        ExpressionKind::UserVariable(name) => format!("@{name}"),
        ExpressionKind::Keep { value, .. } => of(value),
        ExpressionKind::Kept(slot) => format!("#{}", slot.0),
        ExpressionKind::AssignVariable { name, value } => format!("(@{name} := {})", of(value)),
        ExpressionKind::SystemVariable { name, .. } => format!("@@{name}"),
        ExpressionKind::Unresolved(name) => name.to_lowercase(),
    }
}

fn before_subquery(compared: &ComparedRow, quantifier: &str, names: &Names<'_>) -> String {
    let operands = list_text(&compared.operands, names);
    format!("({operands} {} {quantifier}(subquery))", compared.operator.text())
}

/// Expressions with commas between them.
pub(super) fn list_text(list: &[Expression], names: &Names<'_>) -> String {
    list.iter().map(|one| text(one, names)).collect::<Vec<_>>().join(", ")
}

/// Conditions that all must hold.
pub(super) fn conditions_text(conditions: &[Expression], names: &Names<'_>) -> String {
    conditions.iter().map(|one| text(one, names)).collect::<Vec<_>>().join(" and ")
}

fn joined(list: &[Expression], by: &str, names: &Names<'_>) -> String {
    let parts: Vec<String> = list.iter().map(|one| text(one, names)).collect();
    format!("({})", parts.join(by))
}

fn call(name: &str, arguments: &[Expression], names: &Names<'_>) -> String {
    let is_sign = !name.starts_with(|c: char| c.is_alphabetic()) || name == "DIV";
    match arguments {
        [mean] if name == "AVG SHOWN" => text(mean, names),
        [left, right] if is_sign => {
            format!("({} {} {})", text(left, names), name.to_lowercase(), text(right, names))
        }
        _ => format!("{}({})", name.to_lowercase(), list_text(arguments, names)),
    }
}

/// A call of an aggregate as text.
pub(super) fn aggregate(call: &AggregateCall, names: &Names<'_>) -> String {
    let name = match call.function {
        AggregateFunction::CountRows => return "count(*)".to_owned(),
        AggregateFunction::Count => "count",
        AggregateFunction::Sum => "sum",
        AggregateFunction::Average => "avg",
        AggregateFunction::Min => "min",
        AggregateFunction::Max => "max",
        AggregateFunction::BitAnd => "bit_and",
        AggregateFunction::BitOr => "bit_or",
        AggregateFunction::BitXor => "bit_xor",
        AggregateFunction::GroupConcat => "group_concat",
        AggregateFunction::StandardDeviation => "std",
        AggregateFunction::SampleStandardDeviation => "stddev_samp",
        AggregateFunction::Variance => "variance",
        AggregateFunction::SampleVariance => "var_samp",
        AggregateFunction::JsonArray => "json_arrayagg",
        AggregateFunction::JsonObject => "json_objectagg",
        AggregateFunction::AnyValue => "any_value",
    };
    let distinct = if call.distinct { "distinct " } else { "" };
    format!("{name}({distinct}{})", list_text(&call.arguments, names))
}

fn literal(datum: &Datum, ty: &SqlType) -> String {
    let context = EvaluationContext::default();
    let wanted = SqlType::varchar(u32::MAX, context.connection_collation);
    match datum {
        Datum::Null => "NULL".to_owned(),
        Datum::Text(bytes) if ty.kind.is_binary() => {
            format!("0x{}", hexadecimal_digits(bytes))
        }
        _ => {
            let written = cast(datum, ty, &wanted, &context).unwrap_or_default();
            let written =
                String::from_utf8_lossy(written.as_bytes().unwrap_or_default()).into_owned();
            if ty.kind.is_numeric() { written } else { format!("'{written}'") }
        }
    }
}

fn type_name(ty: &SqlType) -> &'static str {
    match ty.kind {
        TypeKind::Integer { unsigned: true, .. } => "unsigned",
        TypeKind::Integer { .. } => "signed",
        TypeKind::Decimal { .. } => "decimal",
        TypeKind::Float | TypeKind::Double => "double",
        TypeKind::Date => "date",
        TypeKind::Time { .. } => "time",
        TypeKind::DateTime { .. } | TypeKind::Timestamp { .. } => "datetime",
        TypeKind::Json => "json",
        TypeKind::Year => "year",
        TypeKind::Binary { .. } | TypeKind::Varbinary { .. } | TypeKind::Blob { .. } => "binary",
        _ => "char",
    }
}
