//! Expressions of messages over the rows of a node: the same evaluation as a statement's, over a
//! frame with a slot for each column that is read.

use std::sync::Arc;

use firn_api::rows::expression as message;
use firn_api::rows::expression::{
    ExpressionEvaluator, MOST_NESTED, RowExpression, RowValues, Step,
};
use firn_format::definition::TableDefinition;
use firn_format::value::Value;
use firn_sql_functions as functions;
use firn_sql_logical::expression::{Expression, ExpressionKind, Slot, Subquery};
use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::{Datum, EvaluationContext, SqlType, TimeZone, TypeKind, write_sort_key};

use crate::evaluate::Evaluate;
use crate::frame::Frame;
use crate::known_patterns::KnownPatterns;
use crate::purity::{is_pure_call, is_pure_cast};
use crate::sent::exactly_stored;
use crate::value_type::{
    known_collation, received_comparison, received_operator, received_test, received_type,
};

/// The least value that a session may set `max_allowed_packet` to. A longer result leaves a
/// warning, and the row to the statement, which knows the session's value.
const LEAST_PACKET_BYTES: u64 = 1024;

/// Evaluates expressions for a node.
pub struct PureEvaluator;

impl ExpressionEvaluator for PureEvaluator {
    fn compile(
        &self,
        table: &TableDefinition,
        expression: &message::Expression,
    ) -> Option<Box<dyn RowExpression>> {
        Some(Box::new(Compiled::of(table, expression)?))
    }
}

/// An expression, and the frame that it is evaluated over.
struct Compiled {
    expression: Expression,
    /// The column of each of the first slots.
    columns: Vec<(u16, SqlType)>,
    frame: RowFrame,
}

impl Compiled {
    fn of(table: &TableDefinition, expression: &message::Expression) -> Option<Compiled> {
        let mut receiver = Receiver { table, columns: Vec::new(), kept: Vec::new() };
        receiver.find_columns(&expression.steps)?;
        let expression = receiver.expression(&expression.steps)?;
        let slots = receiver.columns.len() + receiver.kept.len();
        let frame = RowFrame::new(slots);
        Some(Compiled { expression, columns: receiver.columns, frame })
    }

    /// Puts the row's values in their slots; `None` if one is not at hand.
    fn fill(&mut self, row: &RowValues<'_, '_>) -> Option<()> {
        let zone = &self.frame.context.time_zone;
        for ((ordinal, ty), slot) in self.columns.iter().zip(&mut self.frame.slots) {
            *slot = Datum::from_value_ref(row(usize::from(*ordinal))?, ty, zone).ok()?;
        }
        Some(())
    }

    /// The value over a row, unless it is unknown.
    fn value(&mut self, row: &RowValues<'_, '_>) -> Option<Datum> {
        self.fill(row)?;
        let value = self.expression.evaluate(&mut self.frame);
        self.quiet(value)
    }

    /// The result of an evaluation, unless it raised something.
    fn quiet<T>(&mut self, evaluated: Result<T>) -> Option<T> {
        let context = &self.frame.context;
        let is_quiet = context.warning_count() == 0;
        if !is_quiet {
            context.forget_conditions_after(0);
        }
        evaluated.ok().filter(|_| is_quiet)
    }
}

impl RowExpression for Compiled {
    fn holds(&mut self, row: &RowValues<'_, '_>) -> Option<bool> {
        self.fill(row)?;
        let holds = self.expression.is_true(&mut self.frame);
        self.quiet(holds)
    }

    fn group_value(&mut self, row: &RowValues<'_, '_>, key: &mut Vec<u8>) -> Option<Value> {
        let datum = self.value(row)?;
        let stored = exactly_stored(&datum, &self.expression.ty)?;
        write_sort_key(&datum, &self.expression.ty, false, key);
        Some(stored)
    }

    fn number(&mut self, row: &RowValues<'_, '_>) -> Option<Option<i128>> {
        match (self.value(row)?, &self.expression.ty.kind) {
            (Datum::Null, _) => Some(None),
            (Datum::Int(number), TypeKind::Integer { .. }) => Some(Some(number.into())),
            (Datum::UInt(number), TypeKind::Integer { .. }) => Some(Some(number.into())),
            // A sum has the most digits of its numbers, so all of them must have as many.
            (Datum::Decimal(number), TypeKind::Decimal { scale, .. })
                if number.scale() == *scale =>
            {
                Some(Some(number.unscaled()?))
            }
            _ => None,
        }
    }
}

