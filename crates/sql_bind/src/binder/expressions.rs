//! Expressions: names, operators, and which part of the binder handles the rest.

use std::sync::Arc;

use firn_sql_grammar::ast::{BinaryOperator, Expr, TruthTest, UnaryOperator};
use firn_sql_logical::PlanContext;
use firn_sql_logical::expression::{self, CompareOperator, Expression, ExpressionKind, IsTest};
use firn_sql_types::error::{Condition, Level, Result, SqlError};
use firn_sql_types::watch::{Recursion, nest};
use firn_sql_types::{Coercibility, Datum, JsonValue, SqlType, TypeKind, variable_form};

use super::scope::ColumnPath;
use super::{
    Binder, Typing, cast, coerce, expression_builders, function, literal, parameter, patterns,
    predicate, scope, subquery,
};

/// The warning for deprecated syntax.
pub(super) const DEPRECATED: u16 = 1287;

/// The text of [`DEPRECATED`].
pub(super) fn deprecated(old: &str, new: &str) -> String {
    format!(
        "'{old}' is deprecated and will be removed in a future release. Please use {new} instead"
    )
}

/// Binds an expression.
///
/// # Errors
/// Unknown or ambiguous names, incompatible types, unsupported operations.
pub(crate) fn bind(binder: &mut Binder<'_>, expr: &Expr) -> Result<Expression> {
    nest(Recursion::Bind)?;
    binder.typing.context.watch.step()?;
    binder.typing.context.watch.hold(size_of::<Expression>())?;
    match expr {
        Expr::Identifier(column) => {
            scope::resolve_column(binder, &ColumnPath { schema: None, table: None, column })
        }
        Expr::CompoundIdentifier(parts) => compound(binder, parts),
        Expr::UserVariable(name) => Ok(user_variable(&mut binder.typing, name)),
        Expr::SystemVariable { scope, name } => system_variable(binder.typing.context, scope, name),
        Expr::Value(value) => literal::literal(binder.typing.context, value),
        Expr::BinaryOp { left, op, right } => binary(binder, left, *op, right),
        Expr::UnaryOp { op, expr } => unary(binder, *op, expr),
        Expr::Is { expr, test, negated } => {
            let test = match test {
                TruthTest::Null | TruthTest::Unknown => IsTest::Null,
                TruthTest::True => IsTest::True,
                TruthTest::False => IsTest::False,
            };
            is(binder, expr, test, *negated)
        }
        Expr::InList { expr, list, negated } => predicate::in_list(binder, expr, list, *negated),
        Expr::InSubquery { expr: operand, subquery, negated } => {
            subquery::shared(binder, expr, |binder| {
                subquery::in_subquery(binder, operand, subquery, *negated)
            })
        }
        Expr::Between { expr, negated, low, high } => {
            predicate::between(binder, expr, *negated, low, high)
        }
        Expr::Like { negated, expr, pattern, escape } => {
            patterns::like(binder, expr, pattern, escape.as_ref(), *negated)
        }
        Expr::Regexp { negated, expr, pattern } => {
            patterns::regexp(binder, expr, pattern, *negated)
        }
        Expr::Quantified { left, op, all, subquery } => {
            subquery::quantified(binder, left, *op, subquery, *all)
        }
        Expr::Case { operand, branches, otherwise } => {
            predicate::case(binder, operand.as_deref(), branches, otherwise.as_deref())
        }
        Expr::Exists(subquery) => {
            subquery::shared(binder, expr, |binder| subquery::exists(binder, subquery))
        }
        Expr::Subquery(query) => {
            subquery::shared(binder, expr, |binder| subquery::scalar_subquery(binder, query))
        }
        Expr::Tuple(items) => tuple(binder, items),
        Expr::Function(function) => function::function(binder, function),
        _ => cast::special(binder, expr),
    }
}

/// Binds expressions.
///
/// # Errors
/// As [`bind`].
pub(crate) fn bind_all<'e>(
    binder: &mut Binder<'_>,
    list: impl IntoIterator<Item = &'e Expr>,
) -> Result<Vec<Expression>> {
    list.into_iter().map(|expr| bind(binder, expr)).collect()
}

/// Binds an expression of a single value.
///
/// # Errors
/// 1241, and as [`bind`].
pub(crate) fn bind_single(binder: &mut Binder<'_>, expr: &Expr) -> Result<Expression> {
    let bound = bind(binder, expr)?;
    expression_builders::single(bound)
}

