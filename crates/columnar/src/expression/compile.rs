//! Expressions to kernels.

use firn_sql::execute::Evaluate;
use std::sync::Arc;

use firn_format::value::CollationId;
use firn_sql::collation::{self, LikePattern};
use firn_sql::execute::Execution;
use firn_sql::expression::{CompareOperator, Expression, ExpressionKind, IsTest, Slot};
use firn_sql::functions::Volatility;
use firn_sql::plan::visit;
use firn_sql::types::{ComparisonKind, Datum, IntWidth, TypeKind};

use super::arithmetic::{Arithmetic, Sign};
use super::compare::{Comparison, TIME_OF_DAY_BITS, common, converts};
use super::text::{Question, TextTest};
use super::{Kernel, Rows};
use crate::scope::Scope;
use crate::stop_reason::{Result, declined};
use crate::value::{Field, Physical};

/// Makes kernels of expressions over the columns of a relation.
pub(crate) struct Compiler<'c, 'e, 'x> {
    pub(crate) fields: &'c [Field],
    pub(crate) scope: &'c Arc<Scope>,
    pub(crate) execution: &'e mut Execution<'x>,
}

/// Whether an expression is, apart from its operands, one that only the session can evaluate.
fn wants_session(expression: &Expression) -> bool {
    match &expression.kind {
        ExpressionKind::Subquery(_)
        | ExpressionKind::UserVariable(_)
        | ExpressionKind::AssignVariable { .. }
        | ExpressionKind::SystemVariable { .. }
        | ExpressionKind::Unresolved(_) => true,
        ExpressionKind::Call { function, .. } => {
            matches!(function.volatility, Volatility::Session | Volatility::Row)
        }
        _ => false,
    }
}

/// Whether an expression may be evaluated by any thread, any number of times.
fn is_worker_safe(expression: &Expression) -> bool {
    !visit::any(expression, &wants_session)
}

/// Whether a part of an expression varies with the rows and only the session can evaluate it, so
/// that there is no kernel for the expression. The session evaluates constant parts beforehand.
pub(crate) fn needs_session(expression: &Expression) -> bool {
    if is_constant(expression) {
        return false;
    }
    let mut needs = wants_session(expression);
    visit::for_each_operand(expression, &mut |operand| needs = needs || needs_session(operand));
    needs
}

fn is_constant(expression: &Expression) -> bool {
    visit::reads(expression).is_empty()
}

