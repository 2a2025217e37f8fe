"""Exact numbers that are never negative: sums, differences and products of two are, choices and
sets of them are not. An answer has the rows, the column definitions and the warnings.
"""

SETUP = [
    "DROP DATABASE IF EXISTS recorded_unsigned_decimals",
    "CREATE DATABASE recorded_unsigned_decimals",
    "USE recorded_unsigned_decimals",
    "SET NAMES utf8mb4 COLLATE utf8mb4_bin, sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION'",
    "CREATE TABLE t (id INT PRIMARY KEY, a DECIMAL(8,2) UNSIGNED, z DECIMAL(8,2) ZEROFILL, s DECIMAL(8,2), u TINYINT UNSIGNED, i INT, y YEAR, b BIT(3), f DOUBLE UNSIGNED, fm FLOAT(7,3))",
    "INSERT INTO t VALUES (1, 3.5, 123456.78, -1.5, 3, -3, 2024, 5, 3.5, 1.5), (2, 0, 123456.78, 0, 200, 7, 1999, 0, 0, -1.5),"
    " (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
]
OPERANDS = ["a", "z", "s", "u", "i", "y", "b", "f", "1", "1.5", "NULL", "x'01'", "b'101'", "'1'", "CAST(1 AS UNSIGNED)"]
VALUES = ["a", "z", "a + a", "a - a", "u * a"]
ASKED = [
    "MAX({})", "SUM({})", "AVG({})", "ROUND({})", "ROUND({}, 1)", "TRUNCATE({}, 1)", "ABS({})", "-({})", "FLOOR({})", "MOD({}, 2)", "({}) / 2", "({}) DIV 2", "({}) & 7",
    "CONCAT({})", "CAST({} AS CHAR)", "CAST({} AS DECIMAL(9,1))",
]
CHOICES = ["IFNULL({}, a)", "COALESCE({})", "CASE WHEN id = 2 THEN a ELSE {} END", "GREATEST({}, a)", "LEAST({}, u)", "COALESCE({}, 1)", "IF(id, {}, NULL)"]
SETS = [("a", "a"), ("z", "z"), ("NULL", "a"), ("NULL", "z"), ("b", "a"), ("u", "a"), ("a + a", "a"), ("z", "fm"), ("fm", "z"), ("s", "fm")]
QUERIES = ["SELECT ANY_VALUE(a), ANY_VALUE(z) FROM t GROUP BY id ORDER BY id", "SELECT IFNULL(a - 5.5, 0) FROM t ORDER BY id", "SELECT IFNULL(a - CAST(5 AS UNSIGNED), 0) FROM t ORDER BY id", "SELECT id FROM t WHERE a - CAST(5 AS UNSIGNED) < 0 ORDER BY id"]


def cases(server):
    connection = server.connect()
    for statement in SETUP:
        assert server.answer(connection, statement).startswith("ok"), statement
    statements = [f"SELECT {left} {sign} {right} FROM t ORDER BY id" for sign in "+-*" for left in OPERANDS[:2] for right in OPERANDS]
    statements += [f"SELECT {right} {sign} a FROM t ORDER BY id" for sign in "+-*" for right in OPERANDS]
    statements += [f"SELECT {asked.format(value)} FROM t GROUP BY id ORDER BY id" for value in VALUES for asked in ASKED]
    statements += [f"SELECT {choice.format(value)} FROM t ORDER BY id" for value in VALUES for choice in CHOICES]
    statements += [f"SELECT {left} AS c FROM t {word} SELECT {right} FROM t" for left, right in SETS for word in ("UNION ALL", "EXCEPT")]
    for statement in dict.fromkeys(statements + QUERIES):
        yield statement, server.answer_with_definitions(connection, statement)
    connection.cursor().execute("SET sql_mode = 'STRICT_TRANS_TABLES,NO_UNSIGNED_SUBTRACTION'")
    for statement in ("SELECT a - u FROM t ORDER BY id", "SELECT a - a FROM t ORDER BY id"):
        yield f"{statement} /* NO_UNSIGNED_SUBTRACTION */", server.answer_with_definitions(connection, statement)
