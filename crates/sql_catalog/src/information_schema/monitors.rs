//! Tables that graphical clients and monitors read at connect, most of which are empty here.
//!
//! A line of [`EMPTY`] lists schema, table and columns; a column is its name and a letter: `n` a
//! number, `t` a short text, `x` a long text, `m` a moment. Clients that read them find no such
//! objects, as on a MySQL server whose `performance_schema` is off.

use std::collections::BTreeMap;

use firn_sql_types::Datum;
use firn_sql_types::error::Result;

use super::super::session::Process;
use super::super::virtual_table::{EmitRow, VirtualColumn, VirtualContext};
use super::performance::nothing;
use super::server::emit_all;
use super::{Fill, Hints, MadeUp, long_text, moment, number, text};

/// Whether a table of `performance_schema` never has a row.
pub(super) fn is_empty(name: &str) -> bool {
    EMPTY.iter().any(|(schema, table, _)| {
        *schema == "performance_schema" && table.eq_ignore_ascii_case(name)
    })
}

pub(super) fn all() -> Vec<MadeUp> {
    let mut tables: Vec<MadeUp> =
        EMPTY.iter().map(|(schema, name, columns)| table(schema, name, columns, nothing)).collect();
    tables.extend([
        table(
            "performance_schema",
            "users",
            "USER t CURRENT_CONNECTIONS n TOTAL_CONNECTIONS n",
            users,
        ),
        table(
            "performance_schema",
            "hosts",
            "HOST t CURRENT_CONNECTIONS n TOTAL_CONNECTIONS n",
            hosts,
        ),
        table(
            "performance_schema",
            "accounts",
            "USER t HOST t CURRENT_CONNECTIONS n TOTAL_CONNECTIONS n",
            accounts,
        ),
        table("sys", "processlist", SYS_PROCESSES, sys_processes),
        table("sys", "session", SYS_PROCESSES, sys_processes),
    ]);
    tables
}

fn table(schema: &'static str, name: &'static str, columns: &'static str, fill: Fill) -> MadeUp {
    MadeUp { schema, name, columns: parsed(columns), hinted: Vec::new(), fill }
}

/// The columns of a line of [`EMPTY`].
fn parsed(columns: &'static str) -> Vec<VirtualColumn> {
    let mut words = columns.split_ascii_whitespace();
    let mut parsed = Vec::new();
    while let (Some(name), Some(kind)) = (words.next(), words.next()) {
        parsed.push(match kind {
            "n" => number(name),
            "x" => long_text(name),
            "m" => moment(name),
            _ => text(name, 255),
        });
    }
    parsed
}

/// How many connections there are of each kind.
fn grouped(
    context: &VirtualContext<'_>,
    key: impl Fn(Process) -> Vec<String>,
    emit: EmitRow<'_>,
) -> Result<()> {
    let mut counts: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    for process in context.session.processes() {
        *counts.entry(key(process)).or_default() += 1;
    }
    let row = |(key, count): (Vec<String>, u64)| {
        let names = key.into_iter().map(Datum::text);
        names.chain([Datum::UInt(count), Datum::UInt(count)]).collect()
    };
    emit_all(counts.into_iter().map(row), emit)
}

fn users(context: &VirtualContext<'_>, _: &Hints<'_>, emit: EmitRow<'_>) -> Result<()> {
    grouped(context, |process| vec![process.user], emit)
}

fn hosts(context: &VirtualContext<'_>, _: &Hints<'_>, emit: EmitRow<'_>) -> Result<()> {
    grouped(context, |process| vec![process.host], emit)
}

fn accounts(context: &VirtualContext<'_>, _: &Hints<'_>, emit: EmitRow<'_>) -> Result<()> {
    grouped(context, |process| vec![process.user, process.host], emit)
}

const SYS_PROCESSES: &str = "thd_id n conn_id n user t db t command t state t time n \
    current_statement x execution_engine t statement_latency t progress n lock_latency t cpu_latency t \
    rows_examined n rows_sent n rows_affected n tmp_tables n tmp_disk_tables n full_scan t \
    last_statement x last_statement_latency t current_memory t last_wait t last_wait_latency t \
    source t trx_latency t trx_state t trx_autocommit t pid t program_name t";

