//! What a condition says about a column, in a form that an index can use.
//!
//! ```text
//!   a = 5            Equal(5)            a IN (1, 2)      In [1, 2]
//!   a > b.x          Range(> b.x)        a LIKE 'abc%'    Range('abc' .. 'abc\u{10ffff}…')
//!   a = 1 OR a > 7   Or [[Equal], [Range]]
//! ```
//!
//! A predicate may be weaker than its condition (`is_exact` is then false): the condition still has
//! to be checked. It is never stronger. Values keep their types: the executor finds their place
//! among the values of the column.

use firn_format::value::CollationId;

use firn_sql_logical::expression::{CompareOperator, Expression, ExpressionKind, IsTest, Slot};
use firn_sql_types::{ComparisonKind, Datum, SqlType};

use super::comparisons::index_order;
use super::visit::{SlotSet, reads};

/// What a condition says about a column.
#[derive(Debug, Clone)]
pub struct Predicate {
    /// The column's slot.
    pub slot: Slot,
    pub test: ColumnTest,
    /// It is equivalent to the condition.
    pub is_exact: bool,
}

/// A test that an index understands.
#[derive(Debug, Clone)]
pub enum ColumnTest {
    Equal {
        /// The value, of the column's type.
        value: Expression,
        /// Whether NULL equals NULL.
        null_safe: bool,
    },
    /// Equal to one of these.
    In(Vec<Expression>),
    Range {
        /// The lower bound, and whether it is included.
        lower: Option<(Expression, bool)>,
        /// The upper bound, and whether it is included.
        upper: Option<(Expression, bool)>,
    },
}

/// The columns of a relation for which an index may be used, with their types.
pub struct Columns<'a> {
    /// Slot and type of each column that is read.
    pub slots: &'a [(Slot, &'a SqlType)],
    /// The slots known before a row of the relation is looked up.
    pub own: &'a SlotSet,
}

