//! What clients read of `performance_schema`, `mysql` and `sys`.

use firn_sql_types::Datum;
use firn_sql_types::error::Result;

use super::super::virtual_table::{EmitRow, VirtualColumn, VirtualContext};
use super::server::{emit_all, process_columns, process_row};
use super::{Fill, Hints, MadeUp, exact, int, long_text, number, text};

pub(super) fn all() -> Vec<MadeUp> {
    vec![
        performance("global_variables", variable_columns(), |context, _, emit| {
            emit_pairs(context.session.variables(true), emit)
        }),
        performance("session_variables", variable_columns(), |context, _, emit| {
            emit_pairs(context.session.variables(false), emit)
        }),
        performance("global_status", variable_columns(), |context, _, emit| {
            emit_pairs(context.session.status(true), emit)
        }),
        performance("session_status", variable_columns(), |context, _, emit| {
            emit_pairs(context.session.status(false), emit)
        }),
        performance("processlist", process_columns(), fill_processes),
        performance("threads", thread_columns(), fill_threads),
        performance("data_locks", lock_columns(), |context, _, emit| {
            emit_all(context.session.rows("performance_schema", "data_locks"), emit)
        }),
        performance("metadata_locks", metadata_lock_columns(), nothing),
        performance("events_statements_summary_by_digest", digest_columns(), |context, _, emit| {
            let table = "events_statements_summary_by_digest";
            emit_all(context.session.rows("performance_schema", table), emit)
        }),
        performance("session_connect_attrs", attribute_columns(), nothing),
        performance("setup_instruments", setup_columns(), nothing),
        performance("setup_consumers", setup_columns(), nothing),
        of("sys", "version", version_columns(), |_, _, emit| {
            emit(&[Datum::text("2.1.2"), Datum::text("8.0.40")]).map(|_| ())
        }),
        of("mysql", "user", user_columns(), |context, _, emit| {
            emit_all(context.session.rows("mysql", "user"), emit)
        }),
        of("mysql", "time_zone_name", time_zone_columns(), nothing),
        of("mysql", "func", function_columns(), nothing),
        of("mysql", "plugin", vec![text("name", 64), text("dl", 128)], nothing),
        of("mysql", "help_topic", help_columns(), nothing),
        of("mysql", "general_log", log_columns(), nothing),
        of("mysql", "slow_log", log_columns(), nothing),
    ]
}

fn user_columns() -> Vec<VirtualColumn> {
    vec![
        text("Host", 255),
        text("User", 32),
        text("plugin", 64),
        text("authentication_string", 1024),
        text("password_expired", 1),
        text("account_locked", 1),
    ]
}

fn of(schema: &'static str, name: &'static str, columns: Vec<VirtualColumn>, fill: Fill) -> MadeUp {
    MadeUp { schema, name, columns, hinted: Vec::new(), fill }
}

fn performance(name: &'static str, columns: Vec<VirtualColumn>, fill: Fill) -> MadeUp {
    of("performance_schema", name, columns, fill)
}

pub(super) fn nothing(_: &VirtualContext<'_>, _: &Hints<'_>, _: EmitRow<'_>) -> Result<()> {
    Ok(())
}

fn variable_columns() -> Vec<VirtualColumn> {
    vec![text("VARIABLE_NAME", 64), text("VARIABLE_VALUE", 1024)]
}

fn emit_pairs(pairs: Vec<(String, String)>, emit: EmitRow<'_>) -> Result<()> {
    let rows = pairs.into_iter().map(|(name, value)| vec![Datum::text(name), Datum::text(value)]);
    emit_all(rows, emit)
}

fn fill_processes(context: &VirtualContext<'_>, _: &Hints<'_>, emit: EmitRow<'_>) -> Result<()> {
    emit_all(context.session.processes().into_iter().map(process_row), emit)
}

