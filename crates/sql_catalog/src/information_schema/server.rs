//! The server and its users: character sets, engines, keywords, processes, privileges.

use firn_sql_collation::{self as collation, Charset};
use firn_sql_types::Datum;
use firn_sql_types::error::Result;

use super::super::session::Process;
use super::super::virtual_table::{EmitRow, VirtualColumn, VirtualContext};
use super::{Hints, MadeUp, exact, int, long_text, maybe_text, number, schema_table, text};

pub(super) fn all() -> Vec<MadeUp> {
    vec![
        schema_table("CHARACTER_SETS", charset_columns(), &[], fill_charsets),
        schema_table("COLLATIONS", collation_columns(), &[], fill_collations),
        schema_table(
            "COLLATION_CHARACTER_SET_APPLICABILITY",
            vec![text("COLLATION_NAME", 64), text("CHARACTER_SET_NAME", 64)],
            &[],
            fill_applicability,
        ),
        schema_table("ENGINES", engine_columns(), &[], fill_engines),
        schema_table("PLUGINS", plugin_columns(), &[], fill_plugins),
        schema_table("KEYWORDS", vec![text("WORD", 128), int("RESERVED")], &[], fill_keywords),
        schema_table("PROCESSLIST", process_columns(), &[], fill_processes),
        schema_table("USER_PRIVILEGES", user_privilege_columns(), &[], |context, _, emit| {
            fill_session(context, "USER_PRIVILEGES", emit)
        }),
        schema_table("SCHEMA_PRIVILEGES", schema_privilege_columns(), &[], |context, _, emit| {
            fill_session(context, "SCHEMA_PRIVILEGES", emit)
        }),
        schema_table("TABLE_PRIVILEGES", table_privilege_columns(), &[], |context, _, emit| {
            fill_session(context, "TABLE_PRIVILEGES", emit)
        }),
        schema_table("COLUMN_PRIVILEGES", column_privilege_columns(), &[], |context, _, emit| {
            fill_session(context, "COLUMN_PRIVILEGES", emit)
        }),
        schema_table("APPLICABLE_ROLES", role_columns(), &[], |context, _, emit| {
            fill_session(context, "APPLICABLE_ROLES", emit)
        }),
        schema_table("ENABLED_ROLES", enabled_role_columns(), &[], |context, _, emit| {
            fill_session(context, "ENABLED_ROLES", emit)
        }),
        schema_table("USER_ATTRIBUTES", attribute_columns(), &[], |context, _, emit| {
            fill_session(context, "USER_ATTRIBUTES", emit)
        }),
        schema_table("PROFILING", profiling_columns(), &[], |context, _, emit| {
            fill_session(context, "PROFILING", emit)
        }),
        schema_table("INNODB_TRX", trx_columns(), &[], |context, _, emit| {
            fill_session(context, "INNODB_TRX", emit)
        }),
        schema_table("FIRN_ARCHIVE", archive_columns(), &[], |context, _, emit| {
            fill_session(context, "FIRN_ARCHIVE", emit)
        }),
    ]
}

/// Rows from the session layer.
pub(super) fn fill_session(
    context: &VirtualContext<'_>,
    table: &str,
    emit: EmitRow<'_>,
) -> Result<()> {
    emit_all(context.session.rows("information_schema", table), emit)
}

pub(super) fn emit_all(
    rows: impl IntoIterator<Item = Vec<Datum>>,
    emit: EmitRow<'_>,
) -> Result<()> {
    for row in rows {
        if !emit(&row)? {
            break;
        }
    }
    Ok(())
}

fn charset_columns() -> Vec<VirtualColumn> {
    vec![
        text("CHARACTER_SET_NAME", 64),
        text("DEFAULT_COLLATE_NAME", 64),
        text("DESCRIPTION", 2048),
        int("MAXLEN"),
    ]
}

fn fill_charsets(_: &VirtualContext<'_>, _: &Hints<'_>, emit: EmitRow<'_>) -> Result<()> {
    emit_all(
        Charset::ALL.into_iter().map(|charset| {
            vec![
                Datum::text(charset.name()),
                Datum::text(collation::get(charset.default_collation()).name),
                Datum::text(charset.description()),
                Datum::Int(charset.max_character_bytes().into()),
            ]
        }),
        emit,
    )
}

