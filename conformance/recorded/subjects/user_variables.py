"""What user variables keep of values, and how a statement reads those that it sets itself."""

DATABASE = "recorded_variables"
STATEMENTS = [
    "SET @d = DATE'2020-01-02', @t = TIME'10:11:12', @dt = TIMESTAMP'2020-01-02 03:04:05', @j = CAST('{\"a\":1}' AS JSON)",
    "SET @dec = 2.50, @text = 'abc', @n = 5, @b = x'41', @null = NULL, @year = (SELECT y FROM t LIMIT 1), @name = (SELECT e FROM t LIMIT 1), @bits = (SELECT b FROM t LIMIT 1)",
    # Moments and documents are texts.
    "SELECT @d + 1, @t + 1, @dt + 0, @d, @t, @dt, @d = '2020-1-2', @d = DATE'2020-01-02', @d < '3', HEX(@d), CHARSET(@d), COLLATION(@j)",
    "SELECT JSON_EXTRACT(@j, '$.a'), JSON_TYPE(@j), JSON_OBJECT('a', @j), @j = '{\"a\": 1}', CONCAT(@j, 'x')",
    "SELECT @year, @year + 1, @name, @name + 1, CONCAT(@name), @bits, @bits + 1",
    "SELECT COERCIBILITY(@text), COERCIBILITY(@d), COERCIBILITY(@n), COERCIBILITY(@b), COERCIBILITY(@null), COERCIBILITY(@never_set)",
    "SELECT @null, IFNULL(@null, 5), @null + 1, @null IS NULL, CONCAT(@null, 'a')",
    "SELECT @dec, CONCAT(@dec), @dec DIV 1, ROUND(@dec), IF(1, @dec, 2), IFNULL(@dec, 1), @dec > 2, CAST(@dec AS DECIMAL(5,1))",
    # Read after an assignment in the same statement: by the type from before.
    "SELECT @a1 := 'abc', @a1 + 1, YEAR(@a1), CONCAT(@a1, 1), @a1 > 3, ROUND(@a1), @a1 << 1, @a1 = 7, @a1 * 2.5",
    "SELECT @a2 := 5, @a2 + 1, YEAR(@a2), CONCAT(@a2, 1), @a2 > '3', @a2 << 1, ADDTIME(@a2, '1:00'), @a2 * 2.5, CAST(@a2 AS SIGNED), @a2 LIKE '5%', UPPER(@a2)",
    "SELECT @a3 := 2.5, @a3, @a3 + 1, CONCAT(@a3, 1), @a3 * 2, CAST(@a3 AS SIGNED)",
    "SET @a4 = 'x'", "SELECT @a4 := 7, @a4, @a4 + 1, CONCAT(@a4, 'y'), @a4 = 7",
    "SET @a5 = 5", "SELECT @a5 := 2.5, @a5, @a5 + 1", "SELECT @a5, @a5 + 1",
    "SELECT @a6 := DATE'2020-01-02', @a6 + 1", "SELECT @a7 := CAST(1.5 AS FLOAT), @a8 := YEAR('2020-01-02')", "SELECT @a7, @a8, @a7 + 1",
    "SET @row = 0, @last = NULL",
    "SELECT id, @row := IF(@last = id, @row + 1, 1) AS number, @last := id FROM (SELECT 1 AS id UNION ALL SELECT 1 UNION ALL SELECT 2) q",
    "SELECT @count := IFNULL(@count, 0) + 1 FROM (SELECT 1 UNION ALL SELECT 2) q",
]  # fmt: skip

# Its type has 30 digits after the point, which operations on it show in MySQL.
SHORT = "operations on an exact number in a variable have the digits that it has"
KNOWN = {f"{number:02} {STATEMENTS[number - 1]}": SHORT for number in (8, 16)}


def cases(server):
    connection = server.connect()
    for statement in (
        f"DROP DATABASE IF EXISTS {DATABASE}",
        f"CREATE DATABASE {DATABASE}",
        f"USE {DATABASE}",
        "CREATE TABLE t (y YEAR, e ENUM('a', 'b'), b BIT(9))",
        "INSERT INTO t VALUES (2024, 'b', 65)",
    ):
        server.answer(connection, statement)
    for number, statement in enumerate(STATEMENTS, 1):
        yield f"{number:02} {statement}", server.answer(connection, statement)
    server.answer(connection, f"DROP DATABASE {DATABASE}")
