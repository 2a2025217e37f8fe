"""Expressions over columns and constants of unlike types, with their warnings: what random ones found."""

DATABASE = "recorded_expressions"

STATEMENTS = [
    # One domain for the three values of BETWEEN.
    "SELECT id, tx BETWEEN vc AND it, vc NOT BETWEEN tx AND it, it BETWEEN '1' AND vc, vc BETWEEN t AND da FROM e ORDER BY id",
    "SELECT id FROM e WHERE vc BETWEEN 'a' AND 5 ORDER BY id",
    # Documents as conditions, and as arguments that are none.
    "SELECT IF(js, 1, 2), CASE WHEN js THEN 1 ELSE 2 END FROM e ORDER BY id", "SELECT js AND 1, NOT js FROM e ORDER BY id",
    "SELECT JSON_OVERLAPS('x', DATE'2020-01-01')", "SELECT JSON_OVERLAPS('1', DATE'2020-01-01')", "SELECT JSON_DEPTH(5)",
    "SELECT CHARSET(js), COLLATION(js), CHARSET(JSON_ARRAY()) FROM e LIMIT 1", "SELECT CAST('\"a\"' AS JSON) & 2",
    # Casts.
    "SELECT CAST(2 AS DATE), CAST(0 AS DATE), CAST(100 AS DATE), CAST(2.0 AS DATE), CAST(2e0 AS DATE)", "SELECT CAST(99 AS DATE)",
    "SELECT CAST('' AS YEAR), CAST('abc' AS YEAR), CAST('12' AS YEAR), CAST(0 AS YEAR), CAST('2024-01-01' AS YEAR)",
    "SELECT CAST('1e2' AS TIME), CAST('12e' AS TIME), CAST('1E+2' AS TIME), CAST('12:30e5' AS TIME), CAST('1 02' AS TIME)",
    "SELECT CASE DATE'2020-01-01' WHEN 'null' THEN 1 ELSE 2 END",
    # Bytes where text is wanted.
    "SELECT vc = x'FF' FROM e", "SELECT x'C381' IN (vc) FROM e ORDER BY id", "SELECT REPLACE('a', 'b', x'FF')", "SELECT REPLACE(1, 2, x'FF')",
    "SELECT LPAD(TRUE, 30, x'FF')", "SELECT HEX(CONCAT('a', x'FF'))", "SELECT INSERT(vc, -4, -1, x'FF') FROM e LIMIT 1", "SELECT CONVERT(x'FF' USING utf8mb4)",
    # What is to go.
    "SELECT ! 1", "SELECT BINARY 'a'", "SELECT CAST('a' AS NCHAR(2))", "SELECT ! 1, ! 0",
    # Dates beyond all dates.
    "SELECT DATE_ADD(TIMESTAMP'9999-12-31 10:00:00', INTERVAL 1 DAY)", "SELECT DATE_ADD('9999-12-31', INTERVAL 1 DAY)",
    # Digits.
    "SELECT f, d, z, zi, y FROM e ORDER BY id", "SELECT PI(), PI() + 0, YEAR('0005-01-01'), CAST(0 AS YEAR)",
    "SELECT TRUNCATE(0.125, id), ROUND(1.5, id) FROM e ORDER BY id", "SELECT DATE_FORMAT(da, ''), TIME_FORMAT(t, ''), FROM_UNIXTIME(1, '') FROM e LIMIT 1",
    "SELECT CONV('12z', 10, 16), CONV('zz', 36, 10), CONV('', 10, 2)", "SELECT BIN('abc')",
]


def cases(server):
    connection = server.connect()
    cursor = connection.cursor()
    cursor.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
    cursor.execute(f"CREATE DATABASE {DATABASE}")
    cursor.execute(f"USE {DATABASE}")
    cursor.execute("SET sql_mode = 'STRICT_TRANS_TABLES', time_zone = '+00:00', timestamp = 1700000000")
    cursor.execute(
        "CREATE TABLE e (id INT PRIMARY KEY, it INT, tx TEXT, vc VARCHAR(20), da DATE, t TIME, js JSON, f FLOAT(7,3), "
        "d DOUBLE(10,2), z DECIMAL(8,2) ZEROFILL, zi INT(6) ZEROFILL, y YEAR)"
    )
    cursor.execute(
        "INSERT INTO e VALUES (1, 0, 'Hello', 'á', '2024-02-29', '12:30:45', '[1]', 0.1, 0.005, 3.5, 42, 0), "
        "(2, 5, '1.5e3', '12abc', '1999-12-31', '-00:00:01', '-1.5', 1234.5678, 99999.999, 0, 0, 2024), "
        "(3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
    )
    for statement in STATEMENTS:
        # Twice: a plan that is kept says the same.
        answers = [server.answer(connection, statement) + "\n" + server.answer(connection, "SHOW WARNINGS") for _ in range(2)]
        assert answers[0] == answers[1] or server.port is None, f"{statement}: {answers}"
        yield statement, answers[0]
    cursor.execute(f"DROP DATABASE {DATABASE}")


KNOWN = {
    **dict.fromkeys(
        [
            "SELECT id, tx BETWEEN vc AND it, vc NOT BETWEEN tx AND it, it BETWEEN '1' AND vc, vc BETWEEN t AND da FROM e ORDER BY id",
            "SELECT IF(js, 1, 2), CASE WHEN js THEN 1 ELSE 2 END FROM e ORDER BY id", "SELECT CAST('\"a\"' AS JSON) & 2",
        ],
        "warnings of conversions name no column in Firn",
    ),
    "SELECT id FROM e WHERE vc BETWEEN 'a' AND 5 ORDER BY id": "Firn warns of texts that are no numbers, MySQL says nothing of them here",
    "SELECT CASE DATE'2020-01-01' WHEN 'null' THEN 1 ELSE 2 END": "the constant is compared as a date and time in Firn",
}
