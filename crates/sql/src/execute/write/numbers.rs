//! `AUTO_INCREMENT` values of a statement.

use firn_api::rows::TableRef;

use crate::error::Result;
use crate::types::Datum;

use super::super::Execution;
use super::super::error::from_rows;

/// `AUTO_INCREMENT` values that have been taken, and what the client is told of them.
#[derive(Default)]
pub(super) struct Numbers {
    next: u64,
    left: u64,
    /// How many are taken next time.
    pub(super) batch: u64,
    pub(super) first_generated: Option<u64>,
    pub(super) last_given: u64,
}

impl Numbers {
    /// The next number.
    pub(super) fn take(&mut self, table: &TableRef, execution: &Execution<'_>) -> Result<u64> {
        let step = execution.limits.auto_increment_increment.max(1);
        let offset = execution.limits.auto_increment_offset;
        if self.left == 0 {
            let count = self.batch.clamp(1, 1 << 16);
            let taken = execution.node.take_auto_increment(table, count.saturating_mul(step));
            self.next = taken.map_err(from_rows)?;
            self.left = count;
            self.batch = count.saturating_mul(2);
        }
        self.left -= 1;
        let number = aligned(self.next, step, offset);
        self.next = self.next.saturating_add(step);
        Ok(number)
    }

    /// Whether the counter is beyond a number because of numbers that were taken.
    pub(super) fn is_own(&self, number: u64) -> bool {
        number < self.next
    }
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

/// A number that an `AUTO_INCREMENT` column can have.
pub(super) fn positive(value: &Datum) -> Option<u64> {
    match value {
        Datum::UInt(number) => Some(*number),
        Datum::Int(number) => u64::try_from(*number).ok(),
        Datum::Double(number) if *number > 0.0 => Some(*number as u64),
        _ => None,
    }
    .filter(|number| *number > 0)
}
