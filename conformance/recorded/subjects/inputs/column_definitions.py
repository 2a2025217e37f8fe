"""What the subject column_definitions asks: expressions over a table with a column of each type,
statements, and statements with parameters."""

SETUP = [
    """CREATE TABLE t (
        id INT NOT NULL AUTO_INCREMENT PRIMARY KEY,
        ti TINYINT, tiu TINYINT UNSIGNED, truth TINYINT(1), boo BOOLEAN NOT NULL DEFAULT 0,
        si SMALLINT, siu SMALLINT UNSIGNED, mi MEDIUMINT, miu MEDIUMINT UNSIGNED,
        i INT, iu INT UNSIGNED, iz INT(5) ZEROFILL, bi BIGINT, biu BIGINT UNSIGNED,
        i_nn INT NOT NULL, bi_nn BIGINT NOT NULL,
        d DECIMAL(10,2), du DECIMAL(10,2) UNSIGNED, d0 DECIMAL(5,0), d_all DECIMAL(4,4),
        d65 DECIMAL(65,30), dz DECIMAL(8,2) ZEROFILL, d_nn DECIMAL(10,2) NOT NULL,
        f FLOAT, f72 FLOAT(7,2), fu FLOAT UNSIGNED, db DOUBLE, db103 DOUBLE(10,3),
        dbu DOUBLE UNSIGNED, db_nn DOUBLE NOT NULL,
        b1 BIT(1), b10 BIT(10), b64 BIT(64), y YEAR,
        da DATE, t0 TIME, t3 TIME(3), dt DATETIME, dt6 DATETIME(6), ts TIMESTAMP NULL,
        ts3 TIMESTAMP(3) NULL, da_nn DATE NOT NULL, dt_nn DATETIME NOT NULL,
        ts_now TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
        c CHAR(10), c_l1 CHAR(10) CHARACTER SET latin1, c_nn CHAR(10) NOT NULL,
        c_bin CHAR(10) COLLATE utf8mb4_bin, vc VARCHAR(20), vc_nn VARCHAR(20) NOT NULL,
        vc_bin VARCHAR(20) COLLATE utf8mb4_bin, vc_l1 VARCHAR(20) CHARACTER SET latin1,
        vc_u3 VARCHAR(20) CHARACTER SET utf8mb3, vc_a VARCHAR(20) CHARACTER SET ascii,
        vc_long VARCHAR(5000), bn BINARY(5), vb VARBINARY(20),
        tt TINYTEXT, tx TEXT, mt MEDIUMTEXT, lt LONGTEXT, tx_l1 TEXT CHARACTER SET latin1,
        tx_nn TEXT NOT NULL, tb TINYBLOB, bl BLOB, mb MEDIUMBLOB, lb LONGBLOB,
        en ENUM('a', 'bbb'), en_nn ENUM('a', 'bbb') NOT NULL, st SET('x', 'yy'),
        en_l1 ENUM('a', 'bbb') CHARACTER SET latin1, js JSON, g GEOMETRY, p POINT,
        gen INT AS (i + 1), gen_s VARCHAR(30) AS (CONCAT(vc, 'x')) STORED
    )""",
    "CREATE TABLE k (a INT, b INT, c VARCHAR(10), d INT NOT NULL, e INT NOT NULL DEFAULT 3,"
    " PRIMARY KEY (a, b), UNIQUE KEY (c), KEY (d, e), UNIQUE KEY (e, b))",
    "CREATE TABLE no_key (a INT NOT NULL, b VARCHAR(5) NOT NULL DEFAULT 'x', c INT)",
    "CREATE VIEW v AS SELECT id, i, i + 1 AS sum, vc, boo, UPPER(vc) AS upper_vc, d FROM t",
    "CREATE VIEW v2 AS SELECT id, boo, COUNT(*) AS n, MAX(i) AS m FROM t GROUP BY id, boo",
    "SET @int = 5, @double = 1.5e0, @decimal = 2.50, @text = 'abc', @null = NULL,"
    " @bytes = x'4142', @date = CURRENT_DATE",
]

COLUMNS = """id ti tiu truth boo si siu mi miu i iu iz bi biu i_nn bi_nn d du d0 d_all d65 dz d_nn f f72 fu db
    db103 dbu db_nn b1 b10 b64 y da t0 t3 dt dt6 ts ts3 da_nn dt_nn ts_now c c_l1 c_nn c_bin vc vc_nn vc_bin
    vc_l1 vc_u3 vc_a vc_long bn vb tt tx mt lt tx_l1 tx_nn tb bl mb lb en en_nn st en_l1 js g p gen
    gen_s""".split()

LITERALS = [
    "1", "-1", "0", "100", "2147483648", "9223372036854775807", "9223372036854775808",
    "18446744073709551615", "18446744073709551616", "-9223372036854775808", "1.5", "-1.50", "0.001", ".5", "1.",
    "1e3", "-1.5e-10", "'a'", "''", "'abc def'", "'äöü'", "N'abc'", "_latin1'abc'",
    "_utf8mb4'abc' COLLATE utf8mb4_bin", "_binary'abc'", "x'4142'", "0x41", "b'101'", "NULL", "TRUE", "FALSE",
    "DATE'2024-01-02'", "TIME'10:11:12'", "TIME'10:11:12.345'", "TIMESTAMP'2024-01-02 03:04:05'",
    "TIMESTAMP'2024-01-02 03:04:05.123456'",
]  # fmt: skip

ARITHMETIC = [
    "1 + 1", "i + 1", "i + i", "i_nn + 1", "ti + ti", "iu + 1", "biu + 1", "iu - 1", "bi - bi", "i * 2", "ti * ti",
    "iu * iu", "i / 2", "1 / 3", "i / i", "d / 3", "db / 2", "i DIV 2", "iu DIV 2", "i % 3", "i MOD 7", "iu % 3",
    "-i", "-iu", "-d", "-db", "-vc", "-(1)", "+i", "d + 1", "d + d", "d * d", "d - 1.5", "d0 + 1", "du + 1",
    "d % 3", "d65 + 1", "d65 * 2", "d_all * 10", "f + 1", "f * f", "f72 + 1", "db + 1", "db103 + 1", "db103 * 2", "db + i",
    "vc + 1", "vc * 2", "'1' + 1", "NULL + 1", "i + NULL", "i + 1.5", "i + 1e0", "y + 1", "da + 1", "t0 + 1", "t3 + 1",
    "dt + 0", "dt6 + 0", "ts + 0", "en + 1", "st + 1", "b1 + 1", "b10 + 0", "js + 1", "x'41' + 0", "1.5 * 2",
    "1.5 / 3", "2.50 + 1", "10 DIV 3", "-5 % 3", "5.5 % 2",
]  # fmt: skip

BITS = [
    "i & 1", "i | 1", "i ^ 1", "~i", "i << 2", "i >> 2", "vb & vb", "vb | x'01'", "~vb", "vc & 1", "1 | 2", "~0",
    "BIT_COUNT(i)", "BIT_COUNT(vb)",
]  # fmt: skip

CONDITIONS = [
    "i = 1", "i_nn = 1", "1 = 1", "1 < 2", "vc = 'a'", "vc <> c", "i <=> NULL", "i IS NULL", "i_nn IS NULL",
    "i IS NOT NULL", "i IS TRUE", "i BETWEEN 1 AND 2", "i NOT BETWEEN 1 AND 2", "i IN (1, 2)", "i NOT IN (1, 2)",
    "vc IN ('a', 'b')", "vc LIKE 'a%'", "vc NOT LIKE 'a%'", "vc REGEXP 'a'", "NOT i", "!i", "NOT i_nn", "i AND bi",
    "i_nn AND 1", "i OR bi", "i XOR bi", "i AND 1 OR 0", "da = '2024-01-01'", "(i, bi) = (1, 2)", "truth = 1", "truth IS TRUE",
    "boo = TRUE", "NOT boo", "EXISTS (SELECT 1)", "EXISTS (SELECT 1 FROM k)", "i IN (SELECT a FROM k)",
    "i = ANY (SELECT a FROM k)", "i > ALL (SELECT a FROM k)", "MATCH_ME IS NULL", "js = 1", "NULL = 1", "NULL IS NULL",
    "i = NULL", "ISNULL(i)", "STRCMP(vc, 'a')", "INTERVAL(i, 1, 2)", "vc SOUNDS LIKE 'a'",
]  # fmt: skip
CONDITIONS.remove("MATCH_ME IS NULL")

