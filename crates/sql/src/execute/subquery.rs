//! Subqueries in expressions. Their results are kept while the values they depend on do not change.
//!
//! ```text
//!   (SELECT max(b) FROM u WHERE u.a = t.a)     kept for the last value of t.a
//!   t.a IN (SELECT a FROM u)                   the rows of u once, as a set; each t.a is looked up
//! ```

use crate::execute::Evaluate;
use firn_sql_evaluation::compare_tuples;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::{Result, SqlError};
use crate::expression::{CompareOperator, ComparedRow, Subquery, SubqueryKind};
use crate::plan::SubqueryPlan;
use crate::types::{ComparisonKind, Datum};
use crate::watch::{Recursion, nest};

use super::Execution;
use super::memory::{Reservation, size_of_values};
use super::operator::QueryRows;
use super::row_key::write_comparison_key;

/// Results of an execution's subqueries, by their address.
#[derive(Default)]
pub(crate) struct Answers(FxHashMap<usize, Kept>);

struct Kept {
    /// The values of the outer slots for which it holds.
    outer: Vec<Datum>,
    answer: Answer,
}

enum Answer {
    /// A value, or whether there are rows.
    Datum(Datum),
    /// The only row, or none.
    Row(Option<Vec<Datum>>),
    /// All rows, for quantified comparisons.
    Rows(Rows),
}

/// The rows of a subquery after `ANY` or `ALL`.
struct Rows {
    /// Keys of the rows without NULL, if the comparison is for equality.
    keys: FxHashSet<Box<[u8]>>,
    /// The rows of the keys, if they have several columns: with a NULL in one of them, the others
    /// still have to be compared.
    keyed: Vec<Vec<Datum>>,
    /// The rows that are not among the keys.
    others: Vec<Vec<Datum>>,
    is_empty: bool,
    _held: Reservation,
}

/// The value of a subquery in the place of a single value.
pub(crate) fn evaluate(subquery: &Subquery, execution: &mut Execution<'_>) -> Result<Datum> {
    nest(Recursion::Execute)?;
    let number = subquery.number;
    if let Some(ComparedRow { operands, operator, kinds }) = subquery.kind.compared() {
        let values: Vec<Datum> =
            operands.iter().map(|operand| operand.evaluate(execution)).collect::<Result<_>>()?;
        prepare(subquery, execution)?;
        let truth = match (
            execution.kept.answers.0.get(&number).map(|kept| &kept.answer),
            &subquery.kind,
        ) {
            (Some(Answer::Rows(rows)), SubqueryKind::Quantified { all, .. }) => {
                quantified(&values, rows, *operator, kinds, *all)
            }
            (Some(Answer::Row(Some(row))), _) => {
                compare_tuples(*operator, kinds.iter(), &values, row)
            }
            // An empty result is not even equal to a row of NULLs.
            _ => (*operator == CompareOperator::NullSafeEqual).then_some(false),
        };
        return Ok(Datum::from_bool(truth));
    }
    prepare(subquery, execution)?;
    match execution.kept.answers.0.get(&number).map(|kept| &kept.answer) {
        Some(Answer::Datum(datum)) => Ok(datum.clone()),
        Some(Answer::Row(Some(row))) if row.len() == 1 => Ok(row[0].clone()),
        Some(Answer::Row(None)) | None => Ok(Datum::Null),
        Some(_) => Err(SqlError::new(1241, "Operand should contain 1 column(s)")),
    }
}

impl Execution<'_> {
    /// Whether there is a result of a subquery for the current values that it reads from outside.
    #[must_use]
    pub fn has_answer(&self, subquery: &Subquery) -> bool {
        self.kept.answers.0.contains_key(&subquery.number)
    }

    /// Keeps the result of a subquery that reads nothing from outside: its only row, or that it has
    /// none.
    ///
    /// # Panics
    /// If it does read something.
    pub fn keep_answer(&mut self, subquery: &Subquery, row: Option<Vec<Datum>>) {
        let plan = &self.plan.subqueries[subquery.number];
        assert!(plan.outer_slots.is_empty(), "an answer for all rows");
        let kept = Kept { outer: Vec::new(), answer: Answer::Row(row) };
        self.kept.answers.0.insert(subquery.number, kept);
    }
}

/// Ensures that the kept result is the one for the current values of the outer slots.
fn prepare(subquery: &Subquery, execution: &mut Execution<'_>) -> Result<()> {
    let number = subquery.number;
    let plan = execution.plan.subqueries.get(number);
    let plan = plan.ok_or_else(|| SqlError::not_supported("a subquery here"))?;
    if let Some(kept) = execution.kept.answers.0.get(&number) {
        let same = plan.outer_slots.iter().zip(&kept.outer);
        if same.into_iter().all(|(slot, value)| execution.frame.get(*slot) == value) {
            return Ok(());
        }
    }
    let outer = plan.outer_slots.iter().map(|slot| execution.frame.get(*slot).clone()).collect();
    let answer = answer(subquery, plan, execution)?;
    execution.kept.answers.0.insert(number, Kept { outer, answer });
    Ok(())
}

