//! The conditions of the last statement, for `SHOW WARNINGS`; and `GET DIAGNOSTICS`, which puts
//! them into user variables.
//!
//! ```text
//!   INSERT … 1062
//!   GET DIAGNOSTICS @n = NUMBER                     1
//!   GET DIAGNOSTICS CONDITION 1 @e = MYSQL_ERRNO    1062
//! ```

use std::sync::atomic::Ordering;

use firn_sql::error::{Condition, Level, Result, SqlError, sql_state};
use firn_sql::execute::SessionState;
use firn_sql::grammar::ast::GetDiagnostics;
use firn_sql::types::{Datum, EvaluationContext, SqlType};

use super::answers::text_type;
use super::runner::StatementRunner;
use super::statement_view::State;
use crate::session_facts::Facts;

#[derive(Debug, Default)]
pub(crate) struct Diagnostics {
    /// What `SHOW WARNINGS` shows.
    pub(crate) conditions: Vec<Condition>,
    /// `@@warning_count`: of the last statement that has ended.
    pub(crate) warning_count: u64,
    /// `@@error_count`: of the last statement that has ended.
    pub(crate) error_count: u64,
}

impl Diagnostics {
    /// Forgets the conditions; the counts stay those of the last statement.
    pub(crate) fn clear(&mut self) {
        self.conditions.clear();
    }

    /// Takes over the warnings of an evaluation.
    pub(crate) fn keep(&mut self, evaluation: &EvaluationContext) {
        self.conditions.extend(evaluation.take_conditions());
    }

    /// Keeps the error that has ended a statement, after its warnings.
    pub(crate) fn keep_error(&mut self, evaluation: &EvaluationContext, error: &SqlError) {
        self.keep(evaluation);
        let message = error.message.clone();
        self.conditions.push(Condition { level: Level::Error, code: error.code, message });
        self.count();
    }

    /// `@@warning_count` and `@@error_count` are those of the statement that has just ended.
    pub(crate) fn count(&mut self) {
        self.warning_count = self.conditions.len() as u64;
        self.error_count = self.errors() as u64;
    }

    /// How many of the conditions are errors.
    pub(crate) fn errors(&self) -> usize {
        self.conditions.iter().filter(|one| one.level == Level::Error).count()
    }

    /// How many conditions a client is told of.
    pub(crate) fn told(&self) -> u16 {
        u16::try_from(self.conditions.len()).unwrap_or(u16::MAX)
    }
}

/// Runs `GET DIAGNOSTICS` in a session.
pub(super) struct DiagnosticsStatements<'s> {
    facts: &'s Facts,
    state: &'s mut State,
}

impl<'s> DiagnosticsStatements<'s> {
    pub(super) fn of(runner: &'s mut StatementRunner) -> DiagnosticsStatements<'s> {
        let StatementRunner { facts, state, .. } = runner;
        DiagnosticsStatements { facts, state }
    }

    /// Sets the variables. `condition`: the number of the condition that the statement asks for.
    ///
    /// # Errors
    /// 1758 for an unknown condition number, 1064 for unknown items.
    pub(super) fn get_diagnostics(
        &mut self,
        get: &GetDiagnostics,
        condition: Option<u64>,
    ) -> Result<()> {
        if get.stacked {
            return Err(SqlError::not_supported("GET STACKED DIAGNOSTICS outside of a handler"));
        }
        let condition = condition.map(|number| self.condition(number)).transpose()?;
        let item = |(variable, item): &(String, String)| {
            let (value, ty) = match condition {
                Some(condition) => condition_item(condition, item)?,
                None => self.statement_item(item)?,
            };
            Ok((variable.to_lowercase(), value, ty))
        };
        let found = get.items.iter().map(item).collect::<Result<Vec<_>>>()?;
        for (name, value, ty) in found {
            self.state.set_user_variable(&name, value, &ty);
        }
        Ok(())
    }

    fn condition(&self, number: u64) -> Result<&Condition> {
        let at = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        let condition = at.and_then(|at| self.state.diagnostics.conditions.get(at));
        condition.ok_or_else(|| SqlError::new(1758, "Invalid condition number"))
    }

    fn statement_item(&self, item: &str) -> Result<(Datum, SqlType)> {
        let number = match item {
            "NUMBER" => self.state.diagnostics.conditions.len() as i64,
            "ROW_COUNT" => self.facts.row_count.load(Ordering::Relaxed),
            _ => return Err(SqlError::syntax(item, 1)),
        };
        Ok((Datum::Int(number), SqlType::bigint()))
    }
}

fn condition_item(condition: &Condition, item: &str) -> Result<(Datum, SqlType)> {
    let state = String::from_utf8_lossy(sql_state(condition.code)).into_owned();
    let text = match item {
        "MYSQL_ERRNO" => return Ok((Datum::Int(condition.code.into()), SqlType::bigint())),
        "MESSAGE_TEXT" => condition.message.clone(),
        "RETURNED_SQLSTATE" => state,
        "CLASS_ORIGIN" | "SUBCLASS_ORIGIN" => {
            // States of the standard begin with 0 to 4 and A to H.
            let is_standard = matches!(state.as_bytes().first(), Some(b'0'..=b'4' | b'A'..=b'H'))
                && !state.starts_with("HY");
            if is_standard { "ISO 9075".to_owned() } else { "MySQL".to_owned() }
        }
        "CONSTRAINT_CATALOG" | "CONSTRAINT_SCHEMA" | "CONSTRAINT_NAME" | "CATALOG_NAME"
        | "SCHEMA_NAME" | "TABLE_NAME" | "COLUMN_NAME" | "CURSOR_NAME" => String::new(),
        _ => return Err(SqlError::syntax(item, 1)),
    };
    Ok((Datum::text(text.as_bytes()), text_type()))
}