CHOICES = [
    "CASE WHEN i THEN 1 ELSE 2 END", "CASE WHEN i THEN 1 END", "CASE i WHEN 1 THEN 'a' ELSE 'bcd' END",
    "CASE WHEN i THEN 1 ELSE 'a' END", "CASE WHEN i THEN 1 ELSE 1.5 END", "CASE WHEN i THEN i ELSE d END",
    "CASE WHEN i THEN 1 ELSE 1e0 END", "CASE WHEN i THEN da ELSE dt END", "CASE WHEN i THEN t0 ELSE dt END",
    "CASE WHEN i THEN da ELSE 'a' END", "CASE WHEN i THEN vc ELSE tx END", "CASE WHEN i THEN vc ELSE vb END",
    "CASE WHEN i THEN NULL ELSE NULL END", "CASE WHEN i THEN js ELSE NULL END", "CASE WHEN i THEN js ELSE 1 END",
    "CASE WHEN i THEN en ELSE en END", "CASE WHEN i THEN en ELSE 'q' END", "CASE WHEN i THEN y ELSE 1 END",
    "CASE WHEN i THEN b10 ELSE 1 END", "CASE WHEN i THEN iu ELSE -1 END", "CASE WHEN i THEN biu ELSE -1 END",
    "CASE WHEN i THEN ti ELSE bi END", "CASE WHEN i THEN f ELSE f72 END", "CASE WHEN i THEN f ELSE i END",
    "CASE WHEN i THEN TRUE ELSE FALSE END", "IF(i, 1, 2)", "IF(i, 1, 'abc')", "IF(i, i, NULL)", "IF(i, boo, boo)",
    "IF(i, truth, truth)", "IF(i, ti, ti)", "IF(i, iu, i)", "IF(i, vc, NULL)", "IF(i, vc, c)", "IF(i, vc_l1, 'a')",
    "IF(i, d, du)", "IF(i, db103, 1)", "IF(i, ts, ts3)", "IF(i, NULL, NULL)", "IF(i, x'41', 'a')", "IFNULL(i, 0)",
    "IFNULL(i, 'a')", "IFNULL(vc, '')", "IFNULL(NULL, NULL)", "IFNULL(d, 0)", "IFNULL(da, '2024-01-01')",
    "IFNULL(i_nn, 1)", "IFNULL(truth, 0)", "IFNULL(en, 'a')", "COALESCE(i)", "COALESCE(i, 0)", "COALESCE(i, bi, 1)",
    "COALESCE(vc, c, 'a')", "COALESCE(NULL, i)", "COALESCE(da, dt)", "COALESCE(d, 1.234)", "COALESCE(js, js)",
    "COALESCE(bl, vb)", "COALESCE(tt, tt)", "COALESCE(dt6, ts)", "NULLIF(i, 1)", "NULLIF(vc, 'a')", "NULLIF(1, 1)",
    "NULLIF(d, 1)", "NULLIF(da, dt)", "GREATEST(i, 1)", "GREATEST(i, bi)", "GREATEST(iu, i)", "GREATEST(d, 1.5)",
    "LEAST(vc, 'abc')", "LEAST(db, 1)", "GREATEST(da, dt)", "GREATEST(da, '2024-01-01')", "LEAST(i, 'a')",
    "GREATEST(t0, t3)",
]  # fmt: skip

AGGREGATES = [
    "COUNT(*)", "COUNT(i)", "COUNT(DISTINCT i, vc)", "SUM(i)", "SUM(iu)", "SUM(bi)", "SUM(d)", "SUM(d65)", "SUM(db)",
    "SUM(f)", "SUM(db103)", "SUM(vc)", "SUM(boo)", "SUM(da)", "SUM(1)", "SUM(i = 1)", "AVG(i)", "AVG(bi)", "AVG(d)",
    "AVG(db)", "AVG(f72)", "AVG(vc)", "AVG(1)", "MIN(i)", "MAX(i_nn)", "MAX(iu)", "MIN(d)", "MAX(db)", "MAX(f72)",
    "MIN(vc)", "MAX(c)", "MAX(tx)", "MIN(da)", "MAX(dt6)", "MAX(ts)", "MIN(t3)", "MAX(y)", "MAX(en)", "MAX(st)",
    "MAX(truth)", "MAX(b10)", "MAX(js)", "MAX(vb)", "MAX('a')", "MAX(1)", "BIT_AND(i)", "BIT_OR(i)", "BIT_XOR(i)",
    "BIT_OR(vb)", "GROUP_CONCAT(vc)", "GROUP_CONCAT(i)", "GROUP_CONCAT(vb)", "GROUP_CONCAT(vc_l1)", "STD(i)",
    "STDDEV_SAMP(d)", "VAR_POP(i)", "VARIANCE(db)", "VAR_SAMP(vc)", "JSON_ARRAYAGG(i)", "JSON_OBJECTAGG('a', i)",
    "ANY_VALUE(i)", "ANY_VALUE(vc)", "COUNT(*) + 1", "SUM(i) / COUNT(*)", "COALESCE(SUM(i), 0)",
    "IFNULL(MAX(i), 0) + 1", "MAX(i) IS NULL",
]  # fmt: skip

WINDOWS = [
    "ROW_NUMBER() OVER ()", "RANK() OVER (ORDER BY i)", "DENSE_RANK() OVER (ORDER BY i)",
    "PERCENT_RANK() OVER (ORDER BY i)", "CUME_DIST() OVER (ORDER BY i)", "NTILE(4) OVER (ORDER BY i)",
    "LAG(i) OVER (ORDER BY id)", "LAG(i, 1, 0) OVER (ORDER BY id)", "LEAD(vc) OVER (ORDER BY id)", "LEAD(d, 1, 0) OVER (ORDER BY id)",
    "FIRST_VALUE(i) OVER (ORDER BY id)", "LAST_VALUE(vc) OVER (ORDER BY id)", "NTH_VALUE(da, 2) OVER (ORDER BY id)",
    "SUM(i) OVER ()", "SUM(d) OVER (ORDER BY id)", "AVG(i) OVER ()", "COUNT(*) OVER ()", "MAX(vc) OVER ()",
    "MIN(i_nn) OVER ()", "FIRST_VALUE(boo) OVER ()", "BIT_OR(i) OVER ()", "STD(i) OVER ()",
]  # fmt: skip

