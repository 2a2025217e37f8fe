//! Tables that are always empty.

use super::super::virtual_table::VirtualColumn;
use super::performance::nothing;
use super::{MadeUp, exact, int, long_text, moment, number, schema_table, text};

pub(super) fn all() -> Vec<MadeUp> {
    vec![
        schema_table("ROUTINES", routines(), &["ROUTINE_SCHEMA"], nothing),
        schema_table("PARAMETERS", parameters(), &["SPECIFIC_SCHEMA"], nothing),
        schema_table("TRIGGERS", triggers(), &["TRIGGER_SCHEMA"], nothing),
        schema_table("EVENTS", events(), &["EVENT_SCHEMA"], nothing),
        schema_table("FILES", files(), &[], nothing),
        schema_table("OPTIMIZER_TRACE", optimizer_trace(), &[], nothing),
        schema_table("RESOURCE_GROUPS", resource_groups(), &[], nothing),
        schema_table("ROLE_TABLE_GRANTS", role_table_grants(), &[], nothing),
        schema_table("TABLESPACES_EXTENSIONS", tablespaces_extensions(), &[], nothing),
        schema_table("VIEW_TABLE_USAGE", view_table_usage(), &["VIEW_SCHEMA"], nothing),
        schema_table("VIEW_ROUTINE_USAGE", view_routine_usage(), &[], nothing),
        schema_table("ST_GEOMETRY_COLUMNS", geometry_columns(), &[], nothing),
        schema_table("INNODB_TABLESPACES", tablespaces(), &[], nothing),
        schema_table("INNODB_METRICS", metrics(), &[], nothing),
        schema_table("INNODB_FOREIGN", innodb_foreign(), &[], nothing),
    ]
}

fn routines() -> Vec<VirtualColumn> {
    vec![
        text("SPECIFIC_NAME", 64),
        text("ROUTINE_CATALOG", 64),
        exact("ROUTINE_SCHEMA"),
        text("ROUTINE_NAME", 64),
        text("ROUTINE_TYPE", 9),
        long_text("DATA_TYPE"),
        number("CHARACTER_MAXIMUM_LENGTH"),
        number("CHARACTER_OCTET_LENGTH"),
        number("NUMERIC_PRECISION"),
        number("NUMERIC_SCALE"),
        number("DATETIME_PRECISION"),
        text("CHARACTER_SET_NAME", 64),
        text("COLLATION_NAME", 64),
        long_text("DTD_IDENTIFIER"),
        text("ROUTINE_BODY", 8),
        long_text("ROUTINE_DEFINITION"),
        int("EXTERNAL_NAME"),
        text("EXTERNAL_LANGUAGE", 64),
        text("PARAMETER_STYLE", 3),
        text("IS_DETERMINISTIC", 3),
        text("SQL_DATA_ACCESS", 18),
        int("SQL_PATH"),
        text("SECURITY_TYPE", 7),
        moment("CREATED"),
        moment("LAST_ALTERED"),
        text("SQL_MODE", 520),
        long_text("ROUTINE_COMMENT"),
        text("DEFINER", 288),
        text("CHARACTER_SET_CLIENT", 64),
        text("COLLATION_CONNECTION", 64),
        text("DATABASE_COLLATION", 64),
    ]
}

fn parameters() -> Vec<VirtualColumn> {
    vec![
        text("SPECIFIC_CATALOG", 64),
        exact("SPECIFIC_SCHEMA"),
        text("SPECIFIC_NAME", 64),
        number("ORDINAL_POSITION"),
        text("PARAMETER_MODE", 5),
        text("PARAMETER_NAME", 64),
        long_text("DATA_TYPE"),
        number("CHARACTER_MAXIMUM_LENGTH"),
        number("CHARACTER_OCTET_LENGTH"),
        number("NUMERIC_PRECISION"),
        number("NUMERIC_SCALE"),
        number("DATETIME_PRECISION"),
        text("CHARACTER_SET_NAME", 64),
        text("COLLATION_NAME", 64),
        long_text("DTD_IDENTIFIER"),
        text("ROUTINE_TYPE", 9),
    ]
}

fn triggers() -> Vec<VirtualColumn> {
    vec![
        text("TRIGGER_CATALOG", 64),
        exact("TRIGGER_SCHEMA"),
        text("TRIGGER_NAME", 64),
        text("EVENT_MANIPULATION", 6),
        text("EVENT_OBJECT_CATALOG", 64),
        exact("EVENT_OBJECT_SCHEMA"),
        exact("EVENT_OBJECT_TABLE"),
        number("ACTION_ORDER"),
        long_text("ACTION_CONDITION"),
        long_text("ACTION_STATEMENT"),
        text("ACTION_ORIENTATION", 3),
        text("ACTION_TIMING", 6),
        text("ACTION_REFERENCE_OLD_TABLE", 64),
        text("ACTION_REFERENCE_NEW_TABLE", 64),
        text("ACTION_REFERENCE_OLD_ROW", 3),
        text("ACTION_REFERENCE_NEW_ROW", 3),
        moment("CREATED"),
        text("SQL_MODE", 520),
        text("DEFINER", 288),
        text("CHARACTER_SET_CLIENT", 64),
        text("COLLATION_CONNECTION", 64),
        text("DATABASE_COLLATION", 64),
    ]
}