/// A value as a condition; a hexadecimal or bit literal is a number there.
///
/// # Errors
/// As [`bind`].
pub(crate) fn truth(binder: &mut Binder<'_>, expr: &Expr) -> Result<Expression> {
    let bound = bind(binder, expr)?;
    let bound = literal::as_number(binder.typing.context, bound);
    if bound.ty.kind == TypeKind::Json {
        return is_not_zero(&mut binder.typing, bound);
    }
    expression_builders::condition(&mut binder.typing, bound)
}

/// A value as the test of `CASE` or `IF`: a document counts as the number that it is.
///
/// # Errors
/// As [`bind`].
pub(crate) fn test(binder: &mut Binder<'_>, expr: &Expr) -> Result<Expression> {
    let bound = bind(binder, expr)?;
    let bound = literal::as_number(binder.typing.context, bound);
    test_of(&mut binder.typing, bound)
}

/// As [`test`], for an expression that is already bound.
///
/// # Errors
/// 1241
pub(crate) fn test_of(typing: &mut Typing<'_>, bound: Expression) -> Result<Expression> {
    if bound.ty.kind == TypeKind::Json {
        let nullable = bound.ty.nullable;
        return Ok(coerce::cast_to(typing, bound, SqlType::double().with_nullable(nullable)));
    }
    expression_builders::condition(typing, bound)
}

/// Adds a warning to every run of the plan.
pub(crate) fn warn(context: &PlanContext<'_>, code: u16, message: String) {
    let condition = Condition { level: Level::Warning, code, message };
    context.conditions.borrow_mut().push(condition);
}

/// A document as a condition: true unless it is the number 0.
fn is_not_zero(typing: &mut Typing<'_>, document: Expression) -> Result<Expression> {
    let message = "Evaluating a JSON value in SQL boolean context does an implicit comparison \
                   against JSON integer 0; if this is not what you want, consider converting \
                   JSON to a SQL numeric type with JSON_VALUE RETURNING";
    warn(typing.context, 3986, message.to_owned());
    let zero =
        expression_builders::literal(Datum::from(JsonValue::Int(0)), SqlType::new(TypeKind::Json));
    coerce::compare(typing, CompareOperator::NotEqual, document, zero)
}

/// Binds a condition and returns its conjuncts one by one.
///
/// # Errors
/// As [`bind`].
pub(crate) fn bind_condition(binder: &mut Binder<'_>, expr: &Expr) -> Result<Vec<Expression>> {
    let bound = truth(binder, expr)?;
    Ok(match bound.kind {
        ExpressionKind::And(list) => list,
        ExpressionKind::Literal(Datum::Int(number)) if number != 0 => Vec::new(),
        _ => vec![bound],
    })
}

fn compound(binder: &mut Binder<'_>, parts: &[String]) -> Result<Expression> {
    match parts {
        [table, column] => {
            scope::resolve_column(binder, &ColumnPath { schema: None, table: Some(table), column })
        }
        [schema, table, column] => scope::resolve_column(
            binder,
            &ColumnPath { schema: Some(schema), table: Some(table), column },
        ),
        _ => Err(SqlError::not_supported("a name of this many parts")),
    }
}

fn user_variable(typing: &mut Typing<'_>, name: &str) -> Expression {
    let name: Arc<str> = name.to_lowercase().into();
    typing.facts.is_cacheable = false;
    let collation = typing.context.evaluation.connection_collation;
    let ty = typing.context.variables.user(&name).unwrap_or_else(|| {
        let chars = match typing.context.assigned_variables.borrow().contains(&name) {
            true => variable_form::LONGEST,
            false => parameter::TEXT_CHARS,
        };
        SqlType::varchar(chars, collation)
    });
    // The statement itself may set it.
    let ty = ty.with_nullable(true).with_coercibility(Coercibility::Implicit);
    Expression { kind: ExpressionKind::UserVariable(name), ty }
}

fn system_variable(context: &PlanContext<'_>, scope: &str, name: &str) -> Result<Expression> {
    let global = scope.eq_ignore_ascii_case("global");
    let name: Arc<str> = name.to_lowercase().into();
    let ty = context.variables.system(&name, global)?;
    let ty = ty.with_coercibility(Coercibility::SystemConstant);
    Ok(Expression { kind: ExpressionKind::SystemVariable { name, global }, ty })
}