fn collation_columns() -> Vec<VirtualColumn> {
    vec![
        text("COLLATION_NAME", 64),
        text("CHARACTER_SET_NAME", 64),
        number("ID"),
        text("IS_DEFAULT", 3),
        text("IS_COMPILED", 3),
        int("SORTLEN"),
        text("PAD_ATTRIBUTE", 9),
    ]
}

fn fill_collations(_: &VirtualContext<'_>, _: &Hints<'_>, emit: EmitRow<'_>) -> Result<()> {
    let mut collations: Vec<_> = collation::all().iter().collect();
    collations.sort_by_key(|collation| collation.name);
    let rows = collations.into_iter().map(|collation| {
        let pads = if collation.pads_with_spaces() { "PAD SPACE" } else { "NO PAD" };
        vec![
            Datum::text(collation.name),
            Datum::text(collation.charset.name()),
            Datum::UInt(collation.id.0.into()),
            Datum::text(if collation.is_default() { "Yes" } else { "" }),
            Datum::text("Yes"),
            Datum::Int(collation.sort_length.into()),
            Datum::text(pads),
        ]
    });
    emit_all(rows, emit)
}

fn fill_applicability(_: &VirtualContext<'_>, _: &Hints<'_>, emit: EmitRow<'_>) -> Result<()> {
    let rows = collation::all()
        .iter()
        .map(|collation| vec![Datum::text(collation.name), Datum::text(collation.charset.name())]);
    emit_all(rows, emit)
}

fn engine_columns() -> Vec<VirtualColumn> {
    vec![
        text("ENGINE", 64),
        text("SUPPORT", 8),
        text("COMMENT", 80),
        text("TRANSACTIONS", 3),
        text("XA", 3),
        text("SAVEPOINTS", 3),
    ]
}

fn fill_engines(_: &VirtualContext<'_>, _: &Hints<'_>, emit: EmitRow<'_>) -> Result<()> {
    const COMMENT: &str = "Supports transactions, row-level locking, and foreign keys";
    let engine = ["InnoDB", "DEFAULT", COMMENT, "YES", "YES", "YES"];
    emit(&engine.map(Datum::text)).map(|_| ())
}

fn plugin_columns() -> Vec<VirtualColumn> {
    vec![
        text("PLUGIN_NAME", 64),
        text("PLUGIN_VERSION", 20),
        text("PLUGIN_STATUS", 10),
        text("PLUGIN_TYPE", 80),
        text("PLUGIN_TYPE_VERSION", 20),
        text("PLUGIN_LIBRARY", 64),
        text("PLUGIN_LIBRARY_VERSION", 20),
        text("PLUGIN_AUTHOR", 64),
        long_text("PLUGIN_DESCRIPTION"),
        text("PLUGIN_LICENSE", 80),
        text("LOAD_OPTION", 64),
    ]
}

fn fill_plugins(_: &VirtualContext<'_>, _: &Hints<'_>, emit: EmitRow<'_>) -> Result<()> {
    let plugin = |name: &str, kind: &str, description: &str| {
        vec![
            Datum::text(name),
            Datum::text("1.0"),
            Datum::text("ACTIVE"),
            Datum::text(kind),
            Datum::text("80000.0"),
            Datum::Null,
            Datum::Null,
            Datum::text("Firn"),
            Datum::text(description),
            Datum::text("Apache-2.0"),
            Datum::text("FORCE"),
        ]
    };
    let plugins = [
        plugin("mysql_native_password", "AUTHENTICATION", "Native MySQL authentication"),
        plugin("caching_sha2_password", "AUTHENTICATION", "Caching sha2 authentication"),
        plugin(
            "InnoDB",
            "STORAGE ENGINE",
            "Firn's storage engine under the name that clients know",
        ),
    ];
    emit_all(plugins, emit)
}

