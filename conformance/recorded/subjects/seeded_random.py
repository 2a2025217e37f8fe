"""`RAND(n)`: the sequence of each call, in reads and in writes, beside aggregates, in joins and in groups."""

SETUP = [
    "DROP DATABASE IF EXISTS recorded_random",
    "CREATE DATABASE recorded_random",
    "USE recorded_random",
    "CREATE TABLE s (a INT, g INT)",
    "INSERT INTO s VALUES (1, 1), (2, 1), (3, 2), (4, 2), (5, 3)",
    "CREATE TABLE r (a INT, x DOUBLE, y DOUBLE)",
]

STATEMENTS = [
    "SELECT RAND(3)",
    "SELECT RAND(3), RAND(3), RAND(4)",
    "SELECT a, RAND(3) FROM s",
    "SELECT a, RAND(a) FROM s",
    "SELECT a, RAND(3), RAND(3) FROM s",
    "SELECT a, RAND(NULL), RAND('3'), RAND(3.4), RAND(-3) FROM s",
    "SELECT MAX(a), RAND(3) FROM s",
    "SELECT g, MAX(a), RAND(3) FROM s GROUP BY g",
    "SELECT g, MAX(RAND(3)) FROM s GROUP BY g",
    "SELECT a FROM s ORDER BY RAND(3)",
    "SELECT a FROM s WHERE RAND(3) < 0.5",
    "SELECT s.a, t.a, RAND(3) FROM s JOIN s t ON s.a = t.a + 1",
    "SELECT * FROM (SELECT a, RAND(3) x FROM s) d",
    "SELECT a, RAND(3) FROM s LIMIT 2",
    "SELECT a, (SELECT RAND(3)) FROM s",
    "INSERT INTO r SELECT a, RAND(3), RAND(4) FROM s",
    "INSERT INTO r SELECT MAX(a), RAND(3), RAND(4) FROM s",
    "INSERT INTO r SELECT MAX(a), RAND(3), RAND(3) FROM s GROUP BY g",
    "INSERT INTO r (a, x) SELECT MAX(a), MAX(RAND(3)) FROM s",
    "INSERT INTO r VALUES (1, RAND(3), RAND(3)), (2, RAND(3), RAND(4))",
    "REPLACE INTO r SELECT MIN(a), RAND(5), RAND(5) FROM s",
    "UPDATE r SET x = RAND(3), y = RAND(3) ORDER BY a, x",
    "DELETE FROM r WHERE RAND(3) < 0.5",
    "CREATE TABLE made AS SELECT MAX(a), RAND(3) FROM s",
]


def cases(server):
    connection = server.connect()
    for statement in SETUP:
        server.answer(connection, statement)
    for number, statement in enumerate(STATEMENTS, 1):
        answer = server.answer(connection, statement)
        table = next((table for table in ("made", "r") if statement.find(f" {table} ") > 0 and statement[0] in "IRUDC"), None)
        if table:
            answer += "\n" + server.answer(connection, f"SELECT * FROM {table}")
        yield f"{number:02} {statement}", answer
    server.answer(connection, "DROP DATABASE recorded_random")
