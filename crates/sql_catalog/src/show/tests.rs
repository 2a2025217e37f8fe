//! The answers to `SHOW` statements.

use expect_test::{Expect, expect};
use firn_sql_grammar as grammar;
use firn_sql_grammar::ast::Statement;
use firn_sql_types::Datum;

use crate::session::SessionCatalog;
use crate::test_support::TestNode;

use super::{ShowAnswer, ShowContext, describe, rewrite};

fn answer(catalog: &SessionCatalog, text: &str) -> String {
    let statement = grammar::parse(text, grammar::Mode::default()).unwrap().statement;
    let context = ShowContext { catalog, current_schema: Some("test") };
    let answer = match &statement {
        Statement::Show(show) => rewrite(&context, show),
        Statement::Describe { table, column } => describe(&context, table, column.as_deref()),
        other => panic!("{other:?}"),
    };
    match answer {
        Ok(ShowAnswer::Query(query)) => {
            grammar::parse(&query, grammar::Mode::default()).expect("a query");
            query
        }
        Ok(ShowAnswer::Session) => "the session's".to_owned(),
        Ok(ShowAnswer::Rows { columns, rows }) => {
            let mut text: Vec<String> = columns.into_iter().map(|(name, _)| name).collect();
            for datum in rows.concat() {
                text.push(match datum {
                    Datum::Text(text) => text.to_str_lossy().into_owned(),
                    other => format!("{other:?}"),
                });
            }
            text.join(" | ")
        }
        Err(error) => format!("{} {error}", error.code),
    }
}