impl Compiler<'_, '_, '_> {
    /// The kernel of an expression.
    pub(crate) fn compile(&mut self, expression: &Expression) -> Result<Kernel> {
        if let ExpressionKind::Slot(slot) = &expression.kind {
            let (number, field) = self.field(*slot)?;
            return Ok(Kernel::Column(number, field.physical));
        }
        if is_constant(expression) && !matches!(expression.kind, ExpressionKind::Row(_)) {
            let physical = Physical::of(&expression.ty)?;
            return Kernel::constant(expression.evaluate(self.execution)?, physical);
        }
        match self.kernel(expression)? {
            Some(kernel) => Ok(kernel),
            None => self.rows(expression),
        }
    }

    /// Conditions that must all be true.
    pub(crate) fn compile_all(&mut self, conditions: &[Expression]) -> Result<Vec<Kernel>> {
        conditions.iter().map(|condition| self.compile(condition)).collect()
    }

    fn field(&self, slot: Slot) -> Result<(usize, &Field)> {
        let found = self.fields.iter().enumerate().find(|(_, field)| field.slot == slot);
        match found {
            Some(found) => Ok(found),
            None => declined("an expression reads a slot that is not filled here"),
        }
    }

    /// The row executor's evaluation. Subexpressions that read no slot, including subqueries,
    /// become literals.
    fn rows(&mut self, expression: &Expression) -> Result<Kernel> {
        let mut expression = expression.clone();
        self.fold(&mut expression)?;
        if !is_worker_safe(&expression) {
            return declined("an expression has to be evaluated by the session");
        }
        let mut inputs = Vec::new();
        for slot in visit::reads(&expression).iter() {
            let (number, field) = self.field(slot)?;
            inputs.push((slot, number, field.physical));
        }
        let physical = Physical::of(&expression.ty)?;
        let scope = Arc::clone(self.scope);
        Ok(Kernel::Rows(Box::new(Rows { expression, inputs, physical, scope })))
    }

    fn fold(&mut self, expression: &mut Expression) -> Result<()> {
        let is_leaf = matches!(
            expression.kind,
            ExpressionKind::Literal(_) | ExpressionKind::Parameter(_) | ExpressionKind::Row(_)
        );
        // A pure expression stays as it is: SQL may never evaluate it at its place.
        if !is_leaf && is_constant(expression) && !is_worker_safe(expression) {
            let value = expression.evaluate(self.execution)?;
            expression.kind = ExpressionKind::Literal(value);
            return Ok(());
        }
        let mut done = Ok(());
        visit::for_each_operand_mut(expression, &mut |operand| {
            if done.is_ok() {
                done = self.fold(operand);
            }
        });
        done
    }

    /// The kernel of an expression, if there is one for its kind.
    fn kernel(&mut self, expression: &Expression) -> Result<Option<Kernel>> {
        Ok(match &expression.kind {
            ExpressionKind::And(list) => Some(Kernel::And(self.truths(list)?)),
            ExpressionKind::Or(list) => Some(Kernel::Or(self.truths(list)?)),
            ExpressionKind::Not(one) => Some(Kernel::Not(Box::new(self.truth(one)?))),
            ExpressionKind::Is { operand, test: IsTest::Null, negated } => {
                Some(Kernel::IsNull(Box::new(self.compile(operand)?), *negated))
            }
            ExpressionKind::Compare { operator, kind, sides } => {
                self.comparison(*operator, *kind, &sides[0], &sides[1])?
            }
            ExpressionKind::InList { operand, list, kind, negated } => {
                self.in_list(operand, list, *kind, *negated)?
            }
            ExpressionKind::Like { text, pattern, collation, escape, negated } => {
                self.like(text, pattern, (*collation, *escape), *negated)?
            }
            ExpressionKind::Call { function, arguments } => {
                self.call(function.name, arguments, expression)?
            }
            ExpressionKind::Cast(operand) => self.cast(operand, expression)?,
            ExpressionKind::Case { branches, otherwise } => {
                self.case(branches, otherwise.as_deref(), expression)?
            }
            ExpressionKind::Coalesce(operands) => self.coalesce(operands, expression)?,
            _ => None,
        })
    }

    /// An expression used as a condition.
    fn truth(&mut self, expression: &Expression) -> Result<Kernel> {
        let kernel = self.compile(expression)?;
        match kernel.physical() {
            Physical::Bytes => self.rows(expression),
            _ => Ok(kernel),
        }
    }

    fn truths(&mut self, list: &[Expression]) -> Result<Vec<Kernel>> {
        list.iter().map(|one| self.truth(one)).collect()
    }

    fn comparison(
        &mut self,
        operator: CompareOperator,
        kind: ComparisonKind,
        left: &Expression,
        right: &Expression,
    ) -> Result<Option<Kernel>> {
        let is_row = |side: &Expression| matches!(side.kind, ExpressionKind::Row(_));
        if is_row(left) || is_row(right) || kind == ComparisonKind::Json {
            return Ok(None);
        }
        let (one, other) = (self.compile(left)?, self.compile(right)?);
        if let ComparisonKind::Text(id) = kind {
            return text_comparison(operator, id, one, other);
        }
        let Some(physical) = common(kind, one.physical(), other.physical()) else {
            return Ok(None);
        };
        let left = self.converted(one, physical)?;
        let right = self.converted(other, physical)?;
        Ok(Some(Kernel::Compare(Box::new(Comparison { operator, left, right }))))
    }

    /// A kernel in another layout.
    fn converted(&mut self, kernel: Kernel, to: Physical) -> Result<Kernel> {
        if kernel.physical() == to {
            return Ok(kernel);
        }
        if let Kernel::Constant(_, from, array) = &kernel {
            let array = super::compare::convert(array, *from, to)?;
            return Ok(Kernel::Constant(to.datum(&*array, 0), to, array));
        }
        Ok(Kernel::Convert(Box::new(kernel), to))
    }

    fn in_list(
        &mut self,
        operand: &Expression,
        list: &[Expression],
        kind: ComparisonKind,
        negated: bool,
    ) -> Result<Option<Kernel>> {
        if matches!(operand.kind, ExpressionKind::Row(_)) {
            return Ok(None);
        }
        if let ComparisonKind::Text(id) = kind
            && list.iter().all(is_constant)
        {
            let operand = self.compile(operand)?;
            if operand.physical() != Physical::Bytes {
                return Ok(None);
            }
            let collation = collation::get(id);
            let (mut keys, mut has_null) = (rustc_hash::FxHashSet::default(), false);
            for item in list {
                let value = item.evaluate(self.execution)?;
                let Some(text) = value.as_bytes() else {
                    if value.is_null() {
                        has_null = true;
                        continue;
                    }
                    return Ok(None);
                };
                let mut key = Vec::new();
                collation.write_sort_key(text, &mut key);
                keys.insert(key.into_boxed_slice());
            }
            let question = Question::OneOf(collation, keys, has_null);
            return Ok(Some(Kernel::Text(Box::new(TextTest { operand, question, negated }))));
        }
        if list.len() > 32 {
            return Ok(None);
        }
        let mut tests = Vec::with_capacity(list.len());
        for item in list {
            match self.comparison(CompareOperator::Equal, kind, operand, item)? {
                Some(test) => tests.push(test),
                None => return Ok(None),
            }
        }
        let any = Kernel::Or(tests);
        Ok(Some(if negated { Kernel::Not(Box::new(any)) } else { any }))
    }

    fn like(
        &mut self,
        text: &Expression,
        pattern: &Expression,
        (collation, escape): (CollationId, Option<char>),
        negated: bool,
    ) -> Result<Option<Kernel>> {
        if !is_constant(pattern) {
            return Ok(None);
        }
        let Datum::Text(wanted) = pattern.evaluate(self.execution)? else { return Ok(None) };
        let operand = self.compile(text)?;
        if operand.physical() != Physical::Bytes {
            return Ok(None);
        }
        let question = Question::Like(LikePattern::new(collation::get(collation), &wanted, escape));
        Ok(Some(Kernel::Text(Box::new(TextTest { operand, question, negated }))))
    }

    fn call(
        &mut self,
        name: &str,
        arguments: &[Expression],
        expression: &Expression,
    ) -> Result<Option<Kernel>> {
        let sign = match name {
            "+" => Sign::Plus,
            "-" => Sign::Minus,
            "*" => Sign::Times,
            _ => return self.date_part(name, arguments, expression),
        };
        let [left, right] = arguments else { return Ok(None) };
        let physical = Physical::of(&expression.ty)?;
        let (one, other) = (self.compile(left)?, self.compile(right)?);
        let sides = match (physical, one.physical(), other.physical()) {
            (Physical::Int, Physical::Int, Physical::Int)
            | (Physical::UInt, Physical::UInt, Physical::UInt)
            | (Physical::Double, Physical::Double, Physical::Double) => Some((one, other)),
            // A difference below zero is out of its range.
            (Physical::Decimal(_), ..)
                if sign == Sign::Minus && expression.ty.kind.is_unsigned() =>
            {
                None
            }
            (Physical::Decimal(scale), left, right) => {
                self.decimal_sides(sign, scale, (one, left), (other, right))?
            }
            _ => None,
        };
        Ok(sides.map(|(left, right)| {
            Kernel::Arithmetic(Box::new(Arithmetic { sign, left, right, physical }))
        }))
    }

    /// Both sides of a decimal operation, in the scales that determine the result's scale.
    fn decimal_sides(
        &mut self,
        sign: Sign,
        scale: u8,
        (left, left_is): (Kernel, Physical),
        (right, right_is): (Kernel, Physical),
    ) -> Result<Option<(Kernel, Kernel)>> {
        let digits = |physical| match physical {
            Physical::Int | Physical::UInt => Some(0),
            Physical::Decimal(scale) => Some(scale),
            _ => None,
        };
        let Some((one, other)) = digits(left_is).zip(digits(right_is)) else { return Ok(None) };
        let (one, other) = match sign {
            Sign::Times if one + other == scale => (one, other),
            Sign::Plus | Sign::Minus if one.max(other) <= scale => (scale, scale),
            _ => return Ok(None),
        };
        let left = self.converted(left, Physical::Decimal(one))?;
        let right = self.converted(right, Physical::Decimal(other))?;
        Ok(Some((left, right)))
    }

    fn date_part(
        &mut self,
        name: &str,
        arguments: &[Expression],
        expression: &Expression,
    ) -> Result<Option<Kernel>> {
        let (part, operand) = match (name, arguments) {
            ("EXTRACT", [unit, operand]) if is_constant(unit) => {
                let unit = unit.evaluate(self.execution)?;
                let Some(unit) = unit.as_bytes() else { return Ok(None) };
                (String::from_utf8_lossy(unit).to_ascii_uppercase(), operand)
            }
            (name, [operand]) => (name.to_owned(), operand),
            _ => return Ok(None),
        };
        let (shift, mask) = match &*part {
            "YEAR" => (9, i64::MAX),
            "MONTH" => (5, 15),
            "DAY" | "DAYOFMONTH" => (0, 31),
            _ => return Ok(None),
        };
        let physical = Physical::of(&expression.ty)?;
        let operand = self.compile(operand)?;
        let shift = match operand.physical() {
            Physical::Date => shift,
            Physical::DateTime => shift + TIME_OF_DAY_BITS,
            _ => return Ok(None),
        };
        if !matches!(physical, Physical::Int | Physical::UInt) {
            return Ok(None);
        }
        Ok(Some(Kernel::DatePart { operand: Box::new(operand), shift, mask, physical }))
    }

    fn cast(&mut self, operand: &Expression, expression: &Expression) -> Result<Option<Kernel>> {
        let to = Physical::of(&expression.ty)?;
        let kernel = self.compile(operand)?;
        let from = kernel.physical();
        let is_safe = match (from, to) {
            (Physical::Decimal(_) | Physical::Int | Physical::UInt, Physical::Decimal(_)) => {
                whole_digits(&operand.ty.kind) <= whole_digits(&expression.ty.kind)
            }
            (Physical::Bytes, Physical::Bytes) => false,
            (Physical::Int, Physical::Int) | (Physical::UInt, Physical::UInt) => {
                whole_digits(&operand.ty.kind) <= whole_digits(&expression.ty.kind)
                    && matches!(operand.ty.kind, TypeKind::Integer { .. })
                    && matches!(expression.ty.kind, TypeKind::Integer { .. })
            }
            (_, Physical::Double) => expression.ty.kind == TypeKind::Double,
            (Physical::Date, Physical::DateTime) => true,
            _ => false,
        };
        if !is_safe || !converts(from, to) {
            return Ok(None);
        }
        self.converted(kernel, to).map(Some)
    }

    fn case(
        &mut self,
        branches: &[(Expression, Expression)],
        otherwise: Option<&Expression>,
        expression: &Expression,
    ) -> Result<Option<Kernel>> {
        let physical = Physical::of(&expression.ty)?;
        let mut compiled = Vec::with_capacity(branches.len());
        for (condition, value) in branches {
            let Some(value) = self.branch(value, physical)? else { return Ok(None) };
            compiled.push((self.truth(condition)?, value));
        }
        let otherwise = match otherwise {
            None => None,
            Some(value) => match self.branch(value, physical)? {
                Some(value) => Some(Box::new(value)),
                None => return Ok(None),
            },
        };
        Ok(Some(Kernel::Case { branches: compiled, otherwise, physical }))
    }

    /// A value of a case, in the layout of the whole.
    fn branch(&mut self, value: &Expression, physical: Physical) -> Result<Option<Kernel>> {
        let kernel = self.compile(value)?;
        if let Kernel::Constant(Datum::Null, _, _) = &kernel {
            return Kernel::constant(Datum::Null, physical).map(Some);
        }
        Ok((kernel.physical() == physical).then_some(kernel))
    }

    fn coalesce(
        &mut self,
        operands: &[Expression],
        expression: &Expression,
    ) -> Result<Option<Kernel>> {
        let physical = Physical::of(&expression.ty)?;
        let mut branches = Vec::with_capacity(operands.len());
        for operand in operands {
            let Some(value) = self.branch(operand, physical)? else { return Ok(None) };
            let Some(again) = self.branch(operand, physical)? else { return Ok(None) };
            branches.push((Kernel::IsNull(Box::new(again), true), value));
        }
        Ok(Some(Kernel::Case { branches, otherwise: None, physical }))
    }
}

