"""Which arguments are evaluated, and in which order: what is not evaluated does not warn, and
what is refused is refused in the order of the arguments. Values beside times; exact numbers of 0
that become texts or documents. An answer has the rows, the column definitions and the warnings.
"""

import re

SETUP = [
    "DROP DATABASE IF EXISTS recorded_evaluation",
    "CREATE DATABASE recorded_evaluation",
    "USE recorded_evaluation",
    "SET sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION', timestamp = 1700000000",
    "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20), h TIME(3), m DATETIME, d DATE, j JSON, b BINARY(4), c CHAR(4), l LONGTEXT,"
    " f FLOAT, n DOUBLE, z INT(6) UNSIGNED ZEROFILL, q DECIMAL(8,2) ZEROFILL, e DECIMAL(10,3), g BIGINT, x ENUM('a', 'b'))",
    "INSERT INTO t VALUES (1, '1x', '12:30:00', '2024-02-29 12:30:00', '2024-02-29', '[]', 'ab', 'a', 'zz', 0.1, 1e15, 42, 3.5, -0.5, 7, 'a'),"
    " (2, '12:30', '00:00:00', NULL, '1999-12-31', '\"12:30\"', '12', NULL, '5y', 1e20, -0.25, 7, 0, 0, -1, 'b'),"
    " (3, NULL, NULL, '1970-01-01 00:00:00', NULL, NULL, NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
]