TEXTS = [
    "CONCAT(vc, 'a')", "CONCAT(vc, i)", "CONCAT(i, d)", "CONCAT(vc, vb)", "CONCAT(vc_l1, 'a')", "CONCAT(vc, tx)",
    "CONCAT('a', NULL)", "CONCAT(da, dt)", "CONCAT(db)", "CONCAT(1, 2)", "CONCAT_WS(',', vc, c)", "UPPER(vc)", "LOWER(c)", "UPPER(vb)",
    "TRIM(vc)", "LTRIM(vc)", "TRIM('a' FROM vc)", "LEFT(vc, 3)", "LEFT(vc, i)", "RIGHT(vc, 3)", "SUBSTRING(vc, 2)",
    "SUBSTRING(vc, 2, 3)", "SUBSTRING(tx, 2, 3)", "SUBSTRING_INDEX(vc, ',', 1)", "REPLACE(vc, 'a', 'bb')", "REPEAT(vc, 3)",
    "REPEAT(vc, i)", "REVERSE(vc)", "SPACE(5)", "SPACE(i)", "LPAD(vc, 5, 'x')", "RPAD(vc, 30, 'x')", "LPAD(vc, i, 'x')",
    "INSERT(vc, 1, 2, 'abc')", "HEX(vc)", "HEX(i)", "UNHEX(vc)", "BIN(i)", "OCT(i)", "CONV(i, 10, 16)", "CHAR(65, 66)",
    "CHAR(65 USING utf8mb4)", "ASCII(vc)", "ORD(vc)", "LENGTH(vc)", "CHAR_LENGTH(vc)", "BIT_LENGTH(vc)", "LOCATE('a', vc)",
    "INSTR(vc, 'a')", "POSITION('a' IN vc)", "FIELD(vc, 'a', 'b')", "FIND_IN_SET('a', vc)", "ELT(1, 'a', 'bcd')",
    "MAKE_SET(1, 'a', 'b')", "EXPORT_SET(5, 'Y', 'N', ',', 4)", "FORMAT(i, 2)", "FORMAT(d, 0)", "QUOTE(vc)", "SOUNDEX(vc)",
    "TO_BASE64(vc)", "FROM_BASE64(vc)", "SHA2(vc, 256)", "CRC32(vc)", "COMPRESS(vc)",
    "UNCOMPRESSED_LENGTH(vb)", "AES_ENCRYPT(vc, 'k')", "AES_DECRYPT(vb, 'k')", "RANDOM_BYTES(4)", "REGEXP_REPLACE(vc, 'a', 'b')",
    "REGEXP_SUBSTR(vc, 'a')", "REGEXP_INSTR(vc, 'a')", "REGEXP_LIKE(vc, 'a')", "CHARSET(vc)", "COLLATION(vc)",
    "COERCIBILITY(vc)", "vc COLLATE utf8mb4_bin", "CONVERT(vc USING latin1)", "CONVERT(i USING utf8mb4)", "WEIGHT_STRING(vc)",
    "INET_ATON(vc)", "INET_NTOA(i)", "INET6_ATON(vc)", "INET6_NTOA(vb)", "IS_IPV4(vc)", "UUID()", "UUID_SHORT()",
    "UUID_TO_BIN(vc)", "BIN_TO_UUID(vb)", "IS_UUID(vc)",
]  # fmt: skip

NUMBERS = [
    "ABS(i)", "ABS(iu)", "ABS(d)", "ABS(db)", "ABS(vc)", "CEIL(i)", "CEIL(d)", "FLOOR(d)", "FLOOR(db)", "FLOOR(d65)", "ROUND(i)",
    "ROUND(d, 1)", "ROUND(d, i)", "ROUND(db)", "ROUND(db, 2)", "ROUND(i, -1)", "TRUNCATE(d, 1)", "TRUNCATE(db, 1)",
    "SIGN(i)", "MOD(i, 3)", "MOD(d, 3)", "POW(i, 2)", "SQRT(i)", "EXP(1)", "LN(i)", "LOG(2, i)", "LOG10(i)", "PI()", "RAND()", "SIN(i)",
    "ATAN2(i, 1)", "DEGREES(i)", "CRC32('a')", "CAST(vc AS SIGNED)", "CAST(vc AS UNSIGNED)", "CAST(i AS SIGNED)",
    "CAST(vc AS DECIMAL(10,3))", "CAST(vc AS DECIMAL)", "CAST(i AS CHAR)", "CAST(i AS CHAR(5))", "CAST(vc AS BINARY)",
    "CAST(vc AS BINARY(5))", "CAST(vc AS CHAR CHARACTER SET latin1)", "CAST(tx AS CHAR)", "CAST(vc AS DATE)", "CAST(vc AS TIME(3))", "CAST(vc AS DATETIME)",
    "CAST(vc AS DATETIME(6))", "CAST(i AS DOUBLE)", "CAST(i AS FLOAT)", "CAST(i AS REAL)", "CAST(vc AS JSON)",
    "CAST(i AS YEAR)", "BINARY vc", "CONVERT(i, CHAR)", "i_nn * 1.0", "CAST(i_nn AS SIGNED)", "CAST(NULL AS SIGNED)",
]  # fmt: skip

DATES = [
    "NOW()", "NOW(3)", "CURRENT_DATE", "CURRENT_TIME", "CURTIME(6)", "SYSDATE()", "UTC_TIMESTAMP()", "UTC_DATE()",
    "UTC_TIME()", "UNIX_TIMESTAMP()", "UNIX_TIMESTAMP(dt)", "UNIX_TIMESTAMP(dt6)", "UNIX_TIMESTAMP(vc)", "FROM_UNIXTIME(i)",
    "FROM_UNIXTIME(d)", "FROM_UNIXTIME(db)", "FROM_UNIXTIME(i, '%Y')", "YEAR(da)", "MONTH(da)", "DAY(da)", "DAYOFWEEK(da)", "DAYOFYEAR(da)", "WEEK(da)",
    "WEEKDAY(da)", "YEARWEEK(da)", "QUARTER(da)", "HOUR(t0)", "MINUTE(t0)", "SECOND(t0)", "MICROSECOND(t3)", "DAYNAME(da)",
    "MONTHNAME(da)", "DATE(dt)", "TIME(dt6)", "TIME(vc)", "TIMESTAMP(da)", "TIMESTAMP(dt, t3)", "DATE_FORMAT(dt, '%Y-%m')",
    "TIME_FORMAT(t0, '%H')", "STR_TO_DATE(vc, '%Y-%m-%d')", "STR_TO_DATE(vc, '%H:%i')", "STR_TO_DATE(vc, c)",
    "STR_TO_DATE('2024', '%Y-%m-%d %H:%i:%s')", "DATE_ADD(da, INTERVAL 1 DAY)", "DATE_ADD(da, INTERVAL 1 HOUR)", "DATE_ADD(dt, INTERVAL 1 DAY)",
    "DATE_ADD(dt, INTERVAL 1 MICROSECOND)", "DATE_ADD(vc, INTERVAL 1 DAY)", "DATE_ADD(t0, INTERVAL 1 SECOND)", "da + INTERVAL 1 MONTH", "dt - INTERVAL 1.5 SECOND",
    "ADDTIME(t0, '1:00')", "ADDTIME(dt, t3)", "SUBTIME(vc, '1:00')", "TIMEDIFF(dt, dt6)", "DATEDIFF(da, dt)", "TIMESTAMPDIFF(DAY, da, dt)",
    "TIMESTAMPADD(HOUR, 1, da)", "MAKEDATE(2024, 1)", "MAKETIME(1, 2, 3)", "MAKETIME(1, 2, d)", "SEC_TO_TIME(i)", "SEC_TO_TIME(d)", "TIME_TO_SEC(t0)",
    "TO_DAYS(da)", "FROM_DAYS(i)", "TO_SECONDS(dt)", "LAST_DAY(da)", "PERIOD_ADD(202401, 1)", "PERIOD_DIFF(202401, i)",
    "CONVERT_TZ(dt, '+00:00', '+01:00')", "EXTRACT(YEAR FROM da)", "EXTRACT(DAY_HOUR FROM dt)", "EXTRACT(MICROSECOND FROM dt6)", "GET_FORMAT(DATE, 'USA')",
]  # fmt: skip