fn is(binder: &mut Binder<'_>, operand: &Expr, test: IsTest, negated: bool) -> Result<Expression> {
    let operand = match test {
        IsTest::Null => bind_single(binder, operand)?,
        _ => truth(binder, operand)?,
    };
    Ok(expression_builders::is(operand, test, negated))
}

fn unary(binder: &mut Binder<'_>, op: UnaryOperator, operand: &Expr) -> Result<Expression> {
    match op {
        UnaryOperator::Plus => bind_single(binder, operand),
        UnaryOperator::Not | UnaryOperator::BangNot => {
            if op == UnaryOperator::BangNot {
                warn(binder.typing.context, DEPRECATED, deprecated("!", "NOT"));
            }
            let operand = truth(binder, operand)?;
            Ok(negated(operand))
        }
        UnaryOperator::Minus => minus(binder, operand),
        UnaryOperator::BitwiseNot => {
            let operand = bind_single(binder, operand)?;
            expression_builders::call(&mut binder.typing, "~", vec![operand])
        }
    }
}

/// `NOT x`, moved inward through comparisons.
pub(crate) fn negated(operand: Expression) -> Expression {
    match operand.kind {
        ExpressionKind::Compare { operator, kind, sides } => {
            match expression_builders::opposite(operator) {
                Some(operator) => Expression {
                    kind: ExpressionKind::Compare { operator, kind, sides },
                    ty: operand.ty,
                },
                None => expression_builders::not(Expression {
                    kind: ExpressionKind::Compare { operator, kind, sides },
                    ty: operand.ty,
                }),
            }
        }
        ExpressionKind::InList { operand: inner, list, kind, negated } => Expression {
            kind: ExpressionKind::InList { operand: inner, list, kind, negated: !negated },
            ty: operand.ty,
        },
        ExpressionKind::Not(inner) if expression_builders::is_truth(&inner) => *inner,
        ExpressionKind::And(list) => expression::or(list.into_iter().map(negated).collect()),
        ExpressionKind::Or(list) => expression::and(list.into_iter().map(negated).collect()),
        _ => expression_builders::not(operand),
    }
}

fn minus(binder: &mut Binder<'_>, operand: &Expr) -> Result<Expression> {
    if let Expr::Value(value) = operand
        && let Some(number) = literal::negative_literal(value)
    {
        return Ok(number);
    }
    let operand = bind_single(binder, operand)?;
    if literal::written_bytes(&operand).is_some() {
        let number = coerce::cast_to(&mut binder.typing, operand, SqlType::double().not_null());
        return expression_builders::call(&mut binder.typing, "NEG", vec![number]);
    }
    // The negation of a constant is exact, even if the positive number fits no integer.
    let operand = match operand.kind {
        ExpressionKind::Literal(Datum::Int(number)) if number < 0 => {
            coerce::cast_to(&mut binder.typing, operand, SqlType::decimal(19, 0).not_null())
        }
        _ => operand,
    };
    expression_builders::call(&mut binder.typing, "NEG", vec![operand])
}

fn binary(
    binder: &mut Binder<'_>,
    left: &Expr,
    op: BinaryOperator,
    right: &Expr,
) -> Result<Expression> {
    if let Some(operator) = comparison_operator(op) {
        return predicate::comparison(binder, left, operator, right);
    }
    match op {
        BinaryOperator::And => {
            let sides = both_conditions(binder, left, right)?;
            Ok(expression::and(sides))
        }
        BinaryOperator::Or => {
            let sides = both_conditions(binder, left, right)?;
            Ok(expression::or(sides))
        }
        BinaryOperator::Xor => {
            let sides = both_conditions(binder, left, right)?;
            let ty = SqlType::boolean().with_nullable(sides.iter().any(|side| side.ty.nullable));
            let sides: [Expression; 2] = sides.try_into().expect("two sides were bound");
            Ok(Expression { kind: ExpressionKind::Xor(Box::new(sides)), ty })
        }
        BinaryOperator::Assignment => assign_variable(binder, left, right),
        BinaryOperator::Plus | BinaryOperator::Minus if is_interval(left) || is_interval(right) => {
            cast::add_interval(binder, left, right, op == BinaryOperator::Minus)
        }
        BinaryOperator::Arrow | BinaryOperator::LongArrow => {
            let arguments = vec![bind_single(binder, left)?, bind_single(binder, right)?];
            let extracted =
                expression_builders::call(&mut binder.typing, "JSON_EXTRACT", arguments)?;
            match op {
                BinaryOperator::LongArrow => {
                    expression_builders::call(&mut binder.typing, "JSON_UNQUOTE", vec![extracted])
                }
                _ => Ok(extracted),
            }
        }
        _ => {
            let name = operator_name(op)?;
            let mut arguments = vec![bind_single(binder, left)?, bind_single(binder, right)?];
            if matches!(name, "+" | "-" | "*" | "/" | "DIV" | "%") {
                let context = binder.typing.context;
                let operands = arguments.into_iter().map(|one| literal::as_operand(context, one));
                arguments = operands.collect();
            }
            expression_builders::call(&mut binder.typing, name, arguments)
        }
    }
}

