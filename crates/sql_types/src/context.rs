//! What the evaluation of an expression needs to know of its session and statement, and the place
//! of its warnings.
//!
//! Evaluation takes `&EvaluationContext`: only one thread at a time evaluates a statement, and only
//! the warnings change meanwhile.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use firn_format::value::CollationId;

use crate::error::{Condition, ErrorKind, Level, SqlError};

use super::json::JsonValue;
use super::random_sequences::RandomSequences;
use super::session_facts::{DetachedSession, SessionFacts};
use super::sql_mode::SqlMode;
use super::time_zone::TimeZone;

/// Steps take some nanoseconds each, and a statement is to end within a tenth of a second.
const STEPS_BETWEEN_CHECKS: usize = 100_000;

/// How a statement handles values that do not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum StatementKind {
    /// It stores nothing: bad values are warnings.
    #[default]
    Read,
    /// It stores: bad values are errors in strict mode.
    Write,
    /// It stores with `IGNORE`: bad values are adjusted, with warnings.
    WriteIgnore,
}

/// Session and statement as evaluation sees them.
#[derive(Debug)]
pub struct EvaluationContext {
    /// The session's modes.
    pub sql_mode: SqlMode,
    /// The session's time zone.
    pub time_zone: TimeZone,
    /// When the statement began: microseconds since 1970-01-01 UTC. The source of `NOW()`.
    pub statement_time_us: i64,
    /// Digits that `/` adds to the scale.
    pub div_precision_increment: u8,
    /// Longest result of `GROUP_CONCAT` in bytes.
    pub group_concat_max_length_bytes: u64,
    /// Longest string that a function returns, in bytes.
    pub max_allowed_packet_bytes: u64,
    /// The collation of literals and of text made from numbers.
    pub connection_collation: CollationId,
    /// The default mode of `WEEK()`.
    pub default_week_format: u8,
    /// Whether the statement stores.
    pub statement_kind: StatementKind,
    /// The session, for functions about it.
    pub session: Arc<dyn SessionFacts>,
    /// The positions of the statement's calls of `RAND(seed)` in their sequences.
    pub random_sequences: RandomSequences,
    /// Memory that was granted to the current function for its result, in bytes.
    pub promised_bytes: Cell<usize>,
    /// Steps of long functions since the statement was last asked whether it continues.
    pub unchecked_steps: Cell<usize>,
    /// How many conditions are kept.
    pub max_error_count: usize,
    /// The conditions so far; use the context's functions.
    pub conditions: Conditions,
}

/// The conditions of a statement, up to the limit, and their total number.
#[derive(Debug, Default)]
pub struct Conditions {
    kept: RefCell<Vec<Condition>>,
    count: Cell<u64>,
}

impl Default for EvaluationContext {
    fn default() -> EvaluationContext {
        EvaluationContext {
            sql_mode: SqlMode::DEFAULT,
            time_zone: TimeZone::utc(),
            statement_time_us: 0,
            div_precision_increment: 4,
            group_concat_max_length_bytes: 1024,
            max_allowed_packet_bytes: 64 << 20,
            connection_collation: CollationId(255),
            default_week_format: 0,
            statement_kind: StatementKind::Read,
            session: Arc::new(DetachedSession::default()),
            random_sequences: RandomSequences::default(),
            promised_bytes: Cell::new(0),
            unchecked_steps: Cell::new(0),
            max_error_count: 1024,
            conditions: Conditions::default(),
        }
    }
}

impl EvaluationContext {
    /// Counts the steps of a function whose work grows faster than its arguments: comparisons of
    /// characters or values. Every now and then, the session is asked whether the statement
    /// continues.
    ///
    /// # Errors
    /// As [`SessionFacts::check_interrupted`].
    #[inline]
    pub fn count_steps(&self, steps: usize) -> crate::error::Result<()> {
        let unchecked = self.unchecked_steps.get().saturating_add(steps);
        if unchecked < STEPS_BETWEEN_CHECKS {
            self.unchecked_steps.set(unchecked);
            return Ok(());
        }
        self.unchecked_steps.set(0);
        self.session.check_interrupted()
    }

    /// A function's result is too long: adds the warning, and the result is NULL.
    ///
    /// # Errors
    /// 1301 instead of the warning in a strict statement that stores.
    pub fn longer_than_packet(&self, function: &str) -> crate::error::Result<()> {
        let limit = self.max_allowed_packet_bytes;
        self.bad_value(1301, || SqlError::larger_than_packet(function, limit).message)
    }

    /// Whether a document made by a function may become text. If not, it is NULL there.
    ///
    /// # Errors
    /// As [`EvaluationContext::longer_than_packet`].
    pub fn fits_packet(&self, document: &JsonValue, function: &str) -> crate::error::Result<bool> {
        let fits = !document.is_text_longer_than(self.max_allowed_packet_bytes);
        if !fits {
            self.longer_than_packet(function)?;
        }
        Ok(fits)
    }

    /// Whether a bad value to be stored is an error.
    #[must_use]
    pub fn is_strict_write(&self) -> bool {
        self.sql_mode.is_strict() && self.statement_kind == StatementKind::Write
    }

    pub fn warn(&self, code: u16, message: impl FnOnce() -> String) {
        self.push(Level::Warning, code, message);
    }

    pub fn note(&self, code: u16, message: impl FnOnce() -> String) {
        self.push(Level::Note, code, message);
    }

    /// Adds a condition; beyond the session's `max_error_count` it is only counted.
    pub fn push(&self, level: Level, code: u16, message: impl FnOnce() -> String) {
        let count = &self.conditions.count;
        count.set(count.get().saturating_add(1));
        let mut conditions = self.conditions.kept.borrow_mut();
        if conditions.len() < self.max_error_count {
            conditions.push(Condition { level, code, message: message() });
        }
    }

    /// A bad value that is being stored: an error when strict, otherwise a warning.
    ///
    /// # Errors
    /// The condition, when strict.
    pub fn bad_value(&self, code: u16, message: impl FnOnce() -> String) -> Result<(), SqlError> {
        if self.is_strict_write() {
            return Err(SqlError::of_kind(ErrorKind::BadValue, code, message()));
        }
        self.warn(code, message);
        Ok(())
    }

    /// Whether the last condition that is kept is such a one.
    #[must_use]
    pub fn was_last(&self, is_such: impl FnOnce(&Condition) -> bool) -> bool {
        self.conditions.kept.borrow().last().is_some_and(is_such)
    }

    /// Conditions so far, including those beyond the limit.
    #[must_use]
    pub fn warning_count(&self) -> u64 {
        self.conditions.count.get()
    }

    /// Removes the conditions after the first `count`.
    pub fn forget_conditions_after(&self, count: u64) {
        self.conditions.count.set(count);
        self.conditions.kept.borrow_mut().truncate(usize::try_from(count).unwrap_or(usize::MAX));
    }

    /// Takes the conditions out and resets the count.
    pub fn take_conditions(&self) -> Vec<Condition> {
        self.conditions.count.set(0);
        self.conditions.kept.take()
    }
}