OTHERS = [
    "DATABASE()", "USER()", "CURRENT_USER()", "CONNECTION_ID()", "LAST_INSERT_ID()", "LAST_INSERT_ID(i)",
    "ROW_COUNT()", "FOUND_ROWS()", "CURRENT_ROLE()", "GET_LOCK('l', 0)", "RELEASE_LOCK('l')", "IS_FREE_LOCK('l')",
    "RELEASE_ALL_LOCKS()", "SLEEP(0)", "BENCHMARK(1, 1)", "JSON_EXTRACT(js, '$.a')", "js->'$.a'", "js->>'$.a'", "JSON_UNQUOTE(js)", "JSON_OBJECT('a', i)", "JSON_ARRAY(i)",
    "JSON_TYPE(js)", "JSON_VALID(vc)", "JSON_LENGTH(js)", "JSON_DEPTH(js)", "JSON_KEYS(js)", "JSON_CONTAINS(js, '1')",
    "JSON_CONTAINS_PATH(js, 'one', '$.a')", "JSON_SEARCH(js, 'one', 'a')", "JSON_SET(js, '$.a', 1)", "JSON_QUOTE(vc)", "JSON_PRETTY(js)",
    "JSON_VALUE(js, '$.a')", "JSON_VALUE(js, '$.a' RETURNING SIGNED)", "JSON_STORAGE_SIZE(js)", "JSON_OVERLAPS(js, js)", "1 MEMBER OF (js)", "JSON_MERGE_PATCH(js, js)",
    "ST_AsText(g)", "@int", "@double", "@decimal", "@text", "@null", "@bytes", "@date", "@undefined", "@int := 7", "@text := 'q'", "@int + 1",
    "@@autocommit", "@@sql_mode", "@@max_allowed_packet", "@@version", "@@global.wait_timeout", "@@session.transaction_isolation",
    "@@long_query_time", "@@time_zone", "@@foreign_key_checks", "@@character_set_client", "@@timestamp", "@@last_insert_id", "@@auto_increment_increment", "@@tx_read_only IS NULL",
    "(SELECT 1)", "(SELECT i)", "(SELECT MAX(a) FROM k)", "(SELECT a FROM k LIMIT 1)", "(SELECT c FROM k LIMIT 1)", "(SELECT COUNT(*) FROM k)", "(SELECT boo)",
    "(SELECT 'abc')", "(SELECT d FROM t LIMIT 1)", "DEFAULT(boo)", "GROUPING_ABSENT",
]  # fmt: skip
OTHERS.remove("GROUPING_ABSENT")
OTHERS.remove("@@tx_read_only IS NULL")

# Of constants and choices: what they are worked out to, and their common types, do not say it.
CONSTANTS = [
    "MOD(3, 1)", "5 + 100", "TRUNCATE(10, -1)", "CONCAT(vc, 100)", "COALESCE(i, COS(1))", "CAST(1 AS UNSIGNED) + 1", "IFNULL(1, d)",
    "LEAST(d, d * 2)", "d - NULL", "ABS(NULL)", "ROUND(NULL)", "QUARTER('2024-02-29')", "NULLIF(i, 7)", "SUM(NULL)", "AVG(NULL)",
    "d DIV 1.5", "ROUND(1.25, 1)", "d / NULL", "i - CAST(i AS SIGNED)", "ELT(2, 'a', TO_BASE64(vc))",
]  # fmt: skip
# User variables keep numbers and texts; one that was never set takes the type of what is beside it.
VARIABLES = [
    "CONCAT(@undefined,'a')", "@undefined + 1", "@undefined = 5", "UPPER(@undefined)", "IFNULL(@undefined, 5)", "COALESCE(@undefined, 'a')", "@undefined IS NULL",
    "CONCAT(@date,'a')", "UPPER(@text)", "UPPER(@date)", "CONCAT(@text,'x')", "CONCAT(@bytes, 'x')", "@null + 1", "CONCAT(@null, 'x')", "@int * 2", "@double * 2",
    "@decimal * 2", "-@decimal", "IFNULL(@int, 1)", "@@sql_mode = 'x'", "CONCAT(@@sql_mode, 'x')", "UPPER(@@sql_mode)", "@@autocommit + 1", "IFNULL(@@autocommit, 1)",
    "IF(@@autocommit, @@version, 'a')", "@@max_allowed_packet + 1", "@@long_query_time + 1", "@@long_query_time * 2", "@@character_set_results",
    "@@lower_case_table_names", "@@sql_safe_updates", "@@sql_auto_is_null", "@@read_only", "@@global.read_only", "@@log_bin", "@@identity", "@@insert_id",
    "@@auto_increment_offset", "@@net_write_timeout", "@@performance_schema", "@@div_precision_increment", "@@sql_select_limit", "@@unique_checks", "@@have_query_cache",
    "@@completion_type", "@@gtid_mode", "@@profiling", "@@init_connect", "@@interactive_timeout", "@@collation_connection", "@@transaction_read_only", "@@binlog_format",
    "@@long_query_time - 1", "@@long_query_time * 1e0", "ROUND(@@long_query_time, 2)", "IFNULL(@@long_query_time, 1)",
]  # fmt: skip
# A query of one expression is that expression; any other is a column of a temporary table.
QUERIES = [
    "(SELECT REPEAT('a', 600))", "(SELECT i + 1)", "(SELECT boo FROM t LIMIT 1)", "(SELECT vc FROM t LIMIT 1)", "(SELECT 1 FROM k LIMIT 1)", "(SELECT ti FROM t LIMIT 1)",
    "(SELECT bi FROM t LIMIT 1)", "(SELECT NULL)", "(SELECT 1 WHERE 1)", "(SELECT 1 FROM DUAL)", "(SELECT 1 ORDER BY 1)", "(SELECT 1 HAVING 1)", "(SELECT i WHERE i > 0)",
    "(SELECT RAND(3))", "(SELECT SUM(1))", "(SELECT i FROM DUAL)", "((SELECT i))", "(SELECT (SELECT i))", "(SELECT 1) + 1", "IFNULL((SELECT i), 1)", "(SELECT vc AS q)",
    "(SELECT t.i)", "(SELECT MAX(i) FROM t)", "(SELECT 1 WHERE i > 0)",
]  # fmt: skip
# The types that CREATE TABLE … SELECT and temporary tables have.
MADE = [
    "REPEAT('a', 600)", "REPEAT('a', 512)", "REPEAT('a', 513)", "REPEAT(vc, 100)", "CONCAT(REPEAT('a',400), vc, REPEAT('a', 200))", "REPEAT(x'41', 600)",
    "REPEAT('a', 20000)", "REPEAT(_latin1'a', 600)", "REPEAT(_latin1'a', 70000)", "RPAD(vc, 600, 'x')", "IF(i, REPEAT('a', 600), 'x')", "IFNULL(REPEAT('a', 600), 'x')",
    "CAST(vc AS CHAR(600))", "CAST(vc AS CHAR(60))", "CAST(vc AS BINARY(600))", "CAST(vc AS BINARY(300))", "CAST(vc AS BINARY(255))", "CAST('a' AS CHAR(600))",
    "MAX(REPEAT('a', 600))", "CONCAT(tx)", "UPPER(tt)", "IF(i, tt, tt)", "REPEAT(vc_nn, 100)", "RPAD(vc_nn, 600,'x')", "REPEAT('a', i_nn)", "SPACE(i_nn)",
    "RPAD('a', 5, 'b')", "LPAD('a', i_nn, 'b')", "EXPORT_SET(i_nn, 'Y', 'N')", "CHARSET('a')", "COMPRESS('abc')", "COMPRESS(REPEAT('a', 1000))", "COMPRESS(tx)",
    "WEIGHT_STRING('a')", "PI() + 1", "PI() * 2", "UNIX_TIMESTAMP() + 1", "DATE_SUB('2020-01-01', INTERVAL 1 DAY)", "ADDTIME(vc, '1:00')", "TIMESTAMPADD(DAY, 1, vc)",
    "ANY_VALUE(boo)", "IFNULL(ti, 0)", "IFNULL(si, 1)", "IFNULL(bi, 0)", "IFNULL(i, 1000000000)", "IF(i, i, 0)", "CASE WHEN i THEN 0 ELSE i END", "IFNULL(boo, 1)",
    "IFNULL(i, iu)", "IFNULL(ti, ti)", "IFNULL(i, i)", "IF(i, ti, si)", "IFNULL(i, ti)", "COALESCE(ti, 1)", "COALESCE(i, NULL)", "NULLIF(i, 0)", "NULLIF(ti, 0)",
    "LEAST(ti, 1)", "IFNULL(NULL, 1)", "+i_nn", "+d", "+vc", "+(i+1)", "+ti", "LAG(ti) OVER (ORDER BY id)", "LAG(d) OVER (ORDER BY id)", "LAG(vc) OVER (ORDER BY id)",
    "LAG(i_nn, 1, 5) OVER (ORDER BY id)", "LAST_VALUE(boo) OVER ()", "FIRST_VALUE(si) OVER ()", "FIRST_VALUE(bi) OVER ()", "FIRST_VALUE(f) OVER ()",
    "FIRST_VALUE(y) OVER ()", "FIRST_VALUE(i + 1) OVER ()", "FIRST_VALUE(1) OVER ()", "NTH_VALUE(i_nn, 2) OVER ()", "MAX(ti) OVER ()", "MAX(boo) OVER ()",
    "MAX(d) OVER ()", "MAX(y) OVER ()", "MAX(i) OVER ()", "-.5", ".05", "0.5", "BIT_XOR(vb)",
]  # fmt: skip
EXPRESSIONS = [
    *COLUMNS, *LITERALS, *ARITHMETIC, *BITS, *CONDITIONS, *CHOICES, *AGGREGATES, *WINDOWS, *TEXTS, *NUMBERS,
    *DATES, *OTHERS, *CONSTANTS, *VARIABLES, *QUERIES, *MADE,
]  # fmt: skip

