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

mod chosen_number;

use std::cmp::Ordering;

use firn_base::memory;
use firn_format::value::CollationId;
use smallvec::SmallVec;

use firn_sql_collation::{self as collation, LikePattern};
use firn_sql_functions::{Call, Function};
use firn_sql_logical::expression::{CompareOperator, Expression, ExpressionKind, IsTest};
use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::variable_form;
use firn_sql_types::{
    Coercibility, ComparisonKind, Datum, EvaluationContext, SqlType, TypeKind, cast,
};

use crate::frame::Frame;
use crate::known_patterns::{Known, KnownPatterns, Source};
use chosen_number::number_of_choice;

pub(crate) use chosen_number::is_number_of_choice;

/// A value that already exists somewhere, or was computed.
pub enum Operand {
    /// It is at [`Evaluate::place`].
    Placed,
    /// This value.
    Owned(Datum),
}

/// The value of an expression over a frame.
pub trait Evaluate {
    /// The value, if it already exists: that of a slot, a literal or a parameter.
    fn place<'a>(&'a self, frame: &'a impl Frame) -> Option<&'a Datum>;

    /// The value.
    ///
    /// # Errors
    /// Errors of its functions, casts and subqueries; 1317 if the statement was cancelled.
    fn evaluate(&self, frame: &mut impl Frame) -> Result<Datum>;

    /// The value as a truth value; `None` is NULL.
    ///
    /// # Errors
    /// As [`Evaluate::evaluate`].
    fn truth(&self, frame: &mut impl Frame) -> Result<Option<bool>>;

    /// The value, computed unless it already exists; [`Evaluate::of`] returns it.
    ///
    /// # Errors
    /// As [`Evaluate::evaluate`].
    fn operand(&self, frame: &mut impl Frame) -> Result<Operand>;

    /// The datum of an operand of this expression.
    ///
    /// # Errors
    /// 1105 if the frame lacks it.
    #[inline]
    fn of<'a>(&'a self, operand: &'a Operand, frame: &'a impl Frame) -> Result<&'a Datum> {
        match operand {
            Operand::Owned(datum) => Ok(datum),
            Operand::Placed => self.place(frame).ok_or_else(no_such_value),
        }
    }

    /// Whether the value is true: neither false nor NULL.
    ///
    /// # Errors
    /// As [`Evaluate::evaluate`].
    #[inline]
    fn is_true(&self, frame: &mut impl Frame) -> Result<bool> {
        Ok(self.truth(frame)? == Some(true))
    }
}

impl Evaluate for Expression {
    #[inline]
    fn place<'a>(&'a self, frame: &'a impl Frame) -> Option<&'a Datum> {
        match &self.kind {
            ExpressionKind::Slot(slot) => frame.slot(*slot),
            ExpressionKind::Literal(datum) => Some(datum),
            ExpressionKind::Parameter(number) => frame.parameter(*number),
            _ => None,
        }
    }

    #[inline]
    fn operand(&self, frame: &mut impl Frame) -> Result<Operand> {
        match &self.kind {
            ExpressionKind::Slot(_) | ExpressionKind::Literal(_) | ExpressionKind::Parameter(_) => {
                Ok(Operand::Placed)
            }
            _ => Ok(Operand::Owned(self.evaluate(frame)?)),
        }
    }

