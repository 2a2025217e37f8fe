//! `SET_VAR` hints: session variables that have another value while one statement runs.
//!
//! ```text
//!   text ─► hints ─► variables and settings of the session ─► the statement runs ─► as before
//!             └─ what cannot be set: a warning of the statement
//! ```
//!
//! The values hold from before the statement is planned until its answer is sent, so plans are
//! looked up and made with them.

use std::sync::atomic::Ordering;

use firn_sql::error::{Condition, Level, SqlError};
use firn_sql::grammar::{self, HintedValue, VariableHint};

use super::runner::StatementRunner;
use super::set::named_value;
use crate::variables::{self, SessionVariables, Setting};

/// The variables that MySQL sets by hints, except those that need a privilege, and those of Firn
/// that say how a statement runs.
const HINTABLE: [&str; 57] = [
    "auto_increment_increment",
    "auto_increment_offset",
    "big_tables",
    "bulk_insert_buffer_size",
    "cte_max_recursion_depth",
    "default_tmp_storage_engine",
    "div_precision_increment",
    "enable_secondary_engine_statistics",
    "end_markers_in_json",
    "eq_range_index_dive_limit",
    "firn_analytic_cost",
    "firn_column_cache",
    "firn_executor",
    "firn_read_consistency",
    "firn_read_wait_ms",
    "firn_statement_memory",
    "foreign_key_checks",
    "group_concat_max_len",
    "insert_id",
    "join_buffer_size",
    "lock_wait_timeout",
    "max_error_count",
    "max_execution_time",
    "max_heap_table_size",
    "max_join_size",
    "max_length_for_sort_data",
    "max_points_in_geometry",
    "max_seeks_for_key",
    "max_sort_length",
    "optimizer_max_subgraph_pairs",
    "optimizer_prune_level",
    "optimizer_search_depth",
    "optimizer_switch",
    "range_alloc_block_size",
    "range_optimizer_max_mem_size",
    "read_buffer_size",
    "read_rnd_buffer_size",
    "secondary_engine_cost_threshold",
    "select_into_buffer_size",
    "select_into_disk_sync",
    "select_into_disk_sync_delay",
    "set_operations_buffer_size",
    "sort_buffer_size",
    "sql_auto_is_null",
    "sql_big_selects",
    "sql_buffer_result",
    "sql_mode",
    "sql_safe_updates",
    "sql_select_limit",
    "time_zone",
    "timestamp",
    "tmp_table_size",
    "unique_checks",
    "updatable_views_with_limit",
    "use_secondary_engine",
    "windowing_use_high_precision",
    "xa_detach_on_prepare",
];

const INSERT_ID: &str = "insert_id";

/// Whether a text has a comment that may be hints.
#[inline]
pub(super) fn may_have_hints(text: &str) -> bool {
    text.contains("/*+")
}

/// What a session had before a statement with hints.
pub(super) struct BeforeHints {
    variables: SessionVariables,
    /// The next id, if a hint has set it.
    insert_id: Option<u64>,
}

impl StatementRunner {
    /// Gives variables the values that a statement's hints name. Returns what
    /// [`StatementRunner::end_hints`] takes, if there are any hints.
    #[inline]
    pub(super) fn begin_hints(&mut self, text: &str) -> Option<Box<BeforeHints>> {
        if may_have_hints(text) { self.set_hinted(text) } else { None }
    }

    /// The statement of the hints has ended.
    #[inline]
    pub(super) fn end_hints(&mut self, before: Option<Box<BeforeHints>>) {
        if let Some(before) = before {
            self.take_hints_back(*before);
        }
    }

    /// Adds the warnings of the hints to those of the statement.
    pub(super) fn tell_hints(&self) {
        for Condition { level, code, message } in &self.hint_conditions {
            self.evaluation.push(*level, *code, || message.clone());
        }
    }

