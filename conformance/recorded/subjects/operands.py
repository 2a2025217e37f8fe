"""Operands that are read as another type: literals of bytes as numbers, numbers as dates, the value that `IF` or
`COALESCE` chooses as a number; and which of them warn. An answer has the rows, the column definitions and the warnings.
"""

SETUP = [
    "DROP DATABASE IF EXISTS recorded_operands",
    "CREATE DATABASE recorded_operands",
    "USE recorded_operands",
    "SET sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION', timestamp = 1700000000",
    "CREATE TABLE t (id INT PRIMARY KEY, i INT, d DATE, m DATETIME, h TIME, v VARCHAR(20), e ENUM('b', 'a'), s SET('x', 'y'), j JSON,"
    " f FLOAT(7,3), g FLOAT, n DOUBLE(10,2), b BINARY(4))",
    "INSERT INTO t VALUES (1, 5, '2024-02-29', '2024-02-29 12:30:00', '12:30:45', '1x', 'a', 'y', '[1]', 0.1, -0.1, 1.5, 'ab'),"
    " (2, NULL, '1999-12-31', '1970-01-01 00:00:00', '-00:00:01', '2024-02-29', 'b', 'x,y', '\"7\"', -9.9999, 16777217, 99999.999, 'é')",
]

BYTES = ["0x41", "0x0041", "0x4142434445464748", "0x414243444546474849", "b'101'", "b'111111111'", "x''", "0xFFFFFFFFFFFFFFFF"]
OF_BYTES = """
{} + 0
{} * 2
{} / 2
{} DIV 2
{} % 7
{} - 300
-{}
ABS({})
FLOOR({})
ROUND({}, 1)
SUM({})
AVG({})
MAX({})
GREATEST({}, 5)
LEAST({}, 5)
NULLIF({}, 5)
NULLIF(5, {})
NULLIF({}, 'a')
FORMAT({}, 2)
{} = 65
{} IN (65, 'A')
{} BETWEEN 1 AND 70
CAST({} AS SIGNED)
LEFT('abc', {})
NOT {}
""".strip().split("\n")

NUMBERS = [
    "0", "1", "31", "100", "101", "230", "1231", "1232", "691231", "691232", "700000", "700100", "990231", "1000101", "20200230", "20200232",
    "20201300", "100000000", "20200230235959", "20200101250000", "99991231235960", "20200231.5", "20200228235959.9999999", "-0.5", "-1", "1e30",
    "'20200230'", "DATE'0000-00-00'", "TIMESTAMP'2020-00-00 00:00:00'",
]
OF_NUMBERS = """
YEAR({})
MONTH({})
DAYOFMONTH({})
QUARTER({})
MONTHNAME({})
TO_DAYS({})
LAST_DAY({})
DAYNAME({})
DAYOFYEAR({})
DATE({})
CAST({} AS DATE)
DATEDIFF({}, 20200101)
UNIX_TIMESTAMP({})
DATE_FORMAT({}, '%Y-%m-%d %H')
EXTRACT(DAY FROM {})
""".strip().split("\n")

CHOICES = """
IF(1, d, 'a')
IF(1, d, m)
IF(1, m, d)
IF(1, h, d)
IF(1, s, 'a')
IF(1, e, v)
IF(1, v, 1)
IF(1, '1.7a', 1)
IF(1, DATE'2024-02-29', 'a')
IF(1, j, 'a')
CASE WHEN i THEN d ELSE v END
CASE i WHEN 5 THEN s ELSE 'b' END
COALESCE(v, 'a')
COALESCE(i, v)
IFNULL(v, d)
COALESCE(j, JSON_ARRAY())
GREATEST(v, '0')
LEAST(v, 'z')
NULLIF(v, 'a')
""".strip().split("\n")
OF_CHOICES = "{} + 0;{} | 0;{} DIV 1;NOT {};ABS({});CAST({} AS SIGNED);CAST({} AS DECIMAL(10, 2));CAST({} AS DOUBLE);{} = 5;HEX({});SUM({})".split(";")

STATEMENTS = """
SELECT f FROM t UNION ALL SELECT 'a'
SELECT g FROM t UNION ALL SELECT 'a'
SELECT n FROM t UNION ALL SELECT d FROM t
SELECT f FROM t UNION ALL SELECT 1.5
SELECT SOUNDEX(v), SOUNDEX(b), SOUNDEX('漢字'), SOUNDEX('😀a'), SOUNDEX(x'C3A9') FROM t
SELECT DATE_ADD(NULL, INTERVAL j YEAR), DATE_SUB('x', INTERVAL j DAY), TIMESTAMPADD(MONTH, LOG2(-1.25), NULL), DATE_ADD(d, INTERVAL j DAY) FROM t
SELECT CHARSET(v + 1), COLLATION(SIGN(v)), COERCIBILITY(v + 1), WEIGHT_STRING(v + 1) FROM t
SELECT (1 BETWEEN '1e2' AND v), (1 BETWEEN v AND CONCAT('x')) FROM t
SELECT (i, v) < (7, 1), (i, 1) < (NULL, v), (v, i) >= (1, 3) FROM t
SELECT NULLIF(n, 1), NULLIF(g, 1), NULLIF(f, 1), NULLIF(0.5e0, 0), NULLIF(n + 1, 0), NULLIF(e, 'x'), NULLIF(s, ''), NULLIF(i, 1), NULLIF(v, 'a') FROM t
SELECT CASE d WHEN j THEN 1 ELSE 2 END, CASE m WHEN JSON_ARRAY() THEN 1 END FROM t
""".strip().split("\n")

KNOWN = {
    "SELECT COALESCE(j, JSON_ARRAY()) DIV 1 FROM t": "a document is divided as a double, MySQL makes an exact number of its text, with a warning",
}


def cases(server):
    connection = server.connect()
    for statement in SETUP:
        assert server.answer(connection, statement).startswith("ok"), statement
    expressions = [form.format(literal) for form in OF_BYTES for literal in BYTES]
    expressions += [form.format(number) for form in OF_NUMBERS for number in NUMBERS]
    for statement in [f"SELECT {expression}" for expression in expressions] + [
        f"SELECT {form.format(choice)} FROM t" + (" GROUP BY id" if form.startswith("SUM") else "") for form in OF_CHOICES for choice in CHOICES
    ] + STATEMENTS:
        yield statement, server.answer_with_definitions(connection, statement)