    fn evaluate(&self, frame: &mut impl Frame) -> Result<Datum> {
        match &self.kind {
            ExpressionKind::Slot(_) | ExpressionKind::Literal(_) | ExpressionKind::Parameter(_) => {
                self.place(frame).ok_or_else(no_such_value)?.try_clone()
            }
            ExpressionKind::Call { function, arguments } => {
                call(function, arguments, &self.ty, frame)
            }
            ExpressionKind::Cast(operand) => cast_operand(operand, &self.ty, frame),
            ExpressionKind::Case { branches, otherwise } => {
                case(branches, otherwise.as_deref(), frame)
            }
            ExpressionKind::Coalesce(operands) => coalesce(operands, frame),
            ExpressionKind::Keep { slot, value } => {
                let datum = value.evaluate(frame)?;
                frame.set_slot(*slot, datum.clone());
                Ok(datum)
            }
            ExpressionKind::Kept(slot) => frame.slot(*slot).ok_or_else(no_such_value)?.try_clone(),
            ExpressionKind::Subquery(subquery) => frame.subquery(subquery),
            ExpressionKind::UserVariable(name) => {
                let value = frame.user_variable(name)?;
                variable_form::read_as(value, &self.ty, frame.context())
            }
            ExpressionKind::AssignVariable { name, value } => {
                let datum = value.evaluate(frame)?;
                frame.set_user_variable(name, datum.try_clone()?, &value.ty);
                Ok(datum)
            }
            ExpressionKind::SystemVariable { name, global } => frame.system_variable(name, *global),
            ExpressionKind::Row(_) => {
                Err(SqlError::new(1241, "Operand should contain 1 column(s)"))
            }
            ExpressionKind::Unresolved(name) => Err(SqlError::new(
                1105,
                format!("Unknown error: '{name}' has no value where it stands"),
            )),
            _ => Ok(Datum::from_bool(self.truth(frame)?)),
        }
    }

    fn truth(&self, frame: &mut impl Frame) -> Result<Option<bool>> {
        match &self.kind {
            ExpressionKind::Compare { operator, kind, sides } => {
                compare_sides(*operator, kind, sides, frame)
            }
            ExpressionKind::And(operands) => all(operands, frame),
            ExpressionKind::Or(operands) => any(operands, frame),
            ExpressionKind::Xor(sides) => {
                let Some(left) = sides[0].truth(frame)? else { return Ok(None) };
                Ok(sides[1].truth(frame)?.map(|right| left != right))
            }
            ExpressionKind::Not(operand) => Ok(operand.truth(frame)?.map(|truth| !truth)),
            ExpressionKind::Is { operand, test, negated } => {
                Ok(Some(is(operand, *test, frame)? != *negated))
            }
            ExpressionKind::InList { operand, list, kind, negated } => {
                let found = in_list(operand, list, kind, frame)?;
                Ok(found.map(|found| found != *negated))
            }
            ExpressionKind::Like { text, pattern, collation, escape, negated } => {
                let matches = self::like(text, pattern, *collation, *escape, frame)?;
                Ok(matches.map(|matches| matches != *negated))
            }
            _ => {
                let operand = self.operand(frame)?;
                truth_of(self.of(&operand, frame)?, &self.ty, frame.context())
            }
        }
    }
}

fn call(
    function: &'static Function,
    arguments: &[Expression],
    result: &SqlType,
    frame: &mut impl Frame,
) -> Result<Datum> {
    let mut values: SmallVec<[Datum; 3]> = SmallVec::with_capacity(arguments.len());
    let mut text_bytes = 0;
    let is_exact = matches!(result.kind, TypeKind::Decimal { .. });
    let stops_at_null = function.strict && (is_exact || !function.evaluates_all);
    for step in 0..arguments.len() {
        let argument = &arguments[place_of_step(function, step, arguments.len())];
        if let Some(needs) = function.needs
            && !matches!(argument.kind, ExpressionKind::Literal(_) | ExpressionKind::Slot(_))
            && !needs(&values)
        {
            values.push(Datum::Null);
            continue;
        }
        let value = argument.evaluate(frame)?;
        if stops_at_null && value.is_null() {
            if !function.reads_before_null {
                return Ok(Datum::Null);
            }
            values.resize(arguments.len(), Datum::Null);
            break;
        }
        if let Datum::Text(octets) = &value {
            text_bytes += octets.len();
        }
        values.push(value);
    }
    if !function.order.is_empty() {
        values = as_written(function, values);
    }
    // The results of most functions are no larger than their arguments; the others ask for the
    // rest.
    let _promise = memory::ask(text_bytes)?;
    let types: SmallVec<[&SqlType; 3]> = arguments.iter().map(|argument| &argument.ty).collect();
    let context = frame.context();
    context.promised_bytes.set(text_bytes);
    (function.evaluate)(&values, &Call { context, arguments: &types, result })
}

