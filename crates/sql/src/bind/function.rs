//! Function calls: conditional forms with their own nodes, aggregates, windows, and the rest.

use crate::error::{Result, SqlError};
use crate::expression::{CompareOperator, Expression, ExpressionKind, IsTest};
use crate::functions;
use crate::grammar::ast::{
    Arguments, BinaryOperator, Expr, Function, TruthTest, UnaryOperator, Value,
};
use crate::types::json::JsonValue;
use crate::types::{Datum, SqlType, TypeKind};

use super::cast::typed_null;
use super::merge::is_large;
use super::{Binder, make};

impl Binder<'_> {
    /// A function call.
    pub(crate) fn function(&mut self, function: &Function) -> Result<Expression> {
        let name = function.name.to_ascii_uppercase();
        if function.over.is_some() {
            return self.window_call(&name, function);
        }
        if let Some(aggregate) = super::aggregate::named(&name) {
            return self.aggregate(aggregate, function);
        }
        if super::window::is_window_only(&name) {
            return Err(SqlError::new(
                3579,
                format!("Window function '{}' requires OVER clause", name.to_lowercase()),
            ));
        }
        match name.as_str() {
            "VALUES" => self.values_function(function),
            "DEFAULT" => self.default_function(function),
            "ANY_VALUE" => self.any_value(function),
            "GROUPING" => self.grouping_function(function),
            "DATE_ADD" | "DATE_SUB" | "ADDDATE" | "SUBDATE" => self.date_function(&name, function),
            "JSON_VALUE" => self.json_value_function(function),
            _ => {
                let mut arguments = self.arguments(function)?;
                if takes_documents(&name) {
                    let written = argument_expressions(function)?;
                    // The name of a member is a text.
                    let is_name = |at: usize| name == "JSON_OBJECT" && at.is_multiple_of(2);
                    let pairs = arguments.into_iter().zip(written).enumerate();
                    arguments = pairs
                        .map(|(at, (one, written))| match is_name(at) {
                            true => one,
                            false => json_truth(one, written),
                        })
                        .collect();
                }
                let arguments = self.with_numbers_of_bytes(&name, function, arguments)?;
                self.named_call(&name, arguments)
            }
        }
    }

    /// `JSON_VALUE(document, path RETURNING type)`: the call has that type.
    fn json_value_function(&mut self, function: &Function) -> Result<Expression> {
        let arguments = self.arguments(function)?;
        let returned = match &function.returning {
            Some(data_type) => {
                let document = typed_null(SqlType::new(TypeKind::Json));
                Some(self.explicit_cast(document, data_type, None)?.ty)
            }
            None => None,
        };
        let Some(json_value) = functions::find("JSON_VALUE") else {
            return self.call("JSON_VALUE", arguments);
        };
        let mut call = self.unfolded_call(json_value, arguments)?;
        call.ty = returned.unwrap_or(call.ty).with_nullable(true);
        Ok(self.fold(call))
    }

    fn named_call(&mut self, name: &str, mut arguments: Vec<Expression>) -> Result<Expression> {
        match (name, arguments.len()) {
            ("IF", 3) => {
                let otherwise = arguments.pop();
                let value = arguments.pop().unwrap_or_else(make::null);
                let test = arguments.pop().unwrap_or_else(make::null);
                let test = self.test_of(test)?;
                self.case_of(vec![test], vec![value], otherwise)
            }
            ("IFNULL" | "COALESCE", 1..) if name == "COALESCE" || arguments.len() == 2 => {
                let nullable = arguments.iter().all(|one| one.ty.nullable);
                let (list, ty) = self.unified(arguments, &name.to_lowercase())?;
                let kind = ExpressionKind::Coalesce(list);
                Ok(Expression { kind, ty: ty.with_nullable(nullable) })
            }
            ("NULLIF", 2) => {
                let two = arguments.pop().unwrap_or_else(make::null);
                let one = arguments.pop().unwrap_or_else(make::null);
                let (first, one) =
                    if is_large(&one) { self.for_two(one) } else { (one.clone(), one) };
                let test = self.compare(CompareOperator::Equal, first, two)?;
                // The names of an ENUM are texts from here on, and sort as texts.
                let one = match one.ty.kind.is_enum_or_set() {
                    true => self.unified(vec![one], "nullif")?.0.remove(0),
                    false => one,
                };
                let ty = one.ty.clone().with_nullable(true);
                let branches = vec![(test, typed_null(ty.clone()))];
                let kind = ExpressionKind::Case { branches, otherwise: Some(Box::new(one)) };
                Ok(Expression { kind, ty })
            }
            ("ISNULL", 1) => {
                let operand = arguments.remove(0);
                Ok(make::is(operand, IsTest::Null, false))
            }
            // For a column of documents, MySQL reports bytes, though their text is utf8mb4.
            ("CHARSET" | "COLLATION", 1) if is_document_column(&arguments[0]) => {
                self.call(name, vec![typed_null(SqlType::varbinary(0))])
            }
            ("GREATEST" | "LEAST", 2..) => self.call(name, arguments),
            ("IF" | "IFNULL" | "NULLIF" | "ISNULL" | "COALESCE", _) => Err(SqlError::new(
                1582,
                format!("Incorrect parameter count in the call to native function '{name}'"),
            )),
            _ => self.call(name, arguments),
        }
    }

    /// The arguments; hexadecimal and bit literals are numbers where the function wants numbers.
    fn with_numbers_of_bytes(
        &self,
        name: &str,
        function: &Function,
        arguments: Vec<Expression>,
    ) -> Result<Vec<Expression>> {
        let numbers: Vec<Option<Expression>> = argument_expressions(function)?
            .into_iter()
            .map(|written| self.number_of_bytes(written))
            .collect();
        if numbers.iter().all(Option::is_none) {
            return Ok(arguments);
        }
        let wants_number = self.number_arguments(name, &arguments)?;
        let pairs = arguments.into_iter().zip(numbers).zip(wants_number);
        Ok(pairs.map(|((one, number), wants)| number.filter(|_| wants).unwrap_or(one)).collect())
    }

    /// Which arguments a function takes as numbers.
    fn number_arguments(&self, name: &str, arguments: &[Expression]) -> Result<Vec<bool>> {
        match name {
            "IF" => Ok((0..arguments.len()).map(|at| at == 0).collect()),
            "GREATEST" | "LEAST" => {
                let any = arguments.iter().any(|argument| argument.ty.kind.is_numeric());
                Ok(vec![any; arguments.len()])
            }
            _ => {
                let wanted = self.wanted_types(name, arguments)?;
                Ok(wanted.into_iter().map(|ty| ty.kind.is_numeric()).collect())
            }
        }
    }

    /// The arguments of a plain call.
    pub(crate) fn arguments(&mut self, function: &Function) -> Result<Vec<Expression>> {
        let list = argument_expressions(function)?;
        list.into_iter().map(|argument| self.bind_single(argument)).collect()
    }

    fn date_function(&mut self, name: &str, function: &Function) -> Result<Expression> {
        let minus = name.ends_with("SUB") || name == "SUBDATE";
        match argument_expressions(function)?.as_slice() {
            [date, Expr::Interval(interval)] => {
                let date = self.bind_single(date)?;
                self.date_arithmetic(date, interval, minus)
            }
            _ => {
                let arguments = self.arguments(function)?;
                self.call(name, arguments)
            }
        }
    }

    /// `ANY_VALUE(x)`: the columns it reads need not depend on the groups.
    fn any_value(&mut self, function: &Function) -> Result<Expression> {
        let mut arguments = self.arguments(function)?;
        if arguments.len() != 1 {
            return self.call("ANY_VALUE", arguments);
        }
        let value = arguments.remove(0);
        crate::expression::visit::add_reads(&value, &mut self.scope().any_values);
        Ok(value)
    }

    /// `GROUPING(a)`: whether a group is rolled up; several arguments make a bit mask.
    fn grouping_function(&mut self, function: &Function) -> Result<Expression> {
        let arguments = self.arguments(function)?;
        let scope = self.scope();
        let Some(slots) = scope.grouping_slots.clone() else {
            return Err(SqlError::new(3626, "GROUPING function is only allowed with WITH ROLLUP"));
        };
        let mut sum: Option<Expression> = None;
        for argument in arguments {
            let groups = &self.scope().groups;
            let place = groups.iter().position(|(slot, value)| {
                crate::expression::same::same_expression(value, &argument)
                    || matches!(argument.kind, ExpressionKind::Slot(other) if other == *slot)
            });
            let place = place.ok_or_else(|| {
                SqlError::new(3625, "Argument #0 of GROUPING function is not in GROUP BY")
            })?;
            let bit = make::slot(slots[place], SqlType::bigint().not_null());
            sum = Some(match sum {
                None => bit,
                Some(before) => {
                    let shifted = self.call("*", vec![before, make::integer(2)])?;
                    self.call("+", vec![shifted, bit])?
                }
            });
        }
        Ok(sum.unwrap_or_else(|| make::integer(0)))
    }
}