/// Makes an expression of steps, which are untrusted.
struct Receiver<'t> {
    table: &'t TableDefinition,
    columns: Vec<(u16, SqlType)>,
    /// The numbers of kept values; their slots follow those of the columns.
    kept: Vec<u32>,
}

/// An operand that waits for its operation, and how deep it is nested.
type Waiting = Vec<(Expression, usize)>;

impl Receiver<'_> {
    /// Gives slots to columns and kept values.
    fn find_columns(&mut self, steps: &[Step]) -> Option<()> {
        for step in steps {
            match step {
                Step::Column { ordinal, ty } => {
                    let ty = received_type(ty)?;
                    let column = self.table.columns.get(usize::from(*ordinal))?;
                    let is_same = ty.kind.column_type() == Some(column.column_type);
                    if !is_same || column.dropped_in.is_some() {
                        return None;
                    }
                    if self.columns.iter().all(|(known, _)| known != ordinal) {
                        self.columns.push((*ordinal, ty));
                    }
                }
                Step::Keep { number } if !self.kept.contains(number) => self.kept.push(*number),
                _ => {}
            }
        }
        Some(())
    }

    fn expression(&self, steps: &[Step]) -> Option<Expression> {
        let mut waiting = Waiting::new();
        for step in steps {
            self.take(step, &mut waiting)?;
        }
        let (expression, _) = waiting.pop()?;
        waiting.is_empty().then_some(expression)
    }

    /// Replaces a step's operands by its expression.
    fn take(&self, step: &Step, waiting: &mut Waiting) -> Option<()> {
        let operands = operands_of(step)?;
        let first = waiting.len().checked_sub(operands)?;
        let depth = waiting[first..].iter().map(|(_, depth)| depth + 1).max().unwrap_or(0);
        if depth >= MOST_NESTED {
            return None;
        }
        let operands = waiting.drain(first..).map(|(operand, _)| operand).collect();
        let expression = self.made_of(step, operands)?;
        waiting.push((expression, depth));
        Some(())
    }

    fn made_of(&self, step: &Step, mut operands: Vec<Expression>) -> Option<Expression> {
        let value =
            |kind, ty: &message::ValueType| Some(Expression { kind, ty: received_type(ty)? });
        match step {
            Step::Column { ordinal, ty } => {
                let slot = self.columns.iter().position(|(known, _)| known == ordinal)?;
                value(ExpressionKind::Slot(slot_of(slot)?), ty)
            }
            Step::Literal { value: stored, ty } => {
                let own = received_type(ty)?;
                let datum = Datum::from_value_ref(stored.as_ref(), &own, &TimeZone::utc()).ok()?;
                value(ExpressionKind::Literal(datum), ty)
            }
            Step::Call { function, result, .. } => {
                let function = functions::find(function)?;
                let is_pure = is_pure_call(function, &operands, &received_type(result)?);
                if !is_pure || function.check_arity(operands.len()).is_err() {
                    return None;
                }
                value(ExpressionKind::Call { function, arguments: operands }, result)
            }
            Step::Cast { to } => {
                let operand = operands.pop()?;
                if !is_pure_cast(&operand.ty.kind, &received_type(to)?.kind) {
                    return None;
                }
                value(ExpressionKind::Cast(Box::new(operand)), to)
            }
            Step::Case { has_otherwise, result, .. } => {
                let otherwise = has_otherwise.then(|| operands.pop()).flatten().map(Box::new);
                let mut rest = operands.into_iter();
                let mut branches = Vec::new();
                while let Some(condition) = rest.next() {
                    branches.push((condition, rest.next()?));
                }
                value(ExpressionKind::Case { branches, otherwise }, result)
            }
            Step::Coalesce { result, .. } => value(ExpressionKind::Coalesce(operands), result),
            Step::Keep { number } => {
                let operand = operands.pop()?;
                let ty = operand.ty.clone();
                let kind = ExpressionKind::Keep {
                    slot: self.kept_slot(*number)?,
                    value: Box::new(operand),
                };
                Some(Expression { kind, ty })
            }
            Step::Kept { number, ty } => value(ExpressionKind::Kept(self.kept_slot(*number)?), ty),
            _ => {
                let kind = condition(step, operands)?;
                Some(Expression { kind, ty: SqlType::boolean() })
            }
        }
    }

    fn kept_slot(&self, number: u32) -> Option<Slot> {
        let place = self.kept.iter().position(|known| *known == number)?;
        slot_of(self.columns.len() + place)
    }
}

