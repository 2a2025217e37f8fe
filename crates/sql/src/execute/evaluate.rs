//! The value of an expression over a frame, in three-valued logic.
//!
//! ```text
//!   place      a slot, literal or parameter as it is: nothing is copied
//!   evaluate   any expression, as a new value
//!   truth      a condition: true, false or NULL, without a datum for it
//! ```
//!
//! What SQL leaves unevaluated stays so: `AND` ends at the first false, `OR` at the first true,
//! `CASE` and `COALESCE` at the first branch that is taken. Arguments are evaluated from left to
//! right, so `@a := …` takes effect in the written order.

use std::cmp::Ordering;

use firn_base::memory;
use firn_format::value::CollationId;
use smallvec::SmallVec;

use crate::collation::{self, LikePattern};
use crate::error::{Result, SqlError};
use crate::expression::{CompareOperator, Expression, ExpressionKind, IsTest};
use crate::functions::{Call, Function};
use crate::types::{Coercibility, ComparisonKind, Datum, SqlType, TypeKind, cast};

use super::known_patterns::{Known, KnownPatterns, Source};
use super::{Execution, values};

/// A value that already exists somewhere, or was computed.
pub enum Operand {
    /// It is at [`Evaluate::place`].
    Placed,
    /// This value.
    Owned(Datum),
}

/// The value of an expression in an execution.
pub trait Evaluate {
    /// The value, if it already exists: that of a slot, a literal or a parameter.
    fn place<'a>(&'a self, execution: &'a Execution<'_>) -> Option<&'a Datum>;

    /// The value.
    ///
    /// # Errors
    /// Errors of its functions, casts and subqueries; 1317 if the statement was cancelled.
    fn evaluate(&self, execution: &mut Execution<'_>) -> Result<Datum>;

    /// The value as a truth value; `None` is NULL.
    ///
    /// # Errors
    /// As [`Evaluate::evaluate`].
    fn truth(&self, execution: &mut Execution<'_>) -> Result<Option<bool>>;

    /// The value, computed unless it already exists; [`Evaluate::of`] returns it.
    ///
    /// # Errors
    /// As [`Evaluate::evaluate`].
    fn operand(&self, execution: &mut Execution<'_>) -> Result<Operand>;

    /// The datum of an operand of this expression.
    ///
    /// # Errors
    /// 1105 if the execution lacks it.
    #[inline]
    fn of<'a>(&'a self, operand: &'a Operand, execution: &'a Execution<'_>) -> Result<&'a Datum> {
        match operand {
            Operand::Owned(datum) => Ok(datum),
            Operand::Placed => self.place(execution).ok_or_else(no_such_value),
        }
    }

    /// Whether the value is true: neither false nor NULL.
    ///
    /// # Errors
    /// As [`Evaluate::evaluate`].
    #[inline]
    fn is_true(&self, execution: &mut Execution<'_>) -> Result<bool> {
        Ok(self.truth(execution)? == Some(true))
    }
}

impl Evaluate for Expression {
    #[inline]
    fn place<'a>(&'a self, execution: &'a Execution<'_>) -> Option<&'a Datum> {
        match &self.kind {
            ExpressionKind::Slot(slot) => execution.frame.slots.get(slot.0 as usize),
            ExpressionKind::Literal(datum) => Some(datum),
            ExpressionKind::Parameter(number) => execution.frame.parameters.get(*number as usize),
            _ => None,
        }
    }

    #[inline]
    fn operand(&self, execution: &mut Execution<'_>) -> Result<Operand> {
        match &self.kind {
            ExpressionKind::Slot(_) | ExpressionKind::Literal(_) | ExpressionKind::Parameter(_) => {
                Ok(Operand::Placed)
            }
            _ => Ok(Operand::Owned(self.evaluate(execution)?)),
        }
    }

    fn evaluate(&self, execution: &mut Execution<'_>) -> Result<Datum> {
        match &self.kind {
            ExpressionKind::Slot(_) | ExpressionKind::Literal(_) | ExpressionKind::Parameter(_) => {
                self.place(execution).ok_or_else(no_such_value)?.try_clone()
            }
            ExpressionKind::Call { function, arguments } => {
                call(function, arguments, &self.ty, execution)
            }
            ExpressionKind::Cast(operand) => cast_operand(operand, &self.ty, execution),
            ExpressionKind::Case { branches, otherwise } => {
                case(branches, otherwise.as_deref(), execution)
            }
            ExpressionKind::Coalesce(operands) => coalesce(operands, execution),
            ExpressionKind::Keep { slot, value } => {
                let datum = value.evaluate(execution)?;
                execution.frame.set(*slot, datum.clone());
                Ok(datum)
            }
            ExpressionKind::Kept(slot) => Ok(execution.frame.get(*slot).clone()),
            ExpressionKind::Subquery(subquery) => super::subquery::evaluate(subquery, execution),
            ExpressionKind::UserVariable(name) => execution.session.user_variable(name),
            ExpressionKind::AssignVariable { name, value } => {
                let datum = value.evaluate(execution)?;
                execution.session.set_user_variable(name, datum.try_clone()?, &value.ty);
                Ok(datum)
            }
            ExpressionKind::SystemVariable { name, global } => {
                execution.system_variable(name, *global)
            }
            ExpressionKind::Row(_) => {
                Err(SqlError::new(1241, "Operand should contain 1 column(s)"))
            }
            ExpressionKind::Unresolved(name) => Err(SqlError::new(
                1105,
                format!("Unknown error: '{name}' has no value where it stands"),
            )),
            _ => Ok(Datum::from_bool(self.truth(execution)?)),
        }
    }

    fn truth(&self, execution: &mut Execution<'_>) -> Result<Option<bool>> {
        match &self.kind {
            ExpressionKind::Compare { operator, kind, sides } => {
                compare_sides(*operator, kind, sides, execution)
            }
            ExpressionKind::And(operands) => all(operands, execution),
            ExpressionKind::Or(operands) => any(operands, execution),
            ExpressionKind::Xor(sides) => {
                let Some(left) = sides[0].truth(execution)? else { return Ok(None) };
                Ok(sides[1].truth(execution)?.map(|right| left != right))
            }
            ExpressionKind::Not(operand) => Ok(operand.truth(execution)?.map(|truth| !truth)),
            ExpressionKind::Is { operand, test, negated } => {
                Ok(Some(is(operand, *test, execution)? != *negated))
            }
            ExpressionKind::InList { operand, list, kind, negated } => {
                let found = in_list(operand, list, kind, execution)?;
                Ok(found.map(|found| found != *negated))
            }
            ExpressionKind::Like { text, pattern, collation, escape, negated } => {
                let matches = self::like(text, pattern, *collation, *escape, execution)?;
                Ok(matches.map(|matches| matches != *negated))
            }
            _ => {
                let operand = self.operand(execution)?;
                values::truth(self.of(&operand, execution)?, &self.ty, execution.context)
            }
        }
    }
}

