//! Expressions: names, operators, and which part of the binder handles the rest.

use std::sync::Arc;

use crate::error::{Condition, Level, Result, SqlError};
use crate::expression::{self, CompareOperator, Expression, ExpressionKind, IsTest};
use crate::grammar::ast::{BinaryOperator, Expr, TruthTest, UnaryOperator};
use crate::types::{Coercibility, Datum, JsonValue, SqlType, TypeKind};
use crate::watch::{Recursion, nest};

use super::scope::ColumnPath;
use super::{Binder, make};

/// The warning for deprecated syntax.
pub(super) const DEPRECATED: u16 = 1287;

/// The text of [`DEPRECATED`].
pub(super) fn deprecated(old: &str, new: &str) -> String {
    format!(
        "'{old}' is deprecated and will be removed in a future release. Please use {new} instead"
    )
}

impl Binder<'_> {
    /// Binds an expression.
    ///
    /// # Errors
    /// Unknown or ambiguous names, incompatible types, unsupported operations.
    pub(crate) fn bind(&mut self, expr: &Expr) -> Result<Expression> {
        nest(Recursion::Bind)?;
        self.context.watch.step()?;
        self.context.watch.hold(size_of::<Expression>())?;
        match expr {
            Expr::Identifier(column) => {
                self.resolve_column(&ColumnPath { schema: None, table: None, column })
            }
            Expr::CompoundIdentifier(parts) => self.compound(parts),
            Expr::UserVariable(name) => Ok(self.user_variable(name)),
            Expr::SystemVariable { scope, name } => self.system_variable(scope, name),
            Expr::Value(value) => self.literal(value),
            Expr::BinaryOp { left, op, right } => self.binary(left, *op, right),
            Expr::UnaryOp { op, expr } => self.unary(*op, expr),
            Expr::Is { expr, test, negated } => {
                let test = match test {
                    TruthTest::Null | TruthTest::Unknown => IsTest::Null,
                    TruthTest::True => IsTest::True,
                    TruthTest::False => IsTest::False,
                };
                self.is(expr, test, *negated)
            }
            Expr::InList { expr, list, negated } => self.in_list(expr, list, *negated),
            Expr::InSubquery { expr: operand, subquery, negated } => {
                self.shared(expr, |binder| binder.in_subquery(operand, subquery, *negated))
            }
            Expr::Between { expr, negated, low, high } => self.between(expr, *negated, low, high),
            Expr::Like { negated, expr, pattern, escape } => {
                self.like(expr, pattern, escape.as_ref(), *negated)
            }
            Expr::Regexp { negated, expr, pattern } => self.regexp(expr, pattern, *negated),
            Expr::Quantified { left, op, all, subquery } => {
                self.quantified(left, *op, subquery, *all)
            }
            Expr::Case { operand, branches, otherwise } => {
                self.case(operand.as_deref(), branches, otherwise.as_deref())
            }
            Expr::Exists(subquery) => self.shared(expr, |binder| binder.exists(subquery)),
            Expr::Subquery(query) => self.shared(expr, |binder| binder.scalar_subquery(query)),
            Expr::Tuple(items) => self.tuple(items),
            Expr::Function(function) => self.function(function),
            _ => self.special(expr),
        }
    }

    /// Binds expressions.
    ///
    /// # Errors
    /// As [`Binder::bind`].
    pub(crate) fn bind_all<'e>(
        &mut self,
        list: impl IntoIterator<Item = &'e Expr>,
    ) -> Result<Vec<Expression>> {
        list.into_iter().map(|expr| self.bind(expr)).collect()
    }

    /// Binds an expression of a single value.
    ///
    /// # Errors
    /// 1241, and as [`Binder::bind`].
    pub(crate) fn bind_single(&mut self, expr: &Expr) -> Result<Expression> {
        let bound = self.bind(expr)?;
        self.single(bound)
    }

    /// A value as a condition; a hexadecimal or bit literal is a number there.
    ///
    /// # Errors
    /// As [`Binder::bind`].
    pub(crate) fn truth(&mut self, expr: &Expr) -> Result<Expression> {
        let bound = self.number_of_bytes(expr).map_or_else(|| self.bind(expr), Ok)?;
        if bound.ty.kind == TypeKind::Json {
            return self.is_not_zero(bound);
        }
        self.condition(bound)
    }

    /// A value as the test of `CASE` or `IF`: a document counts as the number that it is.
    ///
    /// # Errors
    /// As [`Binder::bind`].
    pub(crate) fn test(&mut self, expr: &Expr) -> Result<Expression> {
        let bound = self.number_of_bytes(expr).map_or_else(|| self.bind(expr), Ok)?;
        self.test_of(bound)
    }

    /// As [`Binder::test`], for an expression that is already bound.
    ///
    /// # Errors
    /// 1241
    pub(crate) fn test_of(&mut self, bound: Expression) -> Result<Expression> {
        if bound.ty.kind == TypeKind::Json {
            let nullable = bound.ty.nullable;
            return Ok(self.cast_to(bound, SqlType::double().with_nullable(nullable)));
        }
        self.condition(bound)
    }

    /// Adds a warning to every run of the plan.
    pub(crate) fn warn(&self, code: u16, message: String) {
        let condition = Condition { level: Level::Warning, code, message };
        self.context.conditions.borrow_mut().push(condition);
    }

    /// A document as a condition: true unless it is the number 0.
    fn is_not_zero(&mut self, document: Expression) -> Result<Expression> {
        let message = "Evaluating a JSON value in SQL boolean context does an implicit comparison \
                       against JSON integer 0; if this is not what you want, consider converting \
                       JSON to a SQL numeric type with JSON_VALUE RETURNING";
        self.warn(3986, message.to_owned());
        let zero = make::literal(Datum::from(JsonValue::Int(0)), SqlType::new(TypeKind::Json));
        self.compare(CompareOperator::NotEqual, document, zero)
    }

    /// Binds a condition and returns its conjuncts one by one.
    ///
    /// # Errors
    /// As [`Binder::bind`].
    pub(crate) fn bind_condition(&mut self, expr: &Expr) -> Result<Vec<Expression>> {
        let bound = self.truth(expr)?;
        Ok(match bound.kind {
            ExpressionKind::And(list) => list,
            ExpressionKind::Literal(Datum::Int(number)) if number != 0 => Vec::new(),
            _ => vec![bound],
        })
    }

    fn compound(&mut self, parts: &[String]) -> Result<Expression> {
        match parts {
            [table, column] => {
                self.resolve_column(&ColumnPath { schema: None, table: Some(table), column })
            }
            [schema, table, column] => self.resolve_column(&ColumnPath {
                schema: Some(schema),
                table: Some(table),
                column,
            }),
            _ => Err(SqlError::not_supported("a name of this many parts")),
        }
    }

    fn user_variable(&mut self, name: &str) -> Expression {
        let name: Arc<str> = name.to_lowercase().into();
        self.is_cacheable = false;
        // The statement itself may set it.
        let ty = self.context.variables.user(&name).with_nullable(true);
        Expression { kind: ExpressionKind::UserVariable(name), ty }
    }

    fn system_variable(&mut self, scope: &str, name: &str) -> Result<Expression> {
        let global = scope.eq_ignore_ascii_case("global");
        let name: Arc<str> = name.to_lowercase().into();
        let ty = self.context.variables.system(&name, global)?;
        let ty = ty.with_coercibility(Coercibility::SystemConstant);
        Ok(Expression { kind: ExpressionKind::SystemVariable { name, global }, ty })
    }

    fn is(&mut self, operand: &Expr, test: IsTest, negated: bool) -> Result<Expression> {
        let operand = match test {
            IsTest::Null => self.bind_single(operand)?,
            _ => self.truth(operand)?,
        };
        Ok(make::is(operand, test, negated))
    }

    fn unary(&mut self, op: UnaryOperator, operand: &Expr) -> Result<Expression> {
        match op {
            UnaryOperator::Plus => self.bind_single(operand),
            UnaryOperator::Not | UnaryOperator::BangNot => {
                if op == UnaryOperator::BangNot {
                    self.warn(DEPRECATED, deprecated("!", "NOT"));
                }
                let operand = self.truth(operand)?;
                Ok(self.negated(operand))
            }
            UnaryOperator::Minus => self.minus(operand),
            UnaryOperator::BitwiseNot => {
                let operand = self.bind_single(operand)?;
                self.call("~", vec![operand])
            }
        }
    }

    /// `NOT x`, moved inward through comparisons.
    pub(crate) fn negated(&mut self, operand: Expression) -> Expression {
        match operand.kind {
            ExpressionKind::Compare { operator, kind, sides } => match make::opposite(operator) {
                Some(operator) => Expression {
                    kind: ExpressionKind::Compare { operator, kind, sides },
                    ty: operand.ty,
                },
                None => make::not(Expression {
                    kind: ExpressionKind::Compare { operator, kind, sides },
                    ty: operand.ty,
                }),
            },
            ExpressionKind::InList { operand: inner, list, kind, negated } => Expression {
                kind: ExpressionKind::InList { operand: inner, list, kind, negated: !negated },
                ty: operand.ty,
            },
            ExpressionKind::Not(inner) if make::is_truth(&inner) => *inner,
            ExpressionKind::And(list) => {
                expression::or(list.into_iter().map(|one| self.negated(one)).collect())
            }
            ExpressionKind::Or(list) => {
                expression::and(list.into_iter().map(|one| self.negated(one)).collect())
            }
            _ => make::not(operand),
        }
    }

    fn minus(&mut self, operand: &Expr) -> Result<Expression> {
        if let Expr::Value(value) = operand
            && let Some(number) = self.negative_literal(value)
        {
            return Ok(number);
        }
        let operand = self.bind_single(operand)?;
        // The negation of a constant is exact, even if the positive number fits no integer.
        let operand = match operand.kind {
            ExpressionKind::Literal(Datum::Int(number)) if number < 0 => {
                self.cast_to(operand, SqlType::decimal(19, 0).not_null())
            }
            _ => operand,
        };
        self.call("NEG", vec![operand])
    }

    fn binary(&mut self, left: &Expr, op: BinaryOperator, right: &Expr) -> Result<Expression> {
        if let Some(operator) = comparison_operator(op) {
            return self.comparison(left, operator, right);
        }
        match op {
            BinaryOperator::And => {
                let sides = self.both_conditions(left, right)?;
                Ok(expression::and(sides))
            }
            BinaryOperator::Or => {
                let sides = self.both_conditions(left, right)?;
                Ok(expression::or(sides))
            }
            BinaryOperator::Xor => {
                let sides = self.both_conditions(left, right)?;
                let ty =
                    SqlType::boolean().with_nullable(sides.iter().any(|side| side.ty.nullable));
                let sides: [Expression; 2] = sides.try_into().expect("two sides were bound");
                Ok(Expression { kind: ExpressionKind::Xor(Box::new(sides)), ty })
            }
            BinaryOperator::Assignment => self.assign_variable(left, right),
            BinaryOperator::Plus | BinaryOperator::Minus
                if is_interval(left) || is_interval(right) =>
            {
                self.add_interval(left, right, op == BinaryOperator::Minus)
            }
            BinaryOperator::Arrow | BinaryOperator::LongArrow => {
                let arguments = vec![self.bind_single(left)?, self.bind_single(right)?];
                let extracted = self.call("JSON_EXTRACT", arguments)?;
                match op {
                    BinaryOperator::LongArrow => self.call("JSON_UNQUOTE", vec![extracted]),
                    _ => Ok(extracted),
                }
            }
            _ => {
                let name = operator_name(op)?;
                let arguments = vec![self.bind_single(left)?, self.bind_single(right)?];
                self.call(name, arguments)
            }
        }
    }

    fn both_conditions(&mut self, left: &Expr, right: &Expr) -> Result<Vec<Expression>> {
        Ok(vec![self.truth(left)?, self.truth(right)?])
    }

    fn assign_variable(&mut self, left: &Expr, right: &Expr) -> Result<Expression> {
        let Expr::UserVariable(name) = left else {
            return Err(SqlError::not_supported("an assignment to what is no variable"));
        };
        self.is_cacheable = false;
        self.is_repeatable = false;
        let value = self.bind_single(right)?;
        let name: Arc<str> = name.to_lowercase().into();
        let ty = value.ty.clone();
        Ok(Expression { kind: ExpressionKind::AssignVariable { name, value: Box::new(value) }, ty })
    }

    fn tuple(&mut self, items: &[Expr]) -> Result<Expression> {
        let items = self.bind_all(items)?;
        let ty = SqlType::null();
        Ok(Expression { kind: ExpressionKind::Row(items), ty })
    }
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