STATEMENTS = [
    # Digits after the point beyond those of a column.
    "SELECT 0.11111111111111111111111111111111112, 0.111111111111111111111111111111111111111111111111111111111111111111111111, -0.111111111111111111111111111111111111111111111111111111111111111111111111, 0.11111111111111111111111111111111112 + 1, 0.111111111111111111111111111111111111111111111111111111111111111111111111 + 0.111111111111111111111111111111111111111111111111111111111111111111111111, 1.5 % 0.11111111111111111111111111111111112",
    "SELECT 0.11111111111111111111111111111111112 * 2, 0.11111111111111111111111111111111112 / 3, ROUND(0.11111111111111111111111111111111112, 33), COALESCE(0.11111111111111111111111111111111112, 1), SUM(0.11111111111111111111111111111111112), AVG(0.11111111111111111111111111111111112), 0.11111111111111111111111111111111112 * 1e0",
    "SELECT v FROM (SELECT 0.11111111111111111111111111111111112 AS v) d",
    "SELECT v FROM (SELECT 0.11111111111111111111111111111111112 AS v LIMIT 1) d",
    # Names and origins.
    "SELECT * FROM k", "SELECT * FROM no_key", "SELECT k.* FROM k", "SELECT x.a, x.b AS q FROM k AS x", "SELECT A, `B` FROM k x",
    "SELECT a + 1, a  +  1, COUNT( * ), 'abc', 1.50, NULL, -a, (a) FROM k GROUP BY a, b",
    "SELECT a AS `A b`, a 'text', a AS \"x\" FROM k",
    "SELECT k.a, n.a, n.b FROM k LEFT JOIN no_key n ON n.a = k.a",
    "SELECT k.a, n.a, n.b FROM no_key n RIGHT JOIN k ON n.a = k.a", "SELECT * FROM k NATURAL JOIN no_key",
    "SELECT * FROM k JOIN no_key USING (a)",
    # Derived tables, common tables, views.
    "SELECT * FROM (SELECT id, boo, truth, i, vc, d FROM t) q", "SELECT * FROM (SELECT i + 1 AS a, 'abc' AS b, 1 AS c, vc AS d FROM t) q",
    "SELECT * FROM (SELECT boo, COUNT(*) AS n, MAX(vc) AS m FROM t GROUP BY boo) q", "SELECT * FROM (SELECT DISTINCT boo, truth, iz, en, js, f72 FROM t LIMIT 1) q",
    "WITH q AS (SELECT id, boo, i + 1 AS s FROM t) SELECT * FROM q", "WITH RECURSIVE q (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM q WHERE n < 3) SELECT n FROM q",
    "WITH q AS (SELECT id, boo FROM t LIMIT 3) SELECT a.id, b.boo FROM q a JOIN q b", "SELECT * FROM v", "SELECT x.id, x.sum FROM v AS x", "SELECT * FROM v2", "SELECT * FROM (SELECT * FROM v) q",
    "SELECT * FROM (VALUES ROW(1, 'a'), ROW(2, 'bc')) q (n, s)", "VALUES ROW(1, 'a', 1.5), ROW(2, 'bc', 10)", "TABLE k",
    "SELECT * FROM JSON_TABLE('[]', '$[*]' COLUMNS (n FOR ORDINALITY, a INT PATH '$.a', b VARCHAR(10) PATH '$.b', c JSON PATH '$.c', d INT EXISTS PATH '$.d')) q",
    # Unions.
    "SELECT 1 AS a UNION SELECT 2", "SELECT 1 UNION SELECT 'a'", "SELECT 1 UNION ALL SELECT NULL", "SELECT NULL UNION SELECT NULL", "SELECT i FROM t UNION SELECT bi FROM t",
    "SELECT i_nn, boo FROM t UNION ALL SELECT i_nn, boo FROM t", "SELECT iu FROM t UNION SELECT i FROM t", "SELECT d FROM t UNION SELECT i FROM t", "SELECT d FROM t UNION SELECT db FROM t",
    "SELECT vc FROM t UNION SELECT c FROM t", "SELECT vc FROM t UNION SELECT tx FROM t", "SELECT vc FROM t UNION SELECT vb FROM t", "SELECT vc FROM t UNION SELECT i FROM t",
    "SELECT da FROM t UNION SELECT dt FROM t", "SELECT da FROM t UNION SELECT t0 FROM t", "SELECT da FROM t UNION SELECT 'a'", "SELECT en FROM t UNION SELECT en FROM t",
    "SELECT en FROM t UNION SELECT st FROM t", "SELECT js FROM t UNION SELECT js FROM t", "SELECT js FROM t UNION SELECT 1", "SELECT y FROM t UNION SELECT y FROM t",
    "SELECT b10 FROM t UNION SELECT b10 FROM t", "SELECT c FROM t UNION SELECT c FROM t", "SELECT bn FROM t UNION SELECT vb FROM t", "SELECT f FROM t UNION SELECT f FROM t", "SELECT f72 FROM t UNION SELECT f72 FROM t", "SELECT f FROM t UNION SELECT db FROM t",
    "SELECT ts FROM t UNION SELECT dt FROM t", "SELECT tt FROM t UNION SELECT tt FROM t", "SELECT vc_l1 FROM t UNION SELECT vc FROM t", "SELECT a FROM k INTERSECT SELECT c FROM no_key", "SELECT a FROM k EXCEPT SELECT a FROM no_key", "(SELECT a FROM k LIMIT 1) UNION (SELECT 5) ORDER BY a", "SELECT 'a' UNION SELECT 'abc'", "SELECT 1.5 UNION SELECT 10",
    # Grouping.
    "SELECT boo, COUNT(*) FROM t GROUP BY boo", "SELECT boo, COUNT(*) FROM t GROUP BY boo WITH ROLLUP", "SELECT d, e, GROUPING(d) FROM k GROUP BY d, e WITH ROLLUP",
    "SELECT DISTINCT boo, vc_nn, en FROM t", "SELECT boo, vc_nn FROM t ORDER BY i DESC LIMIT 1", "SELECT i AS z FROM t GROUP BY z HAVING z > 1",
    # Statements that are no queries.
    "SHOW DATABASES", "SHOW COLUMNS FROM k", "SHOW FULL COLUMNS FROM k", "SHOW INDEX FROM k", "SHOW CREATE TABLE k", "SHOW CREATE VIEW v",
    "SHOW TABLE STATUS", "SHOW VARIABLES LIKE 'autocommit'", "SHOW STATUS LIKE 'Uptime'", "SHOW WARNINGS", "SHOW ERRORS", "SHOW COUNT(*) WARNINGS", "SHOW PROCESSLIST", "SHOW ENGINES", "SHOW CHARACTER SET", "SHOW COLLATION",
    "SHOW PRIVILEGES", "SHOW PLUGINS", "SHOW TRIGGERS", "SHOW EVENTS", "SHOW PROCEDURE STATUS", "SHOW OPEN TABLES", "SHOW ENGINE INNODB STATUS",
    "EXPLAIN SELECT * FROM k", "EXPLAIN FORMAT=JSON SELECT * FROM k", "DESCRIBE k", "CHECK TABLE k", "ANALYZE TABLE k", "OPTIMIZE TABLE no_key", "CHECKSUM TABLE k", "INSERT INTO no_key VALUES (1, 'a', 1)", "DO 1", "SET @q = 1",
    # information_schema.
    "SELECT * FROM information_schema.schemata", "SELECT * FROM information_schema.tables", "SELECT * FROM information_schema.columns", "SELECT * FROM information_schema.statistics", "SELECT * FROM information_schema.key_column_usage",
    "SELECT * FROM information_schema.table_constraints", "SELECT * FROM information_schema.referential_constraints", "SELECT * FROM information_schema.views", "SELECT * FROM information_schema.routines", "SELECT * FROM information_schema.parameters", "SELECT * FROM information_schema.triggers",
    "SELECT * FROM information_schema.check_constraints", "SELECT * FROM information_schema.character_sets", "SELECT * FROM information_schema.collations", "SELECT * FROM information_schema.engines", "SELECT * FROM information_schema.processlist", "SELECT * FROM information_schema.partitions", "SELECT * FROM information_schema.events",
    "SELECT table_name, Table_Schema AS s, COUNT(*) FROM information_schema.tables GROUP BY table_name, s", "SELECT TABLES.TABLE_NAME FROM information_schema.TABLES", "SELECT t.table_name FROM INFORMATION_SCHEMA.tables t", "SELECT column_name, k.Table_Name FROM information_schema.table_constraints JOIN information_schema.key_column_usage k USING (constraint_name, table_schema)", "SELECT extra, data_type, privileges FROM information_schema.columns",
]  # fmt: skip

