//! The system variables that each statement reads, extracted from their table when they change.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use firn_api::rows::{IsolationLevel, ReadConsistency};
use firn_base::Cts;
use firn_format::value::CollationId;
use firn_sql::collation::{self, Charset};
use firn_sql::error::{Result, SqlError};
use firn_sql::execute::Limits;
use firn_sql::grammar;
use firn_sql::plan::Executor;
use firn_sql::types::{EvaluationContext, SqlMode, TimeZone};

use super::binary_text;
use crate::read_consistency;
use crate::variables::{SessionVariables, Setting};
use crate::wire_rows::Presentation;

#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) autocommit: bool,
    pub(crate) isolation: IsolationLevel,
    pub(crate) read_only: bool,
    pub(crate) completion: Completion,
    pub(crate) sql_mode: SqlMode,
    pub(crate) client_charset: Charset,
    pub(crate) connection_collation: CollationId,
    pub(crate) presentation: Arc<Presentation>,
    pub(crate) limits: Limits,
    pub(crate) lock_wait_timeout: Duration,
    /// `lock_wait_timeout`, for metadata locks.
    pub(crate) metadata_wait_timeout: Duration,
    pub(crate) first_updater_wins: bool,
    /// `SET timestamp`, in microseconds.
    pub(crate) fixed_time_us: Option<i64>,
    pub(crate) div_precision_increment: u8,
    pub(crate) group_concat_max_length_bytes: u64,
    pub(crate) max_allowed_packet_bytes: u64,
    pub(crate) default_week_format: u8,
    pub(crate) max_error_count: usize,
    pub(crate) long_query_us: u64,
    pub(crate) safe_updates: bool,
    /// The time limit of a query; 0: none.
    pub(crate) max_execution_time_ms: u64,
    /// `firn_executor`; `None`: the cost decides.
    pub(crate) executor: Option<Executor>,
    /// `firn_read_consistency`, with the variables that belong to it.
    pub(crate) read_consistency: ReadConsistency,
    /// `firn_read_wait_ms`: how long a read waits to be so new.
    pub(crate) read_wait: Duration,
    /// `firn_analytic_cost`
    pub(crate) analytic_cost: u64,
    /// `firn_statement_memory`: how much memory a statement may hold before it spills to disk.
    pub(crate) statement_memory_bytes: u64,
}

/// What `COMMIT` and `ROLLBACK` do beyond ending the transaction, unless the statement says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Completion {
    Nothing,
    /// They begin the next one.
    Chain,
    /// They end the connection.
    Release,
}

