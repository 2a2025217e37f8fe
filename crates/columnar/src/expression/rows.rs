//! Expressions without a kernel: the row executor's evaluation for each row of a batch.

use firn_sql::execute::Evaluate;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use firn_sql::expression::{Expression, Slot};
use firn_sql::types::Datum;

use crate::scope::Scope;
use crate::stop_reason::Result;
use crate::value::Physical;

/// An expression that the row executor evaluates.
pub(crate) struct Rows {
    pub(crate) expression: Expression,
    /// The slots that it reads: the column and the layout of each.
    pub(crate) inputs: Vec<(Slot, usize, Physical)>,
    pub(crate) physical: Physical,
    pub(crate) scope: Arc<Scope>,
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Rows({:?})", self.expression)
    }
}

impl Rows {
    pub(super) fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        let mut builder = self.physical.builder(batch.num_rows());
        for datum in self.each(batch, |expression, execution| expression.evaluate(execution))? {
            builder.append(&datum)?;
        }
        Ok(builder.finish())
    }

    pub(super) fn truth(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let truths = self.each(batch, |expression, execution| expression.truth(execution))?;
        Ok(truths.into_iter().collect())
    }

    fn each<T>(
        &self,
        batch: &RecordBatch,
        work: impl Fn(&Expression, &mut firn_sql::execute::Execution<'_>) -> firn_sql::error::Result<T>,
    ) -> Result<Vec<T>> {
        self.scope.with_frame(|execution| {
            let mut out = Vec::with_capacity(batch.num_rows());
            for row in 0..batch.num_rows() {
                for (slot, column, physical) in &self.inputs {
                    let value: Datum = physical.datum(&**batch.column(*column), row);
                    execution.put(*slot, value);
                }
                out.push(work(&self.expression, execution)?);
            }
            Ok(out)
        })
    }
}