# By rule, several expressions at once.
WORKED_OUT = [
    # Exact numbers without their digits after the point are a BIGINT if they fit into one.
    "FLOOR(7.0 * 1), FLOOR(1 / id), CEILING(1.25 - 1), FLOOR(d65), FLOOR(CAST(i AS DECIMAL(18,0))), FLOOR(CAST(i AS DECIMAL(20,2))), FLOOR(biu * 0.5), FLOOR(IFNULL(-3.0, 1)), FLOOR(dz * dz * dz), CEILING(100000000000000000.5)",
    # Tests of subqueries are nullable as their columns are.
    "EXISTS (SELECT a FROM k), EXISTS (SELECT c FROM k), NOT EXISTS (SELECT c FROM k), EXISTS (SELECT * FROM k), EXISTS (SELECT NULL), d = 1 AND EXISTS (SELECT c FROM k), i_nn IN (SELECT a FROM k), i_nn = ANY (SELECT a FROM k), i_nn > ALL (SELECT a FROM k), i_nn IN (SELECT 1)",
    # Written casts may be NULL.
    "CAST(BIT_COUNT(id) AS CHAR), CAST(CRC32(id) AS CHAR(3)), CAST(DEGREES(id) AS BINARY), CAST(SIGN(id) AS CHAR), CAST(BIT_COUNT(id) AS DATE), CAST(BIT_COUNT(id) AS SIGNED), (id = 1) COLLATE utf8mb4_bin, (id + 1) COLLATE utf8mb4_bin, CONVERT(BIT_COUNT(id) USING latin1)",
    # A text that is NULL might have any digits.
    "TIME(DATE_ADD(NULL, INTERVAL 1 DAY)), TIMEDIFF(DATE_ADD(NULL, INTERVAL 1 DAY), NULL), TIMESTAMP(DATE_ADD(NULL, INTERVAL 1 DAY), '12:00'), TIME(SUBTIME(NULL, '1:00')), TIME(NULL), UNIX_TIMESTAMP(DATE_ADD(NULL, INTERVAL 1 DAY)), CONVERT_TZ(DATE_ADD(NULL, INTERVAL 1 DAY), '+00:00', '+01:00'), TIME(CAST('1.5' AS JSON)), TIME(js), FROM_UNIXTIME(i, NULL), FROM_UNIXTIME(i, vc), SUBTIME(t0, db103)",
    # NULL with a type, and without one.
    "UPPER(CAST(NULL AS CHAR(2))), CONCAT(CAST(NULL AS CHAR(2)), 'a'), MIN(CAST(NULL AS CHAR(2))), IFNULL(CAST(NULL AS CHAR(2)), 'a')",
    "IFNULL(CASE WHEN NULL THEN NULL END, 1), CASE WHEN i THEN NULLIF(NULL, -5) ELSE 100 END, LEAST(NULLIF(NULL, 1), 99), NULLIF(NULL, 1) + 3, NULLIF(NULL, 1) / 3, -NULLIF(NULL, 0.5), ABS(NULLIF(NULL, 1)), ~NULLIF(NULL, 1), NULLIF(NULL, 1) << 1, NULLIF(NULL, 1) | x'41', NULLIF(NULL, 1) & 1",
    "SUM(NULLIF(NULL, 1)), SUM(JSON_PRETTY(NULL)), SUM(HEX(NULL)), AVG(JSON_KEYS(NULL))",
    # Quotients and remainders.
    "NULL DIV biu, NULL DIV (i ^ bi), '' DIV biu, CAST(d65 AS SIGNED) DIV 2, CAST(da AS SIGNED) DIV 2, CAST(1000 AS UNSIGNED) DIV NULL, f72 DIV 2, f72 DIV vb, f72 DIV d, d65 / NULL, 0.000000000000000000000000000001 / NULL, MOD(64, b'101'), ABS(biu % 5e0), d65 - b64, d + b64, ROUND(d, bi), ROUND(d65, '2'), TRUNCATE(d65, '2.7')",
    "INTERVAL(1, 0, 5) * 0.5, INTERVAL(i, 0, 5) / 1, INTERVAL(1, 0, 5) + 1, IFNULL(INTERVAL(i, 0, 5), 1.5), INTERVAL(i, 0, 5) DIV 2, CONCAT(INTERVAL(i, 0, 5))",
    # Years beside integers.
    "IF(i, ti, y), IF(i, si, y), IF(i, y, tiu), COALESCE(y, si), GREATEST(y, si), COALESCE(si, y, ti)",
    # The type byte of long texts.
    "IFNULL(vc, UPPER(tx)), IFNULL(1, CONVERT(tx USING utf8mb4)), IFNULL(vc, tx), COALESCE(vb, HEX(bl)), IF(i, FROM_BASE64(lt), 'a'), GREATEST(vc, REGEXP_REPLACE(vc, 'a', 'b')), GREATEST(lt, 'a'), CASE WHEN i THEN vc ELSE GREATEST(lt, 'a') END, COALESCE(js, vb, bl), COALESCE(js, vb), IFNULL(RIGHT(lt, 30), 1), GREATEST(da, UNCOMPRESS(vb))",
    # Chosen texts.
    "GREATEST(c, dt), GREATEST(c, i), GREATEST(NULL, en), LEAST(st, NULL), GREATEST(TIME'12:30:45', '-3'), GREATEST(dz, 1, t3), GREATEST(d, dt6) + 1, IFNULL(CASE WHEN i THEN c END, mi), IFNULL(NULL, NULLIF(en, 'a')), LEAST('a', CONCAT(db, '')), COALESCE(5, en, 'a'), COALESCE(SQRT(i), 'a', c), IF(i, _binary'ab', db103)",
    # Lengths of texts.
    "HEX(CAST(t3 AS DATE)), UNHEX(CAST(mi AS DECIMAL)), FROM_BASE64(NULLIF(-1, boo)), TO_BASE64(CAST(js AS DATETIME)), CONCAT(CAST(en AS CHAR(2)), 1), REVERSE(CAST(en AS CHAR(2))), CAST(b10 AS CHAR(2)), CAST(b10 AS CHAR), FORMAT(CAST(f AS DECIMAL(30,5)), 2), FORMAT(f, 2), JSON_UNQUOTE(BIN(i)), JSON_UNQUOTE(HEX(i)), WEIGHT_STRING(BINARY 'abc')",
    "CONVERT(JSON_UNQUOTE(js) USING latin1), CONVERT(UPPER(lt) USING latin1), RPAD(vc_l1, i, vc), RPAD(vc, i, vc_l1), RPAD(vc, !1, 'a'), REPEAT(vc, 1 XOR 0), SUBSTRING(vc, 2147483648, 5), SUBSTRING(vc, 2147483647, 5), SUBSTRING(vc, COALESCE(NULL, 2)), REPLACE(vc, 'a', TIME'12:30:45'), REPLACE(CAST('10' AS BINARY(3)), 'a', SQRT(2)), REPLACE(vc, 'a', CAST('a' AS DATETIME)), MAKE_SET(i, bl, CAST('1' AS JSON))",
    # Comparisons of constants.
    "'2024-02-29 12:30:00.5' > DATE'2024-02-29', '2024-02-29' IN (DATE'2024-02-29'), DATE'9999-12-31' IN ('24-2-29'), vc < DATE'2024-02-29', NULL < DATE'2024-02-29'",
    "COALESCE(js, CAST(0.5 AS NCHAR(2)), f), COALESCE(js, COLLATION(1), vc), COALESCE(js, vc_l1), ANY_VALUE(PI()), ANY_VALUE(1e0)",
]  # fmt: skip
STATEMENTS += [f"SELECT {expressions} FROM t" for expressions in WORKED_OUT]
STATEMENTS += [
    # Whole numbers of a temporary table have the width of its column.
    *[f"SELECT c, c + 1, IFNULL(c, 1), CONCAT(c), c DIV 1 FROM (SELECT {column} LIMIT 1) x" for column in (
        "3 AS c FROM t", "LOCATE('a', vc) AS c FROM t", "WEEKDAY(da) AS c FROM t", "i + 1 AS c FROM t",
        "DISTINCT i = 1 AS c FROM t", "DISTINCT YEAR(da) AS c FROM t", "MAX(5) AS c FROM t", "MAX(si) AS c FROM t",
        "(SELECT 1 FROM k LIMIT 1) AS c FROM t", "RANK() OVER () AS c FROM t", "si AS c FROM t", "123456789 AS c FROM t",
        "COUNT(*) AS c FROM t", "tiu + 1 AS c FROM t", "MAX(si) OVER () AS c FROM t", "NULL AS c FROM t",
    )],
    "SELECT c, c + 1 FROM (SELECT 1 AS c UNION SELECT 2) x", "SELECT c, c + 1 FROM (SELECT 3 AS c FROM t) x",
    "SELECT c - NULL FROM (SELECT (SELECT i FROM k WHERE a = t.i) AS c FROM t) x",
    # In a strict mode.
    "SET SESSION sql_mode = 'STRICT_TRANS_TABLES'", f"SELECT {WORKED_OUT[2]}, 1 FROM t", f"SELECT {WORKED_OUT[-1]}, 1 FROM t", "SET SESSION sql_mode = ''",
]  # fmt: skip

