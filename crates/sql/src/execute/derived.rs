//! A subquery in `FROM` that runs as part of the statement.

use crate::error::Result;
use crate::execute::Evaluate;
use crate::expression::Slot;
use crate::plan::QueryPlan;

use super::Execution;
use super::operator::{Input, Operator, build};

/// Puts a query's columns in slots.
pub(crate) struct Derived<'p> {
    query: &'p QueryPlan,
    slots: &'p [Option<Slot>],
    root: Input<'p>,
}

impl<'p> Derived<'p> {
    pub(crate) fn new(
        query: &'p QueryPlan,
        slots: &'p [Option<Slot>],
        execution: &Execution<'_>,
    ) -> Derived<'p> {
        Derived { query, slots, root: build(&query.root, execution) }
    }
}

impl Operator for Derived<'_> {
    fn open(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        self.root.open(execution)
    }

    fn next(&mut self, execution: &mut Execution<'_>) -> Result<bool> {
        if !self.root.next(execution)? {
            return Ok(false);
        }
        for (column, slot) in self.query.columns.iter().zip(self.slots) {
            if let Some(slot) = slot {
                let value = column.value.evaluate(execution)?;
                execution.frame.set(*slot, value);
            }
        }
        Ok(true)
    }
}