fn sys_processes(context: &VirtualContext<'_>, _: &Hints<'_>, emit: EmitRow<'_>) -> Result<()> {
    let count = parsed(SYS_PROCESSES).len();
    let some = |value: Option<String>| value.map_or(Datum::Null, Datum::text);
    let row = |process: Process| {
        let mut row = vec![
            Datum::UInt(process.id),
            Datum::UInt(process.id),
            Datum::text(format!("{}@{}", process.user, process.host)),
            some(process.schema),
            Datum::text(process.command),
            Datum::text(process.state),
            Datum::UInt(process.time_s),
            some(process.info),
            Datum::text("PRIMARY"),
        ];
        row.resize(count, Datum::Null);
        row
    };
    emit_all(context.session.processes().into_iter().map(row), emit)
}

/// The columns of `performance_schema` for an event.
macro_rules! event_columns {
    ($rest:literal) => {
        concat!(
            "THREAD_ID n EVENT_ID n END_EVENT_ID n EVENT_NAME t SOURCE t TIMER_START n TIMER_END n \
             TIMER_WAIT n ",
            $rest,
            " NESTING_EVENT_ID n NESTING_EVENT_TYPE t"
        )
    };
}

const STATEMENTS: &str = event_columns!(
    "LOCK_TIME n SQL_TEXT x DIGEST t DIGEST_TEXT x CURRENT_SCHEMA t OBJECT_TYPE t OBJECT_SCHEMA t \
     OBJECT_NAME t OBJECT_INSTANCE_BEGIN n MYSQL_ERRNO n RETURNED_SQLSTATE t MESSAGE_TEXT t ERRORS n \
     WARNINGS n ROWS_AFFECTED n ROWS_SENT n ROWS_EXAMINED n CREATED_TMP_DISK_TABLES n \
     CREATED_TMP_TABLES n SELECT_FULL_JOIN n SELECT_FULL_RANGE_JOIN n SELECT_RANGE n \
     SELECT_RANGE_CHECK n SELECT_SCAN n SORT_MERGE_PASSES n SORT_RANGE n SORT_ROWS n SORT_SCAN n \
     NO_INDEX_USED n NO_GOOD_INDEX_USED n STATEMENT_ID n"
);
const STAGES: &str = event_columns!("WORK_COMPLETED n WORK_ESTIMATED n");
const WAITS: &str = event_columns!(
    "SPINS n OBJECT_SCHEMA t OBJECT_NAME t INDEX_NAME t OBJECT_TYPE t OBJECT_INSTANCE_BEGIN n \
     OPERATION t NUMBER_OF_BYTES n FLAGS n"
);
const TRANSACTIONS: &str = event_columns!(
    "STATE t TRX_ID n GTID t XID t XA_STATE t ACCESS_MODE t ISOLATION_LEVEL t AUTOCOMMIT t"
);
const SUMMARY: &str = "EVENT_NAME t COUNT_STAR n SUM_TIMER_WAIT n MIN_TIMER_WAIT n AVG_TIMER_WAIT n \
    MAX_TIMER_WAIT n";
const TABLE_IO: &str = "OBJECT_TYPE t OBJECT_SCHEMA t OBJECT_NAME t INDEX_NAME t COUNT_STAR n \
    SUM_TIMER_WAIT n COUNT_READ n SUM_TIMER_READ n COUNT_WRITE n SUM_TIMER_WRITE n COUNT_FETCH n \
    SUM_TIMER_FETCH n COUNT_INSERT n SUM_TIMER_INSERT n COUNT_UPDATE n SUM_TIMER_UPDATE n \
    COUNT_DELETE n SUM_TIMER_DELETE n";
const COMPRESSION: &str = "PAGE_SIZE n COMPRESS_OPS n COMPRESS_OPS_OK n COMPRESS_TIME n \
    UNCOMPRESS_OPS n UNCOMPRESS_TIME n";