PARAMETERS = [
    "SELECT ?", "SELECT ? AS a, ? + 1", "SELECT ? + ?", "SELECT i + ? FROM t", "SELECT d * ? FROM t", "SELECT db + ? FROM t", "SELECT ? / 2", "SELECT -?", "SELECT CONCAT(?, 'a')", "SELECT CONCAT(vc, ?) FROM t", "SELECT UPPER(?)",
    "SELECT id FROM t WHERE i = ?", "SELECT id FROM t WHERE iu = ?", "SELECT id FROM t WHERE biu > ?", "SELECT id FROM t WHERE ti < ?", "SELECT id FROM t WHERE tiu < ?", "SELECT id FROM t WHERE d = ?", "SELECT id FROM t WHERE f = ?", "SELECT id FROM t WHERE db = ?",
    "SELECT id FROM t WHERE vc = ?", "SELECT id FROM t WHERE c = ?", "SELECT id FROM t WHERE vc_l1 = ?", "SELECT id FROM t WHERE vb = ?", "SELECT id FROM t WHERE tx = ?", "SELECT id FROM t WHERE bl = ?", "SELECT id FROM t WHERE da = ?", "SELECT id FROM t WHERE dt = ?", "SELECT id FROM t WHERE dt6 = ?",
    "SELECT id FROM t WHERE t0 = ?", "SELECT id FROM t WHERE ts = ?", "SELECT id FROM t WHERE y = ?", "SELECT id FROM t WHERE en = ?", "SELECT id FROM t WHERE st = ?", "SELECT id FROM t WHERE js = ?", "SELECT id FROM t WHERE b10 = ?", "SELECT id FROM t WHERE ? = i", "SELECT id FROM t WHERE i BETWEEN ? AND ?",
    "SELECT id FROM t WHERE i IN (?, ?)", "SELECT id FROM t WHERE vc IN (?, ?)", "SELECT id FROM t WHERE vc LIKE ?", "SELECT id FROM t WHERE i IS NOT NULL AND ?", "SELECT id FROM t WHERE ? IS NULL", "SELECT id FROM t LIMIT ?", "SELECT id FROM t LIMIT ?, ?", "SELECT id FROM t WHERE (i, vc) = (?, ?)",
    "INSERT INTO t (i, iu, bi, d, db, vc, vb, da, dt6, en, js, tx) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", "INSERT INTO k VALUES (?, ?, ?, ?, ?)", "INSERT INTO k (a, b, d) VALUES (?, ?, ? + 1) ON DUPLICATE KEY UPDATE c = ?",
    "UPDATE t SET i = ?, vc = ?, d = ? WHERE id = ?", "UPDATE t SET i = i + ? WHERE iu = ?", "DELETE FROM t WHERE id = ?", "SELECT IF(?, ?, ?)", "SELECT IFNULL(?, 1)", "SELECT COALESCE(?, vc) FROM t", "SELECT CASE ? WHEN 1 THEN ? ELSE ? END", "SELECT ABS(?)", "SELECT ROUND(?, ?)",
    "SELECT LEFT(vc, ?) FROM t", "SELECT DATE_ADD(?, INTERVAL ? DAY)", "SELECT CAST(? AS SIGNED)", "SELECT CAST(? AS DATETIME)", "SELECT (SELECT ?)", "SELECT SUM(?) FROM t", "SELECT MAX(?) FROM t", "SELECT ? UNION SELECT ?", "SELECT ? UNION SELECT 1", "SELECT 1 WHERE ? = ?", "SELECT ? = 'a'", "SELECT ? AND ?", "SELECT @x := ?", "SET @x = ?", "DO ?",
    "SELECT JSON_EXTRACT(js, ?) FROM t", "SELECT FROM_UNIXTIME(?)", "SELECT YEAR(?)", "SELECT DATE_FORMAT(?, ?)", "SELECT ? << 1", "SELECT COUNT(*) FROM t HAVING COUNT(*) > ?", "SELECT id FROM t ORDER BY ?", "SELECT ROW_NUMBER() OVER (ORDER BY ?)", "SELECT id FROM t WHERE i > ALL (SELECT a FROM k WHERE b = ?)", "SHOW TABLES LIKE ?", "EXPLAIN SELECT ?", "CREATE TABLE q SELECT ? AS a",
    # What functions take.
    "SELECT ROUND(?)", "SELECT TRUNCATE(?, 2)", "SELECT MONTH(?)", "SELECT DAYOFWEEK(?)", "SELECT DAYNAME(?)", "SELECT TO_DAYS(?)", "SELECT LAST_DAY(?)",
    "SELECT HOUR(?)", "SELECT MINUTE(?)", "SELECT SECOND(?)", "SELECT MICROSECOND(?)", "SELECT TIME_FORMAT(?, '%H')", "SELECT DATEDIFF(?, ?)", "SELECT TIMEDIFF(?, ?)",
    "SELECT ADDTIME(?, ?)", "SELECT TIMESTAMPDIFF(DAY, ?, ?)", "SELECT DATE_ADD(?, INTERVAL 1 HOUR)", "SELECT DATE_ADD(?, INTERVAL ? SECOND)",
    "SELECT DATE_ADD(?, INTERVAL ? DAY_HOUR)", "SELECT DATE_ADD('2020-01-01', INTERVAL ? DAY)", "SELECT DATE_ADD(da, INTERVAL ? DAY) FROM t", "SELECT ? + INTERVAL 1 DAY",
    "SELECT EXTRACT(YEAR FROM ?)", "SELECT EXTRACT(HOUR FROM ?)", "SELECT WEEK(?)", "SELECT WEEK(?, ?)", "SELECT TIME_TO_SEC(?)", "SELECT SEC_TO_TIME(?)",
    "SELECT UNIX_TIMESTAMP(?)", "SELECT STR_TO_DATE(?, ?)", "SELECT FROM_DAYS(?)", "SELECT MAKEDATE(?, ?)", "SELECT MAKETIME(?, ?, ?)", "SELECT TIMESTAMP(?)",
    "SELECT TIMESTAMP(?, ?)", "SELECT CONVERT_TZ(?, ?, ?)", "SELECT QUARTER(?)", "SELECT ? << ?", "SELECT ? & 1", "SELECT ? | ?", "SELECT ~?", "SELECT BIT_COUNT(?)",
    "SELECT FLOOR(?)", "SELECT CEIL(?)", "SELECT MOD(?, 2)", "SELECT POW(?, ?)", "SELECT SQRT(?)", "SELECT SIGN(?)", "SELECT LENGTH(?)", "SELECT SUBSTRING(?, ?, ?)",
    "SELECT LOCATE(?, ?)", "SELECT HEX(?)", "SELECT CONV(?, 10, 16)", "SELECT LPAD(?, ?, ?)", "SELECT REPEAT(?, ?)", "SELECT CONCAT_WS(?, ?, ?)",
    "SELECT REPLACE(?, ?, ?)", "SELECT COALESCE(?, ?)", "SELECT GREATEST(?, 1)", "SELECT LEAST(?, ?)", "SELECT IF(?, 1, ?)", "SELECT JSON_EXTRACT(?, ?)",
    "SELECT JSON_OBJECT(?, ?)", "SELECT FORMAT(?, ?)", "SELECT INET_ATON(?)", "SELECT ? DIV 2", "SELECT ? % ?", "SELECT ? LIKE ?", "SELECT ? REGEXP ?",
    "SELECT ? IN (1, 2)", "SELECT ? IS NULL", "SELECT NOT ?", "SELECT ? XOR 1", "SELECT AVG(?) FROM t", "SELECT MIN(?) FROM t", "SELECT COUNT(?) FROM t",
    "SELECT GROUP_CONCAT(?) FROM t", "SELECT CAST(? AS CHAR)", "SELECT CAST(? AS DATE)", "SELECT CAST(? AS TIME)", "SELECT CAST(? AS DECIMAL(10,2))",
    "SELECT CAST(? AS JSON)", "SELECT CAST(? AS UNSIGNED)", "SELECT CAST(? AS DOUBLE)", "SELECT da + ? FROM t", "SELECT vc + ? FROM t", "SELECT dt - ? FROM t",
    "SELECT id FROM t WHERE vc_l1 IN (?, ?)", "SELECT id FROM t WHERE da BETWEEN ? AND ?", "SELECT id FROM t WHERE YEAR(da) = ?", "SELECT id FROM t WHERE DATE(dt) = ?",
    "SELECT id FROM t WHERE i + ? > 5", "SELECT id FROM t WHERE da > DATE_SUB(?, INTERVAL 1 DAY)", "SELECT id FROM t WHERE da > NOW() - INTERVAL ? DAY",
]  # fmt: skip