/// The most digits before the point of an exact type.
fn whole_digits(kind: &TypeKind) -> u32 {
    match kind {
        TypeKind::Integer { width, .. } => match width {
            IntWidth::One => 3,
            IntWidth::Two => 5,
            IntWidth::Three => 8,
            IntWidth::Four => 10,
            IntWidth::Eight => 20,
        },
        TypeKind::Decimal { precision, scale, .. } => u32::from(precision - scale),
        TypeKind::Year => 4,
        _ => 20,
    }
}

fn text_comparison(
    operator: CompareOperator,
    id: CollationId,
    one: Kernel,
    other: Kernel,
) -> Result<Option<Kernel>> {
    if one.physical() != Physical::Bytes || other.physical() != Physical::Bytes {
        return Ok(None);
    }
    let (operator, operand, constant) = match (one, other) {
        (operand, Kernel::Constant(Datum::Text(text), ..)) => (operator, operand, text),
        (Kernel::Constant(Datum::Text(text), ..), operand) => (mirrored(operator), operand, text),
        (left, right) if id == CollationId::BINARY => {
            let comparison = Comparison { operator, left, right };
            return Ok(Some(Kernel::Compare(Box::new(comparison))));
        }
        _ => return Ok(None),
    };
    if operator == CompareOperator::NullSafeEqual {
        return Ok(None);
    }
    let question = Question::Compare(operator, collation::get(id), constant.to_vec().into());
    Ok(Some(Kernel::Text(Box::new(TextTest { operand, question, negated: false }))))
}

/// The operator with its sides exchanged.
fn mirrored(operator: CompareOperator) -> CompareOperator {
    use CompareOperator as C;
    match operator {
        C::Less => C::Greater,
        C::LessOrEqual => C::GreaterOrEqual,
        C::Greater => C::Less,
        C::GreaterOrEqual => C::LessOrEqual,
        same => same,
    }
}
