"""Texts that functions make of dates, times and moments: their numbers are the moments', and
where a date is wanted, a time is one of today. Beside them, texts and numbers that are read as
moments or as times. An answer has the rows, the column definitions and the warnings.
"""

SETUP = [
    "DROP DATABASE IF EXISTS recorded_made_moments",
    "CREATE DATABASE recorded_made_moments",
    "USE recorded_made_moments",
    "SET NAMES utf8mb4 COLLATE utf8mb4_bin, sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION', time_zone = '+00:00', timestamp = 1700000000",
    "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(30), d DATE, m DATETIME, h TIME, f DOUBLE)",
    "INSERT INTO t VALUES (1, '2024-02-29', '2024-02-29', '2024-02-29 12:30:00', '12:30:45', 1.5), (2, '10:11:12.5', '1999-12-31', '1999-12-31', '-00:00:01', 1e300),"
    " (3, '20240229101112', NULL, NULL, NULL, 20240229)",
]

MADE = [
    "DATE_ADD('2024-02-29', INTERVAL 1 DAY)", "DATE_ADD('2024-02-29 10:00', INTERVAL 1 DAY)", "DATE_SUB('2024-02-29', INTERVAL 1.5 SECOND)",
    "TIMESTAMPADD(MINUTE, 5, '2024-02-29')", "ADDTIME('10:11:12.5', 1)", "SUBTIME('24-2-29', 1)", "SUBTIME('00:00:01', 1)", "ADDTIME(v, '00:00:01')",
    "DATE_ADD(v, INTERVAL 1 MONTH)", "SUBTIME(v, h)",
]
# What is asked of each of those; without constants that MySQL refuses beside a date.
ASKED = [
    "{}", "{} + 0", "{} * 1.5", "-{}", "FLOOR({})", "ROUND({})", "ABS({})", "{} & -1", "{} = 20240301", "NOT {}", "CAST({} AS SIGNED)", "CAST({} AS DECIMAL(20,3))",
    "CAST({} AS DOUBLE)", "IF(id, {}, 2) + 0", "COALESCE({}) + 0", "CAST({} AS DATETIME)", "CAST({} AS DATE)", "CAST({} AS TIME)", "YEAR({})", "MONTH({})", "TO_DAYS({})",
    "LAST_DAY({})", "DATE({})", "TIMESTAMP({})", "DATE_FORMAT({}, '%Y-%m-%d %H')", "TIMESTAMPDIFF(HOUR, d, {})", "HOUR({})", "TIME_TO_SEC({})", "CONCAT({}, 'x')",
    "IFNULL(d, {})",
]
OTHERS = [
    f"ADDTIME({text}, 1)" for text in (
        "'2024-02-00'", "'2024-02-00 00:00:00'", "'2024-00-01'", "'2024-02-30'", "'2024-13-01'", "'2024-02-30 10:00'", "'0000-00-00'", "'1100011'", "'20110001'", "'110001'",
        "'20110230'", "'11000110'", "''", "'abc'", "'10'", "'1010'", "'101010'", "'1010101'", "'9999999'", "'24:00'", "'24-2-29'", "'24-2-30'", "'1 10:11:12'", "'2024-02'",
        "20110001", "1100011", "20110001101010", "110001", "0", "1e300", "f")] + [
    f"{name}({text})" for name in ("TIME", "HOUR", "TIME_TO_SEC") for text in ("'2024-02-30 10:00:00'", "1e300", "-1e300", "1e18", "f")] + [
    f"TIME_FORMAT({value}, '{shown}')" for value in (
        "m", "d", "h", "'2024-02-29 10:00:00'", "'24-02-29'", "'240229'", "20240229101010.5", "240229", "1100011", "'1100011'", "'10:00:00'", "'2024-02-30 10:00:00'")
    for shown in ("%d.%m.%y %H", "%c %e %Y", "%M %b", "%D", "%j", "%W", "%U")] + [
    f"EXTRACT({unit} FROM {text})" for unit in ("SECOND", "HOUR", "DAY_SECOND") for text in (
        "'240229'", "'2402291'", "'20240229'", "'20240230'", "'24022910'", "'101010'", "'20240229.5'", "'2024022'", "'99991231'", "'20240229x'", "'8385959'", "'2024-02-30 10:00:00'")] + [
    "TIMEDIFF('2024-02-30 10:00:00', '2024-02-29 10:00:00')", "SUBTIME('10:00', '2024-02-30 10:00:00')", "TIMESTAMP('2024-02-29', '2024-02-30 10:00:00')",
]


def cases(server):
    connection = server.connect()
    for statement in SETUP:
        assert server.answer(connection, statement).startswith("ok"), statement
    expressions = [asked.format(made) for made in MADE for asked in ASKED] + OTHERS
    for expression in expressions:
        statement = f"SELECT {expression} FROM t ORDER BY id"
        yield statement, server.answer_with_definitions(connection, statement)
