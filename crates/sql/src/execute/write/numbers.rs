//! `AUTO_INCREMENT` values of a statement, allocated as MySQL does with
//! `innodb_autoinc_lock_mode = 2`.
//!
//! ```text
//!   counter ──reserve──► interval of numbers ──take──► a row
//!                              ▲  an explicit value that is not below the next number pushes it on
//!                              └─ the number of a row that was not inserted is taken again
//! ```

use firn_api::rows::{RowsError, TableRef};

use crate::error::{Result, SqlError};
use crate::types::Datum;

use super::super::Execution;
use super::super::error::from_rows;

/// Numbers that the statement has reserved, and those that the client learns.
#[derive(Default)]
pub(super) struct Numbers {
    /// The next number; 0 before the first.
    next: u64,
    /// The end of the interval from which `next` is taken.
    end: u64,
    /// The counter is beyond all numbers below.
    reserved: u64,
    /// How many rows are known to come when the first interval is reserved.
    pub(super) batch: u64,
    /// Intervals reserved so far.
    intervals: u32,
    /// The first number that was generated for a row that was inserted.
    pub(super) first_generated: Option<u64>,
    /// The `AUTO_INCREMENT` value of the row written last, or of a row that it met.
    pub(super) last_id: u64,
}

impl Numbers {
    /// The next number. `greatest` is the largest number of the column: the counter stays there.
    pub(super) fn take(
        &mut self,
        table: &TableRef,
        greatest: u64,
        execution: &Execution<'_>,
    ) -> Result<u64> {
        if self.next >= self.end {
            self.reserve(table, greatest, execution)?;
        }
        let number = self.next;
        if number > greatest || number == u64::MAX {
            return Err(exhausted());
        }
        self.next = following(number, execution);
        Ok(number)
    }

    fn reserve(
        &mut self,
        table: &TableRef,
        greatest: u64,
        execution: &Execution<'_>,
    ) -> Result<()> {
        let given = execution.context.session.take_insert_id();
        if given > 0 {
            (self.next, self.end) = (following(given - 1, execution), u64::MAX);
            return Ok(());
        }
        let step = execution.limits.auto_increment_increment.max(1);
        // MySQL's estimate: at first all rows that it knows of, then 2, 4, 8 and so on.
        let count = match self.intervals {
            0 => self.batch.clamp(1, 1 << 16),
            more => 1 << more.min(16),
        };
        self.intervals += 1;
        let reserved = count.saturating_mul(step);
        let first = execution.data.node.take_auto_increment(table, reserved).map_err(from_rows)?;
        self.next = following(first.min(greatest).saturating_sub(1), execution);
        self.end = first.saturating_add(reserved);
        self.reserved = self.reserved.max(self.end);
        Ok(())
    }

    /// Notes a number that the statement sets itself.
    pub(super) fn pass(&mut self, number: u64, execution: &Execution<'_>) {
        if self.next > 0 && number >= self.next {
            self.next = following(number, execution);
        }
    }

    /// The next number, if its interval has it.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Returns the number of a row that was not inserted.
    pub(super) fn give_back(&mut self, number: u64) {
        self.next = number;
    }

    /// Whether the counter is beyond a number because of this statement's reservations.
    pub(super) fn is_own(&self, number: u64) -> bool {
        number < self.reserved
    }
}

fn exhausted() -> SqlError {
    from_rows(RowsError::SequenceExhausted)
}

/// The first number beyond `number` that the session's increment and offset allow.
fn following(number: u64, execution: &Execution<'_>) -> u64 {
    let step = execution.limits.auto_increment_increment.max(1);
    aligned(number.saturating_add(1), step, execution.limits.auto_increment_offset)
}

/// The first number from `from` on that is `offset` more than a multiple of `step`.
fn aligned(from: u64, step: u64, offset: u64) -> u64 {
    if step == 1 || offset > step {
        return from;
    }
    let beyond =
        (u128::from(from) + u128::from(step) - u128::from(offset % step)) % u128::from(step);
    if beyond == 0 { from } else { from.saturating_add(step - beyond as u64) }
}

/// A positive number for an `AUTO_INCREMENT` column.
pub(super) fn positive(value: &Datum) -> Option<u64> {
    match value {
        Datum::UInt(number) => Some(*number),
        Datum::Int(number) => u64::try_from(*number).ok(),
        Datum::Double(number) if *number > 0.0 => Some(*number as u64),
        _ => None,
    }
    .filter(|number| *number > 0)
}

/// A value of an `AUTO_INCREMENT` column as clients get it: negative ones as their bits.
pub(super) fn reported_id(value: &Datum) -> u64 {
    match value {
        Datum::UInt(number) => *number,
        Datum::Int(number) => *number as u64,
        Datum::Double(number) => *number as i64 as u64,
        _ => 0,
    }
}