fn answer(
    subquery: &Subquery,
    plan: &SubqueryPlan,
    execution: &mut Execution<'_>,
) -> Result<Answer> {
    execution.check_cancelled()?;
    let mut query = QueryRows::open(&plan.query, execution)?;
    match &subquery.kind {
        SubqueryKind::Exists { negated } => {
            let exists = query.advance(execution)?;
            Ok(Answer::Datum(Datum::from_bool(exists != *negated)))
        }
        SubqueryKind::Scalar | SubqueryKind::Row(_) => {
            let mut row = Vec::new();
            if !query.next(execution, &mut row)? {
                return Ok(Answer::Row(None));
            }
            if query.advance(execution)? {
                return Err(SqlError::new(1242, "Subquery returns more than 1 row"));
            }
            Ok(Answer::Row(Some(row)))
        }
        SubqueryKind::Quantified {
            compared: ComparedRow { operands, operator, kinds }, ..
        } => {
            let is_equality =
                matches!(operator, CompareOperator::Equal | CompareOperator::NotEqual);
            let columns = operands.len();
            Ok(Answer::Rows(rows(&mut query, columns, is_equality, kinds, execution)?))
        }
    }
}

fn rows(
    query: &mut QueryRows<'_>,
    columns: usize,
    is_equality: bool,
    kinds: &[ComparisonKind],
    execution: &mut Execution<'_>,
) -> Result<Rows> {
    let mut held = execution.memory().reservation();
    let (mut keys, mut keyed) = (FxHashSet::default(), Vec::new());
    let (mut others, mut is_empty) = (Vec::new(), true);
    let (mut row, mut key) = (Vec::new(), Vec::new());
    while query.next(execution, &mut row)? {
        execution.check_cancelled()?;
        is_empty = false;
        if row.len() != columns {
            let message = format!("Operand should contain {columns} column(s)");
            return Err(SqlError::new(1241, message));
        }
        key.clear();
        if is_equality && write_comparison_key(&row, kinds, &mut key) {
            if !keys.contains(&key[..]) {
                held.require(key.len() + 32)?;
                keys.insert(key.as_slice().into());
                if columns > 1 {
                    held.require(size_of_values(&row))?;
                    keyed.push(row.clone());
                }
            }
            continue;
        }
        if is_equality && row.iter().all(Datum::is_null) && others.contains(&row) {
            continue; // one row of NULLs says as much as many
        }
        held.require(size_of_values(&row))?;
        others.push(row.clone());
    }
    Ok(Rows { keys, keyed, others, is_empty, _held: held })
}

/// `values operator ANY | ALL (rows)`.
fn quantified(
    values: &[Datum],
    rows: &Rows,
    operator: CompareOperator,
    kinds: &[ComparisonKind],
    all: bool,
) -> Option<bool> {
    if rows.is_empty {
        return Some(all);
    }
    // The result that ends the search: a true one for ANY, a false one for ALL.
    let decisive = !all;
    let mut unknown = false;
    let nulls = values.iter().filter(|value| value.is_null()).count();
    let in_part = if nulls > 0 && nulls < values.len() { rows.keyed.as_slice() } else { &[] };
    if !rows.keys.is_empty() && in_part.is_empty() {
        match among_keys(values, rows, operator, kinds, all) {
            Some(truth) if truth == decisive => return Some(decisive),
            Some(_) => {}
            None => unknown = true,
        }
    }
    for row in in_part.iter().chain(&rows.others) {
        match compare_tuples(operator, kinds.iter(), values, row) {
            Some(truth) if truth == decisive => return Some(decisive),
            Some(_) => {}
            None => unknown = true,
        }
    }
    if unknown { None } else { Some(all) }
}

/// The comparison with the rows whose keys are known, all at once.
fn among_keys(
    values: &[Datum],
    rows: &Rows,
    operator: CompareOperator,
    kinds: &[ComparisonKind],
    all: bool,
) -> Option<bool> {
    let mut key = Vec::new();
    if !write_comparison_key(values, kinds, &mut key) {
        return None;
    }
    let found = rows.keys.contains(&key[..]);
    let others = rows.keys.len() > usize::from(found);
    match (operator, all) {
        (CompareOperator::Equal, false) => Some(found),
        (CompareOperator::Equal, true) => Some(!others),
        (_, true) => Some(!found),
        (_, false) => Some(others),
    }
}