fn is_document_column(expression: &Expression) -> bool {
    matches!(expression.kind, ExpressionKind::Slot(_)) && expression.ty.kind == TypeKind::Json
}

/// Functions that make documents of their arguments; truth values become `true` and `false`.
fn takes_documents(name: &str) -> bool {
    matches!(
        name,
        "JSON_ARRAY"
            | "JSON_OBJECT"
            | "JSON_SET"
            | "JSON_INSERT"
            | "JSON_REPLACE"
            | "JSON_ARRAY_APPEND"
            | "JSON_ARRAY_INSERT"
    )
}

/// A truth value as a document; other values stay.
pub(super) fn json_truth(value: Expression, written: &Expr) -> Expression {
    let json = SqlType::new(TypeKind::Json);
    let of = |truth| make::literal(Datum::from(JsonValue::Bool(truth)), json.clone());
    match written {
        Expr::Value(Value::Boolean(truth)) => of(*truth),
        Expr::Value(_) => value,
        _ if value.ty.kind == SqlType::boolean().kind => match value.kind {
            ExpressionKind::Literal(Datum::Int(number)) if is_condition(written) => of(number != 0),
            _ if !make::is_truth(&value) => value,
            _ => document_of_truth(value, of),
        },
        _ => value,
    }
}

/// Whether the written expression is a truth value.
fn is_condition(written: &Expr) -> bool {
    match written {
        Expr::BinaryOp { op, .. } => {
            super::expression::comparison_operator(*op).is_some()
                || matches!(op, BinaryOperator::And | BinaryOperator::Or | BinaryOperator::Xor)
        }
        Expr::UnaryOp { op, .. } => matches!(op, UnaryOperator::Not | UnaryOperator::BangNot),
        Expr::Is { test, .. } => *test != TruthTest::Unknown,
        Expr::InList { .. } | Expr::Between { .. } | Expr::Like { .. } => true,
        _ => false,
    }
}

fn document_of_truth(value: Expression, of: impl Fn(bool) -> Expression) -> Expression {
    let json = SqlType::new(TypeKind::Json);
    let is_true = make::is(value.clone(), IsTest::True, false);
    let is_false = make::is(value, IsTest::False, false);
    let branches = vec![(is_true, of(true)), (is_false, of(false))];
    let kind = ExpressionKind::Case { branches, otherwise: None };
    Expression { kind, ty: json.with_nullable(true) }
}

/// The arguments of a call that are expressions.
pub(crate) fn argument_expressions(function: &Function) -> Result<Vec<&Expr>> {
    match &function.arguments {
        Arguments::List(list) => Ok(list.iter().collect()),
        Arguments::Wildcard => Err(SqlError::not_supported("this argument")),
    }
}
