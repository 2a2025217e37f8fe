//! `GET DIAGNOSTICS`: the conditions of the previous statement, into user variables.
//!
//! ```text
//!   INSERT … 1062
//!   GET DIAGNOSTICS @n = NUMBER                     1
//!   GET DIAGNOSTICS CONDITION 1 @e = MYSQL_ERRNO    1062
//! ```

use std::sync::atomic::Ordering;

use firn_sql::error::{Condition, Result, SqlError, sql_state};
use firn_sql::execute::SessionState;
use firn_sql::grammar::ast::GetDiagnostics;
use firn_sql::types::{Datum, SqlType};

use super::SqlSession;
use super::immediate_results::text_type;
use super::statement_view::State;
use crate::session_facts::Facts;

/// Runs `GET DIAGNOSTICS` in a session.
pub(super) struct DiagnosticsStatements<'s> {
    conditions: &'s [Condition],
    facts: &'s Facts,
    state: &'s mut State,
}

impl<'s> DiagnosticsStatements<'s> {
    pub(super) fn of(session: &'s mut SqlSession) -> DiagnosticsStatements<'s> {
        let SqlSession { conditions, facts, state, .. } = session;
        DiagnosticsStatements { conditions, facts, state }
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

    fn condition(&self, number: u64) -> Result<&'s Condition> {
        let at = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        let condition = at.and_then(|at| self.conditions.get(at));
        condition.ok_or_else(|| SqlError::new(1758, "Invalid condition number"))
    }

    fn statement_item(&self, item: &str) -> Result<(Datum, SqlType)> {
        let number = match item {
            "NUMBER" => self.conditions.len() as i64,
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
