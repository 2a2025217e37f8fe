"""Doubles beyond the integers where integers are wanted, bytes and texts that a character set
does not have (3854), and what the NULL of a comparison evaluates. An answer has the rows, the
column definitions and the warnings.
"""

SETUP = [
    "DROP DATABASE IF EXISTS recorded_integers_of_doubles",
    "CREATE DATABASE recorded_integers_of_doubles",
    "USE recorded_integers_of_doubles",
    "SET sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION'",
    "CREATE TABLE t (id INT PRIMARY KEY, n DOUBLE, f FLOAT, g BIGINT, v VARCHAR(20), l VARCHAR(20) CHARACTER SET latin1, b BINARY(4), j JSON, m DATETIME)",
    "INSERT INTO t VALUES (1, 1e300, 1e20, 7, 'a1', 'é', 'ab', '[1]', '2024-02-29'), (2, -1e300, -1e20, -1, '5x', 'a', '12', '5', NULL), (3, 2.5, 0.1, 0, NULL, NULL, NULL, NULL, NULL)",
]
EXPRESSIONS = """
CAST(n AS UNSIGNED)
CAST(n AS SIGNED)
CAST(f AS UNSIGNED)
CAST(f AS SIGNED)
n & 1
f & 1
CAST(n * 1 AS SIGNED)
CAST(n * 1 AS UNSIGNED)
CAST(f * 1 AS UNSIGNED)
CAST(ABS(n) AS UNSIGNED)
CAST(IFNULL(n, 1) AS UNSIGNED)
CAST(1e20 AS SIGNED)
CAST(-1e19 AS UNSIGNED)
CAST(1e19 + 0 AS SIGNED)
CAST(9.3e18 AS UNSIGNED)
CAST(POW(10, 20) AS UNSIGNED)
CAST(CAST(n AS DOUBLE) AS UNSIGNED)
CAST('1e20' + 0 AS SIGNED)
(n * 1) & 1
BIT_COUNT(n * 1)
LEFT('abc', n * 1)
LEFT('abc', 1e20)
CHAR(n * 1)
MAKEDATE(2000, n * 1)
CAST(2.5e0 * 3 AS SIGNED)
25 DIV n
25e0 DIV 1e300
n DIV 5
g DIV n
ISNULL(v + 0)
ISNULL(v XOR 1)
ISNULL(v = 5)
ISNULL(v AND 5)
ISNULL(NOT v)
ISNULL(m >= v)
ISNULL(v <=> 5)
ISNULL(v BETWEEN 1 AND 2)
(v = 5) IS NULL
(v = 5) IS NOT NULL
(v = 5) IS TRUE
ISNULL((v = 5) XOR (v < 3))
STRCMP(v, x'FF')
STRCMP(v, x'41')
STRCMP(v, b)
STRCMP(CHAR(255), v)
STRCMP(x'FF', j)
CHAR(255, 65) >= v
CHAR(g) >= v
UNHEX('FF') = v
UNHEX('41') = v
CONCAT(x'FF') = v
CONCAT(x'FF') = 'a'
CAST(x'FF' AS BINARY) = v
b >= v
l = '漢'
l = 'é'
l < '漢'
l IN ('漢')
STRCMP(l, '漢')
IFNULL(l, '漢')
CASE l WHEN '漢' THEN 1 END
NULLIF(l, '漢')
GREATEST(l, '漢')
g + IF(id, 0x41, 'a')
""".strip().split("\n")

LITERAL = "a constant that was evaluated is a literal to Firn, which becomes the end of the range"
KNOWN = {
    f"SELECT {one} AS c FROM t ORDER BY id": LITERAL
    for one in ("CAST(-1e19 AS UNSIGNED)", "CAST(1e19 + 0 AS SIGNED)", "CAST(POW(10, 20) AS UNSIGNED)", "CAST('1e20' + 0 AS SIGNED)")
}


def cases(server):
    connection = server.connect()
    for statement in SETUP:
        connection.cursor().execute(statement)
    for expression in EXPRESSIONS:
        statement = f"SELECT {expression} AS c FROM t ORDER BY id"
        yield statement, server.answer_with_definitions(connection, statement)