fn slot_of(place: usize) -> Option<Slot> {
    u32::try_from(place).ok().map(Slot)
}

/// How many operands a step takes.
fn operands_of(step: &Step) -> Option<usize> {
    let count = match step {
        Step::Column { .. } | Step::Literal { .. } | Step::Kept { .. } => 0,
        Step::Cast { .. } | Step::Not | Step::Is { .. } | Step::Keep { .. } => 1,
        Step::Compare { .. } | Step::Xor | Step::Like { .. } => 2,
        Step::Call { arguments, .. } => *arguments,
        Step::And { operands } | Step::Or { operands } | Step::Coalesce { operands, .. } => {
            *operands
        }
        Step::In { items, .. } => items.checked_add(1)?,
        Step::Case { branches, has_otherwise, .. } => {
            branches.checked_mul(2)?.checked_add(u32::from(*has_otherwise))?
        }
    };
    usize::try_from(count).ok()
}

/// The operation of a step that is true, false or NULL.
fn condition(step: &Step, mut operands: Vec<Expression>) -> Option<ExpressionKind> {
    Some(match step {
        Step::Compare { operator, by } => ExpressionKind::Compare {
            operator: received_operator(*operator)?,
            kind: received_comparison(*by)?,
            sides: pair(operands)?,
        },
        Step::And { .. } => ExpressionKind::And(operands),
        Step::Or { .. } => ExpressionKind::Or(operands),
        Step::Xor => ExpressionKind::Xor(pair(operands)?),
        Step::Not => ExpressionKind::Not(Box::new(operands.pop()?)),
        Step::Is { test, is_negated } => ExpressionKind::Is {
            operand: Box::new(operands.pop()?),
            test: received_test(*test),
            negated: *is_negated,
        },
        Step::In { by, is_negated, .. } => {
            let list = operands.split_off(1);
            ExpressionKind::InList {
                operand: Box::new(operands.pop()?),
                list,
                kind: received_comparison(*by)?,
                negated: *is_negated,
            }
        }
        Step::Like { collation, escape, is_negated } => {
            let [text, pattern] = *pair(operands)?;
            ExpressionKind::Like {
                text: Box::new(text),
                pattern: Box::new(pattern),
                collation: known_collation(*collation)?,
                escape: *escape,
                negated: *is_negated,
            }
        }
        _ => return None,
    })
}

fn pair(operands: Vec<Expression>) -> Option<Box<[Expression; 2]>> {
    operands.into_boxed_slice().try_into().ok()
}

/// The frame of one row, under the strictest settings: what is quiet here is quiet in any session.
struct RowFrame {
    slots: Vec<Datum>,
    context: EvaluationContext,
    patterns: KnownPatterns,
}

impl RowFrame {
    fn new(slots: usize) -> RowFrame {
        let context = EvaluationContext {
            max_allowed_packet_bytes: LEAST_PACKET_BYTES,
            max_error_count: 0,
            ..EvaluationContext::default()
        };
        let slots = std::iter::repeat_with(|| Datum::Null).take(slots).collect();
        RowFrame { slots, context, patterns: KnownPatterns::default() }
    }
}

fn not_of_a_row<T>() -> Result<T> {
    Err(SqlError::new(1235, "An expression over a row has no session"))
}

impl Frame for RowFrame {
    #[inline]
    fn slot(&self, slot: Slot) -> Option<&Datum> {
        self.slots.get(slot.0 as usize)
    }

    fn set_slot(&mut self, slot: Slot, value: Datum) {
        if let Some(place) = self.slots.get_mut(slot.0 as usize) {
            *place = value;
        }
    }

    fn parameter(&self, _number: u32) -> Option<&Datum> {
        None
    }

    #[inline]
    fn context(&self) -> &EvaluationContext {
        &self.context
    }

    fn patterns(&self) -> &KnownPatterns {
        &self.patterns
    }

    fn patterns_mut(&mut self) -> &mut KnownPatterns {
        &mut self.patterns
    }

    fn subquery(&mut self, _subquery: &Subquery) -> Result<Datum> {
        not_of_a_row()
    }

    fn user_variable(&self, _name: &str) -> Result<Datum> {
        not_of_a_row()
    }

    fn set_user_variable(&mut self, _name: &str, _value: Datum, _ty: &SqlType) {}

    fn system_variable(&mut self, _name: &Arc<str>, _global: bool) -> Result<Datum> {
        not_of_a_row()
    }
}