/// Words that clients quote. Not all that the grammar knows: the reserved ones, in order.
const RESERVED_WORDS: &str = "ACCESSIBLE ADD ALL ALTER ANALYZE AND AS ASC ASENSITIVE BEFORE BETWEEN BIGINT \
    BINARY BLOB BOTH BY CALL CASCADE CASE CHANGE CHAR CHARACTER CHECK COLLATE COLUMN CONDITION CONSTRAINT \
    CONTINUE CONVERT CREATE CROSS CUBE CUME_DIST CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER \
    CURSOR DATABASE DATABASES DAY_HOUR DAY_MICROSECOND DAY_MINUTE DAY_SECOND DEC DECIMAL DECLARE DEFAULT \
    DELAYED DELETE DENSE_RANK DESC DESCRIBE DETERMINISTIC DISTINCT DISTINCTROW DIV DOUBLE DROP DUAL EACH \
    ELSE ELSEIF EMPTY ENCLOSED ESCAPED EXCEPT EXISTS EXIT EXPLAIN FALSE FETCH FIRST_VALUE FLOAT FLOAT4 \
    FLOAT8 FOR FORCE FOREIGN FROM FULLTEXT FUNCTION GENERATED GET GRANT GROUP GROUPING GROUPS HAVING \
    HIGH_PRIORITY HOUR_MICROSECOND HOUR_MINUTE HOUR_SECOND IF IGNORE IN INDEX INFILE INNER INOUT \
    INSENSITIVE INSERT INT INT1 INT2 INT3 INT4 INT8 INTEGER INTERSECT INTERVAL INTO IO_AFTER_GTIDS \
    IO_BEFORE_GTIDS IS ITERATE JOIN JSON_TABLE KEY KEYS KILL LAG LAST_VALUE LATERAL LEAD LEADING LEAVE \
    LEFT LIKE LIMIT LINEAR LINES LOAD LOCALTIME LOCALTIMESTAMP LOCK LONG LONGBLOB LONGTEXT LOOP \
    LOW_PRIORITY MASTER_BIND MATCH MAXVALUE MEDIUMBLOB MEDIUMINT MEDIUMTEXT MIDDLEINT MINUTE_MICROSECOND \
    MINUTE_SECOND MOD MODIFIES NATURAL NOT NO_WRITE_TO_BINLOG NTH_VALUE NTILE NULL NUMERIC OF ON OPTIMIZE \
    OPTIMIZER_COSTS OPTION OPTIONALLY OR ORDER OUT OUTER OUTFILE OVER PARTITION PERCENT_RANK PRECISION \
    PRIMARY PROCEDURE PURGE RANGE RANK READ READS READ_WRITE REAL RECURSIVE REFERENCES REGEXP RELEASE \
    RENAME REPEAT REPLACE REQUIRE RESIGNAL RESTRICT RETURN REVOKE RIGHT RLIKE ROW ROWS ROW_NUMBER SCHEMA \
    SCHEMAS SECOND_MICROSECOND SELECT SENSITIVE SEPARATOR SET SHOW SIGNAL SMALLINT SPATIAL SPECIFIC SQL \
    SQLEXCEPTION SQLSTATE SQLWARNING SQL_BIG_RESULT SQL_CALC_FOUND_ROWS SQL_SMALL_RESULT SSL STARTING \
    STORED STRAIGHT_JOIN SYSTEM TABLE TERMINATED THEN TINYBLOB TINYINT TINYTEXT TO TRAILING TRIGGER TRUE \
    UNDO UNION UNIQUE UNLOCK UNSIGNED UPDATE USAGE USE USING UTC_DATE UTC_TIME UTC_TIMESTAMP VALUES \
    VARBINARY VARCHAR VARCHARACTER VARYING VIRTUAL WHEN WHERE WHILE WINDOW WITH WRITE XOR YEAR_MONTH \
    ZEROFILL";

fn fill_keywords(_: &VirtualContext<'_>, _: &Hints<'_>, emit: EmitRow<'_>) -> Result<()> {
    let words = RESERVED_WORDS.split_ascii_whitespace();
    emit_all(words.map(|word| vec![Datum::text(word), Datum::Int(1)]), emit)
}