/// Which of `count` arguments is evaluated at a step.
fn place_of_step(function: &Function, step: usize, count: usize) -> usize {
    match function.order {
        [] => step,
        order => {
            let named = order.iter().copied().filter(|place| *place < count);
            named.chain(order.len()..count).nth(step).unwrap_or(step)
        }
    }
}

/// The values of arguments as they are written, of those in the order of their evaluation.
fn as_written(function: &Function, evaluated: SmallVec<[Datum; 3]>) -> SmallVec<[Datum; 3]> {
    let count = evaluated.len();
    let mut values: SmallVec<[Datum; 3]> = SmallVec::from_elem(Datum::Null, count);
    for (step, value) in evaluated.into_iter().enumerate() {
        values[place_of_step(function, step, count)] = value;
    }
    values
}

/// The value of an operand, converted to a type.
fn cast_operand(operand: &Expression, ty: &SqlType, frame: &mut impl Frame) -> Result<Datum> {
    if let ExpressionKind::Case { .. }
    | ExpressionKind::Coalesce(_)
    | ExpressionKind::Call { .. }
    | ExpressionKind::Literal(_) = &operand.kind
        && let Some(number) = number_of_choice(operand, ty, frame)
    {
        return number;
    }
    let value = operand.operand(frame)?;
    let datum = operand.of(&value, frame)?;
    if ty.kind.is_string() && !operand.fits_as_text(datum, frame.context())? {
        return Ok(Datum::Null);
    }
    match (&operand.kind, datum) {
        (ExpressionKind::Call { function, .. }, Datum::Time(time_us))
            if ty.kind.is_string() && moves_moments(function.name) =>
        {
            moved_time_as_text(*time_us, &operand.ty, ty, frame.context())
        }
        (ExpressionKind::Slot(_), Datum::Text(_) | Datum::Double(_)) => {
            cast::cast_column(datum, &operand.ty, ty, frame.context())
        }
        (ExpressionKind::Literal(_) | ExpressionKind::Parameter(_), _) if is_written(operand) => {
            cast::cast(datum, &operand.ty, ty, frame.context())
        }
        (ExpressionKind::Cast(inner), _) if operand.ty.kind.is_binary() && is_written(inner) => {
            cast::cast(datum, &operand.ty, ty, frame.context())
        }
        (_, Datum::Text(_)) if matches!(ty.kind, TypeKind::Decimal { .. }) => {
            cast::exact_of(datum, &operand.ty, ty, frame.context())
        }
        _ => cast::cast(datum, &operand.ty, ty, frame.context()),
    }
}

/// Whether a function adds to dates, times and moments.
pub(crate) fn moves_moments(function: &str) -> bool {
    matches!(function, "DATE_ADD" | "DATE_SUB" | "TIMESTAMPADD" | "ADDTIME" | "SUBTIME")
}

/// The text of a time that such a function has made: the fraction of a second has all of its digits
/// or none, and the length of the type does not cut it.
fn moved_time_as_text(
    time_us: i64,
    from: &SqlType,
    ty: &SqlType,
    context: &EvaluationContext,
) -> Result<Datum> {
    let fsp = if time_us % 1_000_000 == 0 { 0 } else { 6 };
    let time = SqlType::new(TypeKind::Time { fsp });
    let whole = match &ty.kind {
        TypeKind::Char { max_chars, .. } | TypeKind::Varchar { max_chars, .. } => {
            *max_chars >= from.max_text_chars()
        }
        TypeKind::Varbinary { max_bytes } => *max_bytes >= from.max_text_chars(),
        _ => false,
    };
    let text = SqlType::long_text(ty.collation().unwrap_or(context.connection_collation));
    cast::cast(&Datum::Time(time_us), &time, if whole { &text } else { ty }, context)
}

