//! `LIMIT` and `OFFSET`, with the count of `SQL_CALC_FOUND_ROWS`.

use crate::error::{Result, SqlError};
use crate::execute::Evaluate;
use crate::expression::Expression;
use crate::types::Datum;

use super::Execution;
use super::operator::{Input, Operator};

pub(crate) struct Limit<'p> {
    input: Input<'p>,
    offset: Option<&'p Expression>,
    count: Option<&'p Expression>,
    count_all: bool,
    skip: u64,
    left: u64,
    given: u64,
}

impl<'p> Limit<'p> {
    pub(crate) fn new(
        input: Input<'p>,
        offset: Option<&'p Expression>,
        count: Option<&'p Expression>,
        count_all: bool,
    ) -> Limit<'p> {
        Limit { input, offset, count, count_all, skip: 0, left: 0, given: 0 }
    }

    /// Continues to the end to count the rows that there would have been.
    fn count_rest(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        while self.input.next(execution)? {
            execution.check_cancelled()?;
            self.given += 1;
        }
        execution.found_rows = Some(self.given);
        Ok(())
    }
}

/// A row count of `LIMIT`; NULL is 0, as MySQL has it for parameters.
pub(crate) fn row_count(expression: &Expression, execution: &mut Execution<'_>) -> Result<u64> {
    match expression.evaluate(execution)? {
        Datum::UInt(count) => Ok(count),
        Datum::Int(count) if count >= 0 => Ok(count as u64),
        Datum::Null => Ok(0),
        Datum::Int(_) => Err(SqlError::new(
            1690,
            "SIGNED INTEGER value is out of range in 'mysqld_stmt_execute'",
        )),
        Datum::Text(text) => whole_number(&text),
        _ => Err(SqlError::new(1210, "Incorrect arguments to mysqld_stmt_execute")),
    }
}

/// The number at the start of a text, without its fraction; 0 if there is none.
fn whole_number(text: &[u8]) -> Result<u64> {
    let text = text.trim_ascii_start();
    if text.starts_with(b"-") && text.get(1).is_some_and(|digit| (b'1'..=b'9').contains(digit)) {
        let message = "SIGNED INTEGER value is out of range in 'mysqld_stmt_execute'";
        return Err(SqlError::new(1690, message));
    }
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    Ok(digits.fold(0_u64, |number, digit| {
        number.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
    }))
}

/// How many rows a `LIMIT` wants from its input at least, if that is known before it begins.
pub(crate) fn rows_wanted(
    offset: Option<&Expression>,
    count: Option<&Expression>,
    execution: &Execution<'_>,
) -> u64 {
    let known = |expression| known_count(expression, execution);
    match count {
        None => u64::MAX,
        Some(count) => known(count)
            .map_or(1, |count| count.saturating_add(offset.and_then(known).unwrap_or(0))),
    }
}

/// How many rows a `LIMIT` wants from its input at most, if that is known before it begins.
pub(crate) fn most_rows(
    offset: Option<&Expression>,
    count: Option<&Expression>,
    execution: &Execution<'_>,
) -> Option<u64> {
    let skipped = offset.map_or(Some(0), |offset| known_count(offset, execution))?;
    known_count(count?, execution)?.checked_add(skipped)
}

/// A number of rows that can be read without evaluating anything.
fn known_count(expression: &Expression, execution: &Execution<'_>) -> Option<u64> {
    match expression.place(execution)? {
        Datum::UInt(count) => Some(*count),
        Datum::Int(count) => u64::try_from(*count).ok(),
        _ => None,
    }
}

impl Operator for Limit<'_> {
    fn open(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        self.skip = self.offset.map_or(Ok(0), |offset| row_count(offset, execution))?;
        self.left = self.count.map_or(Ok(u64::MAX), |count| row_count(count, execution))?;
        self.given = 0;
        if self.left > 0 || self.count_all {
            self.input.open(execution)?;
        }
        Ok(())
    }

    fn next(&mut self, execution: &mut Execution<'_>) -> Result<bool> {
        if self.left == 0 {
            if self.count_all {
                self.count_rest(execution)?;
            }
            return Ok(false);
        }
        while self.input.next(execution)? {
            self.given += 1;
            if self.skip == 0 {
                self.left -= 1;
                return Ok(true);
            }
            self.skip -= 1;
            execution.check_cancelled()?;
        }
        if self.count_all {
            execution.found_rows = Some(self.given);
        }
        Ok(false)
    }
}