fn call(
    function: &'static Function,
    arguments: &[Expression],
    result: &SqlType,
    execution: &mut Execution<'_>,
) -> Result<Datum> {
    let mut values: SmallVec<[Datum; 3]> = SmallVec::with_capacity(arguments.len());
    let mut text_bytes = 0;
    let is_exact = matches!(result.kind, TypeKind::Decimal { .. });
    let stops_at_null = function.strict && (is_exact || !function.evaluates_all);
    for argument in arguments {
        let value = argument.evaluate(execution)?;
        if stops_at_null && value.is_null() {
            return Ok(Datum::Null);
        }
        if let Datum::Text(octets) = &value {
            text_bytes += octets.len();
        }
        values.push(value);
    }
    // The results of most functions are no larger than their arguments; the others ask for the
    // rest.
    let _promise = memory::ask(text_bytes)?;
    let types: SmallVec<[&SqlType; 3]> = arguments.iter().map(|argument| &argument.ty).collect();
    let context = execution.context;
    context.promised_bytes.set(text_bytes);
    (function.evaluate)(&values, &Call { context, arguments: &types, result })
}

fn cast_operand(
    operand: &Expression,
    ty: &SqlType,
    execution: &mut Execution<'_>,
) -> Result<Datum> {
    let value = operand.operand(execution)?;
    let datum = operand.of(&value, execution)?;
    if ty.kind.is_string() && !operand.fits_as_text(datum, execution.context)? {
        return Ok(Datum::Null);
    }
    match (&operand.kind, datum) {
        (ExpressionKind::Slot(_), Datum::Text(_) | Datum::Double(_)) => {
            cast::cast_column(datum, &operand.ty, ty, execution.context)
        }
        (ExpressionKind::Literal(_) | ExpressionKind::Parameter(_), _) => {
            cast::cast(datum, &operand.ty, ty, execution.context)
        }
        (_, Datum::Text(_))
            if matches!(ty.kind, TypeKind::Decimal { .. })
                && ty.coercibility != Coercibility::Implicit =>
        {
            cast::exact_of(datum, &operand.ty, ty, execution.context)
        }
        _ => cast::cast(datum, &operand.ty, ty, execution.context),
    }
}