fn events() -> Vec<VirtualColumn> {
    vec![
        text("EVENT_CATALOG", 64),
        exact("EVENT_SCHEMA"),
        text("EVENT_NAME", 64),
        text("DEFINER", 288),
        text("TIME_ZONE", 64),
        text("EVENT_BODY", 3),
        long_text("EVENT_DEFINITION"),
        text("EVENT_TYPE", 9),
        moment("EXECUTE_AT"),
        text("INTERVAL_VALUE", 256),
        text("INTERVAL_FIELD", 18),
        text("SQL_MODE", 520),
        moment("STARTS"),
        moment("ENDS"),
        text("STATUS", 21),
        text("ON_COMPLETION", 12),
        moment("CREATED"),
        moment("LAST_ALTERED"),
        moment("LAST_EXECUTED"),
        text("EVENT_COMMENT", 2048),
        int("ORIGINATOR"),
        text("CHARACTER_SET_CLIENT", 64),
        text("COLLATION_CONNECTION", 64),
        text("DATABASE_COLLATION", 64),
    ]
}

fn files() -> Vec<VirtualColumn> {
    vec![
        number("FILE_ID"),
        long_text("FILE_NAME"),
        text("FILE_TYPE", 256),
        text("TABLESPACE_NAME", 268),
        text("TABLE_CATALOG", 64),
        text("TABLE_SCHEMA", 64),
        text("TABLE_NAME", 64),
        text("LOGFILE_GROUP_NAME", 256),
        number("LOGFILE_GROUP_NUMBER"),
        text("ENGINE", 64),
        number("FREE_EXTENTS"),
        number("TOTAL_EXTENTS"),
        number("EXTENT_SIZE"),
        number("INITIAL_SIZE"),
        number("MAXIMUM_SIZE"),
        text("STATUS", 256),
        text("EXTRA", 256),
    ]
}

fn optimizer_trace() -> Vec<VirtualColumn> {
    vec![
        long_text("QUERY"),
        long_text("TRACE"),
        int("MISSING_BYTES_BEYOND_MAX_MEM_SIZE"),
        int("INSUFFICIENT_PRIVILEGES"),
    ]
}

fn resource_groups() -> Vec<VirtualColumn> {
    vec![
        text("RESOURCE_GROUP_NAME", 64),
        text("RESOURCE_GROUP_TYPE", 6),
        int("RESOURCE_GROUP_ENABLED"),
        long_text("VCPU_IDS"),
        int("THREAD_PRIORITY"),
    ]
}

fn role_table_grants() -> Vec<VirtualColumn> {
    vec![
        text("GRANTOR", 97),
        text("GRANTOR_HOST", 256),
        text("GRANTEE", 32),
        text("GRANTEE_HOST", 255),
        text("TABLE_CATALOG", 3),
        exact("TABLE_SCHEMA"),
        exact("TABLE_NAME"),
        text("PRIVILEGE_TYPE", 130),
        text("IS_GRANTABLE", 3),
    ]
}

fn tablespaces_extensions() -> Vec<VirtualColumn> {
    vec![text("TABLESPACE_NAME", 268), long_text("ENGINE_ATTRIBUTE")]
}

fn view_table_usage() -> Vec<VirtualColumn> {
    vec![
        text("VIEW_CATALOG", 64),
        exact("VIEW_SCHEMA"),
        exact("VIEW_NAME"),
        text("TABLE_CATALOG", 64),
        exact("TABLE_SCHEMA"),
        exact("TABLE_NAME"),
    ]
}

fn view_routine_usage() -> Vec<VirtualColumn> {
    vec![
        text("TABLE_CATALOG", 64),
        exact("TABLE_SCHEMA"),
        exact("TABLE_NAME"),
        text("SPECIFIC_CATALOG", 64),
        text("SPECIFIC_SCHEMA", 64),
        text("SPECIFIC_NAME", 64),
    ]
}

fn geometry_columns() -> Vec<VirtualColumn> {
    vec![
        text("TABLE_CATALOG", 64),
        exact("TABLE_SCHEMA"),
        exact("TABLE_NAME"),
        text("COLUMN_NAME", 64),
        text("SRS_NAME", 80),
        number("SRS_ID"),
        long_text("GEOMETRY_TYPE_NAME"),
    ]
}

fn tablespaces() -> Vec<VirtualColumn> {
    vec![
        number("SPACE"),
        text("NAME", 655),
        number("FLAG"),
        text("ROW_FORMAT", 22),
        number("PAGE_SIZE"),
        number("ZIP_PAGE_SIZE"),
        text("SPACE_TYPE", 10),
        number("FS_BLOCK_SIZE"),
        number("FILE_SIZE"),
        number("ALLOCATED_SIZE"),
        text("STATE", 10),
    ]
}

fn metrics() -> Vec<VirtualColumn> {
    vec![
        text("NAME", 193),
        text("SUBSYSTEM", 193),
        number("COUNT"),
        text("STATUS", 193),
        text("TYPE", 193),
        text("COMMENT", 193),
    ]
}

fn innodb_foreign() -> Vec<VirtualColumn> {
    vec![
        text("ID", 129),
        text("FOR_NAME", 129),
        text("REF_NAME", 129),
        number("N_COLS"),
        number("TYPE"),
    ]
}
