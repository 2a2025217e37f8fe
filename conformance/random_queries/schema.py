"""The tables that queries are asked about, filled from a seed: small, with many NULLs and repeated values."""

import datetime

import all_types
import writes
from server import SQL_MODE

INTEGER, DECIMAL, DOUBLE, TEXT, DATE, MOMENT, TIME = "integer", "decimal", "double", "text", "date", "moment", "time"

# Name, SQL type, kind.
COLUMNS = [
    ("id", "INT NOT NULL PRIMARY KEY", INTEGER),
    ("i", "INT", INTEGER),
    ("s", "SMALLINT", INTEGER),
    ("u", "BIGINT UNSIGNED", INTEGER),
    ("b", "BIGINT", INTEGER),
    ("n", "DECIMAL(12,4)", DECIMAL),
    ("w", "DECIMAL(30,0)", DECIMAL),
    ("f", "DOUBLE", DOUBLE),
    ("v", "VARCHAR(30) COLLATE utf8mb4_bin", TEXT),
    ("k", "VARCHAR(20) COLLATE utf8mb4_general_ci", TEXT),
    ("c", "CHAR(6) COLLATE utf8mb4_bin", TEXT),
    ("e", "ENUM('low','mid','high') COLLATE utf8mb4_bin", TEXT),
    ("d", "DATE", DATE),
    ("m", "DATETIME(3)", MOMENT),
    ("t", "TIME", TIME),
]

# Name, number of rows, further keys.
TABLES = [
    ("t0", 40, "KEY (i), KEY (v), KEY (d, i)"),
    ("t1", 17, "KEY (s, n), UNIQUE KEY (id, k), KEY (k)"),
    ("t2", 60, "KEY (c), KEY (m), KEY (e, u)"),
    ("t3", 1, "KEY (i)"),
    ("t4", 0, "KEY (b)"),
]

WORDS = [
    "", "a", "b", "ab", "Ab", "abc", "zoë", "漢字", "😀x", "12", "12.5", "-3", "0", "007", "1e2", "x_y", "50%", "O'Hara",
    "hello world", "lower UPPER", "2024-02-29", "low", "high", "a,b,c",
]
INTEGERS = [-5, -3, -2, -1, 0, 0, 1, 1, 2, 3, 4, 5, 7, 10, 12, 99, 100, 1000]


def number(random):
    return random.choice(INTEGERS)


def date(random):
    days = [datetime.date(2024, 2, 28), datetime.date(2024, 2, 29), datetime.date(2023, 12, 31), datetime.date(2024, 1, 1)]
    if random.random() < 0.5:
        return random.choice(days)
    return datetime.date(1995, 1, 1) + datetime.timedelta(days=random.randrange(15000))


def time(random):
    hours = random.choice([0, 1, 9, 12, 23, 23, 30, 100])
    sign = "-" if random.random() < 0.1 else ""
    return f"{sign}{hours:02}:{random.choice([0, 5, 30, 59]):02}:{random.choice([0, 1, 59]):02}"


def moment(random):
    return f"{date(random)} {random.choice(['00:00:00', '12:30:45.125', '23:59:59.999', '06:00:01'])}"


def value(random, name, kind):
    if random.random() < 0.15:
        return None
    if name == "u":
        return random.choice([0, 1, 2, 3, 5, 100, 4294967296, 9007199254740993])
    if name == "b":
        return random.choice([number(random), -(2**40), 2**40 + 1])
    if name == "w":
        return random.choice([number(random), 10**20, -(10**18) - 1])
    if name == "e":
        return random.choice(["low", "mid", "high"])
    if name == "c":
        return random.choice([word for word in WORDS if len(word) <= 6])
    if kind == INTEGER:
        return number(random)
    if kind == DECIMAL:
        return f"{number(random)}.{random.choice(['0', '5', '25', '3333', '0001', '9999'])}"
    if kind == DOUBLE:
        return random.choice([0.0, 0.5, -0.25, 1.0, 3.0, -2.75, 100.125, 1e10, 0.1, 12.0])
    if kind == TEXT:
        return random.choice([word for word in WORDS if len(word) <= 20])
    return {DATE: date, MOMENT: moment, TIME: time}[kind](random)


def fill(connection, database, random, with_all_types):
    """Drops, makes and fills the database. The same seed gives the same rows to every server."""
    cursor = connection.cursor()
    cursor.execute(f"DROP DATABASE IF EXISTS {database}")
    cursor.execute(f"CREATE DATABASE {database} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
    cursor.execute(f"USE {database}")
    for name, rows, keys in TABLES:
        columns = ", ".join(f"{column} {definition}" for column, definition, _ in COLUMNS)
        cursor.execute(f"CREATE TABLE {name} ({columns}, {keys})")
        for row in range(rows):
            values = [row + 1] + [value(random, column, kind) for column, _, kind in COLUMNS[1:]]
            marks = ", ".join(["%s"] * len(values))
            cursor.execute(f"INSERT INTO {name} VALUES ({marks})", values)
    if with_all_types:
        # What a column cannot hold becomes the nearest value: the same on every server.
        cursor.execute("SET SESSION sql_mode = ''")
        for statement in [*all_types.statements(random), *writes.statements(random)]:
            cursor.execute(statement)
        cursor.execute(f"SET SESSION sql_mode = '{SQL_MODE}'")
    connection.commit()
