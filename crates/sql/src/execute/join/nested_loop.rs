//! For each row on the left, the rows on the right.

use crate::error::Result;
use crate::expression::{Expression, Slot};
use crate::logical::JoinKind;
use crate::types::Datum;

use super::super::Execution;
use super::super::operator::{Input, Operator, all_true};

pub(crate) struct NestedLoop<'p> {
    left: Input<'p>,
    right: Input<'p>,
    join: JoinKind,
    conditions: &'p [Expression],
    right_slots: &'p [Slot],
    /// The left side is at a row whose right side is not at its end.
    is_inside: bool,
    has_matched: bool,
}

impl<'p> NestedLoop<'p> {
    pub(crate) fn new(
        left: Input<'p>,
        right: Input<'p>,
        join: JoinKind,
        conditions: &'p [Expression],
        right_slots: &'p [Slot],
    ) -> NestedLoop<'p> {
        NestedLoop {
            left,
            right,
            join,
            conditions,
            right_slots,
            is_inside: false,
            has_matched: false,
        }
    }

    /// Goes to the next matching pair; false if the left row has no more.
    fn next_match(&mut self, execution: &mut Execution<'_>) -> Result<bool> {
        while self.right.next(execution)? {
            execution.check_cancelled()?;
            if all_true(self.conditions, execution)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

pub(super) fn fill_null(slots: &[Slot], execution: &mut Execution<'_>) {
    for slot in slots {
        execution.frame.set(*slot, Datum::Null);
    }
}

impl Operator for NestedLoop<'_> {
    fn open(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        self.is_inside = false;
        self.left.open(execution)
    }

    fn next(&mut self, execution: &mut Execution<'_>) -> Result<bool> {
        loop {
            if !self.is_inside {
                if !self.left.next(execution)? {
                    return Ok(false);
                }
                self.right.open(execution)?;
                self.is_inside = true;
                self.has_matched = false;
            }
            if self.next_match(execution)? {
                self.has_matched = true;
                match self.join {
                    JoinKind::Inner | JoinKind::Left => return Ok(true),
                    JoinKind::Semi => {
                        self.is_inside = false;
                        return Ok(true);
                    }
                    JoinKind::Anti => {
                        self.is_inside = false;
                        continue;
                    }
                }
            }
            self.is_inside = false;
            if !self.has_matched && matches!(self.join, JoinKind::Left | JoinKind::Anti) {
                fill_null(self.right_slots, execution);
                return Ok(true);
            }
        }
    }
}
