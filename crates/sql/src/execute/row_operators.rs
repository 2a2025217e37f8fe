//! Operators that look at one row at a time.

use crate::error::Result;
use crate::execute::Evaluate;
use crate::expression::{Expression, Slot};

use super::Execution;
use super::operator::{Input, Operator, all_true};

/// One row without columns.
#[derive(Default)]
pub(crate) struct OneRow {
    is_given: bool,
}

impl Operator for OneRow {
    fn open(&mut self, _execution: &mut Execution<'_>) -> Result<()> {
        self.is_given = false;
        Ok(())
    }

    fn next(&mut self, _execution: &mut Execution<'_>) -> Result<bool> {
        Ok(!std::mem::replace(&mut self.is_given, true))
    }
}

/// No rows.
pub(crate) struct Empty;

impl Operator for Empty {
    fn open(&mut self, _execution: &mut Execution<'_>) -> Result<()> {
        Ok(())
    }

    fn next(&mut self, _execution: &mut Execution<'_>) -> Result<bool> {
        Ok(false)
    }
}

/// Literal rows.
pub(crate) struct Values<'p> {
    rows: &'p [Vec<Expression>],
    slots: &'p [Slot],
    next: usize,
}

impl<'p> Values<'p> {
    pub(crate) fn new(rows: &'p [Vec<Expression>], slots: &'p [Slot]) -> Values<'p> {
        Values { rows, slots, next: 0 }
    }
}

impl Operator for Values<'_> {
    fn open(&mut self, _execution: &mut Execution<'_>) -> Result<()> {
        self.next = 0;
        Ok(())
    }

    fn next(&mut self, execution: &mut Execution<'_>) -> Result<bool> {
        let Some(row) = self.rows.get(self.next) else { return Ok(false) };
        self.next += 1;
        for (slot, value) in self.slots.iter().zip(row) {
            // The writer fills in the placeholder for a column's default.
            let value =
                if value.is_default() { Default::default() } else { value.evaluate(execution)? };
            execution.frame.set(*slot, value);
        }
        Ok(true)
    }
}

/// Rows for which all conditions are true.
pub(crate) struct Filter<'p> {
    input: Input<'p>,
    conditions: &'p [Expression],
}

impl<'p> Filter<'p> {
    pub(crate) fn new(input: Input<'p>, conditions: &'p [Expression]) -> Filter<'p> {
        Filter { input, conditions }
    }
}

impl Operator for Filter<'_> {
    fn open(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        self.input.open(execution)
    }

    fn next(&mut self, execution: &mut Execution<'_>) -> Result<bool> {
        while self.input.next(execution)? {
            execution.check_cancelled()?;
            if all_true(self.conditions, execution)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Evaluates expressions into slots.
pub(crate) struct Compute<'p> {
    input: Input<'p>,
    outputs: &'p [(Slot, Expression)],
}

impl<'p> Compute<'p> {
    pub(crate) fn new(input: Input<'p>, outputs: &'p [(Slot, Expression)]) -> Compute<'p> {
        Compute { input, outputs }
    }
}

impl Operator for Compute<'_> {
    fn open(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        self.input.open(execution)
    }

    fn next(&mut self, execution: &mut Execution<'_>) -> Result<bool> {
        if !self.input.next(execution)? {
            return Ok(false);
        }
        for (slot, expression) in self.outputs {
            let value = expression.evaluate(execution)?;
            execution.frame.set(*slot, value);
        }
        Ok(true)
    }
}