fn thread_columns() -> Vec<VirtualColumn> {
    vec![
        number("THREAD_ID"),
        text("NAME", 128),
        text("TYPE", 10),
        number("PROCESSLIST_ID"),
        text("PROCESSLIST_USER", 32),
        text("PROCESSLIST_HOST", 255),
        text("PROCESSLIST_DB", 64),
        text("PROCESSLIST_COMMAND", 16),
        number("PROCESSLIST_TIME"),
        text("PROCESSLIST_STATE", 64),
        long_text("PROCESSLIST_INFO"),
        number("PARENT_THREAD_ID"),
        text("ROLE", 64),
        text("INSTRUMENTED", 3),
        text("HISTORY", 3),
        text("CONNECTION_TYPE", 16),
        number("THREAD_OS_ID"),
        text("RESOURCE_GROUP", 64),
        text("EXECUTION_ENGINE", 16),
    ]
}

fn fill_threads(context: &VirtualContext<'_>, _: &Hints<'_>, emit: EmitRow<'_>) -> Result<()> {
    let rows = context.session.processes().into_iter().map(|process| {
        let id = Datum::UInt(process.id);
        let mut row = vec![id, Datum::text("thread/sql/one_connection"), Datum::text("FOREGROUND")];
        row.extend(process_row(process));
        row[8] = match &row[8] {
            Datum::Int(seconds) => Datum::UInt((*seconds).max(0) as u64),
            other => other.clone(),
        };
        row.extend([
            Datum::Null,
            Datum::Null,
            Datum::text("NO"),
            Datum::text("NO"),
            Datum::Null,
            Datum::Null,
            Datum::Null,
            Datum::text("PRIMARY"),
        ]);
        row
    });
    emit_all(rows, emit)
}

fn lock_columns() -> Vec<VirtualColumn> {
    vec![
        text("ENGINE", 32),
        text("ENGINE_LOCK_ID", 128),
        number("ENGINE_TRANSACTION_ID"),
        number("THREAD_ID"),
        number("EVENT_ID"),
        text("OBJECT_SCHEMA", 64),
        text("OBJECT_NAME", 64),
        text("INDEX_NAME", 64),
        text("LOCK_TYPE", 32),
        text("LOCK_MODE", 32),
        text("LOCK_STATUS", 32),
        text("LOCK_DATA", 8192),
    ]
}

fn metadata_lock_columns() -> Vec<VirtualColumn> {
    vec![
        text("OBJECT_TYPE", 64),
        exact("OBJECT_SCHEMA"),
        exact("OBJECT_NAME"),
        text("LOCK_TYPE", 32),
        text("LOCK_DURATION", 32),
        text("LOCK_STATUS", 32),
        number("OWNER_THREAD_ID"),
    ]
}

fn digest_columns() -> Vec<VirtualColumn> {
    vec![
        text("SCHEMA_NAME", 64),
        text("DIGEST", 64),
        long_text("DIGEST_TEXT"),
        number("COUNT_STAR"),
        number("SUM_TIMER_WAIT"),
        number("MIN_TIMER_WAIT"),
        number("AVG_TIMER_WAIT"),
        number("MAX_TIMER_WAIT"),
        number("SUM_ERRORS"),
        number("SUM_WARNINGS"),
        number("SUM_ROWS_AFFECTED"),
        number("SUM_ROWS_SENT"),
        number("SUM_ROWS_EXAMINED"),
    ]
}

fn attribute_columns() -> Vec<VirtualColumn> {
    vec![
        number("PROCESSLIST_ID"),
        text("ATTR_NAME", 32),
        text("ATTR_VALUE", 1024),
        int("ORDINAL_POSITION"),
    ]
}

fn setup_columns() -> Vec<VirtualColumn> {
    vec![text("NAME", 128), text("ENABLED", 3), text("TIMED", 3)]
}

fn version_columns() -> Vec<VirtualColumn> {
    vec![text("sys_version", 5), text("mysql_version", 64)]
}

fn time_zone_columns() -> Vec<VirtualColumn> {
    vec![text("Name", 64), number("Time_zone_id")]
}

fn function_columns() -> Vec<VirtualColumn> {
    vec![text("name", 64), int("ret"), text("dl", 128), text("type", 9)]
}

fn help_columns() -> Vec<VirtualColumn> {
    vec![
        number("help_topic_id"),
        text("name", 64),
        number("help_category_id"),
        long_text("description"),
        long_text("example"),
        long_text("url"),
    ]
}

fn log_columns() -> Vec<VirtualColumn> {
    vec![super::moment("event_time"), long_text("user_host"), long_text("argument")]
}
