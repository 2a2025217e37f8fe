"""Rows of values of unlike types beside each other, and the warnings: numbers as parts of texts, bytes and names beside
texts, years and documents as times, constants beside columns; and what is stored of them.
"""

from inputs.unlike_rows import EXPRESSIONS, QUERIES, WRITES
from unlike_values import SETUP

NAME = "recorded_unlike_rows"
TABLES = [
    "CREATE TABLE mine (id INT PRIMARY KEY, d DATE, m TIME(2), j JSON, o VARBINARY(3), f DOUBLE, tx TEXT, v VARCHAR(40), c DECIMAL(5,2) NOT NULL, n DATE)",
    "INSERT INTO mine (id, j, f, c) VALUES (1, '{}', 0.05, 1.5), (2, 'null', 1, 1.5), (3, '\"10:11:12\"', 1, 1.5), (4, NULL, 1, 1.5)",
    "CREATE TABLE parent (id INT PRIMARY KEY)",
    "CREATE TABLE child (id INT PRIMARY KEY, r INT, u INT, UNIQUE KEY (u), CONSTRAINT of_parent FOREIGN KEY (r) REFERENCES parent (id))",
    "INSERT INTO parent VALUES (1), (2)",
    "INSERT INTO child VALUES (1, 1, 1), (2, 2, 2), (3, NULL, 3)",
]


def cases(server):
    connection = server.connect()
    for statement in [one.replace("recorded_unlike_values", NAME) for one in SETUP] + TABLES:
        assert server.answer(connection, statement).startswith("ok"), statement
    for statement in [f"SELECT {one} FROM t ORDER BY id" for one in EXPRESSIONS] + QUERIES:
        yield statement, answer_with_warnings(server, connection, statement)
    for number, statement in enumerate(WRITES):
        yield f"{number}: {statement}", answer_with_warnings(server, connection, statement)


def answer_with_warnings(server, connection, statement):
    """Errors and warnings by their numbers: texts differ in how they name an expression."""
    answer = server.answer(connection, statement)
    if answer.startswith("error"):
        return " ".join(answer.split(" ")[:2])
    cursor = connection.cursor()
    cursor.execute("SHOW WARNINGS")
    return "\n".join([answer, *sorted({f"{level} {code}" for level, code, _ in cursor.fetchall()})])