/// Whether a constant stands in the statement, and is not what a call of it was evaluated to.
fn is_written(constant: &Expression) -> bool {
    match constant.kind {
        // One under a longer type keeps what it was before, and so does the value of a call. A
        // literal with a collation is a call as well.
        ExpressionKind::Literal(_) => {
            let before = constant.ty.before.get();
            let is_collated = constant.ty.coercibility == Coercibility::Explicit;
            !is_collated && before.is_none_or(|before| before.written.0.kind != constant.ty.kind)
        }
        ExpressionKind::Parameter(_) => true,
        _ => false,
    }
}

/// Whether a value counts as true; `None` for NULL.
///
/// # Errors
/// 1292 for a text that is no number, in a strict statement that stores.
pub fn truth_of(value: &Datum, ty: &SqlType, context: &EvaluationContext) -> Result<Option<bool>> {
    Ok(match value {
        Datum::Null => None,
        Datum::Int(number) => Some(*number != 0),
        Datum::UInt(number) => Some(*number != 0),
        Datum::Double(number) => Some(*number != 0.0),
        Datum::Decimal(number) => Some(!number.is_zero()),
        Datum::Date(packed) | Datum::Time(packed) | Datum::DateTime(packed) => Some(*packed != 0),
        other => Some(cast::to_double(other, ty, context)? != 0.0),
    })
}

fn no_such_value() -> SqlError {
    SqlError::new(1105, "Unknown error: the plan names a value that the execution does not have")
}

/// `AND`: false as soon as one is false, NULL if one is NULL.
fn all(operands: &[Expression], frame: &mut impl Frame) -> Result<Option<bool>> {
    let mut result = Some(true);
    for operand in operands {
        match operand.truth(frame)? {
            Some(true) => {}
            Some(false) => return Ok(Some(false)),
            None => result = None,
        }
    }
    Ok(result)
}

/// `OR`: true as soon as one is true, NULL if one is NULL.
fn any(operands: &[Expression], frame: &mut impl Frame) -> Result<Option<bool>> {
    let mut result = Some(false);
    for operand in operands {
        match operand.truth(frame)? {
            Some(false) => {}
            Some(true) => return Ok(Some(true)),
            None => result = None,
        }
    }
    Ok(result)
}

fn is(operand: &Expression, test: IsTest, frame: &mut impl Frame) -> Result<bool> {
    if test == IsTest::Null {
        let value = operand.operand(frame)?;
        return Ok(operand.of(&value, frame)?.is_null());
    }
    let truth = operand.truth(frame)?;
    Ok(truth == Some(test == IsTest::True))
}

fn case(
    branches: &[(Expression, Expression)],
    otherwise: Option<&Expression>,
    frame: &mut impl Frame,
) -> Result<Datum> {
    for (condition, value) in branches {
        if condition.is_true(frame)? {
            return value.evaluate(frame);
        }
    }
    otherwise.map_or(Ok(Datum::Null), |otherwise| otherwise.evaluate(frame))
}

