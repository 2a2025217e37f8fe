//! Subqueries with one result for all rows: each runs before the expression that needs it is
//! translated.
//!
//! Its result is a constant for that expression. The row executor evaluates the other subqueries,
//! and those with too many rows, because it has the error's text.

use arrow::array::RecordBatch;
use firn_sql::expression::{Expression, ExpressionKind};
use firn_sql::plan::visit;
use firn_sql::plan::{Subquery, SubqueryKind};
use firn_sql::types::Datum;

use super::Translator;
use crate::stop_reason::{Result, Stop};
use crate::value::Physical;

impl<'p> Translator<'p, '_, '_> {
    /// Evaluates the subqueries in expressions, as far as possible over columns. Blocks.
    pub(super) fn answer_subqueries(
        &mut self,
        expressions: impl IntoIterator<Item = &'p Expression>,
    ) -> Result<()> {
        let mut subqueries = Vec::new();
        expressions.into_iter().for_each(|one| add_subqueries(one, &mut subqueries));
        subqueries.into_iter().try_for_each(|subquery| self.answer_subquery(subquery))
    }

    fn answer_subquery(&mut self, subquery: &'p Subquery) -> Result<()> {
        let is_value = matches!(subquery.kind, SubqueryKind::Scalar);
        let plan = &self.plan.subqueries[subquery.number];
        let is_constant = is_value && plan.outer_slots.is_empty();
        if !is_constant || self.execution.has_answer(subquery) {
            return Ok(());
        }
        match self.collect(&plan.query) {
            Ok((batches, layouts)) => {
                if let Some(row) = only_row(&batches, &layouts) {
                    self.execution.keep_answer(subquery, row);
                }
                Ok(())
            }
            Err(Stop::Declined(_) | Stop::Memory(_)) => Ok(()),
            Err(stop) => Err(stop),
        }
    }
}

/// Adds the subqueries in an expression, except those within them.
pub(super) fn add_subqueries<'p>(expression: &'p Expression, into: &mut Vec<&'p Subquery>) {
    if let ExpressionKind::Subquery(subquery) = &expression.kind {
        into.push(subquery);
    }
    visit::for_each_operand(expression, &mut |operand| add_subqueries(operand, into));
}

/// The only row of a result, or that it has none; `None` if it has more.
fn only_row(batches: &[RecordBatch], layouts: &[Physical]) -> Option<Option<Vec<Datum>>> {
    let mut batches = batches.iter().filter(|batch| batch.num_rows() > 0);
    let Some(batch) = batches.next() else { return Some(None) };
    if batch.num_rows() > 1 || batches.next().is_some() {
        return None;
    }
    let columns = layouts.iter().zip(batch.columns());
    Some(Some(columns.map(|(layout, column)| layout.datum(&**column, 0)).collect()))
}
