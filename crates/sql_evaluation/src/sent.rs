//! An expression of a statement as a node gets it.

use firn_api::rows::expression as message;
use firn_api::rows::expression::{MOST_NESTED, Step, ValueType};
use firn_format::value::Value;
use firn_sql_logical::expression::{Expression, ExpressionKind, Slot};
use firn_sql_types::{Datum, SqlType, TimeZone};

use crate::evaluate::{is_number_of_choice, is_written_null};
use crate::purity::{is_pure_call, is_pure_cast};
use crate::value_type::{sent_comparison, sent_operator, sent_test, sent_type};

/// Expressions with more steps are not sent.
const MOST_STEPS: usize = 4096;

/// What is known when an expression is sent.
pub trait Given {
    /// The ordinal of the column that fills a slot with each row; `None` for other slots.
    fn ordinal(&self, slot: Slot) -> Option<u16>;
    /// The value of a slot that no column of the table fills.
    fn slot(&self, slot: Slot) -> Option<&Datum>;
    /// The value of a parameter.
    fn parameter(&self, number: u32) -> Option<&Datum>;
}

/// The expression for a node, with the values of parameters and of other tables' columns written
/// out. `None` if its value depends on more than the row, or has no form in a message.
pub fn sent_expression(expression: &Expression, given: &impl Given) -> Option<message::Expression> {
    let mut sender = Sender { given, steps: Vec::new() };
    sender.add(expression, 0)?;
    Some(message::Expression { steps: sender.steps })
}

struct Sender<'g, G> {
    given: &'g G,
    steps: Vec<Step>,
}

impl<G: Given> Sender<'_, G> {
    fn add(&mut self, expression: &Expression, depth: usize) -> Option<()> {
        if depth >= MOST_NESTED || self.steps.len() >= MOST_STEPS {
            return None;
        }
        let step = match &expression.kind {
            ExpressionKind::Literal(datum) => literal(datum, &expression.ty)?,
            ExpressionKind::Parameter(number) => {
                literal(self.given.parameter(*number)?, &expression.ty)?
            }
            ExpressionKind::Slot(slot) => match self.given.ordinal(*slot) {
                Some(ordinal) => Step::Column { ordinal, ty: sent_type(&expression.ty)? },
                None => literal(self.given.slot(*slot)?, &expression.ty)?,
            },
            ExpressionKind::Call { function, arguments } => {
                if !is_pure_call(function, arguments, &expression.ty) {
                    return None;
                }
                let function = function.name.to_owned();
                let result = sent_type(&expression.ty)?;
                Step::Call { function, arguments: self.add_all(arguments, depth)?, result }
            }
            ExpressionKind::Cast(operand) => {
                if !is_pure_cast(&operand.ty.kind, &expression.ty.kind)
                    || self.is_other_column(operand)
                    || is_number_of_choice(operand, &expression.ty)
                {
                    return None;
                }
                self.add(operand, depth + 1)?;
                Step::Cast { to: sent_type(&expression.ty)? }
            }
            ExpressionKind::Case { branches, otherwise } => {
                for (condition, value) in branches {
                    self.add(condition, depth + 1)?;
                    self.add(value, depth + 1)?;
                }
                if let Some(otherwise) = otherwise {
                    self.add(otherwise, depth + 1)?;
                }
                let (has_otherwise, result) = (otherwise.is_some(), sent_type(&expression.ty)?);
                Step::Case { branches: count(branches)?, has_otherwise, result }
            }
            ExpressionKind::Coalesce(operands) => {
                let result = sent_type(&expression.ty)?;
                Step::Coalesce { operands: self.add_all(operands, depth)?, result }
            }
            ExpressionKind::Keep { slot, value } => {
                self.add(value, depth + 1)?;
                Step::Keep { number: slot.0 }
            }
            ExpressionKind::Kept(slot) => {
                Step::Kept { number: slot.0, ty: sent_type(&expression.ty)? }
            }
            _ => self.condition(expression, depth)?,
        };
        self.steps.push(step);
        Some(())
    }

    /// The operands and the step of what is true, false or NULL.
    fn condition(&mut self, expression: &Expression, depth: usize) -> Option<Step> {
        Some(match &expression.kind {
            ExpressionKind::Compare { operator, kind, sides } => {
                self.add_all(&**sides, depth)?;
                Step::Compare { operator: sent_operator(*operator)?, by: sent_comparison(*kind)? }
            }
            ExpressionKind::And(operands) => Step::And { operands: self.add_all(operands, depth)? },
            ExpressionKind::Or(operands) => Step::Or { operands: self.add_all(operands, depth)? },
            ExpressionKind::Xor(sides) => {
                self.add_all(&**sides, depth)?;
                Step::Xor
            }
            ExpressionKind::Not(operand) => {
                self.add(operand, depth + 1)?;
                Step::Not
            }
            ExpressionKind::Is { operand, test, negated } => {
                self.add(operand, depth + 1)?;
                Step::Is { test: sent_test(*test), is_negated: *negated }
            }
            ExpressionKind::InList { operand, list, kind, negated } => {
                self.add(operand, depth + 1)?;
                // A message does not say whether NULL is written, and that decides here.
                if matches!(self.steps.last(), Some(Step::Literal { value: Value::Null, .. }))
                    && !is_written_null(operand)
                {
                    return None;
                }
                let items = self.add_all(list, depth)?;
                Step::In { items, by: sent_comparison(*kind)?, is_negated: *negated }
            }
            ExpressionKind::Like { text, pattern, collation, escape, negated } => {
                self.add(text, depth + 1)?;
                self.add(pattern, depth + 1)?;
                Step::Like { collation: collation.0, escape: *escape, is_negated: *negated }
            }
            _ => return None,
        })
    }

    fn add_all(&mut self, operands: &[Expression], depth: usize) -> Option<u32> {
        operands.iter().try_for_each(|operand| self.add(operand, depth + 1))?;
        count(operands)
    }

    /// Whether the operand is a column of another table. Its value would be a literal at the node,
    /// and a cast of a literal differs from one of a column.
    fn is_other_column(&self, operand: &Expression) -> bool {
        match operand.kind {
            ExpressionKind::Slot(slot) => self.given.ordinal(slot).is_none(),
            _ => false,
        }
    }
}

fn count<T>(operands: &[T]) -> Option<u32> {
    u32::try_from(operands.len()).ok()
}

/// The step of a value that is known.
fn literal(datum: &Datum, ty: &SqlType) -> Option<Step> {
    let sent: ValueType = sent_type(ty)?;
    Some(Step::Literal { value: exactly_stored(datum, ty)?, ty: sent })
}

/// A value in stored form; `None` if it would not come back as it is.
pub(crate) fn exactly_stored(datum: &Datum, ty: &SqlType) -> Option<Value> {
    let zone = TimeZone::utc();
    let value = datum.to_stored(ty, &zone).ok()?;
    let again = Datum::from_value_ref(value.as_ref(), ty, &zone).ok()?;
    is_same(datum, &again).then_some(value)
}

/// Whether two values are the same to every function.
pub(crate) fn is_same(one: &Datum, other: &Datum) -> bool {
    match (one, other) {
        (Datum::Decimal(one), Datum::Decimal(other)) => {
            one == other && one.scale() == other.scale()
        }
        (Datum::Double(one), Datum::Double(other)) => one.to_bits() == other.to_bits(),
        _ => one == other,
    }
}