fn no_such_value() -> SqlError {
    SqlError::new(1105, "Unknown error: the plan names a value that the execution does not have")
}

/// `AND`: false as soon as one is false, NULL if one is NULL.
fn all(operands: &[Expression], execution: &mut Execution<'_>) -> Result<Option<bool>> {
    let mut result = Some(true);
    for operand in operands {
        match operand.truth(execution)? {
            Some(true) => {}
            Some(false) => return Ok(Some(false)),
            None => result = None,
        }
    }
    Ok(result)
}

/// `OR`: true as soon as one is true, NULL if one is NULL.
fn any(operands: &[Expression], execution: &mut Execution<'_>) -> Result<Option<bool>> {
    let mut result = Some(false);
    for operand in operands {
        match operand.truth(execution)? {
            Some(false) => {}
            Some(true) => return Ok(Some(true)),
            None => result = None,
        }
    }
    Ok(result)
}

fn is(operand: &Expression, test: IsTest, execution: &mut Execution<'_>) -> Result<bool> {
    if test == IsTest::Null {
        let value = operand.operand(execution)?;
        return Ok(operand.of(&value, execution)?.is_null());
    }
    let truth = operand.truth(execution)?;
    Ok(truth == Some(test == IsTest::True))
}

fn case(
    branches: &[(Expression, Expression)],
    otherwise: Option<&Expression>,
    execution: &mut Execution<'_>,
) -> Result<Datum> {
    for (condition, value) in branches {
        if condition.is_true(execution)? {
            return value.evaluate(execution);
        }
    }
    otherwise.map_or(Ok(Datum::Null), |otherwise| otherwise.evaluate(execution))
}

fn coalesce(operands: &[Expression], execution: &mut Execution<'_>) -> Result<Datum> {
    for operand in operands {
        let value = operand.evaluate(execution)?;
        if !value.is_null() {
            return Ok(value);
        }
    }
    Ok(Datum::Null)
}

fn compare_sides(
    operator: CompareOperator,
    kind: &ComparisonKind,
    sides: &[Expression; 2],
    execution: &mut Execution<'_>,
) -> Result<Option<bool>> {
    let [left, right] = sides;
    if matches!(left.kind, ExpressionKind::Row(_)) || matches!(right.kind, ExpressionKind::Row(_)) {
        return compare_rows(operator, kind, sides, execution);
    }
    let one = left.operand(execution)?;
    if operator != CompareOperator::NullSafeEqual && left.of(&one, execution)?.is_null() {
        return Ok(None);
    }
    let other = right.operand(execution)?;
    let (one, other) = (left.of(&one, execution)?, right.of(&other, execution)?);
    Ok(compare_datums(operator, kind, one, other))
}

/// Compares two values; `None` is NULL.
#[inline]
pub(crate) fn compare_datums(
    operator: CompareOperator,
    kind: &ComparisonKind,
    one: &Datum,
    other: &Datum,
) -> Option<bool> {
    let ordering = match (one, other) {
        (Datum::Int(one), Datum::Int(other)) => one.cmp(other),
        (Datum::Null, _) | (_, Datum::Null) => {
            let both = one.is_null() && other.is_null();
            return (operator == CompareOperator::NullSafeEqual).then_some(both);
        }
        (one, other) => kind.compare(one, other)?,
    };
    Some(operator.holds(ordering))
}