fn coalesce(operands: &[Expression], frame: &mut impl Frame) -> Result<Datum> {
    for operand in operands {
        let value = operand.evaluate(frame)?;
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
    frame: &mut impl Frame,
) -> Result<Option<bool>> {
    let [left, right] = sides;
    if matches!(left.kind, ExpressionKind::Row(_)) || matches!(right.kind, ExpressionKind::Row(_)) {
        return compare_rows(operator, kind, sides, frame);
    }
    let one = left.operand(frame)?;
    if operator != CompareOperator::NullSafeEqual && left.of(&one, frame)?.is_null() {
        return Ok(None);
    }
    let other = right.operand(frame)?;
    let (one, other) = (left.of(&one, frame)?, right.of(&other, frame)?);
    Ok(compare_datums(operator, kind, one, other))
}

/// Compares two values; `None` is NULL.
#[inline]
pub fn compare_datums(
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
    frame: &mut impl Frame,
) -> Result<Option<bool>> {
    let one = row_values(&sides[0], frame)?;
    let other = row_values(&sides[1], frame)?;
    if one.len() != other.len() {
        let message = format!("Operand should contain {} column(s)", one.len());
        return Err(SqlError::new(1241, message));
    }
    let kinds = std::iter::repeat_n(kind, one.len());
    Ok(compare_tuples(operator, kinds, &one, &other))
}

fn row_values(side: &Expression, frame: &mut impl Frame) -> Result<Vec<Datum>> {
    match &side.kind {
        ExpressionKind::Row(values) => values.iter().map(|value| value.evaluate(frame)).collect(),
        _ => Ok(vec![side.evaluate(frame)?]),
    }
}

/// Compares rows value by value: `=` is true if all are equal; the first difference decides `<`.
pub fn compare_tuples<'k>(
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
    frame: &mut impl Frame,
) -> Result<Option<bool>> {
    if let ExpressionKind::Row(_) = operand.kind {
        return row_in_list(operand, list, kind, frame);
    }
    let sought = operand.operand(frame)?;
    if operand.of(&sought, frame)?.is_null() {
        // The items of a list that is not constant are evaluated even so, and may warn, unless NULL
        // is written.
        if !is_written_null(operand) {
            for item in list.iter().filter(|item| !is_placed(item)) {
                item.evaluate(frame)?;
            }
        }
        return Ok(None);
    }
    let mut result = Some(false);
    for item in list {
        let value = item.operand(frame)?;
        let (sought, value) = (operand.of(&sought, frame)?, item.of(&value, frame)?);
        match compare_datums(CompareOperator::Equal, kind, sought, value) {
            Some(true) => return Ok(Some(true)),
            Some(false) => {}
            None => result = None,
        }
    }
    Ok(result)
}

/// Whether the word NULL stands in the statement, and not a call or a parameter that is NULL.
pub(crate) fn is_written_null(operand: &Expression) -> bool {
    let before = operand.ty.before.get();
    matches!(operand.kind, ExpressionKind::Literal(Datum::Null))
        && before.is_none_or(|before| before.written.0.kind == TypeKind::Null)
}

/// Whether a value exists before it is evaluated.
fn is_placed(expression: &Expression) -> bool {
    matches!(
        expression.kind,
        ExpressionKind::Slot(_) | ExpressionKind::Literal(_) | ExpressionKind::Parameter(_)
    )
}

fn row_in_list(
    operand: &Expression,
    list: &[Expression],
    kind: &ComparisonKind,
    frame: &mut impl Frame,
) -> Result<Option<bool>> {
    let sought = row_values(operand, frame)?;
    let mut result = Some(false);
    for item in list {
        let row = row_values(item, frame)?;
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
    frame: &mut impl Frame,
) -> Result<Option<bool>> {
    let one = text.operand(frame)?;
    if text.of(&one, frame)?.is_null() {
        return Ok(None);
    }
    let other = pattern.operand(frame)?;
    let Datum::Text(wanted) = pattern.of(&other, frame)? else { return Ok(None) };
    let place = KnownPatterns::place(pattern);
    let source = Source { text: wanted, collation, escape };
    let context = frame.context();
    let matches = |pattern: &LikePattern| {
        let text = text.of(&one, frame)?.as_bytes();
        text.map(|text| pattern.matches_counted(text, |steps| context.count_steps(steps)))
            .transpose()
    };
    if let Some(known) = frame.patterns().get(place, source) {
        return matches(known);
    }
    let known = LikePattern::new(collation::get(collation), wanted, escape);
    let matches = matches(&known)?;
    let wanted = wanted.clone();
    frame.patterns_mut().learn(place, Known { text: wanted, collation, escape, pattern: known });
    Ok(matches)
}