impl Settings {
    /// The settings in the variables.
    ///
    /// # Errors
    /// 1115, 1298 or 1231 for an invalid one; the caller restores it.
    pub(crate) fn of(variables: &SessionVariables) -> Result<Settings> {
        let number = |name| variables.known(name).number();
        let is_on = |name| variables.known(name).is_on();
        let text = |name| variables.known(name).as_text();
        let results = match variables.known("character_set_results") {
            Setting::Null => None,
            name => Some(exchanged("character_set_results", name.as_text())?),
        };
        let results = results.filter(|charset| *charset != Charset::Binary);
        Ok(Settings {
            autocommit: is_on("autocommit"),
            isolation: isolation(text("transaction_isolation")),
            read_only: is_on("transaction_read_only"),
            completion: match text("completion_type") {
                "CHAIN" => Completion::Chain,
                "RELEASE" => Completion::Release,
                _ => Completion::Nothing,
            },
            sql_mode: sql_mode(text("sql_mode"))?,
            client_charset: exchanged("character_set_client", text("character_set_client"))?,
            connection_collation: collation(text("collation_connection"))?,
            presentation: Arc::new(Presentation {
                charset: results,
                collation: results.map(|charset| variables.results_collation(charset)),
                time_zone: time_zone(text("time_zone"))?,
            }),
            limits: Limits {
                select_rows: number("sql_select_limit"),
                recursion_depth: number("cte_max_recursion_depth"),
                foreign_key_checks: is_on("foreign_key_checks"),
                auto_increment_increment: number("auto_increment_increment"),
                auto_increment_offset: number("auto_increment_offset"),
                uses_column_cache: is_on("firn_column_cache"),
            },
            first_updater_wins: is_on("innodb_snapshot_isolation"),
            lock_wait_timeout: Duration::from_secs(number("innodb_lock_wait_timeout")),
            metadata_wait_timeout: Duration::from_secs(number("lock_wait_timeout")),
            fixed_time_us: match variables.known("timestamp") {
                Setting::Real(seconds) if *seconds > 0.0 => Some((seconds * 1e6) as i64),
                _ => None,
            },
            div_precision_increment: number("div_precision_increment") as u8,
            group_concat_max_length_bytes: number("group_concat_max_len"),
            max_allowed_packet_bytes: number("max_allowed_packet"),
            default_week_format: number("default_week_format") as u8,
            max_error_count: number("max_error_count") as usize,
            safe_updates: is_on("sql_safe_updates"),
            max_execution_time_ms: number("max_execution_time"),
            executor: match text("firn_executor") {
                "ROW" => Some(Executor::Row),
                "VECTORISED" => Some(Executor::Vectorised),
                _ => None,
            },
            read_consistency: read_consistency::parse(
                text(read_consistency::VARIABLE),
                ReadConsistency::Strong {
                    shares: is_on("firn_shared_timestamps"),
                    by_page: is_on("firn_waits_by_page"),
                    log_tail: is_on("firn_log_tail"),
                },
                Cts(number("firn_read_position")),
            )?,
            read_wait: Duration::from_millis(number("firn_read_wait_ms")),
            analytic_cost: number("firn_analytic_cost"),
            statement_memory_bytes: number("firn_statement_memory"),
            long_query_us: match variables.known("long_query_time") {
                Setting::Real(seconds) => (seconds * 1e6) as u64,
                _ => u64::MAX,
            },
        })
    }

    /// Sets what functions and casts depend on.
    pub(crate) fn apply_to(&self, evaluation: &mut EvaluationContext) {
        evaluation.sql_mode = self.sql_mode;
        evaluation.time_zone = self.presentation.time_zone.clone();
        evaluation.div_precision_increment = self.div_precision_increment;
        evaluation.group_concat_max_length_bytes = self.group_concat_max_length_bytes;
        evaluation.max_allowed_packet_bytes = self.max_allowed_packet_bytes;
        evaluation.connection_collation = self.connection_collation;
        evaluation.default_week_format = self.default_week_format;
        evaluation.max_error_count = self.max_error_count;
    }

    /// The grammar's switches under the current `sql_mode`.
    pub(crate) fn grammar_mode(&self) -> grammar::Mode {
        let mode = self.sql_mode;
        grammar::Mode {
            ansi_quotes: mode.contains(SqlMode::ANSI_QUOTES),
            pipes_as_concat: mode.contains(SqlMode::PIPES_AS_CONCAT),
            no_backslash_escapes: mode.contains(SqlMode::NO_BACKSLASH_ESCAPES),
            high_not_precedence: mode.contains(SqlMode::HIGH_NOT_PRECEDENCE),
            ignore_space: mode.contains(SqlMode::IGNORE_SPACE),
        }
    }