# Where Firn differs, and why.
DIFFERENCES = {
    'MySQL copies the column whose least or greatest value it is, with its names and its width': [
        'MAX(en)',
        'MAX(st)',
        'MAX(truth)',
    ],
    'there is no geometry; a default is a constant, and not its column': [
        'ST_AsText(g)',
        'DEFAULT(boo)',
    ],
    'MySQL tells of it as bytes, and makes a column of texts': [
        '@undefined',
    ],
    'MySQL keeps these rows in a temporary table, or Firn does': [
        "SELECT * FROM (SELECT i + 1 AS a, 'abc' AS b, 1 AS c, vc AS d FROM t) q",
        'SELECT * FROM (SELECT * FROM v) q',
        "SELECT * FROM JSON_TABLE('[]', '$[*]' COLUMNS (n FOR ORDINALITY, a INT PATH '$.a', b VARCHAR(10) PATH '$.b', c JSON PATH '$.c', d INT EXISTS PATH '$.d')) q",
        'SELECT vc FROM t UNION SELECT tx FROM t',
        'SELECT tt FROM t UNION SELECT tt FROM t',
        'SELECT boo, COUNT(*) FROM t GROUP BY boo',
        'SELECT boo, COUNT(*) FROM t GROUP BY boo WITH ROLLUP',
        'SELECT d, e, GROUPING(d) FROM k GROUP BY d, e WITH ROLLUP',
    ],
    'EXPLAIN answers rows, as explain_format = TRADITIONAL of MySQL does, and CHECKSUM TABLE is refused': [
        'EXPLAIN SELECT * FROM k',
        'CHECKSUM TABLE k',
    ],
    'MySQL groups the rows of the tables behind the view, and tells of those': [
        'SELECT table_name, Table_Schema AS s, COUNT(*) FROM information_schema.tables GROUP BY table_name, s',
    ],
    'the parameter is not named as the result is; the message names the server': [
        'PREPARE SELECT ? AS a, ? + 1',
        'PREPARE SELECT (SELECT ?)',
        'PREPARE SHOW TABLES LIKE ?',
        'PREPARE CREATE TABLE q SELECT ? AS a',
    ],
}  # fmt: skip

KNOWN = {case: reason for reason, cases in DIFFERENCES.items() for case in cases}
