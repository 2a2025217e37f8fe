"""Exact numbers beside texts: a constant text is an exact number for an operator, and a double in
BETWEEN, IN and CASE; a text that is no constant is always a double. An answer has the rows, the
column definitions and the warnings.
"""

SETUP = [
    "DROP DATABASE IF EXISTS recorded_exact_texts",
    "CREATE DATABASE recorded_exact_texts",
    "USE recorded_exact_texts",
    "SET NAMES utf8mb4 COLLATE utf8mb4_bin, sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION'",
    "CREATE TABLE t (id INT PRIMARY KEY, w DECIMAL(65,30), d DECIMAL(10,3), i INT, b BIGINT, u BIGINT UNSIGNED, f DOUBLE, v VARCHAR(50), KEY (d), KEY (u))",
    "INSERT INTO t VALUES (1, 12345678901234567890123456789012345.5, 1.25, 1, 9223372036854775807, 18446744073709551615, 1e300, '12345678901234567890123456789012345.6'),"
    " (2, 0, 0, 0, 0, 0, 0, ''), (3, -0.000000000000000000000000000001, -1234567.891, -3, -9223372036854775808, 9223372036854775808, 0.1, 'x'),"
    " (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
]
VALUES = ["w", "d", "w + 0", "1.5", "i", "b", "u", "f", "SUM(d)"]
TEXTS = [
    "'12345678901234567890123456789012345.6'", "'12345678901234567890123456789012345.5'", "'1.25'", "''", "' '", "'x'", "'1.25x'", "'-0.000000000000000000000000000001'",
    "'18446744073709551614'", "'18446744073709551615'", "'9223372036854775808'", "CONCAT('1', '.25')", "v", "'0x41'",
]
WAYS = ["{} = {}", "{} < {}", "{} <=> {}", "NULLIF({}, {})", "{} BETWEEN {} AND '2'", "{} IN ({}, '7')", "CASE {} WHEN {} THEN 1 END"]


def cases(server):
    connection = server.connect()
    for statement in SETUP:
        assert server.answer(connection, statement).startswith("ok"), statement
    for value in VALUES:
        for text in TEXTS:
            for way in WAYS:
                statement = f"SELECT {way.format(value, text)} FROM t GROUP BY id ORDER BY id"
                yield statement, server.answer_with_definitions(connection, statement)
            statement = f"SELECT {text} >= {value} FROM t GROUP BY id ORDER BY id"
            yield statement, server.answer_with_definitions(connection, statement)
    for condition in ("d = '1.25'", "d >= '1.2499'", "u = '18446744073709551615'", "u > '18446744073709551614'", "w > '12345678901234567890123456789012345.4'", "d = ''"):
        statement = f"SELECT id FROM t WHERE {condition} ORDER BY id"
        yield statement, server.answer_with_definitions(connection, statement)