    /// A text of the client's character set as UTF-8.
    ///
    /// # Errors
    /// 1300 if it is invalid in that character set.
    pub(crate) fn decode<'t>(&self, text: &'t [u8]) -> Result<Cow<'t, str>> {
        let charset = self.client_charset;
        let invalid = || {
            let name = charset.name();
            SqlError::new(1300, format!("Invalid {name} character string"))
        };
        match charset {
            Charset::Utf8mb4 | Charset::Utf8mb3 | Charset::Ascii => match std::str::from_utf8(text)
            {
                Ok(text) => Ok(Cow::Borrowed(text)),
                // Bytes inside string literals may be meant for binary columns.
                Err(_) => {
                    let escapes = !self.sql_mode.contains(SqlMode::NO_BACKSLASH_ESCAPES);
                    binary_text::with_hexadecimal(text, escapes).map(Cow::Owned).ok_or_else(invalid)
                }
            },
            other => match other.decode(text).ok_or_else(invalid)? {
                Cow::Borrowed(text) => {
                    std::str::from_utf8(text).map(Cow::Borrowed).map_err(|_| invalid())
                }
                Cow::Owned(text) => String::from_utf8(text).map(Cow::Owned).map_err(|_| invalid()),
            },
        }
    }

    /// Whether bytes are valid text in the client's character set.
    pub(crate) fn is_client_text(&self, bytes: &[u8]) -> bool {
        let charset = self.client_charset;
        match charset.is_utf8() || charset == Charset::Ascii {
            true => std::str::from_utf8(bytes).is_ok(),
            false => charset.decode(bytes).is_some(),
        }
    }
}

/// A character set that clients' text may have.
///
/// # Errors
/// 1115 if there is none with that name.
pub(crate) fn charset(name: &str) -> Result<Charset> {
    let unknown = || SqlError::new(1115, format!("Unknown character set: '{name}'"));
    Charset::by_name(name).ok_or_else(unknown)
}

/// A character set for the connection, in which ASCII is encoded as itself.
///
/// # Errors
/// 1115 if there is none with that name, 1231 if a character has at least two bytes.
pub(crate) fn exchanged(variable: &str, name: &str) -> Result<Charset> {
    let charset = charset(name)?;
    if charset.unit_bytes() > 1 {
        let name = charset.name();
        let why = format!("Variable '{variable}' can't be set to the value of '{name}'");
        return Err(SqlError::new(1231, why));
    }
    Ok(charset)
}

/// A character set of files that are read or written.
///
/// # Errors
/// 1115 if there is none with that name, 1235 if a character has at least two bytes.
pub(crate) fn charset_of_file(name: &str) -> Result<Charset> {
    let charset = charset(name)?;
    match charset.unit_bytes() {
        1 => Ok(charset),
        _ => Err(SqlError::not_supported(&format!("files in {}", charset.name()))),
    }
}

/// A collation by its name.
///
/// # Errors
/// 1273 if there is none with that name.
pub(crate) fn collation(name: &str) -> Result<CollationId> {
    let unknown = || SqlError::new(1273, format!("Unknown collation: '{name}'"));
    collation::by_name(name).map(|collation| collation.id).ok_or_else(unknown)
}

fn sql_mode(names: &str) -> Result<SqlMode> {
    SqlMode::parse(names).map_err(|name| {
        let why = format!("Variable 'sql_mode' can't be set to the value of '{name}'");
        SqlError::new(1231, why)
    })
}

fn time_zone(name: &str) -> Result<TimeZone> {
    let unknown = || SqlError::new(1298, format!("Unknown or incorrect time zone: '{name}'"));
    TimeZone::parse(name).ok_or_else(unknown)
}

/// The isolation level of a value of `transaction_isolation`. READ UNCOMMITTED behaves like READ
/// COMMITTED: uncommitted data is never seen.
pub(crate) fn isolation(name: &str) -> IsolationLevel {
    match name {
        "READ-UNCOMMITTED" | "READ-COMMITTED" => IsolationLevel::ReadCommitted,
        "SERIALIZABLE" => IsolationLevel::Serializable,
        _ => IsolationLevel::RepeatableRead,
    }
}

/// The value of `transaction_isolation` for a level.
pub(crate) fn isolation_name(level: firn_sql::grammar::ast::IsolationLevel) -> Arc<str> {
    use firn_sql::grammar::ast::IsolationLevel::*;
    match level {
        ReadUncommitted => "READ-UNCOMMITTED",
        ReadCommitted => "READ-COMMITTED",
        RepeatableRead => "REPEATABLE-READ",
        Serializable => "SERIALIZABLE",
    }
    .into()
}