/// Tables that are always empty.
const EMPTY: &[(&str, &str, &str)] = &[
    ("performance_schema", "events_statements_current", STATEMENTS),
    ("performance_schema", "events_statements_history", STATEMENTS),
    ("performance_schema", "events_statements_history_long", STATEMENTS),
    ("performance_schema", "events_stages_current", STAGES),
    ("performance_schema", "events_stages_history", STAGES),
    ("performance_schema", "events_stages_history_long", STAGES),
    ("performance_schema", "events_waits_current", WAITS),
    ("performance_schema", "events_waits_history", WAITS),
    ("performance_schema", "events_waits_history_long", WAITS),
    ("performance_schema", "events_transactions_current", TRANSACTIONS),
    ("performance_schema", "events_transactions_history", TRANSACTIONS),
    ("performance_schema", "events_waits_summary_global_by_event_name", SUMMARY),
    ("performance_schema", "events_stages_summary_global_by_event_name", SUMMARY),
    ("performance_schema", "events_statements_summary_global_by_event_name", SUMMARY),
    ("performance_schema", "events_transactions_summary_global_by_event_name", SUMMARY),
    ("performance_schema", "table_io_waits_summary_by_table", TABLE_IO),
    ("performance_schema", "table_io_waits_summary_by_index_usage", TABLE_IO),
    (
        "performance_schema",
        "table_lock_waits_summary_by_table",
        "OBJECT_TYPE t OBJECT_SCHEMA t OBJECT_NAME t COUNT_STAR n SUM_TIMER_WAIT n COUNT_READ n \
         SUM_TIMER_READ n COUNT_WRITE n SUM_TIMER_WRITE n",
    ),
    (
        "performance_schema",
        "file_summary_by_instance",
        "FILE_NAME t EVENT_NAME t OBJECT_INSTANCE_BEGIN n COUNT_STAR n SUM_TIMER_WAIT n COUNT_READ n \
         SUM_TIMER_READ n SUM_NUMBER_OF_BYTES_READ n COUNT_WRITE n SUM_TIMER_WRITE n \
         SUM_NUMBER_OF_BYTES_WRITE n COUNT_MISC n SUM_TIMER_MISC n",
    ),
    (
        "performance_schema",
        "file_summary_by_event_name",
        "EVENT_NAME t COUNT_STAR n SUM_TIMER_WAIT n COUNT_READ n SUM_TIMER_READ n \
         SUM_NUMBER_OF_BYTES_READ n COUNT_WRITE n SUM_TIMER_WRITE n SUM_NUMBER_OF_BYTES_WRITE n",
    ),
    (
        "performance_schema",
        "memory_summary_global_by_event_name",
        "EVENT_NAME t COUNT_ALLOC n COUNT_FREE n SUM_NUMBER_OF_BYTES_ALLOC n SUM_NUMBER_OF_BYTES_FREE n \
         LOW_COUNT_USED n CURRENT_COUNT_USED n HIGH_COUNT_USED n LOW_NUMBER_OF_BYTES_USED n \
         CURRENT_NUMBER_OF_BYTES_USED n HIGH_NUMBER_OF_BYTES_USED n",
    ),
    (
        "performance_schema",
        "data_lock_waits",
        "ENGINE t REQUESTING_ENGINE_LOCK_ID t REQUESTING_ENGINE_TRANSACTION_ID n REQUESTING_THREAD_ID n \
         REQUESTING_EVENT_ID n REQUESTING_OBJECT_INSTANCE_BEGIN n BLOCKING_ENGINE_LOCK_ID t \
         BLOCKING_ENGINE_TRANSACTION_ID n BLOCKING_THREAD_ID n BLOCKING_EVENT_ID n \
         BLOCKING_OBJECT_INSTANCE_BEGIN n",
    ),
    ("performance_schema", "setup_actors", "HOST t USER t ROLE t ENABLED t HISTORY t"),
    (
        "performance_schema",
        "setup_objects",
        "OBJECT_TYPE t OBJECT_SCHEMA t OBJECT_NAME t ENABLED t TIMED t",
    ),
    (
        "performance_schema",
        "setup_threads",
        "NAME t ENABLED t HISTORY t PROPERTIES t VOLATILITY n DOCUMENTATION x",
    ),
    (
        "performance_schema",
        "replication_connection_configuration",
        "CHANNEL_NAME t HOST t PORT n USER t NETWORK_INTERFACE t AUTO_POSITION t SSL_ALLOWED t",
    ),
    (
        "performance_schema",
        "replication_connection_status",
        "CHANNEL_NAME t GROUP_NAME t SOURCE_UUID t THREAD_ID n SERVICE_STATE t \
         COUNT_RECEIVED_HEARTBEATS n LAST_HEARTBEAT_TIMESTAMP m RECEIVED_TRANSACTION_SET x \
         LAST_ERROR_NUMBER n LAST_ERROR_MESSAGE t LAST_ERROR_TIMESTAMP m",
    ),
    (
        "performance_schema",
        "replication_applier_status",
        "CHANNEL_NAME t SERVICE_STATE t REMAINING_DELAY n COUNT_TRANSACTIONS_RETRIES n",
    ),
    (
        "performance_schema",
        "replication_applier_status_by_worker",
        "CHANNEL_NAME t WORKER_ID n THREAD_ID n SERVICE_STATE t LAST_ERROR_NUMBER n \
         LAST_ERROR_MESSAGE t LAST_ERROR_TIMESTAMP m",
    ),
    (
        "performance_schema",
        "replication_group_members",
        "CHANNEL_NAME t MEMBER_ID t MEMBER_HOST t MEMBER_PORT n MEMBER_STATE t MEMBER_ROLE t \
         MEMBER_VERSION t MEMBER_COMMUNICATION_STACK t",
    ),
    (
        "performance_schema",
        "replication_group_member_stats",
        "CHANNEL_NAME t VIEW_ID t MEMBER_ID t COUNT_TRANSACTIONS_IN_QUEUE n \
         COUNT_TRANSACTIONS_CHECKED n COUNT_CONFLICTS_DETECTED n",
    ),
    (
        "performance_schema",
        "session_account_connect_attrs",
        "PROCESSLIST_ID n ATTR_NAME t ATTR_VALUE t ORDINAL_POSITION n",
    ),
    (
        "performance_schema",
        "variables_info",
        "VARIABLE_NAME t VARIABLE_SOURCE t VARIABLE_PATH t MIN_VALUE t MAX_VALUE t SET_TIME m SET_USER t \
         SET_HOST t",
    ),
    ("performance_schema", "persisted_variables", "VARIABLE_NAME t VARIABLE_VALUE t"),
    ("performance_schema", "keyring_component_status", "STATUS_KEY t STATUS_VALUE t"),
    ("performance_schema", "log_status", "SERVER_UUID t LOCAL x REPLICATION x STORAGE_ENGINES x"),
    (
        "performance_schema",
        "error_log",
        "LOGGED m THREAD_ID n PRIO t ERROR_CODE t SUBSYSTEM t DATA x",
    ),
    (
        "performance_schema",
        "host_cache",
        "IP t HOST t HOST_VALIDATED t SUM_CONNECT_ERRORS n COUNT_HOST_BLOCKED_ERRORS n FIRST_SEEN m \
         LAST_SEEN m",
    ),
    ("performance_schema", "status_by_thread", "THREAD_ID n VARIABLE_NAME t VARIABLE_VALUE t"),
    ("performance_schema", "variables_by_thread", "THREAD_ID n VARIABLE_NAME t VARIABLE_VALUE t"),
    (
        "performance_schema",
        "user_variables_by_thread",
        "THREAD_ID n VARIABLE_NAME t VARIABLE_VALUE x",
    ),
    (
        "performance_schema",
        "prepared_statements_instances",
        "OBJECT_INSTANCE_BEGIN n STATEMENT_ID n STATEMENT_NAME t SQL_TEXT x OWNER_THREAD_ID n \
         OWNER_EVENT_ID n COUNT_EXECUTE n SUM_TIMER_EXECUTE n",
    ),
    ("mysql", "db", "Host t Db t User t Select_priv t Insert_priv t Update_priv t Delete_priv t"),
    (
        "mysql",
        "tables_priv",
        "Host t Db t User t Table_name t Grantor t Timestamp m Table_priv t Column_priv t",
    ),
    (
        "mysql",
        "columns_priv",
        "Host t Db t User t Table_name t Column_name t Timestamp m Column_priv t",
    ),
    (
        "mysql",
        "procs_priv",
        "Host t Db t User t Routine_name t Routine_type t Grantor t Proc_priv t Timestamp m",
    ),
    (
        "mysql",
        "proxies_priv",
        "Host t User t Proxied_host t Proxied_user t With_grant n Grantor t Timestamp m",
    ),
    ("mysql", "default_roles", "HOST t USER t DEFAULT_ROLE_HOST t DEFAULT_ROLE_USER t"),
    ("mysql", "role_edges", "FROM_HOST t FROM_USER t TO_HOST t TO_USER t WITH_ADMIN_OPTION t"),
    ("mysql", "global_grants", "USER t HOST t PRIV t WITH_GRANT_OPTION t"),
    ("mysql", "component", "component_id n component_group_id n component_urn x"),
    (
        "mysql",
        "servers",
        "Server_name t Host t Db t Username t Password t Port n Socket t Wrapper t Owner t",
    ),
    (
        "mysql",
        "innodb_table_stats",
        "database_name t table_name t last_update m n_rows n clustered_index_size n \
         sum_of_other_index_sizes n",
    ),
    (
        "mysql",
        "innodb_index_stats",
        "database_name t table_name t index_name t last_update m stat_name t stat_value n \
         sample_size n stat_description t",
    ),
    ("mysql", "time_zone", "Time_zone_id n Use_leap_seconds t"),
    ("mysql", "help_category", "help_category_id n name t parent_category_id n url x"),
    ("mysql", "help_keyword", "help_keyword_id n name t"),
    ("mysql", "help_relation", "help_topic_id n help_keyword_id n"),
    ("sys", "sys_config", "variable t value t set_time m set_by t"),
    (
        "sys",
        "innodb_lock_waits",
        "wait_started m wait_age t wait_age_secs n locked_table x locked_table_schema t \
         locked_table_name t locked_index t locked_type t waiting_trx_id n waiting_pid n \
         waiting_query x blocking_trx_id n blocking_pid n blocking_query x sql_kill_blocking_query t",
    ),
    (
        "sys",
        "statement_analysis",
        "query x db t full_scan t exec_count n err_count n warn_count n total_latency t max_latency t \
         avg_latency t rows_sent n rows_examined n digest t first_seen m last_seen m",
    ),
    (
        "sys",
        "schema_table_statistics",
        "table_schema t table_name t total_latency t rows_fetched n fetch_latency t rows_inserted n \
         rows_updated n rows_deleted n",
    ),
    (
        "sys",
        "schema_index_statistics",
        "table_schema t table_name t index_name t rows_selected n select_latency t rows_inserted n \
         rows_updated n rows_deleted n",
    ),
    ("sys", "schema_unused_indexes", "object_schema t object_name t index_name t"),
    (
        "sys",
        "schema_redundant_indexes",
        "table_schema t table_name t redundant_index_name t redundant_index_columns x \
         dominant_index_name t dominant_index_columns x sql_drop_index t",
    ),
    ("sys", "memory_global_total", "total_allocated t"),
    ("sys", "metrics", "Variable_name t Variable_value x Type t Enabled t"),
    ("information_schema", "INNODB_CMP", COMPRESSION),
    ("information_schema", "INNODB_CMP_RESET", COMPRESSION),
    (
        "information_schema",
        "INNODB_CMPMEM",
        "PAGE_SIZE n BUFFER_POOL_INSTANCE n PAGES_USED n PAGES_FREE n RELOCATION_OPS n RELOCATION_TIME n",
    ),
    (
        "information_schema",
        "INNODB_BUFFER_POOL_STATS",
        "POOL_ID n POOL_SIZE n FREE_BUFFERS n DATABASE_PAGES n OLD_DATABASE_PAGES n \
         MODIFIED_DATABASE_PAGES n HIT_RATE n",
    ),
    ("information_schema", "INNODB_DATAFILES", "SPACE t PATH t"),
    ("information_schema", "INNODB_TEMP_TABLE_INFO", "TABLE_ID n NAME t N_COLS n SPACE n"),
    ("information_schema", "INNODB_FT_CONFIG", "KEY t VALUE t"),
    (
        "information_schema",
        "INNODB_SESSION_TEMP_TABLESPACES",
        "ID n SPACE n PATH t SIZE n STATE t PURPOSE t",
    ),
    (
        "information_schema",
        "ST_SPATIAL_REFERENCE_SYSTEMS",
        "SRS_NAME t SRS_ID n ORGANIZATION t ORGANIZATION_COORDSYS_ID n DEFINITION x DESCRIPTION x",
    ),
    (
        "information_schema",
        "ST_UNITS_OF_MEASURE",
        "UNIT_NAME t UNIT_TYPE t CONVERSION_FACTOR n DESCRIPTION t",
    ),
    (
        "information_schema",
        "ADMINISTRABLE_ROLE_AUTHORIZATIONS",
        "USER t HOST t GRANTEE t GRANTEE_HOST t ROLE_NAME t ROLE_HOST t IS_GRANTABLE t IS_DEFAULT t \
         IS_MANDATORY t",
    ),
    (
        "information_schema",
        "ROLE_COLUMN_GRANTS",
        "GRANTOR t GRANTOR_HOST t GRANTEE t GRANTEE_HOST t TABLE_CATALOG t TABLE_SCHEMA t TABLE_NAME t \
         COLUMN_NAME t PRIVILEGE_TYPE t IS_GRANTABLE t",
    ),
    (
        "information_schema",
        "ROLE_ROUTINE_GRANTS",
        "GRANTOR t GRANTOR_HOST t GRANTEE t GRANTEE_HOST t SPECIFIC_CATALOG t SPECIFIC_SCHEMA t \
         SPECIFIC_NAME t PRIVILEGE_TYPE t IS_GRANTABLE t",
    ),
];
