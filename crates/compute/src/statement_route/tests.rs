use super::*;

fn check(route: StatementRoute, texts: &[&str]) {
    let routes = StatementRoutes::default();
    for text in texts {
        assert_eq!(routes.of(text.as_bytes()), route, "{text}");
        assert_eq!(routes.of(text.as_bytes()), route, "{text}, remembered");
    }
}

#[test]
fn what_reads_may_run_anywhere() {
    check(
        StatementRoute::Reads,
        &[
            "SELECT 1",
            "select * from t where a = 'FOR UPDATE' /* INSERT */",
            "SELECT @a, @@session.sql_mode, @@autocommit, LAST_INSERT_ID(), FOUND_ROWS(), ROW_COUNT()",
            "WITH a AS (SELECT 1) SELECT * FROM a UNION SELECT b FROM u ORDER BY 1 LIMIT 3",
            "SELECT COUNT(*) OVER (PARTITION BY a ORDER BY b ROWS 1 PRECEDING) FROM t GROUP BY a",
            "SELECT SLEEP(1), UUID(), NOW(), LAST_INSERT_ID(7)",
            "TABLE t",
            "VALUES ROW(1), ROW(2)",
            "EXPLAIN SELECT * FROM t",
            "SELECT * FROM t WHERE a IN (SELECT b FROM u WHERE EXISTS (SELECT 1 FROM w))",
            "SELECT * FROM t WHERE a = ?",
        ],
    );
}

#[test]
fn what_asks_for_conditions_follows_its_statement() {
    check(
        StatementRoute::Follows,
        &[
            "SHOW WARNINGS",
            "SHOW COUNT(*) ERRORS",
            "SELECT @@warning_count",
            "SELECT @@session.error_count, 1",
            "GET DIAGNOSTICS @a = NUMBER",
        ],
    );
}

#[test]
fn what_only_begins_or_ends_a_transaction_is_known() {
    let begins = [
        "BEGIN",
        "begin work",
        "START TRANSACTION",
        "START TRANSACTION READ ONLY",
        "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ WRITE;",
    ];
    check(StatementRoute::Begins, &begins);
    check(StatementRoute::Ends, &["COMMIT", "/* end */ commit work", "ROLLBACK;"]);
}

#[test]
fn everything_else_belongs_to_the_writer() {
    check(
        StatementRoute::Writer,
        &[
            "SELECT * FROM t FOR UPDATE",
            "SELECT * FROM t LOCK IN SHARE MODE",
            "SELECT * FROM (SELECT * FROM t FOR SHARE) AS u",
            "SELECT * FROM t WHERE a = (SELECT b FROM u FOR UPDATE)",
            "SELECT @a := 1",
            "SELECT a FROM t HAVING (@a := @a + 1) > 1",
            "SELECT 1 INTO @a",
            "SELECT 1 INTO OUTFILE 'f'",
            "SELECT GET_LOCK('a', 1)",
            "SELECT IF(a, RELEASE_LOCK('a'), 0) FROM t",
            "SELECT 1 FROM t ORDER BY is_free_lock('a')",
            "SELECT COUNT(*) OVER (ORDER BY GET_LOCK('a', 1)) FROM t",
            "SELECT LOAD_FILE('f')",
            "SELECT shop.f(1)",
            "SELECT @@global.sql_mode",
            "SELECT @@read_only, @@hostname",
            "SELECT @@warning_count, @@port",
            "SELECT * FROM information_schema.processlist",
            "SELECT * FROM PERFORMANCE_SCHEMA.threads",
            "TABLE mysql.user",
            "EXPLAIN DELETE FROM t",
            "EXPLAIN FOR CONNECTION 7",
            "SHOW PROCESSLIST",
            "SHOW VARIABLES",
            "INSERT INTO t VALUES (1)",
            "REPLACE t VALUES (1)",
            "UPDATE t SET a = 1",
            "DELETE FROM t",
            "CREATE TEMPORARY TABLE t (a INT)",
            "BEGIN; SELECT 1",
            "SET autocommit = 0",
            "SET TRANSACTION READ ONLY",
            "SAVEPOINT a",
            "ROLLBACK TO a",
            "COMMIT AND CHAIN",
            "COMMIT AND NO CHAIN",
            "ROLLBACK RELEASE",
            "SET @a = 1",
            "PREPARE a FROM 'SELECT 1'",
            "EXECUTE a",
            "CALL p()",
            "DO 1",
            "LOCK TABLES t READ",
            "HANDLER t OPEN",
            "XA START 'a'",
            "KILL 7",
            "USE s",
            "SELECT 1; SELECT 2",
            "no statement",
            "",
        ],
    );
}