#[test]
fn statements_that_list_become_queries() {
    let node = TestNode::new();
    firn_test_node::add_schema(&*node.node, "test");
    let catalog = node.session_catalog(firn_api::Incarnation::default());
    let texts = [
        "SHOW DATABASES LIKE 'a%'",
        "SHOW TABLES",
        "SHOW FULL TABLES FROM information_schema WHERE Table_type <> 'VIEW'",
        "SHOW COLUMNS FROM information_schema.tables LIKE 'table\\_name'",
        "SHOW FULL COLUMNS FROM missing",
        "SHOW TABLES FROM missing",
        "DESCRIBE INFORMATION_SCHEMA.Engines",
        "SHOW INDEX FROM information_schema.engines",
        "SHOW TABLE STATUS LIKE 't'",
        "SHOW CREATE DATABASE test",
        "SHOW CREATE TABLE information_schema.keywords",
        "SHOW CREATE TABLE missing",
        "SHOW CREATE PROCEDURE p",
        "SHOW CHARACTER SET",
        "SHOW COLLATION WHERE Charset = 'latin1'",
        "SHOW ENGINES",
        "SHOW PLUGINS",
        "SHOW TRIGGERS",
        "SHOW EVENTS",
        "SHOW PROCEDURE STATUS LIKE 'p'",
        "SHOW OPEN TABLES",
        "SHOW VARIABLES",
        "SHOW REPLICA STATUS",
    ];
    let mut shown = String::new();
    for text in texts {
        shown
            .push_str(&format!("{text}\n    {}\n", answer(&catalog, text).replace('\n', "\n    ")));
    }
    let expected: Expect = expect![[r#"
        SHOW DATABASES LIKE 'a%'
            SELECT `SCHEMA_NAME` AS `Database (a%)` FROM information_schema.SCHEMATA WHERE `SCHEMA_NAME` LIKE 'a%'
        SHOW TABLES
            SELECT `TABLE_NAME` AS `Tables_in_test` FROM information_schema.TABLES WHERE `TABLE_SCHEMA` = 'test'
        SHOW FULL TABLES FROM information_schema WHERE Table_type <> 'VIEW'
            SELECT * FROM (SELECT `TABLE_NAME` AS `Tables_in_information_schema`, `TABLE_TYPE` AS `Table_type` FROM information_schema.TABLES WHERE `TABLE_SCHEMA` = 'information_schema') AS `shown` WHERE (`Table_type` <> 'VIEW')
        SHOW COLUMNS FROM information_schema.tables LIKE 'table\_name'
            SELECT `COLUMN_NAME` AS `Field`, `COLUMN_TYPE` AS `Type`, `IS_NULLABLE` AS `Null`, `COLUMN_KEY` AS `Key`, `COLUMN_DEFAULT` AS `Default`, `EXTRA` AS `Extra` FROM information_schema.COLUMNS WHERE `TABLE_SCHEMA` = 'information_schema' AND `TABLE_NAME` = 'TABLES' AND `COLUMN_NAME` LIKE 'table\\_name'
        SHOW FULL COLUMNS FROM missing
            1146 Table 'test.missing' doesn't exist
        SHOW TABLES FROM missing
            1049 Unknown database 'missing'
        DESCRIBE INFORMATION_SCHEMA.Engines
            SELECT `COLUMN_NAME` AS `Field`, `COLUMN_TYPE` AS `Type`, `IS_NULLABLE` AS `Null`, `COLUMN_KEY` AS `Key`, `COLUMN_DEFAULT` AS `Default`, `EXTRA` AS `Extra` FROM information_schema.COLUMNS WHERE `TABLE_SCHEMA` = 'information_schema' AND `TABLE_NAME` = 'ENGINES'
        SHOW INDEX FROM information_schema.engines
            SELECT `TABLE_NAME` AS `Table`, `NON_UNIQUE` AS `Non_unique`, `INDEX_NAME` AS `Key_name`, `SEQ_IN_INDEX` AS `Seq_in_index`, `COLUMN_NAME` AS `Column_name`, `COLLATION` AS `Collation`, `CARDINALITY` AS `Cardinality`, `SUB_PART` AS `Sub_part`, `PACKED` AS `Packed`, `NULLABLE` AS `Null`, `INDEX_TYPE` AS `Index_type`, `COMMENT` AS `Comment`, `INDEX_COMMENT` AS `Index_comment`, `IS_VISIBLE` AS `Visible`, `EXPRESSION` AS `Expression` FROM information_schema.STATISTICS WHERE `TABLE_SCHEMA` = 'information_schema' AND `TABLE_NAME` = 'ENGINES'
        SHOW TABLE STATUS LIKE 't'
            SELECT `TABLE_NAME` AS `Name`, `ENGINE` AS `Engine`, `VERSION` AS `Version`, `ROW_FORMAT` AS `Row_format`, `TABLE_ROWS` AS `Rows`, `AVG_ROW_LENGTH` AS `Avg_row_length`, `DATA_LENGTH` AS `Data_length`, `MAX_DATA_LENGTH` AS `Max_data_length`, `INDEX_LENGTH` AS `Index_length`, `DATA_FREE` AS `Data_free`, `AUTO_INCREMENT` AS `Auto_increment`, `CREATE_TIME` AS `Create_time`, `UPDATE_TIME` AS `Update_time`, `CHECK_TIME` AS `Check_time`, `TABLE_COLLATION` AS `Collation`, `CHECKSUM` AS `Checksum`, `CREATE_OPTIONS` AS `Create_options`, `TABLE_COMMENT` AS `Comment` FROM information_schema.TABLES WHERE `TABLE_SCHEMA` = 'test' AND `TABLE_NAME` LIKE 't'
        SHOW CREATE DATABASE test
            Database | Create Database | test | CREATE DATABASE `test` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci */ /*!80016 DEFAULT ENCRYPTION='N' */
        SHOW CREATE TABLE information_schema.keywords
            Table | Create Table | KEYWORDS | CREATE TEMPORARY TABLE `KEYWORDS` (
              `WORD` varchar(128),
              `RESERVED` int
            ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb3
        SHOW CREATE TABLE missing
            1146 Table 'test.missing' doesn't exist
        SHOW CREATE PROCEDURE p
            1305 PROCEDURE p does not exist
        SHOW CHARACTER SET
            SELECT `CHARACTER_SET_NAME` AS `Charset`, `DESCRIPTION` AS `Description`, `DEFAULT_COLLATE_NAME` AS `Default collation`, `MAXLEN` AS `Maxlen` FROM information_schema.CHARACTER_SETS
        SHOW COLLATION WHERE Charset = 'latin1'
            SELECT * FROM (SELECT `COLLATION_NAME` AS `Collation`, `CHARACTER_SET_NAME` AS `Charset`, `ID` AS `Id`, `IS_DEFAULT` AS `Default`, `IS_COMPILED` AS `Compiled`, `SORTLEN` AS `Sortlen`, `PAD_ATTRIBUTE` AS `Pad_attribute` FROM information_schema.COLLATIONS) AS `shown` WHERE (`Charset` = 'latin1')
        SHOW ENGINES
            SELECT `ENGINE` AS `Engine`, `SUPPORT` AS `Support`, `COMMENT` AS `Comment`, `TRANSACTIONS` AS `Transactions`, `XA` AS `XA`, `SAVEPOINTS` AS `Savepoints` FROM information_schema.ENGINES
        SHOW PLUGINS
            SELECT `PLUGIN_NAME` AS `Name`, `PLUGIN_STATUS` AS `Status`, `PLUGIN_TYPE` AS `Type`, `PLUGIN_LIBRARY` AS `Library`, `PLUGIN_LICENSE` AS `License` FROM information_schema.PLUGINS
        SHOW TRIGGERS
            SELECT `TRIGGER_NAME` AS `Trigger`, `EVENT_MANIPULATION` AS `Event`, `EVENT_OBJECT_TABLE` AS `Table`, `ACTION_STATEMENT` AS `Statement`, `ACTION_TIMING` AS `Timing`, `CREATED` AS `Created`, `SQL_MODE` AS `sql_mode`, `DEFINER` AS `Definer`, `CHARACTER_SET_CLIENT` AS `character_set_client`, `COLLATION_CONNECTION` AS `collation_connection`, `DATABASE_COLLATION` AS `Database Collation` FROM information_schema.TRIGGERS WHERE `TRIGGER_SCHEMA` = 'test'
        SHOW EVENTS
            SELECT `EVENT_SCHEMA` AS `Db`, `EVENT_NAME` AS `Name`, `DEFINER` AS `Definer`, `TIME_ZONE` AS `Time zone`, `EVENT_TYPE` AS `Type`, `EXECUTE_AT` AS `Execute at`, `INTERVAL_VALUE` AS `Interval value`, `INTERVAL_FIELD` AS `Interval field`, `STARTS` AS `Starts`, `ENDS` AS `Ends`, `STATUS` AS `Status`, `ORIGINATOR` AS `Originator`, `CHARACTER_SET_CLIENT` AS `character_set_client`, `COLLATION_CONNECTION` AS `collation_connection`, `DATABASE_COLLATION` AS `Database Collation` FROM information_schema.EVENTS WHERE `EVENT_SCHEMA` = 'test'
        SHOW PROCEDURE STATUS LIKE 'p'
            SELECT `ROUTINE_SCHEMA` AS `Db`, `ROUTINE_NAME` AS `Name`, `ROUTINE_TYPE` AS `Type`, `EXTERNAL_LANGUAGE` AS `Language`, `DEFINER` AS `Definer`, `LAST_ALTERED` AS `Modified`, `CREATED` AS `Created`, `SECURITY_TYPE` AS `Security_type`, `ROUTINE_COMMENT` AS `Comment`, `CHARACTER_SET_CLIENT` AS `character_set_client`, `COLLATION_CONNECTION` AS `collation_connection`, `DATABASE_COLLATION` AS `Database Collation` FROM information_schema.ROUTINES WHERE ROUTINE_TYPE = 'PROCEDURE' AND ROUTINE_NAME LIKE 'p'
        SHOW OPEN TABLES
            SELECT `TABLE_SCHEMA` AS `Database`, `TABLE_NAME` AS `Table`, 0 AS `In_use`, 0 AS `Name_locked` FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE'
        SHOW VARIABLES
            the session's
        SHOW REPLICA STATUS
            Replica_IO_State | Source_Host | Source_User | Source_Port
    "#]];
    expected.assert_eq(&shown);
}