# `W` warns if it is evaluated, and is NULL in the third row; `N` is NULL.
WARNS = "(v + 0)"
ARGUMENTS = """
LOCATE(N, W)
LOCATE(W, N)
LOCATE(N, N, v)
EXPORT_SET(1, N, W)
EXPORT_SET(1, 'y', 'n', N, v)
EXPORT_SET(1, 'y', 'n', W, N)
INSERT('a', 1, N, W)
INSERT('a', v, 1, N)
SUBSTRING_INDEX('a', N, v)
SUBSTRING_INDEX('a', W, N)
LPAD('a', v, N)
RPAD('a', N, W)
FORMAT(W, N)
FORMAT(N, v)
SHA2(N, v)
FIELD(N, v, 1)
FIELD(5, 5, v)
FIELD(m, TIME'01:00:00', j)
N LIKE W
W LIKE N
W REGEXP N
REGEXP_INSTR(N, W)
REGEXP_INSTR(W, N)
REGEXP_SUBSTR(W, N)
REGEXP_REPLACE(W, N, 'a')
REGEXP_REPLACE(W, 'b', N)
REGEXP_REPLACE('a', W, N)
REGEXP_REPLACE('a', N, W)
MAKEDATE(W, N)
MAKEDATE(N, v)
DATEDIFF(N, v)
DATEDIFF(v, N)
DATEDIFF(N, 64)
TIMEDIFF(N, v)
TIMESTAMPDIFF(DAY, v, N)
TIMESTAMPDIFF(DAY, 'x', j)
DATE_ADD('x', INTERVAL j SECOND)
DATE_SUB(N, INTERVAL j SECOND)
TIMESTAMPADD(SECOND, j, 'x')
ADDTIME(v, N)
ADDTIME(N, v)
TIMESTAMP(v, N)
WEEK('x', v)
YEARWEEK(N, v)
DATE_FORMAT(v, N)
TIME_FORMAT(v, N)
ADDTIME(TIMESTAMP'9999-12-31 23:59:59', '24:00:00')
SUBTIME('0000-01-01 00:00:00', '24:00:00')
TIMESTAMP('9999-12-31 23:59:59', '24:00:00')
TIMESTAMP(0, d)
SUM(DISTINCT v)
AVG(DISTINCT l)
SUM(DISTINCT CONCAT(v))
SUM(DISTINCT W)
ANY_VALUE(v) + 1
ANY_VALUE(j) + 1
ANY_VALUE('5x') > 4
CAST(ANY_VALUE(v) AS SIGNED)
CAST(ANY_VALUE(v) AS DECIMAL)
ANY_VALUE(f)
ANY_VALUE(n)
ANY_VALUE(z)
ANY_VALUE(q)
ANY_VALUE(l)
ANY_VALUE('a')
ANY_VALUE(x'FF')
MAKETIME(1, 1, 1e20)
SEC_TO_TIME(1e20)
FROM_UNIXTIME(f, '%Y')
2 DIV CONCAT('5a')
2 DIV '5a'
CAST(CONCAT('ab') AS DECIMAL)
CAST(_binary'ab' AS DECIMAL)
CAST('-1 1:02' AS YEAR)
CAST('0x41' AS YEAR)
CAST('99999999999999999999' AS YEAR)
m <= 0.0000001
m <= 0.9
(64, h) < (h, 0)
(h, m) < (g, 9223372036854775807)
(d, 1) < (240229, 2)
""".strip().split("\n")
REFUSED = """
JSON_MERGE_PRESERVE(N, TIMESTAMP'2024-02-29 12:30:00')
JSON_MERGE_PATCH(N, TIMESTAMP'2024-02-29 12:30:00')
JSON_MERGE_PATCH('[', TIMESTAMP'2024-02-29 12:30:00')
JSON_MERGE_PATCH('[', x'FF')
JSON_MERGE_PATCH('[]', x'FF')
JSON_MERGE_PRESERVE(N, x'FF')
JSON_REMOVE((5 MEMBER OF (x'FF')), '$')
JSON_OVERLAPS('[', x'FF')
JSON_OVERLAPS(N, x'FF')
JSON_CONTAINS(N, 5)
JSON_TYPE(b)
JSON_VALUE(JSON_CONTAINS_PATH(b, 'one', '$'), '$.a')
v MEMBER OF (JSON_OVERLAPS(j, N))
JSON_SEARCH(j, 'all', x'FF')
JSON_SEARCH(j, 'all', b)
N MEMBER OF (0)
(v LIKE '1%') MEMBER OF ('[1, true]')
(1 = 1) IN (CAST('1' AS JSON), CAST('[]' AS JSON))
""".strip().split("\n")
TIMES = """
h IN ('12:30', '10abc')
h IN (v, '00:00')
h NOT IN (v, 'zz')
h IN (d, '00:00')
v IN (h, 'zz')
v IN (h, TIME'12:30:00')
'12:30' IN (TIME'12:30:00', 'abc')
TIME'00:00:00' IN ('abc', '10:00')
x IN ('_b', TIME'00:00:00')
x IN ('_b', TIME'838:59:59')
TIME'00:00:00' IN ('zz', id)
TIME'12:30:00' IN (v, 5)
CASE h WHEN v THEN 1 ELSE 2 END
CASE h WHEN j THEN 1 ELSE 2 END
CASE h WHEN d THEN 1 ELSE 2 END
CASE h WHEN m THEN 1 ELSE 2 END
CASE h WHEN b THEN 1 ELSE 2 END
CASE TIME'00:20:24' WHEN DATE'2024-02-29' THEN 1 ELSE 2 END
CASE TIME'838:59:59' WHEN '20240229' THEN 1 ELSE 2 END
CASE TIME'00:00:10' WHEN '10abc' THEN 1 ELSE 2 END
CASE TIME'00:00:00' WHEN 'abc' THEN 1 ELSE 2 END
""".strip().split("\n")
NUMBERS = """
COALESCE(g, f)
COALESCE(f, g)
GREATEST(g, f)
JSON_ARRAY(e * 0)
JSON_ARRAY(0.5 + e)
JSON_ARRAY(e)
COALESCE(b, 0.5, x)
COALESCE(d, b)
IFNULL(q, CAST(v AS BINARY(3)))
CASE WHEN v THEN b ELSE x END
INSERT(c, 1, 1, 240229)
INSERT(c, 1, 1, 1.5)
INSERT(c, 1, 1, DATE'2024-02-29')
LEFT(v, CAST('2a' AS SIGNED))
RIGHT(j, ABS('20'))
RPAD(c, CEILING('null'), 'a')
SPACE(BIT_COUNT('7'))
""".strip().split("\n")
SETS = [
    "SELECT e * 0 FROM t UNION ALL SELECT 'a'", "SELECT IF(1, e * 0, 5) FROM t UNION ALL SELECT 'a'", "SELECT -(e * 0) FROM t UNION ALL SELECT 'a'",
    "SELECT e FROM t UNION ALL SELECT 'a'", "SELECT NULLIF(z, 1) FROM t UNION ALL SELECT 'a'", "SELECT NULLIF(q, 1) FROM t UNION ALL SELECT 'a'",
    "SELECT IF(id, z, 5) FROM t UNION ALL SELECT 'a'", "SELECT g FROM t UNION ALL SELECT f FROM t", "SELECT f FROM t UNION ALL SELECT g FROM t",
    "SELECT 5 UNION ALL SELECT f FROM t", "SELECT v FROM t UNION ALL SELECT NULL",
    # What no double holds.
    "SELECT STD(x) FROM (SELECT 1e160 AS x UNION SELECT -1e160) q", "SELECT VAR_SAMP(x) FROM (SELECT 1e160 AS x UNION SELECT -1e160) q", "SELECT VARIANCE(x) OVER () FROM (SELECT 1e160 AS x UNION SELECT -1e160) q",
    # Collations that do not agree, with and without ESCAPE.
    "SELECT 'a' COLLATE utf8mb4_bin LIKE 'b' COLLATE utf8mb4_general_ci", "SELECT 'a' COLLATE utf8mb4_bin LIKE 'b' COLLATE utf8mb4_general_ci ESCAPE '|'",
    # The number that was chosen, and not its text.
    "SELECT LENGTH(LEFT('abc', IF(1, 99999999999999999999.5, 'a'))), LENGTH(REPEAT('a', IF(1, 99.5, 'a'))), LEFT('abc', CAST(1.5 AS CHAR))",
    # Bytes and names that were chosen.
    "SELECT MAX(BINARY 'abc'), ANY_VALUE(CAST('abc' AS BINARY)) FROM t",
]

KNOWN = {
    "SELECT '12:30' IN (TIME'12:30:00', 'abc') AS c FROM t": "MySQL reads all items of a constant list, and not those up to the first equal one",
    "SELECT JSON_TYPE(b) AS c FROM t": "MySQL adds the error 3146 to 3144",
    "SELECT JSON_MERGE_PATCH('[]', x'FF') AS c FROM t": "MySQL adds the error 3146 to 3144",
}


def statements():
    for expression in ARGUMENTS + REFUSED + TIMES + NUMBERS:
        written = re.sub(r"\bW\b", WARNS, re.sub(r"\bN\b", "NULL", expression))
        yield f"SELECT {written} AS c FROM t"
    yield from SETS


def cases(server):
    connection = server.connect()
    for statement in SETUP:
        connection.cursor().execute(statement)
    for statement in statements():
        yield statement, server.answer_with_definitions(connection, statement)
