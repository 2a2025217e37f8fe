"""What definitions with foreign keys, checks and generated columns, and columns of queries, are refused for."""

SETUP = [
    "CREATE TABLE p (id INT PRIMARY KEY, a INT, b INT, UNIQUE (a, b), KEY (b))",
    "CREATE TABLE later (a INT, v INT, FOREIGN KEY (a) REFERENCES p (id) ON UPDATE CASCADE)",
    "CREATE TABLE computed (a INT, s INT AS (a + 1) STORED)",
    "CREATE TABLE checked (a INT CHECK (a > 0))",
]

ACTIONS = [
    "",
    "ON DELETE CASCADE",
    "ON DELETE SET NULL",
    "ON DELETE RESTRICT ON UPDATE NO ACTION",
    "ON UPDATE CASCADE",
    "ON UPDATE SET NULL",
]

# With a foreign key over `a` behind them.
BESIDE_A_KEY = [
    "a INT, s INT AS (a + 1) STORED",
    "a INT, v INT AS (a + 1) VIRTUAL",
    "a INT, v INT AS (a + 1) VIRTUAL, KEY (v)",
    "a INT, v INT AS (a + 1) VIRTUAL, s INT AS (v + 1) STORED",
    "a INT, s INT AS (1 + 1) STORED, v INT AS (a + s) VIRTUAL",
    "a INT CHECK (a > 0)",
    "a INT, CONSTRAINT named CHECK (a > 0) NOT ENFORCED",
    "a INT, v INT AS (a + 1) VIRTUAL, CHECK (v > 2)",
    "a INT, b INT, CHECK (b > 0)",
]

STATEMENTS = [
    "CREATE TABLE t (a INT, b INT, CHECK (b > 2), FOREIGN KEY (a, b) REFERENCES p (a, b) ON UPDATE CASCADE)",
    "CREATE TABLE t (a INT, b INT, CONSTRAINT c CHECK (b > 2), CONSTRAINT k FOREIGN KEY (a, b)"
    " REFERENCES p (a, b) ON UPDATE CASCADE, CONSTRAINT d CHECK (a > 3))",
    "CREATE TABLE t (a INT, CHECK (a > 2), FOREIGN KEY (a) REFERENCES missing (a) ON UPDATE CASCADE)",
    "CREATE TABLE t (a INT, s INT AS (a + 1) STORED, FOREIGN KEY (a) REFERENCES missing (id) ON UPDATE CASCADE)",
    "CREATE TABLE t (id INT PRIMARY KEY, a INT, s INT AS (a + 1) STORED,"
    " FOREIGN KEY (a) REFERENCES t (id) ON DELETE CASCADE)",
    "CREATE TABLE t (a INT, CHECK (missing > 2))",
    "CREATE TABLE t (a INT, b INT CHECK (a > 2))",
    "CREATE TABLE t (a INT, b INT CHECK (a > b))",
    "CREATE TABLE t (a INT, b INT CHECK (1 > 0))",
    "ALTER TABLE later ADD s INT AS (a + 1) STORED",
    "ALTER TABLE later MODIFY v INT AS (a + 1) STORED",
    "ALTER TABLE later ADD CHECK (a > 1)",
    "ALTER TABLE later ADD CONSTRAINT c CHECK (a > 1) NOT ENFORCED",
    "ALTER TABLE later MODIFY v INT CHECK (a > 2)",
    "ALTER TABLE later ADD w INT CHECK (v > 2)",
    "ALTER TABLE computed ADD FOREIGN KEY (a) REFERENCES p (id) ON UPDATE CASCADE",
    "ALTER TABLE computed ADD FOREIGN KEY (a) REFERENCES p (id) ON DELETE CASCADE",
    "ALTER TABLE computed ADD FOREIGN KEY (a) REFERENCES p (id)",
    "ALTER TABLE checked ADD FOREIGN KEY (a) REFERENCES p (id) ON UPDATE CASCADE",
    "ALTER TABLE checked ADD FOREIGN KEY (a) REFERENCES p (id)",
    "CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES p (a))",
    "CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES p (b))",
    "CREATE TABLE t (a INT, b INT, FOREIGN KEY (a, b) REFERENCES p (a, b))",
    "SELECT @@restrict_fk_on_non_standard_key",
    "SET restrict_fk_on_non_standard_key = OFF",
    "CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES p (a))",
    "SET restrict_fk_on_non_standard_key = ON",
    "CREATE TABLE t AS SELECT 1 + 1 AS `" + "x" * 64 + "`",
    "CREATE TABLE t AS SELECT 1 + 1 AS `" + "x" * 65 + "`",
    "CREATE TABLE t AS SELECT '" + "x" * 300 + "'",
    "CREATE TABLE t AS SELECT " + " + ".join(["1"] * 40),
    "CREATE TABLE t AS SELECT * FROM (SELECT 1 AS `" + "x" * 65 + "`) d",
    "CREATE TABLE t AS SELECT ''",
    "CREATE TABLE t AS SELECT 1 AS `a `",
    "CREATE TABLE t AS SELECT 'a '",
    "CREATE VIEW t AS SELECT 1 AS `" + "x" * 65 + "`",
    "CREATE VIEW t AS SELECT 1 AS `a `",
    "CREATE VIEW t AS SELECT 1, 'a ', '" + "x" * 65 + "'",
    "SELECT \\N",
    "SELECT 1 AS `" + "x" * 65 + "`",
]


def cases(server):
    connection = server.connect()

    def ask(statement):
        return server.answer(connection, statement)

    for statement in [
        "DROP DATABASE IF EXISTS constraints",
        "CREATE DATABASE constraints",
        "USE constraints",
        *SETUP,
    ]:
        ask(statement)

    def tried(statement):
        answer = ask(statement)
        if answer.startswith("ok") and statement.startswith("CREATE"):
            answer += "\n" + ask("SELECT column_name FROM information_schema.columns"
                                 " WHERE table_schema = 'constraints' AND table_name = 't'"
                                 " ORDER BY ordinal_position")
        ask("DROP VIEW IF EXISTS t" if "VIEW" in statement else "DROP TABLE IF EXISTS t")
        return answer.replace("MySQL server", "… server").replace("Firn server", "… server")

    for columns in BESIDE_A_KEY:
        for action in ACTIONS:
            key = f"FOREIGN KEY (a) REFERENCES p (id) {action}".strip()
            statement = f"CREATE TABLE t ({columns}, {key})"
            yield statement, tried(statement)
    ask("SET foreign_key_checks = OFF")
    for columns in BESIDE_A_KEY[::5]:
        key = "FOREIGN KEY (a) REFERENCES p (id) ON UPDATE CASCADE"
        yield f"unchecked {columns}", tried(f"CREATE TABLE t ({columns}, {key})")
    ask("SET foreign_key_checks = ON")
    for number, statement in enumerate(STATEMENTS):
        answer = tried(statement)
        yield f"{number} {statement}", answer
    ask("DROP DATABASE constraints")