/// A row beside a row.
fn compare_rows(
    operator: CompareOperator,
    kind: &ComparisonKind,
    sides: &[Expression; 2],
    execution: &mut Execution<'_>,
) -> Result<Option<bool>> {
    let one = row_values(&sides[0], execution)?;
    let other = row_values(&sides[1], execution)?;
    if one.len() != other.len() {
        let message = format!("Operand should contain {} column(s)", one.len());
        return Err(SqlError::new(1241, message));
    }
    let kinds = std::iter::repeat_n(kind, one.len());
    Ok(compare_tuples(operator, kinds, &one, &other))
}

fn row_values(side: &Expression, execution: &mut Execution<'_>) -> Result<Vec<Datum>> {
    match &side.kind {
        ExpressionKind::Row(values) => {
            values.iter().map(|value| value.evaluate(execution)).collect()
        }
        _ => Ok(vec![side.evaluate(execution)?]),
    }
}

/// Compares rows value by value: `=` is true if all are equal; the first difference decides `<`.
pub(crate) fn compare_tuples<'k>(
    operator: CompareOperator,
    kinds: impl Iterator<Item = &'k ComparisonKind>,
    one: &[Datum],
    other: &[Datum],
) -> Option<bool> {
    let equality = match operator {
        CompareOperator::NullSafeEqual => CompareOperator::NullSafeEqual,
        _ => CompareOperator::Equal,
    };
    let is_equality = operator == equality || operator == CompareOperator::NotEqual;
    let mut unknown = false;
    for ((kind, one), other) in kinds.zip(one).zip(other) {
        match compare_datums(equality, kind, one, other) {
            Some(true) => {}
            Some(false) if is_equality => return Some(operator == CompareOperator::NotEqual),
            Some(false) if unknown => return None,
            Some(false) => return compare_datums(operator, kind, one, other),
            None => unknown = true,
        }
    }
    if unknown { None } else { Some(operator.holds(Ordering::Equal)) }
}

fn in_list(
    operand: &Expression,
    list: &[Expression],
    kind: &ComparisonKind,
    execution: &mut Execution<'_>,
) -> Result<Option<bool>> {
    if let ExpressionKind::Row(_) = operand.kind {
        return row_in_list(operand, list, kind, execution);
    }
    let sought = operand.operand(execution)?;
    if operand.of(&sought, execution)?.is_null() {
        return Ok(None);
    }
    let mut result = Some(false);
    for item in list {
        let value = item.operand(execution)?;
        let (sought, value) = (operand.of(&sought, execution)?, item.of(&value, execution)?);
        match compare_datums(CompareOperator::Equal, kind, sought, value) {
            Some(true) => return Ok(Some(true)),
            Some(false) => {}
            None => result = None,
        }
    }
    Ok(result)
}

fn row_in_list(
    operand: &Expression,
    list: &[Expression],
    kind: &ComparisonKind,
    execution: &mut Execution<'_>,
) -> Result<Option<bool>> {
    let sought = row_values(operand, execution)?;
    let mut result = Some(false);
    for item in list {
        let row = row_values(item, execution)?;
        let kinds = std::iter::repeat_n(kind, sought.len());
        match compare_tuples(CompareOperator::Equal, kinds, &sought, &row) {
            Some(true) => return Ok(Some(true)),
            Some(false) => {}
            None => result = None,
        }
    }
    Ok(result)
}

fn like(
    text: &Expression,
    pattern: &Expression,
    collation: CollationId,
    escape: Option<char>,
    execution: &mut Execution<'_>,
) -> Result<Option<bool>> {
    let one = text.operand(execution)?;
    let other = pattern.operand(execution)?;
    let Datum::Text(wanted) = pattern.of(&other, execution)? else { return Ok(None) };
    let place = KnownPatterns::place(pattern);
    let source = Source { text: wanted, collation, escape };
    if let Some(known) = execution.frame.patterns.get(place, source) {
        return Ok(text.of(&one, execution)?.as_bytes().map(|text| known.matches(text)));
    }
    let known = LikePattern::new(collation::get(collation), wanted, escape);
    let matches = text.of(&one, execution)?.as_bytes().map(|text| known.matches(text));
    let wanted = wanted.clone();
    execution
        .frame
        .patterns
        .learn(place, Known { text: wanted, collation, escape, pattern: known });
    Ok(matches)
}