impl Columns<'_> {
    fn column(&self, expression: &Expression) -> Option<(Slot, &SqlType)> {
        let ExpressionKind::Slot(slot) = expression.kind else { return None };
        self.slots.iter().find(|(own, _)| *own == slot).copied()
    }

    fn is_outside(&self, expression: &Expression) -> bool {
        reads(expression).is_disjoint(self.own)
            && !firn_sql_logical::expression::volatility::is_row_dependent(expression)
    }

    /// What a condition says about a column, if an index can use it.
    #[must_use]
    pub fn predicate(&self, condition: &Expression) -> Option<Predicate> {
        match &condition.kind {
            ExpressionKind::Compare { operator, kind, sides } => {
                let [left, right] = &**sides;
                self.comparison(*operator, kind, left, right)
                    .or_else(|| self.comparison(turned(*operator), kind, right, left))
            }
            ExpressionKind::Is { operand, test: IsTest::Null, negated } => {
                let (slot, ty) = self.column(operand)?;
                let null =
                    Expression { kind: ExpressionKind::Literal(Datum::Null), ty: ty.clone() };
                let test = match negated {
                    false => ColumnTest::Equal { value: null, null_safe: true },
                    true => ColumnTest::Range { lower: Some((null, false)), upper: None },
                };
                Some(Predicate { slot, test, is_exact: true })
            }
            ExpressionKind::InList { operand, list, kind, negated: false } => {
                self.in_list(operand, list, kind)
            }
            ExpressionKind::Like { text, pattern, collation, escape, negated: false } => {
                self.like(text, pattern, *collation, *escape)
            }
            _ => None,
        }
    }

    fn comparison(
        &self,
        operator: CompareOperator,
        kind: &ComparisonKind,
        left: &Expression,
        right: &Expression,
    ) -> Option<Predicate> {
        let (slot, ty) = self.column(left)?;
        // A literal NULL as a bound means that there is none.
        let is_null = matches!(right.kind, ExpressionKind::Literal(Datum::Null));
        if !self.is_outside(right) || is_null && operator != CompareOperator::NullSafeEqual {
            return None;
        }
        let is_exact = index_order(ty, kind, &right.ty)?;
        let value = right.clone();
        let bound = |inclusive: bool| Some((value.clone(), inclusive || !is_exact));
        let null = || Expression { kind: ExpressionKind::Literal(Datum::Null), ty: ty.clone() };
        let (lower, upper) = match operator {
            CompareOperator::Equal | CompareOperator::NullSafeEqual => {
                let null_safe = operator == CompareOperator::NullSafeEqual;
                let test = ColumnTest::Equal { value, null_safe };
                return Some(Predicate { slot, test, is_exact });
            }
            CompareOperator::Greater => (bound(false), None),
            CompareOperator::GreaterOrEqual => (bound(true), None),
            CompareOperator::Less => (Some((null(), false)), bound(false)),
            CompareOperator::LessOrEqual => (Some((null(), false)), bound(true)),
            CompareOperator::NotEqual => return None,
        };
        Some(Predicate { slot, test: ColumnTest::Range { lower, upper }, is_exact })
    }

    fn in_list(
        &self,
        operand: &Expression,
        list: &[Expression],
        kind: &ComparisonKind,
    ) -> Option<Predicate> {
        let (slot, ty) = self.column(operand)?;
        let mut is_exact = true;
        let mut values = Vec::with_capacity(list.len());
        for item in list {
            if !self.is_outside(item) {
                return None;
            }
            if matches!(item.kind, ExpressionKind::Literal(Datum::Null)) {
                continue;
            }
            is_exact &= index_order(ty, kind, &item.ty)?;
            values.push(item.clone());
        }
        let test = match values.len() {
            0 => return None,
            1 => ColumnTest::Equal { value: values.swap_remove(0), null_safe: false },
            _ => ColumnTest::In(values),
        };
        Some(Predicate { slot, test, is_exact })
    }

    fn like(
        &self,
        text: &Expression,
        pattern: &Expression,
        collation: CollationId,
        escape: Option<char>,
    ) -> Option<Predicate> {
        let (slot, ty) = self.column(text)?;
        if !ty.kind.is_string() || ty.collation() != Some(collation) {
            return None;
        }
        let ExpressionKind::Literal(datum) = &pattern.kind else { return None };
        let pattern = std::str::from_utf8(datum.as_bytes()?).ok()?;
        let prefix = like_prefix(pattern, escape);
        if prefix.is_empty() {
            return None;
        }
        let (lower, upper) = like_bounds(&prefix, prefix.len() == pattern.len(), ty)?;
        let literal = |text: String| {
            let kind = ExpressionKind::Literal(Datum::text(text.into_bytes()));
            (Expression { kind, ty: ty.clone() }, true)
        };
        let test = ColumnTest::Range { lower: lower.map(literal), upper: upper.map(literal) };
        Some(Predicate { slot, test, is_exact: false })
    }
}

/// Bounds of the texts that begin with a prefix, in the order of their collation; `None` if there
/// are none.
///
/// A collation that pads with spaces sorts `abc⇥` before `abc`: the lower bound is then one
/// character shorter. Only Unicode has a greatest character that sorts after all continuations.
fn like_bounds(
    prefix: &str,
    is_whole: bool,
    column: &SqlType,
) -> Option<(Option<String>, Option<String>)> {
    let collation = firn_sql_collation::get(column.collation()?);
    let mut lower = prefix.to_owned();
    if collation.pads_with_spaces() {
        lower.pop();
    }
    let lower = (!lower.is_empty()).then_some(lower);
    let is_unicode = collation.charset.is_unicode();
    let upper = match is_whole {
        true => Some(prefix.to_owned()),
        false => is_unicode.then(|| format!("{prefix}{}", "\u{10ffff}".repeat(8))),
    };
    (lower.is_some() || upper.is_some()).then_some((lower, upper))
}

/// The text before the first wildcard of a pattern.
fn like_prefix(pattern: &str, escape: Option<char>) -> String {
    let mut prefix = String::new();
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '%' | '_' => break,
            other if Some(other) == escape => match characters.next() {
                Some(escaped) => prefix.push(escaped),
                None => break,
            },
            other => prefix.push(other),
        }
    }
    prefix
}

/// The operator with its sides exchanged.
#[must_use]
pub(crate) fn turned(operator: CompareOperator) -> CompareOperator {
    match operator {
        CompareOperator::Less => CompareOperator::Greater,
        CompareOperator::LessOrEqual => CompareOperator::GreaterOrEqual,
        CompareOperator::Greater => CompareOperator::Less,
        CompareOperator::GreaterOrEqual => CompareOperator::LessOrEqual,
        other => other,
    }
}
