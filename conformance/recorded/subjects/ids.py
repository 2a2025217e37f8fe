"""`AUTO_INCREMENT` values: what is allocated, and what the client is told of them."""

SETUP = [
    "DROP DATABASE IF EXISTS recorded_ids",
    "CREATE DATABASE recorded_ids",
    "USE recorded_ids",
]

STATEMENTS = [
    "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT, b INT, UNIQUE (a))",
    "INSERT INTO t (a) VALUES (1)",
    "INSERT INTO t (a) VALUES (2), (3), (4)",
    # Explicit ids, also in front of and behind generated ones.
    "INSERT INTO t VALUES (100, 5, 0)",
    "INSERT INTO t VALUES (NULL, 6, 0), (200, 7, 0), (NULL, 8, 0)",
    "INSERT INTO t VALUES (300, 9, 0), (NULL, 10, 0)",
    "INSERT INTO t VALUES (-5, 11, 0)",
    "INSERT INTO t VALUES (-6, 12, 0), (400, 13, 0)",
    "INSERT INTO t VALUES (401, 14, 0), (-7, 15, 0)",
    # ON DUPLICATE KEY UPDATE: rows that change, that stay, that are inserted.
    "INSERT INTO t (a, b) VALUES (1, 7) ON DUPLICATE KEY UPDATE b = 1",
    "INSERT INTO t (a, b) VALUES (1, 7) ON DUPLICATE KEY UPDATE b = b",
    "INSERT INTO t (a, b) VALUES (1, 7) ON DUPLICATE KEY UPDATE b = b + 1",
    "INSERT INTO t (a, b) VALUES (2, 7) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), b = 5",
    "INSERT INTO t (a, b) VALUES (2, 7) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), b = 5",
    "INSERT INTO t (a, b) VALUES (20, 7) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), b = 5",
    "INSERT INTO t (a, b) VALUES (1, 1), (500, 1) ON DUPLICATE KEY UPDATE b = b + 1",
    "INSERT INTO t (a, b) VALUES (501, 1), (1, 1) ON DUPLICATE KEY UPDATE b = b + 1",
    "INSERT INTO t (id, a, b) VALUES (1, 1, 1) ON DUPLICATE KEY UPDATE b = b + 1",
    "INSERT INTO t (id, a, b) VALUES (600, 1, 1) ON DUPLICATE KEY UPDATE b = b + 1",
    "INSERT INTO t (id, a, b) VALUES (600, 1, 1) ON DUPLICATE KEY UPDATE id = 601",
    # IGNORE.
    "INSERT IGNORE INTO t (a) VALUES (1)",
    "INSERT IGNORE INTO t (a) VALUES (1), (700), (1)",
    "INSERT IGNORE INTO t (id, a) VALUES (601, 1)",
    "INSERT IGNORE INTO t (id, a) VALUES (800, 1)",
    "INSERT IGNORE INTO t (id, a) VALUES (801, 701), (802, 1)",
    # REPLACE.
    "REPLACE INTO t (a, b) VALUES (1, 1)",
    "REPLACE INTO t (id, a, b) VALUES (900, 1, 1)",
    "REPLACE INTO t (a, b) VALUES (1, 1), (901, 2)",
    # INSERT … SELECT.
    "INSERT INTO t (a) SELECT 1000 + n FROM (SELECT 1 n UNION SELECT 2 UNION SELECT 3) d",
    "INSERT INTO t (id, a) SELECT 2000 + n, 1010 + n FROM (SELECT 1 n UNION SELECT 2 UNION SELECT 3) d",
    "INSERT INTO t (id, a) SELECT IF(n = 2, NULL, 3000 + n), 1020 + n FROM (SELECT 1 n UNION SELECT 2 UNION SELECT 3) d",
    # LAST_INSERT_ID(x).
    "UPDATE t SET id = LAST_INSERT_ID(id + 10000) WHERE a = 2",
    "UPDATE t SET b = LAST_INSERT_ID(77) WHERE a = 2",
    "UPDATE t SET b = LAST_INSERT_ID(77) WHERE a = 2",
    "UPDATE t SET b = LAST_INSERT_ID(78) WHERE a = -2",
    "DELETE FROM t WHERE a = LAST_INSERT_ID(14)",
    "DO LAST_INSERT_ID(56)",
    "INSERT INTO t (a, b) VALUES (2000, LAST_INSERT_ID(99))",
    "INSERT INTO t (id, a, b) VALUES (20000, 2001, LAST_INSERT_ID(98))",
    # SET insert_id.
    "SET insert_id = 50000",
    "INSERT INTO t (a) VALUES (3000), (3001)",
    "INSERT INTO t (a) VALUES (3002)",
    "SET insert_id = 100",
    "INSERT INTO t (a) VALUES (3003)",
    "INSERT INTO t (a) VALUES (3004)",
    "SET insert_id = 60000",
    "INSERT INTO t (id, a) VALUES (60010, 3005)",
    "INSERT INTO t (a) VALUES (3006)",
    "SET insert_id = 70000",
    "SELECT @@insert_id",
    "INSERT INTO t (a) VALUES (3007)",
    "SELECT @@insert_id, @@last_insert_id, @@identity",
    "SET last_insert_id = 5",
    "SET identity = 6",
    # Zero.
    "CREATE TABLE z (id INT PRIMARY KEY AUTO_INCREMENT, a INT)",
    "INSERT INTO z VALUES (0, 1), (NULL, 2), (0, 3)",
    "SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'",
    "INSERT INTO z VALUES (0, 4)",
    "INSERT INTO z VALUES (NULL, 5)",
    "INSERT INTO z VALUES (0, 6)",
    "UPDATE z SET id = 70 WHERE id = 0",
    "INSERT INTO z VALUES (NULL, 7)",
    "SET sql_mode = DEFAULT",
    # Rows by row.
    "CREATE TABLE y (id INT PRIMARY KEY AUTO_INCREMENT, a INT)",
    "INSERT INTO y VALUES (NULL, 1), (2, 2), (NULL, 3)",
    "INSERT INTO y VALUES (10, 1), (NULL, 2), (9, 2), (NULL, 3)",
    "INSERT INTO y VALUES (NULL, 1), (30, 2), (20, 2), (NULL, 3), (NULL, 4)",
    "INSERT INTO y (a) VALUES (1)",
    "INSERT INTO y VALUES (NULL, 1), (32, 2), (NULL, 3)",
    "INSERT INTO y SELECT n, 1 FROM (SELECT 60 n UNION ALL SELECT NULL UNION ALL SELECT 62 UNION ALL SELECT NULL) d",
    "INSERT INTO y (a) VALUES (9)",
    # The end of the numbers, TRUNCATE, ALTER.
    "CREATE TABLE x (id TINYINT PRIMARY KEY AUTO_INCREMENT, a INT)",
    "INSERT INTO x VALUES (126, 1)",
    "INSERT INTO x (a) VALUES (2)",
    "INSERT INTO x (a) VALUES (3)",
    "INSERT INTO x (a) VALUES (4), (5)",
    "TRUNCATE x",
    "INSERT INTO x (a) VALUES (3)",
    "ALTER TABLE x AUTO_INCREMENT = 50",
    "INSERT INTO x (a) VALUES (4)",
    "ALTER TABLE x AUTO_INCREMENT = 5",
    "INSERT INTO x (a) VALUES (5)",
    "ALTER TABLE x AUTO_INCREMENT = 126",
    "INSERT INTO x (a) VALUES (6), (7), (8)",
    "CREATE TABLE w (id BIGINT UNSIGNED PRIMARY KEY AUTO_INCREMENT, a INT)",
    "INSERT INTO w VALUES (18446744073709551614, 1)",
    "INSERT INTO w (a) VALUES (2)",
    "INSERT INTO w VALUES (18446744073709551615, 3)",
    "INSERT INTO w (a) VALUES (4)",
    "CREATE TABLE v (id BIGINT PRIMARY KEY AUTO_INCREMENT, a INT)",
    "INSERT INTO v VALUES (9223372036854775807, 1)",
    "INSERT INTO v (a) VALUES (2)",
    "CREATE TABLE f (id FLOAT PRIMARY KEY AUTO_INCREMENT, a INT)",
    # Another key than the primary one; none at all.
    "CREATE TABLE two (a INT PRIMARY KEY, id INT AUTO_INCREMENT, KEY (id))",
    "INSERT INTO two (a) VALUES (5), (6)",
    "INSERT INTO two (a, id) VALUES (7, 0), (8, 3), (9, 3), (10, NULL)",
    "UPDATE two SET id = 50 WHERE a = 5",
    "INSERT INTO two (a) VALUES (11)",
    "CREATE TABLE n (a INT)",
    "INSERT INTO n VALUES (LAST_INSERT_ID(44))",
    "INSERT INTO n VALUES (1)",
    # A statement that fails keeps the id that was told before.
    "CREATE TABLE u (id INT PRIMARY KEY AUTO_INCREMENT, a INT UNIQUE)",
    "INSERT INTO u (a) VALUES (1), (2), (1)",
    "INSERT INTO u (a) VALUES (5)",
    # Steps.
    "SET auto_increment_increment = 10, auto_increment_offset = 3",
    "INSERT INTO u (a) VALUES (10), (11), (12)",
    "INSERT INTO u VALUES (50, 13), (NULL, 14), (NULL, 15)",
    "INSERT INTO u VALUES (NULL, 16), (93, 17), (NULL, 18)",
    "SET auto_increment_increment = 1, auto_increment_offset = 1",
    # Rows of a query, which may exist already.
    "CREATE TABLE q (id INT PRIMARY KEY AUTO_INCREMENT, a INT)",
    "INSERT INTO q SELECT 1, 1",
    "INSERT INTO q SELECT 2, 2 ON DUPLICATE KEY UPDATE a = 9",
    "INSERT INTO q SELECT 2, 3 ON DUPLICATE KEY UPDATE a = 9",
    "INSERT INTO q SELECT id + 1, a FROM (SELECT 2 id, 5 a) s ON DUPLICATE KEY UPDATE a = s.a",
    "INSERT INTO q (a) SELECT 4 ON DUPLICATE KEY UPDATE a = 9",
    "INSERT INTO q SELECT 2, 5 ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(q.id), a = 7",
    "INSERT INTO q VALUES (10, 1), (11, 2) ON DUPLICATE KEY UPDATE a = 8",
    "INSERT INTO q VALUES ROW(10, 1), ROW(12, 2) ON DUPLICATE KEY UPDATE a = 8",
    "INSERT INTO q TABLE n ON DUPLICATE KEY UPDATE a = 8",
    "REPLACE INTO q SELECT 12, 3",
    # Zero in another form, and rows that are refused before they get an id.
    "CREATE TABLE z (id INT PRIMARY KEY AUTO_INCREMENT, a INT UNSIGNED, CHECK (a < 100))",
    "INSERT INTO z VALUES ('0', 1)",
    "INSERT INTO z VALUES (0.4, 2), ('0.2', 3), (-0.1, 4)",
    "INSERT INTO z VALUES ('', 5)",
    "INSERT IGNORE INTO z VALUES ('', 6), ('0abc', 7)",
    "INSERT IGNORE INTO z VALUES (NULL, 200), (NULL, 8), (NULL, 300), (NULL, 9)",
    "INSERT INTO z SELECT '0', 10 UNION ALL SELECT 0, 11",
    "INSERT INTO z VALUES (FALSE, 12), (0x30, 13), (b'0', 14)",
    "SET sql_mode = CONCAT(@@sql_mode, ',NO_AUTO_VALUE_ON_ZERO')",
    "INSERT INTO z VALUES ('0', 15)",
    "INSERT INTO z VALUES (0.4, 16)",
    "SET sql_mode = DEFAULT",
]


def cases(server):
    connection = server.connect()
    for statement in SETUP:
        server.answer(connection, statement)
    tables = []
    for number, statement in enumerate(STATEMENTS, 1):
        answer = server.answer(connection, statement)
        if answer.startswith("ok"):
            answer = f"{answer}, id {connection.insert_id()}"
        last = server.answer(connection, "SELECT LAST_INSERT_ID()")
        words = statement.split()
        if words[0] == "CREATE":
            tables.append(words[2])
        content = [
            f"{table}: " + server.answer(connection, f"SELECT * FROM {table} ORDER BY 1").replace("\n", ", ")
            for table in tables[-1:]
        ]
        yield f"{number}: {statement}", "\n".join([answer, f"LAST_INSERT_ID() {last}", *content])
    server.answer(connection, "DROP DATABASE recorded_ids")