    #[cold]
    fn set_hinted(&mut self, text: &str) -> Option<Box<BeforeHints>> {
        let hints = grammar::variable_hints(text, self.settings.grammar_mode());
        if hints.is_empty() {
            return None;
        }
        let variables = self.state.connection.variables.clone();
        let insert_id = self.facts.insert_id.load(Ordering::Relaxed);
        let mut accepted: Vec<(&'static str, Setting)> = Vec::new();
        for hint in hints {
            if let Err(condition) = accept(hint, &mut accepted) {
                self.hint_conditions.push(condition);
            }
        }
        for (name, value) in &accepted {
            if let Err(condition) = self.set_by_hint(name, value) {
                self.hint_conditions.push(condition);
            }
        }
        let sets_id = accepted.iter().any(|(name, _)| *name == INSERT_ID);
        let insert_id = sets_id.then_some(insert_id);
        Some(Box::new(BeforeHints { variables, insert_id }))
    }

    fn set_by_hint(&mut self, name: &str, given: &Setting) -> Result<(), Condition> {
        // The node that writes tells what a session has written only if the session asks for it.
        let is_for_sessions =
            matches!(given, Setting::Text(text) if text.eq_ignore_ascii_case("SESSION"));
        if name == "firn_read_consistency" && is_for_sessions {
            let why = format!("Variable '{name}' can't be set to the value of 'SESSION' by a hint");
            return Err(warning(1231, why));
        }
        let before = self.state.connection.variables.clone();
        let moved = match self.try_to_set(name, given) {
            Ok(moved) => moved,
            Err(error) => {
                self.have_variables(before);
                return Err(warning(error.code, error.message));
            }
        };
        if moved {
            let why = format!("Truncated incorrect {name} value: '{given}'");
            self.hint_conditions.push(warning(1292, why));
        }
        match name {
            INSERT_ID => {
                let id = self.state.connection.variables.known(name).number();
                self.facts.insert_id.store(id, Ordering::Relaxed);
            }
            "timestamp" => {
                let now_us = self.evaluation.statement_time_us;
                self.evaluation.statement_time_us = self.settings.fixed_time_us.unwrap_or(now_us);
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether the value was moved to a bound.
    fn try_to_set(&mut self, name: &str, given: &Setting) -> Result<bool, SqlError> {
        let value = named_value(name, given.clone())?;
        let globals = &self.instance.variables;
        let moved = self.state.connection.variables.set(name, Some(&value), globals)?;
        self.settings_changed()?;
        Ok(moved)
    }

    #[cold]
    fn take_hints_back(&mut self, before: BeforeHints) {
        let BeforeHints { variables, insert_id } = before;
        self.hint_conditions.clear();
        self.have_variables(variables);
        if let Some(insert_id) = insert_id {
            self.facts.insert_id.store(insert_id, Ordering::Relaxed);
        }
    }

    fn have_variables(&mut self, variables: SessionVariables) {
        self.state.connection.variables = variables;
        self.settings_changed().expect("the session had these variables before");
    }
}

/// Takes a hint whose variable can be set by hints, and has not been set by one before it.
fn accept(
    hint: VariableHint<'_>,
    accepted: &mut Vec<(&'static str, Setting)>,
) -> Result<(), Condition> {
    let (name, value, written) = match hint {
        VariableHint::Set { name, value, written } => (name, value, written),
        VariableHint::Unreadable { near, line } => {
            let why = format!("Optimizer hint syntax error near '{near}' at line {line}");
            return Err(warning(1064, why));
        }
    };
    let Some(definition) = variables::find(&name.to_ascii_lowercase()) else {
        return Err(warning(3128, format!("Unresolved name '{name}' for SET_VAR hint")));
    };
    let name = definition.name;
    if !HINTABLE.contains(&name) {
        let why = format!("Variable '{name}' cannot be set using SET_VAR hint.");
        return Err(warning(3637, why));
    }
    if accepted.iter().any(|(other, _)| *other == name) {
        let hint = format!("SET_VAR({name}={written})");
        let why = format!("Hint {hint}  is ignored as conflicting/duplicated");
        return Err(warning(3126, why));
    }
    accepted.push((name, setting(value)));
    Ok(())
}

fn setting(value: HintedValue) -> Setting {
    match value {
        HintedValue::Number(number) => match i64::try_from(number) {
            Ok(number) => Setting::Number(number),
            Err(_) => Setting::Unsigned(number),
        },
        HintedValue::Real(number) => Setting::Real(number),
        HintedValue::Text(text) => Setting::text(&text),
    }
}

fn warning(code: u16, message: String) -> Condition {
    Condition { level: Level::Warning, code, message }
}