fn both_conditions(binder: &mut Binder<'_>, left: &Expr, right: &Expr) -> Result<Vec<Expression>> {
    Ok(vec![truth(binder, left)?, truth(binder, right)?])
}

fn assign_variable(binder: &mut Binder<'_>, left: &Expr, right: &Expr) -> Result<Expression> {
    let Expr::UserVariable(name) = left else {
        return Err(SqlError::not_supported("an assignment to what is no variable"));
    };
    binder.typing.facts.is_cacheable = false;
    binder.typing.facts.is_repeatable = false;
    let value = bind_single(binder, right)?;
    let value = match assigned_type(&value.ty) {
        Some(ty) => coerce::cast_to(&mut binder.typing, value, ty),
        None => value,
    };
    let name: Arc<str> = name.to_lowercase().into();
    binder.typing.context.assigned_variables.borrow_mut().push(Arc::clone(&name));
    let ty = value.ty.clone();
    Ok(Expression { kind: ExpressionKind::AssignVariable { name, value: Box::new(value) }, ty })
}

/// The type of an assignment if it is not that of its value: what a variable does not keep as it is
/// becomes what the variable keeps, no longer than it was.
fn assigned_type(ty: &SqlType) -> Option<SqlType> {
    let kept = ty.as_variable();
    let kind = match (&ty.kind, kept.kind) {
        (TypeKind::Float | TypeKind::Year, kind) => kind,
        (of, TypeKind::Varchar { collation, .. }) if of.is_temporal() || *of == TypeKind::Json => {
            TypeKind::Varchar { max_chars: ty.max_text_chars(), collation }
        }
        _ => return None,
    };
    Some(SqlType { kind, ..kept })
}

fn tuple(binder: &mut Binder<'_>, items: &[Expr]) -> Result<Expression> {
    let items = bind_all(binder, items)?;
    let ty = SqlType::null();
    Ok(Expression { kind: ExpressionKind::Row(items), ty })
}

fn is_interval(expr: &Expr) -> bool {
    matches!(expr, Expr::Interval(_))
}

/// The comparison for an operator.
#[must_use]
pub(crate) fn comparison_operator(op: BinaryOperator) -> Option<CompareOperator> {
    Some(match op {
        BinaryOperator::Eq => CompareOperator::Equal,
        BinaryOperator::NullSafeEq => CompareOperator::NullSafeEqual,
        BinaryOperator::NotEq => CompareOperator::NotEqual,
        BinaryOperator::Lt => CompareOperator::Less,
        BinaryOperator::LtEq => CompareOperator::LessOrEqual,
        BinaryOperator::Gt => CompareOperator::Greater,
        BinaryOperator::GtEq => CompareOperator::GreaterOrEqual,
        _ => return None,
    })
}

fn operator_name(op: BinaryOperator) -> Result<&'static str> {
    Ok(match op {
        BinaryOperator::Plus => "+",
        BinaryOperator::Minus => "-",
        BinaryOperator::Multiply => "*",
        BinaryOperator::Divide => "/",
        BinaryOperator::Modulo => "%",
        BinaryOperator::IntegerDivide => "DIV",
        BinaryOperator::BitwiseAnd => "&",
        BinaryOperator::BitwiseOr => "|",
        BinaryOperator::BitwiseXor => "^",
        BinaryOperator::ShiftLeft => "<<",
        BinaryOperator::ShiftRight => ">>",
        BinaryOperator::Concat => "||",
        other => return Err(SqlError::not_supported(other.text())),
    })
}
