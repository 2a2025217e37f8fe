"""How long rows may be, by the types of their columns, and how deep expressions may nest."""

SET_OF_33 = "SET(" + ", ".join(f"'m{number}'" for number in range(33)) + ")"
UNDECLARED = {
    "TIMESTAMP": "TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP",
    "TEXT NULL": "TEXT",
    "INT NULL": "INT",
}

# A type, and numbers of columns around the bound.
COUNTS = [
    ("INT NULL", [1, 1017, 1018]),
    ("BIGINT NOT NULL", [1012, 1013]),
    ("DOUBLE NOT NULL", [1012, 1013]),
    ("BIT(64) NOT NULL", [1012, 1013]),
    ("DECIMAL(65,30) NOT NULL", [270, 271]),
    ("TIMESTAMP", [1017]),
    ("TEXT NULL", [196, 197, 198]),
    ("TEXT NOT NULL", [197, 198]),
    ("TINYTEXT NOT NULL", [197, 198]),
    ("JSON NOT NULL", [197, 198]),
    ("VARCHAR(39) CHARACTER SET latin1 NOT NULL", [202, 203]),
    ("VARCHAR(7) CHARACTER SET latin1 NOT NULL", [1012, 1013]),
    ("VARCHAR(255) NOT NULL", [197, 198]),
    ("CHAR(5) NOT NULL", [385, 386]),
    ("CHAR(255) CHARACTER SET latin1 NOT NULL", [31, 32]),
    ("BINARY(250) NOT NULL", [32, 33]),
]

# A type of 1,000 columns and what is left of 65,535 bytes for a text.
DECLARED = [
    ("ENUM('a', 'b') NOT NULL", 64533),
    ("TIMESTAMP", 61533),
    (SET_OF_33 + " NOT NULL", 57533),
]

CHAINS = ["+", "||", " XOR ", " AND ", "*", "|", "=", " MOD "]
NESTED = [("NOT ", ""), ("- ", ""), ("~ ", ""), ("!", ""), ("(", ")")]


def columns(kind, count):
    return ", ".join(f"c{number} {UNDECLARED.get(kind, kind)}" for number in range(count))


def cases(server):
    connection = server.connect()

    def ask(statement):
        return server.answer(connection, statement)

    for statement in [
        "DROP DATABASE IF EXISTS row_sizes",
        "CREATE DATABASE row_sizes",
        "USE row_sizes",
    ]:
        ask(statement)
    for kind, counts in COUNTS:
        for count in counts:
            answer = ask(f"CREATE TABLE t ({columns(kind, count)})")
            yield f"create {count} columns {kind}", answer
            ask("DROP TABLE IF EXISTS t")
    for kind, length in DECLARED:
        for extra in [0, 1]:
            text = f"t VARCHAR({length + extra}) CHARACTER SET latin1 NOT NULL"
            answer = ask(f"CREATE TABLE t ({columns(kind, 1000)}, {text})")
            yield f"create 1000 columns {kind} and {text}", answer
            ask("DROP TABLE IF EXISTS t")
    yield from formats(ask)
    yield from stored(ask)
    yield from expressions(ask)
    ask("DROP DATABASE row_sizes")


def formats(ask):
    """What depends on the row format, the strict mode and the kind of statement."""
    for row_format in ["COMPACT", "REDUNDANT", "DYNAMIC"]:
        answer = ask(f"CREATE TABLE t ({columns('TEXT NULL', 20)}) ROW_FORMAT={row_format}")
        yield f"create 20 columns TEXT {row_format}", answer
        ask("DROP TABLE IF EXISTS t")
    ask(f"CREATE TABLE t ({columns('TEXT NOT NULL', 197)})")
    for statement in ["ALTER TABLE t ADD z TEXT", "ALTER TABLE t ADD z TINYINT NOT NULL"]:
        yield f"197 columns TEXT: {statement}", ask(statement)
    ask("DROP TABLE t")
    ask("SET innodb_strict_mode = OFF")
    ask(f"CREATE TABLE t ({columns('TEXT NOT NULL', 198)})")
    yield "create 198 columns TEXT, not strict", ask("SHOW WARNINGS")
    ask("SET innodb_strict_mode = ON")
    yield "the same, ADD in strict mode", ask("ALTER TABLE t ADD z TEXT")
    yield "the same, COMMENT in strict mode", ask("ALTER TABLE t COMMENT = 'c'")
    ask("DROP TABLE t")
    virtual = columns("BIGINT NOT NULL", 1012) + ", v BIGINT AS (c0 + 1)"
    yield "create 1012 columns BIGINT and a virtual one", ask(f"CREATE TABLE t ({virtual})")
    ask("DROP TABLE IF EXISTS t")


def stored(ask):
    """Rows as long as they may be are written, changed, found and deleted."""
    ask(f"CREATE TABLE t (id INT PRIMARY KEY, {columns('BIGINT NOT NULL', 1000)}, KEY (c7))")
    for row in range(20):
        values = ", ".join(str(row * 1000 + number) for number in range(1000))
        yield f"insert row {row}", ask(f"INSERT INTO t VALUES ({row * 7 % 20}, {values})")
    for statement in [
        "SELECT id, c0, c7, c999 FROM t ORDER BY id",
        "SELECT id FROM t ORDER BY id DESC",
        "UPDATE t SET c0 = c999, c7 = -c7 WHERE id BETWEEN 3 AND 9",
        "SELECT id, c7 FROM t WHERE c7 < 0 ORDER BY c7",
        "DELETE FROM t WHERE id % 3 = 0",
        "INSERT INTO t SELECT id + 100, " + ", ".join(f"c{n}" for n in range(1000)) + " FROM t",
        "SELECT COUNT(*), SUM(c0), SUM(c500), SUM(c999) FROM t",
        "ALTER TABLE t DROP c500",
        "SELECT COUNT(*), SUM(c0), SUM(c499), SUM(c999) FROM t",
        "CHECK TABLE t",
    ]:
        yield "long rows: " + statement[:60], ask(statement)
    ask("DROP TABLE t")
    ask(f"CREATE TABLE t (id INT PRIMARY KEY, {columns('VARCHAR(50)', 150)})")
    values = ", ".join(["REPEAT('x', 50)"] * 150)
    yield "150 short texts in a row", ask(f"INSERT INTO t VALUES (1, {values})")
    yield "are read", ask("SELECT LENGTH(CONCAT_WS(',', c0, c77, c149)) FROM t")
    ask("DROP TABLE t")


def expressions(ask):
    for operator in CHAINS:
        yield f"2000 operands of {operator}", ask("SELECT " + operator.join(["1"] * 2000))
    for begin, end in NESTED:
        yield f"800 times {begin}", ask("SELECT " + begin * 800 + "1" + end * 800)