pub(super) fn process_columns() -> Vec<VirtualColumn> {
    vec![
        number("ID"),
        text("USER", 32),
        text("HOST", 261),
        text("DB", 64),
        text("COMMAND", 16),
        int("TIME"),
        text("STATE", 64),
        long_text("INFO"),
    ]
}

pub(super) fn process_row(process: Process) -> Vec<Datum> {
    vec![
        Datum::UInt(process.id),
        Datum::text(process.user),
        Datum::text(process.host),
        maybe_text(process.schema),
        Datum::text(process.command),
        Datum::Int(process.time_s as i64),
        Datum::text(process.state),
        maybe_text(process.info),
    ]
}

fn fill_processes(context: &VirtualContext<'_>, _: &Hints<'_>, emit: EmitRow<'_>) -> Result<()> {
    emit_all(context.session.processes().into_iter().map(process_row), emit)
}

fn user_privilege_columns() -> Vec<VirtualColumn> {
    vec![
        text("GRANTEE", 292),
        text("TABLE_CATALOG", 512),
        text("PRIVILEGE_TYPE", 64),
        text("IS_GRANTABLE", 3),
    ]
}

fn schema_privilege_columns() -> Vec<VirtualColumn> {
    vec![
        text("GRANTEE", 292),
        text("TABLE_CATALOG", 512),
        exact("TABLE_SCHEMA"),
        text("PRIVILEGE_TYPE", 64),
        text("IS_GRANTABLE", 3),
    ]
}

fn table_privilege_columns() -> Vec<VirtualColumn> {
    let mut columns = schema_privilege_columns();
    columns.insert(3, exact("TABLE_NAME"));
    columns
}

fn column_privilege_columns() -> Vec<VirtualColumn> {
    let mut columns = table_privilege_columns();
    columns.insert(4, text("COLUMN_NAME", 64));
    columns
}

fn role_columns() -> Vec<VirtualColumn> {
    vec![
        text("USER", 97),
        text("HOST", 256),
        text("GRANTEE", 97),
        text("GRANTEE_HOST", 256),
        text("ROLE_NAME", 255),
        text("ROLE_HOST", 256),
        text("IS_GRANTABLE", 3),
        text("IS_DEFAULT", 3),
        text("IS_MANDATORY", 3),
    ]
}

fn enabled_role_columns() -> Vec<VirtualColumn> {
    vec![
        text("ROLE_NAME", 255),
        text("ROLE_HOST", 255),
        text("IS_DEFAULT", 3),
        text("IS_MANDATORY", 3),
    ]
}

fn attribute_columns() -> Vec<VirtualColumn> {
    vec![text("USER", 32), text("HOST", 255), long_text("ATTRIBUTE")]
}

fn profiling_columns() -> Vec<VirtualColumn> {
    vec![
        int("QUERY_ID"),
        int("SEQ"),
        text("STATE", 30),
        VirtualColumn { name: "DURATION", ty: firn_sql_types::SqlType::decimal(9, 6) },
    ]
}

/// The archive of the database, as the node that answers knows it: one row, or none without one.
fn archive_columns() -> Vec<VirtualColumn> {
    vec![
        text("NODE", 64),
        number("ARCHIVED_LSN"),
        number("ARCHIVED_UNIX_TIME_MS"),
        number("LAG_MS"),
        number("LAG_BYTES"),
        number("LOG_OBJECTS"),
        number("IMAGE_SETS"),
        number("SIZE_BYTES"),
        number("SENT_BYTES"),
        number("FAILURES"),
        long_text("LAST_ERROR"),
    ]
}

fn trx_columns() -> Vec<VirtualColumn> {
    vec![
        number("trx_id"),
        text("trx_state", 13),
        super::moment("trx_started"),
        text("trx_requested_lock_id", 126),
        super::moment("trx_wait_started"),
        number("trx_weight"),
        number("trx_mysql_thread_id"),
        text("trx_query", 1024),
        text("trx_operation_state", 64),
        number("trx_tables_in_use"),
        number("trx_tables_locked"),
        number("trx_lock_structs"),
        number("trx_rows_locked"),
        number("trx_rows_modified"),
        text("trx_isolation_level", 16),
    ]
}
