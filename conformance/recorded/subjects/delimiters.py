"""Texts of dates and times with delimiters that MySQL reads and warns of (4095, 4096), texts
that may be times or moments, and constants beside columns of dates. An answer has the rows, the
column definitions and the warnings.
"""

SETUP = [
    "DROP DATABASE IF EXISTS recorded_delimiters",
    "CREATE DATABASE recorded_delimiters",
    "USE recorded_delimiters",
    "SET sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION', time_zone = '+00:00', timestamp = 1700000000",
    "CREATE TABLE t (id INT PRIMARY KEY, d DATE, m DATETIME(6), h TIME, v VARCHAR(20), KEY (d))",
    "INSERT INTO t VALUES (1, '2024-02-29', '2024-02-29 12:30:00.5', '12:30:45', '2024/01/01'), (2, '1999-12-31', NULL, '00:00:07', ' 7')",
    "CREATE TABLE w (d DATE, m DATETIME, h TIME)",
]
MOMENTS = [
    "2024/01/01 10:00:00", "2024:01:01", "2024.01.01", "2024,01,01", "2024-01-01  10:00:00", "2024-01-01 10-00-00", "2024-01-01 10-00:00/", "2024-01-01@10:00:00",
    " 2024-01-01 10:00:00", "2024-01-01 10:00:00 ", "2024-01-01 10:00:00  ", "2024-01-01 ", "2024-01-01  ", " 2024/01-01", "2024--01-01", "2024-01--01",
    "2024-01-01\\t10:00:00", "2024-01-01 \\t10:00:00", "2024-01-01T10:00:00", "20240101T100000", "20240101 100000", "24/1/2 3:4", "2024-01-01 10.00.00",
    "2024-01-01 10:00:00 x", "2024-01-01x", "2024/13/01", "2024/01/01x", "2024-01-01:10:00:00", "2024-01-01 10:00:00.5 ", "2024-01-01 10:00:00.5  x",
    "2024-01-01 10:00:00+01:00", "2024-01-01 10:00:00 +01:00", "2024-01-01-", "2024-01-01-10", "2024-01-01-x", "2024-01-01 -x", "2024-01-01 10:00 ", "2024-01-01 10 ",
    "20240101100000.5 ", " 240101", "240101 ", " x", "  ", "",
]
TIMES = [
    " 10:00:00", "10:00:00 ", "1  10:00:00", "1 10:00:00", "10:00 x", "10:00x", "  ", "", " x", " -10:00", " 7", "7 ", "7  ", "7 1", "7 12", "7  12", "10:00.5 ",
    "10:00.5 x", "1\\t10:00", "\\t10:00", "10:00\\t", "900:00 ", "10:70 ", "-", "2024/01/01 10:00:00", "2024-01-01 10:00:00 ", "2024-01-01 10:00 ",
]
# A time, or a moment where the text is no faultless time with a colon.
EITHER = [
    "10/11/12", "10.11.12", "10:11:12", "20240101", "2024:01:01", "24-01-01", "24/13/01", "240101", " 10:11:12", "10:11:12 ", "2024/01/01 10:00", "1 10:00", "1  10:00", "10:00x",
    " x", " ", "", "5",
]
EXPRESSIONS = [
    "DATE(' 2024-01-01')", "YEAR('2024/01/01')", "'2024/01/01' + INTERVAL 1 DAY", "DATEDIFF('2024/01/01', ' 2024-01-01')", "LAST_DAY('2024/01/01')",
    "TIMESTAMP('2024/01/01', '10:00 ')", "STR_TO_DATE('2024/01/01', '%Y/%m/%d')", "DATE_FORMAT('2024/01/01', '%Y')", "HOUR('2024/01/01 10:00:00')",
    "TIMESTAMPDIFF(DAY, '2024/01/01', ' 2024-01-01')", "TIMESTAMPADD(DAY, 1, '2024/01/01')", "CONVERT_TZ('2024/01/01', '+00:00', '+01:00')", "CAST(CAST('\"2024/01/01\"' AS JSON) AS DATE)",
    "DATE' 2024-01-01'", "DATE'2024/01/01'", "TIME' 10:00'", "TIME'1  10:00'", "TIMESTAMP'2024-01-01 10:00 '", "TIMESTAMP'2024-01-01  10:00'", "TIME'10:00 x'",
    "h = ' 12:30:45'", "h = ' 7'", "h IN (' 7', ' 8')", "h BETWEEN ' 7' AND ' 8'", "d = ' 2024-02-29'", "d IN (' 2024-02-29', '2024/01/01')", "d < v", "TIME(v)",
    "ADDTIME(240101, '1:0')", "ADDTIME(20240101, '1:0')", "ADDTIME(240101101010, '1:0')", "ADDTIME(101112, '1:0')", "ADDTIME(CAST('\"10:00\"' AS JSON), '1:0')", "ADDTIME(CAST(5 AS JSON), '1:0')",
    "TIMEDIFF('2024/01/02', '2024/01/01')", "TIMEDIFF('10:00', ' 9:00')", "TIMEDIFF('10:00', ' x')", "TIMEDIFF(-1.25, SPACE(2))", "TIMEDIFF(20240102, 20240101)", "TIMEDIFF(d, 20240101)",
    "TIMESTAMP(200, '0:0')", "TIMESTAMP('2000-02-00', '1:0')", "TIMESTAMP('2000-02-00')",
    "DATE_ADD(m, INTERVAL TIME'-01:02:03.5' SECOND)", "DATE_SUB(d, INTERVAL m SECOND)", "DATE_SUB(d, INTERVAL h SECOND)",
    "_binary'ab' < d", "d = UNCOMPRESS(COMPRESS('x'))", "HEX(WEIGHT_STRING('a')) <=> m", "CONCAT(_binary'2024-02-29') = d",
    "STRCMP(d, 240229)", "STRCMP(m, 240229)", "STRCMP(240229, d)", "STRCMP(d, '24-2-29')",
]
WRITES = [
    "INSERT INTO w VALUES ('2024/01/01', ' 2024-01-01 10:00:00', '10:00 '), ('2024-01-01', '2024-01-01  10:00:00', '1  10:00')", "INSERT INTO w (m) VALUES ('2024-01-01 10:00 ')",
    "INSERT INTO w (h) VALUES ('  ')", "INSERT INTO w (h) VALUES (' x')", "UPDATE w SET d = '2024/01/02', m = '2024-01-01@10:00:00'", "INSERT IGNORE INTO w (d) VALUES ('2024/01/01x')",
    "SELECT d FROM w WHERE d = '2024/01/02'", "SELECT d FROM w WHERE h > ' 10:00'", "DELETE FROM w WHERE m < '2025/01/01'",
]

BOTH = "MySQL adds the warning 1292 to the error"
KNOWN = {f"SELECT {one} AS c FROM t ORDER BY id": BOTH for one in ("_binary'ab' < d", "d = UNCOMPRESS(COMPRESS('x'))", "HEX(WEIGHT_STRING('a')) <=> m")}


def statements():
    for kind, texts in (("DATE", MOMENTS), ("DATETIME(1)", MOMENTS), ("TIME(1)", TIMES)):
        yield from (f"SELECT CAST('{text}' AS {kind}) AS c" for text in texts)
    yield from (f"SELECT ADDTIME('{text}', '1:0') AS c" for text in EITHER)
    yield from (f"SELECT {expression} AS c FROM t ORDER BY id" for expression in EXPRESSIONS)
    yield from WRITES


def cases(server):
    connection = server.connect()
    for statement in SETUP:
        connection.cursor().execute(statement)
    for statement in statements():
        yield statement, server.answer_with_definitions(connection, statement)
