//! Limits on parsing, binding and planning a statement: time, memory and stack.
//!
//! ```text
//!   step  a unit of work was done: now and then checks whether the statement ends       1317, 3024
//!   hold  memory is kept until the plan is dropped: not more than the statement may have 1041
//!   nest  the code recurses with its input: not deeper than the stack allows             1436
//! ```
//!
//! Steps are counted, so that tests can measure how work grows with a statement without a clock.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_base::clock::Clock;
use firn_base::{memory, stack};

use crate::error::{Result, SqlError};

/// The number of steps between two checks for cancellation: some hundred microseconds of work.
const STEPS_BETWEEN_QUESTIONS: u64 = 256;

/// Limits of a statement that is being parsed, bound and planned, and its use of them.
#[derive(Default)]
pub struct Watch<'a> {
    cancelled: Option<&'a AtomicBool>,
    deadline: Option<(&'a dyn Clock, Duration)>,
    limit_bytes: Option<u64>,
    steps: Cell<u64>,
    asked_at: Cell<u64>,
    held_bytes: Cell<u64>,
    /// Up to here, the server's memory budget has granted memory.
    granted_bytes: Cell<u64>,
}

/// How much more memory is requested from the server's budget at a time.
const GRANT_BYTES: u64 = 1 << 20;

/// The stage that recurses. Parsing may use less of the stack than binding, and binding leaves room
/// for traversals of its result that do not check.
#[derive(Debug, Clone, Copy)]
pub enum Recursion {
    Parse,
    /// The binder and the planner.
    Bind,
    /// Subqueries that are being evaluated.
    Execute,
}

impl<'a> Watch<'a> {
    /// A watch over a statement that ends when `cancelled` is set.
    #[must_use]
    pub fn new(cancelled: &'a AtomicBool) -> Watch<'a> {
        Watch { cancelled: Some(cancelled), ..Watch::default() }
    }

    /// Sets a deadline on a monotonic clock.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Option<(&'a dyn Clock, Duration)>) -> Watch<'a> {
        self.deadline = deadline;
        self
    }

    /// Sets the memory limit in bytes.
    #[must_use]
    pub fn with_memory(mut self, limit_bytes: u64) -> Watch<'a> {
        self.limit_bytes = Some(limit_bytes);
        self
    }

    /// Counts a unit of work.
    ///
    /// # Errors
    /// 1317 or 3024 if the statement must end.
    #[inline]
    pub fn step(&self) -> Result<()> {
        self.steps(1)
    }

    /// Counts units of work.
    ///
    /// # Errors
    /// 1317 or 3024 if the statement must end.
    #[inline]
    pub fn steps(&self, count: usize) -> Result<()> {
        let steps = self.steps.get() + count as u64;
        self.steps.set(steps);
        if steps - self.asked_at.get() < STEPS_BETWEEN_QUESTIONS {
            return Ok(());
        }
        self.asked_at.set(steps);
        self.ask()
    }

    #[cold]
    fn ask(&self) -> Result<()> {
        if self.cancelled.is_some_and(|cancelled| cancelled.load(Ordering::Relaxed)) {
            return Err(SqlError::interrupted());
        }
        match self.deadline {
            Some((clock, deadline)) if clock.monotonic() >= deadline => {
                Err(SqlError::out_of_time())
            }
            _ => Ok(()),
        }
    }

    /// How many steps were counted.
    #[must_use]
    pub fn step_count(&self) -> u64 {
        self.steps.get()
    }

    /// Counts memory that the plan keeps.
    ///
    /// # Errors
    /// 1041 if this exceeds the statement's limit, or if the server has no memory for it.
    #[inline]
    pub fn hold(&self, size_bytes: usize) -> Result<()> {
        let held_bytes = self.held_bytes.get().saturating_add(size_bytes as u64);
        self.held_bytes.set(held_bytes);
        match self.limit_bytes {
            Some(limit_bytes) if held_bytes > limit_bytes => {
                Err(SqlError::out_of_memory(limit_bytes))
            }
            Some(_) if held_bytes > self.granted_bytes.get() + GRANT_BYTES => {
                self.grant(held_bytes)
            }
            _ => Ok(()),
        }
    }

    #[cold]
    fn grant(&self, held_bytes: u64) -> Result<()> {
        let missing_bytes = held_bytes - self.granted_bytes.get();
        let _promise = memory::ask(usize::try_from(missing_bytes).unwrap_or(usize::MAX))?;
        self.granted_bytes.set(held_bytes);
        Ok(())
    }

    /// The memory counted so far, in bytes.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes.get()
    }
}

/// Checks whether there is stack for one more level.
///
/// # Errors
/// 1436 if there is not.
#[inline]
pub fn nest(recursion: Recursion) -> Result<()> {
    let (size_bytes, used_bytes) = stack::size_and_used_bytes();
    let most_bytes = match recursion {
        Recursion::Parse => size_bytes / 2,
        Recursion::Bind => size_bytes / 8 * 5,
        Recursion::Execute => size_bytes / 4 * 3,
    };
    if used_bytes > most_bytes {
        return Err(SqlError::stack_overrun(used_bytes, size_bytes, size_bytes - most_bytes));
    }
    Ok(())
}
